package monitor

import (
	"fmt"

	"vigil/core"
)

// QUIET: who left stays gone. A worker has left when it sent its unregister;
// the server knows when it handled that. A worker that died has left too: a
// register that had reached the host in its life, and that the server got round
// to long after its death, is a ghost's (B8).

func (m *Set) unregisterSent(r *core.Record) {
	n := int64(r.Actor) - int64(core.FirstWorker)
	k := m.worker(n)
	if k == nil {
		return
	}
	m.leaving(n, r.At)
	if k.left {
		return
	}
	k.left = true
	if k.instance >= 0 {
		in := &m.instances.items[k.instance]
		in.everLeft = true
		in.leftOwners++
	}
}

// quietSent judges a ping or register by a worker.
func (m *Set) quietSent(w int32, r *core.Record) {
	if !m.workers[w].left || !m.first(quiet, w) {
		return
	}
	what := "pinged"
	if r.Kind == core.RegisterSent {
		what = "registered"
	}
	m.report(quiet, r.At, fmt.Sprintf("%s %s after it sent its unregister", m.name(w), what), w)
}

// timerInVain passes on that a timer came that nobody waited for: what a thread
// no longer waits for is taken back, or it wakes a process for nothing for ever.
func (m *Set) timerInVain(r *core.Record) {
	w, who := nobody, "the server"
	if r.A > 0 {
		w = int32(r.A) - 1
		who = m.name(w)
	}
	if m.first(quiet, w) {
		m.report(quiet, r.At, fmt.Sprintf("the timer %s of %s came and nobody waited for it, or was still armed when it left", core.TimerKind(r.B), who), w)
	}
}

func (m *Set) unregisterCame(r *core.Record) {
	kind := kindOf(r.Context)
	i := m.instances.get(uint64(r.Instance))
	if kind == noKind || i < 0 {
		return
	}
	if in := &m.instances.items[i]; in.everLeft && !in.present() {
		in.left[kind] = true
	}
}

func (m *Set) quietInserted(in *instance, kind int, r *core.Record) {
	m.quietGhost(in, kind, r)
	if !in.left[kind] || in.present() {
		in.left[kind] = false // a new owner of the id starts anew
		return
	}
	if m.first(quiet, in.worker) {
		m.report(quiet, r.At, fmt.Sprintf("%s has a %s context (incarnation %d) again after the server handled its unregister",
			m.whose(in), kindNames[kind], r.Incarnation), in.worker)
	}
}

// quietFinish judges what outlived the unregister.
func (m *Set) quietFinish(in *instance, end core.Time) {
	for kind := range in.left {
		if in.left[kind] && in.has[kind] && !in.present() && m.first(quiet, in.worker) {
			m.report(quiet, end, fmt.Sprintf("%s's %s context %d outlived the unregister that the server handled",
				m.whose(in), kindNames[kind], in.serving[kind]), in.worker)
		}
	}
}

// quietGhost judges a context that a register brought about.
func (m *Set) quietGhost(in *instance, kind int, r *core.Record) {
	if !in.dead() || in.aliased || in.registerReached[kind] == never || in.registerReached[kind] > in.deadAt {
		return
	}
	due := max(in.deadAt, m.upSince).Add(2*m.setup.NetworkBound + stepSlack)
	if in.registerRun[kind] <= due || !m.first(quiet, in.worker) {
		return
	}
	m.report(quiet, r.At, fmt.Sprintf("%s died at %s and has a %s context (incarnation %d): its register had waited since %s and was run at %s for nobody",
		m.whose(in), seconds(in.deadAt), kindNames[kind], r.Incarnation, seconds(in.registerReached[kind]), seconds(in.registerRun[kind])), in.worker)
}
