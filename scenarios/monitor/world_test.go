package monitor_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"vigil/core"
	"vigil/faults"
	"vigil/scenarios/monitor"
	"vigil/sim"
)

// The monitors against the production core in the simulated world: what the
// design document promises holds, and what it is known to break is found.

func seconds(low, high float64) faults.Span {
	return faults.Span{Low: time.Duration(low * 1e9), High: time.Duration(high * 1e9)}
}

// world is a plan of n serving workers with traffic.
func world(n int, until time.Duration) *sim.Plan {
	p := &sim.Plan{Server: core.DefaultServerConfig(), Until: until, PromptLow: 16, PromptHigh: 64}
	p.Server.ChunkTokens = 16
	p.Server.Protections = core.Document()
	for i := 0; i < n; i++ {
		c := core.DefaultWorkerConfig()
		c.ChunkTokens = 16
		p.Workers = append(p.Workers, sim.WorkerPlan{
			Name: fmt.Sprintf("w%d", i+1), Config: c, Pod: i,
			Traffic: sim.Traffic{Every: seconds(5, 30)}, Start: seconds(0, 2),
		})
	}
	return p
}

func (c *check) step(low, high float64, f faults.Fault) {
	c.plan.Steps = append(c.plan.Steps, sim.Step{At: seconds(low, high), Do: sim.Action{Kind: sim.ActFault, Worker: f.Worker, Fault: f}})
}

func (c *check) act(low, high float64, a sim.Action) {
	c.plan.Steps = append(c.plan.Steps, sim.Step{At: seconds(low, high), Do: a})
}

type check struct {
	plan *sim.Plan
	over float64 // faults over, seconds
}

func setupOf(c *check) monitor.Setup {
	p := c.plan
	s := monitor.Setup{
		Reap: p.Server.Reap, Grace: p.Server.Grace, Scan: p.Server.Scan(), Protections: p.Server.Protections,
		ServerLegacy: p.Server.Legacy,
		OpenBound:    20 * time.Millisecond, ReleaseBound: 10 * time.Millisecond,
		CopyBound: 3 * time.Millisecond, NetworkBound: time.Millisecond,
		FaultsOver: time.Duration(c.over * 1e9), Until: p.Until,
	}
	for i := range p.Workers {
		w := &p.Workers[i]
		s.Workers = append(s.Workers, monitor.Worker{
			Name: w.Name, Mode: w.Config.Mode, Blend: w.Config.Blend, Prober: w.Config.Prober,
			Legacy: w.Config.Legacy, Interval: w.Config.Interval, Timeout: w.Config.Timeout,
		})
	}
	return s
}

func TestDocumentInTheWorld(t *testing.T) {
	const seeds = 40
	tests := []struct {
		name   string
		n      int
		until  time.Duration
		tell   func(c *check)
		breaks []string // by at least one seed; any other is an error
	}{
		{"no faults", 4, 20 * time.Minute, func(c *check) { c.over = 60 }, nil},
		{"A1 crash after serving", 4, 10 * time.Minute, func(c *check) {
			c.over = 101
			c.step(60, 100, faults.Fault{Kind: faults.Kill, Worker: 0})
		}, nil},
		{"A1 engine-driven and blend", 4, 10 * time.Minute, func(c *check) {
			c.over = 101
			c.plan.Workers[0].Config.Mode = core.ModeEngineDriven
			c.plan.Workers[1].Config.Mode = core.ModeEngineDriven
			c.plan.Workers[2].Config.Blend = true
			c.plan.Workers[3].Config.Blend = true
			c.step(60, 100, faults.Fault{Kind: faults.Kill, Worker: 0})
			c.step(60, 100, faults.Fault{Kind: faults.Kill, Worker: 2, Silent: true})
		}, nil},
		{"A3 idle past the grace", 2, 70 * time.Minute, func(c *check) {
			c.over = 10
			c.plan.Workers[0].Traffic = sim.Traffic{}
		}, []string{"CONVERGE"}},
		{"A5 and A6 partitions", 4, 30 * time.Minute, func(c *check) {
			c.over = 700
			for i := 0; i < 4; i++ {
				c.step(60, 100, faults.Fault{Kind: faults.Cut, Worker: i, For: seconds(20, 590), Reset: i%2 == 0})
			}
		}, nil},
		{"A7 crash and restart", 3, 15 * time.Minute, func(c *check) {
			c.over = 140
			c.step(60, 100, faults.Fault{Kind: faults.Kill, Worker: 0})
			c.step(110, 130, faults.Fault{Kind: faults.Restart, Worker: 0})
		}, nil},
		{"A8 PID reuse", 2, 15 * time.Minute, func(c *check) {
			c.over = 140
			c.plan.Workers[0].PIDIdentity = true
			c.step(60, 100, faults.Fault{Kind: faults.Restart, Worker: 0, Same: true})
		}, []string{"INTEGRITY"}},
		{"A14 busy pool", 3, 15 * time.Minute, func(c *check) {
			c.over = 190
			c.step(60, 100, faults.Fault{Kind: faults.BusyPool, Worker: faults.Server, For: seconds(20, 60)})
		}, nil},
		{"A20 reaped again and again", 2, 40 * time.Minute, func(c *check) {
			c.over = 2000
			for i := 0.0; i < 6; i++ {
				c.step(60+300*i, 70+300*i, faults.Fault{Kind: faults.Cut, Worker: 0, For: seconds(160, 200)})
			}
		}, nil},
		{"A9 old client", 2, 20 * time.Minute, func(c *check) {
			c.over = 10
			c.plan.Workers[0].Config.Legacy = true
		}, nil},
		{"A9 old server", 2, 20 * time.Minute, func(c *check) {
			c.over = 10
			c.plan.Server.Legacy = true
		}, nil},
		{"A10 clean shutdown", 4, 10 * time.Minute, func(c *check) {
			c.over = 200
			c.plan.Workers[1].Config.Mode = core.ModeEngineDriven
			c.plan.Workers[2].Config.Blend = true
			for i := 0; i < 3; i++ {
				c.act(60, 160, sim.Action{Kind: sim.ActShutdown, Worker: i})
			}
		}, nil},
		{"A11 shutdown during recovery", 2, 15 * time.Minute, func(c *check) {
			c.over = 300
			c.step(60, 60, faults.Fault{Kind: faults.Cut, Worker: 0, For: seconds(140, 200)})
			c.act(200, 290, sim.Action{Kind: sim.ActShutdown, Worker: 0})
		}, nil},
		{"A15 reap 0", 2, 15 * time.Minute, func(c *check) {
			c.over = 130
			c.plan.Server.Reap, c.plan.Server.Grace = 0, 0
			c.step(60, 100, faults.Fault{Kind: faults.Kill, Worker: 0})
		}, nil},
		{"A17 server stops", 4, 5 * time.Minute, func(c *check) {
			c.over = 200
			c.plan.Workers[0].Config.Mode = core.ModeEngineDriven
			c.step(100, 150, faults.Fault{Kind: faults.ServerStop, Worker: faults.Server})
		}, []string{"ONCE"}},
		{"B1 pause, reap, resume", 2, 20 * time.Minute, func(c *check) {
			c.over = 400
			c.step(96, 97, faults.Fault{Kind: faults.Pause, Worker: 0, For: seconds(160, 170)})
		}, []string{"CONVERGE", "TERMINAL"}},
		{"B2 release hangs", 4, 20 * time.Minute, func(c *check) {
			c.over = 400
			c.step(10, 10, faults.Fault{Kind: faults.HangClose, Worker: 0})
			c.step(100, 100, faults.Fault{Kind: faults.Kill, Worker: 0})
			c.step(110, 110, faults.Fault{Kind: faults.Kill, Worker: 1})
		}, []string{"ISOLATE", "RECLAIM", "VISIBLE"}},
		{"B3 server frozen", 8, 20 * time.Minute, func(c *check) {
			c.over = 400
			c.step(200, 200, faults.Fault{Kind: faults.ServerFreeze, Worker: faults.Server, For: seconds(130, 130)})
		}, []string{"NO-FALSE-REAP", "ONCE"}},
		{"B4 server restarts between pings", 4, 20 * time.Minute, func(c *check) {
			c.over = 110
			c.step(97, 102, faults.Fault{Kind: faults.ServerRestart, Worker: faults.Server})
		}, []string{"CONVERGE", "TERMINAL"}},
		{"host suspended", 3, 20 * time.Minute, func(c *check) {
			c.over = 400
			c.step(96, 120, faults.Fault{Kind: faults.HostSuspend, Worker: faults.Everyone, For: seconds(160, 200)})
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &check{plan: world(tt.n, tt.until)}
			tt.tell(c)
			c.plan.FaultsOver = time.Duration(c.over * 1e9)
			m := monitor.New(setupOf(c))
			w := sim.NewWorld()
			broken := map[string]int{}
			said := map[string]string{}
			for seed := uint64(0); seed < seeds; seed++ {
				m.Reset()
				result := w.Run(c.plan, sim.NewChoices(seed), m)
				if result.Panic != "" {
					t.Fatal(result.Panic)
				}
				m.Finish(result.End)
				seen := map[string]bool{}
				for _, v := range m.Violations() {
					if !seen[v.Invariant] {
						seen[v.Invariant] = true
						broken[v.Invariant]++
						said[v.Invariant] = fmt.Sprintf("seed %d at %v: %s", seed, time.Duration(v.At), v.Message)
					}
				}
			}
			for id, n := range broken {
				if !slices.Contains(tt.breaks, id) {
					t.Errorf("%s broke in %d of %d seeds: %s", id, n, seeds, said[id])
				} else {
					t.Logf("%s broke in %d of %d seeds: %s", id, n, seeds, said[id])
				}
			}
			for _, id := range tt.breaks {
				if broken[id] == 0 {
					t.Errorf("%s never broke", id)
				}
			}
		})
	}
}
