package worker

import (
	"vigil/core"
	"vigil/core/wire"
)

// Registration: the engine's memory is announced to the server, and with blend
// the rope state after it. The engine's own call and the heartbeat's recovery
// share the messages and differ in who waits: the engine fails to start where
// no answer comes, the heartbeat tries again at its next good ping
// (PROTOCOL, section 5.2).

// enrolStage is which message of a registration is on its way.
type enrolStage uint8

const (
	enrolIdle   enrolStage = iota
	enrolMemory            // REGISTER_KV_CACHE or its engine-driven form
	enrolRope              // CB_REGISTER_ROPE
)

type registration struct {
	stage enrolStage
	uid   uint64
	due   core.Time // when TimerRegister fires, or TimerRecovery for the heartbeat's
}

// register is register_kv_caches. The memory is kept from here on, also where
// no answer comes: a server that comes to life later is told of it by the
// recovery. A prober registers nothing.
func (w *Worker) register(now core.Time, c *core.Call, out *core.Effects) {
	if failure := w.refuseRegister(c); failure != core.NoFailure {
		out.Tell(core.TellRegisterFailed, 0).Failure = failure
		return
	}
	w.memory.keep(c.Exports, c.Groups)
	w.enrol = w.sendRegister(enrolMemory, false, out)
	w.waitRegister(now, out)
}

// refuseRegister says why a register call sends nothing, NoFailure where it does.
func (w *Worker) refuseRegister(c *core.Call) core.Failure {
	switch {
	case w.stopping():
		return core.FailStopping
	case w.cfg.Prober:
		return core.FailUnsupported
	case w.enrol.stage != enrolIdle:
		return core.FailQueueFull // the call blocks its caller upstream, so there is one at a time
	case len(c.Exports) > core.MaxExports || len(c.Groups) > core.MaxGroups:
		return core.FailTooLarge
	}
	for i := range c.Groups {
		// A chunk must be whole blocks in every group, or its blocks have no name.
		if t := c.Groups[i].TokensPerBlock; t > 0 && int64(w.cfg.ChunkTokens)%t != 0 {
			return core.FailBadBlocks
		}
	}
	return core.NoFailure
}

func (w *Worker) waitRegister(now core.Time, out *core.Effects) {
	w.enrol.due = now.Add(w.cfg.Timeout)
	out.Arm(key(core.TimerRegister), w.enrol.due)
}

// registerAnswered ends one stage of the engine's registration.
func (w *Worker) registerAnswered(now core.Time, out *core.Effects) {
	if w.reply.Refusal != core.NoFailure {
		out.Disarm(key(core.TimerRegister))
		w.registerRefused(out)
		w.failRegister(w.reply.Refusal, out)
		return
	}
	w.recordRegisterEnded(&w.enrol, core.NoFailure, false, out)
	if w.enrol.stage == enrolMemory {
		w.enrolledNow()
		w.agree(out)
		if w.cfg.Blend && !w.stopping() {
			w.enrol = w.sendRegister(enrolRope, false, out)
			w.waitRegister(now, out) // moves the timer that is armed
			return
		}
	}
	whole := !w.cfg.Blend || w.enrol.stage == enrolRope
	out.Disarm(key(core.TimerRegister))
	w.enrol = registration{}
	if !whole {
		out.Tell(core.TellRegisterFailed, 0).Failure = core.FailStopping
		return
	}
	if w.cfg.Protections.EagerHeartbeat {
		// A rank without traffic is alive too (B12). The document waits for the
		// first transfer, because a worker may stall while it warms up; a server
		// that must not take that for death has latch-needs-traffic.
		w.startHeartbeat(now, out)
	}
	out.Tell(core.TellRegistered, 0)
}

// registerTimedOut fails the engine's registration; there is no second try.
func (w *Worker) registerTimedOut(out *core.Effects) {
	if w.enrol.stage == enrolIdle {
		return
	}
	w.failRegister(core.FailDeadline, out)
}

func (w *Worker) failRegister(failure core.Failure, out *core.Effects) {
	w.recordRegisterEnded(&w.enrol, failure, false, out)
	w.enrol = registration{}
	out.Tell(core.TellRegisterFailed, 0).Failure = failure
}

func (w *Worker) recordRegisterEnded(g *registration, failure core.Failure, recovery bool, out *core.Effects) {
	r := w.record(out, core.RegisterEnded)
	r.A, r.Failure, r.Flag, r.Context = g.uid, failure, recovery, w.contextOf(g.stage)
}

// contextKind is the kind of context that this worker's memory lives in.
func (w *Worker) contextKind() core.ContextKind {
	if w.cfg.Mode == core.ModeEngineDriven {
		return core.EngineDriven
	}
	return core.ServerDriven
}

func (w *Worker) contextOf(stage enrolStage) core.ContextKind {
	if stage == enrolRope {
		return core.RopeState
	}
	return w.contextKind()
}

// sendRegister sends one message of a registration.
func (w *Worker) sendRegister(stage enrolStage, recovery bool, out *core.Effects) registration {
	uid := w.takeUID()
	r := w.record(out, core.RegisterSent)
	r.A, r.Flag, r.Context = uid, recovery, w.contextOf(stage)

	var req wire.Request
	req.UIDNumber, req.Instance = uid, w.id
	m := &w.memory
	switch {
	case stage == enrolRope:
		req.Type = wire.RegisterRope
		req.HeadSize, req.Neox = m.tail(1), true
	case w.cfg.Mode == core.ModeEngineDriven:
		req.Type = wire.RegisterEngineDriven
		req.Model, req.WorldSize = w.model(), int64(w.cfg.WorldSize)
		req.BlockSize, req.NumLayers = m.blockTokens(), int64(len(m.exports))
		req.HiddenDim, req.DType = m.tail(2), m.dtype()
	default:
		req.Type = wire.RegisterKVCache
		req.Model, req.WorldSize = w.model(), int64(w.cfg.WorldSize)
		req.Engine = []byte("vllm")
		req.Hints.KVLayout = []byte("NHD")
		req.Exports, req.Groups = m.exports, m.groups
	}
	send(out, &req)
	return registration{stage: stage, uid: uid}
}
