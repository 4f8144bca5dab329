package main

import (
	"sync"
	"time"

	"vigil/core"
)

// Why this file: what was reaped of late, and why. The log has it too, but who
// looks at a page asks first who is gone.

// recentReaps bounds how many are kept; the oldest go first.
const recentReaps = 50

// reapStatus is one reap on /status.
type reapStatus struct {
	At          string  `json:"at"` // wall clock
	Instance    string  `json:"instance"`
	Context     string  `json:"context"`
	Incarnation uint64  `json:"incarnation"`
	Reason      string  `json:"reason"` // window, grace, or proof
	Silent      float64 `json:"silent_seconds,omitempty"`
	Window      float64 `json:"window_seconds,omitempty"`
	Times       uint64  `json:"times"` // of this id, this one included
}

// recent is the last reaps. The journal's goroutine adds, http reads.
type recent struct {
	mu   sync.Mutex
	list []reapStatus
}

// add notes a context that the reaper removed, or that left on proof. decided is
// what the reaper gave as its reason, nil where it gave none.
func (r *recent) add(removed, decided *core.Record) {
	s := reapStatus{
		At: time.Now().Format(time.RFC3339), Instance: instanceText(removed.Instance), Context: removed.Context.String(),
		Incarnation: uint64(removed.Incarnation), Reason: "proof", Times: removed.B,
	}
	if core.RemovalCause(removed.A) == core.RemovedByReaper {
		s.Reason = "window"
		if decided != nil {
			s.Silent, s.Window = seconds(decided.At.Sub(core.Time(decided.A))), seconds(time.Duration(decided.B))
			if !decided.Flag {
				s.Reason = "grace"
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == recentReaps {
		r.list = append(r.list[:0], r.list[1:]...)
	}
	r.list = append(r.list, s)
}

// latest is the last reaps, the latest first.
func (r *recent) latest() []reapStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]reapStatus, 0, len(r.list))
	for i := len(r.list) - 1; i >= 0; i-- {
		list = append(list, r.list[i])
	}
	return list
}
