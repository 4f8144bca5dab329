package run

import (
	"testing"
	"time"

	"vigil/core"
	"vigil/scenarios"
	"vigil/sim"
)

func TestTmp(t *testing.T) {
	list, err := scenarios.Find("A16x")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []struct {
		name string
		p    core.Protections
	}{{"hardened", core.Hardened()}, {"document", core.Document()}} {
		r, err := Exhaust(list[0], d.name, d.p, ExhaustOptions{Deadline: 40 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d states (%.0f/s), %d transitions, %d schedules, %d merged, %d skipped, depth %d, complete %v %s in %v", d.name, r.States, float64(r.States)/r.Took.Seconds(), r.Transitions, r.Schedules, r.Merged, r.Skipped, r.Depth, r.Complete, r.Reason, r.Took)
		for i, v := range r.Violations {
			t.Logf("  %v %s %v declared=%v %s", v.At, v.Invariant, v.Actors, v.Declared, v.Message)
			again := NewPlayer(d.name, d.p).PlayTape(list[0], 0, sim.ChoicesFrom(r.Tapes[i]), nil)
			for _, w := range again.Violations {
				t.Logf("      again: %v %s %v", w.At, w.Invariant, w.Message)
			}
		}
	}
}
