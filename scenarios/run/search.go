package run

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"vigil/core"
	"vigil/scenarios"
	"vigil/sim"
	"vigil/sim/explore"
)

// SearchOptions say how a scenario's runs are searched.
type SearchOptions struct {
	Design      string
	Protections core.Protections
	Strategy    explore.Strategy
	Runs        uint64        // at most, of all shards; 0 where the time is the bound
	For         time.Duration // 0 where the runs are the bound
	Jobs        int
	Stop        bool // at the first finding
	// Shard and Shards as explore.Options has them.
	Shard, Shards uint64
	Keep          int // findings kept of each invariant, the lowest runs; 0 is 4
	Progress      func(explore.Progress)
}

// Finding is a run that broke something that its scenario does not declare.
type Finding struct {
	Run        uint64
	Violations []Violation // what is not declared
	Hash       core.Digest
	Tape       *sim.Tape // every decision
	Result     Run
}

// Campaign is what a search came to.
type Campaign struct {
	explore.Report
	Verdict  Verdict // the gravest of what was found
	Events   uint64
	Sim      core.Time
	Wall     time.Duration
	Tally    Tally
	Told     uint64 // runs in which the story of the file took place, so that what it expects was owed
	Coverage Coverage
	Findings []Finding
	Broke    map[string]uint64 // runs that broke each invariant
	First    map[string]uint64 // the first of them, from 0
	Counts   *Counts           // of what the runs had, and which failed

	// Missed is what some run must show and none did: what the file covers, and
	// its story. Nil where too few were played to tell, and in a shard.
	Missed []Violation

	again []Finding // the first runs, which are played twice
}

// playedTwice is how many of the first runs are played once more: the same
// decisions must give the same run, or no other word of the search counts.
const playedTwice = 4

// looksFor reports whether a violation is what a search looks for. That a step
// found nothing to strike is not: the tape chose its moment. Nor is what the
// file expects, in a run that did not tell its story.
func looksFor(v *Violation, told bool) bool {
	return !v.Declared && v.Invariant != "step" && (told || !expectation(v))
}

// searched is what a trial hands to the fold beside the outcome.
type searched struct {
	run     Run
	told    bool
	factors factorSet
}

// Search plays a scenario by the tapes of a strategy.
func Search(ctx context.Context, s *scenarios.Scenario, o SearchOptions) (*Campaign, error) {
	if !slices.Contains(scenarios.Designs, o.Design) {
		return nil, fmt.Errorf("design must be one of %v; got %q", scenarios.Designs, o.Design)
	}
	if o.Keep == 0 {
		o.Keep = 4
	}
	c := &Campaign{Verdict: Pass, Broke: map[string]uint64{}, First: map[string]uint64{}, Counts: newCounts(s)}
	began := time.Now()
	seed := seedOf(o.Strategy)
	job := func() explore.Trial[searched] {
		p := NewPlayer(o.Design, o.Protections)
		return func(run uint64, tape *sim.Choices, out *explore.Outcome, more *searched) {
			p.features = &out.Features
			more.run = p.PlayTape(s, seed(run), tape, nil)
			more.told = told(s, p.planOf(s), more.run.Unfired, p.states.came)
			more.run.Violations = slices.DeleteFunc(more.run.Violations, func(v Violation) bool { return !looksFor(&v, more.told) })
			out.Hash, out.Found = more.run.Hash, len(more.run.Violations) > 0
			more.factors = factorsOf(s, p.planOf(s), more.run.Unfired, p.states.struck)
		}
	}
	c.Report = explore.Search(ctx, o.Strategy, explore.Options{
		Runs: o.Runs, For: o.For, Jobs: o.Jobs, Stop: o.Stop, Shard: o.Shard, Shards: o.Shards, Progress: o.Progress,
	}, job, func(run uint64, out *explore.Outcome, more *searched) {
		r := &more.run
		if len(c.again) < playedTwice {
			c.again = append(c.again, Finding{Run: run, Hash: r.Hash, Tape: out.Tape, Result: *r})
		}
		c.Events += r.Events
		c.Sim += r.End
		c.Tally.Add(&r.Met)
		if more.told {
			c.Told++
		}
		c.Counts.add(&more.factors, r.Violations)
		if len(r.Violations) == 0 {
			return
		}
		wanted := false
		for i := range r.Violations {
			v := &r.Violations[i]
			c.Verdict = Gravest(c.Verdict, v.Verdict)
			if !repeated(r.Violations[:i], v.Invariant) {
				if c.Broke[v.Invariant]++; c.Broke[v.Invariant] == 1 {
					c.First[v.Invariant] = run
				}
				wanted = wanted || c.Broke[v.Invariant] <= uint64(o.Keep)
			}
		}
		if wanted {
			c.Findings = append(c.Findings, Finding{Run: run, Violations: r.Violations, Hash: r.Hash, Tape: out.Tape, Result: *r})
		}
	})
	c.Wall = time.Since(began)
	c.record(s, o)
	c.Coverage = c.coverage(s, &o)
	if c.Whole && c.Runs >= enoughRuns && o.Shards <= 1 {
		c.missed(s, &o)
		c.untold(s)
	}
	return c, nil
}

// seedOf says by which seed simrun run would play a run of a strategy; where
// none would, it is the run's number, for reports.
func seedOf(strategy explore.Strategy) func(run uint64) uint64 {
	first := uint64(0)
	if r, ok := strategy.(*explore.Random); ok {
		first = r.First
	}
	return func(run uint64) uint64 { return first + run }
}

// enoughRuns is how many runs a search has to play before what it never met
// counts: a strategy may keep to a corner for a while.
const enoughRuns = 100

// missed says which faults and states the file covers that no run met. A search
// in which nobody is ever served finds nothing, and shows nothing.
func (c *Campaign) missed(s *scenarios.Scenario, o *SearchOptions) {
	for _, cover := range s.CoversOf(o.Design, o.Protections) {
		met := 1
		switch cover.Kind {
		case scenarios.CoverFault:
			met = c.Tally.Faults[cover.Number]
		case scenarios.CoverState:
			met = c.Tally.States[cover.Number]
		}
		if met > 0 {
			continue
		}
		c.miss("covers", fmt.Sprintf("%s:%d: the file covers the %s %s, and none of %d runs met it", s.File, cover.Line, cover.Kind, cover.Name, c.Runs))
	}
}

// miss says what some run must show and none did.
func (c *Campaign) miss(what, message string) {
	c.Verdict = Gravest(c.Verdict, Missed)
	if c.Broke[what]++; c.Broke[what] == 1 {
		c.First[what] = c.Runs - 1
	}
	c.Missed = append(c.Missed, Violation{Invariant: what, Verdict: Missed, Message: message})
}

// planOf is the plan of the scenario's last run.
func (p *Player) planOf(s *scenarios.Scenario) *sim.Plan {
	if st := p.stages[s]; st != nil {
		return st.plan
	}
	return s.Plan // the run panicked
}

// record plays the first runs and the findings once more, which records the
// tapes of those whose strategy did not.
func (c *Campaign) record(s *scenarios.Scenario, o SearchOptions) {
	decider := o.Strategy.Job()
	p := NewPlayer(o.Design, o.Protections)
	for i := range c.again {
		f := &c.again[i]
		if v := f.replay(s, p, decider); v != nil {
			c.differs(f.Run, v)
			f.Violations = append(f.Violations, *v)
			c.Findings = append(c.Findings, *f)
			c.Found++
			break // one is enough: the others differ as well
		}
	}
	for i := range c.Findings {
		f := &c.Findings[i]
		if f.Tape != nil {
			continue
		}
		if v := f.replay(s, p, decider); v != nil {
			c.differs(f.Run, v)
			f.Violations = append(f.Violations, *v)
		}
	}
}

// replay plays a run once more; it returns what is wrong where it is another.
func (f *Finding) replay(s *scenarios.Scenario, p *Player, decider explore.Decider) *Violation {
	var choices *sim.Choices
	if f.Tape != nil {
		choices = sim.ChoicesFrom(&sim.Tape{Streams: slices.Clip(f.Tape.Streams)}) // a reader of its own
	} else {
		choices = decider.Decide(f.Run)
		f.Tape = &sim.Tape{}
		choices.Record(f.Tape)
	}
	again := p.PlayTape(s, f.Result.Seed, choices, nil)
	if again.Hash == f.Hash {
		return nil
	}
	return &Violation{
		Seed: f.Result.Seed, Invariant: "determinism", Verdict: Nondeterminism, At: again.End,
		Message: fmt.Sprintf("the same decisions gave %d events with hash %016x, then %d with %016x", f.Result.Events, uint64(f.Hash), again.Events, uint64(again.Hash)),
	}
}

// differs counts a run that was another when it was played again.
func (c *Campaign) differs(run uint64, v *Violation) {
	c.Verdict = Gravest(c.Verdict, v.Verdict)
	if c.Broke[v.Invariant]++; c.Broke[v.Invariant] == 1 {
		c.First[v.Invariant] = run
	}
}

// Invariants are what the campaign saw broken, the most often first.
func (c *Campaign) Invariants() []string {
	var names []string
	for name := range c.Broke {
		names = append(names, name)
	}
	sort.Slice(names, func(i, k int) bool {
		if c.Broke[names[i]] != c.Broke[names[k]] {
			return c.Broke[names[i]] > c.Broke[names[k]]
		}
		return names[i] < names[k]
	})
	return names
}
