package monitor

import (
	"time"

	"vigil/core"
)

// What the server writes of its registries' entries: who serves, what was
// stamped, who was reaped.

type contextLog struct {
	stamp   core.Time
	stamped bool
	latched bool
	serving bool
}

// context is a record about an entry of a registry.
func (s *serverLog) context(l *Log, r *core.Record) {
	if r.Context == core.RopeState {
		if r.Kind == core.RegisterNoop && !s.begun(r, true) {
			l.wrong(r, nobody, "no register came")
		}
		return
	}
	at := s.contexts.get(uint64(r.Incarnation))
	if r.Kind == core.ContextInserted {
		if at >= 0 || !s.begun(r, true) {
			l.wrong(r, nobody, "incarnation %d serves already, or no register came for it", r.Incarnation)
		}
		if at < 0 {
			at = s.contexts.add(uint64(r.Incarnation), followed)
		}
		if s.live++; at >= 0 {
			s.contexts.items[at] = contextLog{serving: true}
		}
		if r.Context == core.ServerDriven {
			if m := s.mappings.get(r.A); m < 0 || !s.mappings.items[m].ended || s.mappings.items[m].bytes != r.B {
				l.wrong(r, nobody, "mapping %d with %d bytes is not what was opened for it", r.A, r.B)
			}
		}
		return
	}
	if at < 0 {
		if s.contexts.index.used < followed {
			l.wrong(r, nobody, "incarnation %d was not inserted", r.Incarnation)
		}
		return
	}
	c := &s.contexts.items[at]
	switch r.Kind {
	case core.Stamped:
		if c.stamped && core.Time(r.A) < c.stamp || core.Time(r.A) > r.At && r.B != uint64(core.StampRegister) && !l.setup.ClockStands {
			l.wrong(r, nobody, "a stamp of %s after one of %s", seconds(core.Time(r.A)), seconds(c.stamp))
		}
		if (core.StampCause(r.B) == core.StampRegister) == c.stamped {
			l.wrong(r, nobody, "the first stamp of a context is its register's, and no other")
		}
		c.stamp, c.stamped = core.Time(r.A), true
	case core.Latched:
		if c.latched {
			l.wrong(r, nobody, "it has latched")
		}
		c.latched = true
	case core.RegisterNoop:
		if !s.begun(r, true) {
			l.wrong(r, nobody, "no register came")
		}
	case core.ReapDecided:
		window := l.setup.Grace
		if c.latched {
			window = l.setup.Reap
		}
		if core.Time(r.A) != c.stamp || r.Flag != c.latched || time.Duration(r.B) != window {
			l.wrong(r, nobody, "its last stamp was at %s, and its window is %s", seconds(c.stamp), seconds(window))
		}
		s.decided++
		bump(&s.reaped, uint64(r.Instance), 1)
	case core.ContextRemoved:
		switch core.RemovalCause(r.A) {
		case core.RemovedByProof:
			bump(&s.reaped, uint64(r.Instance), 1)
		case core.RemovedByClient:
			if !s.begun(r, false) {
				l.wrong(r, nobody, "no unregister came")
			}
		}
		count := uint64(0)
		if n := s.reaped.get(uint64(r.Instance)); n >= 0 {
			count = uint64(s.reaped.items[n])
		}
		if r.B != count {
			l.wrong(r, nobody, "instance %d was reaped %d times, and not %d", uint64(r.Instance), count, r.B)
		}
		s.live--
		s.contexts.drop(uint64(r.Incarnation), at)
	}
}
