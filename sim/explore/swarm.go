package explore

import "vigil/sim"

// Swarm draws for each run which faults there are at all and how strong they
// are, and for each stream of the tape which part of its range it comes from. A
// run in which everything may happen seldom shows what takes many of one kind:
// two faults that hide each other, or ten slow closes in a row.
type Swarm struct {
	alone
	Seed uint64
}

// Name is swarm.
func (*Swarm) Name() string { return "swarm" }

// Job returns what decides for one job.
func (s *Swarm) Job() Decider {
	j := &swarmJob{seed: s.Seed, inner: sim.NewChoices(0)}
	j.choices = sim.ChoicesFrom(j)
	return j
}

// swarmJob is a sim.NamedSource.
type swarmJob struct {
	seed, run uint64
	on        uint64 // of the faults of a drawn world: those that are on
	inner     *sim.Choices
	choices   *sim.Choices
}

// Decide makes the tape of a run.
func (j *swarmJob) Decide(run uint64) *sim.Choices {
	j.run = run
	j.inner.Reseed(uint64(diceOf(j.seed, run, 1)))
	d := diceOf(j.seed, run, 2)
	first, second := d.next(), d.next()
	j.on = first & second // a quarter of them: few kinds, often
	j.choices.Record(nil)
	return j.choices
}

// The parts of a range that a stream's decisions come from.
const (
	partAll = iota
	partLow
	partHigh
	partEnds
	parts
)

// part chooses a part for a stream; half of the streams keep all of their range.
func (j *swarmJob) part(name uint64) uint64 {
	d := diceOf(j.seed, j.run, 3, name)
	if d.next()&1 == 0 {
		return partAll
	}
	return d.below(parts)
}

func (j *swarmJob) from(part uint64, purpose sim.Purpose, actor int, n uint64) uint64 {
	if n < 2 {
		return j.inner.Below(purpose, actor, n)
	}
	switch part {
	case partLow:
		return j.inner.Below(purpose, actor, (n+3)/4)
	case partHigh:
		return n - 1 - j.inner.Below(purpose, actor, (n+3)/4)
	case partEnds:
		return (n - 1) * j.inner.Below(purpose, actor, 2)
	}
	return j.inner.Below(purpose, actor, n)
}

// Draw decides. What entropy gives stays as it is: ids from a corner of their
// range would be each other's.
func (j *swarmJob) Draw(purpose sim.Purpose, actor int, n uint64) uint64 {
	if purpose == sim.ForEntropy {
		return j.inner.Below(purpose, actor, n)
	}
	return j.from(j.part(uint64(purpose)<<32|uint64(actor)), purpose, actor, n)
}

// DrawNamed decides about a drawn world.
func (j *swarmJob) DrawNamed(what string, purpose sim.Purpose, actor int, n uint64) uint64 {
	if what == "what" { // which fault: one of those that are on
		on := j.on
		if n < 64 {
			on &= 1<<n - 1
		}
		for range 64 {
			if v := j.inner.Below(purpose, actor, n); on == 0 || v >= 64 || on>>v&1 != 0 {
				return v
			}
		}
		return j.inner.Below(purpose, actor, n)
	}
	name := uint64(1) << 63
	for i := range len(what) {
		name = mix(name ^ uint64(what[i]))
	}
	return j.from(j.part(name), purpose, actor, n)
}
