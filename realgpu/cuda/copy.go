package cuda

import (
	"sync"

	"vigil/core"
	"vigil/realgpu"
)

// Why this file: the bytes. A copy is put on the stream of a lane piece by
// piece: straight between the device and the slot where the slot's memory is
// pinned (pins.go), and through two stages of pinned memory where it is not,
// one of which the device fills while the other is emptied.

type job struct {
	op     core.Op
	owner  core.InstanceID
	way    core.Direction
	chunks []core.ChunkCopy
	blocks []uint32
	slots  [][]byte // of the chunks
	pinned []bool   // whether each lies in pinned memory
	mp     *mapping // nil where the copy cannot begin
	fail   core.Failure
	bytes  uint64
}

// Copy begins to copy chunks between a mapping and the store. FailCopy: no
// such open mapping, a slot too small, a device that is isolated or refuses.
// FailStale: a mapping of another owner or incarnation. FailBadBlocks: a block
// or group that the mapping does not have. A copy out that fails may have
// written part of its slots, a copy in part of its blocks; the device has
// finished with both when the input comes.
func (m *Memory) Copy(o *core.CopyOrder) {
	j := m.jobs.Get().(*job)
	j.op, j.owner, j.way = o.Op, o.Owner, o.Direction
	j.chunks = append(j.chunks[:0], o.Chunks...)
	j.blocks = append(j.blocks[:0], o.Blocks...)
	j.slots, j.pinned = j.slots[:0], j.pinned[:0]
	for i := range o.Chunks {
		if i > 0 && o.Chunks[i].Slot == o.Chunks[i-1].Slot {
			j.slots, j.pinned = append(j.slots, j.slots[i-1]), append(j.pinned, j.pinned[i-1])
			continue
		}
		slot := m.slots.Slot(o.Chunks[i].Slot)
		j.slots, j.pinned = append(j.slots, slot), append(j.pinned, m.pins.holds(slot))
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
	var trouble realgpu.Rule
	if j.mp != nil {
		copies, trouble = &j.mp.copies, m.hooks.Strike(realgpu.Copy, o.Owner)
	}
	m.begin(realgpu.Copy, copies, func() core.Input { return m.copy(j, trouble) })
}

func (m *Memory) copy(j *job, trouble realgpu.Rule) core.Input {
	in := core.Input{Kind: core.InputCopied, Op: j.op, Failure: j.fail}
	if j.mp != nil {
		fail, stuck := trouble.Suffer(m.stop)
		if stuck {
			return core.Input{}
		}
		if fail == core.NoFailure {
			fail = j.check()
		}
		for _, v := range j.mp.devices {
			if fail != core.NoFailure {
				break
			}
			err := v.copies.call(func(w *lane) error { return j.move(w) })
			if fail = failureOf(err, core.FailCopy); err == errSlotShort {
				break
			}
			if err != nil {
				fail = core.FailCopy
				m.counts.faults.Add(1)
				m.log.Warn("cuda: a copy failed", "instance", j.owner, "error", err)
			}
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

// check finds what can be known to fail, so that it moves nothing.
func (j *job) check() core.Failure {
	for i := range j.chunks {
		c := &j.chunks[i]
		if int(c.Group) >= len(j.mp.groups) || uint64(c.First)+uint64(c.Count) > uint64(len(j.blocks)) {
			return core.FailBadBlocks
		}
		if !j.mp.groups[c.Group].Holds(j.blocks[c.First : c.First+c.Count]) {
			return core.FailBadBlocks
		}
	}
	return core.NoFailure
}

// move carries everything that lies on the lane's device. It returns only when
// the device has finished with the slots, whatever happened: a copy that is
// put on a stream cannot be taken back.
func (j *job) move(w *lane) (err error) {
	v := w.device
	if err := v.usable(); err != nil {
		return err
	}
	defer func() {
		// Also after an error: what was put on the stream before it goes on.
		if e := w.settle(j.way); err == nil {
			err = e
		}
	}()
	at := uint64(0)
	for i := range j.chunks {
		c := &j.chunks[i]
		if i == 0 || c.Slot != j.chunks[i-1].Slot {
			at = 0 // a slot's groups follow each other
		}
		slot := j.slots[i]
		next, fits := j.mp.groups[c.Group].Walk(uint64(len(slot)), at, j.blocks[c.First:c.First+c.Count], int(c.Skip), func(place int, offset, from, n uint64) {
			u := &j.mp.uses[place]
			if err != nil || u.memory.device != v {
				return
			}
			err = w.carry(u.at+offset, slot[from:from+n], j.way, j.pinned[i])
			j.bytes += n
		})
		if err == nil && !fits {
			err = errSlotShort
		}
		if err != nil {
			return err
		}
		at = next
	}
	return nil
}
