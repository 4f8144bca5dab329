package hostshm

import (
	"runtime"
	"sync"

	"vigil/core"
)

// Why this file: the bytes. A job is a copy with everything that it needs,
// kept and used again, since a busy server copies thousands of times a second.

type job struct {
	op     core.Op
	owner  core.InstanceID
	way    core.Direction
	chunks []core.ChunkCopy
	blocks []uint32
	slots  [][]byte // of the chunks
	mp     *mapping // nil where the copy cannot begin
	fail   core.Failure
	bytes  uint64
}

// Copy begins to copy chunks between a mapping and the store. FailCopy: no
// such open mapping, a slot too small, a segment that became shorter.
// FailStale: a mapping of another owner or incarnation. FailBadBlocks: a block
// or group that the mapping does not have. A copy out that fails may have
// written part of its slots, a copy in part of its blocks.
func (m *Memory) Copy(o *core.CopyOrder) {
	j := m.jobs.Get().(*job)
	j.op, j.owner, j.way = o.Op, o.Owner, o.Direction
	j.chunks = append(j.chunks[:0], o.Chunks...)
	j.blocks = append(j.blocks[:0], o.Blocks...)
	j.slots = j.slots[:0]
	for i := range o.Chunks {
		if i > 0 && o.Chunks[i].Slot == o.Chunks[i-1].Slot {
			j.slots = append(j.slots, j.slots[i-1])
		} else {
			j.slots = append(j.slots, m.slots.Slot(o.Chunks[i].Slot))
		}
	}
	j.mp, j.fail, j.bytes = nil, core.NoFailure, 0
	m.mu.Lock()
	switch mp := m.mappings[o.Mapping]; {
	case mp == nil:
		j.fail = core.FailCopy
	case mp.owner != o.Owner || mp.incarnation != o.Incarnation:
		j.fail = core.FailStale
	case mp.state != open:
		j.fail = core.FailCopy
		m.counts.overlaps.Add(1) // the core asked for what NO-UAF forbids
	default:
		mp.copies.Add(1)
		j.mp = mp
	}
	m.mu.Unlock()
	var copies *sync.WaitGroup
	var trouble Rule
	if j.mp != nil {
		copies, trouble = &j.mp.copies, m.trouble(Copy, o.Owner)
	}
	m.begin(Copy, copies, func() core.Input { return m.copy(j, trouble) })
}

func (m *Memory) copy(j *job, trouble Rule) core.Input {
	in := core.Input{Kind: core.InputCopied, Op: j.op, Failure: j.fail}
	if j.mp != nil {
		fail, stuck := trouble.Suffer(m.stop)
		if fail == core.NoFailure && !stuck {
			whole := guarded(j.mp.contains, func() { fail = j.move() })
			if !whole {
				fail = core.FailCopy
				m.counts.faults.Add(1)
				m.log.Warn("hostshm: a segment became shorter in mid-copy", "instance", j.owner)
			}
		}
		if stuck {
			return core.Input{}
		}
		in.Failure = fail
	}
	if in.Failure == core.NoFailure {
		m.counts.copied.Add(1)
		m.counts.bytes.Add(j.bytes)
	}
	j.mp = nil
	clear(j.slots)
	m.jobs.Put(j)
	return in
}

func (mp *mapping) contains(address uintptr) bool {
	for i := range mp.segments {
		if mp.segments[i].contains(address) {
			return true
		}
	}
	return false
}

// yieldBytes is how much a copy moves before it lets others run. Left alone
// the runtime would let it run for 10 ms, on as many processors as there are
// copies, and pings would wait for it.
const yieldBytes = 512 << 10

// move checks everything first, so that what can be known to fail moves
// nothing, and then moves.
func (j *job) move() core.Failure {
	mp := j.mp
	checked := -1
	for i := range j.chunks {
		c := &j.chunks[i]
		if int(c.Group) >= len(mp.groups) || uint64(c.First)+uint64(c.Count) > uint64(len(j.blocks)) {
			return core.FailBadBlocks
		}
		g := &mp.groups[c.Group]
		if !g.Holds(j.blocks[c.First : c.First+c.Count]) {
			return core.FailBadBlocks
		}
		if int(c.Group) == checked {
			continue // the same segments as the chunk before
		}
		checked = int(c.Group)
		for _, s := range g.Places {
			if !mp.segments[s].whole() {
				return core.FailCopy
			}
		}
	}
	at, rested := uint64(0), uint64(0)
	for i := range j.chunks {
		if j.bytes-rested >= yieldBytes {
			runtime.Gosched()
			rested = j.bytes
		}
		c := &j.chunks[i]
		if i == 0 || c.Slot != j.chunks[i-1].Slot {
			at = 0 // a slot's groups follow each other
		}
		next, fail := move(&mp.groups[c.Group], mp.segments, j.slots[i], at, j.blocks[c.First:c.First+c.Count], int(c.Skip), j.way)
		if fail != core.NoFailure {
			return fail
		}
		j.bytes += next - at
		at = next
	}
	return core.NoFailure
}
