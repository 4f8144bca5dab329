package server

import (
	"time"

	"vigil/core"
)

// The reaper as data (design document, section 5.3; PROTOCOL, section 4.2).
// One cycle visits the targets in order. At each it collects what is stale and
// pops all of it in one step; then it cleans up one entry after the other; and
// after the last target it fans the ids out. Between those steps anything may
// happen: that is the gap between the document's threads.

type reaperState uint8

const (
	reaperIdle     reaperState = iota
	reaperTurning              // goes on to the next target in a step of its own
	reaperCleaning             // begins the next entry's cleanup in a step of its own
	reaperClosing              // waits for a close, however long that takes
	reaperFanning              // fans out in a step of its own
	reaperLooking              // has seen something stale and looks again before it decides
)

// The targets, in their order.
const (
	targetServerDriven = iota
	targetEngineDriven
	targets
)

type reaper struct {
	state  reaperState
	target uint8
	due    core.Time // of the next scan while idle, of the second look while looking
	looks  int8      // how often in a row a late look put the decision off
	at     int32     // entry of the batch whose cleanup is next or under way
	batch  []popped
	ids    []core.InstanceID // reaped in this cycle; an id of two registries twice
}

// popped is an entry out of its registry and not yet cleaned up.
type popped struct {
	entry  entry
	writes []core.Slot // engine-driven: the strategy's
	reads  []core.Slot
}

func (r *reaper) reset() {
	*r = reaper{batch: r.batch[:0], ids: r.ids[:0]}
}

// scan begins a cycle. Its timer is armed while the reaper is idle and the
// server serves, and never where nothing is reaped.
func (s *Server) scan(now core.Time, out *core.Effects) {
	out.Record(core.ScanBegan).A = uint64(s.TrackedInstances())
	s.reaper.target, s.reaper.ids, s.reaper.looks = 0, s.reaper.ids[:0], 0
	if s.cfg.Protections.LookBeforeReap && s.anyStale(now) {
		s.lookAgain(now, out)
		return
	}
	s.visitTargets(now, out)
}

// lookAgain puts the decision off by a moment. After a stall of the server the
// scan may well run before the pings that waited are read; by the second look
// they are (B3).
func (s *Server) lookAgain(now core.Time, out *core.Effects) {
	s.reaper.due = now.Add(s.pause())
	s.reaper.state = reaperLooking
	out.Arm(core.TimerKey{Kind: core.TimerReaperStep}, s.reaper.due)
}

// pause is the time from a look to the decision.
func (s *Server) pause() time.Duration { return min(core.LookAgain, s.cfg.Scan()/4) }

// lookedAgain decides, unless this look is late itself: then the server stalled
// once more, and once more there may be pings unread.
func (s *Server) lookedAgain(now core.Time, out *core.Effects) {
	if now.Sub(s.reaper.due) > s.pause() && s.reaper.looks < maxLooks {
		s.reaper.looks++
		s.lookAgain(now, out)
		return
	}
	s.visitTargets(now, out)
}

// anyStale reports whether a scan would reap something now.
func (s *Server) anyStale(now core.Time) bool {
	for _, from := range [...]*registry[entry]{&s.contexts, &s.engines} {
		for pos := from.first(); pos >= 0; pos = from.after(pos) {
			if _, stale := s.stale(now, &from.entries[pos]); stale {
				return true
			}
		}
	}
	return false
}

// stale judges one entry: strictly more than the window, which is the reap
// timeout once the entry has pinged, else the registration grace (design
// document, section 5.1). With transfer-keeps-alive a copy under way keeps its
// context alive, for as long as a client would wait for it.
func (s *Server) stale(now core.Time, e *entry) (window time.Duration, stale bool) {
	window = s.cfg.Grace
	if e.latched {
		window = s.cfg.Reap
	}
	stale = now.Sub(e.lastSeen) > window
	if stale && s.cfg.Protections.TransferKeepsAlive {
		stale = !s.copying(e.mapping, now.Add(-core.DefaultTimeout))
	}
	return window, stale
}

// reaperStep is the reaper's next step.
func (s *Server) reaperStep(now core.Time, out *core.Effects) {
	switch s.reaper.state {
	case reaperTurning:
		s.visitTargets(now, out)
	case reaperCleaning:
		s.cleanUp(now, out)
	case reaperFanning:
		s.fanOut(now, out)
	case reaperLooking:
		s.lookedAgain(now, out)
	}
}

// stepLater makes what follows a step of its own.
func (s *Server) stepLater(now core.Time, state reaperState, out *core.Effects) {
	s.reaper.state = state
	out.Arm(core.TimerKey{Kind: core.TimerReaperStep}, now)
}

// visitTargets goes on to the next target that has something stale, and past
// the last one to the fan-out. The time is read once per target.
func (s *Server) visitTargets(now core.Time, out *core.Effects) {
	r := &s.reaper
	for ; r.target < targets; r.target++ {
		r.batch, r.at = r.batch[:0], 0
		if r.target == targetServerDriven {
			s.collect(now, core.ServerDriven, &s.contexts, out)
		} else {
			s.collect(now, core.EngineDriven, &s.engines, out)
		}
		if len(r.batch) > 0 {
			s.stepLater(now, reaperCleaning, out)
			return
		}
	}
	if len(r.ids) > 0 && !s.cfg.Protections.MirrorWithContext {
		s.stepLater(now, reaperFanning, out)
		return
	}
	s.endScan(now, out)
}

// collect pops everything stale of one registry.
func (s *Server) collect(now core.Time, kind core.ContextKind, from *registry[entry], out *core.Effects) {
	for pos := from.first(); pos >= 0; {
		next := from.after(pos)
		if window, stale := s.stale(now, &from.entries[pos]); stale {
			s.reap(kind, pos, uint64(window), out)
		}
		pos = next
	}
}

// reap pops one stale entry into the batch.
func (s *Server) reap(kind core.ContextKind, pos int32, window uint64, out *core.Effects) {
	r := &s.reaper
	r.batch = extended(r.batch)
	p := &r.batch[len(r.batch)-1]
	if kind == core.ServerDriven {
		s.decide(kind, &s.contexts.entries[pos], window, out)
		p.entry = s.popContext(out, pos, core.RemovedByReaper)
	} else {
		s.decide(kind, &s.engines.entries[pos], window, out)
		e, half := s.popPair(out, pos, core.RemovedByReaper)
		if s.cfg.Protections.MirrorWithContext {
			s.dropMirror(out, e.instance, ropeByReaper)
		}
		p.entry = e
		p.writes, p.reads = append(p.writes[:0], half.writes...), append(p.reads[:0], half.reads...)
	}
	r.ids = append(r.ids, p.entry.instance)
}

// decide records the decision and counts it.
func (s *Server) decide(kind core.ContextKind, e *entry, window uint64, out *core.Effects) {
	note(out, core.ReapDecided, kind, e, uint64(e.lastSeen), window).Flag = e.latched
	s.countReap(e.instance)
}

// cleanUp begins the cleanup of one popped entry, the same as that of a client
// unregister. A close that never returns holds the reaper for good, and with
// it every later entry and scan: the document's hole (B2).
func (s *Server) cleanUp(now core.Time, out *core.Effects) {
	r := &s.reaper
	p := &r.batch[r.at]
	if r.target == targetServerDriven {
		e := p.entry
		independent := s.cfg.Protections.IndependentReleases
		r.at++ // from here on the release has it
		r.state = reaperClosing
		s.beginRelease(now, &e, ByReaper, !independent, nil, out)
		if independent {
			s.cleanedUp(now, out)
		}
		return
	}
	r.at++
	s.releaseEngine(out, &p.entry, &strategy{writes: p.writes, reads: p.reads})
	s.cleanedUp(now, out)
}

// cleanedUp goes on to the next entry of the batch or to the next target.
func (s *Server) cleanedUp(now core.Time, out *core.Effects) {
	r := &s.reaper
	if int(r.at) < len(r.batch) {
		s.stepLater(now, reaperCleaning, out)
		return
	}
	r.target++
	s.stepLater(now, reaperTurning, out)
}

// reaperReleased takes the end of the close that the reaper waits for. One
// that fails ends the cycle as an exception does: the rest of the batch is
// released by nobody, no later target is visited, nothing is fanned out, and
// the next scan comes as ever (PROTOCOL, section 4.2; B18).
func (s *Server) reaperReleased(now core.Time, why core.Failure, out *core.Effects) {
	r := &s.reaper
	if why == core.NoFailure {
		s.cleanedUp(now, out)
		return
	}
	for i := int(r.at); i < len(r.batch); i++ {
		s.lost.add(&r.batch[i].entry)
	}
	r.batch, r.at = r.batch[:0], 0
	out.Record(core.ServerWarned).Failure = why
	s.endScan(now, out)
}

// fanOut is drop_instance_state on every target for every reaped id. It asks
// neither whether a context of that id lives again (B5) nor whether it was the
// id's other context that was reaped (B19).
func (s *Server) fanOut(now core.Time, out *core.Effects) {
	for _, id := range s.reaper.ids {
		out.Record(core.DropFannedOut).Instance = id
		if pos := s.ropes.find(uint64(id)); pos >= 0 {
			s.dropRope(out, pos, ropeByReaper)
		}
	}
	s.endScan(now, out)
}

// endScan ends the cycle; the next one is due a fixed time after this end.
func (s *Server) endScan(now core.Time, out *core.Effects) {
	r := &s.reaper
	out.Record(core.ScanEnded).A = uint64(len(r.ids))
	r.state, r.ids = reaperIdle, r.ids[:0]
	if s.stop.stage == stopNot {
		r.due = now.Add(s.cfg.Scan())
		if s.cfg.Protections.LookBeforeReap {
			r.due = r.due.Add(-s.pause()) // so that a decision is never later than the document's
		}
		out.Arm(core.TimerKey{Kind: core.TimerScan}, r.due)
	}
}

// reapCount is how often an id was reaped.
type reapCount struct {
	instance core.InstanceID
	times    uint64
}

func (s *Server) countReap(id core.InstanceID) {
	pos := s.reaped.find(uint64(id))
	if pos < 0 {
		if s.reaped.live() >= maxReapCounts {
			s.reaped.remove(s.reaped.first())
		}
		pos = s.reaped.add(uint64(id))
		s.reaped.entries[pos] = reapCount{instance: id}
	}
	s.reaped.entries[pos].times++
}

func (s *Server) timesReaped(id core.InstanceID) uint64 {
	pos := s.reaped.find(uint64(id))
	if pos < 0 {
		return 0
	}
	return s.reaped.entries[pos].times
}
