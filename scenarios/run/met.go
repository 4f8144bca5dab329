package run

import (
	"math/bits"

	"vigil/faults"
	"vigil/scenarios"
	"vigil/sim"
)

// Met is what a run met: sets of small numbers, so that adding up a million
// runs costs nothing.
type Met struct {
	Faults uint32 // of faults.Kind: faults that took hold
	States uint32 // of scenarios.LifeState: states that some instance was in
}

// A set must have room for every kind.
var _ = [1]struct{}{}[(int(faults.Kinds)-1)/32+int(scenarios.LifeStates)/32]

// metBy is what a run of a plan met, of which some steps struck nothing.
func metBy(plan *sim.Plan, unfired []int, states uint32) Met {
	m := Met{States: states}
	for i := range plan.Steps {
		if do := &plan.Steps[i].Do; do.Kind == sim.ActFault && !has(unfired, i) {
			m.Faults |= 1 << do.Fault.Kind
		}
	}
	for i := range plan.Workers { // settings act in every run
		if plan.Workers[i].PIDIdentity {
			m.Faults |= 1 << faults.PIDIdentity
		}
		if plan.Workers[i].Config.Legacy {
			m.Faults |= 1 << faults.OldClient
		}
	}
	if plan.Server.Legacy {
		m.Faults |= 1 << faults.OldServer
	}
	return m
}

// Tally counts in how many runs each thing was met.
type Tally struct {
	Runs   int
	Faults [32]int // by faults.Kind
	States [32]int // by scenarios.LifeState
}

// Add counts one run.
func (t *Tally) Add(m *Met) {
	t.Runs++
	for set := m.Faults; set != 0; set &= set - 1 {
		t.Faults[bits.TrailingZeros32(set)]++
	}
	for set := m.States; set != 0; set &= set - 1 {
		t.States[bits.TrailingZeros32(set)]++
	}
}

// Merge adds another tally.
func (t *Tally) Merge(o *Tally) {
	t.Runs += o.Runs
	for i := range t.Faults {
		t.Faults[i] += o.Faults[i]
	}
	for i := range t.States {
		t.States[i] += o.States[i]
	}
}
