package hostshm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Why this file: what an operator may ask, and the orderly end.

// Stats reads the counters.
func (m *Memory) Stats() Stats {
	m.mu.Lock()
	s := Stats{Mappings: len(m.mappings), Charged: m.charged}
	m.mu.Unlock()
	s.Opening, s.Closing, s.Copying = m.running[Open].Load(), m.running[Close].Load(), m.running[Copy].Load()
	s.Opened, s.Closed, s.Copied = m.counts.opened.Load(), m.counts.closed.Load(), m.counts.copied.Load()
	s.CopiedBytes, s.Failed, s.Faults = m.counts.bytes.Load(), m.counts.failed.Load(), m.counts.faults.Load()
	s.Overlaps, s.Reopened = m.counts.overlaps.Load(), m.counts.reopened.Load()
	return s
}

// Held lists the mappings by number.
func (m *Memory) Held() []Held {
	now := time.Now()
	m.mu.Lock()
	list := make([]Held, 0, len(m.mappings))
	for number, mp := range m.mappings {
		list = append(list, Held{Mapping: number, Owner: mp.owner, Incarnation: mp.incarnation, Bytes: mp.bytes, State: stateNames[mp.state], For: now.Sub(mp.since)})
	}
	m.mu.Unlock()
	slices.SortFunc(list, func(a, b Held) int { return cmp.Compare(a.Mapping, b.Mapping) })
	return list
}

// Hooked reports whether trouble may be made on purpose.
func (m *Memory) Hooked() bool { return m.hooks != nil }

// Shutdown ends the backend: nothing begins any more, what hangs on purpose
// ends without an input, what works is waited for until ctx ends, and then
// every mapping is released. An error names what is held still, which ends
// with the process.
func (m *Memory) Shutdown(ctx context.Context) error {
	m.mu.Lock()
	if !m.stopped {
		m.stopped = true
		close(m.stop)
	}
	m.mu.Unlock()
	ended := make(chan struct{})
	go func() { m.work.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		s := m.Stats()
		return fmt.Errorf("hostshm: %d opens, %d closes and %d copies have not ended; %d bytes of %d mappings are held: %w",
			s.Opening, s.Closing, s.Copying, s.Charged, s.Mappings, context.Cause(ctx))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var first error
	for number, mp := range m.mappings {
		failed := false
		for i := range mp.segments {
			if err := mp.segments[i].release(); err != nil && !failed {
				failed = true
				if first == nil {
					first = fmt.Errorf("hostshm: mapping %d of instance %d: %w", number, mp.owner, err)
				}
			}
		}
		if !failed {
			m.discharge(mp)
			delete(m.mappings, number)
		}
	}
	return first
}
