package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"vigil/core"
	"vigil/faults"
	"vigil/scenarios"
	"vigil/scenarios/monitor"
	"vigil/sim"
	"vigil/sim/explore/exhaustive"
)

// ExhaustOptions bound an exhaustive search; what is 0 is no bound.
type ExhaustOptions struct {
	MaxStates uint64
	MaxDepth  int           // events of one path
	Deadline  time.Duration // of the wall clock
	// Tick is how coarse time is: what falls on one tick comes in every order.
	// 0 is DefaultTick.
	Tick time.Duration
	// FailFast stops at the first violation that the file does not declare.
	FailFast bool
	Progress func(ExhaustProgress)

	everyOrder, everyPath, nobodyAlike bool // for the tests of what is saved
	doubt                              func(w *sim.World, event int, was, is core.Digest)
	ended                              func(end core.Digest, violations []Violation)
}

// DefaultTick divides every window of the default settings.
const DefaultTick = 500 * time.Millisecond

// ExhaustProgress is how far a search is.
type ExhaustProgress struct {
	States, Transitions uint64
	Depth               int
	Took                time.Duration
}

// ExhaustReport is what an exhaustive search came to.
type ExhaustReport struct {
	States      uint64 // distinct states
	Transitions uint64 // events played
	Schedules   uint64 // paths to distinct ends of a run
	Merged      uint64 // paths that met a state that was known
	Skipped     uint64 // events left out because an equal order was tried
	Depth       int    // events of the longest path
	Complete    bool   // all of them, within Scope
	Reason      string // where not Complete: why
	Scope       string // what was decided and what left at the plainest, in one line
	Took        time.Duration
	// Violations are the distinct ones, each as first found; at most MaxExhaustFindings.
	Violations []Violation
	// Tape leads to the first violation that the file does not declare, else to
	// the first; nil where there is none. Player.PlayTape(s, 0,
	// sim.ChoicesFrom(Tape), nil) plays it again.
	Tape *sim.Tape
	// Tapes lead to each violation of the list.
	Tapes []*sim.Tape
}

// MaxExhaustFindings bounds the list of distinct violations.
const MaxExhaustFindings = 64

// Verdict is what the search came to in one word: a violation that the file
// does not declare, "unknown" where not all was covered, else a pass.
func (r *ExhaustReport) Verdict() Verdict {
	verdict := Pass
	if !r.Complete {
		verdict = Unknown
	}
	for i := range r.Violations {
		if v := &r.Violations[i]; !v.Declared {
			verdict = Gravest(verdict, v.Verdict)
		}
	}
	return verdict
}

// witness is the monitors, but for that of the log, and the file's expectations of one path.
type witness struct {
	monitors *monitor.Set
	judge    *Judge
	unfired  []int
	ended    core.Time
	panic    string
}

func (w *witness) Observe(r *core.Record) {
	w.monitors.Observe(r)
	w.judge.Observe(r)
}

func (w *witness) StepOver() { w.monitors.StepOver() }

func (w *witness) CopyFrom(other exhaustive.Witness) {
	o := other.(*witness)
	w.monitors.CopyFrom(o.monitors)
	w.judge.CopyFrom(o.judge)
	w.unfired, w.ended, w.panic = w.unfired[:0], o.ended, ""
}

func (w *witness) Fingerprint(naming *sim.Naming) core.Digest {
	d := w.monitors.Fingerprint(naming)
	d.Uint(uint64(w.judge.Fingerprint(naming)))
	return d
}

func (w *witness) Finish(r sim.Result) {
	w.monitors.Finish(r.End)
	w.judge.Finish(r.End)
	w.unfired, w.ended = append(w.unfired[:0], r.Unfired...), r.End
}

func (w *witness) Panicked(at core.Time, what string) { w.panic, w.ended = what, at }

func (w *witness) Found() int {
	n := w.monitors.Found() + len(w.judge.findings) + len(w.unfired)
	if w.panic != "" {
		n++
	}
	return n
}

// Exhaust tries every order of what can happen in a scenario under these
// protections; the design is the preset by which declared breaks and
// expectations are chosen. A scenario whose world is drawn cannot be searched,
// for it has no world of its own.
func Exhaust(s *scenarios.Scenario, design string, p core.Protections, o ExhaustOptions) (ExhaustReport, error) {
	if s.Random != "" {
		return ExhaustReport{}, fmt.Errorf("%s draws a world of its own in each run; an exhaustive search needs one world", s.ID)
	}
	for i := range s.Plan.Steps {
		if s.Plan.Steps[i].Do.Kind == sim.ActAsk {
			return ExhaustReport{}, fmt.Errorf("%s:%d: %s: a story in which raw clients ask cannot be searched exhaustively; their answers are no part of a state", s.File, s.Steps[i].Line, s.Words(i))
		}
	}
	if o.Tick == 0 {
		o.Tick = DefaultTick
	}
	if o.Tick < 0 || o.Tick > s.Plan.Until {
		return ExhaustReport{}, fmt.Errorf("a tick of %v does not fit a run of %v", o.Tick, s.Plan.Until)
	}
	plan := Compile(s, p)
	var r ExhaustReport
	undeclared := false
	x := &exhaustive.Search{
		Plan: plan, Grain: o.Tick, Alike: alike(s, design),
		Doubt: o.doubt, MaxStates: o.MaxStates, MaxDepth: o.MaxDepth, Deadline: o.Deadline,
		EveryOrder: o.everyOrder || ordersMatter(s, design), EveryPath: o.everyPath,
		Witness: func() exhaustive.Witness {
			return &witness{monitors: monitor.New(SetupOf(plan)), judge: NewJudge(s, design, p)}
		},
		Report: func(found exhaustive.Witness, tape func() *sim.Tape) bool {
			stop := false
			for _, v := range found.(*witness).violations(s, design) {
				if r.known(&v) || len(r.Violations) >= MaxExhaustFindings {
					continue
				}
				path := tape()
				r.Violations, r.Tapes = append(r.Violations, v), append(r.Tapes, path)
				if r.Tape == nil || !v.Declared && !undeclared {
					r.Tape = path
				}
				undeclared = undeclared || !v.Declared
				stop = stop || !v.Declared && o.FailFast
			}
			return stop
		},
	}
	if o.Progress != nil {
		x.Progress = func(c exhaustive.Cover) { o.Progress(ExhaustProgress{c.States, c.Transitions, c.Depth, c.Took}) }
	}
	if o.ended != nil {
		x.Ended = func(end core.Digest, w exhaustive.Witness) { o.ended(end, w.(*witness).violations(s, design)) }
	}
	if o.nobodyAlike {
		x.Alike = nil
	}
	c := x.Run()
	r.States, r.Transitions, r.Schedules, r.Merged, r.Skipped = c.States, c.Transitions, c.Schedules, c.Merged, c.Skipped
	r.Depth, r.Complete, r.Reason, r.Took = c.Depth, c.Complete, c.Reason, c.Took
	r.Scope = scope(o.Tick, len(x.Alike) > 0, x.EveryOrder)
	return r, nil
}

// violations is what the path broke so far.
func (w *witness) violations(s *scenarios.Scenario, design string) []Violation {
	if w.panic != "" {
		return []Violation{{Invariant: "panic", Verdict: Panicked, At: w.ended, Message: w.panic}}
	}
	return Found(s, design, 0, w.monitors.Violations(), w.judge, w.unfired, w.ended)
}

// known reports whether the list has a violation of the same kind: invariant,
// actors, and for what the file expects the line.
func (r *ExhaustReport) known(v *Violation) bool {
	for i := range r.Violations {
		o := &r.Violations[i]
		same := o.Message == v.Message || !strings.HasPrefix(v.Invariant, "expect ") && v.Invariant != "step"
		if o.Invariant == v.Invariant && same && slices.Equal(o.Actors, v.Actors) {
			return true
		}
	}
	return false
}

func scope(tick time.Duration, symmetric, everyOrder bool) string {
	saved := "of independent events one order"
	if everyOrder {
		saved = "independent events in both orders"
	}
	if symmetric {
		saved = "alike workers as one, independent events in both orders"
	}
	return fmt.Sprintf("every order of what falls on one tick of %v (each connection's in its own), every time of a range in ticks, every loss; %s; an engine's own traffic and entropy at their plainest", tick, saved)
}

// ordersMatter reports whether an expectation compares the order of records of
// several processes, which then are not independent.
func ordersMatter(s *scenarios.Scenario, design string) bool {
	for i := range s.Expect {
		e := &s.Expect[i]
		if e.Design != "" && e.Design != design {
			continue
		}
		switch e.Kind {
		case scenarios.ExpectOrder, scenarios.ExpectTook:
			return true
		case scenarios.ExpectHappened:
			if e.Since != nil {
				return true
			}
		case scenarios.ExpectHolds, scenarios.ExpectHealth:
			if e.At.When != nil {
				return true
			}
		}
	}
	return false
}

// alike groups the workers that nothing tells apart: they have the same plan
// but for their names, and no step, expectation or break names one of them.
func alike(s *scenarios.Scenario, design string) [][]int {
	named := make([]bool, len(s.Plan.Workers))
	name := func(w int) {
		if w >= 0 && w < len(named) {
			named[w] = true
		}
	}
	for i := range s.Plan.Steps {
		do := &s.Plan.Steps[i].Do
		if name(do.Worker); do.Kind == sim.ActFault {
			name(do.Fault.Worker)
		}
		if s.Plan.Steps[i].When != nil || do.Kind == sim.ActReallocate || do.Kind == sim.ActFault && do.Fault.Kind == faults.Restart {
			return nil // told apart by what happened, or by more than one memory
		}
	}
	for i := range s.Expect {
		e := &s.Expect[i]
		name(e.Who.Worker)
		name(e.Match.Who.Worker)
		name(e.By.Who.Worker)
		name(e.From.Who.Worker)
		if e.Since != nil {
			name(e.Since.Who.Worker)
		}
		if e.At.When != nil {
			name(e.At.When.Who.Worker)
		}
	}
	for i := range s.Breaks {
		for _, w := range s.Breaks[i].Actors {
			name(w)
		}
	}
	var groups [][]int
	for i := range s.Plan.Workers {
		if named[i] || s.Plan.Workers[i].PIDIdentity {
			continue
		}
		placed := false
		for g := range groups {
			if sameWorker(&s.Plan.Workers[groups[g][0]], &s.Plan.Workers[i]) {
				groups[g], placed = append(groups[g], i), true
				break
			}
		}
		if !placed {
			groups = append(groups, []int{i})
		}
	}
	return slices.DeleteFunc(groups, func(g []int) bool { return len(g) < 2 })
}

func sameWorker(a, b *sim.WorkerPlan) bool {
	x, y := *a, *b
	x.Name, y.Name, x.Pod, y.Pod = "", "", 0, 0
	return x == y // memory of several groups is one worker's own
}
