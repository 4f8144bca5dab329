package run

import (
	"vigil/scenarios"
	"vigil/sim"
)

// A random world exists only as long as the code that draws it stays the same.
// What a search found in one is therefore made concrete: a scenario that says
// what the world is.

// DrawPlan returns the world that a tape draws for a scenario of random
// worlds, without protections. It reads the first decisions of one stream,
// which IsWorldStream names; the rest of the tape is the run's.
func DrawPlan(s *scenarios.Scenario, tape *sim.Choices) *sim.Plan {
	plan := RandomPlan(menuNamed(s.Random), func(what string, n int) int {
		return int(tape.Named(what, sim.ForStory, worldActor, uint64(n)))
	})
	plan.Until = s.Plan.Until
	if plan.FaultsOver >= plan.Until {
		plan.FaultsOver = 0
	}
	plan.Workers = plan.Workers[:min(len(plan.Workers), len(s.Plan.Workers))]
	for i := range plan.Workers {
		plan.Workers[i].Name = s.Plan.Workers[i].Name
	}
	return plan
}

// IsWorldStream reports whether a stream of a tape draws a world: once the
// world is concrete nothing reads it.
func IsWorldStream(s *sim.Stream) bool { return s.Purpose == sim.ForStory && s.Actor == worldActor }

// Concrete returns the scenario of a plan, without expectations: the
// invariants judge it. Each step may find nothing to strike where maybe says
// so of its number; maybe of nil is never.
func Concrete(id, name, title string, plan *sim.Plan, maybe func(step int) bool) *scenarios.Scenario {
	s := &scenarios.Scenario{ID: id, Name: name, Title: title, File: id, Plan: plan}
	for i := range plan.Steps {
		do := &plan.Steps[i].Do
		s.Steps = append(s.Steps, scenarios.StepNote{
			Verb: scenarios.VerbOf(do), Fault: do.Kind == sim.ActFault, Maybe: maybe != nil && maybe(i),
		})
	}
	return s
}

// Record plays one seed of a scenario and returns the whole tape with what the
// run came to.
func (p *Player) Record(s *scenarios.Scenario, seed uint64) (Run, *sim.Tape) {
	tape := &sim.Tape{}
	choices := sim.NewChoices(seed)
	choices.Record(tape)
	return p.PlayTape(s, seed, choices, nil), tape
}
