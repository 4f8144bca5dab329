package run

import (
	"fmt"
	"strings"

	"vigil/core"
	"vigil/scenarios"
	"vigil/sim"
)

// Whether a run told the story of its file. A search draws times and strengths
// from the corners of their ranges: a step that waits for the eighth copy finds
// no eighth, or finds it when the file's faults should long be over. What the
// file expects is then not owed, for it was written of another story. What
// every story keeps, the invariants, always is.

// told reports whether a run of a plan told the file's story: each step that the
// file does not call `maybe` struck, and each fault that waits for a record came
// while the file has faults act. came is when each step came, never where it did
// not.
func told(s *scenarios.Scenario, plan *sim.Plan, unfired []int, came []core.Time) bool {
	if s.Random != "" { // each run is a story of its own
		return true
	}
	for _, step := range unfired {
		if step < len(s.Steps) && !s.Steps[step].Maybe {
			return false
		}
	}
	for i := range plan.Steps {
		if plan.FaultsOver > 0 && plan.Steps[i].Do.Kind == sim.ActFault && waits(plan, i) && came[i] > core.Time(plan.FaultsOver) {
			return false
		}
	}
	return true
}

// waits reports whether a step waits for a record, or follows a step that does.
func waits(plan *sim.Plan, step int) bool {
	for range plan.Steps { // a chain is no longer than this
		if plan.Steps[step].When != nil {
			return true
		}
		if plan.Steps[step].After == 0 {
			return false
		}
		step = plan.Steps[step].After - 1
	}
	return false
}

// expectation reports whether a violation is of what the file expects.
func expectation(v *Violation) bool { return strings.HasPrefix(v.Invariant, "expect ") }

// untold says that no run told the story, so that nothing that the file expects
// was looked at.
func (c *Campaign) untold(s *scenarios.Scenario) {
	if c.Told > 0 || len(s.Expect) == 0 {
		return
	}
	c.miss("step", fmt.Sprintf("%s: in none of %d runs did every step strike, in time: nothing that the file expects was owed", s.File, c.Runs))
}
