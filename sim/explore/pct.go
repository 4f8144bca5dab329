package explore

import (
	"math"
	"slices"

	"vigil/sim"
)

// PCT plays schedules by priorities: each process gets a priority at random, the
// one of the highest always goes first and the others are held back, and at
// Depth-1 moments of the run, chosen at random, whoever takes a step falls
// below all others. Where order is a matter of time, as here, going first is to
// travel and to think for the shortest time that the world allows, and being
// held back for the longest.
//
// A defect that shows whenever Depth given steps come in one order is met by a
// run with a chance of at least 1/(n*k^(d-1)) - n processes, k decisions about
// order, d the depth - as far as the world's times allow that order at all.
type PCT struct {
	alone
	Seed  uint64
	Depth int    // from 1 on
	Steps uint64 // decisions about order in a run; see CountSteps
}

// MaxDepth bounds the depth: the chance is nothing long before it.
const MaxDepth = 64

// Name is pct.
func (*PCT) Name() string { return "pct" }

// Chance is the stated bound for a world of so many processes.
func (p *PCT) Chance(processes int) float64 {
	return 1 / (float64(processes) * math.Pow(float64(max(1, p.Steps)), float64(p.Depth-1)))
}

// Job returns what decides for one job.
func (p *PCT) Job() Decider {
	j := &pctJob{p: p, inner: sim.NewChoices(0)}
	j.choices = sim.ChoicesFrom(j)
	return j
}

// pctJob is a sim.OrderSource.
type pctJob struct {
	p       *PCT
	run     uint64
	inner   *sim.Choices
	choices *sim.Choices
	// priorities of the processes, made when one is first met; the highest goes
	// first. Those that a change put down are below all others, in order.
	priorities []uint64
	changes    []uint64 // steps, ascending
	changed    int
	steps      uint64
}

// Decide makes the tape of a run.
func (j *pctJob) Decide(run uint64) *sim.Choices {
	j.run, j.steps, j.changed = run, 0, 0
	j.inner.Reseed(uint64(diceOf(j.p.Seed, run, 4)))
	j.priorities = j.priorities[:0]
	j.changes = j.changes[:0]
	d := diceOf(j.p.Seed, run, 5)
	for range j.p.Depth - 1 {
		j.changes = append(j.changes, 1+d.below(max(1, j.p.Steps)))
	}
	slices.Sort(j.changes)
	j.choices.Record(nil)
	return j.choices
}

func (j *pctJob) priority(process int) uint64 {
	for len(j.priorities) <= process {
		d := diceOf(j.p.Seed, j.run, 6, uint64(len(j.priorities)))
		j.priorities = append(j.priorities, d.next()|1<<32)
	}
	return j.priorities[process]
}

// step is a decision about order by a process: the moment at which its priority
// may change.
func (j *pctJob) step(process int) {
	j.steps++
	for j.changed < len(j.changes) && j.steps >= j.changes[j.changed] {
		j.priority(process)
		j.priorities[process] = uint64(len(j.changes) - j.changed) // below all that were drawn
		j.changed++
	}
}

// Draw decides. A time is the shorter the higher the priority.
func (j *pctJob) Draw(purpose sim.Purpose, actor int, n uint64) uint64 {
	switch purpose {
	case sim.ForLatency, sim.ForGap, sim.ForOrder:
	default:
		return j.inner.Below(purpose, actor, n)
	}
	j.step(actor)
	// The processes' places among each other make a time each; within a
	// sixteenth of the range the tape is free, or all runs of one order of
	// priorities would be the same.
	low := uint64(float64(n) * 15 / 16 * (1 - float64(j.priority(actor))/(1<<64)))
	low = min(low, n-1)
	return low + j.inner.Below(purpose, actor, min(n-low, n/16+1))
}

// DrawOrder has the process of the highest priority go first.
func (j *pctJob) DrawOrder(whose []int32) uint64 {
	best := 0
	for i := range whose {
		if j.priority(int(whose[i])) > j.priority(int(whose[best])) {
			best = i
		}
	}
	j.step(int(whose[best]))
	return uint64(best)
}

// CountSteps is how many decisions about order a run may have, and how many
// processes decide: the most of some runs, which play makes by the tapes that it
// is given.
func CountSteps(seed uint64, runs int, play func(*sim.Choices)) (steps uint64, processes int) {
	p := &PCT{Seed: seed, Depth: 1}
	j := p.Job().(*pctJob)
	for run := range runs {
		play(j.Decide(uint64(run)))
		steps, processes = max(steps, j.steps), max(processes, len(j.priorities))
	}
	return steps, processes
}
