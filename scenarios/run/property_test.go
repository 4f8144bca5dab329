package run

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/monitor"
	"vigil/sim"
)

// Random worlds against the invariants, world and tape drawn by rapid, so that
// what it finds it also shrinks: fewer workers, fewer steps, rounder times,
// plainer decisions of the tape.

// tapeOf lets rapid decide in the place of a seed.
type tapeOf struct{ t *rapid.T }

func (s tapeOf) Draw(purpose sim.Purpose, _ int, n uint64) uint64 {
	return rapid.Uint64Range(0, n-1).Draw(s.t, purpose.String())
}

// randomWorld draws a world and plays it by a tape that rapid draws too.
func randomWorld(t *rapid.T, menu *Menu, p core.Protections) (*sim.Plan, *monitor.Set, sim.Result) {
	plan := RandomPlan(menu, func(what string, n int) int {
		return rapid.IntRange(0, n-1).Draw(t, what)
	})
	protect(plan, p, p)
	var choices *sim.Choices
	if rapid.IntRange(0, 3).Draw(t, "tape") == 0 {
		choices = sim.ChoicesFrom(tapeOf{t})
	} else { // most worlds by a seed, which costs rapid one draw in the place of thousands
		choices = sim.NewChoices(rapid.Uint64().Draw(t, "seed"))
	}
	set := monitor.New(SetupOf(plan))
	result := sim.NewWorld().Run(plan, choices, set)
	set.Finish(result.End)
	return plan, set, result
}

// inRandomWorlds checks some invariants in random worlds of the document.
func inRandomWorlds(t *testing.T, invariants ...string) {
	inProtectedWorlds(t, core.Document(), invariants...)
}

func inProtectedWorlds(t *testing.T, p core.Protections, invariants ...string) {
	rapid.Check(t, func(t *rapid.T) {
		plan, set, result := randomWorld(t, GentleMenu(), p)
		if result.Panic != "" {
			t.Fatalf("%s in a world of %s", result.Panic, worldInWords(plan))
		}
		for _, v := range set.Violations() {
			if slices.Contains(invariants, v.Invariant) {
				t.Fatalf("%s at %v: %s in a world of %s", v.Invariant, v.At, v.Message, worldInWords(plan))
			}
		}
	})
}

func TestRandomWorldsKeepONE(t *testing.T)         { inRandomWorlds(t, "ONE") }
func TestRandomWorldsKeepRECLAIM(t *testing.T)     { inRandomWorlds(t, "RECLAIM") }
func TestRandomWorldsKeepNOFALSEREAP(t *testing.T) { inRandomWorlds(t, "NO-FALSE-REAP") }
func TestRandomWorldsKeepFENCE(t *testing.T)       { inRandomWorlds(t, "FENCE") }
func TestRandomWorldsKeepONCE(t *testing.T)        { inRandomWorlds(t, "ONCE") }
func TestRandomWorldsKeepQUIET(t *testing.T)       { inRandomWorlds(t, "QUIET") }
func TestRandomWorldsKeepTERMINAL(t *testing.T)    { inRandomWorlds(t, "TERMINAL") }

// A kill between PREPARE and COMMIT opens the document's hole of B10 in any world.
func TestRandomWorldsKeepINTEGRITY(t *testing.T) {
	inProtectedWorlds(t, core.Protections{DropHalfWritten: true}, "INTEGRITY")
}

// A property that does not hold shows that rapid shrinks a world: "nobody is
// ever reaped" comes down to one worker and one fault.
func TestRapidShrinksAWorld(t *testing.T) {
	if testing.Short() {
		t.Skip("shrinks for some seconds")
	}
	smallest := &quietly{name: t.Name()}
	workers, steps := 0, 0
	func() {
		defer func() { _ = recover() }() // how a failed check leaves
		rapid.Check(smallest, func(t *rapid.T) {
			plan := RandomPlan(GentleMenu(), func(what string, n int) int {
				return rapid.IntRange(0, n-1).Draw(t, what)
			})
			reaped := false
			result := sim.NewWorld().Run(plan, sim.ChoicesFrom(tapeOf{t}), observer(func(r *core.Record) {
				reaped = reaped || r.Kind == core.ReapDecided
			}))
			if result.Panic == "" && reaped {
				workers, steps = len(plan.Workers), len(plan.Steps)
				t.Fatal("somebody was reaped")
			}
		})
	}()
	if !smallest.failed {
		t.Fatal("no random world reaped anybody: the worlds are too gentle to prove anything")
	}
	if workers != 1 || steps != 1 {
		t.Errorf("shrunk to %d workers and %d steps, want one of each", workers, steps)
	}
}

type observer func(*core.Record)

func (f observer) Observe(r *core.Record) { f(r) }

// quietly is a test that fails without saying so.
type quietly struct {
	name   string
	failed bool
}

func (q *quietly) Helper()               {}
func (q *quietly) Name() string          { return q.name }
func (q *quietly) Logf(string, ...any)   {}
func (q *quietly) Log(...any)            {}
func (q *quietly) Skipf(string, ...any)  {}
func (q *quietly) Skip(...any)           {}
func (q *quietly) SkipNow()              {}
func (q *quietly) Errorf(string, ...any) { q.failed = true }
func (q *quietly) Error(...any)          { q.failed = true }
func (q *quietly) Fatalf(string, ...any) { q.failed = true; panic("failed") }
func (q *quietly) Fatal(...any)          { q.failed = true; panic("failed") }
func (q *quietly) FailNow()              { q.failed = true; panic("failed") }
func (q *quietly) Fail()                 { q.failed = true }
func (q *quietly) Failed() bool          { return q.failed }

// A drawn world is the tape's: the same seed draws and plays the same one, and
// another seed another.
func TestADrawnWorldIsTheTapes(t *testing.T) {
	list, err := scenarios.Find("random")
	if err != nil {
		t.Fatal(err)
	}
	one, other := NewPlayer("hardened", core.Hardened()), NewPlayer("hardened", core.Hardened())
	seen := map[string]bool{}
	for seed := uint64(0); seed < 20; seed++ {
		a := one.Play(list[0], seed, nil)
		other.Play(list[0], seed+1000, nil)
		b := other.Play(list[0], seed, nil)
		if a.Hash != b.Hash || one.Drawn(list[0]) != other.Drawn(list[0]) {
			t.Fatalf("seed %d gave two runs, of %s and of %s", seed, one.Drawn(list[0]), other.Drawn(list[0]))
		}
		seen[one.Drawn(list[0])] = true
	}
	if len(seen) != 20 {
		t.Errorf("20 seeds drew %d worlds", len(seen))
	}
}
