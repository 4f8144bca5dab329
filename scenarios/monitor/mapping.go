package monitor

import (
	"time"

	"vigil/core"
)

// mapping is one open mapping of a worker's memory in the server, by the truth.
type mapping struct {
	id          uint64 // 0: the place is free
	instance    int32
	incarnation core.Incarnation
	bytes       uint64
	closing     bool // its release has begun
	hung        bool // and will not end
	stuck       bool // and was reported as stuck
	failed      bool // its last close failed, as the server recorded
	counted     bool // in its instance's live
	closingAt   core.Time
	place       int32 // in Set.closing
}

// slowRelease is the last release that ran past its bound and ended: from when
// it was overdue until it ended.
type slowRelease struct {
	instance int32
	from, to core.Time
}

func (m *Set) mappingOpened(r *core.Record) {
	m.saw.memory = true
	i := m.instance(r.Instance)
	if i < 0 {
		return
	}
	if m.mappings.get(r.A) >= 0 {
		m.onceReused(i, r)
		return
	}
	at := m.mappings.add(r.A, core.MaxInstances)
	if at < 0 {
		return
	}
	mp := &m.mappings.items[at]
	mp.id, mp.instance, mp.incarnation, mp.bytes, mp.place = r.A, i, r.Incarnation, r.B, -1
	m.oneOpened(&m.instances.items[i], mp, r)
	mp.counted = true
	m.instances.items[i].live++
	m.instances.items[i].opened = r.At
	if c := m.contextOf(r.Incarnation, i, serverDriven); c >= 0 {
		m.contexts.items[c].mapping = r.A
	}
	m.peak = max(m.peak, m.mappings.index.used)
}

// released says that the mapping no longer counts as one that serves.
func (m *Set) released(at int32) {
	mp := &m.mappings.items[at]
	if mp.counted {
		mp.counted = false
		m.instances.items[mp.instance].live--
	}
}

func (m *Set) mappingClosing(r *core.Record) {
	at := m.mappings.get(r.A)
	if at < 0 {
		return
	}
	mp := &m.mappings.items[at]
	m.fenceClosing(mp, r)
	if mp.closing {
		return
	}
	m.released(at)
	mp.closing, mp.failed, mp.closingAt, mp.place = true, false, r.At, int32(len(m.closing))
	m.closing = append(m.closing, at)
	m.unsettle(mp.instance, r.At)
}

func (m *Set) mappingClosed(r *core.Record) {
	at := m.mappings.get(r.A)
	if at < 0 {
		return
	}
	mp := &m.mappings.items[at]
	in := &m.instances.items[mp.instance]
	if !mp.stuck {
		m.reclaimLate(in, serverDriven, r.At, "its mapped bytes")
	}
	m.visibleRelease(mp, r.At)
	m.released(at)
	m.closeOver(mp, r.At)
	if c := m.contexts.get(uint64(mp.incarnation)); c >= 0 && m.contexts.items[c].mapping == mp.id {
		m.contexts.items[c].mapping = 0
		m.letGo(c)
	}
	mp.id = 0
	m.mappings.drop(r.A, at)
}

// closeOver takes a mapping out of those in release, if it is one.
func (m *Set) closeOver(mp *mapping, at core.Time) {
	if !mp.closing {
		return
	}
	mp.closing = false
	if due := mp.closingAt.Add(m.setup.ReleaseBound); at > due {
		m.lastSlow = slowRelease{mp.instance, due, at}
	}
	last := len(m.closing) - 1
	moved := m.closing[last]
	m.closing[mp.place] = moved
	m.mappings.items[moved].place = mp.place
	m.closing = m.closing[:last]
}

// closeEnded takes note of a close that failed: it gave nothing back, holds
// nobody up any more, and the record itself is what an operator can see.
func (m *Set) closeEnded(r *core.Record) {
	at := m.mappings.get(r.A)
	if r.Failure == core.NoFailure || at < 0 {
		return
	}
	mp := &m.mappings.items[at]
	m.visibleRelease(mp, r.At)
	m.closeOver(mp, r.At)
	mp.failed = true
	m.failed = r.A
}

// warned takes the server's word for an operator. Where releases run on their
// own, that of a failed close is its report: what it left is counted and shown
// with its bytes.
func (m *Set) warned(r *core.Record) {
	if r.Failure != core.FailClose || !m.setup.Protections.IndependentReleases || m.failed == 0 {
		return
	}
	if at := m.mappings.get(m.failed); at >= 0 {
		mp := &m.mappings.items[at]
		if !mp.stuck { // else it was reported long ago, and is only tried again
			m.reclaimLate(&m.instances.items[mp.instance], serverDriven, r.At, "the report of its failed release")
		}
		mp.stuck = true
	}
	m.failed = 0
}

func (m *Set) mappingHung(r *core.Record) {
	if at := m.mappings.get(r.A); at >= 0 {
		m.mappings.items[at].hung = true
	}
}

// releaseStuck is the server's report that a release passed its bound.
func (m *Set) releaseStuck(r *core.Record) {
	if at := m.mappings.get(r.A); at >= 0 {
		mp := &m.mappings.items[at]
		m.visibleRelease(mp, r.At)
		m.reclaimLate(&m.instances.items[mp.instance], serverDriven, r.At.Add(-m.bounds.park), "the report of its stuck release")
		mp.stuck = true
	}
}

// stuckMapping reports whether the context's mapping was reported as stuck.
func (m *Set) stuckMapping(c *context) bool {
	at := m.mappings.get(c.mapping)
	return c.mapping != 0 && at >= 0 && m.mappings.items[at].stuck
}

// mayPark reports whether the release of a mapping has begun: it is closing, or
// waits for a copy on it. Such a one may be reported instead of given back.
func (m *Set) mayPark(at int32) bool {
	mp := &m.mappings.items[at]
	if mp.closing {
		return true
	}
	c := m.contexts.get(uint64(mp.incarnation))
	return c >= 0 && m.contexts.items[c].removed && m.instances.items[mp.instance].copying > 0
}

// underRelease reports whether the context's mapping is in release.
func (m *Set) underRelease(c *context) bool {
	at := m.mappings.get(c.mapping)
	return c.mapping != 0 && at >= 0 && m.mappings.items[at].closing
}

// releases is the longest honest line of releases: all that were ever open at
// once, and one more.
func (m *Set) releases() time.Duration { return queue(m.peak+1, m.setup.ReleaseBound) }
