package monitor

import "math/bits"

// The monitors look one small number up per record (an instance, a mapping, an
// incarnation), millions of times a second and reset thousands of times, so
// they keep their own open-addressing table: no allocation once grown, removal
// without tombstones, and a reset that costs nothing when it is empty.

// table maps non-zero keys to small non-negative numbers.
type table struct {
	cells []cell
	shift uint // 64 - log2(len(cells))
	used  int
}

type cell struct {
	key   uint64
	value int32
}

const firstCells = 16

func (t *table) home(key uint64) int { return int(key * 0x9e3779b97f4a7c15 >> t.shift) }

// get returns the value of key, or -1.
func (t *table) get(key uint64) int32 {
	if len(t.cells) == 0 {
		return -1
	}
	mask := len(t.cells) - 1
	for i := t.home(key); ; i = (i + 1) & mask {
		c := &t.cells[i&mask]
		if c.key == 0 { // first, so that key 0 is never there
			return -1
		}
		if c.key == key {
			return c.value
		}
	}
}

// put sets a key that is absent.
func (t *table) put(key uint64, value int32) {
	if 2*(t.used+1) > len(t.cells) {
		t.grow()
	}
	mask := len(t.cells) - 1
	i := t.home(key)
	for t.cells[i].key != 0 {
		i = (i + 1) & mask
	}
	t.cells[i] = cell{key, value}
	t.used++
}

func (t *table) grow() {
	old := t.cells
	n := max(firstCells, 2*len(old))
	t.cells = make([]cell, n)
	t.shift = uint(64 - bits.TrailingZeros(uint(n)))
	mask := n - 1
	for _, c := range old {
		if c.key == 0 {
			continue
		}
		i := t.home(c.key)
		for t.cells[i].key != 0 {
			i = (i + 1) & mask
		}
		t.cells[i] = c
	}
}

// remove takes key out and moves back what had been pushed past it.
func (t *table) remove(key uint64) {
	if len(t.cells) == 0 || key == 0 {
		return
	}
	mask := len(t.cells) - 1
	i := t.home(key)
	for t.cells[i].key != key {
		if t.cells[i].key == 0 {
			return
		}
		i = (i + 1) & mask
	}
	t.used--
	for j := i; ; {
		j = (j + 1) & mask
		c := t.cells[j]
		if c.key == 0 {
			break
		}
		// c may fill the hole unless its home lies after the hole, on the way to j.
		if (j-t.home(c.key))&mask >= (j-i)&mask {
			t.cells[i] = c
			i = j
		}
	}
	t.cells[i] = cell{}
}

func (t *table) reset() {
	if t.used > 0 {
		clear(t.cells)
		t.used = 0
	}
}

// pool is a slice of things found by key, with its free places kept for reuse.
// bound is how many it holds at most; what does not fit is not followed.
type pool[T any] struct {
	items []T
	free  []int32
	index table
}

// get returns the place of key, or -1.
func (p *pool[T]) get(key uint64) int32 { return p.index.get(key) }

// add makes a place for a key that is absent, its thing set to zero; -1 where
// bound things are held already or the key is 0.
func (p *pool[T]) add(key uint64, bound int) int32 {
	if key == 0 || p.index.used >= bound {
		return -1
	}
	var zero T
	var i int32
	if n := len(p.free); n > 0 {
		i = p.free[n-1]
		p.free = p.free[:n-1]
		p.items[i] = zero
	} else {
		i = int32(len(p.items))
		p.items = append(p.items, zero)
	}
	p.index.put(key, i)
	return i
}

// drop frees the place of key.
func (p *pool[T]) drop(key uint64, i int32) {
	p.index.remove(key)
	p.free = append(p.free, i)
}

func (p *pool[T]) reset() {
	p.items = p.items[:0]
	p.free = p.free[:0]
	p.index.reset()
}
