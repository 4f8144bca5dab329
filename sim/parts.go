package sim

import "vigil/core"

// An engine whose memory has several groups, or which asks for a part of a
// prompt. Apart from engine.go because the many engines of a large world do
// neither, and pay nothing for it.
//
// A request has blocks of the same numbers in each group, as many as the group
// needs for its range; they are named group after group.

// registerAs hands memory of that shape to the adapter.
func (e *engine) registerAs(m *Memory) bool {
	w := e.world
	if e.allocation < 0 {
		e.allocation = w.memory.allocateAs(e.index, e.process().life, m.Exports, m.Groups)
		a := &w.memory.allocations[e.allocation]
		e.blocks = int(^uint32(0))
		for g := range e.groups() {
			n, _ := a.group(g)
			e.blocks = min(e.blocks, int(n))
		}
	}
	w.call = core.Call{Kind: core.CallRegister, Exports: w.handedOut(e.allocation, m.Exports), Groups: m.Groups}
	e.call()
	return true
}

func (e *engine) groups() int {
	if m := e.plan.Memory; m != nil {
		return max(1, len(m.Groups))
	}
	return 1
}

// rangeOf is the range of tokens that a request is about.
func (e *engine) rangeOf(s *submitted) (from, to int) {
	to = len(e.world.prompts[s.prompt].tokens)
	if s.part == nil {
		return 0, to
	}
	if s.part.To != 0 {
		to = s.part.To
	}
	return s.part.From, to
}

// count is how many blocks of a group a request has, and of how many tokens
// each is.
func (e *engine) count(s *submitted, group int) (blocks uint32, size int) {
	size = int(e.world.memory.allocations[e.allocation].tokensOf(group, e.world.blockTokens))
	from, to := e.rangeOf(s)
	return uint32(max(0, to-from+size-1) / size), size
}

// most is how many blocks a request has in the group where it has most of
// them; none where it names blocks of its own choice.
func (e *engine) most(s *submitted) (blocks uint32) {
	if s.part != nil && s.part.Blocks != nil {
		return 0
	}
	for g := range e.groups() {
		n, _ := e.count(s, g)
		blocks = max(blocks, n)
	}
	return blocks
}

// fillParts completes the call of a request, and has its blocks hold what is to
// be stored, or nothing.
func (e *engine) fillParts(s *submitted) {
	c := &e.world.call
	c.Start, c.End = e.rangeOf(s)
	if s.part != nil {
		c.Skip = s.part.Skip
	}
	e.listParts(s)
	e.eachPart(s, func(tag *uint64, want uint64, _ uint32, _ bool) {
		if *tag = 0; s.store {
			*tag = want
		}
	})
}

// listParts lists the blocks of a request as it names them.
func (e *engine) listParts(s *submitted) {
	w := e.world
	w.blocks = w.blocks[:0]
	if s.part != nil && s.part.Blocks != nil {
		w.blocks = append(w.blocks, s.part.Blocks...)
		return
	}
	for g := range e.groups() {
		n, _ := e.count(s, g)
		for i := range n {
			w.blocks = append(w.blocks, s.first+i)
		}
	}
}

// eachPart visits the blocks of a request that are free ones of its engine's:
// what each holds, what belongs there, and whether the request skips it.
func (e *engine) eachPart(s *submitted, visit func(tag *uint64, want uint64, block uint32, skipped bool)) {
	if s.part != nil && s.part.Blocks != nil {
		return
	}
	a := &e.world.memory.allocations[e.allocation]
	tokens := e.world.prompts[s.prompt].tokens
	from, _ := e.rangeOf(s)
	skip := 0
	if s.part != nil {
		skip = from + s.part.Skip
	}
	for g := range e.groups() {
		n, size := e.count(s, g)
		for i := range n {
			end := from + (int(i)+1)*size
			tag := a.tag(g, s.first+i)
			if from < 0 || end > len(tokens) || tag == nil {
				continue // no such tokens: what it asks for does not fit
			}
			visit(tag, e.tag(prefixOf(tokens[:end]), g), s.first+i, !s.store && end <= skip)
		}
	}
}

// verifyParts compares what a retrieve delivered with what was stored, and
// what it skipped with what was there.
func (e *engine) verifyParts(s *submitted) {
	right, wrong := uint32(0), false
	e.eachPart(s, func(tag *uint64, want uint64, block uint32, skipped bool) {
		if skipped {
			want = 0
		}
		if right++; *tag != want && !wrong {
			wrong = true
			e.wrong(s, block, false)
		}
	})
	if !wrong {
		e.right(s, right)
	}
}
