package worker

import (
	"vigil/core"
	"vigil/core/wire"
)

// The orderly end: the heartbeat first, then UNREGISTER, then the engine is
// told what became of its requests. In this order no ping lands on a closing
// client and no recovery registers again what was just unregistered
// (section 6.3; PROTOCOL, section 5.5).

// departure is what a shutdown still waits for.
type departure struct {
	due core.Time // joining: TimerJoin fires; unregistering: TimerUnregister fires
	// The messages on their way, and their uids: rope before memory.
	ropeSent, memorySent bool
	rope, memory         uint64
	context              core.ContextKind // of the memory's UNREGISTER
}

func (d *departure) awaits(uid uint64) bool {
	return d.ropeSent && uid == d.rope || d.memorySent && uid == d.memory
}

// shutdown requests the stop. The heartbeat's sleep is interruptible, so a
// sleeping thread is woken at once; a cycle that waits for a reply looks at
// the stop flag only when its wait ends, and a shutdown waits for it no longer
// than core.JoinBound.
func (w *Worker) shutdown(now core.Time, out *core.Effects) {
	if w.stopping() {
		return
	}
	w.life = joining
	w.record(out, core.ShutdownBegan)
	if !w.beat.alive() {
		w.unregister(now, out)
		return
	}
	if w.beat.phase == beatSleeps {
		w.waitBeat(beatSleeps, now, out)
	}
	w.leave.due = now.Add(core.JoinBound)
	out.Arm(key(core.TimerJoin), w.leave.due)
}

// joinTimedOut goes on without the thread. Whatever it still waits for, it
// will see the stop then and touch nothing.
func (w *Worker) joinTimedOut(now core.Time, out *core.Effects) {
	if w.life == joining {
		w.heartbeatStopped(now, false, out)
	}
}

func (w *Worker) heartbeatStopped(now core.Time, joined bool, out *core.Effects) {
	w.record(out, core.HeartbeatStopped).Flag = joined
	w.unregister(now, out)
}

// unregister says goodbye. A worker that never registered says it all the
// same, and the server only warns; a prober has nothing to take back. The rope
// state's message and the memory's go out one behind the other, in one wait:
// the server runs both in the order in which they came.
func (w *Worker) unregister(now core.Time, out *core.Effects) {
	w.life = unregistering
	if w.cfg.Prober {
		w.stop(out)
		return
	}
	if w.cfg.Blend && w.memory.kept {
		w.leave.ropeSent, w.leave.rope = true, w.sendUnregister(wire.UnregisterRope, core.RopeState, out)
	}
	// Without a transfer context upstream takes the server-driven form.
	request, context := wire.UnregisterKVCache, core.ServerDriven
	if w.memory.kept && w.cfg.Mode == core.ModeEngineDriven {
		request, context = wire.UnregisterEngineDriven, core.EngineDriven
	}
	w.leave.context = context
	w.leave.memorySent, w.leave.memory = true, w.sendUnregister(request, context, out)
	w.leave.due = now.Add(w.cfg.Timeout)
	out.Arm(key(core.TimerUnregister), w.leave.due)
}

func (w *Worker) sendUnregister(request wire.Type, context core.ContextKind, out *core.Effects) uint64 {
	uid := w.takeUID()
	r := w.record(out, core.UnregisterSent)
	r.A, r.Context = uid, context
	var req wire.Request
	req.UIDNumber, req.Type, req.Instance = uid, request, w.id
	send(out, &req)
	return uid
}

// unregisterAnswered ends the wait for one message. A refusal ends it too:
// what could be done is done, and the reaper finds the rest.
func (w *Worker) unregisterAnswered(uid uint64, out *core.Effects) {
	if w.leave.ropeSent && uid == w.leave.rope {
		w.leave.ropeSent = false
		w.recordUnregisterEnded(uid, core.RopeState, w.reply.Refusal, out)
	} else {
		w.leave.memorySent = false
		w.recordUnregisterEnded(uid, w.leave.context, w.reply.Refusal, out)
	}
	if !w.leave.ropeSent && !w.leave.memorySent {
		out.Disarm(key(core.TimerUnregister))
		w.stop(out)
	}
}

// unregisterTimedOut warns and goes on: the server's reaper will find the
// context, and an engine that hangs at its end helps nobody.
func (w *Worker) unregisterTimedOut(out *core.Effects) {
	if w.life != unregistering {
		return
	}
	if w.leave.ropeSent {
		w.recordUnregisterEnded(w.leave.rope, core.RopeState, core.FailDeadline, out)
	}
	if w.leave.memorySent {
		w.recordUnregisterEnded(w.leave.memory, w.leave.context, core.FailDeadline, out)
	}
	w.record(out, core.WorkerWarned).Failure = core.FailDeadline
	out.Tell(core.TellWarning, 0).Failure = core.FailDeadline
	w.stop(out)
}

func (w *Worker) recordUnregisterEnded(uid uint64, context core.ContextKind, failure core.Failure, out *core.Effects) {
	r := w.record(out, core.UnregisterEnded)
	r.A, r.Context, r.Failure = uid, context, failure
}

// stop ends the worker. The engine asks no more, so it is told of every
// request that it was not told of yet: what ended, how it ended, and what did
// not end, that it failed. A thread that outlived the join ends with the
// process; its timer is taken back so that nothing of this life remains.
func (w *Worker) stop(out *core.Effects) {
	w.reportReady(false, out)
	w.reportUnresolved(out)
	if w.enrol.stage != enrolIdle {
		out.Disarm(key(core.TimerRegister))
		w.failRegister(core.FailStopping, out)
	}
	if w.beat.alive() {
		out.Disarm(key(core.TimerRecovery)) // which may wait beside the phase's own
		out.Disarm(key(beatTimers[w.beat.phase]))
	}
	if w.sweep.armed {
		out.Disarm(key(core.TimerRequest))
	}
	w.life = gone
	w.record(out, core.WorkerStopped)
	out.Tell(core.TellShutdown, 0)
	out.Leave(core.ExitOrderly)
}
