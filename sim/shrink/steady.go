package shrink

import (
	"time"

	"vigil/faults"
	"vigil/sim"
)

// A story that fails by one tape may lie on a knife's edge: all its times are
// round, so that two things fall on one moment and the order of them decides.
// Where other tapes fail seldom, or fail otherwise, another round time is
// looked for that is off the edge.

// steadier tries other times, and where those do not help one request at a
// time of its own in the place of traffic that goes on, and keeps what raises
// the score among many tapes. It reports whether it kept something.
func (s *shrinker) steadier() (kept bool) {
	if s.o.Score == nil || s.spent() {
		return false
	}
	s.doing = "other tapes"
	score := s.o.Score(s.now.plan, manyTapes)
	for range maxSteadier {
		best, bestScore := (*state)(nil), score
		var bestTape *sim.Tape
		var bestHash = s.hash
		for _, edit := range append(s.otherTimes(), s.oneRequest()...) {
			if bestScore == manyTapes || s.spent() {
				break
			}
			next := s.edited(edit)
			if next == nil {
				continue
			}
			key, hash, asked := s.play(next)
			if key != s.key {
				continue
			}
			if got := s.o.Score(next.plan, manyTapes); got > bestScore {
				best, bestScore, bestTape, bestHash = next, got, asked, hash
			}
		}
		if best == nil {
			return kept
		}
		best.tape = bestTape
		if !s.confirm(best, bestHash) {
			return kept
		}
		s.now, s.hash, score, kept = best, bestHash, bestScore, true
		s.score = s.o.Score(s.now.plan, fewTapes)
	}
	return kept
}

// maxSteadier bounds how often a time is changed for a better one.
const maxSteadier = 4

// otherTimes are edits that change one time of the story for another round one.
func (s *shrinker) otherTimes() []func(p *sim.Plan) {
	var edits []func(p *sim.Plan)
	change := func(span func(p *sim.Plan) *faults.Span, to time.Duration) {
		if now := *span(s.now.plan); to > 0 && !now.Zero() && now.Low == now.High && now.Low != to {
			edits = append(edits, func(p *sim.Plan) { *span(p) = faults.Fixed(to) })
		}
	}
	for i := range s.now.plan.Workers {
		every := func(p *sim.Plan) *faults.Span { return &p.Workers[i].Traffic.Every }
		for _, seconds := range []time.Duration{10, 20, 30, 40, 50, 60, 70, 90, 120, 150, 180, 200, 240, 300} {
			change(every, seconds*time.Second)
		}
	}
	for i := range s.now.plan.Steps {
		for _, span := range []func(p *sim.Plan) *faults.Span{
			func(p *sim.Plan) *faults.Span { return &p.Steps[i].At },
			func(p *sim.Plan) *faults.Span { return &p.Steps[i].Do.Fault.For },
		} {
			now := span(s.now.plan).Low
			if span(s.now.plan) == &s.now.plan.Steps[i].At && s.now.plan.Steps[i].When != nil {
				continue
			}
			for _, by := range []time.Duration{-30, -20, -10, -5, 5, 10, 20, 30} {
				change(span, now+by*time.Second)
			}
		}
	}
	return edits
}

// oneRequest are edits that end a worker's traffic before the trouble begins,
// and have it ask once after the trouble is over: what was asked for in the
// middle of it, or in the moment of its end, is often another story.
func (s *shrinker) oneRequest() []func(p *sim.Plan) {
	first, over := time.Duration(-1), time.Duration(0)
	for i := range s.now.plan.Steps {
		st := &s.now.plan.Steps[i]
		if st.When != nil || st.After > 0 || st.Do.Kind != sim.ActFault {
			return nil
		}
		if first < 0 || st.At.Low < first {
			first = st.At.Low
		}
		over = max(over, st.At.High+st.Do.Fault.For.High)
	}
	if first <= 0 {
		return nil
	}
	var edits []func(p *sim.Plan)
	for i := range s.now.plan.Workers {
		if t := &s.now.plan.Workers[i].Traffic; t.Every.Zero() || t.To != 0 {
			continue
		}
		for _, every := range []time.Duration{10, 20, 30} {
			for _, later := range []time.Duration{5, 10, 15, 20, 30} {
				edits = append(edits, func(p *sim.Plan) {
					p.Workers[i].Traffic = sim.Traffic{Every: faults.Fixed(every * time.Second), To: first}
					p.Steps = append(p.Steps, sim.Step{
						At: faults.Fixed(over + later*time.Second),
						Do: sim.Action{Kind: sim.ActStore, Worker: i, Prompt: -1, On: true},
					})
				})
			}
		}
	}
	return edits
}
