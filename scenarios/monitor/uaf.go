package monitor

import (
	"fmt"

	"vigil/core"
)

// NO-UAF: the device memory itself sees a copy that runs into a release. A copy
// whose memory went with its owner, no release begun, is not the server's deed:
// what it delivered is INTEGRITY's matter.

func (m *Set) copyTouched(r *core.Record) {
	m.saw.memory = true
	w := nobody
	who := "a mapping"
	if i := m.instances.get(uint64(r.Instance)); i >= 0 {
		w = m.instances.items[i].worker
		who = m.whose(&m.instances.items[i]) + "'s mapping"
	}
	if r.Kind == core.CopyTouchedGone {
		at := m.mappings.get(r.A)
		if at >= 0 && !m.mappings.items[at].closing {
			return
		}
		if m.first(noUAF, w) {
			m.report(noUAF, r.At, fmt.Sprintf("a copy touched %s %d after its release", who, r.A), w)
		}
		return
	}
	if m.first(noUAF, w) {
		m.report(noUAF, r.At, fmt.Sprintf("the release of %s %d began under a copy (operation %d)", who, r.A, r.B), w)
	}
}
