package explore

import "vigil/sim"

// Coverage keeps the tapes of runs that met something new and makes other tapes
// out of them. It works in generations: all runs of one are made from the corpus
// as the generation before left it, so that what comes does not depend on how
// many jobs play them.
type Coverage struct {
	Seed uint64
	// Keep, where set, is told of each tape that enters the corpus, by one
	// goroutine, in order.
	Keep func(run uint64, tape *sim.Tape)

	corpus []*sim.Tape
	learnt []*sim.Tape // in this generation, for the next
	dice   dice        // says what leaves a full corpus
	seeded int         // tapes that came from an earlier search
}

const (
	// generationRuns is how many runs a generation has: few enough to learn soon,
	// enough to keep the jobs busy.
	generationRuns = 64
	// MaxCorpus bounds the tapes that are kept. What comes when it is full takes
	// the place of one that was kept, chosen by the dice.
	MaxCorpus = 4096
	// freshRuns: one run in so many is by a fresh tape, whatever the corpus holds.
	freshRuns = 4
)

// Start puts the tapes of an earlier search into the corpus, before the first
// run. They are played first, one a run, so that what they met counts as met.
func (c *Coverage) Start(tapes []*sim.Tape) {
	c.corpus = append(c.corpus, tapes[:min(len(tapes), MaxCorpus)]...)
	c.seeded = len(c.corpus)
}

// Name is coverage.
func (*Coverage) Name() string { return "coverage" }

// Generation is how many runs may be made at once.
func (*Coverage) Generation() uint64 { return generationRuns }

// Corpus are the tapes that are kept; they are not the caller's to change.
func (c *Coverage) Corpus() []*sim.Tape {
	return append(c.corpus[:len(c.corpus):len(c.corpus)], c.learnt...)
}

// Learn keeps the tape of a run that met something new.
func (c *Coverage) Learn(run uint64, o *Outcome, fresh int) {
	tape := o.Tape
	if fresh == 0 || run < uint64(c.seeded) {
		return
	}
	c.learnt = append(c.learnt, tape)
	if c.Keep != nil {
		c.Keep(run, tape)
	}
}

// Turn puts what the generation found into the corpus.
func (c *Coverage) Turn() {
	if c.dice == 0 {
		c.dice = diceOf(c.Seed, 7)
	}
	for _, tape := range c.learnt {
		if len(c.corpus) < MaxCorpus {
			c.corpus = append(c.corpus, tape)
		} else {
			c.corpus[c.dice.below(MaxCorpus)] = tape
		}
	}
	c.learnt = c.learnt[:0]
}

// Job returns what decides for one job.
func (c *Coverage) Job() Decider {
	j := &coverageJob{c: c, inner: sim.NewChoices(0)}
	j.choices = sim.ChoicesFrom(&j.mutant)
	j.mutant.rest = j.inner
	return j
}

type coverageJob struct {
	c       *Coverage
	inner   *sim.Choices
	mutant  mutant
	choices *sim.Choices
}

// Decide makes the tape of a run. It reads the corpus, which changes between
// generations only.
func (j *coverageJob) Decide(run uint64) *sim.Choices {
	c := j.c
	d := diceOf(c.Seed, run, 8)
	j.inner.Reseed(d.next())
	j.mutant.streams = j.mutant.streams[:0]
	switch n := uint64(len(c.corpus)); {
	case run < uint64(c.seeded):
		j.mutant.copy(c.corpus[run])
	case n == 0 || d.below(freshRuns) == 0:
	default:
		parent := d.below(n)
		if d.below(2) == 0 { // what was found last leads on more often than what was found first
			parent = n - 1 - d.below(n/4+1)
		}
		j.mutant.copy(c.corpus[parent])
		j.mutant.mutate(&d, c.corpus[d.below(n)])
	}
	j.mutant.rewind()
	j.choices.Record(nil)
	return j.choices
}
