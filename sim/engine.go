package sim

import (
	"vigil/core"
)

// submitted is one request that an engine waits for.
type submitted struct {
	id     core.RequestID
	prompt int32
	first  uint32 // its blocks are first, first+1, ..., in each group
	count  uint32 // in the group that has most of them
	store  bool
	held   bool  // it has ended, and its blocks are not free yet
	part   *Part // what of the prompt; nil is all of it
}

// engine is the simulated inference engine of one worker: it registers its
// memory, submits stores and retrieves, polls, and checks every block that it
// was told it may use.
type engine struct {
	world      *World
	plan       *WorkerPlan
	index      int
	allocation int
	blocks     int
	next       uint32 // where the next request's blocks begin
	pending    []submitted
	polling    bool
	registered bool
	traffic    bool           // its own traffic is on
	ticking    bool           // its next request is in the heap
	stuck      bool           // its thread is: it asks nothing and takes no answer
	told       bool           // that its worker has left: its process may end
	asked      core.RequestID // how many requests it made, where time goes in ticks
}

func (e *engine) process() *process { return &e.world.processes[e.index+1] }

// begin is a fresh process's engine.
func (e *engine) begin() {
	e.pending = e.pending[:0]
	e.next = 0
	e.polling, e.registered, e.ticking, e.stuck, e.told = false, false, false, false, false
	e.traffic = !e.plan.Traffic.Every.Zero()
	e.allocation = -1
}

// call asks the adapter something.
func (e *engine) call() {
	w := e.world
	w.input = core.Input{Kind: core.InputCall, Call: &w.call}
	e.process().feed(&w.input)
}

// register hands the KV memory to the adapter.
func (e *engine) register() bool {
	w := e.world
	p := e.process()
	if m := e.plan.Memory; m != nil {
		return e.registerAs(m)
	}
	if e.allocation < 0 {
		e.allocation = w.memory.allocate(e.index, p.life, e.blocks, w.blockBytes(e.plan))
	}
	w.handle = w.memory.handleOf(e.allocation, w.handle[:0])
	w.exports[0] = core.Export{
		Kind: core.HostSHM, Handle: w.handle, Device: simDevice,
		Bytes: uint64(e.blocks) * uint64(w.blockBytes(e.plan)), Blocks: uint32(e.blocks), BlockBytes: uint32(w.blockBytes(e.plan)),
		DType: simDType, Shape: w.shape[:],
	}
	w.shape = [2]int64{int64(e.blocks), int64(w.blockBytes(e.plan))}
	w.groups[0] = core.Group{TokensPerBlock: int64(w.blockTokens), SlidingWindow: -1, Physical: 1}
	w.layers = append(w.layers[:0], 0)
	w.groups[0].Layers = w.layers
	w.call = core.Call{Kind: core.CallRegister, Exports: w.exports[:], Groups: w.groups[:]}
	e.call()
	w.shape, w.layers[0] = [2]int64{}, -1 // what it passed was valid during the call
	return true
}

var (
	simDevice = []byte("sim-device-0")
	simDType  = []byte("uint8")
)

// tick is the engine's own traffic.
func (e *engine) tick() bool {
	w := e.world
	t := &e.plan.Traffic
	e.ticking = false
	if !e.traffic || e.stuck || e.process().leaving {
		return false
	}
	if t.To != 0 && w.now >= core.Time(t.To) {
		return false
	}
	if w.now >= core.Time(t.From) {
		stores, all := t.Stores, t.Stores+t.Retrieve
		if all == 0 {
			stores, all = 1, 2
		}
		e.submit(w.choices.Below(ForTraffic, e.index+1, uint64(all)) < uint64(stores), -1, nil)
	}
	e.schedule()
	return true
}

// schedule puts the next request of the traffic into the heap.
func (e *engine) schedule() {
	if e.ticking || !e.traffic || !e.registered {
		return
	}
	w := e.world
	t := &e.plan.Traffic
	e.ticking = true
	at := max(w.now, core.Time(t.From)).Add(w.choices.Span(ForTraffic, e.index+1, t.Every, t.Every))
	if w.now < core.Time(t.From) {
		at = core.Time(t.From).Add(w.choices.Span(ForTraffic, e.index+1, stepTime, stepTime))
	}
	w.push(evTraffic, e.index+1, at, e.process().life)
}

// submit asks for one store or retrieve, of a part of a prompt or of all of it;
// prompt of -1 lets the tape choose. An engine with no free blocks waits
// instead, as a scheduler does.
func (e *engine) submit(store bool, prompt int, part *Part) bool {
	w := e.world
	if !e.registered && (part == nil || part.Blocks == nil) || e.stuck || len(e.pending) >= maxSubmitted {
		return false // one that names blocks of its own choice may ask too early
	}
	if prompt < 0 {
		prompt = int(w.choices.Below(ForTraffic, e.index+1, uint64(len(w.prompts))))
	}
	pr := &w.prompts[prompt%len(w.prompts)]
	s := submitted{prompt: int32(prompt % len(w.prompts)), count: uint32(pr.blocks), store: store, part: part}
	if part != nil || e.plan.Memory != nil {
		s.count = e.most(&s)
	}
	var ok bool
	if s.first, ok = e.room(s.count); !ok {
		return false
	}
	e.next = s.first + s.count
	id := w.nextRequest(e.index)
	s.id = id
	e.pending = append(e.pending, s)
	w.call = core.Call{Kind: core.CallRetrieve, Request: id, Tokens: pr.tokens, End: len(pr.tokens)}
	if store {
		w.call.Kind = core.CallStore
	}
	if part != nil || e.plan.Memory != nil {
		e.fillParts(&s)
	} else {
		e.fill(&s, pr)
	}
	r := w.truth(core.EngineSubmitted, nil)
	r.Instance, r.A, r.B, r.Flag = w.identities[e.index], uint64(id), uint64(e.index+1), store
	w.emit()
	w.call.Blocks = w.blocks
	e.call()
	return true
}

// fill lists the blocks of a request for a whole prompt, and has them hold what
// is to be stored, or nothing.
func (e *engine) fill(s *submitted, pr *prompt) {
	w := e.world
	tags := w.memory.allocations[e.allocation].tags
	w.blocks = w.blocks[:0]
	for i := uint32(0); i < s.count; i++ {
		w.blocks = append(w.blocks, s.first+i)
		if s.store {
			tags[s.first+i] = e.tag(pr.prefix[i], 0)
		} else {
			tags[s.first+i] = 0
		}
	}
}

// maxSubmitted bounds what one engine waits for at a time.
const maxSubmitted = 64

// room finds blocks that no pending request uses. What is held may stay so for
// long, so it is passed by; for the others an engine waits.
func (e *engine) room(count uint32) (first uint32, ok bool) {
	first = e.next
	for tries := 0; tries <= len(e.pending) && count <= uint32(e.blocks); tries++ {
		if first+count > uint32(e.blocks) {
			first = 0
		}
		p := e.inTheWay(first, count)
		if p == nil {
			return first, true
		}
		if !p.held {
			return 0, false
		}
		first = p.first + p.count
	}
	return 0, false
}

// inTheWay is the first request that has one of these blocks, nil where none has.
func (e *engine) inTheWay(first, count uint32) *submitted {
	for i := range e.pending {
		if p := &e.pending[i]; first < p.first+p.count && p.first < first+count {
			return p
		}
	}
	return nil
}

// tag stands for the bytes that this worker's shard of a block of a group holds,
// where the prefix up to its end folds to this.
func (e *engine) tag(prefix uint64, group int) uint64 {
	c := &e.plan.Config
	return tagOf(prefix, uint64(c.Rank), uint64(c.WorldSize), e.world.models[e.index], group)
}

// tell is the adapter answering.
func (e *engine) tell(t *core.Tell) {
	w := e.world
	switch t.Kind {
	case core.TellRegistered, core.TellRegisterFailed:
		r := w.truth(core.EngineRegistered, nil)
		r.Instance, r.A, r.Flag, r.Failure = w.identities[e.index], uint64(e.index+1), t.Kind == core.TellRegistered, t.Failure
		w.emit()
		if t.Kind == core.TellRegisterFailed {
			if !e.process().leaving { // the engine fails to start
				w.exits = append(w.exits, exit{who: e.index + 1, gaveUp: true})
			}
			return
		}
		e.registered = true
		e.schedule()
	case core.TellWake:
		e.poll()
	case core.TellFinished:
		e.finished(t)
	case core.TellShutdown:
		e.told = true
	case core.TellWarning:
		r := w.truth(core.EngineWarned, nil)
		r.Instance, r.A, r.Failure = w.identities[e.index], uint64(e.index+1), t.Failure
		w.emit()
	}
}

// poll has the engine ask get_finished at its next step.
func (e *engine) poll() {
	if e.polling {
		return
	}
	e.polling = true
	w := e.world
	at := w.now.Add(w.choices.Span(ForTraffic, e.index+1, stepTime, stepTime))
	w.push(evPoll, e.index+1, at, e.process().life)
}

// ask is the engine's step that asks what ended.
func (e *engine) ask() bool {
	if e.stuck {
		return false // it asks once it goes on
	}
	e.polling = false
	e.world.call = core.Call{Kind: core.CallFinished}
	e.call()
	return true
}

// finished takes one answer of get_finished and checks the blocks that the
// engine may use now.
func (e *engine) finished(t *core.Tell) {
	w := e.world
	r := w.truth(core.EngineTold, nil)
	r.Instance, r.A, r.B, r.Flag = w.identities[e.index], uint64(t.Request), uint64(t.Outcome), t.Store
	w.emit()
	for i := range e.pending {
		s := e.pending[i]
		if s.id != t.Request {
			continue
		}
		if t.Outcome == core.OutcomeHeld {
			e.pending[i].held = true
		} else {
			last := len(e.pending) - 1
			e.pending[i] = e.pending[last]
			e.pending = e.pending[:last]
		}
		if t.Outcome != core.OutcomeFreed {
			e.verify(&s, t)
		} else if len(t.Blocks) > 0 { // they are its own again, all of them
			e.wrong(&s, t.Blocks[0], true)
		}
		return
	}
}

// verify judges the blocks of a request that has ended: those that the engine
// was not told to keep away from, it uses. A retrieve that delivered nothing
// leaves nothing to use; after one that did, the blocks must hold what a
// finished writer stored; and with those that a store read nothing is wrong.
// The bytes of an engine-driven worker are its own to see.
func (e *engine) verify(s *submitted, t *core.Tell) {
	w := e.world
	parts := s.part != nil || e.plan.Memory != nil
	switch {
	case s.store || t.Outcome == core.OutcomeLoaded && len(t.Blocks) > 0:
		if len(t.Blocks) > 0 {
			e.wrong(s, t.Blocks[0], true)
		}
	case t.Outcome != core.OutcomeLoaded && parts:
		e.listParts(s)
		for _, b := range w.blocks {
			if !invalid(t.Blocks, b) {
				e.wrong(s, b, true)
				return
			}
		}
	case t.Outcome != core.OutcomeLoaded:
		for i := uint32(0); i < s.count; i++ {
			if !invalid(t.Blocks, s.first+i) {
				e.wrong(s, s.first+i, true)
				return
			}
		}
	case e.plan.Config.Mode == core.ModeEngineDriven:
	case parts:
		e.verifyParts(s)
	default:
		tags := w.memory.allocations[e.allocation].tags
		pr := &w.prompts[s.prompt]
		for i := uint32(0); i < s.count; i++ {
			if b := s.first + i; tags[b] != e.tag(pr.prefix[i], 0) {
				e.wrong(s, b, false)
				return
			}
		}
		e.right(s, s.count)
	}
}

// wrong says that the engine uses a block that holds other bytes than it thinks;
// listed, because the list of blocks to keep away from is wrong.
func (e *engine) wrong(s *submitted, block uint32, listed bool) {
	w := e.world
	r := w.truth(core.BlocksWrong, nil)
	r.Instance, r.A, r.B, r.Flag = w.identities[e.index], uint64(s.id), uint64(block), listed
	w.emit()
}

func (e *engine) right(s *submitted, blocks uint32) {
	w := e.world
	r := w.truth(core.BlocksRight, nil)
	r.Instance, r.A, r.B = w.identities[e.index], uint64(s.id), uint64(blocks)
	w.emit()
}

func invalid(blocks []uint32, b uint32) bool {
	for _, x := range blocks {
		if x == b {
			return true
		}
	}
	return false
}

// prompt is one token sequence that the engines share. Two prompts share their
// first chunk, so that prefixes are met.
type prompt struct {
	tokens []uint32
	prefix []uint64 // of each block: the prefix up to its end, folded
	blocks int
}

// promptShape is all that a plan's prompts depend on: how many there are, of how
// many tokens at least and at most, in chunks and blocks of how many.
type promptShape struct{ count, low, high, chunk, block int }

// makePrompts builds the prompts of a shape.
func makePrompts(s promptShape) []prompt {
	prompts := make([]prompt, s.count)
	chunk := s.chunk
	for i := range prompts {
		tokens := s.low
		if s.high > s.low {
			tokens += int(mix(uint64(i)+77) % uint64(s.high-s.low+1))
		}
		tokens = max(tokens/chunk*chunk, chunk)
		pr := &prompts[i]
		pr.tokens = make([]uint32, tokens)
		for t := range pr.tokens {
			family := uint64(i)
			if t < chunk {
				family = uint64(i / 2)
			}
			pr.tokens[t] = uint32(mix(family<<32|uint64(t)) % 150_000)
		}
		var d core.Digest
		for t, token := range pr.tokens {
			d.Uint(uint64(token))
			if (t+1)%s.block == 0 {
				pr.prefix = append(pr.prefix, uint64(d))
			}
		}
		pr.blocks = len(pr.prefix)
	}
	return prompts
}
