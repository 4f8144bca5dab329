package realgpu

import (
	"fmt"
	"math/bits"
	"slices"

	"vigil/core"
)

// Why this file: where a block's bytes lie, worked out once at open, so that a
// copy does nothing but add and move (see the package comment for the layout).

// Tensor is one exported tensor, checked and placed.
type Tensor struct {
	Place  int    // which of the mapping's pieces of memory it lies in; the backend's own numbers
	Offset uint64 // of its first byte there
	Blocks uint64
	Bytes  uint64 // of one block, both halves
	Halves bool   // keys and values lie apart
}

// Group is one engine group: whose tensors, and how many of their blocks one
// block id of the engine means.
type Group struct {
	Tensors  []Tensor
	Physical uint64
	Places   []int // that a copy of this group touches
}

// maxPhysical bounds the blocks behind one block id, as the registry does.
const maxPhysical = 1 << 16

// TensorOf checks one export and places it.
func TensorOf(e *core.Export, place int) (Tensor, error) {
	t := Tensor{Place: place, Offset: e.Offset, Blocks: uint64(e.Blocks), Bytes: uint64(e.BlockBytes)}
	hi, total := bits.Mul64(t.Blocks, t.Bytes)
	if hi != 0 || total > e.Bytes {
		return t, fmt.Errorf("%d blocks of %d bytes do not fit the tensor's %d bytes", e.Blocks, e.BlockBytes, e.Bytes)
	}
	// A plain tensor whose first dimension happens to be 2 blocks has no second
	// dimension of that many blocks; where it has, the reader of pickled
	// wrappers takes it for keys and values too.
	if len(e.Shape) > 2 && e.Shape[0] == 2 && e.Shape[1] == int64(e.Blocks) {
		if t.Halves = true; t.Bytes%2 != 0 {
			return t, fmt.Errorf("keys and values of a block must be of one size; a block has %d bytes", e.BlockBytes)
		}
	}
	return t, nil
}

// GroupsOf lays tensors out by the engine's groups; none means one of all.
func GroupsOf(tensors []Tensor, said []core.Group) ([]Group, error) {
	if len(said) == 0 {
		said = []core.Group{{}}
	}
	if len(said) > core.MaxGroups {
		return nil, fmt.Errorf("%d engine groups; at most %d", len(said), core.MaxGroups)
	}
	groups := make([]Group, len(said))
	for i := range said {
		g, s := &groups[i], &said[i]
		if g.Physical = 1; s.Physical != 0 {
			if s.Physical < 0 || s.Physical > maxPhysical {
				return nil, fmt.Errorf("engine group %d: %d physical blocks a block; from 1 to %d", i, s.Physical, maxPhysical)
			}
			g.Physical = uint64(s.Physical)
		}
		if len(s.Layers) == 0 && len(said) == 1 {
			g.Tensors = tensors
		} else {
			layers := slices.Clone(s.Layers)
			slices.Sort(layers) // registration order, however they are named
			for _, l := range layers {
				if l < 0 || l >= int64(len(tensors)) {
					return nil, fmt.Errorf("engine group %d names layer %d of %d", i, l, len(tensors))
				}
				g.Tensors = append(g.Tensors, tensors[l])
			}
		}
		for _, t := range g.Tensors {
			if !slices.Contains(g.Places, t.Place) {
				g.Places = append(g.Places, t.Place)
			}
		}
	}
	return groups, nil
}

// Holds reports whether every block id lies in every tensor of the group.
func (g *Group) Holds(blocks []uint32) bool {
	limit := uint64(1) << 32
	for i := range g.Tensors {
		limit = min(limit, g.Tensors[i].Blocks/g.Physical)
	}
	for _, b := range blocks {
		if uint64(b) >= limit {
			return false
		}
	}
	return true
}

// Walk visits the pieces of one chunk of one group: so many bytes from an
// offset of a place on are the slot's bytes from at on. Blocks that lie side by
// side are one piece; the first skip blocks are left out. slot is how many
// bytes the slot has and from where the group's begin in it. It returns where
// the next group's bytes begin, false where the chunk does not fit the slot.
// The caller has checked that the group Holds the blocks.
func (g *Group) Walk(slot, from uint64, blocks []uint32, skip int, piece func(place int, offset, at, bytes uint64)) (next uint64, fits bool) {
	at := from
	for i := range g.Tensors {
		t := &g.Tensors[i]
		per := t.Bytes * g.Physical // maxPhysical times 32 bits: no overflow
		if per == 0 {
			continue
		}
		if uint64(len(blocks)) > (slot-at)/per {
			return at, false
		}
		for j := min(skip, len(blocks)); j < len(blocks); {
			run := 1
			for !t.Halves && j+run < len(blocks) && blocks[j+run] == blocks[j]+uint32(run) {
				run++
			}
			first := uint64(blocks[j]) * g.Physical
			to := at + uint64(j)*per
			if t.Halves {
				half := t.Bytes / 2
				values := t.Blocks * half
				for k := range g.Physical {
					b := (first + k) * half
					piece(t.Place, t.Offset+b, to+2*k*half, half)
					piece(t.Place, t.Offset+values+b, to+(2*k+1)*half, half)
				}
			} else {
				piece(t.Place, t.Offset+first*t.Bytes, to, per*uint64(run))
			}
			j += run
		}
		at += per * uint64(len(blocks))
	}
	return at, true
}
