package real

import (
	"fmt"
	"time"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/monitor"
	"vigil/scenarios/run"
	"vigil/sim"
)

// What real processes are given beyond what the simulator's worlds are: the
// host's scheduler, a process that takes its time to start, a log that is
// written a moment later. All in real time.
const (
	// StepSlack is added to every honest time of one operation: an open, a
	// close, a copy, a message one way.
	StepSlack = 100 * time.Millisecond
	// HandoverSlack is what a message may take from the proxy's hand into the
	// server: two threads have to wake for it.
	HandoverSlack = 5 * time.Millisecond
	// WindowSlack is added to the end of every window in which something is
	// expected: what is due within window + window/4 by the settings may come
	// a second later by the clock on the wall.
	WindowSlack = time.Second
)

// loosened is the scenario with its windows as wide as real time asks for. The
// beginnings of windows stay: nothing may come too early.
func loosened(s *scenarios.Scenario, scale int) *scenarios.Scenario {
	out := *s
	out.Expect = append([]scenarios.Expectation(nil), s.Expect...)
	for i := range out.Expect {
		e := &out.Expect[i]
		if e.HasWithin && e.Within.High < 1<<60 {
			e.Within.High += WindowSlack * time.Duration(scale)
		}
	}
	return &out
}

// unseen are the records that nobody writes of real processes.
var unseen = map[core.RecordKind]bool{
	core.MessageSent: true, core.MessageLost: true, core.MessageHandled: true, core.MappingHung: true,
	core.MappingReopened: true, core.MappingClosedTwice: true, core.MappingUnknown: true, core.CopyTouchedGone: true,
	core.CopyMisfit: true, core.ParcelLeft: true, core.TimerInVain: true, core.AnswerCame: true, core.EngineWarned: true,
}

// decidable splits the expectations: those that real processes can show, and a
// line for each of the others.
func decidable(s *scenarios.Scenario, design string) (kept []scenarios.Expectation, left []string) {
	for _, e := range s.Expect {
		kind := core.RecordNone
		for _, m := range []*scenarios.Match{&e.Match, &e.From, &e.By, e.Since, e.At.When} {
			if m != nil && unseen[m.Record] {
				kind = m.Record
			}
		}
		if kind == core.RecordNone {
			kept = append(kept, e)
		} else if e.Design == "" || e.Design == design {
			left = append(left, fmt.Sprintf("%s:%d: expect %s: nobody sees a %s of real processes", s.File, e.Line, e.Kind, kind))
		}
	}
	return kept, left
}

// setupOf is what the monitors are told of a real run.
func setupOf(plan *sim.Plan, scale int) monitor.Setup {
	m := run.SetupOf(plan)
	slack := StepSlack * time.Duration(scale)
	m.OpenBound += slack
	m.ReleaseBound += slack
	m.CopyBound += slack
	m.NetworkBound += slack
	m.Handover = HandoverSlack * time.Duration(scale)
	m.Real = true
	return m
}

// verdict is what the records of a run come to.
type verdict struct {
	violations []run.Violation
	undecided  []monitor.Undecided
	notes      []string
}

// judge shows the records to the monitors and to the expectations.
func (p *play) judge(records []core.Record, end core.Time) verdict {
	var v verdict
	s := loosened(p.scenario, p.options.Scale)
	s.Expect, v.notes = decidable(s, p.options.Design)
	monitors := monitor.New(setupOf(p.plan, p.options.Scale))
	judge := run.NewJudge(s, p.options.Design, p.options.Protections)
	for i := range records {
		monitors.Observe(&records[i])
		judge.Observe(&records[i])
	}
	monitors.Finish(end)
	judge.Finish(end)
	v.undecided = p.undecided(monitors.Undecided())
	unfired := []int(nil)
	for i, struck := range p.struck {
		if !struck {
			unfired = append(unfired, i)
		}
	}
	v.violations = run.Found(s, p.options.Design, p.seed, monitors.Violations(), judge, unfired, end)
	for i := range s.Breaks {
		if b := &s.Breaks[i]; b.Design == p.options.Design {
			v.declared(s, b, p.seed, end)
		}
	}
	return v
}

// undecided leaves out what is missing only because nothing was ever mapped:
// /proc was looked at all the same, and nothing is what it showed.
func (p *play) undecided(list []monitor.Undecided) (kept []monitor.Undecided) {
	looked := false
	for _, s := range p.servers {
		looked = looked || len(s.looks) > 0
	}
	for _, u := range list {
		switch u.Invariant {
		case "RECLAIM", "ISOLATE", "NO-UAF", "ONCE", "VISIBLE":
			if looked {
				continue
			}
		}
		kept = append(kept, u)
	}
	return kept
}

// declared sees that a declared break came.
func (v *verdict) declared(s *scenarios.Scenario, b *scenarios.Break, seed uint64, end core.Time) {
	for i := range v.violations {
		if v.violations[i].Declared && v.violations[i].Invariant == b.Invariant {
			return
		}
	}
	for _, u := range v.undecided {
		if u.Invariant == b.Invariant {
			v.notes = append(v.notes, fmt.Sprintf("%s:%d: the declared break of %s cannot be seen: %s", s.File, b.Line, b.Invariant, u.Reason))
			return
		}
	}
	if !b.All {
		v.notes = append(v.notes, fmt.Sprintf("%s:%d: %s is declared to break in some runs and did not in this one", s.File, b.Line, b.Invariant))
		return
	}
	v.violations = append(v.violations, run.Violation{
		Seed: seed, Invariant: "break", Verdict: run.Missed, At: end,
		Message: fmt.Sprintf("%s:%d: %s is declared to break in every run of %s and did not", s.File, b.Line, b.Invariant, b.Design),
	})
}
