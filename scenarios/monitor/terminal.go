package monitor

import (
	"fmt"
	"time"

	"vigil/core"
)

// TERMINAL: each request of an engine ends once and in time, and nothing half
// done stays behind.

// request is one thing an engine submitted and was not told the end of, or
// whose blocks it was told to keep away from.
type request struct {
	id    uint64
	at    core.Time // submitted, or told that it is held
	next  int32     // place + 1
	store bool
	held  bool
}

// MaxRequests bounds the requests followed at once in one run; what does not
// fit is not judged.
const MaxRequests = 1 << 20

func (m *Set) engineSubmitted(r *core.Record) {
	m.saw.engines = true
	i := m.instance(r.Instance)
	if i < 0 {
		return
	}
	var at int32
	if m.spare >= 0 {
		at = m.spare
		m.spare = m.requests[at].next - 1
	} else if len(m.requests) < MaxRequests {
		at = int32(len(m.requests))
		m.requests = append(m.requests, request{})
	} else {
		return
	}
	in := &m.instances.items[i]
	// The newest first: it is the likeliest to be told next.
	m.requests[at] = request{id: r.A, at: r.At, next: in.requests, store: r.Flag}
	in.requests = at + 1
}

func (m *Set) engineTold(r *core.Record) {
	i := m.instances.get(uint64(r.Instance))
	if i < 0 {
		return
	}
	in := &m.instances.items[i]
	outcome := core.Outcome(r.B)
	for link := &in.requests; *link != 0; link = &m.requests[*link-1].next {
		at := *link - 1
		q := &m.requests[at]
		if q.id != r.A {
			continue
		}
		if q.held != (outcome == core.OutcomeFreed) {
			break
		}
		m.terminalLate(in, q, r.At)
		if outcome == core.OutcomeHeld {
			q.held, q.at = true, r.At
			return
		}
		*link = q.next
		q.next = m.spare + 1
		m.spare = at
		return
	}
	if in.owners > 0 && !in.aliased && m.first(terminal, in.worker) {
		m.report(terminal, r.At, fmt.Sprintf("%s's engine was told %q of request %d, which had ended or was never submitted",
			m.whose(in), outcome, r.A), in.worker)
	}
}

func (m *Set) forgetRequests(in *instance) {
	for in.requests != 0 {
		at := in.requests - 1
		in.requests = m.requests[at].next
		m.requests[at].next = m.spare + 1
		m.spare = at
	}
}

func (m *Set) terminalBound(w int32) time.Duration {
	s := &m.setup.Workers[w]
	return s.Timeout + s.Held + 2*s.Interval + m.setup.CopyBound + m.bounds.opens + 4*m.setup.NetworkBound + stepSlack
}

// terminalLate judges one request that is open until now.
func (m *Set) terminalLate(in *instance, q *request, now core.Time) {
	w := in.worker
	if w < 0 || in.aliased || !m.up || !m.workers[w].calmly() {
		return
	}
	if q.held && (in.copying > 0 || m.setup.ServerLegacy) {
		return // one of them may be its own, for as long as it takes; or nobody answers
	}
	since := max(q.at, m.workers[w].calm, m.upSince)
	due := since.Add(m.terminalBound(w))
	if now <= due || !m.first(terminal, w) {
		return
	}
	what := "retrieve"
	if q.store {
		what = "store"
	}
	if q.held {
		m.report(terminal, due, fmt.Sprintf("%s's %s %d was given up at %s, the server does not carry it out, and its blocks are still held back",
			m.name(w), what, q.id, seconds(q.at)), w)
		return
	}
	why := "its reply never came and nothing gave up on it"
	if kind := kindOfMode(m.setup.Workers[w].Mode); !in.has[kind] {
		why = "the server holds no context for it"
	}
	m.report(terminal, due, fmt.Sprintf("%s's %s %d, submitted at %s, has not ended: %s",
		m.name(w), what, q.id, seconds(q.at), why), w)
}

// terminalCheck judges what worker w's engine still waits for.
func (m *Set) terminalCheck(w int32, now core.Time) {
	k := &m.workers[w]
	if k.instance < 0 {
		return
	}
	in := &m.instances.items[k.instance]
	for at := in.requests; at != 0; at = m.requests[at-1].next {
		if q := &m.requests[at-1]; q.held || m.requests[at-1].next == 0 { // of the others the oldest is the first to be late
			m.terminalLate(in, q, now)
		}
	}
}

// copying counts the copies of an instance's memory that are under way.
func (m *Set) copying(r *core.Record, by int32) {
	if i := m.instances.get(uint64(r.Instance)); i >= 0 {
		in := &m.instances.items[i]
		in.copying = max(in.copying+by, 0)
	}
}

// terminalExit judges a worker that left in order.
func (m *Set) terminalExit(w int32, in *instance, at core.Time) {
	open := in.requests
	for open != 0 && m.requests[open-1].held {
		open = m.requests[open-1].next // it has ended, and its blocks went with the process
	}
	if open == 0 || in.aliased || !m.first(terminal, w) {
		return
	}
	q := &m.requests[open-1]
	m.report(terminal, at, fmt.Sprintf("%s left in order and its engine was never told the end of request %d, submitted at %s",
		m.name(w), q.id, seconds(q.at)), w)
}

// reservation is a chunk's slot that is being written.
type reservation struct{ incarnation core.Incarnation }

func (m *Set) chunkReserved(r *core.Record) {
	key := r.A + 1
	m.unreserve(key)
	c := m.contexts.get(uint64(r.Incarnation))
	if c < 0 {
		return // a writer without a context leaves nobody to blame
	}
	if at := m.reserved.add(key, MaxRequests); at >= 0 {
		m.reserved.items[at].incarnation = r.Incarnation
		m.contexts.items[c].reserved++
	}
}

func (m *Set) chunkReady(r *core.Record) {
	if at := m.reserved.get(r.A + 1); at >= 0 {
		m.fenceChunk(&m.reserved.items[at], r)
		m.halfWritten(&m.reserved.items[at], r)
	}
	m.unreserve(r.A + 1)
}

func (m *Set) chunkDropped(r *core.Record) { m.unreserve(r.A + 1) }

func (m *Set) unreserve(key uint64) {
	at := m.reserved.get(key)
	if at < 0 {
		return
	}
	n := m.reserved.items[at].incarnation
	m.reserved.drop(key, at)
	if c := m.contexts.get(uint64(n)); c >= 0 {
		m.contexts.items[c].reserved--
		m.letGo(c)
	}
}

func (m *Set) lockReturned(r *core.Record) {
	if m.locks--; m.locks < 0 {
		m.locks = 0
		if m.first(terminal, nobody) {
			m.report(terminal, r.At, fmt.Sprintf("a read lock on slot %d was returned that nobody held", r.A))
		}
	}
}

// terminalLeftovers judges the chunks half written by contexts that are gone.
func (m *Set) terminalLeftovers(end core.Time) {
	if !m.up {
		return
	}
	var timeout time.Duration
	for i := range m.setup.Workers {
		timeout = max(timeout, m.setup.Workers[i].Timeout)
	}
	for i := range m.contexts.items {
		x := &m.contexts.items[i]
		if x.incarnation == 0 || x.serving || !x.removed || x.reserved <= 0 || m.stuckMapping(x) { // parked, with the copy that fills it
			continue
		}
		due := max(x.removedAt, m.upSince).Add(timeout + m.setup.CopyBound + m.setup.ReleaseBound + stepSlack)
		in := &m.instances.items[x.instance]
		if end > due && m.first(terminal, in.worker) {
			m.report(terminal, due, fmt.Sprintf("%s's context %d went at %s and left %d chunks half written",
				m.whose(in), x.incarnation, seconds(x.removedAt), x.reserved), in.worker)
		}
	}
}
