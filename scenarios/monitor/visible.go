package monitor

import (
	"fmt"

	"vigil/core"
	"vigil/core/wire"
)

// VISIBLE: what needs an operator is said. Decidable from records: a release
// past its bound is reported as stuck, and a ping that another version sent is
// recorded as refused.

// visibleRelease judges a release that goes on until now.
func (m *Set) visibleRelease(mp *mapping, now core.Time) {
	if !mp.closing || mp.stuck || !m.up {
		return
	}
	window := m.setup.Reap
	if window == 0 {
		window = core.DefaultReap
	}
	due := max(mp.closingAt, m.upSince).Add(window + m.setup.Scan + m.setup.ReleaseBound + stepSlack)
	in := &m.instances.items[mp.instance]
	if now <= due || !m.first(visible, in.worker) {
		return
	}
	m.report(visible, due, fmt.Sprintf("the close of %s's mapping %d has waited since %s with %d bytes and was not reported as stuck",
		m.whose(in), mp.id, seconds(mp.closingAt), mp.bytes), in.worker)
}

// skewedWorker returns the worker behind a peer if its version differs from
// the server's.
func (m *Set) skewedWorker(peer uint64) *worker {
	i := m.peers.get(peer)
	if i < 0 {
		return nil
	}
	n := m.peers.items[i]
	if m.setup.Workers[n].Legacy == m.setup.ServerLegacy {
		return nil
	}
	return &m.workers[n]
}

func (m *Set) skewHandled(r *core.Record) {
	if r.B == uint64(wire.Ping) {
		if k := m.skewedWorker(r.A); k != nil {
			k.skewHandled = true
		}
	}
}

func (m *Set) skewRefused(r *core.Record) {
	if r.A == uint64(wire.Ping) && r.Failure == core.FailPayloadCount {
		if k := m.skewedWorker(r.B); k != nil {
			k.skewRefused = true
		}
	}
}

func (m *Set) skewFinish(w int32, end core.Time) {
	if k := &m.workers[w]; k.skewHandled && !k.skewRefused && m.first(visible, w) {
		m.report(visible, end, fmt.Sprintf("%s pings in another protocol version and the server never recorded a refusal", m.name(w)), w)
	}
}
