package monitor

import (
	"fmt"

	"vigil/core"
)

// INTEGRITY: the device memory compares every delivered block's tag with what
// a finished writer stored under that key; this monitor only passes it on.

func (m *Set) blocksWrong(r *core.Record) {
	m.saw.engines = true
	w, who := nobody, "an engine"
	if i := m.instances.get(uint64(r.Instance)); i >= 0 {
		in := &m.instances.items[i]
		w, who = in.worker, m.whose(in)+"'s engine"
	}
	if m.first(integrity, w) {
		m.report(integrity, r.At, fmt.Sprintf("%s was told that request %d loaded, and block %d holds other bytes than were stored under its key",
			who, r.A, r.B), w)
	}
}
