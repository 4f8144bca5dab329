package explain

import (
	"slices"
	"time"

	"vigil/faults"
	"vigil/scenarios"
	"vigil/sim"
)

// StepNeed is whether the failure takes one step of the scenario.
type StepNeed struct {
	Step   int
	Words  string
	Needed bool
	Struck bool
}

// steps plays the run without each of its steps in turn; unfired are those that
// struck nothing in it.
func (t *trials) steps(unfired []int) (needs []StepNeed) {
	s := t.capsule.Scenario
	for i := range s.Plan.Steps {
		if t.ctx.Err() != nil {
			return needs
		}
		need := StepNeed{Step: i, Words: s.Words(i), Struck: !slices.Contains(unfired, i)}
		need.Needed = need.Struck && !t.breaks(without(s, i), t.capsule.Protections, t.again(), nil)
		needs = append(needs, need)
	}
	return needs
}

// without is the scenario with a step that never comes. The step keeps its
// number, so that the others keep their decisions.
func without(s *scenarios.Scenario, step int) *scenarios.Scenario {
	plan := *s.Plan
	plan.Steps = slices.Clone(plan.Steps)
	never := &plan.Steps[step]
	never.At, never.When, never.After = faults.Fixed(plan.Until+time.Hour), nil, 0
	if never.Do.Kind == sim.ActFault && never.Do.Fault.Kind == faults.DeviceOutOfMemory {
		never.Do.Fault.Bytes = 0
	}
	changed := *s
	changed.Plan = &plan
	changed.Expect = slices.DeleteFunc(slices.Clone(s.Expect), func(e scenarios.Expectation) bool {
		return e.Kind == scenarios.ExpectAnswer && e.Step == step
	})
	return &changed
}
