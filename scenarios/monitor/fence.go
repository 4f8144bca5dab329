package monitor

import (
	"fmt"

	"vigil/core"
)

// FENCE: late work for an old incarnation leaves the new one alone.

// fenceRemoved judges a removal while the id has a serving context.
func (m *Set) fenceRemoved(in *instance, kind int, c int32, cause core.RemovalCause, r *core.Record) {
	if in.serving[kind] != r.Incarnation {
		if m.first(fence, in.worker) {
			m.report(fence, r.At, fmt.Sprintf("%s's %s context %d lost its place to the removal of incarnation %d",
				m.whose(in), kindNames[kind], in.serving[kind], r.Incarnation), in.worker)
		}
		return
	}
	if cause == core.RemovedByReaper && c >= 0 && !m.contexts.items[c].decided && m.first(fence, in.worker) {
		m.report(fence, r.At, fmt.Sprintf("%s's %s context %d was reaped though the reaper never decided on that incarnation",
			m.whose(in), kindNames[kind], r.Incarnation), in.worker)
	}
}

// fanOutJudged judges a drop of blend state by the reaper's fan-out.
func (m *Set) fanOutJudged(in *instance, r *core.Record) {
	switch {
	case in.ropeOrder > in.reapedOrder:
		if m.first(fence, in.worker) {
			m.report(fence, r.At, fmt.Sprintf("%s's blend state was dropped by a reap that came before it was registered, or by none",
				m.whose(in)), in.worker)
		}
	case in.has[serverDriven] && m.olderThanRope(in):
		if m.first(one, in.worker) {
			m.report(one, r.At, fmt.Sprintf("%s's blend state was dropped while the server-driven context that it mirrors serves on",
				m.whose(in)), in.worker)
		}
	}
}

// olderThanRope reports whether the serving server-driven context was not
// replaced since the blend state came: the reap was of the other kind.
func (m *Set) olderThanRope(in *instance) bool {
	c := m.contexts.get(uint64(in.serving[serverDriven]))
	return c >= 0 && m.contexts.items[c].order < in.ropeOrder
}

// closeBegan is the server's claim of which incarnation it closes.
func (m *Set) closeBegan(r *core.Record) {
	if at := m.mappings.get(r.A); at >= 0 {
		m.fenceClosing(&m.mappings.items[at], r)
	}
}

func (m *Set) fenceClosing(mp *mapping, r *core.Record) {
	if mp.incarnation == 0 || r.Incarnation == 0 || mp.incarnation == r.Incarnation {
		return
	}
	if in := &m.instances.items[mp.instance]; m.first(fence, in.worker) {
		m.report(fence, r.At, fmt.Sprintf("%s's mapping %d of incarnation %d is closed by work for incarnation %d",
			m.whose(in), mp.id, mp.incarnation, r.Incarnation), in.worker)
	}
}

// fenceSettled judges a step that is over: what serves must not be in release.
func (m *Set) fenceSettled(in *instance) {
	if !in.has[serverDriven] {
		return
	}
	c := m.contexts.get(uint64(in.serving[serverDriven]))
	if c >= 0 && m.underRelease(&m.contexts.items[c]) && m.first(fence, in.worker) {
		m.report(fence, m.unsettledAt, fmt.Sprintf("%s's context %d serves while mapping %d under it is being closed",
			m.whose(in), in.serving[serverDriven], m.contexts.items[c].mapping), in.worker)
	}
}

// fenceChunk judges a writer that finishes a chunk.
func (m *Set) fenceChunk(q *reservation, r *core.Record) {
	if r.Incarnation == 0 || q.incarnation == r.Incarnation {
		return
	}
	w := nobody
	if i := m.instances.get(uint64(r.Instance)); i >= 0 {
		w = m.instances.items[i].worker
	}
	if m.first(fence, w) {
		m.report(fence, r.At, fmt.Sprintf("slot %d is reserved by incarnation %d and was finished by incarnation %d",
			r.A, q.incarnation, r.Incarnation), w)
	}
}
