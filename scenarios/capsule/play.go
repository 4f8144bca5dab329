package capsule

import (
	"slices"
	"time"

	"vigil/core"
	"vigil/scenarios/run"
	"vigil/sim"
)

func isWorld(s *sim.Stream) bool { return run.IsWorldStream(s) }

// source reads a capsule's tape and notes where a run asks for other decisions
// than the recorded run asked for.
type source struct {
	streams []sim.Stream
	index   map[streamKey]int
	at      []int
	now     func() core.Time

	missed bool
	first  streamMiss
}

type streamKey struct {
	purpose sim.Purpose
	actor   int
}

// streamMiss is a decision that the tape does not hold.
type streamMiss struct {
	streamKey
	at    core.Time
	count int  // decisions that the stream holds
	large bool // it holds the decision, and its number is out of range by now
}

func newSource(t *sim.Tape, now func() core.Time) *source {
	s := &source{streams: t.Streams, index: make(map[streamKey]int), at: make([]int, len(t.Streams)), now: now}
	for i := range t.Streams {
		s.index[streamKey{t.Streams[i].Purpose, t.Streams[i].Actor}] = i
	}
	return s
}

// Grain is how coarse the time of the recorded run was.
func (s *source) Grain() time.Duration { return fresh(&sim.Tape{Streams: s.streams}).Grain() }

// Draw reads the next decision of a stream; past its end, the plainest one.
func (s *source) Draw(purpose sim.Purpose, actor int, n uint64) uint64 {
	key := streamKey{purpose, actor}
	i, known := s.index[key]
	if !known {
		s.miss(streamMiss{streamKey: key})
		return 0
	}
	values := s.streams[i].Values
	if s.at[i] >= len(values) {
		s.miss(streamMiss{streamKey: key, count: len(values)})
		return 0
	}
	v := values[s.at[i]]
	s.at[i]++
	if v >= n {
		s.miss(streamMiss{streamKey: key, count: len(values), large: true})
	}
	return v
}

func (s *source) miss(m streamMiss) {
	if !s.missed {
		m.at = s.now()
		s.missed, s.first = true, m
	}
}

// unread returns the first stream of which decisions are left.
func (s *source) unread() (*sim.Stream, int) {
	for i := range s.streams {
		if left := len(s.streams[i].Values) - s.at[i]; left > 0 && s.streams[i].Purpose != sim.ForGrain {
			return &s.streams[i], left
		}
	}
	return nil, 0
}

// both shows records to two observers.
type both struct{ a, b sim.Observer }

// Observe shows a record to both.
func (o both) Observe(r *core.Record) {
	o.a.Observe(r)
	if o.b != nil {
		o.b.Observe(r)
	}
}

// follow plays the capsule and makes its trail.
func (c *Capsule) follow() (run.Run, trail) {
	t := &tracer{keep: true}
	src := newSource(c.Tape, func() core.Time { return t.now })
	r := run.NewPlayer(c.Design, c.Protections).PlayTape(c.Scenario, c.Seed, sim.ChoicesFrom(src), t)
	return r, t.made
}

// Play replays the run; extra, which may be nil, sees every record. The
// difference is what is not as it was recorded.
func (c *Capsule) Play(extra sim.Observer) (run.Run, Difference) {
	if c.Scenario == nil {
		why := "its scenario is missing"
		if c.unknown != nil {
			why = c.unknown.Error()
		}
		return run.Run{Seed: c.Seed}, Difference{Kind: NoLongerLoads, Text: "It can no longer be played: " + why}
	}
	t := &tracer{with: &c.trail}
	src := newSource(c.Tape, func() core.Time { return t.now })
	r := run.NewPlayer(c.Design, c.Protections).PlayTape(c.Scenario, c.Seed, sim.ChoicesFrom(src), both{t, extra})
	return r, c.differs(&r, t, src)
}

// PlayUnder plays the same tape under another design: what mends the run
// breaks nothing in it.
func (c *Capsule) PlayUnder(design string, p core.Protections, extra sim.Observer) run.Run {
	return run.NewPlayer(design, p).PlayTape(c.Scenario, c.Seed, sim.ChoicesFrom(newSource(c.Tape, func() core.Time { return 0 })), extra)
}

// Broken is what broke in a run, also what its file declares; a step that
// found nothing to strike is nothing, since a tape that was recorded under one
// design may miss under another.
func Broken(r *run.Run) []run.Violation {
	return slices.DeleteFunc(slices.Clone(r.Violations), func(v run.Violation) bool { return v.Invariant == "step" })
}
