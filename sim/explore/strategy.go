package explore

import (
	"vigil/sim"
)

// Strategy decides on the tapes of runs.
type Strategy interface {
	// Name is the strategy's name on the command line.
	Name() string
	// Generation is how many runs may be played at once: the tapes of one
	// generation depend on the generations before it and on no run of its own.
	// 0 says that no tape depends on another run.
	Generation() uint64
	// Job returns what decides for one job; it belongs to one goroutine.
	Job() Decider
	// Learn is told of every run, in order, with how many of its features are
	// new, while other runs of its generation may still be decided on. o.Tape is its own to keep.
	Learn(run uint64, o *Outcome, fresh int)
	// Turn ends a generation: what was learnt counts from the next run on.
	Turn()
}

// Decider makes one job's tapes. What it returns is valid until its next call.
type Decider interface {
	Decide(run uint64) *sim.Choices
}

// alone is a strategy whose runs depend on no other.
type alone struct{}

func (alone) Generation() uint64          { return 0 }
func (alone) Turn()                       {}
func (alone) Learn(uint64, *Outcome, int) {}

// Random fills each tape at random: run n is the run of the seed first + n, the
// same as simrun run plays by that seed.
type Random struct {
	alone
	First uint64
}

// Name is random.
func (*Random) Name() string { return "random" }

// Job returns a tape that is reseeded for every run.
func (r *Random) Job() Decider { return &randomJob{r.First, sim.NewChoices(0)} }

type randomJob struct {
	first   uint64
	choices *sim.Choices
}

func (j *randomJob) Decide(run uint64) *sim.Choices {
	j.choices.Reseed(j.first + run)
	return j.choices
}
