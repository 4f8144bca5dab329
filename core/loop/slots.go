package loop

import (
	"syscall"

	"vigil/core"
	"vigil/core/server"
)

// The bytes of the L1 store. The core says which slot holds a chunk and how
// many bytes it has; this says where they are. They lie outside the Go heap,
// for a store of many gigabytes would double what the collector lets the heap
// grow to. Chunks come in few sizes, one per layout, so each size has slabs of
// its own; a slab without a chunk goes back to the system, and its pages take
// no memory before they are first written.
//
// All methods are the owner's. A slot's bytes stay where they are from the
// first call of Slot to the record that its chunk is dropped; the core drops no
// chunk that a copy reads or writes.

// slabBytes is the least that is asked of the system at once.
const slabBytes = 16 << 20

// slotAlign is where chunks begin, for the copies' sake.
const slotAlign = 64

// Slots gives a memory backend the bytes of slots.
type Slots interface {
	// Slot returns the bytes of a slot that is reserved or ready, exactly as
	// long as its chunk, nil for any other slot and where the system has no
	// memory. Only inside a call of core.Memory's methods.
	Slot(core.Slot) []byte
}

// Pinner is a memory backend that copies better where it knows beforehand in
// which memory the slots lie. Both methods return at once.
type Pinner interface {
	// Took is told of memory in which slots will lie.
	Took(memory []byte)
	// Gave takes over memory in which no slot lies any more, and unmaps it when
	// it is done with it.
	Gave(memory []byte)
}

type slots struct {
	pins    Pinner // nil where the backend is none
	machine *server.Server
	pool    []byte // the shared pool, where this process has it mapped

	places []slotPlace // by slot
	sizes  map[uint64]*sizeClass
	held   uint64 // bytes of chunks
	mapped uint64 // bytes of slabs
	failed uint64 // times that the system had no memory
}

type slotPlace struct {
	slab  *slab
	index int32
}

type sizeClass struct {
	stride uint64 // from one chunk of a slab to the next
	chunk  uint64
	per    int32 // chunks in a slab
	slabs  int
	open   []*slab // with room
}

type slab struct {
	class *sizeClass
	bytes []byte
	free  []int32
	used  int32
	at    int // index in class.open, -1 where it is full
}

func (s *slots) Slot(slot core.Slot) []byte {
	v, ok := s.machine.Slot(slot)
	if !ok || v.Bytes == 0 {
		return nil
	}
	if v.Pooled {
		if end := v.Offset + v.Bytes; end <= uint64(len(s.pool)) && end >= v.Offset {
			return s.pool[v.Offset:end:end]
		}
		return nil
	}
	for int(slot) >= len(s.places) {
		s.places = append(s.places, slotPlace{})
	}
	p := &s.places[slot]
	if p.slab == nil && !s.place(p, v.Bytes) {
		s.failed++
		return nil
	}
	from := uint64(p.index) * p.slab.class.stride
	return p.slab.bytes[from : from+v.Bytes : from+v.Bytes]
}

// place finds room for a chunk.
func (s *slots) place(p *slotPlace, bytes uint64) bool {
	if s.sizes == nil {
		s.sizes = make(map[uint64]*sizeClass)
	}
	c := s.sizes[bytes]
	if c == nil {
		stride := (bytes + slotAlign - 1) / slotAlign * slotAlign
		if stride < bytes || stride > 1<<46 {
			return false
		}
		c = &sizeClass{stride: stride, chunk: bytes, per: int32(max(1, slabBytes/stride))}
		s.sizes[bytes] = c
	}
	if len(c.open) == 0 && !s.grow(c) {
		return false
	}
	l := c.open[len(c.open)-1]
	p.slab, p.index = l, l.free[len(l.free)-1]
	l.free = l.free[:len(l.free)-1]
	l.used++
	if len(l.free) == 0 {
		c.open = c.open[:len(c.open)-1]
		l.at = -1
	}
	s.held += bytes
	return true
}

func (s *slots) grow(c *sizeClass) bool {
	n := uint64(c.per) * c.stride
	b, err := syscall.Mmap(-1, 0, int(n), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		if c.slabs == 0 {
			delete(s.sizes, c.chunk)
		}
		return false
	}
	l := &slab{class: c, bytes: b, at: len(c.open)}
	for i := c.per; i > 0; i-- {
		l.free = append(l.free, i-1)
	}
	c.open = append(c.open, l)
	c.slabs++
	s.mapped += n
	if s.pins != nil {
		s.pins.Took(b)
	}
	return true
}

// drop gives a slot's bytes back; one that never had any is none the wiser.
func (s *slots) drop(slot core.Slot) {
	if int64(slot) >= int64(len(s.places)) || s.places[slot].slab == nil {
		return
	}
	p := s.places[slot]
	s.places[slot] = slotPlace{}
	l, c := p.slab, p.slab.class
	s.held -= c.chunk
	l.free = append(l.free, p.index)
	l.used--
	if l.at < 0 {
		l.at = len(c.open)
		c.open = append(c.open, l)
	}
	// One empty slab is kept: the next chunk is likely of the same size.
	if l.used == 0 && (len(c.open) > 1 || s.mapped > s.held+4*slabBytes) {
		s.release(l)
	}
}

func (s *slots) release(l *slab) {
	c := l.class
	last := len(c.open) - 1
	c.open[l.at] = c.open[last]
	c.open[l.at].at = l.at
	c.open = c.open[:last]
	s.mapped -= uint64(len(l.bytes))
	s.unmap(l)
	if c.slabs--; c.slabs == 0 {
		delete(s.sizes, c.chunk)
	}
}

// unmap gives a slab's memory back, through the backend where it was told of it.
func (s *slots) unmap(l *slab) {
	if s.pins != nil {
		s.pins.Gave(l.bytes)
	} else {
		syscall.Munmap(l.bytes)
	}
	l.bytes = nil
}

// close gives everything back. Nothing may copy any more.
func (s *slots) close() {
	seen := map[*slab]bool{}
	for _, p := range s.places {
		if p.slab != nil {
			seen[p.slab] = true
		}
	}
	for _, c := range s.sizes {
		for _, l := range c.open {
			seen[l] = true
		}
	}
	for l := range seen {
		if l.bytes != nil {
			s.unmap(l)
		}
	}
	*s = slots{machine: s.machine}
}
