// Package shrink makes a failing run small: fewer workers, fewer steps, plainer
// workers, rounder and shorter times, plainer decisions, until nothing smaller
// fails alike.
//
// Contract. It knows plans and tapes, not files, and not what a failure is: a
// Trial plays a plan by a tape and names the failure by a key, empty for none.
// What is kept has the key of the first run, step by step. Each step that is
// kept is played twice more and must come to the same hash: a run that does not
// is non-determinism, the gravest finding there is, and ends the work. The same
// input gives the same result: no clock, no random, no order of a map. Plans
// and tapes that are given are not changed.
package shrink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vigil/core"
	"vigil/sim"
)

// Trial plays a plan by a tape and names its failure; "" is none, or none that
// counts. Equal runs must have equal keys and hashes.
type Trial func(plan *sim.Plan, tape sim.Source) (key string, hash core.Digest)

// Options say how far to go.
type Options struct {
	// MaxTrials bounds the trials; 0 is DefaultTrials. Where it is reached, what
	// is smallest by then is the result, with Complete false.
	MaxTrials int
	// Score, where set, says how surely a plan fails by itself, not by one tape's
	// luck: it plays so many other tapes and gives at most one point for each. An
	// edit of the plan that lowers the score among a few tapes is not kept; in the
	// end, other times that raise the score among many are.
	Score func(plan *sim.Plan, tapes int) int
	// Progress, where set, is called after each trial.
	Progress func(Progress)
}

// DefaultTrials is enough for a world of 64 workers, and takes a world of a few
// some seconds.
const DefaultTrials = 20_000

// Progress is how far it is.
type Progress struct {
	Trials int
	Doing  string // "workers", "steps", ...
	Now    Size
}

// Size is how large a run is, as people count.
type Size struct {
	Workers   int
	Steps     int
	Decisions int           // on the tape that are not 0, without what only names
	Lasts     time.Duration // of the run
}

// Result is the smallest run that was found.
type Result struct {
	Plan          *sim.Plan
	Tape          *sim.Tape // every decision of the run, no more
	Workers       []int     // of each worker: its number in the first plan
	Steps         []int     // of each step: its number in the first plan, -1 where that had none such
	Key           string
	Hash          core.Digest
	Trials        int
	Before, After Size
	Complete      bool // nothing smaller, by the edits that there are, fails alike
}

// ErrNoFailure says that the run to begin with does not fail.
var ErrNoFailure = errors.New("the run does not fail, so that there is nothing to shrink")

// Nondeterminism says that one plan and one tape gave two runs.
type Nondeterminism struct {
	Plan  *sim.Plan
	Tape  *sim.Tape
	Key   [2]string
	Hash  [2]core.Digest
	Trial int
}

// Error names both runs.
func (n *Nondeterminism) Error() string {
	return fmt.Sprintf("the same plan and tape gave hash %016x (%s), then %016x (%s), in trial %d",
		uint64(n.Hash[0]), orNone(n.Key[0]), uint64(n.Hash[1]), orNone(n.Key[1]), n.Trial)
}

func orNone(s string) string {
	if s == "" {
		return "no failure"
	}
	return s
}

// Shrink makes a failing run small. It ends early, with what it has, when ctx
// ends; the error then is ctx's. Other errors are ErrNoFailure and
// *Nondeterminism.
func Shrink(ctx context.Context, plan *sim.Plan, tape *sim.Tape, trial Trial, o Options) (*Result, error) {
	if o.MaxTrials <= 0 {
		o.MaxTrials = DefaultTrials
	}
	s := &shrinker{ctx: ctx, trial: trial, o: o}
	first := &state{plan: clonePlan(plan), tape: withoutEmpty(tape)}
	for i := range plan.Workers {
		first.workers = append(first.workers, i)
	}
	for i := range plan.Steps {
		first.steps = append(first.steps, i)
	}
	s.now = first
	s.doing = "the run as it is"
	if key := s.begin(); key == "" {
		return nil, s.failure(ErrNoFailure)
	}
	before := s.now.size()
	s.rough()
	if s.all(); s.steadier() {
		s.all()
	}
	r := &Result{
		Plan: s.now.plan, Tape: s.now.tape, Workers: s.now.workers, Steps: s.now.steps,
		Key: s.key, Hash: s.hash, Trials: s.trials,
		Before: before, After: s.now.size(), Complete: !s.spent() && s.err == nil,
	}
	return r, s.failure(nil)
}

// state is a run that fails as it must.
type state struct {
	plan           *sim.Plan
	tape           *sim.Tape
	workers, steps []int // their numbers in the first plan
}

func (st *state) size() Size {
	z := Size{Workers: len(st.plan.Workers), Steps: len(st.plan.Steps), Lasts: st.plan.Until}
	for i := range st.tape.Streams {
		if !decides(st.tape.Streams[i].Purpose) {
			continue
		}
		for _, v := range st.tape.Streams[i].Values {
			if v != 0 {
				z.Decisions++
			}
		}
	}
	return z
}

// shrinker is one call of Shrink.
type shrinker struct {
	ctx    context.Context
	trial  Trial
	o      Options
	now    *state
	key    string
	hash   core.Digest
	scored bool // edits of the plan are judged by other tapes too
	score  int
	trials int
	doing  string
	err    error
}

func (s *shrinker) failure(other error) error {
	switch {
	case s.err != nil:
		return s.err
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	}
	return other
}

// spent reports whether no further trial may be made.
func (s *shrinker) spent() bool {
	return s.err != nil || s.trials >= s.o.MaxTrials || s.ctx.Err() != nil
}

// play makes one trial and returns every decision that the run asked for.
func (s *shrinker) play(st *state) (key string, hash core.Digest, asked *sim.Tape) {
	rec := record(st.tape)
	s.trials++
	key, hash = s.trial(st.plan, rec)
	if s.o.Progress != nil {
		s.o.Progress(Progress{Trials: s.trials, Doing: s.doing, Now: s.now.size()})
	}
	return key, hash, withoutEmpty(&rec.tape)
}

// begin plays the run to begin with and takes its key.
func (s *shrinker) begin() string {
	key, hash, asked := s.play(s.now)
	if key == "" {
		return ""
	}
	s.now.tape = asked
	s.key, s.hash = key, hash
	s.confirm(s.now, hash)
	return key
}

// try keeps a smaller run where it fails alike.
func (s *shrinker) try(next *state, planChanged bool) bool {
	if s.spent() || next == nil {
		return false
	}
	key, hash, asked := s.play(next)
	if key != s.key {
		return false
	}
	score := s.score
	if planChanged && s.scored {
		// Fewer workers or steps are worth a failure that is rarer, as long as it
		// is one that other tapes have too.
		least := s.score
		if fewer(next.plan, s.now.plan) {
			least = min(least, 1)
		}
		if score = s.o.Score(next.plan, fewTapes); score < least {
			return false
		}
	}
	next.tape = asked
	if !s.confirm(next, hash) {
		return false
	}
	s.now, s.hash, s.score = next, hash, score
	return true
}

func fewer(a, b *sim.Plan) bool {
	return len(a.Workers) < len(b.Workers) || len(a.Steps) < len(b.Steps)
}

// confirm plays a run twice more.
func (s *shrinker) confirm(st *state, hash core.Digest) bool {
	for range 2 {
		key, again, _ := s.play(st)
		if again != hash || key != s.key {
			s.err = &Nondeterminism{Plan: st.plan, Tape: st.tape, Key: [2]string{s.key, key}, Hash: [2]core.Digest{hash, again}, Trial: s.trials}
			return false
		}
	}
	return true
}

// rough leaves out what is not needed before anything is judged by other tapes,
// which takes long in a large world.
func (s *shrinker) rough() {
	for range maxRounds {
		from := s.now
		s.dropWorkers()
		if s.dropSteps(); s.now == from {
			break
		}
	}
	if s.o.Score != nil {
		s.scored, s.score = true, s.o.Score(s.now.plan, fewTapes)
	}
}

// all goes over every kind of edit until none helps any more. What removes
// most comes first; single decisions come once the world is small.
func (s *shrinker) all() {
	for range maxRounds {
		from := s.now
		s.dropWorkers()
		s.dropSteps()
		s.plainStreams()
		s.plainPlan()
		s.times()
		s.shorter()
		if s.now != from {
			continue
		}
		s.plainDecisions()
		if s.now == from || s.spent() {
			return
		}
	}
}

// How many other tapes judge an edit, and how many the story in the end.
const (
	fewTapes  = 5
	manyTapes = 25
)

// maxRounds bounds the rounds; each but the last made the run smaller.
const maxRounds = 64
