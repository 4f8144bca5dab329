package server

import "math/bits"

// index finds the position of a numbered thing. It exists beside Go's map for
// three reasons: a clone of it is a copy of three slices, nothing can be made
// to depend on its order, and it allocates only when it grows. Keys may repeat
// (they may be hashes): a caller walks the positions of one key and compares
// what the key stands for. The zero value is empty and ready.
type index struct {
	seed  uint64  // from the process's entropy, so that a stranger cannot choose collisions
	heads []int32 // position+1 of each chain's newest; the length is a power of two
	nodes []node  // by position
	count int
}

// node is one position in its chain: key and successor lie together, since a
// look-up among 100,000 pays for every cache line that it fetches.
type node struct {
	key  uint64
	next int32 // position+1
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
func (x *index) following(pos int32, key uint64) int32 { return x.from(x.nodes[pos].next, key) }

func (x *index) from(at int32, key uint64) int32 {
	for at != 0 && x.nodes[at-1].key != key {
		at = x.nodes[at-1].next
	}
	return at - 1
}

// put adds pos under key; pos must not be in the index.
func (x *index) put(key uint64, pos int32) {
	if x.count >= len(x.heads) {
		x.grow()
	}
	for int(pos) >= len(x.nodes) {
		x.nodes = append(x.nodes, node{})
	}
	b := x.bucket(key)
	x.nodes[pos] = node{key, x.heads[b]}
	x.heads[b] = pos + 1
	x.count++
}

// drop removes pos, which must be in the index.
func (x *index) drop(pos int32) {
	at := &x.heads[x.bucket(x.nodes[pos].key)]
	for *at != pos+1 {
		at = &x.nodes[*at-1].next
	}
	*at = x.nodes[pos].next
	x.count--
}

func (x *index) grow() {
	old := x.heads
	x.heads = make([]int32, max(8, 2*len(old)))
	for _, at := range old {
		for at != 0 {
			pos := at - 1
			n := &x.nodes[pos]
			at = n.next
			b := x.bucket(n.key)
			n.next = x.heads[b]
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
	x.nodes, x.count = x.nodes[:0], 0
}
