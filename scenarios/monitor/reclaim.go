package monitor

import (
	"fmt"

	"vigil/core"
)

// RECLAIM: what a dead worker held is given back in time. Each thing held is
// judged when it goes, and whatever is left when the run ends or the server
// goes away.

// reclaimDeadline is when the last thing of the kind must be gone; noKind is
// the blend state, which goes with either.
func (m *Set) reclaimDeadline(in *instance, kind int) core.Time {
	pinged := in.pinged[serverDriven] || in.pinged[engineDriven]
	if kind != noKind {
		pinged = in.pinged[kind]
	}
	window := m.setup.Grace
	if pinged {
		window = m.setup.Reap
	}
	due := max(in.deadAt, in.lastReached, in.opened, in.stamped, m.upSince).Add(window)
	if in.copies > 0 { // it is kept for as long as a client would wait for it
		due = max(due, in.copyBegan.Add(core.DefaultTimeout))
	}
	return due.Add(m.setup.Scan + m.releases() + m.setup.CopyBound + stepSlack)
}

// copyBegan and copyEnded follow the copies that keep a context where a
// transfer keeps it alive.
func (m *Set) copyBegan(r *core.Record) {
	if i := m.instances.get(uint64(r.Instance)); i >= 0 {
		in := &m.instances.items[i]
		in.copies++
		in.copyBegan = r.At
	}
}

func (m *Set) copyEnded(r *core.Record) {
	if i := m.instances.get(uint64(r.Instance)); i >= 0 {
		if in := &m.instances.items[i]; in.copies > 0 {
			in.copies--
			in.stamped = r.At // the end of a transfer renews as its begin does
		}
	}
}

// owesReclaim reports whether anything of the instance must be given back.
func (m *Set) owesReclaim(in *instance) bool {
	return in.dead() && m.up && m.setup.Reap != 0 && !m.setup.ServerLegacy
}

// reclaimLate judges a thing that goes now.
func (m *Set) reclaimLate(in *instance, kind int, at core.Time, what string) {
	if !m.owesReclaim(in) {
		return
	}
	if due := m.reclaimDeadline(in, kind); at > due {
		m.reclaimBroken(in, due, fmt.Sprintf("%s died at %s and %s went only at %s",
			m.whose(in), seconds(in.deadAt), what, seconds(at)))
	}
}

func (m *Set) reclaimBroken(in *instance, due core.Time, message string) {
	if m.first(reclaim, in.worker) {
		m.report(reclaim, due, message, in.worker)
	}
	m.isolateReap(in, due)
}

// reclaimAll judges what dead workers still hold.
func (m *Set) reclaimAll(at core.Time) {
	if m.setup.Reap == 0 || m.setup.ServerLegacy || !m.up {
		return
	}
	for i := range m.mappings.items {
		mp := &m.mappings.items[i]
		if mp.id == 0 || mp.stuck {
			continue
		}
		in := &m.instances.items[mp.instance]
		if !in.dead() {
			continue
		}
		due := m.reclaimDeadline(in, serverDriven)
		if m.mayPark(int32(i)) {
			due = due.Add(m.bounds.park)
		}
		if at > due {
			why := "nothing began to release them"
			switch {
			case mp.failed:
				why = fmt.Sprintf("their close of %s failed", seconds(mp.closingAt))
			case mp.closing:
				why = fmt.Sprintf("their close has waited since %s", seconds(mp.closingAt))
			}
			m.reclaimBroken(in, due, fmt.Sprintf("%s died at %s and %d bytes of it (mapping %d) are still charged to the server: %s",
				m.whose(in), seconds(in.deadAt), mp.bytes, mp.id, why))
		}
	}
	for i := range m.contexts.items {
		x := &m.contexts.items[i]
		if x.incarnation == 0 || !x.serving && x.shares <= 0 && x.strategies <= 0 || m.stuckMapping(x) {
			continue
		}
		in := &m.instances.items[x.instance]
		if !in.dead() {
			continue
		}
		due := m.reclaimDeadline(in, int(x.kind))
		if mp := m.mappings.get(x.mapping); x.mapping != 0 && mp >= 0 && m.mayPark(mp) {
			due = due.Add(m.bounds.park) // the share goes with its mapping, or is reported with it
		}
		if at > due {
			what := "its strategy is"
			if x.serving {
				what = "its context is"
			} else if x.shares > 0 {
				what = "its share of the layout is"
			}
			m.reclaimBroken(in, due, fmt.Sprintf("%s died at %s and %s still held (%s, incarnation %d)",
				m.whose(in), seconds(in.deadAt), what, kindNames[x.kind], x.incarnation))
		}
	}
	for i := range m.instances.items {
		in := &m.instances.items[i]
		if !in.rope || !in.dead() {
			continue
		}
		if due := m.reclaimDeadline(in, noKind); at > due {
			m.reclaimBroken(in, due, fmt.Sprintf("%s died at %s and its blend state is still held",
				m.whose(in), seconds(in.deadAt)))
		}
	}
}
