package monitor

import (
	"fmt"
	"time"

	"vigil/core"
)

// ISOLATE: a slow or stuck release is its owner's trouble alone. Judged only
// where a release is overdue: a ping that fails or a register that waits while
// nothing else disturbed its worker, or a reap that is late.

// overdue returns whose release, not except's, was past its bound during
// [from, to], and for how long of it; the longest one.
func (m *Set) overdue(from, to core.Time, except int32) (blocker int32, long time.Duration) {
	blocker = -1
	consider := func(instance int32, began, ended core.Time) {
		if span := min(to, ended).Sub(max(from, began)); instance >= 0 && instance != except && span > long {
			blocker, long = instance, span
		}
	}
	consider(m.lastSlow.instance, m.lastSlow.from, m.lastSlow.to)
	for _, i := range m.closing {
		mp := &m.mappings.items[i]
		consider(mp.instance, mp.closingAt.Add(m.setup.ReleaseBound), to)
	}
	return blocker, long
}

// undisturbed reports whether worker k and the server ran on since then.
func (m *Set) undisturbed(k *worker, since core.Time) bool {
	return !m.setup.Real && k.calmly() && k.calm <= since && m.up && m.upSince <= since
}

func (m *Set) pingSent(r *core.Record) {
	n := uint32(r.Actor - core.FirstWorker)
	if int(n) >= len(m.workers) {
		return
	}
	k := &m.workers[n]
	k.pingSent = r.At
	if k.left {
		m.quietSent(int32(n), r)
	}
}

func (m *Set) pingFailed(r *core.Record) {
	n := int64(r.Actor) - int64(core.FirstWorker)
	k := m.worker(n)
	if k == nil || m.setup.PoolFull || len(m.closing) == 0 && m.lastSlow.instance < 0 || r.Failure != core.FailDeadline ||
		k.pingSent == never || !m.undisturbed(k, k.pingSent) || m.setup.Workers[n].Legacy != m.setup.ServerLegacy {
		return
	}
	who, long := m.overdue(k.pingSent, r.At, k.instance)
	if who < 0 || long <= m.setup.Workers[n].Interval/2 || !m.first(isolate, int32(n)) {
		return
	}
	other := &m.instances.items[who]
	m.report(isolate, r.At, fmt.Sprintf("%s's ping of %s had no answer in its deadline while the release of %s was overdue",
		m.name(int32(n)), seconds(k.pingSent), m.whose(other)), int32(n), other.worker)
}

// isolateRegister judges the register of worker w that ends now, or has not
// ended when the run (or the worker) does.
func (m *Set) isolateRegister(w int32, at core.Time, unfinished bool) {
	k := &m.workers[w]
	if !k.pending || m.setup.OpensHang || m.releasing(k.instance) || len(m.closing) == 0 && m.lastSlow.instance < 0 || !m.undisturbed(k, k.registerSent) {
		return
	}
	who, long := m.overdue(k.registerSent, at, k.instance)
	if who < 0 || long <= 2*m.setup.NetworkBound+m.bounds.opens+stepSlack || !m.first(isolate, w) {
		return
	}
	waited := "waited until " + seconds(at)
	if unfinished {
		waited = "still waits"
	}
	other := &m.instances.items[who]
	m.report(isolate, at, fmt.Sprintf("%s's register of %s %s while the release of %s was overdue",
		m.name(w), seconds(k.registerSent), waited, m.whose(other)), w, other.worker)
}

// isolateReap judges a reap that was due and did not come.
func (m *Set) isolateReap(in *instance, due core.Time) {
	self := m.instances.get(uint64(in.id))
	who, long := m.overdue(due.Add(-m.setup.Scan), due, self)
	if who < 0 || long <= 0 || m.releasing(self) || !m.first(isolate, in.worker) {
		return
	}
	other := &m.instances.items[who]
	m.report(isolate, due, fmt.Sprintf("the reap of %s is late while the release of %s is overdue",
		m.whose(in), m.whose(other)), in.worker, other.worker)
}

// releasing reports whether a release of the instance itself is under way: its
// lateness is then its own, and its register waits for that.
func (m *Set) releasing(instance int32) bool {
	for _, i := range m.closing {
		if m.mappings.items[i].instance == instance {
			return true
		}
	}
	return false
}
