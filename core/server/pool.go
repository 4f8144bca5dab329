package server

import "slices"

// extents is the free room of the shared pool that engine-driven workers write
// and read themselves: first fit over free ranges in order, since a slot there
// must lie in one piece. Chunks of one layout are of one size, so the list
// stays short.
type extents struct {
	free []extent
	size uint64 // of all of it; no chunk is larger
}

type extent struct{ offset, length uint64 }

func (x *extents) reset(size uint64) {
	x.free, x.size = x.free[:0], size
	if size > 0 {
		x.free = append(x.free, extent{0, size})
	}
}

// take returns room of n bytes; false where no free range is long enough.
func (x *extents) take(n uint64) (offset uint64, ok bool) {
	for i := range x.free {
		f := &x.free[i]
		if f.length < n {
			continue
		}
		offset = f.offset
		f.offset += n
		if f.length -= n; f.length == 0 {
			x.free = slices.Delete(x.free, i, i+1)
		}
		return offset, true
	}
	return 0, false
}

// give returns room that take gave, and joins it with its neighbours.
func (x *extents) give(offset, n uint64) {
	i, _ := slices.BinarySearchFunc(x.free, offset, func(f extent, at uint64) int {
		if f.offset < at {
			return -1
		}
		return 1
	})
	before := i > 0 && x.free[i-1].offset+x.free[i-1].length == offset
	after := i < len(x.free) && offset+n == x.free[i].offset
	switch {
	case before && after:
		x.free[i-1].length += n + x.free[i].length
		x.free = slices.Delete(x.free, i, i+1)
	case before:
		x.free[i-1].length += n
	case after:
		x.free[i].offset, x.free[i].length = offset, n+x.free[i].length
	default:
		x.free = slices.Insert(x.free, i, extent{offset, n})
	}
}
