package server

import (
	"vigil/core"
	"vigil/core/wire"
)

// Registering and unregistering: the SYNC handlers. The two of server-driven
// contexts wait for the device and hold the main loop meanwhile.

type mainState uint8

const (
	mainIdle      mainState = iota
	mainOpening             // a register waits for its open
	mainInserting           // the open ended; the insert is a step of its own
	mainClosing             // an unregister waits for its close
)

// mainLoop is the one slot of the SYNC requests.
type mainLoop struct {
	state    mainState
	op       core.Op
	since    core.Time // the handler's entry; a fresh context's first stamp
	entry    entry     // what is being opened or closed
	peer     core.Peer
	kind     wire.Type
	uid, raw []byte
}

func (l *mainLoop) reset() { *l = mainLoop{uid: l.uid[:0], raw: l.raw[:0]} }

// hold keeps what the handler of m needs when its wait is over.
func (s *Server) hold(now core.Time, state mainState, m *message, e entry) {
	l := &s.main
	l.state, l.since, l.entry, l.peer, l.kind = state, now, e, m.peer, m.r.Type
	l.uid, l.raw = append(l.uid[:0], m.r.UID...), append(l.raw[:0], m.r.RawType...)
	s.ops++
	l.op = core.Op(s.ops << 20)
}

// answerMain ends the handler that held the main loop with a success.
func (s *Server) answerMain(out *core.Effects) {
	l := &s.main
	l.state = mainIdle
	if s.stop.stage == stopNot {
		s.blank().Nil = true
		wire.EncodeReply(out.Send(l.peer), l.uid, l.raw, l.kind, &s.reply)
	}
}

// failMain ends the handler that held the main loop the way a raising handler
// ends: logged, no reply.
func (s *Server) failMain(out *core.Effects, why core.Failure) {
	l := &s.main
	l.state = mainIdle
	r := out.Record(core.Refused)
	r.Context, r.Instance, r.Incarnation = core.ServerDriven, l.entry.instance, l.entry.incarnation
	r.A, r.B, r.Failure = uint64(l.kind), uint64(l.peer), why
}

func (s *Server) nextIncarnation() core.Incarnation {
	s.incarnations++
	return s.incarnations
}

// came writes the arrival of a request about a context.
func came(out *core.Effects, kind core.RecordKind, context core.ContextKind, m *message) {
	r := out.Record(kind)
	r.Context, r.Instance, r.A = context, m.r.Instance, uint64(m.peer)
}

// stamp refreshes an entry's last_seen.
func stamp(out *core.Effects, kind core.ContextKind, e *entry, at core.Time, cause core.StampCause) {
	e.lastSeen = at
	note(out, core.Stamped, kind, e, uint64(at), uint64(cause))
}

// register is REGISTER_KV_CACHE. A known id is a no-op that refreshes, whatever
// its content (PROTOCOL, section 4.7); it builds nothing and asks nothing.
func (s *Server) register(now core.Time, m *message, out *core.Effects) {
	came(out, core.RegisterArrived, core.ServerDriven, m)
	id := uint64(m.r.Instance)
	if pos := s.contexts.find(id); pos >= 0 {
		s.refresh(now, core.ServerDriven, &s.contexts.entries[pos], out)
		s.answerNil(out, m)
		return
	}
	if s.contexts.live() >= core.MaxInstances {
		s.refuse(out, m, core.FailQueueFull)
		return
	}
	s.mappings++
	e := entry{
		instance: m.r.Instance, incarnation: s.nextIncarnation(), mapping: s.mappings,
		lastSeen: now, about: describeServerDriven(m.r, s.cfg.ChunkTokens),
	}
	s.hold(now, mainOpening, m, e)
	note(out, core.OpenBegan, core.ServerDriven, &e, uint64(e.mapping), uint64(s.main.op))
	out.Open(core.OpenOrder{
		Op: s.main.op, Mapping: e.mapping, Owner: e.instance, Incarnation: e.incarnation,
		Exports: m.r.Exports, Groups: m.r.Groups,
	})
}

// refresh is the no-op register of an id that is present.
func (s *Server) refresh(now core.Time, kind core.ContextKind, e *entry, out *core.Effects) {
	note(out, core.RegisterNoop, kind, e, 0, 0)
	stamp(out, kind, e, now, core.StampNoop)
}

// opened takes the end of the open that a register waits for.
func (s *Server) opened(now core.Time, in *core.Input, out *core.Effects) {
	l := &s.main
	if l.state != mainOpening || l.op != in.Op {
		return
	}
	if in.Failure == core.NoFailure {
		l.entry.bytes = in.Bytes
	}
	note(out, core.OpenEnded, core.ServerDriven, &l.entry, uint64(l.entry.mapping), l.entry.bytes).Failure = in.Failure
	if in.Failure != core.NoFailure {
		s.failMain(out, in.Failure)
		return
	}
	l.state = mainInserting
	out.Arm(core.TimerKey{Kind: core.TimerMainStep}, now)
}

// mainStep inserts the context whose memory is open. Its stamp is the time at
// which the handler began, before the slow build (PROTOCOL, section 4.2): a
// build longer than the grace is stale when it is inserted (B17).
func (s *Server) mainStep(_ core.Time, out *core.Effects) {
	l := &s.main
	if l.state != mainInserting {
		return
	}
	pos := s.contexts.add(uint64(l.entry.instance))
	e := &s.contexts.entries[pos]
	*e = l.entry
	note(out, core.ContextInserted, core.ServerDriven, e, uint64(e.mapping), e.bytes)
	stamp(out, core.ServerDriven, e, l.since, core.StampRegister)
	s.layouts.acquire(out, core.ServerDriven, e)
	s.answerMain(out)
}

// unregister is UNREGISTER_KV_CACHE: the same pop and cleanup as a reap, with
// the main loop held until the close returns. An unknown id is an ordinary
// success (PROTOCOL, section 4.8).
func (s *Server) unregister(now core.Time, m *message, out *core.Effects) {
	came(out, core.UnregisterCame, core.ServerDriven, m)
	pos := s.contexts.find(uint64(m.r.Instance))
	if pos < 0 {
		s.nothingToDrop(out, core.ServerDriven, m)
		return
	}
	s.hold(now, mainClosing, m, s.contexts.entries[pos])
	s.contexts.remove(pos)
	e := &s.main.entry
	s.removed(out, core.ServerDriven, e, core.RemovedByClient)
	beginClose(out, e, s.main.op)
}

// nothingToDrop answers an unregister of an unknown id: a warning, a success.
func (s *Server) nothingToDrop(out *core.Effects, kind core.ContextKind, m *message) {
	r := refused(out, m.r, m.peer, core.FailNotRegistered)
	r.Context, r.Flag = kind, true
	s.answerNil(out, m)
}

// removed writes that a context serves no more, with the count of the id's
// reaps so far: a count that grows is the sign of a window too small (A20).
func (s *Server) removed(out *core.Effects, kind core.ContextKind, e *entry, cause core.RemovalCause) {
	note(out, core.ContextRemoved, kind, e, uint64(cause), s.timesReaped(e.instance))
}

// beginClose asks the memory to close a context's mapping. Under the document
// nothing waits for a copy that still uses it (B6).
func beginClose(out *core.Effects, e *entry, op core.Op) {
	note(out, core.CloseBegan, core.ServerDriven, e, uint64(e.mapping), uint64(op))
	out.Close(core.CloseOrder{Op: op, Mapping: e.mapping, Owner: e.instance, Incarnation: e.incarnation})
}

// endClose writes how a close ended and, where it succeeded, returns the
// context's share of its layout. A close that fails skips the rest of its
// cleanup, as an exception there does (PROTOCOL, section 4.2).
func (s *Server) endClose(out *core.Effects, e *entry, why core.Failure) {
	given := e.bytes
	if why != core.NoFailure {
		given = 0
	}
	note(out, core.CloseEnded, core.ServerDriven, e, uint64(e.mapping), given).Failure = why
	if why == core.NoFailure {
		s.layouts.release(out, core.ServerDriven, e)
	}
}

// mainReleased ends an unregister.
func (s *Server) mainReleased(in *core.Input, out *core.Effects) {
	e := &s.main.entry
	s.endClose(out, e, in.Failure)
	if in.Failure != core.NoFailure {
		s.lost.add(e)
		s.failMain(out, in.Failure)
		return
	}
	s.answerMain(out)
}

// registerRope keeps blend state. A known id keeps what it has.
func (s *Server) registerRope(m *message, out *core.Effects) {
	came(out, core.RegisterArrived, core.RopeState, m)
	id := uint64(m.r.Instance)
	if pos := s.ropes.find(id); pos >= 0 {
		s.noteRope(out, core.RegisterNoop, pos).Context = core.RopeState
		s.answerNil(out, m)
		return
	}
	if s.ropes.live() >= core.MaxInstances {
		s.refuse(out, m, core.FailQueueFull)
		return
	}
	pos := s.ropes.add(id)
	s.ropes.entries[pos] = rope{m.r.Instance, s.nextIncarnation()}
	s.noteRope(out, core.RopeAdded, pos)
	s.answerNil(out, m)
}

// unregisterRope drops blend state by the client's wish. Under its disputed
// number it is served only for an id that has some (PROTOCOL, section 0).
func (s *Server) unregisterRope(m *message, out *core.Effects) {
	pos := s.ropes.find(uint64(m.r.Instance))
	if pos < 0 && m.r.OldNumber {
		s.refuse(out, m, core.FailUnsupported)
		return
	}
	came(out, core.UnregisterCame, core.RopeState, m)
	if pos < 0 {
		s.nothingToDrop(out, core.RopeState, m)
		return
	}
	s.dropRope(out, pos, ropeByClient)
	s.answerNil(out, m)
}

// Who dropped rope state, as records say it.
const (
	ropeByClient = 0
	ropeByReaper = 1
	ropeByStop   = 2
)

func (s *Server) dropRope(out *core.Effects, pos int32, by uint64) {
	s.noteRope(out, core.RopeDropped, pos).A = by
	s.ropes.remove(pos)
}

func (s *Server) noteRope(out *core.Effects, kind core.RecordKind, pos int32) *core.Record {
	r := out.Record(kind)
	r.Context = core.RopeState
	r.Instance, r.Incarnation = s.ropes.entries[pos].instance, s.ropes.entries[pos].incarnation
	return r
}
