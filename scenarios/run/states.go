package run

import (
	"vigil/core"
	"vigil/scenarios"
	"vigil/sim"
	"vigil/sim/explore"
)

// Which states of an instance's life a run met, told from its records. A story
// that never brings an instance into the state that it is about shows nothing,
// however green it is; and a search is guided by the states that it has not
// met yet. The states themselves are scenarios.LifeState.

// tracked is one instance id as far as its states tell.
type tracked struct {
	id      core.InstanceID
	stamp   core.Time // the server's clock
	serving int8      // contexts that serve
	state   scenarios.LifeState
	had     bool // a context of it served before
	latched bool
}

// states follows the instances of one run. It belongs to one goroutine and
// allocates nothing at steady state.
type states struct {
	plan    *sim.Plan
	met     uint32 // set of scenarios.LifeState
	all     []tracked
	byID    map[core.InstanceID]int32
	last    int32   // the instance that the last record was about
	current []int32 // of each worker: its present id
	// Where a search is guided: which feature was met, and the fault that acts.
	features *explore.Features
	fault    uint32
	faultEnd core.Time
	struck   []core.Time // of each step: when it took hold, never where it did not
	came     []core.Time // of each step: its moment, whatever it found to strike
	offset   core.Time   // the world's time less the server's clock, as far as stamps tell
}

func (s *states) begin(plan *sim.Plan, features *explore.Features) {
	s.plan, s.features, s.met = plan, features, 0
	s.all, s.last, s.fault, s.faultEnd, s.offset = s.all[:0], -1, 0, 0, core.Never
	if s.byID == nil {
		s.byID = make(map[core.InstanceID]int32)
	}
	clear(s.byID)
	s.struck, s.came = s.struck[:0], s.came[:0]
	for range plan.Steps {
		s.struck, s.came = append(s.struck, never), append(s.came, never)
	}
	s.current = s.current[:0]
	for range plan.Workers {
		s.current = append(s.current, -1)
	}
}

// tellsState are the records that move an instance from state to state.
var tellsState = [256]bool{
	core.WorkerStarted: true, core.RegisterArrived: true, core.ContextInserted: true, core.ContextRemoved: true,
	core.Latched: true, core.Stamped: true, core.ScanBegan: true, core.ReapDecided: true,
	core.CloseBegan: true, core.CloseEnded: true, core.ReleaseStuck: true, core.MappingHung: true,
	core.ServerStarted: true, core.FaultStruck: true,
}

// noFeature are the records that are everywhere and say little.
var noFeature = [256]bool{core.MessageSent: true, core.MessageReached: true, core.MessageHandled: true}

// featureOf numbers a state, a kind of record, and a fault.
func featureOf(state scenarios.LifeState, kind core.RecordKind, fault uint32) uint32 {
	return (uint32(state)<<7|uint32(kind)&127)<<5 | fault&31
}

// Observe takes one record in.
func (s *states) Observe(r *core.Record) {
	if !tellsState[r.Kind] && (s.features == nil || noFeature[r.Kind]) {
		return
	}
	at := s.find(r)
	if tellsState[r.Kind] {
		at = s.move(r, at)
	}
	if s.features != nil && !noFeature[r.Kind] {
		state := scenarios.LifeStates // about no instance
		if at >= 0 {
			state = s.all[at].state
		}
		fault := s.fault
		if r.At > s.faultEnd {
			fault = 0
		}
		s.features.Add(featureOf(state, r.Kind, fault))
	}
}

// find returns the instance that a record is about, -1 for none.
func (s *states) find(r *core.Record) int32 {
	if r.Instance != 0 {
		if s.last >= 0 && s.all[s.last].id == r.Instance {
			return s.last
		}
		if at, ok := s.byID[r.Instance]; ok {
			s.last = at
			return at
		}
	}
	if r.Actor >= core.FirstWorker {
		if w := int(r.Actor - core.FirstWorker); w < len(s.current) {
			return s.current[w]
		}
	}
	return -1
}

func (s *states) to(at int32, state scenarios.LifeState) {
	s.all[at].state = state
	s.met |= 1 << state
}

// move takes a record that tells a state; it returns whom it is about.
func (s *states) move(r *core.Record, at int32) int32 {
	switch r.Kind {
	case core.WorkerStarted:
		if r.Instance == 0 {
			return -1
		}
		if at < 0 {
			at = int32(len(s.all))
			s.all = append(s.all, tracked{id: r.Instance})
			s.byID[r.Instance] = at
		}
		if w := int(r.Actor) - int(core.FirstWorker); w >= 0 && w < len(s.current) {
			s.current[w] = at
		}
		s.to(at, scenarios.NeverRegistered)
		return at
	case core.ServerStarted: // nothing is held by a server that has just begun
		s.offset = core.Never
		for i := range s.all {
			if t := &s.all[i]; t.serving > 0 || t.state >= scenarios.WarmingUp {
				t.serving, t.latched = 0, false
				s.to(int32(i), scenarios.Gone)
			}
		}
		return -1
	case core.ScanBegan:
		for i := range s.all {
			if t := &s.all[i]; t.serving > 0 && s.offset != core.Never && s.silent(t, r.At-s.offset) {
				s.met |= 1 << scenarios.SilentPastWindow
			}
		}
		return -1
	case core.FaultStruck:
		if r.A < uint64(len(s.came)) {
			if s.came[r.A] = r.At; r.Flag {
				s.struck[r.A] = r.At
			}
		}
		if step := int(r.A); step < len(s.plan.Steps) && s.plan.Steps[step].Do.Kind == sim.ActFault {
			f := &s.plan.Steps[step].Do.Fault
			s.fault, s.faultEnd = uint32(f.Kind), r.At.Add(f.For.High)
			if f.For.Zero() {
				s.faultEnd = core.Never
			}
		}
		return -1
	}
	if at < 0 {
		return at
	}
	t := &s.all[at]
	switch r.Kind {
	case core.RegisterArrived:
		if t.serving == 0 && r.Context != core.RopeState {
			s.to(at, scenarios.WarmingUp)
		}
	case core.ContextInserted:
		if t.had {
			s.met |= 1 << scenarios.ReRegistered
		}
		t.had, t.latched = true, false
		t.serving++
		t.stamp = 0
		s.to(at, scenarios.ServingNeverPinged)
	case core.Latched:
		t.latched = true
		s.to(at, scenarios.ServingPinged)
	case core.Stamped:
		if t.serving > 0 && core.StampCause(r.B) != core.StampRegister && s.silent(t, core.Time(r.A)) {
			s.met |= 1 << scenarios.SilentPastWindow
		}
		t.stamp = max(t.stamp, core.Time(r.A))
		s.offset = min(s.offset, r.At-core.Time(r.A))
	case core.ReapDecided:
		s.to(at, scenarios.SilentPastWindow)
	case core.ContextRemoved:
		t.serving = max(0, t.serving-1)
		if t.serving == 0 {
			s.to(at, scenarios.Gone)
		}
	case core.CloseBegan:
		if t.serving == 0 {
			s.to(at, scenarios.InRelease)
		}
		s.met |= 1 << scenarios.InRelease
	case core.ReleaseStuck, core.MappingHung:
		if t.serving == 0 {
			s.to(at, scenarios.Stuck)
		}
		s.met |= 1 << scenarios.Stuck
	case core.CloseEnded:
		if t.serving == 0 && r.Failure == core.NoFailure {
			s.to(at, scenarios.Gone)
		}
	}
	return at
}

// silent reports whether an instance was silent for longer than its window.
func (s *states) silent(t *tracked, now core.Time) bool {
	window := s.plan.Server.Grace
	if t.latched {
		window = s.plan.Server.Reap
	}
	return s.plan.Server.Reap > 0 && now.Sub(t.stamp) > window
}
