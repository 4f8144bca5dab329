package sim

import (
	"strconv"

	"vigil/core"
	"vigil/faults"
)

// The rules of the simulated device memory. Each cites what it stands on: the
// name of a fact of scripts/device-check (docs/gpu.md has the questions), which
// a report of a real device answers, or PROTOCOL. No such report is there yet,
// so what only a fact could show is assumed.
//   - A mapping keeps the exported allocation alive and charged to the device
//     after its owner died (owner-killed: assumed; POSIX shared memory: known).
//   - An owner that is dead exports nothing: its handle cannot be opened any
//     more (open-after-death: assumed to hold while no mapping is open; where
//     one is, a driver may allow it, and the simulator is the stricter one).
//   - Opening an allocation that this process has open already is a defect of
//     the core. The driver's manual says that it counts and gives the same
//     address (double-open: documented, not measured); realgpu/cuda opens it
//     once all the same, so the core need not do it.
//   - Closing what is closed is a defect (close-too-often: assumed an error).
//   - Closing a mapping while a copy uses it is a use after free. A driver may
//     wait for the copy instead (close-under-copy: assumed so by the stand-in);
//     the core must not depend on it.
//   - A handle of memory that is gone, and one that was forged, is refused
//     (open-after-free, no-handle: assumed), and breaks nothing else.
//   - A close may take any time, fail, or never return (PROTOCOL, 6.2, #4676).

// allocation is what one life of a worker exported. A tag stands for the bytes
// of each block, so that a wrong byte is seen as a wrong tag.
type allocation struct {
	tags   []uint64 // of each block of the first group, then of the next one's
	bytes  uint64
	worker int // -1 is unused
	life   uint64
	open   int // mappings of the server that hold it
	// exports and groups are how it was exported, less the handles; without
	// exports it is one tensor and one group, as an engine has by default.
	exports []core.Export
	groups  []core.Group
	stride  uint32 // with exports: how many tags each group has room for
}

// mapping is an allocation opened in the server.
type mapping struct {
	id          core.Mapping
	owner       core.InstanceID
	incarnation core.Incarnation
	bytes       uint64
	allocation  int32
	copies      int // under way on it
	state       mappingState
}

type mappingState uint8

const (
	mappingOpening mappingState = iota
	mappingOpen
	mappingClosing
	mappingClosed
)

type operationKind uint8

const (
	operationOpen operationKind = iota
	operationClose
	operationCopy
)

// operation is a memory operation under way.
type operation struct {
	op      core.Op
	gen     uint32
	kind    operationKind
	mapping int32
	failure core.Failure
	in      bool // copy: into the worker's memory
	hung    bool
	chunks  []core.ChunkCopy
	blocks  []uint32
}

// trouble is a fault on one kind of memory operation.
type trouble struct {
	worker int
	slow   faults.Span
	hang   bool
	fail   core.Failure
	left   int // operations it still strikes; negative is all
	step   int
	kind   operationKind
}

// memory is the device as the server sees it, and the worker's own allocations.
type memory struct {
	world       *World
	allocations []allocation
	mappings    []mapping
	index       map[core.Mapping]int32 // into mappings
	closed      []int32                // mappings that are closed, oldest first
	operations  []operation
	free        []int32
	troubles    []trouble
	charged     uint64
	room        uint64 // 0 is boundless
	slots       [][]uint64
}

func (m *memory) reset() {
	m.allocations = m.allocations[:0]
	m.operations = m.operations[:0]
	m.troubles = m.troubles[:0]
	m.room = m.world.plan.DeviceBytes
	m.serverGone()
}

// serverGone ends every mapping with the process that held it, as the
// operating system and the driver do.
func (m *memory) serverGone() {
	for i := range m.operations {
		o := &m.operations[i]
		o.gen++
		o.hung = false
	}
	m.free = m.free[:0]
	for i := range m.operations {
		m.free = append(m.free, int32(i))
	}
	for i := range m.allocations {
		m.allocations[i].open = 0
	}
	m.mappings = m.mappings[:0]
	m.closed = m.closed[:0]
	clear(m.index)
	m.charged = 0
	m.slots = m.slots[:0]
}

// allocate gives a life of a worker its memory and returns its number.
func (m *memory) allocate(worker int, life uint64, blocks, blockBytes int) int {
	slot := -1
	if m.world.grain > 0 {
		slot = m.placeInTicks(worker, life)
	}
	for i := range m.allocations {
		if slot >= 0 {
			break
		}
		if a := &m.allocations[i]; a.worker < 0 || a.worker == worker && a.open == 0 && a.life != life {
			slot = i
			break
		}
		if i >= maxReuse {
			break
		}
	}
	if slot < 0 {
		slot = len(m.allocations)
		m.allocations = extended(m.allocations)
	}
	a := &m.allocations[slot]
	a.worker, a.life, a.open = worker, life, 0
	a.bytes = uint64(blocks) * uint64(blockBytes)
	a.exports, a.groups = nil, nil
	a.lay(blocks)
	return slot
}

// lay gives the allocation room for so many tags.
func (a *allocation) lay(blocks int) {
	if cap(a.tags) < blocks {
		a.tags = make([]uint64, blocks)
	}
	a.tags = a.tags[:blocks]
	clear(a.tags)
}

// maxReuse bounds the search for an allocation that can be used again.
const maxReuse = 64

// handleOf writes an allocation's handle: its number and whose it is, so that
// a handle of an earlier life is told from a later one's.
func (m *memory) handleOf(slot int, into []byte) []byte {
	a := &m.allocations[slot]
	into = append(into, handlePrefix...)
	for _, v := range [3]uint64{uint64(slot), uint64(a.worker), a.life} {
		into = append(into, '_')
		into = strconv.AppendUint(into, v, 10)
	}
	return into
}

const handlePrefix = "/vigil_sim"

func (m *memory) byHandle(handle []byte) int32 {
	if len(handle) < len(handlePrefix) || string(handle[:len(handlePrefix)]) != handlePrefix {
		return -1
	}
	var parts [4]uint64 // the first is unused: the text begins with a separator
	at := 0
	for _, c := range handle[len(handlePrefix):] {
		switch {
		case c == '_' && at < 3:
			at++
		case c >= '0' && c <= '9':
			parts[at] = parts[at]*10 + uint64(c-'0')
		default:
			return -1
		}
	}
	if parts[1] >= uint64(len(m.allocations)) {
		return -1
	}
	a := &m.allocations[parts[1]]
	if uint64(a.worker) != parts[2] || a.life != parts[3] {
		return -1
	}
	return int32(parts[1])
}

// begin makes an operation and has it end, unless a fault says otherwise.
func (m *memory) begin(kind operationKind, op core.Op, mp int32, actor int, span, fallback faults.Span) *operation {
	var i int32
	if last := len(m.free) - 1; last >= 0 {
		i = m.free[last]
		m.free = m.free[:last]
	} else {
		i = int32(len(m.operations))
		m.operations = extended(m.operations)
		m.operations[i].gen = 0
	}
	o := &m.operations[i]
	o.op, o.kind, o.mapping, o.failure, o.hung = op, kind, mp, core.NoFailure, false
	takes := m.world.choices.Span(ForMemory, actor, span, fallback)
	for t := range m.troubles {
		tr := &m.troubles[t]
		if tr.kind != kind || tr.left == 0 || tr.worker >= 0 && tr.worker != actor-1 {
			continue
		}
		if tr.left > 0 {
			tr.left--
		}
		m.world.struck(tr.step)
		o.hung = o.hung || tr.hang
		if tr.fail != core.NoFailure {
			o.failure = tr.fail
		}
		takes += m.world.choices.Span(ForMemory, actor, tr.slow, faults.Span{})
	}
	if !o.hung {
		m.world.push(evMemory, 0, m.world.now.Add(takes), uint64(o.gen)<<32|uint64(i))
	}
	return o
}

// ended frees the operation of an event and returns it; nil where it is gone.
func (m *memory) ended(what uint64) *operation {
	i := int32(uint32(what))
	o := &m.operations[i]
	if o.gen != uint32(what>>32) {
		return nil
	}
	o.gen++
	m.free = append(m.free, i)
	return o
}

// actorOf returns whose tape and whose faults an instance's operations meet.
func (m *memory) actorOf(allocation int32) int {
	if allocation < 0 {
		return 0
	}
	return m.allocations[allocation].worker + 1
}

// find returns where a mapping lies. A server numbers its mappings from 1, and
// as long as none is forgotten they lie in that order.
func (m *memory) find(id core.Mapping) int32 {
	if at := uint64(id) - 1; at < uint64(len(m.mappings)) && m.mappings[at].id == id {
		return int32(at)
	}
	if at, ok := m.index[id]; ok {
		return at
	}
	return -1
}

// place finds room for a mapping, remembering the last closed ones.
func (m *memory) place(id core.Mapping) int32 {
	at := int32(len(m.mappings))
	if len(m.closed) > keepClosed {
		at = m.closed[0]
		m.closed = m.closed[1:]
		delete(m.index, m.mappings[at].id)
	} else {
		m.mappings = append(m.mappings, mapping{})
	}
	if m.index == nil {
		m.index = make(map[core.Mapping]int32)
	}
	m.index[id] = at
	return at
}

// write starts a truth record about a mapping.
func (m *memory) write(kind core.RecordKind, mp *mapping) *core.Record {
	r := m.world.truth(kind, nil)
	r.Instance, r.Incarnation, r.A, r.B = mp.owner, mp.incarnation, uint64(mp.id), mp.bytes
	return r
}

// open begins to open what an instance exported. The simulated exports of one
// registration lie in one allocation.
func (m *memory) open(o *core.OpenOrder) {
	at := m.place(o.Mapping)
	a := int32(-1)
	if len(o.Exports) > 0 {
		a = m.byHandle(o.Exports[0].Handle)
	}
	mp := &m.mappings[at]
	*mp = mapping{id: o.Mapping, owner: o.Owner, incarnation: o.Incarnation, allocation: a, state: mappingOpening}
	if a >= 0 {
		mp.bytes = m.allocations[a].bytes
	}
	op := m.begin(operationOpen, o.Op, at, m.actorOf(a), m.world.plan.OpenTime, openTime)
	switch {
	case op.failure != core.NoFailure:
	case a < 0: // an owner that is gone exports nothing, and neither does a forged handle
		op.failure = core.FailOpen
	case m.world.processes[m.allocations[a].worker+1].life != m.allocations[a].life, !m.allocations[a].exportedAs(o):
		op.failure = core.FailOpen
	case m.room != 0 && m.charged+mp.bytes > m.room:
		op.failure = core.FailOutOfMemory
		m.world.struckMemory()
	default:
		if m.allocations[a].open > 0 {
			m.write(core.MappingReopened, mp).B = uint64(a)
			m.world.emit()
		}
		m.allocations[a].open++
		m.charged += mp.bytes
	}
}

// keepClosed is how many later mappings a closed one is remembered for, so
// that closing it twice is still seen.
const keepClosed = 1024

// close begins to close a mapping.
func (m *memory) close(o *core.CloseOrder) {
	at := m.find(o.Mapping)
	if at < 0 {
		m.write(core.MappingUnknown, &mapping{id: o.Mapping, owner: o.Owner, incarnation: o.Incarnation})
		m.world.emit()
		m.begin(operationClose, o.Op, -1, 0, faults.Span{}, closeTime).failure = core.FailClose
		return
	}
	mp := &m.mappings[at]
	if mp.state != mappingOpen {
		m.write(core.MappingClosedTwice, mp)
		m.world.emit()
		m.begin(operationClose, o.Op, -1, 0, faults.Span{}, closeTime).failure = core.FailClose
		return
	}
	mp.state = mappingClosing
	m.write(core.MappingClosing, mp)
	m.world.emit()
	if mp.copies > 0 {
		m.write(core.CopyTouchedRelease, mp).B = uint64(o.Op)
		m.world.emit()
	}
	if op := m.begin(operationClose, o.Op, at, m.actorOf(mp.allocation), m.world.plan.CloseTime, closeTime); op.hung {
		m.write(core.MappingHung, mp)
		m.world.emit()
	}
}

// copy begins to copy chunks between a mapping and the store.
func (m *memory) copy(o *core.CopyOrder) {
	at := m.find(o.Mapping)
	actor := 0
	if at >= 0 {
		mp := &m.mappings[at]
		actor = m.actorOf(mp.allocation)
		if mp.state != mappingOpen {
			m.write(core.CopyTouchedRelease, mp).B = uint64(o.Op)
			m.world.emit()
		}
		mp.copies++
		if mp.allocation >= 0 {
			if what, wrong := m.misfit(o, &m.allocations[mp.allocation]); wrong {
				m.write(core.CopyMisfit, mp).B = what
				m.world.emit()
			}
		}
	} else {
		m.write(core.MappingUnknown, &mapping{id: o.Mapping, owner: o.Owner, incarnation: o.Incarnation})
		m.world.emit()
	}
	op := m.begin(operationCopy, o.Op, at, actor, m.world.plan.CopyTime, copyTime)
	op.in = o.Direction == core.CopyIn
	op.chunks = append(op.chunks[:0], o.Chunks...)
	op.blocks = append(op.blocks[:0], o.Blocks...)
	if at < 0 {
		op.failure = core.FailCopy
	}
}

// end is a memory operation ending: its effect on memory is real at once, the
// server's process learns of it when it runs.
func (m *memory) end(e event) bool {
	p := &m.world.processes[0]
	if e.who == 1 { // the effect is done, only the notice waited for the process
		return m.notify(p, e)
	}
	o := &m.operations[uint32(e.what)]
	if o.gen != uint32(e.what>>32) {
		return false
	}
	m.effect(o)
	if p.state == paused {
		e.who = 1
		p.held = append(p.held, e)
		return true
	}
	return m.notify(p, e)
}

// effect is what an operation does to memory.
func (m *memory) effect(o *operation) {
	var mp *mapping
	if o.mapping >= 0 {
		mp = &m.mappings[o.mapping]
	}
	switch o.kind {
	case operationOpen:
		if o.failure != core.NoFailure {
			mp.state = mappingClosed
			m.closed = append(m.closed, o.mapping)
			return
		}
		mp.state = mappingOpen
		m.write(core.MappingOpened, mp)
		m.world.emit()
	case operationClose:
		if mp == nil {
			return
		}
		if o.failure != core.NoFailure {
			mp.state = mappingOpen // a failed close gives nothing back
			return
		}
		mp.state = mappingClosed
		m.closed = append(m.closed, o.mapping)
		m.charged -= mp.bytes
		m.allocations[mp.allocation].open--
		m.write(core.MappingClosed, mp)
		m.world.emit()
	case operationCopy:
		if mp == nil {
			return
		}
		mp.copies--
		if o.failure == core.NoFailure {
			m.move(o, &m.allocations[mp.allocation])
		}
	}
}

// move carries the blocks' tags. A chunk of several groups is several parts of
// one slot, one behind the other.
func (m *memory) move(o *operation, a *allocation) {
	behind := 0 // tags of the slot that earlier parts of the chunk took
	for i := range o.chunks {
		c := &o.chunks[i]
		if i == 0 || o.chunks[i-1].Slot != c.Slot {
			behind = 0
		}
		for int(c.Slot) >= len(m.slots) {
			m.slots = extended(m.slots)
			m.slots[len(m.slots)-1] = m.slots[len(m.slots)-1][:0]
		}
		slot := &m.slots[c.Slot]
		if !o.in {
			*slot = (*slot)[:behind]
		}
		for j, b := range o.blocks[c.First : c.First+c.Count] {
			at := behind + j
			tag := a.tag(int(c.Group), b)
			switch {
			case tag == nil: // no such block: told of as a misfit
			case !o.in:
				*slot = append(*slot, *tag)
			case j >= int(c.Skip) && at < len(*slot):
				*tag = (*slot)[at]
			}
		}
		behind += int(c.Count)
	}
}

// notify tells the server's process.
func (m *memory) notify(p *process, e event) bool {
	if p.state == absent {
		return false
	}
	o := m.ended(e.what)
	if o == nil {
		return false
	}
	in := &m.world.input
	*in = core.Input{Op: o.op, Failure: o.failure}
	switch o.kind {
	case operationOpen:
		in.Kind = core.InputOpened
		if o.failure == core.NoFailure {
			in.Bytes = m.mappings[o.mapping].bytes
		}
	case operationClose:
		in.Kind = core.InputReleased
	case operationCopy:
		in.Kind = core.InputCopied
	}
	p.feed(in)
	return true
}

// addTrouble starts a fault on memory operations; step is the story's.
func (m *memory) addTrouble(t trouble) { m.troubles = append(m.troubles, t) }

// endTrouble ends the faults of a step.
func (m *memory) endTrouble(step int) {
	for i := range m.troubles {
		if m.troubles[i].step == step {
			m.troubles[i].left = 0
		}
	}
}
