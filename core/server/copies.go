package server

// The parts of a state, copied for Clone: what a search does with them, and a
// run never. Each copies what it owns and shares what never changes.

func (r *ring) copy() ring { return ring{copied(r.links), r.head, r.tail} }

func (x *index) clone() index {
	return index{x.seed, copied(x.heads), copied(x.nodes), x.count}
}

// copied is slices.Clone for state: nothing of the original's spare room.
func copied[T any](from []T) []T {
	if len(from) == 0 {
		return nil
	}
	to := make([]T, len(from))
	copy(to, from)
	return to
}

// clone copies the registry and its live values, not what those point to.
// Values of free places are left out: their buffers must not be shared.
func (r *registry[E]) clone() registry[E] {
	c := registry[E]{places{copied(r.free), r.count}, r.ring.copy(), r.ids.clone(), nil}
	if len(r.entries) > 0 {
		c.entries = make([]E, len(r.entries))
	}
	for pos := r.first(); pos >= 0; pos = r.after(pos) {
		c.entries[pos] = r.entries[pos]
	}
	return c
}

// clone copies the letters that the queues hold; walk lists those queues.
func (m *mail) clone(queues ...*queue) mail {
	c := mail{places: places{copied(m.free), m.count}, bytes: m.bytes}
	if len(m.letters) > 0 {
		c.letters = make([]letter, len(m.letters))
	}
	for _, q := range queues {
		for at := q.head; at != 0; at = m.letters[at-1].next {
			from, to := &m.letters[at-1], &c.letters[at-1]
			to.arrived, to.peer, to.size, to.next = from.arrived, from.peer, from.size, from.next
			copyRequest(&to.r, &from.r)
		}
	}
	return c
}

func (s *store) clone() store {
	return store{
		places{copied(s.free), s.count}, s.ring.copy(), s.keys.clone(),
		copied(s.chunks), s.used, s.budget, s.most, extents{copied(s.room.free), s.room.size},
	}
}

func (j *jobs) clone() jobs {
	c := jobs{places{copied(j.free), j.count}, j.waiting.copy(), nil}
	if len(j.jobs) > 0 {
		c.jobs = make([]job, len(j.jobs))
	}
	for i := range j.jobs {
		if from := &j.jobs[i]; from.state != jobFree {
			to := &c.jobs[i]
			*to = *from
			to.uid, to.raw, to.event = copied(from.uid), copied(from.raw), copied(from.event)
			to.request, to.slots = copied(from.request), copied(from.slots)
		}
	}
	return c
}

func (t *replyTo) clone() replyTo {
	c := *t
	c.uid, c.raw = copied(t.uid), copied(t.raw)
	return c
}
