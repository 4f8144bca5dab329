package reports

import (
	"fmt"
	"strings"
	"time"

	"vigil/reports/spacetime"
)

// Version is the version of the JSON that Suite marshals to.
const Version = 1

// Verdict is how a run, a scenario or a suite ended.
type Verdict string

// The verdicts. Only Pass is not a failure.
const (
	Pass           Verdict = "pass"
	Safety         Verdict = "safety"         // something bad happened: a safety invariant broke
	Liveness       Verdict = "liveness"       // something owed did not happen in its bound
	Nondeterminism Verdict = "nondeterminism" // the same tape did not give the same run: the testbed is at fault
	Panic          Verdict = "panic"          // the code under test panicked
	Unknown        Verdict = "unknown"        // a bound was reached before the promised verdict
	Missed         Verdict = "missed"         // a declared fault or expectation never took place
)

// gravity orders the verdicts from the gravest: with several, the first one
// found here is the verdict of the whole. A testbed that is not deterministic
// comes first, because then nothing else it says can be believed.
var gravity = []Verdict{Nondeterminism, Panic, Safety, Liveness, Missed, Unknown, Pass}

// Gravest returns the gravest of the verdicts; Pass where there is none. A
// word that is no verdict counts as Unknown: it must not read as a pass.
func Gravest(verdicts ...Verdict) Verdict {
	worst := len(gravity) - 1
	for _, v := range verdicts {
		worst = min(worst, v.rank())
	}
	return gravity[worst]
}

func (v Verdict) rank() int {
	for i, g := range gravity {
		if g == v {
			return i
		}
	}
	return len(gravity) - 2
}

// words says a verdict as a sentence's beginning, for people.
func (v Verdict) words() string {
	switch v {
	case Pass:
		return "passed"
	case Safety:
		return "a safety invariant broke"
	case Liveness:
		return "a liveness invariant broke"
	case Nondeterminism:
		return "the same decisions did not give the same run (a defect of the testbed)"
	case Panic:
		return "the code under test panicked"
	case Missed:
		return "something that the scenario declares never took place"
	}
	return "a bound was reached before there was a verdict"
}

// Suite is the result of one call of simrun run. It marshals to the JSON of
// --json.
type Suite struct {
	Version   int        `json:"version"`
	Design    string     `json:"design"` // document, hardened, or the protections that were on, joined by +
	Verdict   Verdict    `json:"verdict"`
	Scenarios []Scenario `json:"scenarios"`
	Totals    Totals     `json:"totals"`

	// Note says how it was run where that was not in the simulator, and which
	// files were not run because they could not be read.
	Note string `json:"note,omitempty"`
	// Shard is set where this is a part of a whole (simrun merge adds parts up).
	Shard *Shard `json:"shard,omitempty"`
	// Stopped says in words why not everything ran; empty where it did.
	Stopped string `json:"-"`
}

// Scenario is the result of one scenario over all its seeds.
type Scenario struct {
	Name    string  `json:"name"`
	ID      string  `json:"id"`
	Verdict Verdict `json:"verdict"`
	// Expected is what the file declares under this design: "pass", or the
	// break in words, such as "breaks NO-FALSE-REAP in all (w1)".
	Expected string `json:"expected"`
	Runs     int    `json:"runs"`
	// FailedRuns is how many of the runs broke something that the file does not
	// declare: all of them are counted, whatever Violations keeps.
	FailedRuns  int     `json:"failed_runs"`
	Events      uint64  `json:"events"`
	SimSeconds  float64 `json:"sim_seconds"`
	WallSeconds float64 `json:"wall_seconds"` // summed over the processors that ran it
	// Hash folds the hashes of all runs in the order of their seeds, 16 hex
	// digits: equal for equal code, scenario and seeds.
	Hash string `json:"hash"`
	// Violations are examples, not all that were seen: of each invariant the runs
	// of the lowest seeds, a few (simrun run keeps 4). A
	// scenario that broke as it declares has the verdict pass and its example
	// here.
	Violations []Violation `json:"violations"`
	// Skipped is why real processes cannot play it: its verdict is unknown, it
	// was not run, and it counts for nothing.
	Skipped string `json:"skipped,omitempty"`
	// Undecided are invariants that the records of real processes could not
	// decide, each with its reason. They are not passes.
	Undecided []string `json:"undecided,omitempty"`
	Notes     []string `json:"notes,omitempty"` // what else a reader should know
	// Corpus says that the row is of capsules that are kept, whose runs are of no
	// range of seeds.
	Corpus bool `json:"corpus,omitempty"`
	// Coverage is what the runs met.
	Coverage *Coverage `json:"coverage,omitempty"`
	// World is a digest of what the seeds act on, and Owed what some run of the
	// whole must show; both are set in a shard only.
	World string `json:"world,omitempty"`
	Owed  []Owed `json:"owed,omitempty"`

	Story  string   `json:"-"` // one line on what happens in it
	File   string   `json:"-"` // where it was read; empty where it is built in
	Breaks []string `json:"-"` // the invariants of Expected, for narrow places
	// Holes are the invariants that the file declares for the design document,
	// where the suite ran under another design: what this one closes.
	Holes  []string `json:"-"`
	Replay string   `json:"-"` // the command that replays its first run
	Cut    bool     `json:"-"` // not all of its seeds ran: interrupted, or a failure elsewhere stopped the suite
}

// Violation is one broken promise in one run.
type Violation struct {
	Invariant string   `json:"invariant"` // its id, or what else was not kept: "expect reaped", "step", "break", "panic"
	AtSeconds float64  `json:"at_seconds"`
	Actors    []string `json:"actors"`
	Message   string   `json:"message"`
	Seed      uint64   `json:"seed"`
	Token     string   `json:"token"`
	Capsule   string   `json:"capsule"` // path of the capsule; empty where none was written
	// Run is the run's number in a search whose runs are of no seed, from 1.
	Run uint64 `json:"run,omitempty"`

	Verdict  Verdict `json:"verdict"`  // what kind of failure this one is
	Declared bool    `json:"declared"` // the scenario declares it under this design
	Replay   string  `json:"-"`        // the exact command that replays it
	Shrink   string  `json:"-"`        // the exact command that minimises it; empty where there is no capsule
	Promise  string  `json:"-"`        // what the invariant promises, in a sentence; empty where it is none
	// Led is what led there, the last one nearest to the break; empty where nobody
	// looked.
	Led []spacetime.Moment `json:"-"`
}

// Totals are sums over the scenarios; WallSeconds is the time that the person
// waited, so the rates are those of the whole machine.
type Totals struct {
	Runs            int     `json:"runs"`
	Events          uint64  `json:"events"`
	SimSeconds      float64 `json:"sim_seconds"`
	WallSeconds     float64 `json:"wall_seconds"`
	EventsPerSecond float64 `json:"events_per_second"`
	SimOverReal     float64 `json:"sim_over_real"`
}

// NewSuite sums scenarios up. The wall time is that of the whole call.
func NewSuite(design string, scenarios []Scenario, wall time.Duration) *Suite {
	s := &Suite{Version: Version, Design: design, Verdict: Pass, Scenarios: []Scenario{}}
	ran := 0
	for _, sc := range scenarios {
		if sc.Violations == nil {
			sc.Violations = []Violation{} // an empty list in JSON, not null
		}
		for i := range sc.Violations {
			if sc.Violations[i].Actors == nil {
				sc.Violations[i].Actors = []string{}
			}
		}
		sc.WallSeconds = round(sc.WallSeconds, 1e6)
		if sc.Skipped == "" {
			s.Verdict = Gravest(s.Verdict, sc.Verdict)
			ran++
		}
		s.Totals.Runs += sc.Runs
		s.Totals.Events += sc.Events
		s.Totals.SimSeconds += sc.SimSeconds
		s.Scenarios = append(s.Scenarios, sc)
	}
	if ran == 0 && len(scenarios) > 0 {
		s.Verdict = Unknown // nothing was shown
	}
	s.Totals.WallSeconds = round(wall.Seconds(), 1e6)
	s.Totals.EventsPerSecond = round(rate(float64(s.Totals.Events), wall.Seconds()), 1)
	s.Totals.SimOverReal = round(rate(s.Totals.SimSeconds, wall.Seconds()), 10)
	return s
}

// Failed returns the scenarios that did not pass, the gravest last: what is
// printed last is what is read first.
func (s *Suite) Failed() []*Scenario {
	var failed []*Scenario
	for rank := len(gravity) - 1; rank >= 0; rank-- {
		for i := range s.Scenarios {
			if sc := &s.Scenarios[i]; sc.failed() && sc.Verdict.rank() == rank {
				failed = append(failed, &s.Scenarios[i])
			}
		}
	}
	return failed
}

// failed reports whether the scenario did not keep its promise. One that was
// only cut short has no verdict yet.
func (s *Scenario) failed() bool {
	return s.Verdict != Pass && s.Skipped == "" && !(s.Cut && s.Verdict == Unknown)
}

// word is the verdict as a table says it.
func (s *Scenario) word() string {
	if s.Skipped != "" {
		return "skipped"
	}
	return string(s.Verdict)
}

// title is how a person calls the scenario.
func (s *Scenario) title() string {
	if s.ID == "" || s.ID == s.Name {
		return s.Name
	}
	name := s.Name
	if slash := strings.IndexByte(s.ID, '/'); slash >= 0 {
		name = strings.TrimSuffix(name, s.ID[slash:]) // the variant is said once
	}
	return s.ID + " " + name
}

// declaresBreak reports whether the scenario is expected to break something.
func (s *Scenario) declaresBreak() bool { return s.Expected != "" && s.Expected != string(Pass) }

// breakWidth bounds what a table says of an expected break.
const breakWidth = 32

// shortBreak is the expected break for a table: in full where that is short,
// else the invariants alone, and of many the first two. The listing and the JSON
// have all of it.
func (s *Scenario) shortBreak() string {
	text := strings.TrimPrefix(s.expectedBreak(), "breaks ")
	if len(text) > breakWidth && len(s.Breaks) > 0 {
		text = strings.Join(s.Breaks, ", ")
	}
	if n := len(s.Breaks); len(text) > breakWidth && n > 2 {
		text = fmt.Sprintf("%s, %s and %d more", s.Breaks[0], s.Breaks[1], n-2)
	}
	return text
}

// showsHoles reports whether the column of breaks says what the document's
// design breaks: where the suite ran under another one and no scenario is
// expected to break anything there. Otherwise it says what this run expects.
func (s *Suite) showsHoles() bool {
	holes := false
	for i := range s.Scenarios {
		if s.Scenarios[i].declaresBreak() {
			return false
		}
		holes = holes || len(s.Scenarios[i].Holes) > 0
	}
	return holes
}

// breaksHead is the head of the column of breaks.
func (s *Suite) breaksHead() string {
	if s.showsHoles() {
		return "DOCUMENT BREAKS"
	}
	return "EXPECTED BREAK"
}

// shortHoles are what the design document breaks, for a table.
func (s *Scenario) shortHoles() string {
	text := strings.Join(s.Holes, ", ")
	if n := len(s.Holes); len(text) > breakWidth && n > 2 {
		text = fmt.Sprintf("%s, %s and %d more", s.Holes[0], s.Holes[1], n-2)
	}
	return text
}

// expectedBreak is what the scenario is expected to break, in words; empty
// where it is expected to pass.
func (s *Scenario) expectedBreak() string {
	if !s.declaresBreak() {
		return ""
	}
	return s.Expected
}
