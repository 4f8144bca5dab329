package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"vigil/core"
	"vigil/realgpu"
)

// Why this file: scenarios B2, B6 and B13 with real processes need a close
// that hangs, a copy that is slow and a device that is small. The paths exist
// only with --test-hooks, which is refused where other hosts could reach them.
//
//	POST   /test/hooks       {"operation":"close","instance":"0","delay_seconds":2,"hang":false,"fail":"close-failed","count":1}
//	                         answers {"rule":1}; instance 0 is everybody's, count 0 every time
//	DELETE /test/hooks/1     answers {"struck":3}
//	PUT    /test/hooks/room  {"bytes":1073741824}; 0 is boundless
//
// delay_seconds is of the server's own clock.

type hookRule struct {
	Operation string  `json:"operation"`
	Instance  string  `json:"instance"`
	Delay     float64 `json:"delay_seconds"`
	Hang      bool    `json:"hang"`
	Fail      string  `json:"fail"`
	Count     int     `json:"count"`
}

func (v *service) hookPaths(mux *http.ServeMux) {
	mux.HandleFunc("POST /test/hooks", func(w http.ResponseWriter, r *http.Request) {
		var h hookRule
		if !readJSON(w, r, &h) {
			return
		}
		rule, err := v.ruleOf(&h)
		if err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
			return
		}
		n := v.hooks.Add(rule)
		if n == 0 {
			writeJSON(w, http.StatusTooManyRequests, map[string]string{"error": "too many rules stand; remove one"})
			return
		}
		v.log.Warn("TEST: a rule stands", "rule", n, "operation", h.Operation, "instance", h.Instance, "delay_seconds", h.Delay, "hang", h.Hang, "fail", h.Fail, "count", h.Count)
		writeJSON(w, http.StatusOK, map[string]int{"rule": n})
	})
	mux.HandleFunc("DELETE /test/hooks/{rule}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("rule"))
		if err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]string{"error": "a rule is a number"})
			return
		}
		writeJSON(w, http.StatusOK, map[string]int{"struck": v.hooks.Remove(n)})
	})
	mux.HandleFunc("PUT /test/hooks/room", func(w http.ResponseWriter, r *http.Request) {
		var room struct {
			Bytes uint64 `json:"bytes"`
		}
		if !readJSON(w, r, &room) {
			return
		}
		v.hooks.SetRoom(room.Bytes)
		v.log.Warn("TEST: the device is smaller", "bytes", room.Bytes)
		writeJSON(w, http.StatusOK, map[string]uint64{"bytes": room.Bytes})
	})
}

// maxHookBytes bounds a rule's text.
const maxHookBytes = 4 << 10

func readJSON(w http.ResponseWriter, r *http.Request, to any) bool {
	d := json.NewDecoder(io.LimitReader(r.Body, maxHookBytes))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return false
	}
	return true
}

func (v *service) ruleOf(h *hookRule) (realgpu.Rule, error) {
	rule := realgpu.Rule{Hang: h.Hang, Count: h.Count, Delay: v.config.scaled(time.Duration(h.Delay * float64(time.Second)))}
	found := false
	for _, op := range []realgpu.Operation{realgpu.Open, realgpu.Close, realgpu.Copy} {
		if op.String() == h.Operation {
			rule.Operation, found = op, true
		}
	}
	if !found {
		return rule, unknownName(h.Operation, []string{"open", "close", "copy"})
	}
	if h.Instance != "" {
		id, err := strconv.ParseUint(h.Instance, 10, 63)
		if err != nil {
			return rule, &problem{http.StatusBadRequest, "instance must be an id as text"}
		}
		rule.Owner = core.InstanceID(id)
	}
	if h.Fail != "" {
		f, ok := core.FailureNamed(h.Fail)
		if !ok {
			return rule, &problem{http.StatusBadRequest, "there is no failure " + strconv.Quote(h.Fail) + "; for example close-failed"}
		}
		rule.Fail = f
	}
	return rule, nil
}
