package run

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"vigil/core"
	"vigil/scenarios"
)

// Options say how a suite is run.
type Options struct {
	Design      string // "document" or "hardened": chooses declared breaks and expectations
	Protections core.Protections

	From  uint64 // the first seed
	Count int    // how many seeds; at least 1
	// For, where set, runs ever more seeds until the time is up; Count is then
	// how many each scenario gets at least.
	For time.Duration

	Jobs     int // runs at once; 0 is one per processor
	FailFast bool
	// Partial says that these seeds are not all: what some run must show may be
	// shown by others.
	Partial bool
	// Shard and Shards play each Shards-th of the seeds only, from the Shard-th
	// on; 0 and 0 play all. Count is of all shards. What some run must show is
	// then counted (Outcome.Owed) and not judged.
	Shard, Shards uint64
	// Coverage asks some runs of each scenario for every protection, and not just
	// for those that its file covers.
	Coverage bool
	// Keep bounds the violations kept per scenario, the lowest seeds first; 0 is 8.
	Keep int
	// Progress, where set, is called after each chunk of runs, by one goroutine
	// at a time.
	Progress func(Progress)
}

// Progress is how far a suite is.
type Progress struct {
	Done, Total int // runs; Total is 0 where it is not known
	Scenario    string
	Failed      int // runs with an undeclared violation
}

// SomeRuns is how many runs it takes to say that what must come in some run did
// not come: fewer, as when one seed is run by itself, say nothing about it.
const SomeRuns = 25

// BreakRuns is how many runs it takes to say that a declared break did not come,
// or never for a declared actor. It is more than SomeRuns, because a story can be
// set so that its steps strike, while a hole is as narrow as it is: a break
// that comes in one run of ten is missed by chance in one of 40,000 such
// calls, where 25 runs would miss it in one of 14.
const BreakRuns = 100

// chunkRuns is how many seeds one job takes at a time: long enough that the
// hand-over costs nothing, short enough that both cores end together.
const chunkRuns = 8

// task is some seeds of one scenario.
type task struct {
	scenario int
	from     uint64
	count    int
	first    bool // it holds the scenario's first seed, which is run twice
}

// tally adds up the runs of one scenario. Adding is commutative but for the
// lists, which are sorted in the end.
type tally struct {
	runs       int
	events     uint64
	simulated  core.Time
	wall       time.Duration
	hash       uint64
	violations []Violation
	violated   int
	breaks     []breakTally
	measures   []Measure
	struck     []int
	met        Tally
	acted      map[string]int // of each protection that was asked about: runs in which it acted
	probed     int
	verdict    Verdict
}

type breakTally struct {
	runs   int
	actors []string
}

// Suite runs the scenarios over the seeds and returns one outcome each, in the
// order given. It ends early, with what it has, when ctx ends. The error is
// about the options; what goes wrong in a run is in the outcomes.
func Suite(ctx context.Context, list []*scenarios.Scenario, o Options) ([]Outcome, error) {
	if o.Count < 1 {
		return nil, fmt.Errorf("at least one seed must be run; got %d", o.Count)
	}
	if !slices.Contains(scenarios.Designs, o.Design) {
		return nil, fmt.Errorf("design must be one of %s; got %q", strings.Join(scenarios.Designs, ", "), o.Design)
	}
	if o.Keep == 0 {
		o.Keep = 8
	}
	if o.Shards == 0 {
		o.Shard, o.Shards = 0, 1
	}
	o.Partial = o.Partial || o.Shards > 1
	s := &suite{list: list, o: o, tallies: make([]tally, len(list)), began: time.Now()}
	s.count = int((uint64(o.Count) + o.Shards - 1 - o.Shard) / o.Shards)
	jobs := o.Jobs
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	for i, sc := range list {
		s.tallies[i] = newTally(sc, o.Design)
	}
	var wait sync.WaitGroup
	for range jobs {
		wait.Add(1)
		go func() {
			defer wait.Done()
			s.work(ctx)
		}()
	}
	wait.Wait()
	outcomes := make([]Outcome, len(list))
	for i := range list {
		outcomes[i] = s.outcome(i)
	}
	return outcomes, nil
}

func newTally(sc *scenarios.Scenario, design string) tally {
	t := tally{verdict: Pass, struck: make([]int, len(sc.Steps)), acted: map[string]int{}}
	for i := range sc.Breaks {
		if sc.Breaks[i].Design == design {
			t.breaks = append(t.breaks, breakTally{})
		}
	}
	for i := range sc.Expect {
		if e := &sc.Expect[i]; e.Design == "" || e.Design == design {
			t.measures = append(t.measures, Measure{Line: e.Line, Kind: e.Kind.String()})
		}
	}
	return t
}

// suite hands tasks to jobs and adds up what they bring back.
type suite struct {
	list  []*scenarios.Scenario
	o     Options
	began time.Time
	count int // seeds of each scenario that are this shard's

	mu      sync.Mutex
	next    int // tasks handed out
	done    int
	failed  int
	stopped bool
	tallies []tally
}

// take hands out the next task. Scenario after scenario, or, where time is the
// bound, seeds after seeds, so that each scenario gets its share.
func (s *suite) take() (t task, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || len(s.list) == 0 {
		return t, false
	}
	chunks := (s.count + chunkRuns - 1) / chunkRuns
	n := s.next
	var chunk int
	if n < chunks*len(s.list) {
		t.scenario, chunk = n/chunks, n%chunks
		t.count = min(chunkRuns, s.count-chunk*chunkRuns)
		t.from = uint64(chunk * chunkRuns)
	} else {
		if s.o.For == 0 || time.Since(s.began) >= s.o.For {
			return t, false
		}
		n -= chunks * len(s.list)
		t.scenario, chunk = n%len(s.list), n/len(s.list)
		t.count = chunkRuns
		t.from = uint64(s.count) + uint64(chunk*chunkRuns)
	}
	t.first = t.from == 0
	s.next++
	return t, true
}

// work is one job: it owns its player.
func (s *suite) work(ctx context.Context) {
	p := NewPlayer(s.o.Design, s.o.Protections)
	for ctx.Err() == nil {
		t, ok := s.take()
		if !ok {
			return
		}
		s.add(t, s.play(ctx, p, t))
	}
}

// seed is the seed of the shard's i-th run.
func (s *suite) seed(i uint64) uint64 { return s.o.From + i*s.o.Shards + s.o.Shard }

// play plays the runs of a task.
func (s *suite) play(ctx context.Context, p *Player, t task) tally {
	sc := s.list[t.scenario]
	sum := newTally(sc, s.o.Design)
	began := time.Now()
	for i := 0; i < t.count && ctx.Err() == nil; i++ {
		seed := s.seed(t.from + uint64(i))
		var same Run
		twice := t.first && i == 0
		if twice { // once in a world that nobody ran in before: what an earlier run left must not matter
			same = NewPlayer(p.design, p.protections).Play(sc, seed, nil)
		}
		r := p.Play(sc, seed, nil)
		if twice {
			if same.Hash != r.Hash || same.Events != r.Events || same.Records != r.Records {
				r.Violations = append(r.Violations, Violation{
					Seed: seed, Invariant: "determinism", Verdict: Nondeterminism, At: r.End,
					Message: fmt.Sprintf("the same seed gave %d events with hash %016x, then %d with %016x", r.Events, uint64(r.Hash), same.Events, uint64(same.Hash)),
				})
			}
		}
		sum.run(sc, p.design, &r)
		if st := p.stages[sc]; st != nil {
			for k := range st.judge.measures {
				sum.measures[k].add(&st.judge.measures[k])
			}
			p.forgetMeasures(sc)
		}
		if s.o.FailFast && sum.violated > 0 {
			break
		}
	}
	if t.first && (s.o.Coverage || s.o.For > 0 || s.o.Count >= SomeRuns) {
		s.probe(sc, &sum)
	}
	sum.wall = time.Since(began)
	sum.trim(s.o.Keep)
	return sum
}

// forgetMeasures empties what the judge measured since.
func (p *Player) forgetMeasures(sc *scenarios.Scenario) {
	if st := p.stages[sc]; st != nil {
		for k := range st.judge.measures {
			m := &st.judge.measures[k]
			*m = Measure{Line: m.Line, Kind: m.Kind}
		}
	}
}

// run adds one run.
func (t *tally) run(sc *scenarios.Scenario, design string, r *Run) {
	t.runs++
	t.events += r.Events
	t.simulated += r.End
	var d core.Digest
	d.Uint(r.Seed)
	d.Uint(uint64(r.Hash))
	t.hash += uint64(d) // a sum does not depend on the order of the runs
	for i := range t.struck {
		if !has(r.Unfired, i) {
			t.struck[i]++
		}
	}
	t.met.Add(&r.Met)
	bad := false
	for i := range r.Violations {
		v := &r.Violations[i]
		if !v.Declared {
			bad = true
			t.verdict = Gravest(t.verdict, v.Verdict)
		}
	}
	n := 0
	for i := range sc.Breaks {
		b := &sc.Breaks[i]
		if b.Design != design {
			continue
		}
		came := false
		for k := range r.Violations {
			if v := &r.Violations[k]; v.Declared && v.Invariant == b.Invariant {
				came = true
				for _, a := range v.Actors {
					if !slices.Contains(t.breaks[n].actors, a) {
						t.breaks[n].actors = append(t.breaks[n].actors, a)
					}
				}
			}
		}
		if came {
			t.breaks[n].runs++
		} else if b.All && r.Panic == "" {
			bad = true
			t.verdict = Gravest(t.verdict, Missed)
			r.Violations = append(r.Violations, Violation{
				Seed: r.Seed, Invariant: "break", Verdict: Missed, At: r.End,
				Message: fmt.Sprintf("%s:%d: %s is declared to break in every run of %s and did not", sc.File, b.Line, b.Invariant, design),
			})
		}
		n++
	}
	if bad {
		t.violated++
	}
	t.violations = append(t.violations, r.Violations...)
	if len(t.violations) > 4096 {
		t.trim(64)
	}
}

// trim keeps the violations that are told: of each kind the lowest seeds,
// failures before declared breaks.
func (t *tally) trim(keep int) {
	sort.SliceStable(t.violations, func(i, k int) bool {
		a, b := &t.violations[i], &t.violations[k]
		if a.Declared != b.Declared {
			return b.Declared
		}
		if a.Seed != b.Seed {
			return a.Seed < b.Seed
		}
		return a.At < b.At
	})
	kept, seen := t.violations[:0], map[string]int{}
	for _, v := range t.violations {
		key := v.Invariant
		if v.Declared {
			key += " declared"
		}
		if seen[key]++; seen[key] <= keep {
			kept = append(kept, v)
		}
	}
	t.violations = kept
}

func (m *Measure) add(o *Measure) {
	if o.Count == 0 {
		return
	}
	if m.Count == 0 || o.Min < m.Min {
		m.Min = o.Min
	}
	if m.Count == 0 || o.Max > m.Max {
		m.Max = o.Max
	}
	m.Count += o.Count
}

// add takes what a task brought.
func (s *suite) add(t task, part tally) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := &s.tallies[t.scenario]
	sum.runs += part.runs
	sum.events += part.events
	sum.simulated += part.simulated
	sum.wall += part.wall
	sum.hash += part.hash
	sum.violated += part.violated
	sum.verdict = Gravest(sum.verdict, part.verdict)
	sum.violations = append(sum.violations, part.violations...)
	sum.trim(s.o.Keep)
	for i := range part.breaks {
		b := &sum.breaks[i]
		b.runs += part.breaks[i].runs
		for _, a := range part.breaks[i].actors {
			if !slices.Contains(b.actors, a) {
				b.actors = append(b.actors, a)
			}
		}
	}
	for i := range part.measures {
		sum.measures[i].add(&part.measures[i])
	}
	for i := range part.struck {
		sum.struck[i] += part.struck[i]
	}
	sum.met.Merge(&part.met)
	sum.probed += part.probed
	for name, runs := range part.acted {
		sum.acted[name] += runs
	}
	s.done += part.runs
	s.failed += part.violated
	if s.o.FailFast && part.violated > 0 {
		s.stopped = true
	}
	if s.o.Progress != nil {
		p := Progress{Done: s.done, Scenario: s.list[t.scenario].ID, Failed: s.failed}
		if s.o.For == 0 {
			p.Total = s.count * len(s.list)
		}
		s.o.Progress(p)
	}
}

// outcome is the verdict on one scenario.
func (s *suite) outcome(i int) Outcome {
	sc, t := s.list[i], &s.tallies[i]
	o := Outcome{
		Scenario: sc, ID: sc.ID, Name: sc.Name, Verdict: t.verdict,
		Expected: Expected(sc, s.o.Design),
		Runs:     t.runs, Events: t.events, Hash: t.hash,
		SimSeconds: float64(t.simulated) / 1e9, WallSeconds: t.wall.Seconds(),
		Violations: t.violations, Violated: t.violated,
		Measures: t.measures, StepsStruck: t.struck,
		NotRun: max(0, s.count-t.runs), Owed: s.owed(i),
	}
	acted := Acted{Probed: t.probed}
	for _, name := range core.ProtectionNames() {
		if runs, asked := t.acted[name]; asked {
			acted.Names, acted.Runs = append(acted.Names, name), append(acted.Runs, runs)
		}
	}
	o.Coverage = coverageOf(sc, &t.met, &acted)
	n := 0
	for k := range sc.Breaks {
		b := &sc.Breaks[k]
		if b.Design != s.o.Design {
			continue
		}
		seen := BreakSeen{Invariant: b.Invariant, All: b.All, Runs: t.breaks[n].runs, Of: t.runs, Actors: t.breaks[n].actors}
		n++
		sort.Strings(seen.Actors)
		for _, name := range declaredNames(sc, b) {
			if !slices.Contains(seen.Actors, name) {
				seen.Missing = append(seen.Missing, name)
			}
		}
		o.Breaks = append(o.Breaks, seen)
	}
	if o.NotRun == 0 && !s.o.Partial { // only a whole set of runs can tell
		missed := Missing(o.Owed, t.runs, s.o.From)
		for i := range missed {
			o.Verdict = Gravest(o.Verdict, Missed)
			o.Violations = append(o.Violations, missed[i])
		}
	}
	if o.NotRun > 0 {
		o.Verdict = Gravest(o.Verdict, Unknown)
	}
	return o
}

// Expected is what a file declares under a design: "pass", or its breaks.
func Expected(s *scenarios.Scenario, design string) string {
	var parts []string
	for i := range s.Breaks {
		b := &s.Breaks[i]
		if b.Design != design {
			continue
		}
		part := b.Invariant + " in some"
		if b.All {
			part = b.Invariant + " in all"
		}
		if len(b.Actors) > 0 {
			part += " (" + strings.Join(names(s, b.Actors), ", ") + ")"
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return string(Pass)
	}
	return "breaks " + strings.Join(parts, ", ")
}
