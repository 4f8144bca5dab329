package run

import (
	"vigil/core"
	"vigil/faults"
	"vigil/scenarios"
	"vigil/sim"
	"vigil/sim/explore"
)

// faultsOf are the faults that a scenario's runs can bring: those of its steps
// and settings, or those of its menu.
func faultsOf(s *scenarios.Scenario) (set uint32) {
	if s.Random != "" {
		menu := menuNamed(s.Random)
		for _, k := range menu.Faults {
			set |= 1 << k
		}
		if menu.Harsh {
			set |= 1<<faults.PIDIdentity | 1<<faults.OldClient
		}
		return set
	}
	return metBy(s.Plan, nil, 0).Faults
}

// Coverage says by name what was met, and what could have been and was not.
type Coverage struct {
	Runs                              int
	Faults, States, Protections       map[string]int // in how many runs
	NoFaults, NoStates, NoProtections []string
	Probed                            int // the runs that were asked for protections
}

// coverageOf names what a tally counts.
func coverageOf(s *scenarios.Scenario, t *Tally, acted *Acted) Coverage {
	c := Coverage{Runs: t.Runs, Faults: map[string]int{}, States: map[string]int{}, Protections: map[string]int{}}
	could := faultsOf(s)
	for k := faults.None + 1; k < faults.Kinds; k++ {
		switch {
		case t.Faults[k] > 0:
			c.Faults[k.String()] = t.Faults[k]
		case could&(1<<k) != 0:
			c.NoFaults = append(c.NoFaults, k.String())
		}
	}
	for st := scenarios.LifeState(0); st < scenarios.LifeStates; st++ {
		if n := t.States[st]; n > 0 {
			c.States[st.String()] = n
		} else {
			c.NoStates = append(c.NoStates, st.String())
		}
	}
	if acted != nil {
		c.Probed = acted.Probed
		for i, name := range acted.Names {
			if acted.Runs[i] > 0 {
				c.Protections[name] = acted.Runs[i]
			} else if acted.Probed > 0 {
				c.NoProtections = append(c.NoProtections, name)
			}
		}
	}
	return c
}

// mostProbed is how many runs of a campaign are asked for the protections that
// acted in them.
const mostProbed = 16

// coverage is what a campaign met. The protections are asked of its first runs,
// one in twenty at most: each costs a run for every protection.
func (c *Campaign) coverage(s *scenarios.Scenario, o *SearchOptions) Coverage {
	var acted *Acted
	if most := min(mostProbed, int(c.Runs/20)); most > 0 && o.Protections != (core.Protections{}) {
		strategy := o.Strategy
		if strategy.Generation() > 0 { // by now it would decide otherwise
			strategy = &explore.Random{}
		}
		shards := max(1, o.Shards)
		a := NewProber(s, o.Design, o.Protections, core.ProtectionNames(), most).Probe(o.Jobs, func() func(int) *sim.Choices {
			decider := strategy.Job()
			return func(i int) *sim.Choices { return decider.Decide(uint64(i)*shards + o.Shard) }
		})
		acted = &a
	}
	return coverageOf(s, &c.Tally, acted)
}
