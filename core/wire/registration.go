package wire

import "vigil/core"

// Why this file: what a registration says about its memory beside the exports:
// hints about the layout, engine groups, and the engine-driven worker's one
// map. Fields are known by name, unknown ones belong to newer clients.

// hints must be a map; nil is an error on the real system too.
func (p *payloads) hints() {
	c := p.next()
	m := c.composite()
	h := &p.r.Hints
	for n := m.dict(); n > 0 && !m.failed(); n-- {
		switch string(m.text(MaxText)) {
		case "kv_layout":
			h.KVLayout = m.text(MaxWord)
		case "num_kv_heads":
			h.NumKVHeads = m.int()
		case "tokens_per_block":
			h.TokensPerBlock = m.int()
		case "head_dim":
			h.HeadDim = m.int()
		default:
			m.skip()
		}
	}
	m.close()
	p.done(&c)
}

// putHints writes only the keys that are set.
func putHints(f *core.Frames, h *Hints) {
	n := 0
	for _, set := range [...]bool{len(h.KVLayout) > 0, h.NumKVHeads != 0, h.TokensPerBlock != 0, h.HeadDim != 0} {
		if set {
			n++
		}
	}
	e := newEncoder(f)
	e.dict(n)
	if len(h.KVLayout) > 0 {
		e.text("kv_layout", h.KVLayout)
	}
	if h.NumKVHeads != 0 {
		e.int("num_kv_heads", h.NumKVHeads)
	}
	if h.TokensPerBlock != 0 {
		e.int("tokens_per_block", h.TokensPerBlock)
	}
	if h.HeadDim != 0 {
		e.int("head_dim", h.HeadDim)
	}
	e.close()
	f.EndPart()
}

func (p *payloads) groups() {
	c := p.next()
	m := c.composite()
	buf := p.buf
	first := len(buf.ints)
	for n := m.array(core.MaxGroups); n > 0 && !m.failed(); n-- {
		g := core.Group{SlidingWindow: -1, Physical: 1}
		named := false
		for k := m.dict(); k > 0 && !m.failed(); k-- {
			switch string(m.text(MaxText)) {
			case "engine_group_id":
				g.ID = m.int()
				named = true
			case "layer_indices":
				at := len(buf.ints)
				buf.ints = m.ints(buf.ints, MaxLayers-(at-first))
				g.Layers = buf.ints[at:len(buf.ints):len(buf.ints)]
			case "tokens_per_block":
				g.TokensPerBlock = m.int()
			case "sw_size_tokens":
				g.SlidingWindow = m.int()
			case "physical_blocks_per_engine_block":
				g.Physical = m.int()
			default:
				m.skip()
			}
		}
		if !named {
			c.bad("holds a group without engine_group_id")
		}
		buf.groups = append(buf.groups, g)
	}
	m.close()
	p.r.Groups = buf.groups
	p.done(&c)
}

// putGroups leaves out the physical blocks where they say nothing, as older
// clients do.
func putGroups(f *core.Frames, groups []core.Group) {
	e := newEncoder(f)
	e.array(len(groups))
	for i := range groups {
		g := &groups[i]
		physical := g.Physical != 0 && g.Physical != 1
		if physical {
			e.dict(5)
		} else {
			e.dict(4)
		}
		e.int("engine_group_id", g.ID)
		e.ints("layer_indices", g.Layers)
		e.int("tokens_per_block", g.TokensPerBlock)
		e.int("sw_size_tokens", g.SlidingWindow)
		if physical {
			e.int("physical_blocks_per_engine_block", g.Physical)
		}
	}
	e.close()
	f.EndPart()
}

// The fields of an engine-driven registration; none has a default.
const (
	drivenID = 1 << iota
	drivenModel
	drivenWorld
	drivenBlock
	drivenLayers
	drivenHidden
	drivenDType
	drivenMLA
	drivenComplete = 1<<iota - 1
)

func (p *payloads) engineDriven() {
	c := p.next()
	m := c.composite()
	r := p.r
	seen := 0
	for n := m.dict(); n > 0 && !m.failed(); n-- {
		switch string(m.text(MaxText)) {
		case "instance_id":
			id := m.int()
			if id < 0 {
				c.bad("holds a negative instance id")
			}
			r.Instance = core.InstanceID(id)
			seen |= drivenID
		case "model_name":
			r.Model = m.text(MaxText)
			seen |= drivenModel
		case "world_size":
			r.WorldSize = m.int()
			seen |= drivenWorld
		case "block_size":
			r.BlockSize = m.int()
			seen |= drivenBlock
		case "num_layers":
			r.NumLayers = m.int()
			seen |= drivenLayers
		case "hidden_dim_size":
			r.HiddenDim = m.int()
			seen |= drivenHidden
		case "dtype_str":
			r.DType = m.text(MaxWord)
			seen |= drivenDType
		case "use_mla":
			r.UseMLA = m.bool()
			seen |= drivenMLA
		default:
			m.skip()
		}
	}
	m.close()
	if seen != drivenComplete {
		c.bad("is a map without all of instance_id, model_name, world_size, block_size, num_layers, hidden_dim_size, dtype_str, use_mla")
	}
	p.done(&c)
}

func putEngineDriven(f *core.Frames, r *Request) {
	e := newEncoder(f)
	e.dict(8)
	e.int("instance_id", int64(r.Instance))
	e.text("model_name", r.Model)
	e.int("world_size", r.WorldSize)
	e.int("block_size", r.BlockSize)
	e.int("num_layers", r.NumLayers)
	e.int("hidden_dim_size", r.HiddenDim)
	e.text("dtype_str", r.DType)
	e.bool("use_mla", r.UseMLA)
	e.close()
	f.EndPart()
}
