package server

import (
	"strings"
	"testing"

	"vigil/core"
	"vigil/sim/fork/fieldtest"
)

// leftOut are the fields of a server that its fingerprint does not fold, each
// with the reason why two servers that differ in it behave the same.
var leftOut = map[string]string{
	"Server.allocationReports": "a count for an operator",
	"Server.boot":              "names this life; the world folds which life it is",
	"Server.freedLane":         "of one step",
	"Server.incarnations":      "a counter of names",
	"Server.mappings":          "a counter of names",
	"Server.numbers":           "a counter of names",
	"Server.ops":               "a counter of names",
	"Server.locks":             "the slots of all sessions, counted",
	"chunk.mark":               "of one step",
	"enrolment.op":             "a name: FingerprintIn folds the operation",
	"release.op":               "a name: FingerprintIn folds the operation",
	"job.op":                   "a name: FingerprintIn folds the operation",
	"entry.mapping":            "a name: FingerprintIn folds the mapping",
	"job.mapping":              "a name, told to nobody but records",
	"job.number":               "a name",
	"job.uid":                  "a name: FingerprintIn folds what waits for it",
	"job.raw":                  "the type as its sender wrote it, in the one way that there is",
	"job.chunks":               "told to nobody but records",
	"job.kind":                 "of a transfer, folded as the direction",
	"replyTo.uid":              "a name: FingerprintIn folds what waits for it",
	"replyTo.raw":              "as job.raw",
	"Request.UID":              "a name: FingerprintIn folds what waits for it",
	"Request.RawType":          "as job.raw",
	"Request.Before":           "folded for the one request that has it, and none of that waits here",
	"Request.Legacy":           "of the decoder",
	"Request.part":             "of the decoder",
	"Request.payloads":         "of the decoder",
	"Request.why":              "of the decoder",
	"Request.Parcel":           "names what the shell keeps; no simulated message has one",
	"Request.ParcelBytes":      "as Parcel",
	"entry.moved":              "for whoever asks how long its engine has made no progress (B16)",
	"extents.free":             "what the pooled chunks leave",
	"extents.size":             "of the configuration",
	"extent.offset":            "what the pooled chunks leave",
	"extent.length":            "what the pooled chunks leave",
	"store.budget":             "of the configuration",
	"store.most":               "of the configuration",
	"store.used":               "the chunks' bytes, added up",
	"mail.bytes":               "the letters' sizes, added up",
	"letter.size":              "of the request",
	"holder.incarnation":       "folded with the entry that holds the share",
	"holder.instance":          "folded with the entry that holds the share",
	"holder.kind":              "folded with the entry that holds the share",
	"holder.layout":            "folded with the entry that holds the share",
	"layout.descriptor":        "of the newest holder, and told to nobody",
	"layout.model":             "its hash is folded",
	"layout.world":             "its hash is folded",
	"rope.incarnation":         "a name",
	"strategy.incarnation":     "a name, the context's",
	"link.prev":                "the order backwards",
	"ring.tail":                "where the order ends",
	"queue.tail":               "where the order ends",
}

// Every field of a server either shows in its fingerprint or stands in the list
// with the reason why it need not.
func TestEveryFieldIsFoldedOrExplained(t *testing.T) {
	noticed := map[string]bool{}
	look := func(w *world) {
		ends := map[string]int64{"letter.next": 0, "queue.head": 0, "queue.tail": 0, "link.next": 0, "link.prev": 0, "ring.head": 0, "ring.tail": 0, "node.next": 0, "index.heads": 0, "index.nodes": 0}
		plain := w.s.cfg.Protections
		for _, p := range []core.Protections{core.Document(), core.Hardened()} { // some fields count only where a protection asks for them
			w.s.cfg.Protections = p
			fieldtest.Merge(noticed, fieldtest.Noticed(w.s, ends, []string{"Server.cfg", "Server.reply", "Server.scratch", "Server.poolName", "Server.picked"}, func() uint64 {
				return uint64(w.s.Fingerprint(w.now))
			}))
		}
		w.s.cfg.Protections = plain
	}
	w := newWorld(t, testConfig())
	w.until(w.now)
	look(w)
	w = busyWorld(t)
	look(w)
	w.endOpen(0, core.NoFailure)
	look(w)
	w.feed(core.Input{Kind: core.InputStop})
	look(w)
	for field, yes := range noticed {
		index := strings.HasPrefix(field, "registry[") || strings.HasPrefix(field, "index.") || strings.HasPrefix(field, "node.") || strings.HasPrefix(field, "places.")
		why, out := leftOut[field]
		switch {
		case index: // where things lie, which TestACloneIsIndependent is about
		case yes && out:
			t.Errorf("%s shows in the fingerprint and is said to be left out: %s", field, why)
		case !yes && !out:
			t.Errorf("%s does not show in the fingerprint: fold it, or say in leftOut why two servers that differ in it behave the same", field)
		}
	}
}
