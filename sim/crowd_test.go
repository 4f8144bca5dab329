package sim_test

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"
	"time"

	"vigil/faults"
	"vigil/sim"
)

// What a world of many workers costs, and that looking ahead in it changes
// nothing else.

// crowdOf is the standard world of so many workers.
func crowdOf(workers int, lasts time.Duration) *sim.Plan {
	plan := worldOf(workers, lasts)
	// The main loop opens one worker's memory at a time: at 10 ms each, 100,000
	// of them would still wait at the end.
	plan.OpenTime = faults.Span{Low: time.Microsecond, High: 2 * time.Microsecond}
	return plan
}

// BenchmarkWorkers is the cost of an event by the number of workers.
func BenchmarkWorkers(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			plan := crowdOf(n, 5*time.Minute)
			w, c := sim.NewWorld(), sim.NewChoices(1)
			var events uint64
			for b.Loop() {
				c.Reseed(1)
				events += w.Run(plan, c, nil).Events
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
		})
	}
}

// A world in which much is fetched ahead is a function of plan and tape like
// any other: in a used world, after a small one, and when its tape is played
// again.
func TestCrowdIsAFunctionOfPlanAndTape(t *testing.T) {
	plan := crowdOf(1000, 90*time.Second)
	w := sim.NewWorld()
	first := w.Run(plan, sim.NewChoices(3), nil)
	if first.Panic != "" {
		t.Fatal(first.Panic)
	}
	w.Run(standardPlan(time.Minute), sim.NewChoices(3), nil)
	var tape sim.Tape
	c := sim.NewChoices(3)
	c.Record(&tape)
	if again := w.Run(plan, c, nil); again.Hash != first.Hash || again.Events != first.Events {
		t.Fatalf("%+v in a fresh world, %+v in a used one", first, again)
	}
	if replayed := sim.NewWorld().Run(plan, sim.ChoicesFrom(&tape), nil); replayed.Hash != first.Hash {
		t.Fatalf("recorded %x, replayed %x", first.Hash, replayed.Hash)
	}
}

// The cost of an event grows no faster than the logarithm of the number of
// workers: from 100 to 100,000 by 2.5 times. Each size counts with its best of
// several runs, taken in turns, so that both meet the same noise. The ratio is
// judged by VIGIL_FULL=1 alone, which make nightly sets: beside other tests it
// says little, so a plain run plays a smaller crowd and prints.
func TestCostOfAnEventGrowsNoFasterThanLog(t *testing.T) {
	if testing.Short() {
		t.Skip("a measurement; make nightly judges it")
	}
	full := os.Getenv("VIGIL_FULL") == "1"
	few, many, rounds, lasts := 100, 10_000, 2, time.Minute
	if full {
		many, rounds, lasts = 100_000, 5, 5*time.Minute
	}
	small, large := newCost(few, lasts), newCost(many, lasts)
	for range rounds {
		for range 20 {
			small.run(t)
		}
		large.run(t)
	}
	ratio, bound := large.best/small.best, math.Log(float64(many))/math.Log(float64(few))
	t.Logf("%d workers: %.0f ns an event; %d workers: %.0f ns; ratio %.2f, log n allows %.2f", few, small.best, many, large.best, ratio, bound)
	if full && ratio > bound {
		t.Errorf("an event of %d workers costs %.2f times one of %d; log n allows %.2f", many, ratio, few, bound)
	}
}

// cost is one size of world and the best that an event of it cost, in ns.
type cost struct {
	plan    *sim.Plan
	world   *sim.World
	choices *sim.Choices
	best    float64
}

func newCost(workers int, lasts time.Duration) *cost {
	return &cost{crowdOf(workers, lasts), sim.NewWorld(), sim.NewChoices(1), math.Inf(1)}
}

func (c *cost) run(t *testing.T) {
	runtime.GC() // the other world's garbage is not this one's cost
	c.choices.Reseed(1)
	began := time.Now()
	result := c.world.Run(c.plan, c.choices, nil)
	took := time.Since(began)
	if result.Panic != "" {
		t.Fatal(result.Panic)
	}
	c.best = min(c.best, float64(took.Nanoseconds())/float64(result.Events))
}
