package monitor

import (
	"vigil/core"
)

// What the server writes of opens and closes, against the mappings as they are.

// mappingLog is one mapping, as claimed and as it is.
type mappingLog struct {
	bytes   uint64 // charged, in truth
	opened  bool   // in truth
	closed  bool   // in truth, since the last close began
	began   bool   // its open is claimed
	ended   bool   // and its end
	closing bool   // a close is claimed
	since   core.Time
}

// mapping is device memory being opened or closed in truth.
func (s *serverLog) mapping(l *Log, r *core.Record) {
	at := s.mappings.get(r.A)
	if at < 0 {
		l.wrong(r, nobody, "the world did so to mapping %d, of which the log holds nothing", r.A)
		return
	}
	m := &s.mappings.items[at]
	switch r.Kind {
	case core.MappingOpened:
		m.opened, m.bytes = true, r.B
	case core.MappingClosing:
		if !m.closing {
			l.wrong(r, nobody, "mapping %d is being closed, and the log does not say so", r.A)
		}
	case core.MappingClosed:
		m.closed = true
	}
}

// memory is a record about an open or a close.
func (s *serverLog) memory(l *Log, r *core.Record) {
	at := s.mappings.get(r.A)
	if r.Kind == core.OpenBegan {
		s.operation(l, r, r.B)
		if at >= 0 {
			l.wrong(r, nobody, "mapping %d is there", r.A)
			return
		}
		if at = s.mappings.add(r.A, followed); at >= 0 {
			s.mappings.items[at].began = true
		}
		return
	}
	if at < 0 {
		if s.mappings.index.used < followed {
			l.wrong(r, nobody, "of the open of mapping %d nothing is told, or it is closed", r.A)
		}
		return
	}
	m := &s.mappings.items[at]
	well := r.Failure == core.NoFailure
	switch r.Kind {
	case core.OpenEnded:
		if m.ended || well != m.opened || well && r.B != m.bytes {
			l.wrong(r, nobody, "mapping %d has %d bytes, or is not open, or that was told", r.A, m.bytes)
		}
		if m.ended = true; !well {
			s.mappings.drop(r.A, at)
		}
	case core.CloseBegan:
		s.operation(l, r, r.B)
		if !m.ended || m.closing {
			l.wrong(r, nobody, "mapping %d is not open, or is being closed", r.A)
		}
		m.closing, m.closed, m.since = true, false, r.At
	case core.CloseEnded:
		given := uint64(0)
		if m.closed {
			given = m.bytes
		}
		if !m.closing || well != m.closed || r.B != given {
			l.wrong(r, nobody, "%d bytes of mapping %d came back, or no close began", given, r.A)
		}
		if m.closing = false; well {
			s.mappings.drop(r.A, at)
		}
	case core.ReleaseStuck:
		if r.B != m.bytes {
			l.wrong(r, nobody, "mapping %d has %d bytes", r.A, m.bytes)
		}
	}
}
