package monitor

import (
	"fmt"

	"vigil/core"
)

// INTEGRITY: the device memory compares every delivered block's tag with what
// a finished writer stored under that key, and every copy's bounds with what was
// exported and with its slot's size; this monitor only passes it on. The bytes
// of engine-driven workers are not the server's to see. There the writer
// finishes by its COMMIT, which needs the context: a chunk that becomes
// readable after its context went was swept there half written (B10).

func (m *Set) blocksWrong(r *core.Record) {
	m.saw.engines = true
	w, who := nobody, "an engine"
	if i := m.instances.get(uint64(r.Instance)); i >= 0 {
		in := &m.instances.items[i]
		w, who = in.worker, m.whose(in)+"'s engine"
	}
	if !m.first(integrity, w) {
		return
	}
	what := "was told that request %d loaded, and block %d holds other bytes than were stored under its key"
	if r.Flag {
		what = "was told to keep away from other blocks of request %d than it should, the first is %d"
	}
	m.report(integrity, r.At, who+fmt.Sprintf(" "+what, r.A, r.B), w)
}

// copyMisfit passes on that a copy left its bounds.
func (m *Set) copyMisfit(r *core.Record) {
	m.saw.memory = true
	w, who := nobody, "an instance"
	if i := m.instances.get(uint64(r.Instance)); i >= 0 {
		in := &m.instances.items[i]
		w, who = in.worker, m.whose(in)
	}
	if m.first(integrity, w) {
		m.report(integrity, r.At, fmt.Sprintf("a copy on mapping %d of %s goes beyond its blocks, or does not fill its slot: %d", r.A, who, r.B), w)
	}
}

// halfWritten judges a chunk that becomes readable.
func (m *Set) halfWritten(q *reservation, r *core.Record) {
	c := m.contexts.get(uint64(q.incarnation))
	if c < 0 {
		return
	}
	x := &m.contexts.items[c]
	in := &m.instances.items[x.instance]
	if x.kind != engineDriven || !x.removed || !m.first(integrity, in.worker) {
		return
	}
	m.report(integrity, r.At, fmt.Sprintf("slot %d became readable when %s's engine-driven context %d had gone at %s: it was reserved and never committed",
		r.A, m.whose(in), q.incarnation, seconds(x.removedAt)), in.worker)
}
