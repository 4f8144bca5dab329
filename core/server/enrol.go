package server

import "vigil/core"

// An enrolment is a REGISTER_KV_CACHE whose memory is being opened. Under the
// document there is at most one, and the main loop is held until it ended.
// With register-aside they run beside the main loop, at most core.MaxOpens at
// a time, one per instance (B15, B17).

type enrolment struct {
	entry     entry
	op        core.Op
	since     core.Time // the handler's entry: the document's stamp of the fresh context
	arrived   core.Time
	held      bool // the main loop waits for its end
	inserting bool // the open ended; the insert is a step of its own
	takenBack bool // an unregister came meanwhile: nobody wants it any more
	reply     replyTo
}

// register is REGISTER_KV_CACHE. Under the document a known id is a no-op that
// refreshes, whatever its content (PROTOCOL, section 4.7).
func (s *Server) register(now core.Time, m *message, out *core.Effects) {
	came(out, core.RegisterArrived, core.ServerDriven, m)
	s.enrol(now, m, out)
}

// enrol runs a register, or has it wait for its turn.
func (s *Server) enrol(now core.Time, m *message, out *core.Effects) {
	p := &s.cfg.Protections
	id := m.r.Instance
	if p.RegisterDeadline && now.Sub(m.arrived) > core.DefaultTimeout {
		s.refuse(out, m, core.FailDeadline) // its client has given up (B8)
		return
	}
	if s.enrolments.find(uint64(id)) >= 0 {
		s.park(out, m, &s.parked) // behind the one before it
		return
	}
	pos := s.contexts.find(uint64(id))
	if pos >= 0 && !p.ReplaceOtherMemory {
		s.refresh(now, core.ServerDriven, &s.contexts.entries[pos], m.peer, out)
		s.answerEnrolled(out, m)
		return
	}
	about := describeServerDriven(m.r, s.cfg.ChunkTokens)
	if pos >= 0 {
		if s.contexts.entries[pos].about.content == about.content {
			s.refresh(now, core.ServerDriven, &s.contexts.entries[pos], m.peer, out)
			s.answerEnrolled(out, m)
			return
		}
		e := s.popContext(out, pos, core.RemovedByReplace) // other memory: another incarnation (B9)
		s.beginRelease(now, &e, ByReplace, false, nil, out)
	}
	if p.OpenAfterRelease {
		waits, stuck := s.releasing(id, about)
		if waits {
			s.park(out, m, &s.parked)
			return
		}
		if stuck {
			s.refuse(out, m, core.FailReleasing)
			return
		}
	}
	if s.contexts.live()+s.enrolments.live() >= s.most(core.BoundInstances) {
		s.refuse(out, m, core.FailQueueFull)
		return
	}
	if s.enrolments.live() >= core.MaxOpens { // one at a time where the main loop is held
		s.park(out, m, &s.turn)
		return
	}
	s.open(now, m, about, out)
}

// answerEnrolled answers a register that had nothing to do.
func (s *Server) answerEnrolled(out *core.Effects, m *message) {
	r := s.blank()
	r.Nil, r.Window = true, s.window()
	s.answer(out, m)
}

// park has a register wait; the main loop waits with it unless registers run
// aside. What waits already is served before what does not fit.
func (s *Server) park(out *core.Effects, m *message, q *queue) {
	if q == &s.parked && int(q.length) >= s.most(core.BoundParked) {
		s.refuse(out, m, core.FailQueueFull)
		return
	}
	s.enqueue(out, q, m)
	if !s.cfg.Protections.RegisterAside {
		s.main.held = true
	}
}

// open begins to open what an instance exported.
func (s *Server) open(now core.Time, m *message, about *registration, out *core.Effects) {
	s.mappings++
	s.ops++
	pos := s.enrolments.add(uint64(m.r.Instance))
	e := &s.enrolments.entries[pos]
	reply := e.reply
	*e = enrolment{
		entry: entry{
			instance: m.r.Instance, incarnation: s.nextIncarnation(), mapping: s.mappings,
			lastSeen: now, about: about, peer: m.peer,
		},
		op: core.Op(s.ops<<20 | uint64(pos)), since: now, arrived: m.arrived, held: !s.cfg.Protections.RegisterAside, reply: reply,
	}
	if s.cfg.Protections.KeepBlocks {
		e.entry.fence, e.entry.came = m.r.UIDNumber, m.arrived
	}
	e.reply.set(m)
	if e.held {
		s.main.held = true
	}
	note(out, core.OpenBegan, core.ServerDriven, &e.entry, uint64(e.entry.mapping), uint64(e.op))
	out.Open(core.OpenOrder{
		Op: e.op, Mapping: e.entry.mapping, Owner: e.entry.instance, Incarnation: e.entry.incarnation,
		Exports: m.r.Exports, Groups: m.r.Groups,
	})
}

// enrolmentOf returns the enrolment of an operation, -1 where it is none of ours.
func (s *Server) enrolmentOf(op core.Op) int32 {
	pos := int32(op & (1<<20 - 1))
	if int(pos) >= len(s.enrolments.entries) || s.enrolments.entries[pos].op != op {
		return -1
	}
	return pos
}

// opened takes the end of the open that a register waits for.
func (s *Server) opened(now core.Time, in *core.Input, out *core.Effects) {
	pos := s.enrolmentOf(in.Op)
	if pos < 0 || s.enrolments.entries[pos].inserting {
		return
	}
	e := &s.enrolments.entries[pos]
	if in.Failure == core.NoFailure {
		e.entry.bytes = in.Bytes
	}
	note(out, core.OpenEnded, core.ServerDriven, &e.entry, uint64(e.entry.mapping), e.entry.bytes).Failure = in.Failure
	if in.Failure != core.NoFailure {
		s.refuseLater(out, &e.reply, &e.entry, in.Failure)
		s.enrolled(now, pos, out)
		return
	}
	e.inserting = true
	out.Arm(core.TimerKey{Kind: core.TimerMainStep, Slot: uint32(pos)}, now)
}

// insert inserts the context whose memory is open. The document's stamp is the
// time at which the handler began, before the slow build (PROTOCOL, section
// 4.2): a build longer than the window is stale when it is inserted (B17).
func (s *Server) insert(now core.Time, slot uint32, out *core.Effects) {
	pos := int32(slot)
	if uint64(slot) >= uint64(len(s.enrolments.entries)) || s.enrolments.entries[pos].op == 0 || !s.enrolments.entries[pos].inserting {
		return
	}
	n := &s.enrolments.entries[pos]
	p := &s.cfg.Protections
	switch {
	case n.takenBack:
		s.giveUp(now, n, core.FailStale, out)
	case p.RegisterDeadline && now.Sub(n.arrived) > core.DefaultTimeout:
		s.giveUp(now, n, core.FailDeadline, out)
	case p.RegisterAside && s.stop.stage != stopNot:
		s.giveUp(now, n, core.FailStopping, out)
	default:
		at := s.contexts.add(uint64(n.entry.instance))
		e := &s.contexts.entries[at]
		*e = n.entry
		seen := n.since
		if p.StampWhenReady {
			seen = now
		}
		note(out, core.ContextInserted, core.ServerDriven, e, uint64(e.mapping), e.bytes)
		stamp(out, core.ServerDriven, e, seen, core.StampRegister)
		s.layouts.acquire(out, core.ServerDriven, e)
		s.answerRelease(out, &n.reply, core.NoFailure)
	}
	s.enrolled(now, pos, out)
}

// giveUp closes again what was opened for nobody.
func (s *Server) giveUp(now core.Time, n *enrolment, why core.Failure, out *core.Effects) {
	s.refuseLater(out, &n.reply, &n.entry, why)
	s.beginRelease(now, &n.entry, ByReplace, false, nil, out)
}

// enrolled ends an enrolment and lets what waited for it go on.
func (s *Server) enrolled(now core.Time, pos int32, out *core.Effects) {
	s.enrolments.entries[pos].op = 0
	s.enrolments.remove(pos)
	s.settleParked(now, out)
}

// settleParked has the registers that wait look again: first those that waited
// for something of their own instance, then those that wait for a place. The
// main loop goes on once no register and no release holds it.
func (s *Server) settleParked(now core.Time, out *core.Effects) {
	for n := s.parked.length; n > 0; n-- {
		s.again(now, &s.parked, out)
	}
	for s.turn.length > 0 && s.enrolments.live() < core.MaxOpens {
		s.again(now, &s.turn, out)
	}
	if s.parked.length == 0 && s.enrolments.live() == 0 && !s.holdsForRelease() {
		s.main.held = false
	}
}

// holdsForRelease reports whether the main loop waits for a release.
func (s *Server) holdsForRelease() bool {
	for pos := s.releases.first(); pos >= 0; pos = s.releases.after(pos) {
		if r := &s.releases.entries[pos]; r.held && r.by == ByUnregister {
			return true
		}
	}
	return false
}

// again runs the register at the head of a queue once more; it may go back to
// the end of one.
func (s *Server) again(now core.Time, q *queue, out *core.Effects) {
	m := s.mail.open(q.pop(&s.mail))
	pos := m.letter
	if m.r.Failure != core.NoFailure { // taken back by an unregister
		s.refuse(out, &m, m.r.Failure)
	} else {
		s.enrol(now, &m, out)
	}
	s.sorted(pos, &m)
}

// takeBack takes back the registers of an id that are under way or wait: an
// unregister has overtaken them (B8).
func (s *Server) takeBack(id core.InstanceID, out *core.Effects) bool {
	found := false
	if pos := s.enrolments.find(uint64(id)); pos >= 0 {
		s.enrolments.entries[pos].takenBack, found = true, true
	}
	for _, q := range [...]*queue{&s.parked, &s.turn} {
		for at := q.head; at != 0; at = s.mail.letters[at-1].next {
			if r := &s.mail.letters[at-1].r; r.Instance == id && r.Failure == core.NoFailure {
				r.Failure, found = core.FailStale, true
			}
		}
	}
	return found
}

// takeBackFrom takes back the registers of a connection that are under way or
// wait: nobody is there to be answered. A client that lives registers again
// (B8).
func (s *Server) takeBackFrom(peer core.Peer) {
	for pos := s.enrolments.first(); pos >= 0; pos = s.enrolments.after(pos) {
		if n := &s.enrolments.entries[pos]; n.reply.peer == peer {
			n.takenBack = true
		}
	}
	for _, q := range [...]*queue{&s.parked, &s.turn} {
		for at := q.head; at != 0; at = s.mail.letters[at-1].next {
			if l := &s.mail.letters[at-1]; l.peer == peer {
				l.r.Failure = core.FailStale
			}
		}
	}
}
