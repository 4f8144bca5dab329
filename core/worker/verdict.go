package worker

import (
	"vigil/core"
)

// What an answer says beyond yes or no: that the server holds nothing for this
// worker any more, or that it is not the server that was asked before.
//
// It exists because the document's worker learns of a loss only by a failed
// ping. A worker that was reaped while it slept (B1), or whose server came back
// between two pings (B4), fails none, and serves errors for ever. Each
// protection here copes with a server that lacks it: such a server answers
// plain true, which says nothing.

// learn takes in what the answer to a ping says; it reports whether the memory
// must be registered again although no ping failed.
func (w *Worker) learn(out *core.Effects) (again bool) {
	v := &w.reply.Ping
	aware := w.cfg.Protections.RegistrationAwarePing && v.Aware
	if w.cfg.Protections.BootToken && v.Boot != 0 {
		changed := w.boot != 0 && w.boot != v.Boot
		w.boot = v.Boot // the first one is no change: there is nothing to compare it with
		if changed {
			w.serverChanged(out)
			again = !aware // a server that says what it knows need not be guessed at
		}
	}
	if aware && !v.Registered && w.beat.uid >= w.enrolled {
		again = true
	}
	return (again || w.beat.again) && w.hadRegistered()
}

// hadRegistered reports whether there is a registration to lose, and nobody
// who replaces it at this moment: a register of the engine's own is awaited
// first.
func (w *Worker) hadRegistered() bool {
	return w.registered && w.enrol.stage == enrolIdle
}

// serverChanged ends what was sent to the server's last life. Of the requests
// only those that went out before this ping did: the answer is the proof, and
// it proves nothing of what was sent after its question. A recovery that is
// under way began before this ping, so it is not waited for either; the good
// answer makes it be tried again.
func (w *Worker) serverChanged(out *core.Effects) {
	for slot := w.pending.active.head; slot != none; {
		e := w.pending.at(slot)
		next := e.next
		if e.uid < w.beat.uid {
			w.giveUp(slot, core.FailLost, out)
		}
		slot = next
	}
	w.freeHeld(w.beat.uid, nil, out)
	w.unasked = false
	if r := &w.beat.recovery; r.stage != enrolIdle {
		out.Disarm(key(core.TimerRecovery))
		w.recordRegisterEnded(r, core.FailLost, true, out)
		*r = registration{}
		w.record(out, core.RecoveryEnded)
	}
}

// enrolledNow notes that the server has this worker's memory: what was asked
// before may say otherwise and is out of date.
func (w *Worker) enrolledNow() {
	w.registered, w.warned = true, false
	w.enrolled = w.nextUID
	w.beat.again = false
}

// refusedUnregistered takes in that a transfer was refused because its
// registration is gone. The heartbeat is woken: it registers again after one
// ping, so that a server that just refuses everything is not registered with
// blindly.
func (w *Worker) refusedUnregistered(now core.Time, uid uint64, out *core.Effects) {
	if !w.cfg.Protections.RegistrationAwarePing || uid < w.enrolled || !w.healthy || !w.hadRegistered() {
		return
	}
	w.beat.again = true
	if w.beat.phase == beatSleeps && w.beat.due > now {
		w.waitBeat(beatSleeps, now, out)
	}
}

// registerRefused warns that the server still releases this worker's last
// mapping of the same memory: nothing that the worker does can hurry it, and
// an operator should know. Once until a registration succeeds, because every
// ping tries again.
func (w *Worker) registerRefused(out *core.Effects) {
	if w.reply.Refusal != core.FailReleasing || w.warned {
		return
	}
	w.warned = true
	w.record(out, core.WorkerWarned).Failure = core.FailReleasing
	out.Tell(core.TellWarning, 0).Failure = core.FailReleasing
}
