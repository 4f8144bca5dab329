package worker

import (
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// The heartbeat thread, as data: where it stands and what it waits for.
//
// It exists because nothing else tells a server that a worker lives, and
// nothing else tells a worker that the server is away (sections 2 and 6).
// A cycle is: send a ping, wait for its reply, look whether a stop was
// requested, run the recovery callback if the server came back, publish the
// health, sleep. Where the health changes, the last three are steps of their
// own, so that a shutdown or a submit of the engine's thread can fall between
// them, as it can between a real adapter's threads. Where it does not change
// there is nothing to see in between, and a ping costs one timer less.

// beatPhase is where the heartbeat thread stands.
type beatPhase uint8

const (
	beatAbsent     beatPhase = iota // not started: no store or retrieve yet
	beatSleeps                      // TimerHeartbeat
	beatAwaitsPing                  // TimerPingReply
	beatCallback                    // TimerHeartbeatStep: the recovery callback is next
	beatRecovers                    // TimerRecovery: blocked while the callback's register is on its way
	beatPublish                     // TimerHeartbeatStep: set or clear the health
	beatEnded                       // it saw the stop and is gone
)

// beatTimers is the timer that each phase waits on.
var beatTimers = [...]core.TimerKind{
	beatSleeps: core.TimerHeartbeat, beatAwaitsPing: core.TimerPingReply,
	beatCallback: core.TimerHeartbeatStep, beatRecovers: core.TimerRecovery,
	beatPublish: core.TimerHeartbeatStep, beatEnded: core.TimerNone,
}

type heartbeat struct {
	phase   beatPhase
	verdict bool      // beatPublish: the health to publish
	again   bool      // a transfer was refused as unregistered: register after the next good ping
	due     core.Time // when the phase's timer fires
	uid     uint64    // beatAwaitsPing: of the ping
	// recovery is the callback's register while it is on its way. The document's
	// thread is in beatRecovers then; with ping-through-recovery it pings on.
	recovery registration
}

// alive reports whether there is a thread to stop.
func (b *heartbeat) alive() bool { return b.phase != beatAbsent && b.phase != beatEnded }

// waitBeat puts the thread into a phase until its timer fires.
func (w *Worker) waitBeat(phase beatPhase, at core.Time, out *core.Effects) {
	w.beat.phase, w.beat.due = phase, at
	out.Arm(key(beatTimers[phase]), at)
}

// interval is the time between two pings, and the reply deadline of each: the
// configured one, or what fits the server's window three times (agreed-window).
func (w *Worker) interval() time.Duration {
	if w.window > 0 {
		return min(w.cfg.Interval, w.window/3)
	}
	return w.cfg.Interval
}

// agree takes in the window that a register's answer says. Settings that do not
// fit are never followed in silence.
func (w *Worker) agree(out *core.Effects) {
	if !w.cfg.Protections.AgreedWindow || w.reply.Window == w.window {
		return
	}
	w.window = w.reply.Window
	if w.interval() == w.cfg.Interval {
		return
	}
	r := w.record(out, core.WorkerWarned)
	r.Failure, r.Flag = core.FailWindow, true
	r.A, r.B = uint64(3*w.cfg.Interval), uint64(w.window)
	out.Tell(core.TellWarning, 0).Failure = core.FailWindow
}

// startHeartbeat starts the thread if there is none; its first ping comes at
// once. A start after a stop was requested would be a ghost, so there is none.
func (w *Worker) startHeartbeat(now core.Time, out *core.Effects) {
	if w.beat.phase != beatAbsent || w.stopping() {
		return
	}
	w.record(out, core.HeartbeatStarted)
	w.waitBeat(beatSleeps, now, out)
}

// wakeHeartbeat begins a cycle. The ping's reply has as long as the sleep
// between two pings: one setting for both (PROTOCOL, section 5.1).
func (w *Worker) wakeHeartbeat(now core.Time, out *core.Effects) {
	if w.beat.phase != beatSleeps {
		return
	}
	if w.stopping() {
		w.endHeartbeat(now, out)
		return
	}
	uid := w.takeUID()
	w.beat.uid = uid
	r := w.record(out, core.PingSent)
	r.A = uid
	w.sendPing(uid, out)
	w.waitBeat(beatAwaitsPing, now.Add(w.interval()), out)
}

// sendPing sends one ping: with the id, or with nil for a client that registers
// nothing, or without a payload for a client from before liveness.
func (w *Worker) sendPing(uid uint64, out *core.Effects) {
	var req wire.Request
	req.UIDNumber, req.Type = uid, wire.Ping
	req.Instance, req.NoInstance, req.Legacy = w.id, w.cfg.Prober, w.cfg.Legacy
	send(out, &req)
}

// pingAnswered ends the wait for a ping with the server's verdict.
func (w *Worker) pingAnswered(now core.Time, out *core.Effects) {
	out.Disarm(key(core.TimerPingReply))
	r := w.record(out, core.PingAnswered)
	r.A, r.Flag, r.Failure = w.beat.uid, w.reply.OK, w.reply.Refusal
	again := !w.stopping() && w.learn(out)
	w.heardPing(out)
	if again && w.healthy {
		// As if the edge had come, but in this very step, so that no transfer
		// goes out to where it can only be refused.
		w.healthy = false
		w.clearHealth(out)
	}
	w.judgePing(now, w.reply.OK, out)
}

// pingTimedOut ends the wait for a ping without an answer. A reply that comes
// later finds nobody.
func (w *Worker) pingTimedOut(now core.Time, out *core.Effects) {
	if w.beat.phase != beatAwaitsPing {
		return
	}
	r := w.record(out, core.PingFailed)
	r.A, r.Failure = w.beat.uid, core.FailDeadline
	w.judgePing(now, false, out)
}

// judgePing is the cycle after the wait: the look at the stop flag comes first,
// because a cycle that outlives its stop must touch nothing (section 6.3).
// Where the callback's register is still on its way, the health is its to set.
func (w *Worker) judgePing(now core.Time, ok bool, out *core.Effects) {
	switch {
	case w.stopping():
		w.endHeartbeat(now, out)
	case w.beat.recovery.stage != enrolIdle:
		w.waitBeat(beatSleeps, now.Add(w.interval()), out)
	case ok && !w.healthy:
		w.waitBeat(beatCallback, now, out)
	default:
		w.publishSoon(now, ok, out)
	}
}

// publishSoon publishes a verdict: as a step of its own where it changes the
// health, else at once, because there is nothing to do.
func (w *Worker) publishSoon(now core.Time, ok bool, out *core.Effects) {
	if ok == w.healthy {
		w.waitBeat(beatSleeps, now.Add(w.interval()), out)
		return
	}
	w.beat.verdict = ok
	w.waitBeat(beatPublish, now, out)
}

// stepHeartbeat takes the cycle's next step.
func (w *Worker) stepHeartbeat(now core.Time, out *core.Effects) {
	switch {
	case w.beat.phase != beatCallback && w.beat.phase != beatPublish:
	case w.stopping():
		w.endHeartbeat(now, out)
	case w.beat.phase == beatCallback:
		w.runRecovery(now, out)
	default:
		w.publish(now, out)
	}
}

// publish sets or clears the health and goes to sleep.
func (w *Worker) publish(now core.Time, out *core.Effects) {
	w.healthy = w.beat.verdict
	if w.healthy {
		w.record(out, core.HealthSet)
	} else {
		w.clearHealth(out)
	}
	w.waitBeat(beatSleeps, now.Add(w.interval()), out)
}

func (w *Worker) clearHealth(out *core.Effects) {
	w.record(out, core.HealthCleared)
	if w.pending.count() > 0 {
		w.wake(out) // get_finished would now give up on all of them
	}
}

// runRecovery is the recovery callback: it runs before the health is set, so that
// traffic resumes only into a context that exists (section 6.2). A worker that
// registered nothing has nothing to recover.
func (w *Worker) runRecovery(now core.Time, out *core.Effects) {
	w.record(out, core.RecoveryBegan)
	if !w.memory.kept {
		w.endRecovery(now, true, out)
		return
	}
	w.beat.recovery = w.sendRegister(enrolMemory, true, out)
	w.waitRecovery(now, out)
	if w.cfg.Protections.PingThroughRecovery {
		w.waitBeat(beatSleeps, now.Add(w.interval()), out)
	}
}

// waitRecovery waits for the callback's register. The document's register
// blocks the heartbeat thread: no ping goes out until it ended, and one that
// takes longer than the window makes the worker look dead (B20).
func (w *Worker) waitRecovery(now core.Time, out *core.Effects) {
	due := now.Add(w.cfg.Timeout)
	w.beat.recovery.due = due
	if w.cfg.Protections.PingThroughRecovery {
		out.Arm(key(core.TimerRecovery), due)
		return
	}
	w.waitBeat(beatRecovers, due, out)
}

// recoveryAnswered ends one stage of the callback's registration.
func (w *Worker) recoveryAnswered(now core.Time, out *core.Effects) {
	out.Disarm(key(core.TimerRecovery))
	w.recordRegisterEnded(&w.beat.recovery, w.reply.Refusal, true, out)
	if w.reply.Refusal != core.NoFailure {
		w.registerRefused(out)
		w.endRecovery(now, false, out)
		return
	}
	if w.beat.recovery.stage == enrolMemory {
		w.enrolledNow()
		w.agree(out)
	}
	if w.cfg.Blend && w.beat.recovery.stage == enrolMemory && !w.stopping() {
		w.beat.recovery = w.sendRegister(enrolRope, true, out)
		w.waitRecovery(now, out)
		return
	}
	w.endRecovery(now, !w.stopping(), out)
}

// recoveryTimedOut fails the callback: the worker stays unhealthy and tries
// again at its next good ping.
func (w *Worker) recoveryTimedOut(now core.Time, out *core.Effects) {
	if w.beat.recovery.stage == enrolIdle {
		return
	}
	w.recordRegisterEnded(&w.beat.recovery, core.FailDeadline, true, out)
	w.endRecovery(now, false, out)
}

// endRecovery leaves the callback with its result. A thread that pinged on is
// somewhere in its cycle and stays there: the health is set beside it.
func (w *Worker) endRecovery(now core.Time, ok bool, out *core.Effects) {
	beside := w.cfg.Protections.PingThroughRecovery && w.beat.recovery.stage != enrolIdle
	w.beat.recovery = registration{}
	w.record(out, core.RecoveryEnded).Flag = ok
	switch {
	case w.stopping():
		if w.beat.phase == beatRecovers || !beside {
			w.endHeartbeat(now, out)
		}
	case !beside:
		w.publishSoon(now, ok, out)
	case ok:
		w.healthy = true
		w.record(out, core.HealthSet)
	}
}

// endHeartbeat ends the thread, and with it a shutdown's wait for it. Where the
// callback's register is still on its way beside it, the thread is blocked in
// it from here on, as the document's is all along (A11).
func (w *Worker) endHeartbeat(now core.Time, out *core.Effects) {
	if w.beat.recovery.stage != enrolIdle {
		w.beat.phase, w.beat.due = beatRecovers, w.beat.recovery.due
		return
	}
	w.beat = heartbeat{phase: beatEnded}
	if w.life == joining {
		out.Disarm(key(core.TimerJoin))
		w.heartbeatStopped(now, true, out)
	}
}
