package run

import (
	"fmt"
	"slices"
	"strings"

	"vigil/core"
	"vigil/scenarios"
	"vigil/sim"
)

// What some run must show, not every one: only a whole set of runs can tell
// that it did not come. Shards hand what they counted on, and whoever has all of
// them decides by the same rule.

// Owed is one thing that some run must show.
type Owed struct {
	Kind  string // break, step or covers
	Runs  int    // in which it came
	Never string // what is said where it came in none, before " in N runs"
	// Wanted are the actors that it must name, Seen those that it named, and
	// NeverFor what is said before those that it never named.
	Wanted, Seen []string
	NeverFor     string
}

// owedBreak is the kind of what a declared break owes.
const owedBreak = "break"

// Missing says which of what is owed did not come in so many runs; fewer than
// SomeRuns say nothing about it, and fewer than BreakRuns nothing about breaks.
func Missing(owed []Owed, runs int, seed uint64) []Violation {
	if runs < SomeRuns {
		return nil
	}
	var list []Violation
	missed := func(kind, text string) {
		list = append(list, Violation{Seed: seed, Invariant: kind, Verdict: Missed, Message: text})
	}
	for i := range owed {
		o := &owed[i]
		if o.Kind == owedBreak && runs < BreakRuns {
			continue
		}
		if o.Runs == 0 {
			missed(o.Kind, fmt.Sprintf("%s in %d runs", o.Never, runs))
			continue
		}
		if never := slices.DeleteFunc(slices.Clone(o.Wanted), func(name string) bool { return slices.Contains(o.Seen, name) }); len(never) > 0 {
			missed(o.Kind, fmt.Sprintf("%s %s as declared", o.NeverFor, strings.Join(never, ", ")))
		}
	}
	return list
}

// owed is what the runs of a tally owe, and how much of it came.
func (s *suite) owed(i int) []Owed {
	sc, t := s.list[i], &s.tallies[i]
	var list []Owed
	n := 0
	for k := range sc.Breaks {
		b := &sc.Breaks[k]
		if b.Design != s.o.Design {
			continue
		}
		o := Owed{Kind: owedBreak, Runs: t.breaks[n].runs, Wanted: declaredNames(sc, b), Seen: t.breaks[n].actors,
			Never:    fmt.Sprintf("%s:%d: %s is declared to break in some run of %s and did not", sc.File, b.Line, b.Invariant, s.o.Design),
			NeverFor: fmt.Sprintf("%s:%d: %s broke, but never for", sc.File, b.Line, b.Invariant)}
		n++
		if b.All && o.Runs == 0 {
			continue // told for each run that it did not come in
		}
		list = append(list, o)
	}
	for k := range sc.Steps {
		if sc.Steps[k].Maybe {
			list = append(list, Owed{Kind: "step", Runs: t.struck[k], Never: fmt.Sprintf("%s:%d: %s never took hold", sc.File, sc.Steps[k].Line, sc.Words(k))})
		}
	}
	for _, c := range sc.CoversOf(s.o.Design, s.o.Protections) {
		o := Owed{Kind: "covers"}
		switch c.Kind {
		case scenarios.CoverFault:
			o.Runs, o.Never = t.met.Faults[c.Number], "took hold"
		case scenarios.CoverState:
			o.Runs, o.Never = t.met.States[c.Number], "was met"
		case scenarios.CoverProtection:
			o.Runs, o.Never = t.acted[c.Name], "acted"
		}
		o.Never = fmt.Sprintf("%s:%d: the file covers the %s %s, and it never %s", sc.File, c.Line, c.Kind, c.Name, o.Never)
		list = append(list, o)
	}
	return list
}

// declaredNames are the actors that a declared break must name.
func declaredNames(sc *scenarios.Scenario, b *scenarios.Break) []string {
	var names []string
	for _, a := range b.Actors {
		if a >= 0 {
			names = append(names, sc.WorkerName(a))
		}
	}
	return names
}

// probedRuns is how many runs of a scenario are asked for protections at most.
const probedRuns = 8

// probe asks the first runs for the protections that the scenario covers, or,
// with Coverage, for all of them, until each acted in one.
func (s *suite) probe(sc *scenarios.Scenario, t *tally) {
	var names []string
	if s.o.Coverage {
		names = core.ProtectionNames()
	} else {
		for _, c := range sc.CoversOf(s.o.Design, s.o.Protections) {
			if c.Kind == scenarios.CoverProtection {
				names = append(names, c.Name)
			}
		}
	}
	if len(names) == 0 {
		return
	}
	// By the job that asks alone: the others have runs of their own to play.
	a := NewProber(sc, s.o.Design, s.o.Protections, names, probedRuns).Probe(1, func() func(int) *sim.Choices {
		choices := sim.NewChoices(0)
		return func(i int) *sim.Choices {
			choices.Reseed(s.seed(uint64(i)))
			return choices
		}
	})
	t.probed = a.Probed
	for i, name := range a.Names {
		t.acted[name] += a.Runs[i]
	}
}
