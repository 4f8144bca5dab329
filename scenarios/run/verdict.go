package run

import (
	"vigil/core"
	"vigil/scenarios"
)

// Verdict is what a scenario came to, in one word (CLI.md).
type Verdict string

// The verdicts.
const (
	Pass           Verdict = "pass"
	Safety         Verdict = "safety"
	Liveness       Verdict = "liveness"
	Nondeterminism Verdict = "nondeterminism"
	Panicked       Verdict = "panic"
	Unknown        Verdict = "unknown"
	Missed         Verdict = "missed"
)

// order is from the gravest verdict to the mildest (CLI.md, exit codes).
var order = []Verdict{Nondeterminism, Panicked, Safety, Liveness, Missed, Unknown, Pass}

// Gravest returns the first of several verdicts in the order of the exit codes.
func Gravest(several ...Verdict) Verdict {
	for _, v := range order {
		for _, s := range several {
			if s == v {
				return v
			}
		}
	}
	return Pass
}

// ExitCode is the exit code of a verdict (CLI.md).
func (v Verdict) ExitCode() int {
	switch v {
	case Pass:
		return 0
	case Safety:
		return 10
	case Liveness:
		return 11
	case Nondeterminism:
		return 12
	case Panicked:
		return 13
	case Missed:
		return 15
	}
	return 14
}

// Violation is one thing that broke, or that did not come, in one run.
type Violation struct {
	Seed uint64
	// Invariant is an invariant's id; "expect <kind>" for an expectation of the
	// file; "step" for a step that struck nothing; "break" for a declared break
	// that did not come; "panic" and "determinism" for what they say.
	Invariant string
	Verdict   Verdict // what it makes of the scenario, were it alone
	At        core.Time
	Actors    []string
	Message   string
	// Declared says that the file declares it under this design: an example of
	// what it promises, not a failure.
	Declared bool
}

// BreakSeen is a declared break and how often it came.
type BreakSeen struct {
	Invariant string
	All       bool
	Runs      int // in which it came
	Of        int // runs in all
	Actors    []string
	Missing   []string // declared actors that it never named
}

// Measure is how long after its anchor something came, over all runs.
type Measure struct {
	Line     int    // of the expectation
	Kind     string // of the expectation
	Count    int
	Min, Max core.Time
}

// Outcome is what one scenario came to over its seeds.
type Outcome struct {
	Scenario *scenarios.Scenario
	ID, Name string
	Verdict  Verdict
	Expected string // what the file declares under this design: "pass", or the breaks

	Runs        int
	Events      uint64
	SimSeconds  float64
	WallSeconds float64 // of all jobs together
	Hash        uint64  // over all runs; the same whatever the jobs, machine or shards
	Violations  []Violation
	Violated    int // runs with an undeclared violation
	Breaks      []BreakSeen
	Measures    []Measure
	StepsStruck []int // of each step: runs in which it struck
	NotRun      int   // seeds left out: interrupted or fail-fast
	Owed        []Owed
	Coverage    Coverage
}

// HashText is the hash as reports print it.
func (o *Outcome) HashText() string {
	const digits = "0123456789abcdef"
	var b [16]byte
	for i := range b {
		b[i] = digits[o.Hash>>(60-4*i)&15]
	}
	return string(b[:])
}
