package cuda

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"vigil/core"
	"vigil/realgpu"
)

// Why this file: what an operator may ask, and the orderly end.

// Stats reads the counters. Charged counts an allocation once, however many
// registrations have it open.
func (m *Memory) Stats() realgpu.Stats {
	m.mu.Lock()
	s := realgpu.Stats{Mappings: len(m.mappings)}
	m.mu.Unlock()
	s.Charged = m.imports.sum()
	s.Opening, s.Closing, s.Copying = m.running[realgpu.Open].Load(), m.running[realgpu.Close].Load(), m.running[realgpu.Copy].Load()
	s.Opened, s.Closed, s.Copied = m.counts.opened.Load(), m.counts.closed.Load(), m.counts.copied.Load()
	s.CopiedBytes, s.Failed, s.Faults = m.counts.bytes.Load(), m.counts.failed.Load(), m.counts.faults.Load()
	s.Overlaps, s.Reopened = m.counts.overlaps.Load(), m.counts.reopened.Load()
	return s
}

// Held lists the mappings by number.
func (m *Memory) Held() []realgpu.Held {
	now := time.Now()
	m.mu.Lock()
	list := make([]realgpu.Held, 0, len(m.mappings))
	for number, mp := range m.mappings {
		h := realgpu.Held{Mapping: number, Owner: mp.owner, Incarnation: mp.incarnation, State: stateNames[mp.state], For: now.Sub(mp.since)}
		if mp.state != opening { // else its open still counts them
			h.Bytes = mp.bytes
		}
		list = append(list, h)
	}
	m.mu.Unlock()
	slices.SortFunc(list, func(a, b realgpu.Held) int { return cmp.Compare(a.Mapping, b.Mapping) })
	return list
}

// DeviceStatus is one device as this backend sees it.
type DeviceStatus struct {
	DeviceInfo
	Open uint64 // bytes of other processes' memory that are open on it
	Lost string // why it is isolated; empty where it is not
}

// Devices lists the devices by ordinal.
func (m *Memory) Devices() []DeviceStatus {
	list := make([]DeviceStatus, len(m.devices))
	for i, v := range m.devices {
		list[i].DeviceInfo = v.DeviceInfo
		if why := v.lost.Load(); why != nil {
			list[i].Lost = (*why).Error()
		}
	}
	m.imports.mu.Lock()
	defer m.imports.mu.Unlock()
	for _, x := range m.imports.byBase {
		list[x.device.Ordinal].Open += x.bytes
	}
	return list
}

// Lose isolates a device for a reason that somebody else found, such as a
// watch that cannot reach it any more. An unknown device is ignored.
func (m *Memory) Lose(u UUID, why error) {
	for _, v := range m.devices {
		if v.UUID == u {
			v.lose(why)
		}
	}
}

// Hooked reports whether trouble may be made on purpose.
func (m *Memory) Hooked() bool { return m.hooks != nil }

// Shutdown ends the backend: nothing begins any more, what hangs on purpose
// ends without an input, what works is waited for until ctx ends, and then
// every mapping is released and the contexts go. An error names what is held
// still, which ends with the process. It may be called again.
func (m *Memory) Shutdown(ctx context.Context) error {
	m.mu.Lock()
	if !m.stopped {
		m.stopped = true
		close(m.stop)
		go func() {
			m.work.Wait()
			m.left = m.releaseAll()
			m.closeDevices()
			close(m.ended)
		}()
	}
	m.mu.Unlock()
	select {
	case <-m.ended:
		return m.left
	case <-ctx.Done():
		s := m.Stats()
		return fmt.Errorf("cuda: %d opens, %d closes and %d copies have not ended; %d bytes of %d mappings are held: %w",
			s.Opening, s.Closing, s.Copying, s.Charged, s.Mappings, context.Cause(ctx))
	}
}

// releaseAll releases what is mapped still. Nothing else works any more.
func (m *Memory) releaseAll() (first error) {
	m.mu.Lock()
	left := make(map[core.Mapping]*mapping, len(m.mappings))
	for number, mp := range m.mappings {
		left[number] = mp
	}
	m.mu.Unlock()
	for number, mp := range left {
		if err := m.letGo(mp); err != nil {
			if first == nil {
				first = fmt.Errorf("cuda: mapping %d of instance %d: %w", number, mp.owner, err)
			}
			continue
		}
		m.mu.Lock()
		delete(m.mappings, number)
		m.mu.Unlock()
	}
	return first
}
