package server

import "math/bits"

// index finds the position of a numbered thing. It exists beside Go's map for
// three reasons: a clone of it is a copy of three slices, nothing can be made
// to depend on its order, and it allocates only when it grows. Keys may repeat
// (they may be hashes): a caller walks the positions of one key and compares
// what the key stands for. The zero value is empty and ready.
type index struct {
	seed  uint64   // from the process's entropy, so that a stranger cannot choose collisions
	heads []int32  // position+1 of each chain's newest; the length is a power of two
	next  []int32  // by position: position+1 of the next in its chain
	keys  []uint64 // by position
	count int
}

func (x *index) bucket(key uint64) int {
	hi, lo := bits.Mul64(key^x.seed, 0x9e3779b97f4a7c15)
	return int((hi ^ lo) & uint64(len(x.heads)-1))
}

// first returns a position of key, -1 where there is none.
func (x *index) first(key uint64) int32 {
	if len(x.heads) == 0 {
		return -1
	}
	return x.from(x.heads[x.bucket(key)], key)
}

// following returns the position of key that comes after pos, -1 at the end.
func (x *index) following(pos int32, key uint64) int32 { return x.from(x.next[pos], key) }

func (x *index) from(at int32, key uint64) int32 {
	for at != 0 && x.keys[at-1] != key {
		at = x.next[at-1]
	}
	return at - 1
}

// put adds pos under key; pos must not be in the index.
func (x *index) put(key uint64, pos int32) {
	if x.count >= len(x.heads) {
		x.grow()
	}
	for int(pos) >= len(x.next) {
		x.next = append(x.next, 0)
		x.keys = append(x.keys, 0)
	}
	b := x.bucket(key)
	x.keys[pos], x.next[pos] = key, x.heads[b]
	x.heads[b] = pos + 1
	x.count++
}

// drop removes pos, which must be in the index.
func (x *index) drop(pos int32) {
	at := &x.heads[x.bucket(x.keys[pos])]
	for *at != pos+1 {
		at = &x.next[*at-1]
	}
	*at = x.next[pos]
	x.count--
}

func (x *index) grow() {
	old := x.heads
	x.heads = make([]int32, max(8, 2*len(old)))
	for _, at := range old {
		for at != 0 {
			pos := at - 1
			at = x.next[pos]
			b := x.bucket(x.keys[pos])
			x.next[pos] = x.heads[b]
			x.heads[b] = pos + 1
		}
	}
}

// reset empties the index. A small table is kept, a large one is not worth
// clearing for the next, most likely small, world.
func (x *index) reset() {
	if len(x.heads) > 1024 {
		x.heads = nil
	}
	clear(x.heads)
	x.next, x.keys, x.count = x.next[:0], x.keys[:0], 0
}

func (x *index) clone() index {
	return index{x.seed, copied(x.heads), copied(x.next), copied(x.keys), x.count}
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
