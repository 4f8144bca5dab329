package run

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"vigil/core"
	"vigil/scenarios"
	"vigil/sim"
)

// A drawn world becomes a file that a person can read, and the file is that
// world again: to the last field of the plan.
func TestARandomWorldIsWrittenAndReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		menu := GentleMenu()
		if rapid.Bool().Draw(t, "harsh") {
			menu = HarshMenu()
		}
		plan := RandomPlan(menu, func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(t, what) })
		text := scenarios.Write(Concrete("X1", "drawn", "a drawn world", plan, nil))
		back, err := scenarios.Parse("drawn.yaml", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !reflect.DeepEqual(back[0].Plan, plan) {
			t.Fatalf("was %+v\nis  %+v\n%s", plan, back[0].Plan, text)
		}
	})
}

// And the run in it is the run: the same decisions give the same hash.
func TestAConcreteWorldPlaysLikeTheDrawnOne(t *testing.T) {
	list, err := scenarios.Find("random")
	if err != nil {
		t.Fatal(err)
	}
	for seed := uint64(0); seed < 40; seed++ {
		p := NewPlayer("document", core.Document())
		r, tape := p.Record(list[0], seed)
		s := Concrete("X1", "drawn", "a drawn world", DrawPlan(list[0], sim.ChoicesFrom(tape)), nil)
		tape.Rewind()
		rest := &sim.Tape{}
		for i := range tape.Streams {
			if !IsWorldStream(&tape.Streams[i]) {
				rest.Streams = append(rest.Streams, tape.Streams[i])
			}
		}
		if again := p.PlayTape(s, seed, sim.ChoicesFrom(rest), nil); again.Hash != r.Hash {
			t.Fatalf("seed %d: hash %016x as drawn, %016x as written", seed, uint64(r.Hash), uint64(again.Hash))
		}
	}
}
