package hostshm

import (
	"fmt"
	"math/bits"
	"slices"

	"vigil/core"
)

// Why this file: where a block's bytes lie, worked out once at open, so that a
// copy does nothing but add and move (see the package comment for the layout).

// tensor is one exported tensor in a mapped segment.
type tensor struct {
	segment int // index into the mapping's segments
	offset  uint64
	blocks  uint64
	bytes   uint64 // of one block, both halves
	halves  bool   // keys and values lie apart
}

// group is one engine group: whose tensors, and how many of their blocks one
// block id of the engine means.
type group struct {
	tensors  []tensor
	physical uint64
	segments []int // the segments that a copy of this group touches
}

// maxPhysical bounds the blocks behind one block id, as the registry does.
const maxPhysical = 1 << 16

// tensorOf checks one export and places it.
func tensorOf(e *core.Export, segment int) (tensor, error) {
	t := tensor{segment: segment, offset: e.Offset, blocks: uint64(e.Blocks), bytes: uint64(e.BlockBytes)}
	hi, total := bits.Mul64(t.blocks, t.bytes)
	if hi != 0 || total > e.Bytes {
		return t, fmt.Errorf("%d blocks of %d bytes do not fit the tensor's %d bytes", e.Blocks, e.BlockBytes, e.Bytes)
	}
	// A plain tensor whose first dimension happens to be 2 blocks has no second
	// dimension of that many blocks; where it has, the reader of pickled
	// wrappers takes it for keys and values too.
	if len(e.Shape) > 2 && e.Shape[0] == 2 && e.Shape[1] == int64(e.Blocks) {
		if t.halves = true; t.bytes%2 != 0 {
			return t, fmt.Errorf("keys and values of a block must be of one size; a block has %d bytes", e.BlockBytes)
		}
	}
	return t, nil
}

// groupsOf lays tensors out by the engine's groups; none means one of all.
func groupsOf(tensors []tensor, said []core.Group) ([]group, error) {
	if len(said) == 0 {
		said = []core.Group{{}}
	}
	if len(said) > core.MaxGroups {
		return nil, fmt.Errorf("%d engine groups; at most %d", len(said), core.MaxGroups)
	}
	groups := make([]group, len(said))
	for i := range said {
		g, s := &groups[i], &said[i]
		if g.physical = 1; s.Physical != 0 {
			if s.Physical < 0 || s.Physical > maxPhysical {
				return nil, fmt.Errorf("engine group %d: %d physical blocks a block; from 1 to %d", i, s.Physical, maxPhysical)
			}
			g.physical = uint64(s.Physical)
		}
		if len(s.Layers) == 0 && len(said) == 1 {
			g.tensors = tensors
		} else {
			layers := slices.Clone(s.Layers)
			slices.Sort(layers) // registration order, however they are named
			for _, l := range layers {
				if l < 0 || l >= int64(len(tensors)) {
					return nil, fmt.Errorf("engine group %d names layer %d of %d", i, l, len(tensors))
				}
				g.tensors = append(g.tensors, tensors[l])
			}
		}
		for _, t := range g.tensors {
			if !slices.Contains(g.segments, t.segment) {
				g.segments = append(g.segments, t.segment)
			}
		}
	}
	return groups, nil
}

// move carries the blocks of one chunk of one group between the segments and
// the slot, from its byte at on, leaving the first skip blocks alone. It
// returns where the next group's bytes begin. The caller has checked that all
// block ids lie in every tensor; what does not fit the slot is FailCopy.
func (g *group) move(segments []segment, slot []byte, at uint64, blocks []uint32, skip int, way core.Direction) (uint64, core.Failure) {
	for i := range g.tensors {
		t := &g.tensors[i]
		per := t.bytes * g.physical // maxPhysical times 32 bits: no overflow
		if per == 0 {
			continue
		}
		if uint64(len(blocks)) > (uint64(len(slot))-at)/per {
			return at, core.FailCopy
		}
		end := at + per*uint64(len(blocks))
		data := segments[t.segment].data[t.offset:]
		for j := min(skip, len(blocks)); j < len(blocks); {
			run := 1 // blocks that lie side by side move as one
			for !t.halves && j+run < len(blocks) && blocks[j+run] == blocks[j]+uint32(run) {
				run++
			}
			first := uint64(blocks[j]) * g.physical
			place := slot[at+uint64(j)*per : at+uint64(j+run)*per]
			if t.halves {
				half := t.bytes / 2
				values := t.blocks * half
				for k := range g.physical {
					b := (first + k) * half
					exchange(data[b:b+half], place[:half], way)
					exchange(data[values+b:values+b+half], place[half:2*half], way)
					place = place[2*half:]
				}
			} else {
				exchange(data[first*t.bytes:first*t.bytes+uint64(len(place))], place, way)
			}
			j += run
		}
		at = end
	}
	return at, core.NoFailure
}

func exchange(theirs, ours []byte, way core.Direction) {
	if way == core.CopyOut {
		copy(ours, theirs)
	} else {
		copy(theirs, ours)
	}
}

// holds reports whether every block id lies in every tensor of the group.
func (g *group) holds(blocks []uint32) bool {
	limit := uint64(1) << 32
	for i := range g.tensors {
		limit = min(limit, g.tensors[i].blocks/g.physical)
	}
	for _, b := range blocks {
		if uint64(b) >= limit {
			return false
		}
	}
	return true
}
