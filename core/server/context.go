package server

import (
	"math/bits"

	"vigil/core"
	"vigil/core/wire"
)

// entry is one context in a registry: the liveness state of the design
// document's section 5.1 and what its release needs. What a scan reads of all
// of them comes first and fits a cache line.
type entry struct {
	instance    core.InstanceID
	incarnation core.Incarnation
	mapping     core.Mapping // 0 where the server opened nothing
	bytes       uint64       // charged to the server for the mapping
	lastSeen    core.Time
	about       *registration
	latched     bool      // has pinged: the shorter window counts
	transferred bool      // has stored or retrieved, last at moved
	peer        core.Peer // the connection that last spoke for it
	// fence and came tell what was meant for it, with keep-blocks: a transfer
	// with a smaller uid was given up, or sent before the register that made it,
	// and one that arrived before that register may be of another process that
	// had the id (A8).
	fence uint64
	came  core.Time
	moved core.Time // for whoever asks how long its engine has made no progress (B16)
}

// registration is what an instance said of itself. It never changes once it is
// made, so clones of a server share it.
type registration struct {
	model  string
	world  int64
	layout uint64 // hash of model and world: the layout's name in records
	// content tells whether two registrations name the same memory in the same
	// shape. Two folds with different starts, since one of 64 bits is thin for
	// a decision about memory (scenario B9).
	content    [2]core.Digest
	groups     []geometry
	chunkBytes uint64 // of one chunk of all groups; 0: no transfer fits it
	shape      []int64
	dtype      []byte
	blockSize  int64
	mla        bool
}

// geometry is how one engine group's blocks make up a chunk.
type geometry struct {
	tokens uint32 // in one block
	blocks uint32 // in one chunk
	limit  uint32 // block ids lie below it
}

// strategy is the other half of an engine-driven context: what its worker has
// prepared and not yet committed. It changes together with the context.
type strategy struct {
	incarnation core.Incarnation
	writes      []core.Slot // reserved
	reads       []core.Slot // locked, once per entry
}

// rope is blend state, mirrored beside a context; it has no liveness of its own.
type rope struct {
	instance    core.InstanceID
	incarnation core.Incarnation
}

// describeServerDriven keeps what a REGISTER_KV_CACHE said.
func describeServerDriven(r *wire.Request, chunkTokens int) *registration {
	a := describe(r)
	a.groups = make([]geometry, 0, max(1, len(r.Groups)))
	if len(r.Groups) == 0 {
		a.addGroup(r, &core.Group{TokensPerBlock: r.Hints.TokensPerBlock}, true, chunkTokens)
	}
	for i := range r.Groups {
		a.addGroup(r, &r.Groups[i], len(r.Groups) == 1, chunkTokens)
	}
	for i := range a.groups {
		if a.groups[i].blocks == 0 {
			a.chunkBytes = 0 // one group that cannot be moved: nothing can
		}
	}
	return a
}

// addGroup works out one group's geometry and adds its share of a chunk's
// bytes. A group that makes no sense gets zero blocks. sole: the only group
// may leave its layers out and then means all.
func (a *registration) addGroup(r *wire.Request, g *core.Group, sole bool, chunkTokens int) {
	a.groups = append(a.groups, geometry{})
	tokens, physical := g.TokensPerBlock, g.Physical
	if tokens == 0 {
		tokens = r.Hints.TokensPerBlock
	}
	if physical == 0 {
		physical = 1
	}
	if tokens < 1 || int64(chunkTokens)%tokens != 0 || physical < 1 || physical > 1<<16 {
		return
	}
	made := geometry{tokens: uint32(tokens), blocks: uint32(int64(chunkTokens) / tokens), limit: 1<<32 - 1}
	total := uint64(0)
	layers := len(g.Layers)
	if sole && layers == 0 {
		layers = len(r.Exports)
	}
	for i := range layers {
		at := int64(i)
		if len(g.Layers) > 0 {
			at = g.Layers[i]
		}
		if at < 0 || at >= int64(len(r.Exports)) {
			return
		}
		x := &r.Exports[at]
		made.limit = min(made.limit, x.Blocks/uint32(physical))
		hi, lo := bits.Mul64(uint64(x.BlockBytes)*uint64(physical), uint64(made.blocks))
		if hi != 0 || lo > maxChunkBytes {
			return
		}
		total += lo // wire.MaxLayers of them at most, far from an overflow
	}
	if a.chunkBytes += total; total == 0 || a.chunkBytes > maxChunkBytes {
		return // no layers, or empty ones; or more than a chunk may have
	}
	a.groups[len(a.groups)-1] = made
}

// describeEngineDriven keeps what a registration without exports said. A
// chunk is one tensor: keys and values (one of both where MLA joins them) by
// layers by tokens by hidden size.
func describeEngineDriven(r *wire.Request, chunkTokens int) *registration {
	a := describe(r)
	kv := int64(2)
	if r.UseMLA {
		kv = 1
	}
	a.shape = []int64{kv, r.NumLayers, int64(chunkTokens), r.HiddenDim}
	a.dtype = append([]byte(nil), r.DType...)
	a.blockSize, a.mla = r.BlockSize, r.UseMLA
	total := dtypeBytes(r.DType)
	for _, n := range a.shape {
		hi, lo := bits.Mul64(total, uint64(max(0, n)))
		if total = lo; hi != 0 || lo > maxChunkBytes {
			total = 0
		}
	}
	a.chunkBytes = total
	return a
}

// describe keeps what both kinds of registration say.
func describe(r *wire.Request) *registration {
	a := &registration{model: string(r.Model), world: r.WorldSize, layout: layoutHash(r.Model, r.WorldSize)}
	a.content = [2]core.Digest{1, 2}
	for i := range a.content {
		contentOf(&a.content[i], r)
	}
	return a
}

// contentOf folds everything that makes a registration what it is but the id.
func contentOf(d *core.Digest, r *wire.Request) {
	d.Bytes(r.Model)
	d.Uint(uint64(r.WorldSize))
	d.Bytes(r.Engine)
	d.Bytes(r.Hints.KVLayout)
	d.Uint(uint64(r.Hints.NumKVHeads))
	d.Uint(uint64(r.Hints.TokensPerBlock))
	d.Uint(uint64(r.Hints.HeadDim))
	d.Uint(uint64(len(r.Exports)))
	for i := range r.Exports {
		x := &r.Exports[i]
		d.Uint(uint64(x.Kind))
		d.Bytes(x.Handle)
		d.Bytes(x.Device)
		d.Uint(x.Offset)
		d.Uint(x.Bytes)
		d.Uint(uint64(x.Blocks)<<32 | uint64(x.BlockBytes))
		d.Bytes(x.DType)
		d.Uint(uint64(len(x.Shape)))
		for _, n := range x.Shape {
			d.Uint(uint64(n))
		}
	}
	d.Uint(uint64(len(r.Groups)))
	for i := range r.Groups {
		g := &r.Groups[i]
		d.Uint(uint64(g.ID))
		d.Uint(uint64(g.TokensPerBlock))
		d.Uint(uint64(g.SlidingWindow))
		d.Uint(uint64(g.Physical))
		d.Uint(uint64(len(g.Layers)))
		for _, n := range g.Layers {
			d.Uint(uint64(n))
		}
	}
	d.Uint(uint64(r.BlockSize))
	d.Uint(uint64(r.NumLayers))
	d.Uint(uint64(r.HiddenDim))
	d.Bytes(r.DType)
	d.Bool(r.UseMLA)
	d.Uint(uint64(r.HeadSize))
	d.Bool(r.Neox)
}

// dtypeBytes returns the size of one element, 0 where the type is unknown.
func dtypeBytes(name []byte) uint64 {
	switch string(name) {
	case "float64", "int64":
		return 8
	case "float32", "float", "int32":
		return 4
	case "float16", "half", "bfloat16", "int16":
		return 2
	case "float8_e4m3fn", "float8_e5m2", "uint8", "int8":
		return 1
	}
	return 0
}
