package run

import (
	"fmt"
	"time"

	"vigil/core"
	"vigil/faults"
	"vigil/sim"
)

// Menu is what a random world may be made of.
type Menu struct {
	Workers int           // at most
	Steps   int           // faults and actions at most
	Faults  []faults.Kind // which faults may strike
	// Longest is how long a cut, pause or freeze may last. Below the window the
	// document survives them; above it its holes open.
	Longest time.Duration
}

// GentleMenu is what the document survives: faults that stay below the window,
// no loss that its client never notices, no memory operation that never ends.
// What is left out is a hole of the document with a scenario of its own:
// server-restart (B4), hang-copy and hang-close (B2, B6), fail-close (B18), a
// pause beyond the window (B1).
func GentleMenu() *Menu {
	return &Menu{
		Workers: 4, Steps: 6, Longest: 70 * time.Second,
		Faults: []faults.Kind{
			faults.Kill, faults.Restart, faults.Cut, faults.Pause, faults.Delay, faults.StarveHeartbeat,
			faults.SlowOpen, faults.SlowClose, faults.SlowCopy, faults.FailOpen, faults.ServerFreeze, faults.HostSuspend,
		},
	}
}

// RandomPlan draws a world of up to ten minutes. draw decides on a number below
// n; 0 is the plainest, so that a shrinker that drives draws to 0 drives the
// world to one worker and no fault.
func RandomPlan(menu *Menu, draw func(what string, n int) int) *sim.Plan {
	plan := &sim.Plan{Server: core.DefaultServerConfig(), Until: 600 * time.Second, PromptLow: 16, PromptHigh: 64}
	plan.Server.ChunkTokens = 16
	workers := 1 + draw("workers", menu.Workers)
	for i := 0; i < workers; i++ {
		w := sim.WorkerPlan{Name: fmt.Sprintf("w%d", i+1), Config: core.DefaultWorkerConfig(), Pod: i}
		w.Config.ChunkTokens = 16
		if draw("mode", 4) == 3 {
			w.Config.Mode = core.ModeEngineDriven
		}
		w.Config.Blend = draw("blend", 2) == 1
		every := time.Duration(5+draw("traffic", 56)) * time.Second
		w.Traffic.Every = faults.Span{Low: every / 2, High: every}
		plan.Workers = append(plan.Workers, w)
	}
	leaving := make([]bool, workers)
	for n := 0; n < menu.Steps; n++ {
		if draw("another step", 3) == 0 {
			continue
		}
		plan.Steps = append(plan.Steps, randomStep(menu, plan, leaving, draw))
	}
	plan.FaultsOver = settled(plan.Steps)
	return plan
}

// randomStep draws one step of the story.
func randomStep(menu *Menu, plan *sim.Plan, leaving []bool, draw func(string, int) int) sim.Step {
	at := time.Duration(20+draw("at", 280)) * time.Second
	step := sim.Step{At: faults.Span{Low: at, High: at + time.Second}}
	who := draw("who", len(plan.Workers))
	kind := draw("what", len(menu.Faults)+1)
	if kind == len(menu.Faults) {
		leaving[who] = true
		step.Do = sim.Action{Kind: sim.ActShutdown, Worker: who}
		return step
	}
	f := faults.Fault{Kind: menu.Faults[kind], Worker: who}
	seconds := func(what string, low int, high time.Duration) faults.Span {
		return faults.Fixed(time.Duration(low+draw(what, int(high/time.Second)-low+1)) * time.Second)
	}
	switch f.Kind {
	case faults.Kill:
		f.Silent = draw("silent", 2) == 1
	case faults.Restart:
		f.Same = draw("same", 2) == 1
	case faults.Cut:
		f.Ways = core.CutWays(draw("ways", 3))
		f.For = seconds("for", 1, menu.Longest)
		if f.Reset = draw("reset", 2) == 1; f.Reset {
			// A break that no ping meets takes a request with it unseen (B7).
			f.For = seconds("for", 30, menu.Longest)
		}
	case faults.Pause, faults.StarveHeartbeat, faults.HostSuspend:
		f.For = seconds("for", 1, menu.Longest)
	case faults.ServerFreeze:
		f.Worker, f.For = faults.Server, seconds("for", 1, menu.Longest)
	case faults.Delay:
		f.Amount, f.For = seconds("amount", 1, 4*time.Second), seconds("for", 1, menu.Longest)
	case faults.SlowOpen, faults.SlowClose, faults.SlowCopy:
		f.Amount, f.For = seconds("amount", 1, 15*time.Second), seconds("for", 1, menu.Longest)
		f.Count = 1 + draw("count", 3)
	default:
		f.For, f.Count = seconds("for", 1, menu.Longest), 1+draw("count", 3)
	}
	step.Do = sim.Action{Kind: sim.ActFault, Fault: f}
	return step
}

// settled is when the last fault has ceased to act at the latest.
func settled(steps []sim.Step) time.Duration {
	over := time.Second
	for i := range steps {
		f := &steps[i].Do.Fault
		over = max(over, steps[i].At.High+f.For.High+f.Amount.High*time.Duration(max(1, f.Count)))
	}
	return over
}
