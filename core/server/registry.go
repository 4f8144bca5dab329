package server

// A registry is an ordered collection with constant-time look-up, insertion
// and removal: entries stay at their position for life, a linked order through
// the positions is the order of insertion, and an index finds a key. A scan
// follows the order; it sorts nothing and allocates nothing.

// places hands out positions of a slice and takes them back.
type places struct {
	free  []int32
	count int32 // positions ever handed out
}

func (p *places) take() int32 {
	if n := len(p.free); n > 0 {
		pos := p.free[n-1]
		p.free = p.free[:n-1]
		return pos
	}
	p.count++
	return p.count - 1
}

func (p *places) give(pos int32) { p.free = append(p.free, pos) }

// live returns how many positions are in use.
func (p *places) live() int { return int(p.count) - len(p.free) }

func (p *places) empty() { p.free, p.count = p.free[:0], 0 }

// ring is an order over positions. The zero value is empty and ready.
type ring struct {
	links      []link
	head, tail int32 // position+1
}

type link struct{ prev, next int32 } // position+1

// push puts pos, which must not be in the ring, at the end.
func (r *ring) push(pos int32) {
	for int(pos) >= len(r.links) {
		r.links = append(r.links, link{})
	}
	r.links[pos] = link{prev: r.tail}
	if r.tail != 0 {
		r.links[r.tail-1].next = pos + 1
	} else {
		r.head = pos + 1
	}
	r.tail = pos + 1
}

// cut takes pos, which must be in the ring, out of it.
func (r *ring) cut(pos int32) {
	l := r.links[pos]
	if l.prev != 0 {
		r.links[l.prev-1].next = l.next
	} else {
		r.head = l.next
	}
	if l.next != 0 {
		r.links[l.next-1].prev = l.prev
	} else {
		r.tail = l.prev
	}
}

// first returns the first position, -1 where the ring is empty.
func (r *ring) first() int32 { return r.head - 1 }

// after returns the position after pos, -1 at the end.
func (r *ring) after(pos int32) int32 { return r.links[pos].next - 1 }

func (r *ring) clear() { r.links, r.head, r.tail = r.links[:0], 0, 0 }

// registry holds values of one type under 64-bit keys.
type registry[E any] struct {
	places
	ring
	ids     index
	entries []E
}

// find returns the position of key, -1 where there is none.
func (r *registry[E]) find(key uint64) int32 { return r.ids.first(key) }

// add makes a place at the end of the order. What the place held before is
// still in it, so that its buffers can be used again.
func (r *registry[E]) add(key uint64) int32 {
	pos := r.take()
	if int(pos) == len(r.entries) {
		r.entries = extended(r.entries)
	}
	r.push(pos)
	r.ids.put(key, pos)
	return pos
}

// extended adds one element, with what an earlier use left in it.
func extended[E any](s []E) []E {
	if len(s) < cap(s) {
		return s[:len(s)+1]
	}
	var zero E
	return append(s, zero)
}

// remove gives pos back; the value stays readable until the next add.
func (r *registry[E]) remove(pos int32) {
	r.ids.drop(pos)
	r.cut(pos)
	r.give(pos)
}

func (r *registry[E]) reset() {
	r.empty()
	r.clear()
	r.ids.reset()
	r.entries = r.entries[:0]
}
