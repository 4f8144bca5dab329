package shrink

import (
	"fmt"
	"time"

	"vigil/sim"
)

// The edits of the tape. 0 is the plainest decision everywhere, so that to
// shrink a tape is to write zeros on it.

// recorder notes what a run decided, folded into its range.
type recorder struct {
	from  sim.Source
	grain time.Duration
	tape  sim.Tape
	at    map[[2]int]int
}

// record notes what is asked of a tape. How coarse time is on it is no
// decision of the run, and stays.
func record(t *sim.Tape) *recorder {
	r := &recorder{from: fresh(t), grain: t.Grain()}
	if r.grain > 0 {
		r.tape.Streams = []sim.Stream{{Purpose: sim.ForGrain, Values: []uint64{uint64(r.grain)}}}
	}
	return r
}

// Grain is how coarse the time of the run is.
func (r *recorder) Grain() time.Duration { return r.grain }

// Draw decides as its source does.
func (r *recorder) Draw(purpose sim.Purpose, actor int, n uint64) uint64 {
	v := r.from.Draw(purpose, actor, n)
	if v >= n {
		v %= n
	}
	key := [2]int{int(purpose), actor}
	i, known := r.at[key]
	if !known {
		if r.at == nil {
			r.at = map[[2]int]int{}
		}
		i = len(r.tape.Streams)
		r.at[key] = i
		r.tape.Streams = append(r.tape.Streams, sim.Stream{Purpose: purpose, Actor: actor})
	}
	r.tape.Streams[i].Values = append(r.tape.Streams[i].Values, v)
	return v
}

// fresh reads a tape from its start and leaves the tape alone.
func fresh(t *sim.Tape) *sim.Tape {
	return &sim.Tape{Streams: t.Streams[:len(t.Streams):len(t.Streams)]}
}

// withoutEmpty is a tape of its own, of the streams that hold something.
func withoutEmpty(t *sim.Tape) *sim.Tape {
	out := &sim.Tape{}
	for i := range t.Streams {
		if s := &t.Streams[i]; len(s.Values) > 0 {
			out.Streams = append(out.Streams, sim.Stream{Purpose: s.Purpose, Actor: s.Actor, Values: append([]uint64(nil), s.Values...)})
		}
	}
	return out
}

// withTape is the present run with another tape.
func (s *shrinker) withTape(edit func(t *sim.Tape)) *state {
	next := *s.now
	next.tape = withoutEmpty(s.now.tape)
	edit(next.tape)
	return &next
}

// decides reports whether a stream of that purpose holds decisions: an id is a
// name, and how coarse time is is a property of the whole run.
func decides(p sim.Purpose) bool { return p != sim.ForEntropy && p != sim.ForGrain }

func zeros(values []uint64) bool {
	for _, v := range values {
		if v != 0 {
			return false
		}
	}
	return true
}

// plainStreams tries to make all decisions of a purpose the plainest, then all
// of one actor. Entropy is not a decision but a name: it becomes a small one.
func (s *shrinker) plainStreams() {
	for p := sim.Purpose(0); int(p) < len(sim.PurposeNames()); p++ {
		s.doing = "decisions on " + p.String()
		switch p {
		case sim.ForEntropy:
			s.smallNames()
			continue
		case sim.ForGrain:
			continue
		}
		of := func(t *sim.Tape) []*sim.Stream {
			var some []*sim.Stream
			for i := range t.Streams {
				if st := &t.Streams[i]; st.Purpose == p && !zeros(st.Values) {
					some = append(some, st)
				}
			}
			return some
		}
		if len(of(s.now.tape)) == 0 || s.try(s.withTape(func(t *sim.Tape) {
			for _, st := range of(t) {
				clear(st.Values)
			}
		}), false) {
			continue
		}
		s.eachStream(p, func(st *sim.Stream) { clear(st.Values) })
	}
}

// eachStream tries an edit of each stream of a purpose that is not plain yet.
func (s *shrinker) eachStream(p sim.Purpose, edit func(st *sim.Stream)) {
	var actors []int
	for i := range s.now.tape.Streams {
		if st := &s.now.tape.Streams[i]; st.Purpose == p && !zeros(st.Values) {
			actors = append(actors, st.Actor)
		}
	}
	for _, actor := range actors {
		s.try(s.withTape(func(t *sim.Tape) {
			for i := range t.Streams {
				if st := &t.Streams[i]; st.Purpose == p && st.Actor == actor {
					edit(st)
				}
			}
		}), false)
	}
}

// smallNames has every process's entropy hold one small number of its own: all
// zeros would give all of them one id, which is another story.
func (s *shrinker) smallNames() {
	const bytes = 16
	small := func(st *sim.Stream) {
		clear(st.Values)
		for i := bytes - 1; i < len(st.Values); i += bytes {
			st.Values[i] = uint64(st.Actor*16+i/bytes+1) % 256
		}
	}
	plain := true
	for i := range s.now.tape.Streams {
		if st := s.now.tape.Streams[i]; st.Purpose == sim.ForEntropy {
			was := append([]uint64(nil), st.Values...)
			st.Values = append([]uint64(nil), st.Values...)
			small(&st)
			plain = plain && fmt.Sprint(was) == fmt.Sprint(st.Values)
		}
	}
	if plain {
		return
	}
	s.try(s.withTape(func(t *sim.Tape) {
		for i := range t.Streams {
			if st := &t.Streams[i]; st.Purpose == sim.ForEntropy {
				small(st)
			}
		}
	}), false)
}

// plainDecisions tries ever smaller stretches of each stream.
func (s *shrinker) plainDecisions() {
	s.doing = "single decisions"
	for i := 0; i < len(s.now.tape.Streams); i++ {
		st := &s.now.tape.Streams[i]
		if !decides(st.Purpose) || zeros(st.Values) {
			continue
		}
		// An accepted edit may change which streams there are and how long they
		// are: what is meant is found again by its name.
		s.plainStretch(st.Purpose, st.Actor, 0, len(st.Values))
	}
}

// plainStretch tries to make [low, high) of a stream plain, else its halves.
func (s *shrinker) plainStretch(p sim.Purpose, actor, low, high int) {
	st := find(s.now.tape, p, actor)
	if st == nil || s.spent() {
		return
	}
	if high = min(high, len(st.Values)); low >= high || zeros(st.Values[low:high]) {
		return
	}
	if s.try(s.withTape(func(t *sim.Tape) { clear(find(t, p, actor).Values[low:high]) }), false) || high-low == 1 {
		return
	}
	middle := (low + high) / 2
	s.plainStretch(p, actor, middle, high) // what comes late matters least
	s.plainStretch(p, actor, low, middle)
}

func find(t *sim.Tape, p sim.Purpose, actor int) *sim.Stream {
	for i := range t.Streams {
		if st := &t.Streams[i]; st.Purpose == p && st.Actor == actor {
			return st
		}
	}
	return nil
}
