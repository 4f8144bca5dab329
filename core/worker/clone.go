package worker

import (
	"slices"

	"vigil/core"
)

// Clone and Fingerprint: an exhaustive search forks a world at every choice
// and gives up a branch whose state it has seen.

// Clone returns a worker that behaves the same and shares no memory.
func (w *Worker) Clone() *Worker {
	c := *w
	c.memory = w.memory.clone()
	c.pending = w.pending.clone()
	c.names = slices.Clone(w.names)
	c.ends, c.reply = nil, nil
	return &c
}

// Fingerprint folds the state. Times are relative to now; uids, engine
// requests are left out, because they are names: two
// states that differ only in them behave the same. Canonical gives the name
// under which a message in flight is to be folded beside this.
func (w *Worker) Fingerprint(now core.Time) core.Digest {
	d := core.Digest(uint64(w.id))
	w.fold(now, &d)
	w.memory.fold(&d)
	return d
}

// AppendRequests appends the engine's numbers of what is pending, in the order
// in which the fingerprint folds it: for whoever folds the engine too.
func (w *Worker) AppendRequests(to []core.RequestID) []core.RequestID {
	t := &w.pending
	for _, l := range [...]*list{&t.active, &t.ready, &t.held} {
		for s := l.head; s != none; s = t.entries[s].next {
			to = append(to, t.entries[s].request)
		}
	}
	return to
}

// FingerprintAs is Fingerprint with another name in the place of the id, and
// without the memory's handles, which name the worker too: for a search in
// which workers that are alike may change places.
func (w *Worker) FingerprintAs(now core.Time, name uint64) core.Digest {
	d := core.Digest(name)
	w.fold(now, &d)
	d.Bool(w.memory.kept)
	return d
}

func (w *Worker) fold(now core.Time, d *core.Digest) {
	d.Uint(uint64(w.cfg.Interval))
	d.Uint(uint64(w.cfg.Timeout))
	d.Uint(uint64(w.cfg.Mode) | uint64(w.cfg.Rank)<<8 | uint64(w.cfg.WorldSize)<<32)
	d.Bool(w.cfg.Blend)
	d.Bool(w.cfg.Prober)
	d.Bool(w.cfg.Legacy)
	d.Uint(uint64(w.cfg.ChunkTokens))
	d.Bytes(w.names)
	d.Uint(uint64(len(w.cfg.Model)))
	d.Uint(uint64(w.life))
	d.Bool(w.healthy)
	d.Bool(w.woken)
	d.Bool(w.registered)
	w.beat.fold(now, d)
	w.enrol.fold(now, d)
	w.leave.fold(now, w.life, d)
	at := w.foldProtections(now, d)
	w.pending.fold(d, &at)
}

// foldProtections folds what the protections add, each where it acts. The boot
// token is a name, but one that the server knows too: two states that know of
// different lives of the server behave differently, so it is folded as it is.
func (w *Worker) foldProtections(now core.Time, d *core.Digest) vantage {
	p := &w.cfg.Protections
	at := vantage{now: now, deadlines: p.RequestDeadlines, ordered: p.RegistrationAwarePing || p.BootToken, enrolled: w.enrolled}
	d.Bool(p.RegistrationAwarePing)
	d.Bool(p.BootToken)
	d.Bool(p.EagerHeartbeat)
	d.Bool(p.TerminalAnswers)
	d.Bool(p.RequestDeadlines)
	d.Bool(p.PingThroughRecovery)
	d.Bool(p.AgreedWindow)
	d.Uint(uint64(w.window))
	d.Bool(p.KeepBlocks)
	d.Bool(w.mute)
	d.Bool(w.unasked)
	d.Bool(w.unsettled)
	if d.Bool(w.asked.awaited); w.asked.awaited {
		at.asked = w.asked.before
	}
	d.Uint(w.boot)
	d.Bool(w.warned)
	d.Bool(w.beat.again)
	d.Bool(w.sweep.armed)
	if w.sweep.armed {
		d.Since(now, w.sweep.at)
	}
	if w.beat.recovery.stage != enrolIdle {
		d.Since(now, w.beat.recovery.due)
	}
	if at.ordered && w.beat.phase == beatAwaitsPing {
		at.ping = w.beat.uid
		d.Bool(w.beat.uid < w.enrolled)
	}
	return at
}

func (b *heartbeat) fold(now core.Time, d *core.Digest) {
	d.Uint(uint64(b.phase))
	if b.alive() {
		d.Since(now, b.due)
	}
	d.Bool(b.phase == beatPublish && b.verdict)
	d.Uint(uint64(b.recovery.stage))
}

func (g *registration) fold(now core.Time, d *core.Digest) {
	d.Uint(uint64(g.stage))
	if g.stage != enrolIdle {
		d.Since(now, g.due)
	}
}

func (l *departure) fold(now core.Time, at life, d *core.Digest) {
	if at == joining || at == unregistering {
		d.Since(now, l.due)
	}
	d.Bool(l.ropeSent)
	d.Bool(l.memorySent)
	d.Uint(uint64(l.context))
}

// The canonical names of messages in flight, see Canonical.
const (
	canonicalNobody     = 0
	canonicalPing       = 1
	canonicalRecovery   = 2
	canonicalRegister   = 3
	canonicalRope       = 4
	canonicalUnregister = 5
	canonicalSettle     = 6
	canonicalRequest    = 16 // and up: place in the order of submission
)

// Canonical names the request uid by what waits for its reply, 0 for nobody:
// equal names in two states mean that the reply would do the same in both.
// It searches the pending requests and is meant for small worlds.
func (w *Worker) Canonical(uid uint64) uint64 {
	switch {
	case w.beat.phase == beatAwaitsPing && uid == w.beat.uid:
		return canonicalPing
	case w.beat.recovery.stage != enrolIdle && uid == w.beat.recovery.uid:
		return canonicalRecovery
	case w.enrol.stage != enrolIdle && uid == w.enrol.uid:
		return canonicalRegister
	case w.leave.ropeSent && uid == w.leave.rope:
		return canonicalRope
	case w.leave.memorySent && uid == w.leave.memory:
		return canonicalUnregister
	case w.asked.awaited && uid == w.asked.uid:
		return canonicalSettle
	}
	slot := w.pending.find(uid)
	if slot == none {
		return canonicalNobody
	}
	place := uint64(canonicalRequest)
	for _, l := range [...]*list{&w.pending.active, &w.pending.ready, &w.pending.held} {
		for s := l.head; s != none; s = w.pending.entries[s].next {
			if s == slot {
				return place
			}
			place++
		}
	}
	return place
}
