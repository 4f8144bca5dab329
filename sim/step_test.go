package sim_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"vigil/core"
	"vigil/faults"
	"vigil/sim"
)

// tickPlan is a world with a bit of everything, in which all times are of half
// a second, so that much falls together.
func tickPlan() *sim.Plan {
	p := worldOf(3, 200*time.Second)
	p.Server.Reap, p.Server.Grace = 30*time.Second, 60*time.Second
	p.OpenTime, p.CopyTime = faults.Span{Low: time.Second, High: 3 * time.Second}, faults.Span{Low: time.Second, High: 5 * time.Second}
	p.CloseTime = faults.Span{Low: 10 * time.Second, High: 40 * time.Second}
	for i := range p.Workers {
		p.Workers[i].Start = faults.Span{}
		p.Workers[i].Blocks = 8
		p.Workers[i].Traffic.Every = faults.Span{Low: 5 * time.Second, High: 10 * time.Second}
	}
	p.Workers[2].Config.Mode = core.ModeEngineDriven
	p.Workers[1].Config.Blend = true
	p.Server.Blend = true
	fault := func(at time.Duration, f faults.Fault) {
		p.Steps = append(p.Steps, sim.Step{At: faults.Fixed(at), Do: sim.Action{Kind: sim.ActFault, Worker: f.Worker, Fault: f}})
	}
	fault(20*time.Second, faults.Fault{Kind: faults.Cut, Worker: 0, For: faults.Fixed(45 * time.Second)})
	fault(25*time.Second, faults.Fault{Kind: faults.Pause, Worker: 1, For: faults.Fixed(40 * time.Second)})
	fault(90*time.Second, faults.Fault{Kind: faults.Restart, Worker: 2})
	fault(100*time.Second, faults.Fault{Kind: faults.Cut, Worker: 1, Reset: true, For: faults.Fixed(10 * time.Second)})
	fault(120*time.Second, faults.Fault{Kind: faults.ServerRestart, Worker: faults.Server})
	p.Steps = append(p.Steps,
		sim.Step{At: faults.Fixed(150 * time.Second), Do: sim.Action{Kind: sim.ActLookup, Worker: 0, Prompt: -1}},
		sim.Step{At: faults.Fixed(160 * time.Second), Do: sim.Action{Kind: sim.ActShutdown, Worker: 0}},
	)
	return p
}

const grain = 500 * time.Millisecond

// stepped plays a plan by a tape, step by step, up to so many events.
func stepped(w *sim.World, tape *sim.Choices, events int) (more bool) {
	for ; events > 0; events-- {
		n := w.Ready()
		if n == 0 {
			return false
		}
		i := 0
		if n > 1 {
			i = int(tape.Below(sim.ForOrder, 0, uint64(n)))
		}
		if what := w.Step(i); what != "" {
			panic(what)
		}
	}
	return true
}

// A world that is stepped is the same run as one that plays.
func TestSteppingIsRunning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := tickPlan()
		bytes := rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(t, "tape")
		tape := new(sim.Tape)
		choices := sim.InTicks(grain, &sim.BytesSource{Bytes: bytes})
		choices.Record(tape)
		w := sim.NewWorld()
		w.Begin(plan, choices, nil)
		for stepped(w, choices, 1000) {
		}
		want := w.End()
		got := sim.NewWorld().Run(plan, sim.ChoicesFrom(tape), nil)
		if got.Panic != "" || got.Hash != want.Hash || got.Events != want.Events || got.Records != want.Records {
			t.Fatalf("stepped %d events to %x, ran %d to %x %s", want.Events, want.Hash, got.Events, got.Hash, got.Panic)
		}
	})
}

// A world that is forked anywhere goes on as its original does, and leaves it
// alone, whatever the fork was before.
func TestAForkedWorldGoesOnTheSame(t *testing.T) {
	used := sim.NewWorld()
	rapid.Check(t, func(t *rapid.T) {
		plan := tickPlan()
		seed := rapid.Uint64().Draw(t, "seed")
		at := rapid.IntRange(0, 450).Draw(t, "fork at")
		tape := func() *sim.Choices { return sim.InTicks(grain, seeded{sim.NewChoices(seed)}) }
		rest := func() *sim.Choices { return sim.InTicks(grain, seeded{sim.NewChoices(seed + 1)}) }
		end := func(w *sim.World) sim.Result {
			c := rest()
			w.Watch(c, nil)
			stepped(w, c, 100_000)
			return w.End()
		}
		original, c := sim.NewWorld(), tape()
		original.Begin(plan, c, nil)
		stepped(original, c, at)
		print := original.Fingerprint(nil)

		used.CopyFrom(original)
		if used.Fingerprint(nil) != print {
			t.Fatal("a fork folds otherwise than its original")
		}
		one := end(used)
		if original.Fingerprint(nil) != print {
			t.Fatal("the fork's steps changed the original")
		}
		fresh := sim.NewWorld()
		fresh.CopyFrom(original)
		two := end(fresh)
		three := end(original)
		if one.Hash != three.Hash || two.Hash != three.Hash || one.Events != three.Events {
			t.Fatalf("forked after %d events: %x and %x, the original %x", at, one.Hash, two.Hash, three.Hash)
		}
	})
}

// seeded decides by a seed's streams.
type seeded struct{ c *sim.Choices }

func (s seeded) Draw(p sim.Purpose, actor int, n uint64) uint64 { return s.c.Below(p, actor, n) }
