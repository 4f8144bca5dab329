package worker

import (
	"slices"

	"vigil/core"
)

// Clone and Fingerprint of what a worker keeps in tables of its own: the memory
// that was registered, and the books on pending requests.

// clone returns a copy that shares nothing.
func (m *memory) clone() memory {
	var c memory
	if m.kept {
		c.keep(m.exports, m.groups)
	}
	return c
}

// fold folds what is kept into d.
func (m *memory) fold(d *core.Digest) {
	d.Bool(m.kept)
	if !m.kept {
		return
	}
	d.Uint(uint64(len(m.exports)))
	for i := range m.exports {
		e := &m.exports[i]
		d.Uint(uint64(e.Kind))
		d.Bytes(e.Handle)
		d.Bytes(e.Device)
		d.Uint(e.Offset)
		d.Uint(e.Bytes)
		d.Uint(uint64(e.Blocks) | uint64(e.BlockBytes)<<32)
		d.Bytes(e.DType)
		foldNumbers(d, e.Shape)
	}
	d.Uint(uint64(len(m.groups)))
	for i := range m.groups {
		g := &m.groups[i]
		d.Uint(uint64(g.ID))
		foldNumbers(d, g.Layers)
		d.Uint(uint64(g.TokensPerBlock))
		d.Uint(uint64(g.SlidingWindow))
		d.Uint(uint64(g.Physical))
	}
}

func foldNumbers(d *core.Digest, numbers []int64) {
	d.Uint(uint64(len(numbers)))
	for _, n := range numbers {
		d.Uint(uint64(n))
	}
}

// clone returns a copy that shares nothing.
func (t *table) clone() table {
	c := *t
	c.entries = slices.Clone(t.entries)
	c.index = slices.Clone(t.index)
	for i := range c.entries {
		e := &c.entries[i]
		e.blocks, e.tokens = slices.Clone(e.blocks), slices.Clone(e.tokens)
	}
	return c
}

// fold folds the entries in their two orders. Neither slots nor uids nor the
// engine's numbers are folded: the place in the order is an entry's name.
// What the protections ask of an entry's age is folded as their answers are.
func (t *table) fold(d *core.Digest, at *vantage) {
	d.Uint(uint64(t.used))
	for s := t.active.head; s != none; s = t.entries[s].next {
		t.entries[s].fold(d)
		t.entries[s].foldAge(d, at)
	}
	for s := t.ready.head; s != none; s = t.entries[s].next {
		t.entries[s].fold(d)
		if t.entries[s].outcome == core.OutcomeHeld {
			d.Bool(t.entries[s].uid < at.asked)
		}
	}
	for s := t.held.head; s != none; s = t.entries[s].next {
		t.entries[s].fold(d)
		t.entries[s].foldAge(d, at)
	}
}

func (e *entry) fold(d *core.Digest) {
	head := uint64(e.stage) | uint64(e.outcome)<<8
	if e.store {
		head |= 1 << 16
	}
	d.Uint(head)
	d.Uint(uint64(len(e.blocks)))
	for _, b := range e.blocks {
		d.Uint(uint64(b))
	}
	d.Uint(uint64(len(e.tokens)))
	for _, v := range e.tokens {
		d.Uint(uint64(v))
	}
	d.Uint(uint64(e.start))
	d.Uint(uint64(e.end))
}

// vantage is from where an entry's age is seen.
type vantage struct {
	now       core.Time
	deadlines bool
	ordered   bool   // the next two count
	enrolled  uint64 // first uid after the last registration
	asked     uint64 // what a settle on its way asks about
	ping      uint64 // uid of the ping on its way
}

func (e *entry) foldAge(d *core.Digest, at *vantage) {
	if at.deadlines {
		d.Since(at.now, e.due)
	}
	d.Bool(e.uid < at.asked)
	if at.ordered {
		d.Bool(e.uid < at.enrolled)
		d.Bool(e.uid < at.ping)
	}
}
