package shrink

import (
	"slices"
	"time"

	"vigil/faults"
	"vigil/sim"
)

// The edits of times. A range becomes the one time that the tape chose, a time
// becomes a round one, a round one a shorter round one; the story moves to the
// front and the run ends soon after it.

// The grades of roundness; a lower one is rounder. The last is a time of which
// every nanosecond counts.
var grades = []time.Duration{time.Minute, 10 * time.Second, 5 * time.Second, time.Second, 100 * time.Millisecond, time.Millisecond}

func grade(d time.Duration) int {
	for g, unit := range grades {
		if d%unit == 0 {
			return g
		}
	}
	return len(grades)
}

// rounder returns the times around d that are rounder than it, the roundest
// first, the nearer of equals first, none of them 0.
func rounder(d time.Duration) []time.Duration {
	var out []time.Duration
	for _, unit := range grades[:grade(d)] {
		down := d - d%unit
		near, far := down, down+unit
		if d-down > unit/2 {
			near, far = far, near
		}
		for _, t := range []time.Duration{near, far} {
			if t > 0 && !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// shorterThan returns round times shorter than d and no less round.
func shorterThan(d time.Duration) []time.Duration {
	var out []time.Duration
	for _, t := range []time.Duration{10, 20, 30, 60, 120, 180, 240, 300, 600, 1200} {
		if t *= time.Second; t < d && grade(t) <= grade(d) {
			out = append(out, t)
		}
	}
	return out
}

// timeOf is a span of a plan and which decision of which stream chose in it.
type timeOf struct {
	span    func(p *sim.Plan) *faults.Span
	purpose sim.Purpose
	actor   int
	drawn   int  // its place in the stream while it is a range
	early   bool // it strikes the story; it may be made rounder, not shorter
	waits   bool // it follows a record: it may only become shorter
}

// every time of the plan that is one to make round.
func (s *shrinker) spans() []timeOf {
	var all []timeOf
	for i := range s.now.plan.Steps {
		st := &s.now.plan.Steps[i]
		waits := st.When != nil
		all = append(all, timeOf{span: func(p *sim.Plan) *faults.Span { return &p.Steps[i].At }, purpose: sim.ForStory, actor: i, early: true, waits: waits})
		after := 0
		if g := s.grain(); st.At.High/g > st.At.Low/g {
			after = 1
		}
		all = append(all,
			timeOf{span: func(p *sim.Plan) *faults.Span { return &p.Steps[i].Do.Fault.For }, purpose: sim.ForStory, actor: i, drawn: after, waits: waits},
			timeOf{span: func(p *sim.Plan) *faults.Span { return &p.Steps[i].Do.Fault.Amount }, purpose: sim.ForMemory, drawn: -1, waits: waits})
	}
	for i := range s.now.plan.Workers {
		all = append(all,
			timeOf{span: func(p *sim.Plan) *faults.Span { return &p.Workers[i].Start }, purpose: sim.ForStart, actor: i + 1, early: true},
			timeOf{span: func(p *sim.Plan) *faults.Span { return &p.Workers[i].Traffic.Every }, purpose: sim.ForTraffic, drawn: -1, early: true})
	}
	return all
}

// times makes ranges times, and times round.
func (s *shrinker) times() {
	s.doing = "times"
	for _, t := range s.spans() {
		now := *t.span(s.now.plan)
		if now.Zero() || s.spent() {
			continue
		}
		exact := now.Low
		if now.High > now.Low {
			s.fix(t)
			if now = *t.span(s.now.plan); now.High > now.Low {
				continue
			}
			exact = now.Low
		}
		tried := rounder(exact)
		if !t.early {
			tried = append(shorterThan(exact), tried...)
		}
		for _, d := range tried {
			if t.waits && d > exact {
				continue
			}
			if s.try(s.edited(func(p *sim.Plan) { *t.span(p) = faults.Fixed(d) }), true) {
				break
			}
		}
	}
	s.moveToFront()
}

// grain is the unit of the times that the tape chooses.
func (s *shrinker) grain() time.Duration { return max(1, s.now.tape.Grain()) }

// fix makes a range the one time that the tape chose in it, or a round one in
// its place.
func (s *shrinker) fix(t timeOf) {
	span := *t.span(s.now.plan)
	chosen := span.High // of a range that is drawn from again and again
	if t.drawn >= 0 {
		g := s.grain()
		chosen = span.Low / g * g
		if st := find(s.now.tape, t.purpose, t.actor); st != nil && t.drawn < len(st.Values) {
			chosen += time.Duration(st.Values[t.drawn]) * g
		}
	}
	if chosen == 0 {
		return // a time of nothing is no time that a file can give
	}
	for _, d := range append(rounder(chosen), chosen) {
		if t.waits && d > span.High {
			continue
		}
		next := s.edited(func(p *sim.Plan) { *t.span(p) = faults.Fixed(d) })
		if next == nil {
			continue
		}
		if t.drawn >= 0 { // the decision is no longer asked for
			next.tape = withoutEmpty(next.tape)
			if st := find(next.tape, t.purpose, t.actor); st != nil && t.drawn < len(st.Values) {
				st.Values = append(st.Values[:t.drawn:t.drawn], st.Values[t.drawn+1:]...)
			}
		}
		if s.try(next, true) {
			return
		}
	}
}

// moveToFront moves the whole story to an earlier time.
func (s *shrinker) moveToFront() {
	first := time.Duration(-1)
	for i := range s.now.plan.Steps {
		if st := &s.now.plan.Steps[i]; st.When == nil && st.After == 0 && (first < 0 || st.At.Low < first) {
			first = st.At.Low
		}
	}
	for _, d := range []time.Duration{20, 30, 60, 120, 180} {
		to := d * time.Second
		if first <= to {
			return
		}
		by := first - to
		if s.try(s.edited(func(p *sim.Plan) {
			for i := range p.Steps {
				if st := &p.Steps[i]; st.When == nil && st.After == 0 {
					st.At.Low, st.At.High = st.At.Low-by, st.At.High-by
				}
			}
			if over := p.Settled(); over > 0 && p.FaultsOver > 0 {
				p.FaultsOver = over
			}
		}), true) {
			return
		}
	}
}

// shorter has liveness owed as early as it can be and the run end early.
func (s *shrinker) shorter() {
	s.doing = "the run's length"
	if over := s.now.plan.Settled(); over > 0 && over != s.now.plan.FaultsOver && over < s.now.plan.Until {
		s.try(s.edited(func(p *sim.Plan) { p.FaultsOver = over }), true)
	}
	// The shortest that fails alike, in whole minutes: the failures of one kind
	// come once enough time has passed, so that halves find it.
	low, high := time.Duration(0), s.now.plan.Until
	for unit := time.Minute; high-low > unit; {
		middle := low + (high-low)/2/unit*unit
		if middle <= low {
			middle = low + unit
		}
		if middle >= high {
			return
		}
		if s.try(s.edited(func(p *sim.Plan) { p.Until = middle }), true) {
			high = middle
		} else {
			low = middle
		}
	}
}
