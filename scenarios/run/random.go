package run

import (
	"fmt"
	"strings"
	"time"

	"vigil/core"
	"vigil/faults"
	"vigil/scenarios"
	"vigil/scenarios/monitor"
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
	Slowest time.Duration // added to a memory operation, at most
	Last    time.Duration // when the last step may strike
	Until   time.Duration
	// Harsh: ids may be PIDs, a client may be of before liveness, workers may
	// start late and share their model, the device may be small. The server is
	// never of before liveness: it would have all the holes of its time (A9).
	Harsh bool
}

// GentleMenu is what the document survives: faults that stay below the window,
// no loss that its client never notices, no memory operation that never ends.
// What is left out is a hole of the document with a scenario of its own:
// server-restart (B4), hang-copy and hang-close (B2, B6), fail-close (B18), a
// pause beyond the window (B1).
func GentleMenu() *Menu {
	return &Menu{
		Workers: 4, Steps: 6, Longest: 70 * time.Second, Slowest: 15 * time.Second, Last: 300 * time.Second, Until: 600 * time.Second,
		Faults: []faults.Kind{
			faults.Kill, faults.Restart, faults.Cut, faults.Pause, faults.Delay, faults.StarveHeartbeat,
			faults.SlowOpen, faults.SlowClose, faults.SlowCopy, faults.FailOpen, faults.ServerFreeze, faults.HostSuspend,
		},
	}
}

// HarshMenu is every fault there is, for longer than any window.
func HarshMenu() *Menu {
	m := &Menu{
		Workers: 6, Steps: 8, Longest: 300 * time.Second, Slowest: 340 * time.Second, Last: 420 * time.Second, Until: 1600 * time.Second,
		Harsh: true,
	}
	for k := faults.None + 1; k < faults.Kinds; k++ {
		if d, ok := faults.Describe(k); ok && !d.Setting && k != faults.Resume && k != faults.Heal && k != faults.ServerStop {
			m.Faults = append(m.Faults, k) // a pause and a cut end by themselves, and a server that left in order stays away
		}
	}
	return m
}

// menuNamed is the menu that a scenario file names.
func menuNamed(name string) *Menu {
	if name == "harsh" {
		return HarshMenu()
	}
	return GentleMenu()
}

// worldActor is whose stream of the story's purpose a world is drawn from: no
// step of a random story has so high a number.
const worldActor = 63

// draw makes the stage of a run of its own, for a world from the tape.
func (p *Player) draw(s *scenarios.Scenario, st *stage, tape *sim.Choices) {
	plan := DrawPlan(s, tape)
	protect(plan, p.protections, p.workers)
	setup := SetupOf(plan)
	st.plan, st.monitors, st.log = plan, monitor.New(setup), monitor.NewLog(setup)
}

// Drawn is the world of the scenario's last run, in words; empty where the file
// says what the world is.
func (p *Player) Drawn(s *scenarios.Scenario) string {
	if st := p.stages[s]; st != nil && s.Random != "" {
		return worldInWords(st.plan)
	}
	return ""
}

// RandomPlan draws a world. draw decides on a number below n; 0 is the
// plainest, so that a shrinker that drives draws to 0 drives the world to one
// worker and no fault.
func RandomPlan(menu *Menu, draw func(what string, n int) int) *sim.Plan {
	plan := &sim.Plan{Server: core.DefaultServerConfig(), Until: menu.Until, PromptLow: 16, PromptHigh: 64}
	plan.Server.ChunkTokens = 16
	workers := 1 + draw("workers", menu.Workers)
	plan.Workers, plan.Steps = make([]sim.WorkerPlan, 0, workers), make([]sim.Step, 0, menu.Steps)
	pids := menu.Harsh && draw("ids", 8) == 7
	for i := 0; i < workers; i++ {
		w := sim.WorkerPlan{Name: fmt.Sprintf("w%d", i+1), Config: core.DefaultWorkerConfig(), Pod: i}
		w.Config.ChunkTokens = 16
		if draw("mode", 4) == 3 {
			w.Config.Mode = core.ModeEngineDriven
		}
		w.Config.Blend = draw("blend", 2) == 1
		every := time.Duration(5+draw("traffic", 56)) * time.Second
		w.Traffic.Every = faults.Span{Low: every / 2, High: every}
		if menu.Harsh {
			randomWorker(menu, &w, pids, draw)
		}
		plan.Workers = append(plan.Workers, w)
	}
	if menu.Harsh {
		if draw("device", 8) == 7 { // room for two of them
			plan.DeviceBytes = 2 * 64 * 4096
		}
	}
	leaving := make([]bool, workers)
	for n := 0; n < menu.Steps; n++ {
		if draw("another step", 3) == 0 {
			continue
		}
		plan.Steps = append(plan.Steps, randomStep(menu, plan, leaving, draw))
	}
	plan.FaultsOver = plan.Settled()
	if plan.FaultsOver >= plan.Until {
		plan.FaultsOver = 0
	}
	return plan
}

// randomWorker draws what only a harsh world has.
func randomWorker(menu *Menu, w *sim.WorkerPlan, pids bool, draw func(string, int) int) {
	if w.PIDIdentity = pids; pids {
		w.Pod = 0 // or all of them would be PID 1
	}
	if draw("late", 4) == 3 {
		at := time.Duration(draw("start", int(menu.Last/time.Second))) * time.Second
		w.Start = faults.Span{Low: at, High: at + time.Second}
	}
	if draw("idle at first", 4) == 3 {
		w.Traffic.From = time.Duration(draw("from", 600)) * time.Second
	}
	if draw("model", 2) == 1 {
		w.Config.Model = "another"
	}
	w.Config.Legacy = draw("old client", 16) == 15
}

// randomStep draws one step of the story.
func randomStep(menu *Menu, plan *sim.Plan, leaving []bool, draw func(string, int) int) sim.Step {
	at := time.Duration(20+draw("at", int(menu.Last/time.Second)-20)) * time.Second
	step := sim.Step{At: faults.Span{Low: at, High: at + time.Second}}
	who := draw("who", len(plan.Workers))
	kind := draw("what", len(menu.Faults)+1)
	if kind == len(menu.Faults) {
		leaving[who] = true
		step.Do = sim.Action{Kind: sim.ActShutdown, Worker: who, Prompt: -1, On: true} // as the loader has it
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
		if f.Reset = draw("reset", 2) == 1; f.Reset && !menu.Harsh {
			// A break that no ping meets takes a request with it unseen (B7).
			f.For = seconds("for", 30, menu.Longest)
		}
	case faults.Pause, faults.StarveHeartbeat, faults.HostSuspend:
		f.For = seconds("for", 1, menu.Longest)
	case faults.ServerFreeze, faults.ServerRestart, faults.BusyPool:
		f.Worker, f.For = faults.Server, seconds("for", 1, menu.Longest)
	case faults.DeviceOutOfMemory:
		f.Worker, f.For = faults.Server, seconds("for", 1, menu.Longest)
		f.Bytes = uint64(1+draw("room", 3)) * 64 * 4096
	case faults.Delay:
		f.Amount, f.For = seconds("amount", 1, 4*time.Second), seconds("for", 1, menu.Longest)
	case faults.SlowOpen, faults.SlowClose, faults.SlowCopy:
		f.Amount, f.For = seconds("amount", 1, menu.Slowest), seconds("for", 1, menu.Longest)
		f.Count = 1 + draw("count", 3)
	case faults.StickEngine:
		f.For = seconds("for", 1, menu.Longest)
		draw("count", 3) // of no use here, and drawn all the same: the tapes of before keep their meaning
	default:
		f.For, f.Count = seconds("for", 1, menu.Longest), 1+draw("count", 3)
	}
	step.Do = sim.Action{Kind: sim.ActFault, Fault: f, Worker: f.Worker}
	return step
}

// worldInWords is a drawn world for a person.
func worldInWords(plan *sim.Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d workers:", len(plan.Workers))
	for i := range plan.Workers {
		w := &plan.Workers[i]
		fmt.Fprintf(&b, " %s(", w.Name)
		if w.Config.Mode == core.ModeEngineDriven {
			b.WriteString("engine-driven, ")
		}
		for _, word := range []struct {
			on   bool
			word string
		}{{w.Config.Blend, "blend"}, {w.PIDIdentity, "PID as id"}, {w.Config.Legacy, "old client"}, {w.Config.Model != core.DefaultWorkerConfig().Model, "another model"}} {
			if word.on {
				b.WriteString(word.word + ", ")
			}
		}
		if w.Start.High > 0 {
			fmt.Fprintf(&b, "start %v, ", w.Start.Low)
		}
		if w.Traffic.From > 0 {
			fmt.Fprintf(&b, "traffic from %v, ", w.Traffic.From)
		}
		fmt.Fprintf(&b, "a request each %v)", w.Traffic.Every.High)
	}
	if plan.DeviceBytes > 0 {
		fmt.Fprintf(&b, "; a device of %d bytes", plan.DeviceBytes)
	}
	for i := range plan.Steps {
		s := &plan.Steps[i]
		who := "the server"
		if s.Do.Worker >= 0 && s.Do.Worker < len(plan.Workers) {
			who = plan.Workers[s.Do.Worker].Name
		}
		if s.Do.Kind != sim.ActFault {
			fmt.Fprintf(&b, "; at %v shutdown %s", s.At.Low, who)
			continue
		}
		f := &s.Do.Fault
		fmt.Fprintf(&b, "; at %v %s %s", s.At.Low, f.Kind, who)
		if f.For.High > 0 {
			fmt.Fprintf(&b, " for %v", f.For.High)
		}
		if f.Amount.High > 0 {
			fmt.Fprintf(&b, " by %v", f.Amount.High)
		}
		if f.Count > 0 {
			fmt.Fprintf(&b, " %d times", f.Count)
		}
		if f.Kind == faults.Cut {
			fmt.Fprintf(&b, " %s", faults.WaysWords[f.Ways])
			if f.Reset {
				b.WriteString(" reset")
			}
		}
		if f.Silent {
			b.WriteString(" silent")
		}
		if f.Same {
			b.WriteString(" same PID")
		}
		if f.Bytes > 0 {
			fmt.Fprintf(&b, " room %d", f.Bytes)
		}
	}
	return b.String()
}
