package explore

import (
	"context"
	"sync"
	"time"

	"vigil/core"
	"vigil/sim"
)

// Outcome is what one run came to, as far as the search cares.
type Outcome struct {
	Hash     core.Digest
	Found    bool // it is what the search looks for
	Features Features
	Tape     *sim.Tape // every decision of the run; recorded only where the strategy learns
}

// Trial plays one run by a tape. It says what the run came to in o, which is
// empty when it is called, and what its caller wants beside that in more, which
// holds what some earlier run left there. It belongs to one job.
type Trial[T any] func(run uint64, tape *sim.Choices, o *Outcome, more *T)

// Options bound a search.
type Options struct {
	Runs uint64        // at most; 0 where the time is the bound
	For  time.Duration // no run begins after this; 0 where the runs are the bound
	Jobs int           // at once; less than 1 is 1
	Stop bool          // at the first finding
	// Shard and Shards play each Shards-th run only, from the run Shard on; 0 and
	// 0 play every run. Runs counts those of all shards.
	Shard, Shards uint64
	Progress      func(Progress) // where set, called by one goroutine at a time
}

// Progress is how far a search is.
type Progress struct {
	Runs, Total uint64 // Total is 0 where it is not known
	Found       uint64
	Features    int
}

// Report is what a search came to.
type Report struct {
	Runs      uint64 // that were played and count
	Found     uint64 // runs that are what was looked for
	Schedules uint64 // distinct runs by their hashes
	Bounded   bool   // Schedules stopped to be counted at MaxSchedules: there are at least so many
	Features  int    // distinct features met
	Set       Features
	FreshAt   uint64 // the run that met the last new feature
	Hash      uint64 // over all runs and their numbers; the same at any number of jobs
	Whole     bool   // every run that was asked for was played, or the search stopped at its finding
}

const (
	// MaxSchedules bounds the hashes that are kept to tell distinct runs: 64 MB
	// or so.
	MaxSchedules = 1 << 21
	// chunkRuns is how many runs a job takes at a time.
	chunkRuns = 8
	// maxAhead bounds the chunks that wait for an earlier one: jobs pause rather
	// than pile up what one slow run holds back.
	maxAhead = 64
)

// Search plays the runs of a strategy until they are through, time is up, ctx
// ends, or, with Stop, one is found. job makes the trial of one job; fold sees
// every run that counts, in the order of their numbers.
func Search[T any](ctx context.Context, strategy Strategy, o Options, job func() Trial[T], fold func(run uint64, out *Outcome, more *T)) Report {
	if o.Shards == 0 {
		o.Shard, o.Shards = 0, 1
	}
	s := &search[T]{
		strategy: strategy, o: o, fold: fold, began: time.Now(),
		waiting: make(map[uint64]*chunk[T]), hashes: make(map[uint64]struct{}),
		generation: strategy.Generation(),
	}
	s.turn.L = &s.mu
	if o.Runs > 0 {
		s.total = (o.Runs + o.Shards - 1 - o.Shard) / o.Shards
	}
	s.limit = ^uint64(0)
	if o.Runs > 0 {
		s.limit = s.total
	}
	var wait sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { // wake whoever waits for others
		s.mu.Lock()
		s.turn.Broadcast()
		s.mu.Unlock()
	})
	defer stop()
	for range max(1, o.Jobs) {
		wait.Go(func() { s.work(ctx, job()) })
	}
	wait.Wait()
	s.report.Features, s.report.Set = s.features.Count(), s.features
	s.report.Whole = s.stopped || o.Runs > 0 && s.folded >= s.total || o.Runs == 0 && ctx.Err() == nil
	return s.report
}

// chunk is some runs in a row and what they came to.
type chunk[T any] struct {
	first, count uint64
	outcomes     [chunkRuns]Outcome
	more         [chunkRuns]T
}

// search hands out runs and folds what comes back in their order. Numbers here
// count the shard's own runs; numberOf says which run that is.
type search[T any] struct {
	strategy   Strategy
	o          Options
	fold       func(uint64, *Outcome, *T)
	began      time.Time
	total      uint64
	generation uint64

	mu       sync.Mutex
	turn     sync.Cond // waited on for earlier runs to be folded
	next     uint64    // the first run not handed out
	limit    uint64    // no run from here on is wanted
	stopped  bool
	cut      bool   // a chunk was left half played
	folded   uint64 // runs before this are folded
	waiting  map[uint64]*chunk[T]
	free     []*chunk[T]
	hashes   map[uint64]struct{}
	features Features
	report   Report
}

// numberOf is the number of the shard's i-th run among those of all shards.
func (s *search[T]) numberOf(i uint64) uint64 { return i*s.o.Shards + s.o.Shard }

// take hands out a chunk; nil where there is no more to play.
func (s *search[T]) take(ctx context.Context) *chunk[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if ctx.Err() != nil || s.cut || s.next >= s.limit {
			return nil
		}
		if s.o.For > 0 && time.Since(s.began) >= s.o.For {
			return nil
		}
		early := s.next-s.folded >= maxAhead*chunkRuns
		if s.generation > 0 && s.next/s.generation != s.folded/s.generation {
			early = true // its tape depends on runs that are not through
		}
		if !early {
			break
		}
		s.turn.Wait()
	}
	var c *chunk[T]
	if n := len(s.free); n > 0 {
		c, s.free = s.free[n-1], s.free[:n-1]
	} else {
		c = new(chunk[T])
	}
	c.first, c.count = s.next, min(chunkRuns, s.limit-s.next)
	if s.generation > 0 {
		// The last runs of a generation one by one, so that no job waits long.
		c.count = min(2, c.count, s.generation-s.next%s.generation)
	}
	s.next += c.count
	return c
}

// work is one job.
func (s *search[T]) work(ctx context.Context, trial Trial[T]) {
	decider := s.strategy.Job()
	for {
		c := s.take(ctx)
		if c == nil {
			return
		}
		played := uint64(0)
		for ; played < c.count && ctx.Err() == nil; played++ {
			run := s.numberOf(c.first + played)
			choices := decider.Decide(run)
			out := &c.outcomes[played]
			*out = Outcome{}
			if s.generation > 0 {
				out.Tape = &sim.Tape{}
				choices.Record(out.Tape)
			}
			trial(run, choices, out, &c.more[played])
			if out.Found && s.o.Stop {
				played++
				break
			}
		}
		s.done(c, played)
	}
}

// done takes a chunk of which so many runs were played, and folds what is next.
func (s *search[T]) done(c *chunk[T], played uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if played < c.count {
		c.count = played
		s.limit = min(s.limit, c.first+played)
		s.cut = s.cut || played == 0 || !c.outcomes[played-1].Found
	}
	s.waiting[c.first] = c
	for {
		c := s.waiting[s.folded]
		if c == nil || s.stopped {
			break
		}
		delete(s.waiting, c.first)
		if c.count == 0 {
			break
		}
		for i := uint64(0); i < c.count && !s.stopped; i++ {
			s.add(s.numberOf(c.first+i), &c.outcomes[i], &c.more[i])
			if s.folded++; s.generation > 0 && s.folded%s.generation == 0 {
				s.strategy.Turn()
			}
		}
		s.free = append(s.free, c)
	}
	s.turn.Broadcast()
	if s.o.Progress != nil {
		s.o.Progress(Progress{Runs: s.report.Runs, Total: s.total, Found: s.report.Found, Features: s.report.Features})
	}
}

// add folds one run.
func (s *search[T]) add(run uint64, out *Outcome, more *T) {
	r := &s.report
	r.Runs++
	var d core.Digest
	d.Uint(run)
	d.Uint(uint64(out.Hash))
	r.Hash += uint64(d)
	if !r.Bounded {
		s.hashes[uint64(out.Hash)] = struct{}{}
		r.Schedules = uint64(len(s.hashes))
		r.Bounded = r.Schedules >= MaxSchedules
	}
	fresh := s.features.Merge(&out.Features)
	if fresh > 0 {
		r.Features += fresh
		r.FreshAt = run
	}
	if out.Found {
		r.Found++
		if s.o.Stop {
			s.stopped = true
			s.limit = 0
		}
	}
	s.strategy.Learn(run, out, fresh)
	s.fold(run, out, more)
}
