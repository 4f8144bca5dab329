package explain

import (
	"cmp"
	"slices"

	"vigil/core"
	"vigil/scenarios"
	"vigil/sim"
)

// Doom is from when on the failure could hardly be avoided: the run is followed
// to a moment, and from there on the world decides anew, many times. How many of
// those futures fail, against the moment, is a curve; where it rises most is the
// moment of doom.
type Doom struct {
	Forks  int // futures of each moment
	Points []Point
	// Alone: the futures are without the steps that had not struck by then. A
	// story that is written to fail does so in nearly every future; what can be
	// asked of it is after which of its steps there was no way back.
	Alone bool
	// Before and After are the points between which the share rises most, and
	// Line is what happens there. After is 0 where the failure was certain from
	// the start: then no single moment is to blame but the scenario itself.
	Before, After int
	Line          *Moment
}

// Point is one moment and how many of its futures failed.
type Point struct {
	At     core.Time
	Failed int
}

// Moment is what happened at a time.
type Moment struct {
	At    core.Time
	Actor string
	Words string
}

const (
	// coarse is how many moments the curve has before it is refined.
	coarse = 16
	// refinements is how many more are looked at where it rises most.
	refinements = 6
)

// fork follows a tape up to a time; from the first decision after a record of
// that time or later, a seed decides. It sees the records to know the time.
type fork struct {
	tape  *sim.Tape
	fresh *sim.Choices
	from  core.Time
	now   core.Time
}

// Draw decides.
func (f *fork) Draw(purpose sim.Purpose, actor int, n uint64) uint64 {
	if f.now < f.from {
		return f.tape.Draw(purpose, actor, n)
	}
	return f.fresh.Below(purpose, actor, n)
}

// Observe keeps the time.
func (f *fork) Observe(r *core.Record) { f.now = r.At }

// moments are the times that the curve is drawn at: those at which something
// that matters happens, thinned out.
func (t *trials) moments(x *Explanation) []core.Time {
	var all []core.Time
	for i := range x.Scenes {
		if s := &x.Scenes[i]; s.At > 0 && s.At <= x.Violation.At {
			all = append(all, s.At)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > coarse {
		thin := make([]core.Time, 0, coarse)
		for i := range coarse {
			thin = append(thin, all[i*(len(all)-1)/(coarse-1)])
		}
		all = slices.Compact(thin)
	}
	return append([]core.Time{0}, all...)
}

// doom draws the curve and refines it where it rises most.
func (t *trials) doom(x *Explanation, moments []core.Time, forks int) *Doom {
	d := &Doom{Forks: forks}
	first := t.point(x, moments[0], d)
	if 10*first.Failed > 9*forks {
		d.Alone = true
		first = t.point(x, moments[0], d)
	}
	d.Points = append(d.Points, first)
	for _, m := range moments[1:] {
		d.Points = append(d.Points, t.point(x, m, d))
	}
	for range refinements {
		d.rise()
		if d.After == 0 {
			break
		}
		between := t.between(x, d.Points[d.Before].At, d.Points[d.After].At)
		if between < 0 {
			break
		}
		d.Points = append(d.Points, t.point(x, between, d))
		slices.SortFunc(d.Points, func(a, b Point) int { return cmp.Compare(a.At, b.At) })
	}
	d.rise()
	if d.After > 0 {
		d.Line = name(x, d.Points[d.Before].At, d.Points[d.After].At)
	}
	return d
}

// point counts the futures of a moment that fail.
func (t *trials) point(x *Explanation, at core.Time, d *Doom) Point {
	p := Point{At: at}
	s := t.capsule.Scenario
	if d.Alone {
		s = x.alone(s, at)
	}
	for n := range d.Forks {
		if t.ctx.Err() != nil {
			return p
		}
		f := &fork{tape: &sim.Tape{Streams: t.capsule.Tape.Streams}, fresh: sim.NewChoices(uint64(n) + 1), from: at, now: -1}
		if at == 0 {
			f.now = 0 // before the first record there are decisions, too
		}
		if t.breaks(s, t.capsule.Protections, sim.ChoicesFrom(f), f) {
			p.Failed++
		}
	}
	return p
}

// alone is the scenario without the steps that strike at a time or later.
func (x *Explanation) alone(s *scenarios.Scenario, at core.Time) *scenarios.Scenario {
	struck := make([]core.Time, len(s.Plan.Steps))
	for i := range struck {
		struck[i] = core.Never
	}
	for i := range x.Story.Lines {
		if r := &x.Story.Lines[i].Record; r.Kind == core.FaultStruck && r.A < uint64(len(struck)) {
			struck[r.A] = min(struck[r.A], r.At)
		}
	}
	for i := range struck {
		if struck[i] >= at {
			s = without(s, i)
		}
	}
	return s
}

// rise finds the two neighbours between which the share rises most.
func (d *Doom) rise() {
	d.Before, d.After = 0, 0
	most := 0
	for i := 1; i < len(d.Points); i++ {
		if up := d.Points[i].Failed - d.Points[i-1].Failed; up > most {
			most, d.Before, d.After = up, i-1, i
		}
	}
	// A rise that could be chance is none: three deviations of the difference of
	// two counts.
	if 2*most*most <= 9*d.Forks {
		d.Before, d.After = 0, 0
	}
}

// between is the middle one of the times at which anything is recorded after
// one time and before another, -1 where there is none.
func (t *trials) between(x *Explanation, low, high core.Time) core.Time {
	var times []core.Time
	for i := range x.Story.Lines {
		if at := x.Story.Lines[i].At; at > low && at < high && (len(times) == 0 || times[len(times)-1] != at) {
			times = append(times, at)
		}
	}
	if len(times) == 0 {
		return -1
	}
	return times[len(times)/2]
}

// name says what happens from one time on, up to another: what the futures of
// the later one have behind them, and those of the earlier one do not. A fault
// says more than anything, then what matters to the violation.
func name(x *Explanation, low, high core.Time) *Moment {
	var best *Moment
	rank := 0
	for i := range x.Scenes {
		s := &x.Scenes[i]
		if s.At < low || s.At >= high && low != high {
			continue
		}
		r := 1
		switch {
		case s.Record.Kind == core.FaultStruck && s.Record.Flag:
			r = 4
		case s.Weight == Turning:
			r = 3
		case s.Weight == Telling:
			r = 2
		}
		if r > rank {
			rank, best = r, &Moment{s.At, s.Actor, s.Words}
		}
	}
	if best == nil {
		for i := range x.Story.Lines {
			if l := &x.Story.Lines[i]; l.At >= low && l.At < high {
				return &Moment{l.At, l.Actor, l.Words}
			}
		}
	}
	return best
}
