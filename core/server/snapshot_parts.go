package server

import (
	"vigil/core"
	"vigil/core/wire"
)

// The parts of a snapshot: for each collection how it is written and read.

func (w *writer) places(p *places) {
	w.uint(uint64(p.count))
	w.uint(uint64(len(p.free)))
	for _, pos := range p.free {
		w.int(int64(pos))
	}
}

// places reads which positions are free. How many there ever were is bounded
// by what follows: each one in use takes at least a byte.
func (r *reader) places(p *places) {
	count := r.size(len(r.b))
	p.count = int32(count)
	p.free = p.free[:0]
	for n := r.size(count); n > 0; n-- {
		p.free = append(p.free, r.position(count))
	}
	used := make([]bool, count)
	for _, pos := range p.free {
		if used[pos] {
			r.fail("gives a place back twice")
			return
		}
		used[pos] = true
	}
}

// taken marks the free places, so that a reader can tell who is in use twice.
func (p *places) taken() []bool {
	marks := make([]bool, p.count)
	for _, pos := range p.free {
		marks[pos] = true
	}
	return marks
}

// room is a letter for every place, empty.
func (r *reader) room(to []letter, count int) []letter {
	to = to[:0]
	for range count {
		to = append(to, letter{})
	}
	return to
}

// claim reads a position that is in use and was not read before.
func (r *reader) claim(marks []bool) int32 {
	pos := r.position(len(marks))
	if r.bad != "" {
		return 0
	}
	if marks[pos] {
		r.fail("uses a place twice")
		return 0
	}
	marks[pos] = true
	return pos
}

func saveRegistry[E any](w *writer, reg *registry[E], each func(*writer, *E)) {
	w.places(&reg.places)
	for pos := reg.first(); pos >= 0; pos = reg.after(pos) {
		w.int(int64(pos))
		w.uint(reg.ids.nodes[pos].key)
		each(w, &reg.entries[pos])
	}
}

func loadRegistry[E any](r *reader, reg *registry[E], each func(*reader, *E)) {
	r.places(&reg.places)
	if r.bad != "" {
		return
	}
	marks := reg.taken()
	reg.entries = make([]E, reg.count)
	for n := reg.live(); n > 0 && r.bad == ""; n-- {
		pos := r.claim(marks)
		key := r.uint()
		if each(r, &reg.entries[pos]); r.bad == "" {
			reg.push(pos)
			reg.ids.put(key, pos)
		}
	}
}

func (w *writer) entry(e *entry) {
	w.uint(uint64(e.instance))
	w.uint(uint64(e.incarnation))
	w.uint(uint64(e.mapping))
	w.uint(e.bytes)
	w.int(int64(e.lastSeen))
	w.bool(e.latched)
	w.bool(e.transferred)
	w.uint(uint64(e.peer))
	w.uint(e.fence)
	w.int(int64(e.came))
	w.int(int64(e.moved))
	w.bool(e.about != nil)
	if e.about != nil {
		w.registration(e.about)
	}
}

func (r *reader) entry(e *entry) {
	e.instance, e.incarnation = core.InstanceID(r.uint()), core.Incarnation(r.uint())
	e.mapping, e.bytes = core.Mapping(r.uint()), r.uint()
	e.lastSeen, e.latched, e.transferred = core.Time(r.int()), r.bool(), r.bool()
	e.peer, e.fence, e.came = core.Peer(r.uint()), r.uint(), core.Time(r.int())
	e.moved = core.Time(r.int())
	if e.about = nil; r.bool() {
		e.about = new(registration)
		r.registration(e.about)
	}
}

func (w *writer) registration(a *registration) {
	w.text(a.model)
	w.int(a.world)
	w.uint(a.layout)
	w.uint(uint64(a.content[0]))
	w.uint(uint64(a.content[1]))
	w.uint(uint64(len(a.groups)))
	for i := range a.groups {
		g := &a.groups[i]
		w.uint(uint64(g.tokens))
		w.uint(uint64(g.blocks))
		w.uint(uint64(g.limit))
	}
	w.uint(a.chunkBytes)
	w.uint(uint64(len(a.shape)))
	for _, n := range a.shape {
		w.int(n)
	}
	w.bytes(a.dtype)
	w.int(a.blockSize)
	w.bool(a.mla)
}

func (r *reader) registration(a *registration) {
	a.model, a.world, a.layout = string(r.bytes()), r.int(), r.uint()
	a.content[0], a.content[1] = core.Digest(r.uint()), core.Digest(r.uint())
	for n := r.size(core.MaxGroups); n > 0; n-- {
		a.groups = append(a.groups, geometry{uint32(r.below(1 << 32)), uint32(r.below(1 << 32)), uint32(r.below(1 << 32))})
	}
	a.chunkBytes = r.below(maxChunkBytes + 1)
	for n := r.size(wire.MaxDimensions); n > 0; n-- {
		a.shape = append(a.shape, r.int())
	}
	a.dtype = append(a.dtype, r.bytes()...)
	a.blockSize, a.mla = r.int(), r.bool()
}

// The store: every chunk that is not free, then those that may be evicted in
// their order.
func (w *writer) store(s *store) {
	w.places(&s.places)
	for i := range s.chunks {
		c := &s.chunks[i]
		if c.state == chunkFree {
			continue
		}
		w.int(int64(i))
		w.b = append(w.b, c.key.Hash[:]...)
		w.int(int64(c.key.Worker))
		w.uint(uint64(c.instance))
		w.uint(uint64(c.incarnation))
		w.uint(c.bytes)
		w.uint(c.offset)
		w.uint(uint64(c.readers))
		w.uint(uint64(c.state))
		w.bool(c.pooled)
	}
	n := 0
	for pos := s.first(); pos >= 0; pos = s.after(pos) {
		n++
	}
	w.uint(uint64(n))
	for pos := s.first(); pos >= 0; pos = s.after(pos) {
		w.int(int64(pos))
	}
	w.uint(s.used)
	w.uint(s.budget)
	w.uint(uint64(len(s.room.free)))
	for _, f := range s.room.free {
		w.uint(f.offset)
		w.uint(f.length)
	}
}

func (r *reader) store(s *store) {
	r.places(&s.places)
	if r.bad != "" {
		return
	}
	marks := s.taken()
	s.chunks = make([]chunk, s.count)
	for n := s.live(); n > 0 && r.bad == ""; n-- {
		pos := r.claim(marks)
		if r.bad != "" {
			return
		}
		c := &s.chunks[pos]
		if len(r.b) < len(c.key.Hash) {
			r.fail("ends in the middle of a hash")
			return
		}
		r.b = r.b[copy(c.key.Hash[:], r.b):]
		c.key.Worker = int32(r.int())
		c.instance, c.incarnation = core.InstanceID(r.uint()), core.Incarnation(r.uint())
		c.bytes, c.offset, c.readers = r.uint(), r.uint(), uint32(r.below(1<<32))
		c.state, c.pooled = chunkState(r.below(uint64(chunkReady)+1)), r.bool()
		if c.state == chunkFree {
			r.fail("has a chunk that is in use and free")
			return
		}
		s.keys.put(chunkHash(&c.key), pos)
	}
	if r.bad != "" {
		return
	}
	order := make([]bool, s.count)
	for n := r.size(int(s.count)); n > 0 && r.bad == ""; n-- {
		if pos := r.claim(order); r.bad == "" {
			if c := &s.chunks[pos]; c.state != chunkReady || c.readers != 0 {
				r.fail("would evict what is in use")
				return
			}
			s.push(pos)
		}
	}
	for i := range s.chunks {
		if c := &s.chunks[i]; c.state == chunkReady && c.readers == 0 && !order[i] {
			r.fail("has a chunk that could never be evicted")
			return
		}
	}
	s.used, s.budget = r.uint(), r.uint()
	s.room.free = s.room.free[:0]
	for n := r.size(len(r.b)); n > 0; n-- {
		s.room.free = append(s.room.free, extent{r.uint(), r.uint()})
	}
}

func (w *writer) queue(m *mail, q *queue) {
	w.uint(uint64(q.length))
	for at := q.head; at != 0; at = m.letters[at-1].next {
		l := &m.letters[at-1]
		w.int(int64(at - 1))
		w.int(int64(l.arrived))
		w.uint(uint64(l.peer))
		w.request(&l.r)
	}
}

// queue reads one queue's letters. A letter's size is worked out anew.
func (r *reader) queue(m *mail, q *queue) {
	for n := r.size(int(m.count)); n > 0 && r.bad == ""; n-- {
		pos := r.position(len(m.letters))
		if r.bad != "" {
			return
		}
		l := &m.letters[pos]
		if l.size != 0 {
			r.fail("has one letter in two queues")
			return
		}
		l.arrived, l.peer = core.Time(r.int()), core.Peer(r.uint())
		r.request(&l.r)
		l.size = max(1, sizeOf(&l.r))
		m.bytes += l.size
		q.push(m, pos)
	}
}

func (w *writer) jobs(j *jobs) {
	w.places(&j.places)
	for i := range j.jobs {
		e := &j.jobs[i]
		if e.state == jobFree {
			continue
		}
		w.int(int64(i))
		w.uint(uint64(e.state))
		w.uint(e.number)
		w.uint(uint64(e.op))
		w.uint(uint64(e.peer))
		w.int(int64(e.deadline))
		w.int(int64(e.began))
		w.uint(uint64(e.instance))
		w.uint(uint64(e.incarnation))
		w.uint(uint64(e.mapping))
		w.int(int64(e.chunks))
		w.int(int64(e.lane))
		w.bool(e.store)
		w.bool(e.unwanted)
		w.uint(e.sent)
		w.uint(uint64(e.kind))
		w.bytes(e.uid)
		w.bytes(e.raw)
		w.bytes(e.event)
		w.bytes(e.request)
		w.slots(e.slots)
	}
	for pos := j.waiting.first(); pos >= 0; pos = j.waiting.after(pos) {
		w.int(int64(pos))
	}
}

func (r *reader) jobs(j *jobs, lanes int) {
	r.places(&j.places)
	if r.bad != "" {
		return
	}
	marks := j.taken()
	j.jobs = make([]job, j.count)
	waiting := 0
	for n := j.live(); n > 0 && r.bad == ""; n-- {
		pos := r.claim(marks)
		if r.bad != "" {
			return
		}
		e := &j.jobs[pos]
		e.state = jobState(r.below(uint64(jobWaiting) + 1))
		e.number, e.op, e.peer, e.deadline = r.uint(), core.Op(r.uint()), core.Peer(r.uint()), core.Time(r.int())
		e.began = core.Time(r.int())
		e.instance, e.incarnation, e.mapping = core.InstanceID(r.uint()), core.Incarnation(r.uint()), core.Mapping(r.uint())
		e.chunks, e.lane = int32(r.int()), int32(r.int())
		e.store, e.unwanted, e.sent, e.kind = r.bool(), r.bool(), r.uint(), wire.Type(r.below(256))
		e.uid, e.raw = append(e.uid, r.bytes()...), append(e.raw, r.bytes()...)
		e.event, e.request = append(e.event, r.bytes()...), append(e.request, r.bytes()...)
		e.slots = r.slots(e.slots)
		switch {
		case e.state == jobWaiting:
			waiting++
		case e.state == jobFree, e.lane < 0, int(e.lane) >= lanes:
			r.fail("has a job in no state or no lane")
		}
	}
	if r.bad != "" {
		return
	}
	order := make([]bool, j.count)
	for ; waiting > 0 && r.bad == ""; waiting-- {
		if pos := r.claim(order); r.bad == "" {
			if j.jobs[pos].state != jobWaiting {
				r.fail("has a job that waits and does not")
				return
			}
			j.waiting.push(pos)
		}
	}
}

func (w *writer) phases(s *Server) {
	w.bool(s.main.held)
	saveRegistry(w, &s.enrolments, func(w *writer, e *enrolment) {
		w.entry(&e.entry)
		w.uint(uint64(e.op))
		w.int(int64(e.since))
		w.int(int64(e.arrived))
		w.bool(e.held)
		w.bool(e.inserting)
		w.bool(e.takenBack)
		w.replyTo(&e.reply)
	})
	saveRegistry(w, &s.releases, func(w *writer, e *release) {
		w.entry(&e.entry)
		w.uint(uint64(e.op))
		w.int(int64(e.since))
		w.uint(uint64(e.state))
		w.uint(uint64(e.by))
		w.bool(e.held)
		w.bool(e.stuck)
		w.replyTo(&e.reply)
	})
	w.uint(s.boot)
	p := &s.reaper
	w.uint(uint64(p.state))
	w.uint(uint64(p.target))
	w.int(int64(p.due))
	w.uint(uint64(p.looks))
	w.int(int64(p.at))
	w.uint(uint64(len(p.batch)))
	for i := range p.batch {
		w.entry(&p.batch[i].entry)
		w.slots(p.batch[i].writes)
		w.slots(p.batch[i].reads)
	}
	w.uint(uint64(len(p.ids)))
	for _, id := range p.ids {
		w.uint(uint64(id))
	}
	t := &s.stop
	w.uint(uint64(t.stage))
	w.int(int64(t.due))
	w.int(int64(s.lost.contexts))
	w.uint(s.lost.bytes)
	w.uint(uint64(s.incarnations))
	w.uint(uint64(s.mappings))
	w.uint(s.ops)
	w.uint(s.numbers)
	w.uint(s.allocationReports)
}

func (r *reader) phases(s *Server) {
	s.main.held = r.bool()
	loadRegistry(r, &s.enrolments, func(r *reader, e *enrolment) {
		r.entry(&e.entry)
		e.op, e.since, e.arrived = core.Op(r.uint()), core.Time(r.int()), core.Time(r.int())
		e.held, e.inserting, e.takenBack = r.bool(), r.bool(), r.bool()
		r.replyTo(&e.reply)
		if e.entry.about == nil || e.op == 0 {
			r.fail("opens a context that nobody registered")
		}
	})
	loadRegistry(r, &s.releases, func(r *reader, e *release) {
		r.entry(&e.entry)
		e.op, e.since = core.Op(r.uint()), core.Time(r.int())
		e.state, e.by = releaseState(r.below(uint64(releaseFailed)+1)), ReleaseBy(r.below(uint64(ByReplace)+1))
		e.held, e.stuck = r.bool(), r.bool()
		r.replyTo(&e.reply)
		if e.entry.about == nil || e.state == releaseFree {
			r.fail("releases a context that nobody registered")
		}
	})
	s.boot = r.uint()
	p := &s.reaper
	p.state, p.target = reaperState(r.below(uint64(reaperLooking)+1)), uint8(r.below(targets+1))
	p.due, p.looks = core.Time(r.int()), int8(r.below(maxLooks+1))
	at := r.int()
	for n := r.size(len(r.b)); n > 0 && r.bad == ""; n-- {
		p.batch = append(p.batch, popped{})
		b := &p.batch[len(p.batch)-1]
		r.entry(&b.entry)
		b.writes, b.reads = r.slots(b.writes), r.slots(b.reads)
		if b.entry.about == nil {
			r.fail("reaps a context that nobody registered")
		}
	}
	if at < 0 || at > int64(len(p.batch)) || int(at) == len(p.batch) && p.state == reaperCleaning {
		r.fail("reaps beyond its batch")
	}
	p.at = int32(at)
	for n := r.size(len(r.b)); n > 0; n-- {
		p.ids = append(p.ids, core.InstanceID(r.uint()))
	}
	t := &s.stop
	t.stage, t.due = stopStage(r.below(uint64(stopDone)+1)), core.Time(r.int())
	s.lost.contexts, s.lost.bytes = int(r.int()), r.uint()
	s.incarnations, s.mappings = core.Incarnation(r.uint()), core.Mapping(r.uint())
	s.ops, s.numbers, s.allocationReports = r.uint(), r.uint(), r.uint()
}

func (w *writer) replyTo(t *replyTo) {
	w.uint(uint64(t.peer))
	w.uint(uint64(t.kind))
	w.bytes(t.uid)
	w.bytes(t.raw)
}

func (r *reader) replyTo(t *replyTo) {
	t.peer, t.kind = core.Peer(r.uint()), wire.Type(r.below(256))
	t.uid, t.raw = append(t.uid[:0], r.bytes()...), append(t.raw[:0], r.bytes()...)
}
