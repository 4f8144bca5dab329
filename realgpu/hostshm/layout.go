package hostshm

import (
	"vigil/core"
	"vigil/realgpu"
)

// Why this file: the moving of bytes between the segments and a slot, where
// the layout says that they lie.

// move carries the blocks of one chunk of one group between the segments and
// the slot, from its byte at on, leaving the first skip blocks alone. It
// returns where the next group's bytes begin. The caller has checked that all
// block ids lie in every tensor; what does not fit the slot is FailCopy.
func move(g *realgpu.Group, segments []segment, slot []byte, at uint64, blocks []uint32, skip int, way core.Direction) (uint64, core.Failure) {
	next, fits := g.Walk(uint64(len(slot)), at, blocks, skip, func(place int, offset, from, n uint64) {
		theirs, ours := segments[place].data[offset:offset+n], slot[from:from+n]
		if way == core.CopyOut {
			copy(ours, theirs)
		} else {
			copy(theirs, ours)
		}
	})
	if !fits {
		return at, core.FailCopy
	}
	return next, core.NoFailure
}
