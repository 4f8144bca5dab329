package server

import (
	"vigil/core"
	"vigil/core/wire"
)

// Clone returns an independent copy: no step of one is seen by the other.
// What never changes once it is made (what a registration said) is shared.
func (s *Server) Clone() *Server {
	c := *s
	c.contexts, c.engines, c.ropes = s.contexts.clone(), s.engines.clone(), s.ropes.clone()
	c.layouts = layouts{s.layouts.known.clone(), s.layouts.holders.clone()}
	c.store = s.store.clone()
	c.reaped, c.peers = s.reaped.clone(), s.peers.clone()

	c.strategies = s.strategies.clone()
	for pos := c.strategies.first(); pos >= 0; pos = c.strategies.after(pos) {
		e := &c.strategies.entries[pos]
		e.writes, e.reads = copied(e.writes), copied(e.reads)
	}
	c.sessions = s.sessions.clone()
	for pos := c.sessions.first(); pos >= 0; pos = c.sessions.after(pos) {
		e := &c.sessions.entries[pos]
		e.id, e.slots = copied(e.id), copied(e.slots)
	}

	c.lanes = copied(s.lanes)
	queues := make([]*queue, 0, 4+len(s.lanes))
	queues = append(queues, &s.inbox, &s.normal, &s.parked, &s.turn)
	for i := range s.lanes {
		queues = append(queues, &s.lanes[i].waiting)
	}
	c.mail = s.mail.clone(queues...)
	c.jobs = s.jobs.clone()

	c.enrolments = s.enrolments.clone()
	for pos := c.enrolments.first(); pos >= 0; pos = c.enrolments.after(pos) {
		c.enrolments.entries[pos].reply = s.enrolments.entries[pos].reply.clone()
	}
	c.releases = s.releases.clone()
	for pos := c.releases.first(); pos >= 0; pos = c.releases.after(pos) {
		c.releases.entries[pos].reply = s.releases.entries[pos].reply.clone()
	}
	c.reaper.ids = copied(s.reaper.ids)
	c.reaper.batch = copied(s.reaper.batch)
	for i := range c.reaper.batch {
		p := &c.reaper.batch[i]
		p.writes, p.reads = copied(p.writes), copied(p.reads)
	}

	c.reply, c.scratch, c.poolName, c.picked = wire.Reply{}, nil, nil, nil
	return &c
}

// Fingerprint folds the state so that two states that behave the same from now
// on fold the same. Times are relative to now. Names that are only ever
// compared (operations, mappings, incarnations, slots, job numbers, uids) do
// not count, only what they mean: whether work belongs to the instance's
// present context, which chunk lies in a slot. The configuration does not
// count either: states of differently configured servers are not comparable.
func (s *Server) Fingerprint(now core.Time) core.Digest { return s.FingerprintIn(now, nil) }

// World says what the names in a server's state stand for beyond it. Whoever
// compares whole worlds needs it: which request a reply would end, how far the
// operation is whose end somebody awaits, what lies in a slot. What it returns
// is folded in the name's place, so equal values must mean equal futures.
type World interface {
	Instance(core.InstanceID) uint64
	Peer(core.Peer) uint64
	Request(peer core.Peer, uid []byte) uint64
	Operation(core.Op) uint64
	Mapping(core.Mapping) uint64
	Slot(core.Slot) uint64
	// Renames says that instances change places, so that what a registration
	// named its memory by does not count: each has one. Engine is then what
	// stands for an engine's request.
	Renames() bool
	Engine(request []byte) uint64
}

// FingerprintIn is Fingerprint of a server within a world.
func (s *Server) FingerprintIn(now core.Time, w World) core.Digest {
	f := folder{s: s, now: now, w: w}
	f.registry(&s.contexts)
	f.registry(&s.engines)
	for pos := s.engines.first(); pos >= 0; pos = s.engines.after(pos) {
		half := &s.strategies.entries[s.strategies.find(uint64(s.engines.entries[pos].instance))]
		f.slots(half.writes)
		f.slots(half.reads)
	}
	f.unordered()
	f.sessions()
	f.waiting()
	f.phases()
	return f.d
}

type folder struct {
	s   *Server
	now core.Time
	w   World // nil: of a server by itself
	d   core.Digest
}

func (f *folder) instance(id core.InstanceID) {
	if f.w != nil {
		id = core.InstanceID(f.w.Instance(id))
	}
	f.d.Uint(uint64(id))
}

func (f *folder) peer(p core.Peer) {
	if f.w != nil {
		p = core.Peer(f.w.Peer(p))
	}
	f.d.Uint(uint64(p))
}

// asked folds the request that a reply would end, and the operation whose end
// makes it; nothing without a world.
func (f *folder) asked(peer core.Peer, uid []byte, op core.Op) {
	if f.w != nil {
		f.d.Uint(f.w.Request(peer, uid))
		f.operation(op)
	}
}

// content folds what a registration says, but for a world in which it says who
// says it.
func (f *folder) content(d core.Digest) {
	if f.w == nil || !f.w.Renames() {
		f.d.Uint(uint64(d))
	}
}

// engine folds the name of an engine's request.
func (f *folder) engine(request []byte) {
	if f.w == nil || !f.w.Renames() {
		f.d.Bytes(request)
	} else {
		f.d.Uint(f.w.Engine(request))
	}
}

func (f *folder) operation(op core.Op) {
	if f.w != nil {
		f.d.Uint(f.w.Operation(op))
	}
}

func (f *folder) registry(r *registry[entry]) {
	f.d.Uint(uint64(r.live()))
	for pos := r.first(); pos >= 0; pos = r.after(pos) {
		f.entry(&r.entries[pos])
	}
}

func (f *folder) entry(e *entry) {
	f.instance(e.instance)
	if f.w != nil {
		f.d.Uint(f.w.Mapping(e.mapping))
	}
	f.d.Bool(e.latched)
	f.d.Bool(e.transferred)
	if f.s.cfg.Protections.ProofOfDeath {
		f.peer(e.peer)
	}
	f.d.Since(f.now, e.lastSeen)
	f.d.Uint(e.bytes)
	if e.about != nil {
		f.content(e.about.content[0])
	}
	f.d.Bool(f.s.layouts.holders.find(uint64(e.incarnation)) >= 0)
}

// slots folds which chunks a list of slots names.
func (f *folder) slots(slots []core.Slot) {
	f.d.Uint(uint64(len(slots)))
	for _, slot := range slots {
		if slot == noSlot {
			f.d.Uint(0)
			continue
		}
		f.d.Uint(chunkHash(&f.s.store.chunks[slot].key))
	}
}

// unordered folds the collections whose order no step can see, by a sum that
// does not depend on it either.
func (f *folder) unordered() {
	s, outer := f.s, f.d
	var sum uint64
	for pos := s.ropes.first(); pos >= 0; pos = s.ropes.after(pos) {
		f.d = 1
		f.instance(s.ropes.entries[pos].instance)
		sum += uint64(f.d)
	}
	for pos := s.layouts.known.first(); pos >= 0; pos = s.layouts.known.after(pos) {
		l := &s.layouts.known.entries[pos]
		d := core.Digest(2)
		d.Uint(l.hash)
		d.Uint(uint64(l.holders))
		sum += uint64(d)
	}
	for pos := s.reaped.first(); pos >= 0; pos = s.reaped.after(pos) {
		f.d = 3
		f.instance(s.reaped.entries[pos].instance)
		f.d.Uint(s.reaped.entries[pos].times)
		sum += uint64(f.d)
	}
	for i := range s.store.chunks {
		c := &s.store.chunks[i]
		if c.state == chunkFree {
			continue
		}
		d := core.Digest(4)
		d.Uint(chunkHash(&c.key))
		d.Uint(c.bytes)
		d.Uint(uint64(c.readers)<<8 | uint64(c.state))
		d.Bool(c.pooled)
		d.Uint(c.offset)
		d.Bool(s.current(c.instance, c.incarnation))
		if f.w != nil {
			d.Uint(f.w.Slot(core.Slot(i)))
		}
		sum += uint64(d)
	}
	for pos := s.peers.first(); pos >= 0; pos = s.peers.after(pos) {
		f.d = 5
		f.peer(s.peers.entries[pos].peer)
		f.d.Uint(uint64(s.peers.entries[pos].lane))
		sum += uint64(f.d)
	}
	f.d = outer
	f.d.Uint(sum)
	// What may be evicted, in the order of eviction.
	for pos := s.store.first(); pos >= 0; pos = s.store.after(pos) {
		f.d.Uint(chunkHash(&s.store.chunks[pos].key))
	}
	f.d.Uint(s.lanesBound % uint64(max(s.cfg.AffinityLanes, 1)))
}

// current reports whether an incarnation is what its instance has now.
func (s *Server) current(id core.InstanceID, incarnation core.Incarnation) bool {
	if pos := s.contexts.find(uint64(id)); pos >= 0 && s.contexts.entries[pos].incarnation == incarnation {
		return true
	}
	pos := s.engines.find(uint64(id))
	return pos >= 0 && s.engines.entries[pos].incarnation == incarnation
}

func (f *folder) sessions() {
	s := f.s
	f.d.Uint(uint64(s.sessions.live()))
	for pos := s.sessions.first(); pos >= 0; pos = s.sessions.after(pos) {
		e := &s.sessions.entries[pos]
		f.engine(e.id)
		f.d.Uint(uint64(e.start))
		f.d.Uint(uint64(e.hits))
		f.d.Uint(uint64(e.ranks))
		f.d.Bool(e.inline)
		f.slots(e.slots)
	}
}

// waiting folds the pools: what runs and what waits in each queue.
func (f *folder) waiting() {
	s := f.s
	f.queue(&s.inbox)
	f.queue(&s.normal)
	f.queue(&s.parked)
	f.queue(&s.turn)
	f.d.Uint(uint64(s.normalBusy))
	for i := range s.lanes {
		f.d.Bool(s.lanes[i].busy)
		f.queue(&s.lanes[i].waiting)
	}
	for pos := s.jobs.waiting.first(); pos >= 0; pos = s.jobs.waiting.after(pos) {
		j := &s.jobs.jobs[pos]
		f.peer(j.peer)
		f.asked(j.peer, j.uid, 0)
		f.engine(j.request)
		f.d.Since(f.now, j.deadline)
	}
	outer, sum := f.d, uint64(0)
	for i := range s.jobs.jobs { // one per lane, and the lane is folded: no order
		if j := &s.jobs.jobs[i]; j.state == jobCopying {
			f.d = core.Digest(uint64(j.lane) + 1)
			f.peer(j.peer)
			f.asked(j.peer, j.uid, j.op)
			f.instance(j.instance)
			f.d.Bool(j.store)
			f.d.Bool(s.current(j.instance, j.incarnation))
			f.d.Bool(j.unwanted)
			f.wanted(j.instance, j.sent)
			if s.cfg.Protections.TransferKeepsAlive {
				f.d.Since(f.now, j.began)
			}
			f.d.Bytes(j.event)
			f.slots(j.slots)
			sum += uint64(f.d)
		}
	}
	f.d = outer
	f.d.Uint(sum)
}

func (f *folder) queue(q *queue) {
	f.d.Uint(uint64(q.length))
	for at := q.head; at != 0; at = f.s.mail.letters[at-1].next {
		l := &f.s.mail.letters[at-1]
		r := &l.r
		f.peer(l.peer)
		f.asked(l.peer, r.UID, 0)
		f.d.Since(f.now, l.arrived)
		f.d.Uint(uint64(r.Type)<<8 | uint64(r.Failure))
		f.instance(r.Instance)
		f.d.Bool(r.NoInstance)
		f.d.Bool(r.OldNumber)
		f.d.Uint(uint64(r.TPSize))
		f.d.Uint(uint64(r.Skip))
		f.d.Uint(uint64(r.Timeout))
		f.d.Uint(uint64(r.Records))
		if moves(r.Type) {
			f.wanted(r.Instance, r.UIDNumber)
		} else if r.Type == wire.Settle {
			f.wanted(r.Instance, r.Before)
		}
		f.d.Bytes(r.Event)
		f.engine(r.RequestID)
		f.d.Bytes(r.Key.Model)
		f.engine(r.Key.RequestID)
		f.d.Uint(uint64(r.Key.WorldSize))
		f.d.Uint(uint64(r.Key.Worker))
		f.d.Uint(uint64(r.Key.Start))
		f.d.Uint(uint64(r.Key.End))
		for i := range r.Key.Chunks {
			f.d.Uint(chunkHash(&r.Key.Chunks[i]))
		}
		f.d.Uint(uint64(len(r.Blocks)))
		for _, b := range r.Blocks {
			f.d.Uint(uint64(b))
		}
		for _, end := range r.BlockEnds {
			f.d.Uint(uint64(end))
		}
		var content core.Digest
		contentOf(&content, r)
		f.content(content)
	}
}

// wanted folds a uid as far as an instance's limit tells it from others.
func (f *folder) wanted(id core.InstanceID, uid uint64) {
	if !f.s.cfg.Protections.KeepBlocks {
		return
	}
	if pos := f.s.contexts.find(uint64(id)); pos >= 0 {
		uid -= f.s.contexts.entries[pos].fence
		f.d.Since(f.now, f.s.contexts.entries[pos].came)
	}
	f.d.Uint(uid)
}

func (f *folder) replyTo(t *replyTo) {
	f.peer(t.peer)
	f.d.Uint(uint64(t.kind))
	if t.kind != wire.NoType {
		f.asked(t.peer, t.uid, 0)
	}
}

// phases folds what the main loop, the reaper and the shutdown are at.
func (f *folder) phases() {
	s := f.s
	f.d.Bool(s.main.held)
	for pos := s.enrolments.first(); pos >= 0; pos = s.enrolments.after(pos) {
		n := &s.enrolments.entries[pos]
		f.entry(&n.entry)
		f.d.Since(f.now, n.since)
		f.d.Since(f.now, n.arrived)
		f.d.Bool(n.held)
		f.d.Bool(n.inserting)
		f.d.Bool(n.takenBack)
		f.operation(n.op)
		f.replyTo(&n.reply)
	}
	f.d.Uint(uint64(s.releases.live()))
	for pos := s.releases.first(); pos >= 0; pos = s.releases.after(pos) {
		r := &s.releases.entries[pos]
		f.entry(&r.entry)
		f.d.Uint(uint64(r.state)<<8 | uint64(r.by))
		f.d.Bool(r.held)
		f.d.Bool(r.stuck)
		f.operation(r.op)
		f.d.Since(f.now, r.since)
		f.replyTo(&r.reply)
	}
	r := &s.reaper
	f.d.Uint(uint64(r.state)<<32 | uint64(r.target))
	if r.state == reaperIdle || r.state == reaperLooking {
		f.d.Since(f.now, r.due)
		f.d.Uint(uint64(r.looks))
	}
	f.d.Uint(uint64(len(r.batch)) - uint64(r.at))
	for i := int(r.at); i < len(r.batch); i++ {
		f.entry(&r.batch[i].entry)
		f.slots(r.batch[i].writes)
		f.slots(r.batch[i].reads)
	}
	f.d.Uint(uint64(len(r.ids)))
	for _, id := range r.ids {
		f.instance(id)
	}
	f.d.Uint(uint64(s.stop.stage))
	if s.stop.stage == stopWaiting || s.stop.stage == stopClosing {
		f.d.Since(f.now, s.stop.due)
	}
	f.d.Uint(uint64(s.lost.contexts))
	f.d.Uint(s.lost.bytes)
}
