package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"vigil/core"
	"vigil/faults"
	"vigil/sim"
)

// The forecast against the production core in the simulator, where false reaps
// are frequent enough to be counted.

// reapCount counts the decisions of the reaper.
type reapCount struct{ reaps int }

func (c *reapCount) Observe(r *core.Record) {
	if r.Kind == core.ReapDecided {
		c.reaps++
	}
}

// simulated plays worlds of so many workers, each struck as strike says, and
// returns how many reaps there were.
func simulated(t *testing.T, protections core.Protections, worlds, workers int, until time.Duration, strike func(random *rand.Rand) []sim.Step) int {
	t.Helper()
	world, choices, count := sim.NewWorld(), sim.NewChoices(0), &reapCount{}
	for n := range worlds {
		plan := &sim.Plan{Server: core.DefaultServerConfig(), Until: until, PromptLow: 16, PromptHigh: 64}
		plan.Server.ChunkTokens = 16
		plan.Server.Protections = protections
		for i := range workers {
			w := sim.WorkerPlan{Name: fmt.Sprintf("w%d", i+1), Config: core.DefaultWorkerConfig(), Pod: i}
			w.Config.ChunkTokens = 16
			w.Config.Protections = protections
			// A request now and then, because a context is judged by the window only
			// once it was used; too seldom to count among the stamps.
			w.Traffic.Every = faults.Span{Low: 60 * time.Second, High: 120 * time.Second}
			if !protections.EagerHeartbeat {
				w.Traffic.Every = faults.Fixed(4 * time.Second)
				w.Traffic.To = 10 * time.Second
			}
			plan.Workers = append(plan.Workers, w)
		}
		plan.Steps = strike(rand.New(rand.NewPCG(uint64(n), 7)))
		choices.Reseed(uint64(n))
		if r := world.Run(plan, choices, count); r.Panic != "" {
			t.Fatal(r.Panic)
		}
	}
	return count.reaps
}

func freeze(kind faults.Kind, worker int, at, lasts float64) sim.Step {
	return sim.Step{
		At: faults.Fixed(time.Duration(at * float64(time.Second))),
		Do: sim.Action{Kind: sim.ActFault, Worker: worker, Fault: faults.Fault{
			Kind: kind, Worker: worker, For: faults.Fixed(time.Duration(lasts * float64(time.Second))),
		}},
	}
}

func agree(t *testing.T, what string, got float64, reaps int, want float64) {
	t.Helper()
	// Three deviations of a count, and the 5% that the forecast promises.
	allowed := 0.05 + 3/math.Sqrt(float64(reaps))
	off := math.Abs(got-want) / want
	t.Logf("%s: the core reaped at %.4g, the forecast is %.4g: off by %.1f%%", what, got, want, 100*off)
	if !(off <= allowed) {
		t.Errorf("%s: the core reaped at %.4g, the forecast is %.4g: off by %.1f%%, more than %.1f%%", what, got, want, 100*off, 100*allowed)
	}
}

const (
	strikeMean = 60.0
	// longestStrike is above all that are drawn, so that each run sees the end of its own.
	longestStrike = 900.0
)

// Under the document each worker is frozen once: nobody registers a worker again
// that was reaped without noticing (B1), so it cannot be reaped twice.
func TestTheDocumentReapsPausedWorkersAsForecast(t *testing.T) {
	const worlds, workers, perSecond = 2500, 16, 1e-7
	if testing.Short() {
		t.Skip("plays some thousand worlds")
	}
	reaps := simulated(t, core.Document(), worlds, workers, 1200*time.Second, func(random *rand.Rand) (steps []sim.Step) {
		for w := range workers {
			steps = append(steps, freeze(faults.Pause, w, 120+60*random.Float64(), min(longestStrike, random.ExpFloat64()*strikeMean)))
		}
		return steps
	})
	f := one(t, &Deployment{Pauses: []Cause{{PerSecond: perSecond, Lasts: exponential{strikeMean}}}}, 120*time.Second, 10*time.Second)
	agree(t, "one pause", float64(reaps)/worlds/workers, reaps, f.FalseReaps/year/perSecond)
}

// Under hardened a worker that was reaped comes back and can be reaped again,
// for an hour of frequent pauses.
func TestTheHardenedCoreReapsPausedWorkersAsForecast(t *testing.T) {
	const worlds, workers, hour, settled, perSecond = 600, 8, 3600.0, 200.0, 10.0 / 3600
	if testing.Short() {
		t.Skip("plays some hundred worlds")
	}
	reaps := simulated(t, core.Hardened(), worlds, workers, hour*time.Second, func(random *rand.Rand) (steps []sim.Step) {
		for w := range workers {
			for at := settled + random.ExpFloat64()/perSecond; at < hour; at += random.ExpFloat64() / perSecond {
				lasts := random.ExpFloat64() * strikeMean
				steps = append(steps, freeze(faults.Pause, w, at, lasts))
				at += lasts
			}
		}
		return steps
	})
	f := one(t, &Deployment{Hardened: true, Pauses: []Cause{{PerSecond: perSecond, Lasts: exponential{strikeMean}}}}, 120*time.Second, 10*time.Second)
	agree(t, "pauses", float64(reaps)/worlds/workers/(hour-settled), reaps, f.FalseReaps/year)
}

func TestTheCoreReapsAfterStallsAsForecast(t *testing.T) {
	const worlds, workers, perSecond = 4000, 8, 1e-7
	if testing.Short() {
		t.Skip("plays some thousand worlds")
	}
	strike := func(random *rand.Rand) []sim.Step {
		return []sim.Step{freeze(faults.ServerFreeze, faults.Server, 120+60*random.Float64(), min(longestStrike, random.ExpFloat64()*strikeMean))}
	}
	reaps := simulated(t, core.Document(), worlds, workers, 1200*time.Second, strike)
	f := one(t, &Deployment{Stalls: []Cause{{PerSecond: perSecond, Lasts: exponential{strikeMean}}}}, 120*time.Second, 10*time.Second)
	agree(t, "one stall under document", float64(reaps)/worlds/workers, reaps/workers, f.FalseReaps/year/perSecond)
	if reaps := simulated(t, core.Hardened(), worlds/4, workers, 1200*time.Second, strike); reaps > 0 {
		t.Errorf("the hardened core reaped %d times after stalls; the forecast is 0", reaps)
	}
}
