package worker

import (
	"vigil/core"
)

// The table of pending requests: what was submitted and not yet reported.
//
// A slab of entries with a free list, three lists through it in the order of
// submission, of ending and of being held, and an index from the uid of the message on its
// way to its entry. The index is a ring with linear probing, keyed by the uid
// itself: uids count up, so they spread perfectly, and a request that is never
// answered costs the others nothing. A map would do as well, but makes garbage
// while it turns over.

const none int32 = -1 // no slot

// stage is what an entry waits for.
type stage uint8

const (
	stageNew      stage = iota // nothing yet: it is being added
	stageReady                 // nothing: it is to be reported
	stageHeld                  // word that its blocks are free: it was reported as held
	stageTransfer              // the reply to STORE or RETRIEVE
	stagePrepare               // the reply to PREPARE_*
	stageCommit                // the reply to COMMIT_*
)

type entry struct {
	request    core.RequestID
	uid        uint64    // of the message on its way
	blocks     []uint32  // retrieve: its blocks, to be called invalid
	tokens     []uint32  // engine-driven: the prefix, for the COMMIT
	start, end int       // engine-driven: the range
	due        core.Time // in active, with request-deadlines: when it is given up
	prev, next int32     // in active, ready or held; next alone in the free list
	stage      stage
	outcome    core.Outcome // stageReady
	store      bool
}

// list is a doubly linked list of slots.
type list struct{ head, tail int32 }

type table struct {
	entries []entry
	index   []int32 // slot+1, or 0; a power of two long
	tracked int     // entries in the index
	used    int     // entries in active, ready or held
	free    int32
	active  list // waiting for a reply, in the order of submission
	ready   list // to be reported, in the order of ending
	held    list // reported, and their blocks not free yet, in the same order (settle.go)
}

func (t *table) reset() {
	t.entries = t.entries[:0]
	clear(t.index)
	t.tracked, t.used, t.free = 0, 0, none
	t.active, t.ready, t.held = list{none, none}, list{none, none}, list{none, none}
}

func (t *table) count() int           { return t.used }
func (t *table) at(slot int32) *entry { return &t.entries[slot] }

// add makes an entry at the end of active. Its stage and its lists are the
// caller's to set; buffers of an earlier use are kept.
func (t *table) add(request core.RequestID, store bool) int32 {
	slot := t.free
	if slot != none {
		t.free = t.entries[slot].next
	} else {
		slot = int32(len(t.entries))
		if len(t.entries) < cap(t.entries) {
			t.entries = t.entries[:slot+1]
		} else {
			t.entries = append(t.entries, entry{})
		}
	}
	e := &t.entries[slot]
	*e = entry{request: request, store: store, blocks: e.blocks[:0], tokens: e.tokens[:0]}
	t.used++
	t.push(&t.active, slot)
	return slot
}

// settle moves an entry to the end of ready.
func (t *table) settle(slot int32, outcome core.Outcome) {
	t.unlink(t.listOf(slot), slot)
	e := &t.entries[slot]
	e.stage, e.outcome = stageReady, outcome
	t.push(&t.ready, slot)
}

// hold moves an entry that was reported as held from ready to held.
func (t *table) hold(slot int32) {
	t.unlink(&t.ready, slot)
	t.entries[slot].stage = stageHeld
	t.push(&t.held, slot)
}

// listOf is the list that an entry is in.
func (t *table) listOf(slot int32) *list {
	switch t.entries[slot].stage {
	case stageReady:
		return &t.ready
	case stageHeld:
		return &t.held
	}
	return &t.active
}

// release takes an entry that was reported out of the table.
func (t *table) release(slot int32) {
	e := &t.entries[slot]
	t.unlink(t.listOf(slot), slot)
	t.used--
	e.next = t.free
	t.free = slot
}

func (t *table) push(l *list, slot int32) {
	e := &t.entries[slot]
	e.prev, e.next = l.tail, none
	if l.tail == none {
		l.head = slot
	} else {
		t.entries[l.tail].next = slot
	}
	l.tail = slot
}

func (t *table) unlink(l *list, slot int32) {
	e := &t.entries[slot]
	if e.prev == none {
		l.head = e.next
	} else {
		t.entries[e.prev].next = e.next
	}
	if e.next == none {
		l.tail = e.prev
	} else {
		t.entries[e.next].prev = e.prev
	}
}

// track remembers that the entry waits for the reply to uid.
func (t *table) track(slot int32, uid uint64) {
	if 2*(t.tracked+1) > len(t.index) {
		t.grow()
	}
	t.entries[slot].uid = uid
	t.tracked++
	t.place(slot)
}

func (t *table) place(slot int32) {
	mask := uint64(len(t.index) - 1)
	i := t.entries[slot].uid & mask
	for t.index[i] != 0 {
		i = (i + 1) & mask
	}
	t.index[i] = slot + 1
}

// grow doubles the index.
func (t *table) grow() {
	old := t.index
	t.index = make([]int32, max(8, 2*len(old)))
	for _, s := range old {
		if s != 0 {
			t.place(s - 1)
		}
	}
}

// find returns the entry that waits for the reply to uid, or none.
func (t *table) find(uid uint64) int32 {
	if i, ok := t.position(uid); ok {
		return t.index[i] - 1
	}
	return none
}

func (t *table) position(uid uint64) (uint64, bool) {
	if t.tracked == 0 {
		return 0, false
	}
	mask := uint64(len(t.index) - 1)
	for i := uid & mask; t.index[i] != 0; i = (i + 1) & mask {
		if t.entries[t.index[i]-1].uid == uid {
			return i, true
		}
	}
	return 0, false
}

// forget stops waiting for the entry's reply. What follows in the ring moves
// up, so that no search ends early and no mark is left behind.
func (t *table) forget(slot int32) {
	hole, ok := t.position(t.entries[slot].uid)
	if !ok {
		return
	}
	mask := uint64(len(t.index) - 1)
	for i := (hole + 1) & mask; t.index[i] != 0; i = (i + 1) & mask {
		home := t.entries[t.index[i]-1].uid & mask
		if (i-home)&mask >= (i-hole)&mask {
			t.index[hole] = t.index[i]
			hole = i
		}
	}
	t.index[hole] = 0
	t.tracked--
}
