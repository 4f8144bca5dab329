package server

import (
	"time"

	"vigil/core"
)

// Registering and unregistering: the SYNC handlers. The two of server-driven
// contexts wait for the device. Under the document they hold the main loop
// meanwhile; what runs aside instead is in enrol.go and release.go.

// mainLoop is the one slot of the SYNC requests: held while a handler waits.
type mainLoop struct{ held bool }

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

// window is what the answer to a register says of the window (agreed-window);
// 0, which is nothing, where nothing is reaped.
func (s *Server) window() time.Duration {
	if !s.cfg.Protections.AgreedWindow {
		return 0
	}
	return s.cfg.Reap
}

// refresh is the no-op register of an id that is present.
func (s *Server) refresh(now core.Time, kind core.ContextKind, e *entry, peer core.Peer, out *core.Effects) {
	e.peer = peer
	note(out, core.RegisterNoop, kind, e, 0, 0)
	stamp(out, kind, e, now, core.StampNoop)
}

// unregister is UNREGISTER_KV_CACHE: the same pop and cleanup as a reap, with
// the main loop held until the close returns. An unknown id is an ordinary
// success (PROTOCOL, section 4.8).
func (s *Server) unregister(now core.Time, m *message, out *core.Effects) {
	came(out, core.UnregisterCame, core.ServerDriven, m)
	tookBack := s.cfg.Protections.RegisterDeadline && s.takeBack(m.r.Instance, out)
	pos := s.contexts.find(uint64(m.r.Instance))
	if pos < 0 {
		if tookBack {
			s.answerNil(out, m)
		} else {
			s.nothingToDrop(out, core.ServerDriven, m)
		}
		return
	}
	e := s.popContext(out, pos, core.RemovedByClient)
	s.main.held = !s.cfg.Protections.IndependentReleases
	s.beginRelease(now, &e, ByUnregister, s.main.held, m, out)
}

// popContext takes a server-driven context out of its registry, and with
// mirror-with-context the blend state that mirrors it in the same step.
func (s *Server) popContext(out *core.Effects, pos int32, cause core.RemovalCause) entry {
	e := s.contexts.entries[pos]
	s.contexts.remove(pos)
	s.removed(out, core.ServerDriven, &e, cause)
	if s.cfg.Protections.MirrorWithContext {
		by := uint64(ropeByClient)
		if cause == core.RemovedByReaper || cause == core.RemovedByProof {
			by = ropeByReaper
		}
		s.dropMirror(out, e.instance, by)
	}
	return e
}

// dropMirror drops the blend state of an id that has no server-driven context.
func (s *Server) dropMirror(out *core.Effects, id core.InstanceID, by uint64) {
	if s.contexts.find(uint64(id)) >= 0 {
		return
	}
	if pos := s.ropes.find(uint64(id)); pos >= 0 {
		s.dropRope(out, pos, by)
	}
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

// registerRope keeps blend state. A known id keeps what it has.
func (s *Server) registerRope(m *message, out *core.Effects) {
	came(out, core.RegisterArrived, core.RopeState, m)
	id := uint64(m.r.Instance)
	if pos := s.ropes.find(id); pos >= 0 {
		s.noteRope(out, core.RegisterNoop, pos).Context = core.RopeState
		s.answerNil(out, m)
		return
	}
	if s.cfg.Protections.MirrorWithContext && s.contexts.find(id) < 0 && s.engines.find(id) < 0 {
		s.refuse(out, m, core.FailNotRegistered) // nothing that it could mirror, or go with
		return
	}
	if s.ropes.live() >= s.most(core.BoundInstances) {
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
