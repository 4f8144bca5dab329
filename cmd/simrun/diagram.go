package main

import (
	"fmt"

	"vigil/core"
	"vigil/core/wire"
	"vigil/faults"
	"vigil/reports"
	"vigil/reports/spacetime"
	"vigil/scenarios"
	"vigil/scenarios/run"
	"vigil/sim"
)

// diagram observes one run for the page that shows it.
type diagram struct {
	*spacetime.Diagram
	story *run.Story
}

// newDiagram begins the diagram of a run of a scenario.
func newDiagram(head spacetime.Head, s *scenarios.Scenario) *diagram {
	names := make([]string, len(s.Plan.Workers))
	for i := range names {
		names[i] = s.WorkerName(i)
	}
	d := &diagram{spacetime.New(head, names), run.NewStory(s, true)}
	d.TypeName = func(number uint64) string { return wire.Type(number).String() }
	for i := range s.Plan.Steps {
		d.Steps = append(d.Steps, stepOf(s, i))
	}
	return d
}

// Observe takes one record of the run.
func (d *diagram) Observe(r *core.Record) {
	d.Add(r, d.story.Say(r), reports.Told(r), reports.Alarming(r))
}

// stepOf is a step of a scenario as the diagram marks it.
func stepOf(s *scenarios.Scenario, i int) spacetime.Step {
	do := &s.Plan.Steps[i].Do
	step := spacetime.Step{Label: s.Words(i), Worker: spacetime.Everyone}
	switch {
	case do.Worker == faults.Server:
		step.Worker = spacetime.Server
	case do.Worker >= 0:
		step.Worker = do.Worker
	}
	switch f := &do.Fault; f.Kind {
	case faults.None, faults.Pause, faults.Cut, faults.ServerFreeze, faults.HostSuspend, faults.Kill, faults.Restart, faults.ServerRestart:
		// the records say how long it acts
	default:
		step.For = f.For.High
	}
	return step
}

// headOf is what a page says of a run of a scenario beside its records.
func headOf(sc selected, seed uint64, c choice) spacetime.Head {
	server := &sc.Plan.Server
	return spacetime.Head{
		ID: sc.ID, Name: sc.Name, Title: sc.Title, Story: sc.Story, Design: c.String(), Seed: seed,
		Reap: server.Reap, Grace: server.Grace, Scan: server.Scan(),
	}
}

// finish puts what the run came to into its diagram.
func (d *diagram) finish(r *run.Run, verdict reports.Verdict, replay string) {
	d.Head.Events, d.Head.Hash, d.Head.Verdict, d.Head.Replay = r.Events, fmt.Sprintf("%016x", uint64(r.Hash)), string(verdict), replay
	for i := range r.Violations {
		v := &r.Violations[i]
		d.Broke(spacetime.Violation{
			Invariant: v.Invariant, Promise: promise(v.Invariant), Verdict: string(v.Verdict), At: int64(v.At),
			Actors: v.Actors, Message: v.Message, Declared: v.Declared,
		})
	}
}

// draw plays one seed of a scenario once more and returns its diagram.
func (p *player) draw(sc selected, seed uint64) *spacetime.Diagram {
	return drawn(sc, seed, p.design, func(o sim.Observer) run.Run { return p.inner.Play(sc.Scenario, seed, o) })
}

// drawn is the diagram of a run that play plays before an observer.
func drawn(sc selected, seed uint64, c choice, play func(sim.Observer) run.Run) *spacetime.Diagram {
	d := newDiagram(headOf(sc, seed, c), sc.Scenario)
	r := play(d)
	verdict := reports.Pass
	for i := range r.Violations {
		if !r.Violations[i].Declared {
			verdict = reports.Gravest(verdict, reports.Verdict(r.Violations[i].Verdict))
		}
	}
	d.finish(&r, verdict, replayCommand(newToken(sc, seed, c, r.Hash).String()))
	return d.Diagram
}
