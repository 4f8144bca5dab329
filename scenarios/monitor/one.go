package monitor

import (
	"fmt"

	"vigil/core"
)

// ONE: at most one serving context of a kind per id, and its parts change
// together. What the server claims is judged at once; the parts are judged when
// the step that changed them is over, for within a step one must come first.

func (m *Set) oneInserted(in *instance, kind int, r *core.Record) {
	if in.has[kind] && m.first(one, in.worker) {
		m.report(one, r.At, fmt.Sprintf("%s has a second %s context: incarnation %d was inserted while %d serves",
			m.whose(in), kindNames[kind], r.Incarnation, in.serving[kind]), in.worker)
	}
	if kind == serverDriven && r.A != 0 && (!m.setup.Real || m.saw.memory) && m.mappings.get(r.A) < 0 && m.first(one, in.worker) {
		m.report(one, r.At, fmt.Sprintf("%s's context %d was inserted over mapping %d, which is not open",
			m.whose(in), r.Incarnation, r.A), in.worker)
	}
}

// oneOpened is called before the new mapping counts.
func (m *Set) oneOpened(in *instance, mp *mapping, r *core.Record) {
	if in.live > 0 && m.first(one, in.worker) {
		m.report(one, r.At, fmt.Sprintf("%s's memory is mapped twice: mapping %d (%d bytes) was opened while another one serves and no release of it began",
			m.whose(in), mp.id, mp.bytes), in.worker)
	}
}

func (m *Set) oneSettled(in *instance) {
	for kind := range in.has {
		if !in.has[kind] {
			continue
		}
		c := m.contexts.get(uint64(in.serving[kind]))
		if c < 0 {
			continue
		}
		x := &m.contexts.items[c]
		if x.shares != 1 && m.first(one, in.worker) {
			m.report(one, m.unsettledAt, fmt.Sprintf("%s's serving %s context %d holds %d shares of its layout instead of one",
				m.whose(in), kindNames[kind], x.incarnation, x.shares), in.worker)
		}
		if kind == engineDriven && (x.strategies != 1 || in.strategies != 1) && m.first(one, in.worker) {
			m.report(one, m.unsettledAt, fmt.Sprintf("%s's serving engine-driven context %d has %d strategies of its own and the id has %d, instead of one pair",
				m.whose(in), x.incarnation, x.strategies, in.strategies), in.worker)
		}
	}
	if !in.has[engineDriven] && in.strategies != 0 && !m.stopping && m.first(one, in.worker) {
		m.report(one, m.unsettledAt, fmt.Sprintf("%s's engine-driven context is gone and %d strategies stayed behind",
			m.whose(in), in.strategies), in.worker)
	}
}
