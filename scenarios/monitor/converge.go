package monitor

import (
	"fmt"
	"time"

	"vigil/core"
)

// CONVERGE: once faults stop, a worker that wants to serve has its context
// within a bound, or was told clearly why not: its old mapping is stuck, or the
// device has no room (that what is gone gives its room back is RECLAIM's matter). It is judged whenever something changes what is owed, and at
// the end of the run.

// wants reports whether worker w is owed a context now.
func (m *Set) wants(w int32) bool {
	k, s := &m.workers[w], &m.setup.Workers[w]
	return k.registered && k.calmly() && !k.leave && k.instance >= 0 && m.up &&
		!s.Prober && s.Legacy == m.setup.ServerLegacy
}

// owedSince is when the bound on worker w's context began to run.
func (m *Set) owedSince(w int32) core.Time {
	k := &m.workers[w]
	in := &m.instances.items[k.instance]
	return max(m.faultsOver, m.upSince, k.calm, k.registeredAt, k.registerLate,
		in.emptySince[kindOfMode(m.setup.Workers[w].Mode)])
}

// convergeBound is the longest honest way to a context: a ping that is lost
// runs into its deadline, the thread sleeps, the next ping succeeds, the
// register waits behind everybody else's and behind the old release.
func (m *Set) convergeBound(w int32) time.Duration {
	return 2*m.setup.Workers[w].Interval + 4*m.setup.NetworkBound + m.bounds.opens +
		m.setup.ReleaseBound + m.setup.CopyBound + stepSlack
}

func (m *Set) convergeCheck(w int32, now core.Time) {
	if w < 0 || int(w) >= len(m.workers) || now < m.faultsOver || !m.wants(w) {
		return
	}
	k := &m.workers[w]
	in := &m.instances.items[k.instance]
	kind := kindOfMode(m.setup.Workers[w].Mode)
	if in.has[kind] {
		return
	}
	since := m.owedSince(w)
	deadline := since.Add(m.convergeBound(w))
	if k.pending && k.registerSent <= since {
		// The heartbeat thread sits in a register that was lost to the faults.
		deadline = deadline.Add(m.setup.Workers[w].Timeout)
	}
	if now <= deadline || k.lastFailure == core.FailOutOfMemory || m.toldStuck(k) || !m.first(converge, w) {
		return
	}
	m.report(converge, deadline, fmt.Sprintf("%s has no %s context, owed since %s within %s: %s",
		m.name(w), kindNames[kind], seconds(since), seconds(core.Time(deadline.Sub(since))), m.whyEmpty(k, in, kind)), w)
}

// toldStuck reports whether the worker's old mapping is stuck and its register
// was refused for it: then it owes nothing more than the clear word.
func (m *Set) toldStuck(k *worker) bool {
	if k.lastFailure == core.NoFailure || k.lastFailure == core.FailDeadline {
		return false
	}
	for _, i := range m.closing {
		if mp := &m.mappings.items[i]; mp.stuck && mp.instance == k.instance {
			return true
		}
	}
	return false
}

// whyEmpty names the reason, as far as the records tell one.
func (m *Set) whyEmpty(k *worker, in *instance, kind int) string {
	for _, i := range m.closing {
		if mp := &m.mappings.items[i]; mp.instance == k.instance {
			return fmt.Sprintf("its old mapping is held, its close has waited since %s", seconds(mp.closingAt))
		}
	}
	if k.pending {
		return fmt.Sprintf("its register has waited for an answer since %s", seconds(k.registerSent))
	}
	if k.lastFailure != core.NoFailure {
		return fmt.Sprintf("its last register, sent at %s, ended with %s", seconds(k.registerSent), k.lastFailure)
	}
	lost := seconds(in.emptySince[kind])
	switch {
	case in.emptySince[kind] == never:
		return "none was ever inserted"
	case in.removedCause[kind] == core.RemovedByReaper:
		return fmt.Sprintf("the reaper took it at %s and nothing made the worker register again", lost)
	case in.removedCause[kind] == core.RemovedByStop:
		return fmt.Sprintf("the server lost it with its process at %s and nothing made the worker register again", lost)
	}
	return fmt.Sprintf("it was removed at %s and nothing made the worker register again", lost)
}

func (m *Set) registerSent(r *core.Record) {
	n := int64(r.Actor) - int64(core.FirstWorker)
	k := m.worker(n)
	if k == nil {
		return
	}
	m.quietSent(int32(n), r)
	k.pending, k.registerSent = true, r.At
}

func (m *Set) registerEnded(r *core.Record) {
	n := int64(r.Actor) - int64(core.FirstWorker)
	k := m.worker(n)
	if k == nil {
		return
	}
	m.isolateRegister(int32(n), r.At, false)
	if r.Failure != core.NoFailure && k.instance >= 0 {
		m.convergeCheck(int32(n), r.At)
		if m.faultsOver != core.Never && k.registerSent <= m.owedSince(int32(n)) {
			k.registerLate = r.At
		}
	}
	k.pending, k.lastFailure = false, r.Failure
}
