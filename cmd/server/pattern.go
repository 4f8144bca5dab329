package main

import "vigil/core"

// Why this file: what a worker stores can be told from everything else that it
// could be given. The bytes of a block follow from the whole prefix of its
// prompt, the model, the salt, the rank and the layer, so a block of another
// prompt, rank or user, a stale one, or one half copied, is seen.

// prompt is one token sequence. Prompts 2n and 2n+1 share their first chunk,
// so that prefixes are met.
type prompt struct {
	tokens []uint32
	prefix []uint64 // of each block: everything up to its end, folded
}

// makePrompts makes prompts from the configuration alone, so that two workers
// of one configuration agree on every byte.
func makePrompts(c *workerConfig) []*prompt {
	list := make([]*prompt, c.prompts)
	for i := range list {
		list[i] = makePrompt(c, c.seed, uint64(i))
	}
	return list
}

// makePrompt makes one prompt of a family of them.
func makePrompt(c *workerConfig, seed, n uint64) *prompt {
	chunk := c.core.ChunkTokens
	p := &prompt{tokens: make([]uint32, c.promptChunks*chunk)}
	d := core.Digest(7)
	d.Bytes([]byte(c.model))
	d.Bytes([]byte(c.salt))
	d.Uint(uint64(c.world)<<32 | uint64(c.rank))
	for t := range p.tokens {
		family := n
		if t < chunk {
			family = n / 2
		}
		f := core.Digest(seed)
		f.Uint(family)
		f.Uint(uint64(t))
		p.tokens[t] = uint32(uint64(f)>>20) % 150_000
		d.Uint(uint64(p.tokens[t]))
		if (t+1)%c.blockTokens == 0 {
			p.prefix = append(p.prefix, uint64(d))
		}
	}
	return p
}

// kvMemory is a worker's memory: a tensor for each layer, one behind another.
type kvMemory struct {
	own        *ownMemory
	blocks     int
	blockBytes int
	layers     int
}

func newMemory(c *workerConfig) (*kvMemory, error) {
	m := &kvMemory{nil, c.blocks, c.blockBytes, c.layers}
	var err error
	m.own, err = c.memory.make(int64(m.bytes()))
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (m *kvMemory) bytes() uint64 {
	return uint64(m.blocks) * uint64(m.blockBytes) * uint64(m.layers)
}

// exports describes the tensors: [blocks, keys and values, tokens, 1, size] of
// two bytes each.
func (m *kvMemory) exports(c *workerConfig) ([]core.Export, []core.Group) {
	tensor := uint64(m.blocks) * uint64(m.blockBytes)
	shape := []int64{int64(m.blocks), 2, int64(c.blockTokens), 1, int64(c.blockBytes / (4 * c.blockTokens))}
	var list []core.Export
	group := core.Group{TokensPerBlock: int64(c.blockTokens), SlidingWindow: -1, Physical: 1}
	for l := range m.layers {
		list = append(list, m.own.Export(core.Export{
			Offset: uint64(l) * tensor, Bytes: tensor, Blocks: uint32(m.blocks), BlockBytes: uint32(m.blockBytes),
			DType: []byte("float16"), Shape: shape,
		}))
		group.Layers = append(group.Layers, int64(l))
	}
	return list, []core.Group{group}
}

// at is where one block of one layer begins.
func (m *kvMemory) at(layer int, b uint32) int { return (layer*m.blocks + int(b)) * m.blockBytes }

func seedOf(prefix uint64, layer int) uint64 {
	d := core.Digest(prefix)
	d.Uint(uint64(layer) + 1)
	return uint64(d)
}

// fill writes a prompt's pattern into blocks.
func (m *kvMemory) fill(p *prompt, blocks []uint32) error {
	for i, b := range blocks {
		for l := range m.layers {
			if err := m.own.fill(m.at(l, b), m.blockBytes, seedOf(p.prefix[i], l)); err != nil {
				return err
			}
		}
	}
	return nil
}

// blank makes blocks hold nothing that could pass for a pattern, so that what
// is right after a retrieve was delivered by it.
func (m *kvMemory) blank(blocks []uint32) error {
	for _, b := range blocks {
		for l := range m.layers {
			if err := m.own.blank(m.at(l, b), m.blockBytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// verify returns the first place where blocks do not hold a prompt's pattern.
func (m *kvMemory) verify(p *prompt, blocks []uint32) (block, layer, at int, ok bool, err error) {
	for i, b := range blocks {
		for l := range m.layers {
			at, err := m.own.mismatch(m.at(l, b), m.blockBytes, seedOf(p.prefix[i], l))
			if at >= 0 || err != nil {
				return i, l, at, false, err
			}
		}
	}
	return 0, 0, 0, true, nil
}
