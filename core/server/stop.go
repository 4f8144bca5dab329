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
	op    core.Op
	since core.Time // when the close that it waits for began
	due   core.Time // when the wait is given up
	entry entry     // being closed
	open  bool      // entry is held
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
	if s.main.state == mainIdle && s.reaper.state == reaperIdle {
		s.closeNext(now, out)
	}
}

// closeNext closes the next server-driven context, or ends the shutdown.
func (s *Server) closeNext(now core.Time, out *core.Effects) {
	t := &s.stop
	pos := s.contexts.first()
	if pos < 0 {
		s.finishStop(out)
		return
	}
	s.ops++
	t.stage, t.op, t.since, t.entry, t.open = stopClosing, core.Op(s.ops<<20), now, s.contexts.entries[pos], true
	s.contexts.remove(pos)
	s.removed(out, core.ServerDriven, &t.entry, core.RemovedByStop)
	beginClose(out, &t.entry, t.op)
	s.bound(now, out)
}

// stopReleased takes the end of the close that the shutdown waits for; one
// that fails is counted as held, and the next one is closed.
func (s *Server) stopReleased(now core.Time, in *core.Input, out *core.Effects) {
	t := &s.stop
	s.endClose(out, &t.entry, in.Failure)
	if in.Failure != core.NoFailure {
		s.lost.add(&t.entry)
	}
	t.open = false
	s.closeNext(now, out)
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
		s.popPair(out, pos, core.RemovedByStop)
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
	if s.main.state != mainIdle {
		h.add(&s.main.entry)
	}
	if s.reaper.target == targetServerDriven {
		for i := int(s.reaper.at); i < len(s.reaper.batch); i++ {
			h.add(&s.reaper.batch[i].entry)
		}
	}
	if s.stop.open {
		h.add(&s.stop.entry)
	}
	return h
}
