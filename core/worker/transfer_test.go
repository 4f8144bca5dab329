package worker

import (
	"slices"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

func TestAStoreEndsWithItsReplyAndIsReportedOnce(t *testing.T) {
	d := registered(t)
	d.store(41)
	m := d.last(wire.Store)
	if string(m.Key.RequestID) != "41" || m.Instance != d.w.Instance() || len(m.Key.Chunks) != 2 ||
		!slices.Equal(m.Blocks, []uint32{1, 2}) || !slices.Equal(m.BlockEnds, []int{2}) {
		t.Fatalf("the server read %+v", m.Request)
	}
	if r := d.saw(core.Submitted)[0]; r.A != 41 || r.B != 2 || !r.Flag {
		t.Fatalf("submitted: %+v", r)
	}
	if len(d.finished()) != 0 || d.w.Pending() != 1 {
		t.Fatal("reported before its reply")
	}
	d.answer(m, wire.Reply{OK: true, Data: []byte{}})
	if d.wakes() != 1 {
		t.Fatal("nobody woke the engine")
	}
	told := d.finished()
	if len(told) != 1 || !told[0].Store {
		t.Fatalf("told %v", told)
	}
	d.told(told[0], 41, core.OutcomeStored)
	if len(d.finished()) != 0 || d.w.Pending() != 0 {
		t.Fatal("reported twice, or left behind")
	}
}

func TestARetrieveLoadsOrMisses(t *testing.T) {
	d := registered(t)
	d.call(core.Call{Kind: core.CallRetrieve, Request: 5, Tokens: tokens, Start: 16, End: 48, Skip: 8, Blocks: []uint32{3, 4}})
	if m := d.last(wire.Retrieve); m.Skip != 8 || m.Key.Start != 16 || m.Key.End != 48 {
		t.Fatalf("the server read %+v", m.Request)
	}
	d.answer(d.last(wire.Retrieve), wire.Reply{OK: true, Data: []byte{}})
	d.told(d.finished()[0], 5, core.OutcomeLoaded)
	d.retrieve(6, 9, 10)
	d.answer(d.last(wire.Retrieve), wire.Reply{Data: []byte{}})
	d.told(d.finished()[0], 6, core.OutcomeMissed, 9, 10)
	r := d.saw(core.RequestResolved)
	if !r[0].Flag || r[0].Failure != core.NoFailure || r[1].Flag || r[1].Failure == core.NoFailure {
		t.Fatalf("the verdicts in the records: %+v", r)
	}
}

// A store that the server declined is over all the same: whether it was kept
// is promised to nobody.
func TestADeclinedStoreIsStillOver(t *testing.T) {
	d := registered(t)
	d.store(1)
	d.answer(d.last(wire.Store), wire.Reply{Data: []byte{}})
	d.told(d.finished()[0], 1, core.OutcomeStored)
	if d.saw(core.RequestResolved)[0].Flag {
		t.Fatal("the record hides the verdict")
	}
}

// Replies come in any order and are told apart by their uid.
func TestRepliesMayOvertakeEachOther(t *testing.T) {
	d := registered(t)
	for id := core.RequestID(1); id <= 40; id++ {
		d.retrieve(id, uint32(id))
	}
	for id := core.RequestID(40); id >= 1; id-- {
		m := d.sent[slices.IndexFunc(d.sent, func(m message) bool {
			return m.Type == wire.Retrieve && len(m.Blocks) == 1 && m.Blocks[0] == uint32(id)
		})]
		d.answer(m, wire.Reply{OK: id%2 == 0, Data: []byte{}})
	}
	told := d.finished()
	if len(told) != 40 {
		t.Fatalf("%d told", len(told))
	}
	for i, tell := range told {
		id := core.RequestID(40 - i)
		if id%2 == 0 {
			d.told(tell, id, core.OutcomeLoaded)
		} else {
			d.told(tell, id, core.OutcomeMissed, uint32(id))
		}
	}
}

// One knock until the engine asks.
func TestTheEngineIsWokenOncePerQuestion(t *testing.T) {
	d := registered(t)
	for i := range 3 {
		d.store(core.RequestID(i))
		d.answer(d.last(wire.Store), wire.Reply{OK: true, Data: []byte{}})
	}
	if d.wakes() != 1 {
		t.Fatalf("%d knocks", d.wakes())
	}
	d.finished()
	d.store(9)
	d.answer(d.last(wire.Store), wire.Reply{OK: true, Data: []byte{}})
	if d.wakes() != 2 {
		t.Fatal("no second knock")
	}
}

// Upstream: test_dropped_retrieve_reported_once_via_unhealthy_get_finished.
func TestADroppedRetrieveIsReportedOnceWhileUnhealthy(t *testing.T) {
	d := unhealthy(t)
	sent, wakes := len(d.sent), d.wakes()
	d.retrieve(7, 5, 6)
	if len(d.sent) != sent || d.wakes() != wakes+1 {
		t.Fatal("it was sent, or nobody woke the engine")
	}
	if r := d.saw(core.RequestDropped); len(r) != 1 || r[0].A != 7 || r[0].Flag || r[0].Failure != core.FailUnhealthy {
		t.Fatalf("dropped: %+v", r)
	}
	told := d.finished()
	if len(told) != 1 {
		t.Fatalf("told %d times", len(told))
	}
	d.told(told[0], 7, core.OutcomeDropped, 5, 6)
	if len(d.finished()) != 0 {
		t.Fatal("told twice")
	}
}

// Upstream: test_dropped_retrieve_reported_once_via_healthy_get_finished.
func TestADroppedRetrieveIsReportedOnceAfterRecovery(t *testing.T) {
	d := unhealthy(t)
	d.retrieve(7, 5, 6)
	d.recoverNow()
	told := d.finished()
	if len(told) != 1 {
		t.Fatalf("told %d times", len(told))
	}
	d.told(told[0], 7, core.OutcomeDropped, 5, 6)
	if len(d.finished()) != 0 {
		t.Fatal("told twice")
	}
}

// recoverNow brings an unhealthy worker back.
func (d *desk) recoverNow() {
	d.t.Helper()
	d.pass(10 * time.Second)
	d.answer(d.last(wire.Ping), yes)
	d.settle()
	d.answer(d.sent[len(d.sent)-1], wire.Reply{ShmName: []byte{}})
	d.settle()
	if !d.w.Healthy() {
		d.t.Fatal("no recovery")
	}
}

// A13: the very step in which health flips. Between the failed ping and the
// publish a retrieve is still sent; after it, it is dropped. Either way it is
// reported once.
func TestARetrieveAtTheVeryStepHealthFlips(t *testing.T) {
	for _, before := range []bool{true, false} {
		d := registered(t)
		d.store(1)
		d.settle()
		d.answer(d.last(wire.Store), wire.Reply{OK: true, Data: []byte{}})
		d.finished()
		if !d.fire(core.Never) || d.saw(core.PingFailed) == nil || !d.w.Healthy() {
			t.Fatal("the ping's failure and the publish must be two steps")
		}
		if before {
			d.retrieve(2, 5)
		}
		wakes := d.wakes()
		d.settle()
		if before && d.wakes() != wakes+1 {
			t.Fatal("the engine is not woken when the health is cleared with a request pending")
		}
		if !before {
			d.retrieve(2, 5)
		}
		told := d.finished()
		if len(told) != 1 {
			t.Fatalf("told %d times", len(told))
		}
		if before {
			d.told(told[0], 2, core.OutcomeFailed, 5)
			d.answer(d.last(wire.Retrieve), wire.Reply{OK: true, Data: []byte{}}) // late
		} else {
			d.told(told[0], 2, core.OutcomeDropped, 5)
		}
		d.recoverNow()
		if len(d.finished()) != 0 {
			t.Fatal("told again")
		}
	}
}

// A13, the other edge: between the recovery's end and the publish.
func TestARetrieveAtTheVeryStepHealthReturns(t *testing.T) {
	d := unhealthy(t)
	d.pass(10 * time.Second)
	d.answer(d.last(wire.Ping), yes)
	d.settle()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.retrieve(2, 5) // the context exists, the health is not set yet
	d.settle()
	d.retrieve(3, 6)
	if d.count(wire.Retrieve) != 1 {
		t.Fatal("exactly the second one must be sent")
	}
	told := d.finished()
	if len(told) != 1 {
		t.Fatalf("told %d", len(told))
	}
	d.told(told[0], 2, core.OutcomeDropped, 5)
}

// PROTOCOL 5.4: a store while unhealthy is dropped; and an engine that counts
// its requests hears of it, once.
func TestADroppedStoreIsReportedOnce(t *testing.T) {
	d := unhealthy(t)
	sent := len(d.sent)
	d.store(7)
	if len(d.sent) != sent {
		t.Fatal("sent")
	}
	told := d.finished()
	if len(told) != 1 || !told[0].Store {
		t.Fatalf("told %v", told)
	}
	d.told(told[0], 7, core.OutcomeDropped)
}

// PROTOCOL 5.4: while unhealthy everything pending is over at once, a
// retrieve's blocks are invalid, and the futures are forgotten.
func TestUnhealthyGetFinishedGivesUpOnAll(t *testing.T) {
	d := registered(t)
	d.store(1)
	d.retrieve(2, 5, 6)
	d.retrieve(3, 7)
	d.answer(d.last(wire.Retrieve), wire.Reply{OK: true, Data: []byte{}}) // resolved, never asked about
	late := d.last(wire.Store)
	d.pass(10 * time.Second)
	told := d.finished()
	if len(told) != 3 {
		t.Fatalf("told %v", told)
	}
	d.told(told[0], 3, core.OutcomeFailed, 7)
	d.told(told[1], 1, core.OutcomeFailed)
	d.told(told[2], 2, core.OutcomeFailed, 5, 6)
	from := len(d.records)
	d.answer(late, wire.Reply{OK: true, Data: []byte{}})
	d.story(from)
	if d.w.Pending() != 0 || len(d.finished()) != 0 {
		t.Fatal("something is left")
	}
}

// B7, a hole of the document: while healthy, a future that never resolves is
// never timed out.
func TestAHealthyWorkerWaitsForEver(t *testing.T) {
	d := registered(t)
	d.retrieve(2)
	for range 400 {
		d.settle()
		d.answer(d.last(wire.Ping), yes)
		d.pass(10 * time.Second)
	}
	if len(d.finished()) != 0 || d.w.Pending() != 1 {
		t.Fatal("the document's worker does not time a request out")
	}
}

// The bound on the books: what does not fit is dropped and reported at once.
func TestMoreThanTheBooksHoldIsDropped(t *testing.T) {
	d := registered(t)
	for i := range core.MaxPending {
		d.w.pending.track(d.w.pending.add(core.RequestID(i), true), uint64(1000+i))
	}
	d.retrieve(1<<40, 3)
	told := d.tells[len(d.tells)-1]
	d.told(told, 1<<40, core.OutcomeDropped, 3)
	if r := d.saw(core.RequestDropped); len(r) != 1 || r[0].Failure != core.FailQueueFull {
		t.Fatalf("dropped: %+v", r)
	}
	if d.w.Pending() != core.MaxPending || d.count(wire.Retrieve) != 0 {
		t.Fatal("it was taken in")
	}
}

// A call whose range lies outside its tokens is the engine's mistake and must
// end for it, not for the process.
func TestARangeOutsideItsTokensIsDropped(t *testing.T) {
	d := registered(t)
	for i, c := range []core.Call{{Start: -1, End: 4}, {Start: 8, End: 4}, {End: 65}} {
		c.Kind, c.Request, c.Tokens = core.CallRetrieve, core.RequestID(i), tokens
		d.call(c)
	}
	if told := d.finished(); len(told) != 3 || d.count(wire.Retrieve) != 0 {
		t.Fatalf("told %v", told)
	}
}

func TestBlocksAreCutIntoTheirGroups(t *testing.T) {
	d := newDesk(t)
	d.call(core.Call{Kind: core.CallRegister, Exports: exports(), Groups: []core.Group{{TokensPerBlock: 16}, {TokensPerBlock: 8}}})
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.retrieve(1, 1, 2, 3, 4, 5, 6)
	if got := d.last(wire.Retrieve).BlockEnds; !slices.Equal(got, []int{2, 6}) {
		t.Fatalf("cut at %v", got)
	}
	d.retrieve(2, 1, 2, 3, 4, 5) // does not add up: evenly, and the rest
	if got := d.last(wire.Retrieve).BlockEnds; !slices.Equal(got, []int{2, 5}) {
		t.Fatalf("cut at %v", got)
	}
}

func TestEngineDrivenStoreIsPrepareCopyCommit(t *testing.T) {
	d := registered(t, engineDriven)
	d.store(1)
	if d.count(wire.CommitStore) != 0 {
		t.Fatal("commit before prepare")
	}
	d.answer(d.last(wire.PrepareStore), wire.Reply{Slots: []wire.PoolSlot{{Offset: 64, Length: 8, Shape: []int64{1}, DType: []byte("float16")}}, Indices: []int64{0}})
	if len(d.finished()) != 0 {
		t.Fatal("over before the commit")
	}
	m := d.last(wire.CommitStore)
	if string(m.Key.RequestID) != "1" || m.Key.End != 32 || len(m.Key.Chunks) != 2 {
		t.Fatalf("the server read %+v", m.Request)
	}
	d.answer(m, yes)
	d.told(d.finished()[0], 1, core.OutcomeStored)
	if n := len(d.saw(core.RequestResolved)); n != 1 {
		t.Fatalf("resolved %d times", n)
	}
}

// Both lists empty: everything is stored already.
func TestEngineDrivenStoreWithoutSlotsSkipsTheCommit(t *testing.T) {
	d := registered(t, engineDriven)
	d.store(1)
	d.answer(d.last(wire.PrepareStore), wire.Reply{})
	d.told(d.finished()[0], 1, core.OutcomeStored)
	if d.count(wire.CommitStore) != 0 || !d.saw(core.RequestResolved)[0].Flag {
		t.Fatal("committed, or not said to have succeeded")
	}
}

func TestEngineDrivenRetrieve(t *testing.T) {
	d := registered(t, engineDriven)
	d.retrieve(1, 5)
	d.answer(d.last(wire.PrepareRetrieve), wire.Reply{Data: []byte{}})
	d.told(d.finished()[0], 1, core.OutcomeMissed, 5)
	d.retrieve(2, 6)
	d.answer(d.last(wire.PrepareRetrieve), wire.Reply{OK: true, Data: []byte{}})
	d.answer(d.last(wire.CommitRetrieve), yes)
	d.told(d.finished()[0], 2, core.OutcomeLoaded)
	if d.count(wire.CommitRetrieve) != 1 {
		t.Fatal("a miss was committed")
	}
}
