package run

import (
	"fmt"
	"slices"
	"strings"

	"vigil/core"
	"vigil/faults"
	"vigil/scenarios"
	"vigil/sim"
)

// A failure that is shrunk must stay the failure that it was, though workers
// get other numbers and steps go: what it is known by stands here.

// Failure is one thing that broke in a scenario, and what mends it. It plays
// plans that come out of that scenario's plan and says whether they fail alike.
// It belongs to one goroutine.
type Failure struct {
	s        *scenarios.Scenario
	want     Violation
	document *Player   // plays it broken
	mended   []*Player // each plays it with one thing mended
}

// NewFailure returns the failure that want is in s under a design. Where mends
// are given, a run fails alike only if the same tape breaks nothing under one
// of them: so a hole stays the hole that it was.
func NewFailure(s *scenarios.Scenario, design string, p core.Protections, want Violation, mends []core.Protections) *Failure {
	f := &Failure{s: s, want: want, document: NewPlayer(design, p)}
	for _, m := range mends {
		f.mended = append(f.mended, NewPlayer(design, m))
	}
	return f
}

// Trial plays a plan by a tape; the key says how it fails, "" if it does not
// fail alike. It is a shrink.Trial.
func (f *Failure) Trial(plan *sim.Plan, tape sim.Source) (key string, hash core.Digest) {
	sc := f.Scenario(plan)
	asked := &sim.Tape{}
	choices := sim.ChoicesFrom(tape)
	choices.Record(asked)
	r := f.document.playOnce(sc, 0, choices)
	key = f.keyOf(&r)
	if key == "" || len(f.mended) == 0 {
		return key, r.Hash
	}
	for _, m := range f.mended {
		again := m.playOnce(sc, 0, sim.ChoicesFrom(fresh(asked)))
		if Green(&again) {
			return key + ", mended", r.Hash
		}
	}
	return "", r.Hash
}

// spoilt is what a tape counts that breaks something though it is mended: a
// story with another hole in it is no story of this one.
const spoilt = -10

// Score says how surely a plan tells its story: of the first so many seeds each
// that fails alike counts one, and each that what mends it does not turn green
// counts far less than nothing.
func (f *Failure) Score(plan *sim.Plan, seeds int) (score int) {
	sc := f.Scenario(plan)
	for seed := range uint64(seeds) {
		r := f.document.playOnce(sc, seed, sim.NewChoices(seed))
		green := len(f.mended) == 0
		for _, m := range f.mended {
			again := m.playOnce(sc, seed, sim.NewChoices(seed))
			if green = Green(&again); green {
				break
			}
		}
		switch {
		case !green:
			score += spoilt
		case f.keyOf(&r) != "":
			score++
		}
	}
	return score
}

// fresh reads a tape from its start and leaves the tape alone.
func fresh(t *sim.Tape) *sim.Tape { return &sim.Tape{Streams: slices.Clip(t.Streams)} }

// Mended returns those of the given protections under which a tape breaks
// nothing in a plan, by their place in the list of NewFailure.
func (f *Failure) Mended(plan *sim.Plan, tape *sim.Tape) []int {
	var green []int
	sc := f.Scenario(plan)
	for i, m := range f.mended {
		r := m.playOnce(sc, 0, sim.ChoicesFrom(fresh(tape)))
		if Green(&r) {
			green = append(green, i)
		}
	}
	return green
}

// Green reports whether a run broke nothing at all. A step that found nothing
// to strike is nothing.
func Green(r *Run) bool {
	return !slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Invariant != "step" })
}

// playOnce plays a scenario that will not be played again.
func (p *Player) playOnce(s *scenarios.Scenario, seed uint64, tape *sim.Choices) Run {
	r := p.PlayTape(s, seed, tape, nil)
	delete(p.stages, s)
	return r
}

// keyOf finds the failure among what broke.
func (f *Failure) keyOf(r *Run) string {
	want := keyOf(&f.want)
	for i := range r.Violations {
		if keyOf(&r.Violations[i]) == want {
			return want
		}
	}
	return ""
}

// keyOf is what a failure is known by: what broke and the parts that its actors
// play, not who they are.
func keyOf(v *Violation) string {
	switch n := len(v.Actors); {
	case n == 0:
		return v.Invariant
	case n == 1:
		return v.Invariant + " of a victim"
	}
	return v.Invariant + " of a victim and another"
}

// Scenario is the scenario of a plan that came out of this one's. What it
// expects is left out, but where that is what failed: then what can still be
// asked of the workers that are left is asked.
func (f *Failure) Scenario(plan *sim.Plan) *scenarios.Scenario {
	s := Concrete(f.s.ID, f.s.Name, f.s.Title, plan, func(int) bool { return true })
	s.File = f.s.File
	kind, expected := strings.CutPrefix(f.want.Invariant, "expect ")
	if !expected {
		return s
	}
	at := make(map[int]int, len(plan.Workers)) // of a worker here: its number there
	for i := range plan.Workers {
		for k := range f.s.Plan.Workers {
			if f.s.Plan.Workers[k].Name == plan.Workers[i].Name {
				at[k] = i
			}
		}
	}
	for i := range f.s.Expect {
		e := f.s.Expect[i]
		if e.Kind.String() != kind || !e.At.End && e.At.When == nil && e.At.To >= plan.Until {
			continue
		}
		there := true
		if e.Kind == scenarios.ExpectAnswer {
			e.Step, there = stepOf(plan, f.s.Plan.Steps[e.Step].Do.Ask.Number)
		}
		move := func(w *scenarios.Who) {
			if w.Worker == faults.Everyone || w.Worker == faults.Server {
				return
			}
			n, ok := at[w.Worker]
			if there = there && ok; ok {
				w.Worker = n
			}
		}
		matches := []*scenarios.Match{&e.Match, &e.From, &e.By}
		for _, m := range []**scenarios.Match{&e.Since, &e.At.When} {
			if *m != nil {
				copied := **m
				*m = &copied
				matches = append(matches, *m)
			}
		}
		for _, m := range matches {
			if m.Record != core.RecordNone {
				move(&m.Who)
			}
		}
		if move(&e.Who); there {
			s.Expect = append(s.Expect, e)
		}
	}
	return s
}

// stepOf finds the step that an ask has become.
func stepOf(plan *sim.Plan, number int) (step int, there bool) {
	step = slices.IndexFunc(plan.Steps, func(st sim.Step) bool { return st.Do.Kind == sim.ActAsk && st.Do.Ask.Number == number })
	return step, step >= 0
}

// String is what the failure is known by.
func (f *Failure) String() string {
	if len(f.mended) == 0 {
		return keyOf(&f.want)
	}
	return fmt.Sprintf("%s, mended", keyOf(&f.want))
}
