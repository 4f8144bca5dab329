package sim

import (
	"vigil/core"
	"vigil/core/wire"
)

// The fingerprint of a world in ticks: two worlds of one plan that behave the
// same from now on fold the same, whatever their histories. Names are not
// folded but what they stand for: a message by what it says and by what its
// reply would end, an operation by what it works on and when it ends, a slot by
// its content. The order in which events were asked for is not folded either,
// for a search tries all of them. The time itself is folded: the story is told
// by the clock, and a run ends by it.

// printer folds one world.
type printer struct {
	w      *World
	naming *Naming
	d      core.Digest

	messageAt   []core.Time // of each message: when its event comes, never for none
	operationAt []core.Time // of each operation: the same
	operations  []uint64    // of each operation: its fold
	mappings    []uint64    // of each mapping: its fold
	slots       []uint64    // of each slot: its fold
	requests    []core.RequestID
	decoder     wire.Decoder
	decoded     wire.Request
}

// Fingerprint folds the state. naming, which may be nil, lets workers change
// places.
func (w *World) Fingerprint(naming *Naming) core.Digest {
	p := &w.ticks.printer
	p.w, p.naming, p.d = w, naming, 0
	p.d.Uint(uint64(w.now))
	p.prepare()
	p.story()
	for i := range w.plan.Workers {
		p.worker(p.naming.At(i))
	}
	for i := len(w.plan.Workers) + 1; i < len(w.processes); i++ { // the raw client
		p.process(i)
		p.link(i - 1)
		p.d.Uint(w.clientUID)
		p.d.Uint(uint64(w.requests))
	}
	p.process(0)
	p.memory()
	if srv := &w.processes[0]; srv.machine != nil && srv.state != absent {
		p.d.Uint(uint64(w.server.FingerprintIn(srv.Now(), p)))
	}
	p.events()
	return p.d
}

// renames reports whether workers change places.
func (p *printer) renames() bool { return p.naming != nil }

// prepare folds what others name.
func (p *printer) prepare() {
	w := p.w
	p.messageAt = filled(p.messageAt, len(w.net.messages))
	p.operationAt = filled(p.operationAt, len(w.memory.operations))
	for i := range w.heap.soon {
		e := &w.heap.soon[i]
		switch e.kind {
		case evReach, evReply, evHandle, evTake:
			if m := w.net.find(e.what); m >= 0 {
				p.messageAt[m] = e.at
			}
		case evMemory:
			if at := uint32(e.what); w.memory.operations[at].gen == uint32(e.what>>32) {
				p.operationAt[at] = e.at
			}
		}
	}
	m := &w.memory
	p.slots = p.slots[:0]
	for i := range m.slots {
		d := core.Digest(11)
		for _, tag := range m.slots[i] {
			d.Uint(tag)
		}
		p.slots = append(p.slots, uint64(d))
	}
	p.mappings = p.mappings[:0]
	for i := range m.mappings {
		p.mappings = append(p.mappings, p.mapping(i))
	}
	p.operations = p.operations[:0]
	for i := range m.operations {
		p.operations = append(p.operations, p.operation(i))
	}
}

func filled(s []core.Time, n int) []core.Time {
	s = resized(s, n)
	for i := range s {
		s[i] = core.Never
	}
	return s
}

func (p *printer) mapping(i int) uint64 {
	mp := &p.w.memory.mappings[i]
	d := core.Digest(12)
	d.Uint(uint64(mp.state))
	if mp.state == mappingClosed { // only what would close it again finds out
		return uint64(d)
	}
	rank := 0 // among those of its owner that are open, oldest first
	for k := range p.w.memory.mappings {
		if o := &p.w.memory.mappings[k]; o.owner == mp.owner && o.state != mappingClosed && o.id < mp.id {
			rank++
		}
	}
	d.Uint(p.naming.Instance(mp.owner))
	d.Uint(uint64(rank)<<32 | uint64(uint32(mp.copies)))
	d.Uint(mp.bytes)
	d.Uint(uint64(p.allocation(mp.allocation)))
	return uint64(d)
}

// allocation names an allocation: whose, and of which life.
func (p *printer) allocation(i int32) uint64 {
	if i < 0 {
		return 0
	}
	a := &p.w.memory.allocations[i]
	rank := uint64(0) // among those of one life, in the order of their making
	for k := range p.w.memory.allocations[:i] {
		if o := &p.w.memory.allocations[k]; o.worker == a.worker && o.life == a.life {
			rank++
		}
	}
	return (uint64(p.naming.Worker(a.worker))+1)<<40 ^ a.life<<8 ^ rank
}

// operation folds an operation under way, 0 for a place that is free.
func (p *printer) operation(i int) uint64 {
	o := &p.w.memory.operations[i]
	at := p.operationAt[i]
	if at == core.Never && !o.hung {
		return 0
	}
	d := core.Digest(13)
	d.Uint(uint64(o.kind) | uint64(o.failure)<<8)
	d.Bool(o.hung)
	d.Since(p.w.now, at)
	if o.mapping >= 0 {
		d.Uint(p.mappings[o.mapping])
	}
	if o.kind == operationCopy { // the others have what an earlier use of the place left
		d.Bool(o.in)
		for k := range o.chunks {
			c := &o.chunks[k]
			d.Uint(p.Slot(c.Slot))
			d.Uint(uint64(c.First)<<32 | uint64(c.Count))
			d.Uint(uint64(c.Skip)<<32 | uint64(c.Group))
			for _, b := range o.blocks[c.First : c.First+c.Count] {
				d.Uint(uint64(b))
			}
		}
	}
	return uint64(d)
}

func (p *printer) story() {
	s := &p.w.story
	var bits core.Digest
	for i, struck := range s.struck {
		if struck {
			bits.Uint(uint64(i))
		}
	}
	p.d.Uint(uint64(bits))
	for i := range s.watches {
		p.d.Uint(uint64(s.watches[i].step)<<32 | uint64(s.watches[i].left))
	}
	p.d.Uint(uint64(p.w.latency.Low) ^ uint64(p.w.latency.High))
}

// worker folds worker i with its engine, its link and what is on it.
func (p *printer) worker(i int) {
	w := p.w
	p.process(i + 1)
	p.link(i)
	p.d.Uint(p.naming.Instance(w.identities[i]))
	p.engine(&w.engines[i])
	if pr := &w.processes[i+1]; pr.machine != nil && pr.state != absent {
		p.requests = w.machines[i].AppendRequests(p.requests[:0])
		for _, id := range p.requests {
			p.d.Uint(p.naming.Request(id))
		}
		if p.renames() {
			p.d.Uint(uint64(w.machines[i].FingerprintAs(pr.Now(), p.naming.Instance(w.machines[i].Instance()))))
		} else {
			at := &w.ticks.prints[i+1]
			if !at.valid || at.at != pr.Now() {
				*at = machinePrint{pr.Now(), w.machines[i].Fingerprint(pr.Now()), true}
			}
			p.d.Uint(uint64(at.fold))
		}
	}
}

func (p *printer) engine(e *engine) {
	p.d.Uint(p.allocation(int32(e.allocation)))
	head := uint64(e.next) << 8
	for i, on := range [...]bool{e.polling, e.registered, e.traffic, e.ticking, e.stuck, e.told} {
		if on {
			head |= 1 << i
		}
	}
	p.d.Uint(head)
	p.d.Uint(uint64(e.asked))
	var sum uint64
	for i := range e.pending {
		s := &e.pending[i]
		d := core.Digest(14)
		d.Uint(p.naming.Request(s.id))
		d.Uint(uint64(s.prompt)<<32 | uint64(s.first))
		d.Uint(uint64(s.count))
		d.Bool(s.store)
		d.Bool(s.held)
		if s.part != nil {
			d.Uint(uint64(s.part.From)<<32 | uint64(s.part.To))
			d.Uint(uint64(s.part.Skip)<<32 | uint64(len(s.part.Blocks)))
		}
		sum += uint64(d)
	}
	p.d.Uint(sum)
}

func (p *printer) process(i int) {
	pr := &p.w.processes[i]
	head := uint64(pr.state)
	if pr.starve {
		head |= 1 << 8
	}
	if pr.leaving {
		head |= 1 << 9
	}
	p.d.Uint(head)
	p.d.Uint(pr.life)
	p.d.Uint(pr.pid)
	if i > 0 && i <= len(p.w.plan.Workers) {
		pod := p.w.plan.Workers[i-1].Pod
		p.d.Uint(p.w.pids[pod])
		p.d.Since(p.w.clockOf(pr), pr.offset) // workers that are alike differ in their clocks
	} else {
		p.d.Uint(uint64(pr.offset))
	}
	p.d.Since(p.w.now, pr.stopped)
	var sum uint64
	for k := range pr.timers {
		t := &pr.timers[k]
		if t.at == core.Never {
			continue
		}
		d := core.Digest(15)
		d.Uint(packKey(t.key))
		d.Since(pr.Now(), t.at)
		d.Bool(t.queued == heldBack)
		sum += uint64(d)
	}
	p.d.Uint(sum)
	for _, held := range [2][]event{pr.held, pr.starved} {
		p.d.Uint(uint64(len(held)))
		for k := range held {
			p.d.Uint(p.event(&held[k]))
		}
	}
}

func (p *printer) link(i int) {
	l, k := &p.w.net.links[i], &p.w.net.sockets[i]
	p.d.Uint(p.Peer(l.peer))
	head := uint64(uint16(l.up.handling)) | uint64(uint16(l.down.handling))<<16
	for b, on := range [...]bool{l.up.cut, l.down.cut, l.broken, l.slow} {
		if on {
			head |= 1 << (32 + b)
		}
	}
	p.d.Uint(head)
	if l.slow {
		p.d.Uint(uint64(k.delay.Low) ^ uint64(k.delay.High)<<20)
	}
	p.d.Uint(k.connects)
	for n, ln := range [2]*lane{&l.up, &l.down} {
		p.d.Uint(uint64(max(ln.last, p.w.now) - p.w.now))
		p.d.Uint(uint64(ln.length))
		for m := ln.head; m >= 0; m = p.w.net.messages[m].next {
			p.d.Uint(p.message(i, m, n == 0, p.w.net.messages[m].peer))
			p.d.Bool(p.w.net.messages[m].due)
			p.d.Since(p.w.now, p.messageAt[m])
		}
	}
	p.d.Uint(uint64(max(k.upHandled, p.w.now)-p.w.now) ^ uint64(max(k.downHandled, p.w.now)-p.w.now)<<32)
	p.d.Uint(uint64(len(k.waiting)))
	for _, m := range k.waiting {
		p.d.Uint(p.message(i, m, true, l.peer))
	}
}

// message folds what a message says, its uid by what waits for its reply. peer is
// the connection that it travels on, that of its link where it waits for one.
func (p *printer) message(who int, m int32, toServer bool, peer core.Peer) uint64 {
	msg := &p.w.net.messages[m]
	d := core.Digest(16)
	d.Bool(toServer)
	d.Uint(p.Peer(peer))
	if msg.frames.Len() == 0 {
		return uint64(d)
	}
	d.Uint(p.waits(who, peer == p.w.net.links[who].peer, msg.frames.Part(0)))
	if msg.print == 0 {
		// Once in the message's life. An id in it is the sender's own.
		c := core.Digest(17)
		c.Uint(uint64(msg.frames.Len()))
		c.Bytes(msg.frames.Bytes[msg.frames.Ends[0]:])
		msg.print = uint64(c) | 1
	}
	if p.renames() && toServer {
		p.renamed(&d, msg)
	} else {
		d.Uint(msg.print)
	}
	return uint64(d)
}

// renamed folds a request by what it says and not by whom it names.
func (p *printer) renamed(d *core.Digest, msg *message) {
	p.decoder.ChunkTokens, p.decoder.Legacy = p.w.decoder.ChunkTokens, p.w.decoder.Legacy
	r := &p.decoded
	p.decoder.Decode(&msg.frames, r)
	d.Uint(uint64(r.Type)<<8 | uint64(r.Failure))
	d.Uint(p.naming.Instance(r.Instance))
	d.Bool(r.NoInstance)
	d.Uint(uint64(r.TPSize))
	d.Uint(uint64(r.Skip))
	d.Uint(uint64(r.Timeout))
	d.Uint(r.Before)
	d.Bytes(r.Event)
	d.Uint(p.Engine(r.RequestID))
	d.Uint(p.Engine(r.Key.RequestID))
	d.Uint(uint64(r.Key.Start)<<32 | uint64(r.Key.End))
	for i := range r.Key.Chunks {
		d.Uint(r.Key.Chunks[i].Low())
	}
	for _, b := range r.Blocks {
		d.Uint(uint64(b))
	}
}

// waits returns what in worker who waits for the reply to a uid.
func (p *printer) waits(who int, connected bool, uid []byte) uint64 {
	if who >= len(p.w.engines) || !connected {
		d := core.Digest(18)
		d.Bytes(uid)
		return uint64(d)
	}
	if p.w.processes[who+1].state == absent || p.w.processes[who+1].machine == nil {
		return 0
	}
	n, ok := number(uid)
	if !ok {
		return 0
	}
	return p.w.machines[who].Canonical(n)
}

// number reads a msgpack uid.
func number(b []byte) (uint64, bool) {
	if len(b) == 1 && b[0] < 0x80 {
		return uint64(b[0]), true
	}
	if len(b) < 2 || b[0] < 0xcc || b[0] > 0xcf || len(b) != 1+1<<(b[0]-0xcc) {
		return 0, false
	}
	var v uint64
	for _, c := range b[1:] {
		v = v<<8 | uint64(c)
	}
	return v, true
}

func (p *printer) memory() {
	m := &p.w.memory
	p.d.Uint(m.charged)
	p.d.Uint(m.room)
	var sum uint64
	for i := range m.allocations {
		a := &m.allocations[i]
		if a.worker < 0 {
			continue
		}
		d := core.Digest(p.allocation(int32(i)))
		d.Uint(uint64(a.open))
		d.Uint(a.bytes)
		for b, tag := range a.tags {
			if tag != 0 {
				d.Uint(uint64(b))
				d.Uint(tag)
			}
		}
		sum += uint64(d)
	}
	for i, print := range p.mappings {
		if m.mappings[i].state != mappingClosed {
			sum += print
		}
	}
	for _, print := range p.operations {
		sum += print * 3
	}
	p.d.Uint(sum)
	for i := range m.troubles {
		p.d.Uint(uint64(m.troubles[i].step)<<32 | uint64(uint32(m.troubles[i].left)))
	}
}

// events folds what is going to happen and is folded nowhere else.
func (p *printer) events() {
	var sum uint64
	for i := range p.w.heap.soon {
		e := &p.w.heap.soon[i]
		if v := p.event(e); v != 0 {
			d := core.Digest(v)
			d.Since(p.w.now, e.at)
			sum += uint64(d)
		}
	}
	p.d.Uint(sum)
}

// event folds one event but for its time, 0 where it does nothing or is folded
// with what it belongs to.
func (p *printer) event(e *event) uint64 {
	w := p.w
	d := core.Digest(20 + uint64(e.kind))
	switch e.kind {
	case evTimer:
		return 0 // with its process
	case evMemory:
		if e.who == 0 || w.memory.operations[uint32(e.what)].gen != uint32(e.what>>32) {
			return 0 // with its operation
		}
		d.Uint(p.operations[uint32(e.what)])
	case evReach, evReply, evHandle, evTake:
		m := w.net.find(e.what)
		if m < 0 {
			return 0
		}
		d.Uint(uint64(p.naming.Worker(int(e.who))))
		if (e.kind == evReach || e.kind == evReply) && !w.net.messages[m].loose {
			return 0 // with its lane
		}
		d.Uint(p.message(int(e.who), m, e.kind == evReach || e.kind == evHandle, w.net.messages[m].peer))
		before := uint64(0) // those of its connection come in the order of asking
		for i := range w.heap.soon {
			if o := &w.heap.soon[i]; o.kind == e.kind && o.who == e.who && o.seq < e.seq {
				before++
			}
		}
		d.Uint(before)
	case evStep, evUndo:
		d.Uint(e.what)
	case evFaultsOver:
	case evConnect:
		if w.net.sockets[e.who].epoch != e.what || w.net.links[e.who].peer != 0 {
			return 0
		}
		d.Uint(uint64(p.naming.Worker(int(e.who))))
	case evPeerClosed, evExited:
		d.Uint(uint64(p.naming.Worker(int(e.who))))
		d.Uint(p.Peer(core.Peer(e.what)))
	default: // of a process
		if w.processes[e.who].life != e.what {
			return 0
		}
		d.Uint(uint64(p.naming.Worker(int(e.who)-1) + 1))
	}
	return uint64(d)
}

// Instance, Peer, Request, Operation, Mapping and Slot tell the server's
// fingerprint what its names stand for.

func (p *printer) Instance(id core.InstanceID) uint64 { return p.naming.Instance(id) }

// Renames reports whether workers change places.
func (p *printer) Renames() bool { return p.renames() }

// Engine returns what stands for an engine's request, by its name on the wire.
func (p *printer) Engine(request []byte) uint64 {
	var id uint64
	for _, c := range request {
		if c < '0' || c > '9' { // of the raw client
			d := core.Digest(19)
			d.Bytes(request)
			return uint64(d)
		}
		id = 10*id + uint64(c-'0')
	}
	return p.naming.Request(core.RequestID(id))
}

// Peer renames the worker in a connection's name.
func (p *printer) Peer(peer core.Peer) uint64 {
	if peer == 0 {
		return 0
	}
	return uint64(peer)>>32<<32 | uint64(p.naming.Worker(int(uint32(peer))-1)+1)
}

func (p *printer) Request(peer core.Peer, uid []byte) uint64 {
	who := int(uint32(peer)) - 1
	if who < 0 || who >= len(p.w.net.links) || p.w.net.links[who].peer != peer {
		return 0 // nobody will be there for the reply
	}
	return p.waits(who, true, uid)
}

func (p *printer) Operation(op core.Op) uint64 {
	if op == 0 {
		return 0
	}
	for i := range p.w.memory.operations {
		if o := &p.w.memory.operations[i]; o.op == op && p.operations[i] != 0 {
			return p.operations[i]
		}
	}
	return 1
}

func (p *printer) Mapping(id core.Mapping) uint64 {
	if id == 0 {
		return 0
	}
	if at := p.w.memory.find(id); at >= 0 {
		return p.mappings[at]
	}
	return 1
}

func (p *printer) Slot(s core.Slot) uint64 {
	if int(s) < len(p.slots) {
		return p.slots[s]
	}
	return 11
}

// Identity is what event i of those that can come next is called: the same in
// two states with the same fingerprint, and the same for as long as the event is
// to come. It holds between a call of Fingerprint and the next step.
func (w *World) Identity(i int) uint64 {
	e := &w.heap.soon[w.ticks.ready[i]]
	p := &w.ticks.printer
	d := core.Digest(uint64(e.kind)<<32 | uint64(uint32(e.who)))
	switch e.kind {
	case evTimer, evStep, evUndo, evPeerClosed, evExited:
		d.Uint(e.what)
	case evReach, evReply: // the first of its lane
		if m := w.net.find(e.what); w.net.messages[m].loose {
			d.Uint(p.message(int(e.who), m, e.kind == evReach, w.net.messages[m].peer))
		}
	case evMemory:
		d.Uint(p.operations[uint32(e.what)])
	}
	return uint64(d)
}
