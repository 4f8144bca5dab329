package run

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"vigil/core"
	"vigil/faults"
	"vigil/scenarios"
	"vigil/sim"
	"vigil/sim/explore"
)

// What a run has that another has not, for the question which fault did it.

// maxFactors bounds the factors of one scenario; steps beyond it have none.
const maxFactors = 256

// factorSet says which factors a run has.
type factorSet [maxFactors / 64]uint64

func (f *factorSet) add(n int) {
	if n < maxFactors { // names are cut there too
		f[n/64] |= 1 << (n % 64)
	}
}

// each calls do for every factor that a run has.
func (f *factorSet) each(do func(n int)) {
	for i, w := range f {
		for ; w != 0; w &= w - 1 {
			do(i*64 + bits.TrailingZeros64(w))
		}
	}
}

// The factors of a drawn world: each fault that took hold, each that held on for
// longer than the reap window, and the settings.
const (
	factorFaults = 0
	factorLong   = int(faults.Kinds)
	factorRest   = 2 * int(faults.Kinds)
)

const (
	hasReset = factorRest + iota
	hasOneWay
	hasSilent
	hasSamePID
	hasShutdown
	hasEngineDriven
	hasBlend
	hasPIDs
	hasOldClient
	hasLateStart
	hasIdle
	hasModels
	hasSmallDevice
	hasOneWorker
	hasManyWorkers
	hasManyFaults
	factorsOfWorld
)

var worldFactors = [factorsOfWorld - factorRest]string{
	"a cut that resets", "a cut of one way only", "a silent death", "a restart with the same PID", "an orderly shutdown",
	"an engine-driven worker", "a worker with blend state", "PIDs as ids", "a client from before liveness",
	"a worker that starts late", "a worker idle at first", "workers of different models", "a device with room for two",
	"one worker only", "four workers or more", "four faults or more",
}

// factorNames are what the numbers of a scenario's factors mean.
func factorNames(s *scenarios.Scenario) []string {
	var names []string
	if s.Random != "" {
		for k := faults.Kind(0); k < faults.Kinds; k++ {
			names = append(names, k.String())
		}
		for k := faults.Kind(0); k < faults.Kinds; k++ {
			names = append(names, k.String()+" for longer than the window")
		}
		return append(names, worldFactors[:]...)
	}
	for i := range s.Steps {
		what := fmt.Sprintf("line %d: %s", s.Steps[i].Line, s.Words(i))
		names = append(names, what, what+", in the later half of its time")
	}
	return names[:min(len(names), maxFactors)]
}

// factorsOf is what a run of a plan had.
func factorsOf(s *scenarios.Scenario, plan *sim.Plan, unfired []int, struck []core.Time) (f factorSet) {
	if s.Random == "" {
		for i := range plan.Steps {
			if has(unfired, i) {
				continue
			}
			f.add(2 * i)
			at := plan.Steps[i].At
			if plan.Steps[i].When == nil && plan.Steps[i].After == 0 && i < len(struck) && struck[i] > core.Time((at.Low+at.High)/2) {
				f.add(2*i + 1)
			}
		}
		return f
	}
	n := 0
	for i := range plan.Steps {
		do := &plan.Steps[i].Do
		if has(unfired, i) {
			continue
		}
		if do.Kind == sim.ActShutdown {
			f.add(hasShutdown)
		}
		if do.Kind != sim.ActFault {
			continue
		}
		n++
		f.add(factorFaults + int(do.Fault.Kind))
		if max(do.Fault.For.High, do.Fault.Amount.High) > plan.Server.Reap {
			f.add(factorLong + int(do.Fault.Kind))
		}
		for _, x := range []struct {
			on     bool
			factor int
		}{
			{do.Fault.Kind == faults.Cut && do.Fault.Reset, hasReset}, {do.Fault.Kind == faults.Cut && do.Fault.Ways != core.CutBoth, hasOneWay},
			{do.Fault.Silent, hasSilent}, {do.Fault.Same, hasSamePID},
		} {
			if x.on {
				f.add(x.factor)
			}
		}
	}
	for i := range plan.Workers {
		w := &plan.Workers[i]
		for _, x := range []struct {
			on     bool
			factor int
		}{
			{w.Config.Mode == core.ModeEngineDriven, hasEngineDriven}, {w.Config.Blend, hasBlend}, {w.PIDIdentity, hasPIDs},
			{w.Config.Legacy, hasOldClient}, {w.Start.Low > 5*time.Second, hasLateStart}, {w.Traffic.From > 0, hasIdle},
			{w.Config.Model != plan.Workers[0].Config.Model, hasModels},
		} {
			if x.on {
				f.add(x.factor)
			}
		}
	}
	if plan.DeviceBytes > 0 {
		f.add(hasSmallDevice)
	}
	if len(plan.Workers) == 1 {
		f.add(hasOneWorker)
	}
	if len(plan.Workers) >= 4 {
		f.add(hasManyWorkers)
	}
	if n >= 4 {
		f.add(hasManyFaults)
	}
	return f
}

// Counts counts factors over a campaign: in all runs, in those that failed, and
// in those in which one invariant broke. Those of shards add up.
type Counts struct {
	Names []string
	Runs  uint64
	With  []uint64 // of each factor: runs that had it
	Kinds []CountsKind
}

// CountsKind is one kind of failure.
type CountsKind struct {
	Invariant string // empty: any
	Failed    uint64
	With      []uint64 // of each factor: failed runs that had it
}

// maxBlamed bounds the invariants that are looked at one by one; there are not
// many more.
const maxBlamed = 24

func newCounts(s *scenarios.Scenario) *Counts {
	c := &Counts{Names: factorNames(s)}
	c.With = make([]uint64, len(c.Names))
	c.Kinds = []CountsKind{{With: make([]uint64, len(c.Names))}}
	return c
}

// add counts one run, in which these invariants broke.
func (c *Counts) add(f *factorSet, broke []Violation) {
	c.Runs++
	f.each(func(n int) { c.With[n]++ })
	if len(broke) == 0 {
		return
	}
	c.Kinds[0].add(f)
	for i := range broke {
		if repeated(broke[:i], broke[i].Invariant) {
			continue
		}
		if k := c.kind(broke[i].Invariant); k != nil {
			k.add(f)
		}
	}
}

func repeated(list []Violation, invariant string) bool {
	for i := range list {
		if list[i].Invariant == invariant {
			return true
		}
	}
	return false
}

func (k *CountsKind) add(f *factorSet) {
	k.Failed++
	f.each(func(n int) { k.With[n]++ })
}

func (c *Counts) kind(invariant string) *CountsKind {
	for i := range c.Kinds[1:] {
		if k := &c.Kinds[1+i]; k.Invariant == invariant {
			return k
		}
	}
	if len(c.Kinds) > maxBlamed {
		return nil
	}
	c.Kinds = append(c.Kinds, CountsKind{Invariant: invariant, With: make([]uint64, len(c.Names))})
	return &c.Kinds[len(c.Kinds)-1]
}

// Blame is what a campaign says about one kind of failure.
type Blame struct {
	Invariant           string // empty: any
	Failed, Runs        uint64
	Causes, Suppressors []explore.Cause
}

// Blame ranks the factors of each kind of failure, the most frequent first.
func (c *Counts) Blame() []Blame {
	var out []Blame
	for _, k := range c.Kinds {
		if k.Failed == 0 {
			continue
		}
		var factors []explore.Factor
		for n, name := range c.Names {
			factors = append(factors, explore.Factor{
				Name: name, With: c.With[n], WithFailed: k.With[n],
				Without: c.Runs - c.With[n], WithoutFails: k.Failed - k.With[n],
			})
		}
		v := Blame{Invariant: k.Invariant, Failed: k.Failed, Runs: c.Runs}
		v.Causes, v.Suppressors = explore.Rank(factors)
		out = append(out, v)
	}
	slices.SortStableFunc(out, func(a, b Blame) int {
		switch {
		case a.Invariant == "" || b.Invariant == "": // any failure comes first
			return cmp.Compare(len(a.Invariant), len(b.Invariant))
		case a.Failed != b.Failed:
			return cmp.Compare(b.Failed, a.Failed)
		}
		return cmp.Compare(a.Invariant, b.Invariant)
	})
	return out
}
