package monitor

import (
	"fmt"

	"vigil/core"
)

// ONCE: what is opened is closed once, and a shared descriptor lives exactly as
// long as its holders.

// onceMapping takes the device memory's word for opens and closes out of place.
func (m *Set) onceMapping(r *core.Record) {
	m.saw.memory = true
	w, who := nobody, "a mapping"
	if i := m.instances.get(uint64(r.Instance)); i >= 0 {
		in := &m.instances.items[i]
		w, who = in.worker, m.whose(in)+"'s mapping"
	}
	if !m.first(once, w) {
		return
	}
	what := "closed or copied though it was never opened"
	switch r.Kind {
	case core.MappingReopened:
		what = fmt.Sprintf("opened over memory (allocation %d) that is still open in the server", r.B)
	case core.MappingClosedTwice:
		what = "closed twice"
	}
	m.report(once, r.At, fmt.Sprintf("%s %d was %s", who, r.A, what), w)
}

// parcelLeft passes on that data of a message became nobody's.
func (m *Set) parcelLeft(r *core.Record) {
	if m.first(once, nobody) {
		m.report(once, r.At, fmt.Sprintf("%d bytes that came inside a message are kept for nobody", r.B))
	}
}

// onceReused judges an open under a number that is open.
func (m *Set) onceReused(i int32, r *core.Record) {
	in := &m.instances.items[i]
	if m.first(once, in.worker) {
		m.report(once, r.At, fmt.Sprintf("%s's memory was opened as mapping %d, which is open already", m.whose(in), r.A), in.worker)
	}
}

// onceRemoved judges a removal with nothing there to remove.
func (m *Set) onceRemoved(in *instance, kind int, r *core.Record) {
	if m.first(once, in.worker) {
		m.report(once, r.At, fmt.Sprintf("%s's %s context %d was removed and none was serving",
			m.whose(in), kindNames[kind], r.Incarnation), in.worker)
	}
}

// onceShare counts one share of a layout, and holds the server's own count
// against it.
func (m *Set) onceShare(in *instance, r *core.Record, by int64) {
	key := r.A
	if key == 0 {
		key = 1
	}
	at := m.layouts.get(key)
	if at < 0 {
		if at = m.layouts.add(key, core.MaxInstances); at < 0 {
			return
		}
	}
	l := &m.layouts.items[at]
	l.holders += by
	holders := l.holders
	if holders <= 0 {
		m.layouts.drop(key, at)
	}
	c := m.contexts.get(uint64(r.Incarnation))
	switch {
	case by > 0 && c >= 0 && m.contexts.items[c].shares > 1:
		if m.first(once, in.worker) {
			m.report(once, r.At, fmt.Sprintf("%s's context %d took a second share of its layout", m.whose(in), r.Incarnation), in.worker)
		}
	case by < 0 && (c < 0 || m.contexts.items[c].shares <= 0):
		if m.first(once, in.worker) {
			m.report(once, r.At, fmt.Sprintf("%s's context %d gave back a share of the layout that it did not hold", m.whose(in), r.Incarnation), in.worker)
		}
	case holders < 0 || uint64(holders) != r.B:
		if m.first(once, in.worker) {
			m.report(once, r.At, fmt.Sprintf("the layout of %s's context %d has %d holders and the server counts %d",
				m.whose(in), r.Incarnation, holders, r.B), in.worker)
		}
	}
}

// onceStopped judges what a server that stopped in order still holds. A close
// that has begun is matched; that it hangs is VISIBLE's and RECLAIM's matter.
func (m *Set) onceStopped(r *core.Record) {
	m.settle()
	for i := range m.mappings.items {
		mp := &m.mappings.items[i]
		if mp.id == 0 || mp.closing {
			continue
		}
		in := &m.instances.items[mp.instance]
		if mp.stuck {
			continue
		}
		if m.first(once, in.worker) {
			m.report(once, r.At, fmt.Sprintf("the server stopped and never closed %s's mapping %d (%d bytes)",
				m.whose(in), mp.id, mp.bytes), in.worker)
		}
	}
	for i := range m.contexts.items {
		x := &m.contexts.items[i]
		if x.incarnation == 0 || m.underRelease(x) {
			continue
		}
		in := &m.instances.items[x.instance]
		var left string
		switch {
		case x.shares > 0:
			left = "its share of the layout was not given back"
		case x.strategies > 0:
			left = "its strategy was not removed"
		case x.serving:
			left = "it was not removed"
		default:
			continue
		}
		if m.first(once, in.worker) {
			m.report(once, r.At, fmt.Sprintf("the server stopped and of %s's %s context %d %s",
				m.whose(in), kindNames[x.kind], x.incarnation, left), in.worker)
		}
	}
}

// onceFinish judges contexts that went long ago and whose mapping or share was
// forgotten while the server ran on. While a release is under way the others
// may stand behind it: that is ISOLATE's and RECLAIM's matter.
func (m *Set) onceFinish(end core.Time) {
	if !m.up || len(m.closing) > 0 {
		return
	}
	for i := range m.contexts.items {
		x := &m.contexts.items[i]
		if x.incarnation == 0 || x.serving || !x.removed || x.shares <= 0 && x.mapping == 0 || m.underRelease(x) || m.stuckMapping(x) {
			continue
		}
		due := max(x.removedAt, m.upSince).Add(m.releases() + m.setup.CopyBound + stepSlack)
		in := &m.instances.items[x.instance]
		if end <= due || !m.first(once, in.worker) {
			continue
		}
		what := "its share of the layout was never given back"
		if x.mapping != 0 {
			what = m.whyOpen(x.mapping)
		}
		m.report(once, due, fmt.Sprintf("%s's %s context %d went at %s and %s",
			m.whose(in), kindNames[x.kind], x.incarnation, seconds(x.removedAt), what), in.worker)
	}
}

// whyOpen says why a forgotten mapping is open.
func (m *Set) whyOpen(id uint64) string {
	if at := m.mappings.get(id); at >= 0 && m.mappings.items[at].failed {
		return fmt.Sprintf("the close of its mapping %d failed at %s and was not tried again", id, seconds(m.mappings.items[at].closingAt))
	}
	return fmt.Sprintf("its mapping %d was never closed", id)
}
