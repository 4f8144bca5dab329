package sim

import "vigil/core"

// What an allocation looks like to whoever opens it: several tensors, in groups
// whose blocks are of different sizes. An engine has one of each by default.

// maxTags bounds the blocks of all groups of one allocation.
const maxTags = 1 << 24

// allocateAs gives a process memory in the shape of these exports and groups,
// which must not change any more, and returns its number.
func (m *memory) allocateAs(worker int, life uint64, exports []core.Export, groups []core.Group) int {
	slot := m.allocate(worker, life, 0, 0)
	a := &m.allocations[slot]
	a.exports, a.groups = exports, groups
	for i := range exports {
		a.bytes += exports[i].Bytes
	}
	a.stride = 0
	for g := range max(1, len(groups)) {
		blocks, _ := a.group(g)
		a.stride = max(a.stride, blocks)
	}
	a.lay(min(max(1, len(groups))*int(a.stride), maxTags))
	return slot
}

// tag is what block b of a group holds, nil where there is no such block.
func (a *allocation) tag(group int, b uint32) *uint64 {
	if a.exports == nil {
		if group != 0 || uint64(b) >= uint64(len(a.tags)) {
			return nil
		}
		return &a.tags[b]
	}
	blocks, _ := a.group(group)
	if b >= blocks {
		return nil
	}
	if at := uint64(group)*uint64(a.stride) + uint64(b); at < uint64(len(a.tags)) {
		return &a.tags[at]
	}
	return nil
}

// group returns how many blocks a group has, and how many bytes one of them is
// in all of its tensors. A group of which nothing is said is all tensors.
func (a *allocation) group(g int) (blocks uint32, bytes uint64) {
	if a.exports == nil {
		if n := uint64(len(a.tags)); g == 0 && n > 0 {
			return uint32(n), a.bytes / n
		}
		return 0, 0
	}
	if g >= max(1, len(a.groups)) {
		return 0, 0
	}
	blocks = ^uint32(0)
	physical := uint32(1)
	add := func(x *core.Export) {
		blocks = min(blocks, x.Blocks/physical)
		bytes += uint64(x.BlockBytes) * uint64(physical)
	}
	if g < len(a.groups) && a.groups[g].Physical > 0 {
		physical = uint32(a.groups[g].Physical)
	}
	if g < len(a.groups) && len(a.groups[g].Layers) > 0 {
		for _, at := range a.groups[g].Layers {
			if at < 0 || at >= int64(len(a.exports)) {
				return 0, 0
			}
			add(&a.exports[at])
		}
		return blocks, bytes
	}
	if len(a.groups) > 1 {
		return 0, 0
	}
	for i := range a.exports {
		add(&a.exports[i])
	}
	return blocks, bytes
}

// tokensOf is how many tokens a block of a group holds.
func (a *allocation) tokensOf(g, fallback int) int64 {
	if g < len(a.groups) && a.groups[g].TokensPerBlock > 0 {
		return a.groups[g].TokensPerBlock
	}
	return int64(fallback)
}

// exportedAs reports whether an order to open asks for the memory as it was
// exported.
func (a *allocation) exportedAs(o *core.OpenOrder) bool {
	if a.exports == nil {
		n := uint64(len(a.tags))
		if len(o.Exports) != 1 || len(o.Groups) != 1 || len(o.Groups[0].Layers) != 1 || o.Groups[0].Layers[0] != 0 {
			return false
		}
		x := &o.Exports[0]
		return x.Bytes == a.bytes && uint64(x.Blocks) == n && uint64(x.Blocks)*uint64(x.BlockBytes) == a.bytes
	}
	if len(o.Exports) != len(a.exports) || len(o.Groups) != len(a.groups) {
		return false
	}
	for i := range a.exports {
		x := a.exports[i]
		x.Handle = o.Exports[0].Handle // all lie in one allocation
		if !x.Equal(&o.Exports[i]) {
			return false
		}
	}
	for i := range a.groups {
		if !sameGroup(&a.groups[i], &o.Groups[i]) {
			return false
		}
	}
	return true
}

func sameGroup(a, b *core.Group) bool {
	if a.ID != b.ID || a.TokensPerBlock != b.TokensPerBlock || a.SlidingWindow != b.SlidingWindow || a.Physical != b.Physical || len(a.Layers) != len(b.Layers) {
		return false
	}
	for i := range a.Layers {
		if a.Layers[i] != b.Layers[i] {
			return false
		}
	}
	return true
}

// misfit finds what is wrong with a copy: a block that was not exported, or a
// slot of another size than what is copied for it.
func (m *memory) misfit(o *core.CopyOrder, a *allocation) (what uint64, wrong bool) {
	var sum uint64
	for i := range o.Chunks {
		c := &o.Chunks[i]
		blocks, bytes := a.group(int(c.Group))
		for _, b := range o.Blocks[c.First : c.First+c.Count] {
			if b >= blocks {
				return uint64(b), true
			}
		}
		sum += uint64(c.Count) * bytes
		if i+1 < len(o.Chunks) && o.Chunks[i+1].Slot == c.Slot {
			continue
		}
		if s := m.world.server; s != nil { // a test of the memory has none
			if v, ok := s.Slot(c.Slot); !ok || v.Bytes != sum {
				return uint64(c.Slot), true
			}
		}
		sum = 0
	}
	return 0, false
}

// handedOut is exports with the handle of the allocation that all lie in, valid
// until the next are handed out.
func (w *World) handedOut(allocation int, exports []core.Export) []core.Export {
	w.handle = w.memory.handleOf(allocation, w.handle[:0])
	w.tensors = append(w.tensors[:0], exports...)
	for i := range w.tensors {
		w.tensors[i].Handle = w.handle
	}
	return w.tensors
}
