package server

import "vigil/core"

// The shutdown (PROTOCOL, section 3, and the end of the design document's
// section 5.3): no new work; the main loop ends what it is doing and the
// reaper is stopped, before anything is cleared; then the server-driven
// contexts are closed one after the other, then the engine-driven ones and the
// blend state are simply forgotten. Running copies are not waited for, and
// their replies are lost.

type stopStage uint8

const (
	stopNot     stopStage = iota
	stopWaiting           // for the main loop and the reaper
	stopClosing           // a context of ours
	stopDone
)

type shutdown struct {
	stage stopStage
	due   core.Time // when the wait is given up
}

// beginStop begins the shutdown; a second one changes nothing.
func (s *Server) beginStop(now core.Time, out *core.Effects) {
	if s.stop.stage != stopNot {
		return
	}
	out.Record(core.ServerStopping)
	s.stop.stage = stopWaiting
	out.Disarm(core.TimerKey{Kind: core.TimerScan})
	s.bound(now, out)
	s.refuseAll(out, &s.inbox)
	s.refuseAll(out, &s.parked)
	s.refuseAll(out, &s.turn)
	if s.enrolments.live() == 0 && !s.holdsForRelease() {
		s.main.held = false // it was held for a register that waited and now does not
	}
	s.refuseAll(out, &s.normal)
	for i := range s.lanes {
		s.refuseAll(out, &s.lanes[i].waiting)
	}
	for pos := s.jobs.waiting.first(); pos >= 0; pos = s.jobs.waiting.first() {
		out.Disarm(core.TimerKey{Kind: core.TimerJob, Slot: uint32(pos)})
		j := &s.jobs.jobs[pos]
		r := out.Record(core.Refused)
		r.A, r.B, r.Failure = uint64(j.kind), uint64(j.peer), core.FailStopping
		s.jobs.waiting.cut(pos)
		s.endJob(pos)
		s.normalBusy--
	}
}

// refuseAll ends what waits in a queue.
func (s *Server) refuseAll(out *core.Effects, q *queue) {
	for pos := q.pop(&s.mail); pos >= 0; pos = q.pop(&s.mail) {
		m := s.mail.open(pos)
		s.refuse(out, &m, core.FailStopping)
		s.mail.discard(pos)
	}
}

// bound starts the bound on the wait that begins now, once per thing waited
// for: a server with many contexts may take long, one that hangs may not.
func (s *Server) bound(now core.Time, out *core.Effects) {
	s.stop.due = now.Add(core.JoinBound)
	out.Arm(core.TimerKey{Kind: core.TimerDrain}, s.stop.due)
}

// maybeClose goes on once nobody else is at the contexts.
func (s *Server) maybeClose(now core.Time, out *core.Effects) {
	if !s.main.held && s.enrolments.live() == 0 && (s.reaper.state == reaperIdle || s.reaper.state == reaperLooking) {
		out.Disarm(core.TimerKey{Kind: core.TimerReaperStep}) // of a second look
		s.closeNext(now, out)
	}
}

// closeNext closes the next server-driven context, or ends the shutdown. With
// independent-releases all are closed at once.
func (s *Server) closeNext(now core.Time, out *core.Effects) {
	s.stop.stage = stopClosing
	for pos := s.contexts.first(); pos >= 0; pos = s.contexts.first() {
		e := s.popContext(out, pos, core.RemovedByStop)
		independent := s.cfg.Protections.IndependentReleases
		s.beginRelease(now, &e, ByShutdown, !independent, nil, out)
		s.bound(now, out)
		if !independent {
			return
		}
	}
	if !s.cfg.Protections.OrderlyStop && !s.cfg.Protections.IndependentReleases || s.releases.live() == 0 {
		s.finishStop(out)
	}
}

// drained gives a wait up. A reaper or a main loop that hangs is left behind,
// as a join with a bound leaves a thread behind; a close of ours that hangs
// ends the shutdown, for the next one would hang as well.
func (s *Server) drained(now core.Time, out *core.Effects) {
	switch s.stop.stage {
	case stopWaiting:
		out.Record(core.ServerWarned).Failure = core.FailDeadline
		s.closeNext(now, out)
	case stopClosing:
		out.Record(core.ServerWarned).Failure = core.FailDeadline
		s.finishStop(out)
	}
}

// finishStop clears what is left and leaves. Clearing the engine-driven dicts
// returns neither their layout shares nor their pending slots: the document's
// gap (PROTOCOL, section 4.3; A17).
func (s *Server) finishStop(out *core.Effects) {
	out.Disarm(core.TimerKey{Kind: core.TimerDrain})
	for pos := s.engines.first(); pos >= 0; pos = s.engines.first() {
		e, half := s.popPair(out, pos, core.RemovedByStop)
		if s.cfg.Protections.OrderlyStop {
			s.releaseEngine(out, &e, &half)
		}
	}
	for pos := s.ropes.first(); pos >= 0; pos = s.ropes.first() {
		s.dropRope(out, pos, ropeByStop)
	}
	left := s.stillHeld()
	s.stop.stage = stopDone
	r := out.Record(core.ServerStopped)
	r.A, r.B = uint64(left.contexts), left.bytes
	if left.contexts > 0 {
		out.Leave(core.ExitBounded)
	} else {
		out.Leave(core.ExitOrderly)
	}
}

// stillHeld is what the server has open, serving or not, but for what it
// serves from its registries at an ordinary time: at the end of a shutdown, it
// is what is being left to the operating system.
func (s *Server) stillHeld() held {
	h := s.lost
	for pos := s.contexts.first(); pos >= 0; pos = s.contexts.after(pos) {
		h.add(&s.contexts.entries[pos])
	}
	for pos := s.enrolments.first(); pos >= 0; pos = s.enrolments.after(pos) {
		h.add(&s.enrolments.entries[pos].entry)
	}
	if s.reaper.target == targetServerDriven {
		for i := int(s.reaper.at); i < len(s.reaper.batch); i++ {
			h.add(&s.reaper.batch[i].entry)
		}
	}
	for pos := s.releases.first(); pos >= 0; pos = s.releases.after(pos) {
		h.add(&s.releases.entries[pos].entry)
	}
	return h
}
