package monitor

import "vigil/core"

// context is one incarnation from the first thing held for it to the last.
type context struct {
	incarnation core.Incarnation // 0: the place is free
	instance    int32
	kind        int8
	serving     bool
	removed     bool
	decided     bool  // the reaper decided on it
	shares      int32 // of its layout descriptor
	strategies  int32
	reserved    int32  // chunks half written for it
	mapping     uint64 // open mapping, 0 for none
	order       uint64 // of its insertion
	insertedAt  core.Time
	decidedAt   core.Time
	removedAt   core.Time
}

// layout is one shared layout descriptor.
type layout struct{ holders int64 }

// contextOf returns the place of an incarnation, made where it is new; -1 where
// it has no number or the bound is reached.
func (m *Set) contextOf(n core.Incarnation, instance int32, kind int) int32 {
	i := m.contexts.get(uint64(n))
	if i < 0 {
		if i = m.contexts.add(uint64(n), 2*core.MaxInstances); i >= 0 {
			c := &m.contexts.items[i]
			c.incarnation, c.instance, c.kind = n, instance, int8(kind)
			c.insertedAt, c.decidedAt, c.removedAt = never, never, never
		}
	}
	return i
}

// letGo frees a context's place once nothing is held for it.
func (m *Set) letGo(i int32) {
	c := &m.contexts.items[i]
	if !c.serving && c.shares <= 0 && c.strategies <= 0 && c.reserved <= 0 && c.mapping == 0 {
		n := c.incarnation
		c.incarnation = 0
		m.contexts.drop(uint64(n), i)
	}
}

// unsettle has instance i judged as a whole when the present step is over.
func (m *Set) unsettle(i int32, at core.Time) {
	m.unsettledAt = at
	if in := &m.instances.items[i]; !in.queued {
		in.queued = true
		m.unsettled = append(m.unsettled, i)
	}
}

// settle judges the instances that the step now over has changed.
func (m *Set) settle() {
	for _, i := range m.unsettled {
		in := &m.instances.items[i]
		in.queued = false
		m.oneSettled(in)
		m.fenceSettled(in)
	}
	m.unsettled = m.unsettled[:0]
}

func (m *Set) contextInserted(r *core.Record) {
	kind := kindOf(r.Context)
	if kind == noKind {
		return
	}
	i := m.instance(r.Instance)
	if i < 0 {
		return
	}
	in := &m.instances.items[i]
	m.oneInserted(in, kind, r)
	m.quietInserted(in, kind, r)
	if in.worker >= 0 {
		m.convergeCheck(in.worker, r.At)
	}
	in.has[kind], in.serving[kind], in.pinged[kind], in.traffic[kind] = true, r.Incarnation, false, false
	m.order++
	if c := m.contextOf(r.Incarnation, i, kind); c >= 0 {
		x := &m.contexts.items[c]
		x.instance, x.kind = i, int8(kind)
		x.serving, x.removed, x.insertedAt, x.order = true, false, r.At, m.order
		if r.A != 0 && m.mappings.get(r.A) >= 0 {
			x.mapping = r.A
			mp := &m.mappings.items[m.mappings.get(r.A)]
			if mp.incarnation == 0 {
				mp.incarnation = r.Incarnation
			}
		}
	}
	m.unsettle(i, r.At)
}

func (m *Set) reapDecided(r *core.Record) {
	if c := m.contexts.get(uint64(r.Incarnation)); c >= 0 {
		x := &m.contexts.items[c]
		x.decided, x.decidedAt = true, r.At
	}
}

func (m *Set) contextRemoved(r *core.Record) {
	kind := kindOf(r.Context)
	i := m.instances.get(uint64(r.Instance))
	if kind == noKind || i < 0 {
		return
	}
	in := &m.instances.items[i]
	c := m.contexts.get(uint64(r.Incarnation))
	cause := core.RemovalCause(r.A)
	if !in.has[kind] {
		m.onceRemoved(in, kind, r)
		return
	}
	m.fenceRemoved(in, kind, c, cause, r)
	if cause == core.RemovedByReaper || cause == core.RemovedByProof {
		decidedAt, insertedAt := r.At, never
		if c >= 0 {
			insertedAt = m.contexts.items[c].insertedAt
			if m.contexts.items[c].decided {
				decidedAt = m.contexts.items[c].decidedAt
			}
		}
		m.reapJudged(in, kind, cause, insertedAt, decidedAt, r.At)
		m.order++
		in.reapedOrder = m.order
	}
	m.reclaimLate(in, kind, r.At, "its context")
	in.has[kind], in.emptySince[kind], in.removedCause[kind] = false, r.At, cause
	in.serving[kind] = 0
	if c >= 0 {
		x := &m.contexts.items[c]
		x.serving, x.removed, x.removedAt = false, true, r.At
		if mp := m.mappings.get(x.mapping); x.mapping != 0 && mp >= 0 {
			m.released(mp)
		}
		m.letGo(c)
	}
	m.unsettle(i, r.At)
}

func (m *Set) strategyChanged(r *core.Record) {
	i := m.instance(r.Instance)
	if i < 0 {
		return
	}
	in := &m.instances.items[i]
	by := int32(1)
	if r.Kind == core.StrategyRemoved {
		by = -1
		m.reclaimLate(in, engineDriven, r.At, "its transfer strategy")
	}
	in.strategies += by
	if c := m.contextOf(r.Incarnation, i, engineDriven); c >= 0 {
		m.contexts.items[c].strategies += by
		m.letGo(c)
	}
	m.unsettle(i, r.At)
}

func (m *Set) layoutAcquired(r *core.Record) {
	i := m.instance(r.Instance)
	kind := kindOf(r.Context)
	if i < 0 || kind == noKind {
		return
	}
	if c := m.contextOf(r.Incarnation, i, kind); c >= 0 {
		m.contexts.items[c].shares++
	}
	m.onceShare(&m.instances.items[i], r, 1)
	m.unsettle(i, r.At)
}

func (m *Set) layoutReleased(r *core.Record) {
	i := m.instance(r.Instance)
	kind := kindOf(r.Context)
	if i < 0 || kind == noKind {
		return
	}
	in := &m.instances.items[i]
	m.reclaimLate(in, kind, r.At, "its layout share")
	m.onceShare(in, r, -1)
	if c := m.contexts.get(uint64(r.Incarnation)); c >= 0 {
		if x := &m.contexts.items[c]; x.shares > 0 {
			x.shares--
		}
		m.letGo(c)
	}
	m.unsettle(i, r.At)
}

func (m *Set) ropeAdded(r *core.Record) {
	if i := m.instance(r.Instance); i >= 0 {
		in := &m.instances.items[i]
		m.order++
		in.rope, in.ropeOrder = true, m.order
	}
}

func (m *Set) ropeDropped(r *core.Record) {
	i := m.instances.get(uint64(r.Instance))
	if i < 0 {
		return
	}
	in := &m.instances.items[i]
	if r.A == 1 && in.rope {
		m.fanOutJudged(in, r)
	}
	m.reclaimLate(in, noKind, r.At, "its blend state")
	in.rope = false
}
