package worker

import (
	"vigil/core"
)

// The deadlines of pending requests (request-deadlines, B7): a reply that was
// lost is waited for no longer than any synchronous request is.
//
// Every request has the same patience, so the order of submission is the order
// of the deadlines, and one timer for the oldest will do. It is armed when
// there is something to wait for and none is armed, and left alone when its
// request ends: it then fires for nothing and is armed for the oldest that
// there is by then. So traffic that is answered costs a timer per patience,
// not one per request.

// sweep is that timer.
type sweep struct {
	armed bool
	at    core.Time
}

// watch gives a request that was just submitted its deadline.
func (w *Worker) watch(now core.Time, slot int32, out *core.Effects) {
	if !w.cfg.Protections.RequestDeadlines {
		return
	}
	due := now.Add(w.cfg.Timeout)
	w.pending.at(slot).due = due
	if !w.sweep.armed {
		w.armSweep(due, out)
	}
}

func (w *Worker) armSweep(at core.Time, out *core.Effects) {
	w.sweep = sweep{true, at}
	out.Arm(key(core.TimerRequest), at)
}

// sweepPending ends what is past its deadline.
func (w *Worker) sweepPending(now core.Time, out *core.Effects) {
	if !w.sweep.armed {
		return
	}
	w.sweep = sweep{}
	for slot := w.pending.active.head; slot != none; slot = w.pending.active.head {
		if due := w.pending.at(slot).due; due > now {
			w.armSweep(due, out)
			break
		}
		if w.mayStillRun(slot) {
			w.hold(slot, out)
		} else {
			w.giveUp(slot, core.FailDeadline, out)
		}
	}
	w.askSettled(out)
}

// giveUp ends a pending request without its reply, which is dropped if it
// still comes. A retrieve's blocks are invalid then, and free: whoever calls
// knows that the server does not carry it out, or that it cannot say so.
func (w *Worker) giveUp(slot int32, why core.Failure, out *core.Effects) {
	w.pending.forget(slot)
	w.failRequest(slot, why, out)
}
