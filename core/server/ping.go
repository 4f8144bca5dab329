package server

import (
	"vigil/core"
	"vigil/core/wire"
)

// ping is PING: it refreshes and latches every entry of the id, in every
// registry that tracks liveness, inserts nothing, and always answers true
// (design document, sections 3 and 5.1). A prober's nil id refreshes nothing,
// and neither does the ping of a time before liveness.
func (s *Server) ping(now core.Time, m *message, out *core.Effects) {
	if s.cfg.Protections.StampOnArrival {
		s.touch(out, m, m.arrived)
	} else {
		s.touch(out, m, now)
	}
	r := s.blank()
	r.OK = true
	if !s.cfg.Legacy {
		s.verdict(&r.Ping, m)
	}
	s.answer(out, m)
}

// verdict says what a ping's answer says beyond "true": whether the id is
// registered, or about to be, and which life of the server this is. A client
// that knows of neither reads it as true.
func (s *Server) verdict(v *wire.PingVerdict, m *message) {
	if s.cfg.Protections.RegistrationAwarePing && !m.r.NoInstance {
		id := uint64(m.r.Instance)
		v.Aware = true
		v.Registered = s.contexts.find(id) >= 0 || s.engines.find(id) >= 0 || s.enrolments.find(id) >= 0
	}
	if s.cfg.Protections.BootToken {
		v.Boot = s.boot
	}
}

// touch is touch_instance on every liveness target. A ping that was taken in
// when it arrived is news to what was not there then only.
func (s *Server) touch(out *core.Effects, m *message, at core.Time) {
	if m.r.NoInstance { // a prober, or a ping of a time before liveness
		return
	}
	id := uint64(m.r.Instance)
	if pos := s.contexts.find(id); pos >= 0 {
		s.touchEntry(out, core.ServerDriven, &s.contexts.entries[pos], at, m.peer)
	}
	if pos := s.engines.find(id); pos >= 0 {
		s.touchEntry(out, core.EngineDriven, &s.engines.entries[pos], at, m.peer)
	}
}

// touchEntry refreshes and latches one entry. A stamp never moves back: where
// the ping arrived before something fresher, it only latches. With
// latch-needs-traffic an entry that never transferred keeps the long window:
// its worker may still be warming up, and stall in it.
func (s *Server) touchEntry(out *core.Effects, kind core.ContextKind, e *entry, at core.Time, peer core.Peer) {
	if at > e.lastSeen {
		stamp(out, kind, e, at, core.StampPing)
	}
	e.peer = peer
	if !e.latched && (e.transferred || !s.cfg.Protections.LatchNeedsTraffic) {
		e.latched = true
		note(out, core.Latched, kind, e, 0, 0)
	}
}

// stampArrival refreshes what a message is a sign of life for, at the time at
// which it was taken in: a ping may wait for a full pool, a transfer for its
// lane. A transfer still never latches.
func (s *Server) stampArrival(out *core.Effects, m *message) {
	switch m.r.Type {
	case wire.Ping:
		s.touch(out, m, m.arrived)
	case wire.Store, wire.Retrieve:
		if pos := s.contexts.find(uint64(m.r.Instance)); pos >= 0 {
			s.stampTransfer(out, core.ServerDriven, &s.contexts.entries[pos], m, m.arrived)
		}
	case wire.PrepareStore, wire.CommitStore, wire.PrepareRetrieve, wire.CommitRetrieve:
		if pos := s.engines.find(uint64(m.r.Instance)); pos >= 0 {
			s.stampTransfer(out, core.EngineDriven, &s.engines.entries[pos], m, m.arrived)
		}
	}
}

// stampTransfer refreshes the context of a transfer that is taken in or begins
// now. With stamp-on-arrival only the arrival counts: what a dead worker left
// in a queue is no sign of life when its turn comes.
func (s *Server) stampTransfer(out *core.Effects, kind core.ContextKind, e *entry, m *message, at core.Time) {
	if s.cfg.Protections.StampOnArrival {
		at = m.arrived
	}
	e.transferred, e.moved = true, max(e.moved, at)
	if at > e.lastSeen {
		stamp(out, kind, e, at, core.StampTransfer)
	}
}
