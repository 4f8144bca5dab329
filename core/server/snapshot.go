package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"vigil/core"
)

// A snapshot is a server's state between two steps, written down: a recording
// of inputs begins with one, so that a replay starts there and not at boot.
//
// What a snapshot restores behaves as the original does from then on, to the
// byte of every message and the number in every record: so free places are
// kept in their order too, for the next slot's number comes from there. Scratch
// and look-up tables are not written; tables are built again.
//
// ReadSnapshot checks every length, position and enumeration before it is
// used, takes no more memory than a small multiple of what it is given, and
// never panics. It does not prove that the parts agree with each other (that a
// slot's readers exist, say): what is read is meant to be our own, with a
// checksum that held.

// snapshotVersion changes with every change of the format or of the state.
const snapshotVersion = 5

// AppendSnapshot appends the state of s to b. Only between two steps.
func (s *Server) AppendSnapshot(b []byte) []byte {
	w := writer{b}
	w.uint(snapshotVersion)
	w.config(&s.cfg)
	saveRegistry(&w, &s.contexts, (*writer).entry)
	saveRegistry(&w, &s.engines, (*writer).entry)
	saveRegistry(&w, &s.strategies, func(w *writer, e *strategy) {
		w.uint(uint64(e.incarnation))
		w.slots(e.writes)
		w.slots(e.reads)
	})
	saveRegistry(&w, &s.ropes, func(w *writer, e *rope) {
		w.uint(uint64(e.instance))
		w.uint(uint64(e.incarnation))
	})
	saveRegistry(&w, &s.layouts.known, func(w *writer, e *layout) {
		w.text(e.model)
		w.int(e.world)
		w.uint(e.hash)
		w.uint(uint64(e.descriptor))
		w.int(int64(e.holders))
	})
	saveRegistry(&w, &s.layouts.holders, func(w *writer, e *holder) {
		w.uint(uint64(e.kind))
		w.uint(uint64(e.instance))
		w.uint(uint64(e.incarnation))
		w.int(int64(e.layout))
	})
	w.store(&s.store)
	saveRegistry(&w, &s.sessions, func(w *writer, e *session) {
		w.bytes(e.id)
		w.int(e.start)
		w.int(e.hits)
		w.int(e.ranks)
		w.slots(e.slots)
		w.bool(e.inline)
	})
	w.int(int64(s.locks))
	saveRegistry(&w, &s.reaped, func(w *writer, e *reapCount) {
		w.uint(uint64(e.instance))
		w.uint(e.times)
	})
	saveRegistry(&w, &s.peers, func(w *writer, e *bound) {
		w.uint(uint64(e.peer))
		w.int(int64(e.lane))
	})
	w.places(&s.mail.places)
	w.queue(&s.mail, &s.inbox)
	w.queue(&s.mail, &s.normal)
	w.queue(&s.mail, &s.parked)
	w.queue(&s.mail, &s.turn)
	w.int(int64(s.normalBusy))
	w.uint(uint64(len(s.lanes)))
	for i := range s.lanes {
		w.bool(s.lanes[i].busy)
		w.queue(&s.mail, &s.lanes[i].waiting)
	}
	w.uint(s.lanesBound)
	w.jobs(&s.jobs)
	w.phases(s)
	return w.b
}

// ReadSnapshot makes s the server that a snapshot describes. Where it fails, s
// is a new server of no configuration.
func (s *Server) ReadSnapshot(b []byte) error {
	r := reader{b: b}
	if v := r.uint(); r.bad == "" && v != snapshotVersion {
		return fmt.Errorf("snapshot is of version %d and this program reads version %d: replay it with the program that recorded it", v, snapshotVersion)
	}
	var cfg core.ServerConfig
	r.config(&cfg)
	if r.bad == "" {
		if err := cfg.Validate(); err != nil {
			return fmt.Errorf("snapshot's configuration: %w", err)
		}
	}
	s.Reset(cfg)
	loadRegistry(&r, &s.contexts, (*reader).entry)
	loadRegistry(&r, &s.engines, (*reader).entry)
	loadRegistry(&r, &s.strategies, func(r *reader, e *strategy) {
		e.incarnation = core.Incarnation(r.uint())
		e.writes, e.reads = r.slots(e.writes), r.slots(e.reads)
	})
	loadRegistry(&r, &s.ropes, func(r *reader, e *rope) {
		e.instance, e.incarnation = core.InstanceID(r.uint()), core.Incarnation(r.uint())
	})
	loadRegistry(&r, &s.layouts.known, func(r *reader, e *layout) {
		e.model, e.world, e.hash = string(r.bytes()), r.int(), r.uint()
		e.descriptor, e.holders = core.Digest(r.uint()), int(r.int())
	})
	loadRegistry(&r, &s.layouts.holders, func(r *reader, e *holder) {
		e.kind = core.ContextKind(r.below(256))
		e.instance, e.incarnation = core.InstanceID(r.uint()), core.Incarnation(r.uint())
		e.layout = r.position(int(s.layouts.known.count))
	})
	r.store(&s.store)
	loadRegistry(&r, &s.sessions, func(r *reader, e *session) {
		e.id = append(e.id[:0], r.bytes()...)
		e.start, e.hits, e.ranks = r.int(), r.int(), r.int()
		e.slots, e.inline = r.slots(e.slots), r.bool()
	})
	s.locks = int(r.int())
	loadRegistry(&r, &s.reaped, func(r *reader, e *reapCount) {
		e.instance, e.times = core.InstanceID(r.uint()), r.uint()
	})
	loadRegistry(&r, &s.peers, func(r *reader, e *bound) {
		e.peer, e.lane = core.Peer(r.uint()), r.position(core.MaxLanes)
	})
	r.places(&s.mail.places)
	s.mail.letters = r.room(s.mail.letters, int(s.mail.count))
	r.queue(&s.mail, &s.inbox)
	r.queue(&s.mail, &s.normal)
	r.queue(&s.mail, &s.parked)
	r.queue(&s.mail, &s.turn)
	s.normalBusy = int(r.int())
	for n := r.size(core.MaxLanes); n > 0 && r.bad == ""; n-- {
		s.lanes = append(s.lanes, lane{})
		l := &s.lanes[len(s.lanes)-1]
		l.busy = r.bool()
		r.queue(&s.mail, &l.waiting)
	}
	s.lanesBound = r.uint()
	r.jobs(&s.jobs, len(s.lanes))
	r.phases(s)
	if r.bad == "" {
		r.agree(s)
	}
	if r.bad == "" && len(r.b) > 0 {
		r.bad = "has bytes behind its end"
	}
	if r.bad != "" {
		s.Reset(core.ServerConfig{})
		return errors.New("snapshot " + r.bad + ": it is damaged, or of another program")
	}
	return nil
}

// agree checks the few agreements between parts without which a later step
// would reach outside a slice.
func (r *reader) agree(s *Server) {
	for pos := s.engines.first(); pos >= 0; pos = s.engines.after(pos) {
		if s.strategies.find(uint64(s.engines.entries[pos].instance)) < 0 {
			r.fail("has an engine-driven context without its strategy")
			return
		}
	}
	slots := len(s.store.chunks)
	ok := true
	within := func(list []core.Slot, holes bool) {
		for _, slot := range list {
			ok = ok && (int64(slot) < int64(slots) && s.store.chunks[slot].state != chunkFree || holes && slot == noSlot)
		}
	}
	for pos := s.strategies.first(); pos >= 0; pos = s.strategies.after(pos) {
		within(s.strategies.entries[pos].writes, false)
		within(s.strategies.entries[pos].reads, false)
	}
	for pos := s.sessions.first(); pos >= 0; pos = s.sessions.after(pos) {
		e := &s.sessions.entries[pos]
		within(e.slots, true)
		ok = ok && e.ranks >= 1 && e.ranks <= maxTP && e.hits >= 0 && e.hits <= int64(len(e.slots)) &&
			int64(len(e.slots)) == e.hits*e.ranks
	}
	for i := range s.jobs.jobs {
		within(s.jobs.jobs[i].slots, false)
	}
	for i := range s.reaper.batch {
		within(s.reaper.batch[i].writes, false)
		within(s.reaper.batch[i].reads, false)
	}
	for pos := s.peers.first(); pos >= 0; pos = s.peers.after(pos) {
		ok = ok && int(s.peers.entries[pos].lane) < len(s.lanes)
	}
	for _, e := range [...]*registry[entry]{&s.contexts, &s.engines} {
		for pos := e.first(); pos >= 0; pos = e.after(pos) {
			ok = ok && e.entries[pos].about != nil
		}
	}
	if !ok {
		r.fail("has parts that do not agree")
	}
}

// writer appends numbers and byte strings; the counterpart of reader.
type writer struct{ b []byte }

func (w *writer) uint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) int(v int64)   { w.b = binary.AppendVarint(w.b, v) }

func (w *writer) bool(v bool) {
	if v {
		w.b = append(w.b, 1)
	} else {
		w.b = append(w.b, 0)
	}
}

func (w *writer) bytes(b []byte) {
	w.uint(uint64(len(b)))
	w.b = append(w.b, b...)
}

func (w *writer) text(s string) {
	w.uint(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) slots(list []core.Slot) {
	w.uint(uint64(len(list)))
	for _, slot := range list {
		w.uint(uint64(slot))
	}
}

// reader takes a snapshot apart. After the first failure every reading is
// zero, so that a caller checks once, at the end.
type reader struct {
	b   []byte
	bad string
}

func (r *reader) fail(why string) {
	if r.bad == "" {
		r.bad, r.b = why, nil
	}
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("ends in the middle of a number")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail("ends in the middle of a number")
		return 0
	}
	r.b = r.b[n:]
	return v
}

// below reads a number under a bound.
func (r *reader) below(bound uint64) uint64 {
	v := r.uint()
	if v >= bound {
		r.fail("has a number out of its range")
		return 0
	}
	return v
}

// size reads how many things follow, each of at least one byte.
func (r *reader) size(most int) int {
	v := r.uint()
	if v > uint64(most) || v > uint64(len(r.b)) {
		r.fail("declares more than it holds")
		return 0
	}
	return int(v)
}

func (r *reader) position(of int) int32 {
	v := r.int()
	if v < 0 || v >= int64(of) {
		r.fail("has a position outside its list")
		return 0
	}
	return int32(v)
}

func (r *reader) bool() bool { return r.below(2) == 1 }

// bytes aliases the snapshot.
func (r *reader) bytes() []byte {
	n := r.size(len(r.b))
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) slots(to []core.Slot) []core.Slot {
	to = to[:0]
	for n := r.size(len(r.b)); n > 0; n-- {
		to = append(to, core.Slot(r.below(1<<32)))
	}
	return to
}

// config.

func (w *writer) config(c *core.ServerConfig) {
	w.int(int64(c.Reap))
	w.int(int64(c.Grace))
	names := core.ProtectionNames()
	w.uint(uint64(len(names)))
	for _, name := range names {
		with := c.Protections
		with.Set(name, true)
		w.text(name)
		w.bool(with == c.Protections)
	}
	w.int(int64(c.ChunkTokens))
	w.int(int64(c.NormalSlots))
	w.int(int64(c.AffinityLanes))
	w.uint(c.L1Bytes)
	w.text(c.PoolName)
	w.uint(c.PoolBytes)
	w.bool(c.ServerDriven)
	w.bool(c.EngineDriven)
	w.bool(c.Blend)
	w.bool(c.Legacy)
}

func (r *reader) config(c *core.ServerConfig) {
	c.Reap, c.Grace = time.Duration(r.int()), time.Duration(r.int())
	for n := r.size(1024); n > 0 && r.bad == ""; n-- {
		name := string(r.bytes())
		if on := r.bool(); !c.Protections.Set(name, on) && on {
			r.fail("has a protection that this program does not know")
		}
	}
	c.ChunkTokens, c.NormalSlots, c.AffinityLanes = int(r.int()), int(r.int()), int(r.int())
	c.L1Bytes = r.uint()
	c.PoolName, c.PoolBytes = string(r.bytes()), r.uint()
	c.ServerDriven, c.EngineDriven, c.Blend, c.Legacy = r.bool(), r.bool(), r.bool(), r.bool()
}
