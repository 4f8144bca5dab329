package run

import (
	"time"

	"vigil/core"
	"vigil/faults"
	"vigil/scenarios"
	"vigil/scenarios/monitor"
	"vigil/sim"
)

// Compile returns the plan of a scenario under these protections.
func Compile(s *scenarios.Scenario, p core.Protections) *sim.Plan { return compile(s, p, p) }

// compile is Compile with a server and workers that may differ.
func compile(s *scenarios.Scenario, server, workers core.Protections) *sim.Plan {
	plan := *s.Plan
	plan.Workers = append([]sim.WorkerPlan(nil), s.Plan.Workers...)
	protect(&plan, server, workers)
	return &plan
}

// protect has the processes of a plan run under these protections, but for
// those that are the document's by the plan.
func protect(plan *sim.Plan, server, workers core.Protections) {
	plan.Server.Protections = server
	if plan.PlainServer {
		plan.Server.Protections = core.Protections{}
	}
	for i := range plan.Workers {
		w := &plan.Workers[i]
		if w.Config.Protections = workers; w.Plain {
			w.Config.Protections = core.Protections{}
		}
	}
}

// The worst honest times where a plan leaves them to the simulator (sim.Plan).
const (
	latencyHigh = time.Millisecond
	openHigh    = 20 * time.Millisecond
	closeHigh   = 10 * time.Millisecond
	copyHigh    = 3 * time.Millisecond
	// reconnectHigh is how long a worker may take to connect again after its
	// connection broke or the server came back.
	reconnectHigh = 3 * time.Second
)

// SetupOf is what the monitors are told of a plan's runs.
func SetupOf(plan *sim.Plan) monitor.Setup {
	m := monitor.Setup{
		Reap: plan.Server.Reap, Grace: plan.Server.Grace, Scan: plan.Server.Scan(),
		Protections:  plan.Server.Protections,
		ServerLegacy: plan.Server.Legacy,
		// A heartbeat from the registration on is what keeps an idle worker (A3).
		IdleNeverReaped: len(plan.Workers) > 0,
		OpenBound:       highOr(plan.OpenTime, openHigh),
		ReleaseBound:    highOr(plan.CloseTime, closeHigh),
		CopyBound:       highOr(plan.CopyTime, copyHigh),
		NetworkBound:    highOr(plan.Latency, latencyHigh),
		FaultsOver:      plan.FaultsOver,
		Until:           plan.Until,
	}
	for i := range plan.Workers {
		w := &plan.Workers[i]
		m.IdleNeverReaped = m.IdleNeverReaped && w.Config.Protections.EagerHeartbeat
		m.Workers = append(m.Workers, monitor.Worker{
			Name: w.Name, Mode: w.Config.Mode, Blend: w.Config.Blend, Prober: w.Config.Prober,
			Legacy: w.Config.Legacy, Interval: w.Config.Interval, Timeout: w.Config.Timeout,
		})
	}
	// What a fault merely slows down is slow honestly.
	reconnects := false
	for i := range plan.Steps {
		do := &plan.Steps[i].Do
		if do.Kind != sim.ActFault {
			continue
		}
		switch f := &do.Fault; f.Kind {
		case faults.StarveHeartbeat, faults.StickEngine:
			for w := range m.Workers {
				if f.Worker != faults.Everyone && f.Worker != w {
					continue
				}
				m.Workers[w].Starved = true
				if f.Kind == faults.StickEngine {
					m.Workers[w].Held += f.For.High
					if f.For.Zero() {
						m.Workers[w].Held += plan.Until
					}
				}
			}
		case faults.BusyPool:
			m.PoolFull = true
		case faults.HostSuspend:
			m.ClockStands = true
		case faults.HangOpen:
			m.OpensHang = true
		case faults.SlowOpen:
			m.OpenBound += f.Amount.High
		case faults.SlowClose:
			m.ReleaseBound += f.Amount.High
		case faults.SlowCopy:
			m.CopyBound += f.Amount.High
		case faults.Delay:
			m.NetworkBound += f.Amount.High
		case faults.Cut:
			reconnects = reconnects || f.Reset
		case faults.ServerRestart:
			reconnects = true
		}
	}
	if reconnects {
		m.NetworkBound += reconnectHigh
	}
	return m
}

func highOr(s faults.Span, fallback time.Duration) time.Duration {
	if s.Zero() {
		return fallback
	}
	return s.High
}
