package monitor

import (
	"fmt"

	"vigil/core"
)

// NO-FALSE-REAP: who is alive and whose signals arrive is not reaped. A signal
// counts when it reaches the host, though it may wait there in an inbox or a
// pool: that wait is the server's, not the worker's. A signal at the very
// instant of the removal might have come after it, and does not count.

// Undisturbed are the words of the violation that rests on no signal but on the
// belief that a worker whom no fault touched was heard: with real processes the
// host may have kept it from its processor.
const Undisturbed = "it ran undisturbed"

// reapJudged judges a removal by the reaper (or by proof of death), before the
// instance loses its context. insertedAt and decidedAt are of that context.
func (m *Set) reapJudged(in *instance, kind int, cause core.RemovalCause, insertedAt, decidedAt, at core.Time) {
	if m.setup.Real && (!m.saw.processes || !m.saw.network) {
		return
	}
	if cause == core.RemovedByReaper && (m.setup.Reap == 0 || m.setup.ServerLegacy) {
		if m.first(noFalseReap, in.worker) {
			m.report(noFalseReap, at, fmt.Sprintf("%s was reaped though this server reaps nothing", m.whose(in)), in.worker)
		}
		return
	}
	if !in.present() {
		return
	}
	if cause == core.RemovedByProof {
		if m.first(noFalseReap, in.worker) {
			m.report(noFalseReap, at, fmt.Sprintf("%s was removed on proof of death while its process lives", m.whose(in)), in.worker)
		}
		return
	}
	window, name := m.setup.Grace, "registration grace"
	if in.pingEver {
		window, name = m.setup.Reap, "reap timeout"
	}
	late := func(signal core.Time) bool {
		return signal >= at || signal != never && m.setup.Handover > 0 && signal.Add(m.setup.Handover) >= decidedAt
	}
	last := in.signal[kind]
	if late(last) {
		last = in.earlier[kind]
	}
	if last != never && m.setup.Handover > 0 && late(last) {
		last = never // both of those that are remembered
	}
	// Stale is strictly more than the window.
	if last != never && decidedAt.Sub(last) <= window {
		if m.first(noFalseReap, in.worker) {
			m.report(noFalseReap, at, fmt.Sprintf("%s was reaped alive: its last signal reached the host at %s, %s before the reaper decided at %s, within its %s of %s",
				m.whose(in), seconds(last), seconds(decidedAt.Sub(last)), seconds(decidedAt), name, seconds(window)), in.worker)
		}
		return
	}
	if !m.setup.IdleNeverReaped || in.aliased || in.worker < 0 || m.setup.Workers[in.worker].Starved {
		return
	}
	k := &m.workers[in.worker]
	if calm := max(k.calm, m.upSince, insertedAt); k.calmly() && calm != never && decidedAt.Sub(calm) > window {
		if m.first(noFalseReap, in.worker) {
			m.report(noFalseReap, at, fmt.Sprintf("%s was reaped alive and idle: %s since %s, longer than its %s of %s",
				m.whose(in), Undisturbed, seconds(calm), name, seconds(window)), in.worker)
		}
	}
}
