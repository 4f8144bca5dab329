package server

import (
	"slices"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// A register holds the main loop from its arrival to its insert; pings wait
// behind it like everything else, and are answered when it is over.
func TestASlowRegisterHoldsPings(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(2)
	w.holdOpens = true
	entered := w.now
	w.send(1, registerRequest(1, testModel))
	w.quiet(func() {
		w.after(20 * time.Second)
		w.ping(2)
		w.ping(1)
		w.send(9, wire.Request{Type: wire.GetChunkSize})
	})
	if l := w.s.Load(); l.Inbox != 3 || !l.MainHeld {
		t.Fatalf("%+v", l)
	}
	w.after(20 * time.Second)
	w.quiet(func() { w.endOpen(0, core.NoFailure) }) // the insert is a step of its own
	w.fire(core.TimerKey{Kind: core.TimerMainStep})
	if len(w.replies) != 5 || w.s.Load().Inbox != 0 {
		t.Fatalf("%d replies", len(w.replies))
	}
	if r := w.last(); r.Type != wire.GetChunkSize || r.Int != 32 || r.peer != 9 {
		t.Fatalf("%+v", r)
	}
	// The document stamps a ping when it is run, a new context when its register arrived.
	if v := w.context(core.ServerDriven, 2); v.LastSeen != w.now {
		t.Fatalf("%+v", v)
	}
	stamps := w.records(core.Stamped, 1)
	if core.Time(stamps[0].A) != entered || core.StampCause(stamps[0].B) != core.StampRegister || len(stamps) != 2 {
		t.Fatalf("%+v", stamps)
	}
}

// With the stamp of arrival the ping counts while it waits (B11).
func TestStampOnArrivalCountsAPingThatWaits(t *testing.T) {
	cfg := testConfig()
	cfg.Protections.StampOnArrival = true
	w := newWorld(t, cfg)
	w.register(2)
	w.holdOpens = true
	w.send(1, registerRequest(1, testModel))
	w.after(20 * time.Second)
	arrived := w.now - second
	w.sendAt(2, pingRequest(2), arrived)
	if v := w.context(core.ServerDriven, 2); v.LastSeen != arrived || !v.Latched {
		t.Fatalf("%+v", v)
	}
	w.sendAt(1, pingRequest(1), w.now) // its own context is still being built
	built := w.now
	w.after(time.Second)
	w.endOpen(0, core.NoFailure)
	w.until(w.now)
	if v := w.context(core.ServerDriven, 2); v.LastSeen != arrived {
		t.Fatalf("running the ping moved its stamp: %+v", v)
	}
	if v := w.context(core.ServerDriven, 1); v.LastSeen != built || !v.Latched {
		t.Fatalf("%+v", v)
	}
	w.count(core.Stamped, 2, 2)
	w.sendAt(2, pingRequest(2), arrived-5*second) // late news of an early ping
	if v := w.context(core.ServerDriven, 2); v.LastSeen != arrived {
		t.Fatalf("a stamp moved back: %+v", v)
	}
}

func TestAnOpenThatFailsIsSilenceAndFreesTheMainLoop(t *testing.T) {
	w := newWorld(t, testConfig())
	w.holdOpens = true
	w.send(1, registerRequest(1, testModel))
	w.send(2, wire.Request{Type: wire.Noop})
	w.endOpen(0, core.FailOutOfMemory)
	w.gone(core.ServerDriven, 1)
	if len(w.replies) != 1 || string(w.last().Text) != "OK" {
		t.Fatalf("%+v", w.replies)
	}
	if r := w.one(core.Refused, 1); r.Failure != core.FailOutOfMemory || r.Flag || r.B != 1 {
		t.Fatalf("%+v", r)
	}
	w.send(1, registerRequest(1, testModel))
	w.endOpen(0, core.NoFailure)
	w.until(w.now)
	if v := w.context(core.ServerDriven, 1); v.Incarnation != 2 {
		t.Fatalf("a name of an incarnation was used twice: %+v", v)
	}
}

// NORMAL has one slot: a wait for a look-up that does not come holds it, and
// pings wait behind it until its time is up (A14).
func TestAWaitHoldsThePoolAndPingsWaitBehindIt(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.quiet(func() {
		w.send(5, wire.Request{Type: wire.WaitPrefetchStatus, RequestID: []byte("nobody"), Timeout: 30 * time.Second})
		w.ping(1)
		w.after(30*time.Second - 1)
	})
	if l := w.s.Load(); l.NormalBusy != 1 || l.NormalWait != 1 {
		t.Fatalf("%+v", l)
	}
	w.after(1)
	if len(w.replies) != 3 {
		t.Fatalf("%d replies", len(w.replies))
	}
	if r := w.replies[1]; !r.Nil || r.Type != wire.WaitPrefetchStatus {
		t.Fatalf("%+v", r)
	}
	if r := w.last(); !r.OK || r.Type != wire.Ping {
		t.Fatalf("%+v", r)
	}
	if v := w.context(core.ServerDriven, 1); v.LastSeen != w.now {
		t.Fatalf("the stamp is of when the pool got round to it: %+v", v)
	}
	// SYNC requests do not care for the pool.
	w.send(5, wire.Request{Type: wire.WaitPrefetchStatus, RequestID: []byte("nobody"), Timeout: time.Second})
	w.send(6, wire.Request{Type: wire.GetExperimental})
	if r := w.last(); r.Type != wire.GetExperimental || r.Nil {
		t.Fatalf("%+v", r)
	}
}

func TestAWaitEndsWhenItsLookupComes(t *testing.T) {
	cfg := testConfig()
	cfg.NormalSlots = 2
	w := newWorld(t, cfg)
	w.register(1)
	w.store(1, 1, 3)
	w.send(5, wire.Request{Type: wire.WaitPrefetchStatus, RequestID: []byte("r1"), Timeout: 30 * time.Second})
	w.send(6, lookupRequest("r1", 1, 4))
	if r := w.replies[len(w.replies)-2]; r.Type != wire.WaitPrefetchStatus || r.Int != 3 || r.Nil || r.peer != 5 {
		t.Fatalf("%+v", r)
	}
	if w.armed(core.TimerJob) || w.s.Load().NormalBusy != 0 {
		t.Fatal("the wait left something behind")
	}
	// Known already: no wait.
	w.send(5, wire.Request{Type: wire.WaitPrefetchStatus, RequestID: []byte("r1"), Timeout: 30 * time.Second})
	if r := w.last(); r.Int != 3 || r.Nil {
		t.Fatalf("%+v", r)
	}
	w.send(5, wire.Request{Type: wire.QueryPrefetchStatus, RequestID: []byte("r2")})
	if !w.last().Nil {
		t.Fatal("an unknown request has no status")
	}
}

func TestALookupWithoutALayoutFindsNothingAndEnds(t *testing.T) {
	w := newWorld(t, testConfig())
	w.send(6, lookupRequest("r1", 1, 4))
	w.send(6, wire.Request{Type: wire.QueryPrefetchStatus, RequestID: []byte("r1")})
	if r := w.last(); r.Nil || r.Int != 0 {
		t.Fatalf("%+v", r)
	}
}

func TestStoreThenRetrieve(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.holdCopies = true
	w.retrieve(1, 1, 2)
	if r := w.last(); r.OK || string(r.Data) != "event" {
		t.Fatalf("a miss: %+v", r)
	}
	w.quiet(func() { w.store(1, 1, 2) })
	o := w.copies[0]
	if o.Direction != core.CopyOut || o.Incarnation != 1 || len(o.Chunks) != 2 || !slices.Equal(o.Blocks, []uint32{0, 1, 2, 3}) {
		t.Fatalf("%+v", o)
	}
	if c := o.Chunks[1]; c.First != 2 || c.Count != 2 {
		t.Fatalf("%+v", c)
	}
	w.retrieve(1, 1, 2) // waits in the lane
	if w.s.Load().LanesWait != 1 {
		t.Fatal("the lane is not single file")
	}
	if _, ready, ok := w.s.ChunkState(chunksOf(keyOf(1, 2, ""))[0]); ready || !ok {
		t.Fatal("half written and readable")
	}
	w.endCopy(core.NoFailure)
	if r := w.last(); !r.OK || r.Type != wire.Store {
		t.Fatalf("%+v", r)
	}
	if len(w.copies) != 2 || w.copies[1].Direction != core.CopyIn {
		t.Fatalf("%+v", w.copies)
	}
	w.count(core.LockTaken, 0, 2)
	w.endCopy(core.NoFailure)
	w.count(core.LockReturned, 0, 2)
	if r := w.last(); !r.OK || r.Type != wire.Retrieve || string(r.Data) != "event" {
		t.Fatalf("%+v", r)
	}
	w.holdCopies = false
	w.store(1, 1, 2) // all there
	if r := w.last(); !r.OK || len(w.copies) != 2 {
		t.Fatalf("%+v", r)
	}
	if l := w.s.Load(); l.StoreBytes != 2*testChunkBytes || l.LanesBusy != 0 {
		t.Fatalf("%+v", l)
	}
}

func TestARetrieveSkipsWholeBlocks(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.store(1, 1, 2)
	r := transferRequest(wire.Retrieve, 1, 1, 2)
	r.Skip = 32 + 16 + 5
	w.send(1, r)
	c := w.copies[1].Chunks
	if c[0].Skip != 2 || c[1].Skip != 1 {
		t.Fatalf("%+v", c)
	}
}

func TestACopyThatFailsLeavesNothing(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.holdCopies = true
	w.store(1, 1, 2)
	w.endCopy(core.FailCopy)
	if r := w.last(); r.OK || w.s.Load().Chunks != 0 || w.s.Load().StoreBytes != 0 {
		t.Fatalf("%+v", r)
	}
	for _, r := range w.records(core.ChunkDropped, 0) {
		if r.Flag {
			t.Fatal("it was never ready")
		}
	}
	w.count(core.ChunkDropped, 0, 2)
}

func TestAFullStoreEvictsTheLeastRecentlyUsedThatNobodyReads(t *testing.T) {
	cfg := testConfig()
	cfg.L1Bytes = 3 * testChunkBytes
	w := newWorld(t, cfg)
	w.register(1)
	for prompt := uint32(1); prompt <= 3; prompt++ {
		w.store(1, prompt, 1)
	}
	w.retrieve(1, 1, 1)                  // now 2 is the oldest
	w.send(6, lookupRequest("r2", 2, 1)) // and is kept by a lock
	w.store(1, 4, 1)
	has := func(prompt uint32) bool {
		_, _, ok := w.s.ChunkState(chunksOf(keyOf(prompt, 1, ""))[0])
		return ok
	}
	if !has(1) || !has(2) || has(3) || !has(4) {
		t.Fatal("evicted the wrong one")
	}
	w.store(1, 5, 3) // only two may go
	if r := w.last(); !r.OK || w.s.Load().Chunks != 3 {
		t.Fatalf("%+v", r)
	}
	for _, id := range []string{"a", "b"} {
		w.send(6, lookupRequest(id, 5, 2))
	}
	w.store(1, 6, 1)
	if r := w.last(); r.OK {
		t.Fatal("stored where everything is locked")
	}
	if r := w.records(core.TransferEnded, 1); r[len(r)-1].Failure != core.FailNoSpace {
		t.Fatalf("%+v", r[len(r)-1])
	}
	w.send(6, wire.Request{Type: wire.Clear})
	if w.s.Load().Chunks != 3 {
		t.Fatal("CLEAR dropped what is read")
	}
	for _, id := range []string{"a", "b", "r2"} {
		w.send(6, wire.Request{Type: wire.EndSession, RequestID: []byte(id)})
	}
	w.send(6, wire.Request{Type: wire.Clear})
	if l := w.s.Load(); l.Chunks != 0 || l.StoreBytes != 0 || l.Locks != 0 {
		t.Fatalf("%+v", l)
	}
}

func TestARetrieveTakesOverTheLocksOfItsLookup(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.store(1, 1, 3)
	w.send(6, lookupRequest("r", 1, 3))
	w.count(core.LockTaken, 0, 3)
	w.retrieve(1, 1, 2) // same request id
	w.count(core.LockTaken, 0, 3)
	w.count(core.LockReturned, 0, 2)
	if w.s.Load().Locks != 1 {
		t.Fatal("the third is the session's still")
	}
	free := lookupRequest("r", 1, 3)
	free.Type = wire.FreeLookupLocks
	w.send(6, free)
	w.send(6, free) // twice is once
	w.count(core.LockReturned, 0, 3)
	w.send(6, wire.Request{Type: wire.EndSession, RequestID: []byte("r")})
	w.count(core.LockReturned, 0, 3)
}

func TestALookupLocksForEveryRankOrNone(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.store(1, 1, 2)
	other := transferRequest(wire.Store, 1, 1, 1)
	other.Key.Worker = 1
	w.send(1, other)
	r := lookupRequest("r", 1, 2)
	r.TPSize = 2
	w.send(6, r)
	w.send(6, wire.Request{Type: wire.QueryPrefetchLookupHits, RequestID: []byte("r")})
	if got := w.last(); got.Int != 1 || w.s.Load().Locks != 2 {
		t.Fatalf("%+v", got)
	}
}

func TestTransfersThatDoNotFitAreSilence(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	good := transferRequest(wire.Store, 1, 1, 2)
	for name, spoil := range map[string]func(r *wire.Request){
		"unknown":      func(r *wire.Request) { r.Instance = 2 },
		"too few":      func(r *wire.Request) { r.Blocks, r.BlockEnds = r.Blocks[:3], []int{3} },
		"too many":     func(r *wire.Request) { r.Blocks, r.BlockEnds = append(r.Blocks, 9), []int{5} },
		"out of range": func(r *wire.Request) { r.Blocks[3] = testBlocks },
		"two groups":   func(r *wire.Request) { r.BlockEnds = []int{2, 4} },
	} {
		r := good
		r.Blocks = slices.Clone(good.Blocks)
		spoil(&r)
		before := len(w.records(core.Refused, 0))
		w.quiet(func() { w.send(1, r) })
		if len(w.records(core.Refused, 0)) != before+1 {
			t.Fatalf("%s: not refused", name)
		}
		if len(w.copies) != 0 || w.s.Load().Chunks != 0 {
			t.Fatalf("%s: something was begun", name)
		}
	}
}

func TestEngineDrivenStoreAndRetrieve(t *testing.T) {
	w := newWorld(t, testConfig())
	w.registerEngine(1)
	key := keyOf(1, 2, "r")
	w.send(1, wire.Request{Type: wire.PrepareStore, Instance: 1, Key: key})
	r := w.last()
	const size = 2 * 2 * 32 * 64 * 2
	if len(r.Slots) != 2 || r.Slots[1].Offset != size || r.Slots[1].Length != size || !slices.Equal(r.Slots[0].Shape, []int64{2, 2, 32, 64}) {
		t.Fatalf("%+v", r)
	}
	w.send(1, wire.Request{Type: wire.PrepareRetrieve, Instance: 1, Key: key})
	if w.last().OK {
		t.Fatal("read before it was written")
	}
	w.send(1, wire.Request{Type: wire.CommitStore, Instance: 1, Key: key})
	if !w.last().OK {
		t.Fatal("not committed")
	}
	w.send(1, wire.Request{Type: wire.CommitStore, Instance: 1, Key: key})
	if w.last().OK {
		t.Fatal("committed twice")
	}
	w.send(1, wire.Request{Type: wire.PrepareStore, Instance: 1, Key: key})
	if r := w.last(); len(r.Slots) != 0 || r.Inline {
		t.Fatalf("all there: %+v", r)
	}
	w.send(1, wire.Request{Type: wire.PrepareRetrieve, Instance: 1, Key: key})
	if r := w.last(); !r.OK || len(r.Slots) != 2 {
		t.Fatalf("%+v", r)
	}
	w.count(core.LockTaken, 0, 2)
	w.send(1, wire.Request{Type: wire.CommitRetrieve, Instance: 1, Key: key})
	w.send(1, wire.Request{Type: wire.CommitRetrieve, Instance: 1, Key: key})
	w.count(core.LockReturned, 0, 2)
	// A server-driven reader cannot reach the pool: a miss, not somebody's bytes.
	w.register(2)
	w.retrieve(2, 1, 2)
	if w.last().OK {
		t.Fatal("read what it cannot reach")
	}
}

func TestOneWorkerCannotCommitWhatAnotherWrites(t *testing.T) {
	w := newWorld(t, testConfig())
	w.registerEngine(1)
	w.registerEngine(2)
	key := keyOf(1, 1, "r")
	w.send(1, wire.Request{Type: wire.PrepareStore, Instance: 1, Key: key})
	w.send(2, wire.Request{Type: wire.PrepareStore, Instance: 2, Key: key})
	if r := w.last(); len(r.Slots) != 0 {
		t.Fatalf("two writers of one chunk: %+v", r)
	}
	w.send(2, wire.Request{Type: wire.CommitStore, Instance: 2, Key: key})
	if _, ready, _ := w.s.ChunkState(chunksOf(key)[0]); ready || w.last().OK {
		t.Fatal("readable before its writer was done")
	}
	w.send(1, wire.Request{Type: wire.CommitStore, Instance: 1, Key: key})
	if !w.last().OK {
		t.Fatal("the writer could not commit")
	}
}

func TestThePoolsRoomIsUsedAgain(t *testing.T) {
	cfg := testConfig()
	cfg.PoolBytes = 3 * testChunkBytes // an engine-driven chunk is as large
	w := newWorld(t, cfg)
	w.register(9)
	w.store(9, 100, 1) // oldest of all, and of no use to the pool
	w.registerEngine(1)
	for prompt := uint32(1); prompt <= 10; prompt++ {
		for _, kind := range []wire.Type{wire.PrepareStore, wire.CommitStore} {
			w.send(1, wire.Request{Type: kind, Instance: 1, Key: keyOf(prompt, 2, "r")})
			if r := w.last(); kind == wire.PrepareStore && len(r.Slots) != 2 {
				t.Fatalf("prompt %d: %+v", prompt, r)
			}
		}
		if err := consistent(w.s); err != nil {
			t.Fatal(err)
		}
	}
	if _, ready, _ := w.s.ChunkState(chunksOf(keyOf(100, 1, ""))[0]); !ready {
		t.Fatal("evicted what gave the pool no room")
	}
}

func TestWhatNeverFitsThePoolEvictsNothing(t *testing.T) {
	cfg := testConfig()
	cfg.PoolBytes = testChunkBytes - 1 // an engine-driven chunk is larger
	w := newWorld(t, cfg)
	w.registerEngine(1)
	w.send(1, wire.Request{Type: wire.RegisterEngineDriven, Instance: 2, Model: []byte("small"), WorldSize: 1, BlockSize: 16, NumLayers: 1, HiddenDim: 1, DType: []byte("uint8")})
	small := keyOf(1, 1, "r")
	small.Model = []byte("small")
	for _, kind := range []wire.Type{wire.PrepareStore, wire.CommitStore} {
		w.send(2, wire.Request{Type: kind, Instance: 2, Key: small})
	}
	if !w.last().OK {
		t.Fatal("what fits was not stored")
	}
	w.send(1, wire.Request{Type: wire.PrepareStore, Instance: 1, Key: keyOf(2, 1, "r")})
	if r := w.last(); len(r.Slots) != 0 {
		t.Fatalf("room in a pool that is too small: %+v", r)
	}
	if w.s.store.live() != 1 {
		t.Fatal("evicted for what fits in no case")
	}
}

func TestWhatAnEngineDrivenWorkerLeavesPendingIsSwept(t *testing.T) {
	w := newWorld(t, testConfig())
	w.registerEngine(1)
	w.send(1, wire.Request{Type: wire.PrepareStore, Instance: 1, Key: keyOf(1, 1, "r")})
	w.send(1, wire.Request{Type: wire.CommitStore, Instance: 1, Key: keyOf(1, 1, "r")})
	w.send(1, wire.Request{Type: wire.PrepareRetrieve, Instance: 1, Key: keyOf(1, 1, "r")})
	w.send(1, wire.Request{Type: wire.PrepareStore, Instance: 1, Key: keyOf(2, 1, "r")})
	w.send(1, idRequest(wire.UnregisterEngineDriven, 1))
	w.count(core.LockReturned, 0, 1)
	// The document finishes the pending write (PROTOCOL, section 4.3).
	if _, ready, ok := w.s.ChunkState(chunksOf(keyOf(2, 1, "r"))[0]); !ready || !ok {
		t.Fatal("the pending write was not finished")
	}
	w.registerEngine(1)
	w.send(1, wire.Request{Type: wire.CommitStore, Instance: 1, Key: keyOf(2, 1, "r")})
	if w.last().OK {
		t.Fatal("the second incarnation committed the first one's write")
	}
}

// B5 under the document: a reap overlaps a re-register of the same id. The old
// incarnation is closed once and returns its own share; the fan-out then drops
// the new one's rope state, which is the hole.
func TestAReapThatOverlapsAReRegister(t *testing.T) {
	w := newWorld(t, testConfig())
	rope := wire.Request{Type: wire.RegisterRope, Instance: 1, HeadSize: 64}
	w.register(1)
	w.send(1, rope)
	w.ping(1)
	w.holdCloses = true
	w.until(w.now + 150*second)
	w.gone(core.ServerDriven, 1)
	w.send(1, rope)
	w.count(core.RegisterNoop, 1, 1) // the rope is still there
	w.register(1)
	if v := w.context(core.ServerDriven, 1); v.Incarnation == 1 {
		t.Fatalf("%+v", v)
	}
	if w.s.LayoutHolders(testModel, 1) != 2 {
		t.Fatal("both incarnations hold the layout until the close has returned")
	}
	w.until(w.now + 20*second)
	w.endClose(0, core.NoFailure)
	w.until(w.now)
	if r := w.one(core.CloseEnded, 1); r.Incarnation != 1 {
		t.Fatalf("%+v", r)
	}
	if r := w.one(core.LayoutReleased, 1); r.Incarnation != 1 || r.B != 1 || w.s.LayoutHolders(testModel, 1) != 1 {
		t.Fatalf("%+v", r)
	}
	w.context(core.ServerDriven, 1)
	w.one(core.DropFannedOut, 1)
	w.gone(core.RopeState, 1)
}

// The pops of a scan, each cleanup and the fan-out are steps of their own.
func TestTheGapsOfACycle(t *testing.T) {
	w := newWorld(t, testConfig())
	for id := core.InstanceID(1); id <= 2; id++ {
		w.register(id)
		w.ping(id)
	}
	w.holdCloses = true
	w.now += 200 * second
	w.fire(core.TimerKey{Kind: core.TimerScan})
	w.count(core.ContextRemoved, 0, 2)
	w.count(core.CloseBegan, 0, 0)
	step := core.TimerKey{Kind: core.TimerReaperStep}
	w.fire(step)
	w.count(core.CloseBegan, 0, 1)
	w.endClose(0, core.NoFailure)
	w.count(core.CloseBegan, 0, 1)
	w.fire(step)
	w.count(core.CloseBegan, 0, 2)
	w.endClose(0, core.NoFailure)
	w.count(core.DropFannedOut, 0, 0)
	w.fire(step)
	w.fire(step)
	w.count(core.DropFannedOut, 0, 2)
	w.count(core.ScanEnded, 0, 2) // the first scan, of the start, found nothing
}

// One close that fails takes its batch down with it, and the next scan runs
// (PROTOCOL, section 4.2; the hole of B18).
func TestACloseThatFailsEndsTheCycle(t *testing.T) {
	w := newWorld(t, testConfig())
	for id := core.InstanceID(1); id <= 3; id++ {
		w.register(id)
		w.ping(id)
	}
	w.registerEngine(4)
	w.ping(4)
	w.holdCloses = true
	w.until(w.now + 150*second)
	w.endClose(0, core.NoFailure)
	w.until(w.now)
	w.endClose(0, core.FailClose)
	w.until(w.now)
	w.count(core.CloseBegan, 0, 2)
	w.count(core.LayoutReleased, 0, 1)
	w.count(core.DropFannedOut, 0, 0)
	w.context(core.EngineDriven, 4)
	if n, bytes := w.s.Lost(); n != 2 || bytes != 2*testLayers*testBlocks*testBlockSize {
		t.Fatalf("%d lost, %d bytes", n, bytes)
	}
	w.until(w.now + 30*second)
	w.gone(core.EngineDriven, 4)
	w.one(core.DropFannedOut, 4)
}

// A close that never returns holds the reaper for good (the hole of B2), while
// everything else goes on.
func TestACloseThatHangsHoldsTheReaperOnly(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.ping(1)
	w.register(2)
	w.ping(2)
	w.holdCloses = true
	w.until(w.now + 150*second)
	began := len(w.records(core.ScanBegan, 0))
	w.register(3)
	w.ping(3)
	w.until(w.now + 1000*second)
	w.count(core.ScanBegan, 0, began)
	w.context(core.ServerDriven, 3)
	w.ping(3)
	if !w.last().OK {
		t.Fatal("no answer")
	}
	var stuck []ReleaseView
	w.s.Releases(func(v ReleaseView) bool { stuck = append(stuck, v); return true })
	if len(stuck) != 2 || !stuck[0].Closing || stuck[0].Instance != 1 || stuck[1].Closing || stuck[0].By != ByReaper {
		t.Fatalf("%+v", stuck)
	}
}

func TestAnUnregisterWhoseCloseFailsIsSilenceAndKeepsItsShare(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.holdCloses = true
	w.quiet(func() {
		w.send(1, idRequest(wire.UnregisterKVCache, 1))
		w.ping(1)
	})
	w.endClose(0, core.FailClose)
	if r := w.last(); r.Type != wire.Ping || len(w.replies) != 2 {
		t.Fatalf("%+v", r)
	}
	if w.s.LayoutHolders(testModel, 1) != 1 {
		t.Fatal("the share was released after a failed close")
	}
	w.gone(core.ServerDriven, 1)
}

// The reaper does not wait for a copy (B6's hole): the job keeps the mapping.
func TestAReapClosesUnderACopy(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.ping(1)
	w.holdCopies = true
	w.store(1, 1, 1)
	w.until(w.now + 200*second)
	w.one(core.CloseEnded, 1)
	w.endCopy(core.NoFailure)
	if r := w.last(); !r.OK || r.Type != wire.Store {
		t.Fatalf("%+v", r)
	}
	if r := w.one(core.TransferEnded, 1); r.Incarnation != 1 || !r.Flag {
		t.Fatalf("%+v", r)
	}
}

func TestStopEndsTheReaperFirstAndReleasesEverythingOfOurs(t *testing.T) { // A17
	w := newWorld(t, testConfig())
	w.register(1)
	w.ping(1)
	w.holdCloses = true
	w.until(w.now + 150*second)
	w.register(2)
	w.register(3)
	w.registerEngine(4)
	w.send(4, wire.Request{Type: wire.RegisterRope, Instance: 4, HeadSize: 64})
	w.holdOpens = true
	w.send(5, registerRequest(5, testModel))
	w.quiet(func() {
		w.ping(2) // waits in the inbox
		w.feed(core.Input{Kind: core.InputStop})
		w.ping(3)
		w.until(w.now + 2*second)
		w.endOpen(0, core.NoFailure)
		w.until(w.now)
		if len(w.records(core.CloseBegan, 0)) != 1 {
			t.Fatal("closed something before the reaper was done")
		}
		w.endClose(0, core.NoFailure)
		w.until(w.now)
	})
	for _, id := range []core.InstanceID{2, 3, 5} {
		if c := w.closes[0]; c.Owner != id || len(w.closes) != 1 {
			t.Fatalf("%+v, want %d", w.closes, id)
		}
		w.endClose(0, core.NoFailure)
	}
	if len(w.left) != 1 || w.left[0] != core.ExitOrderly {
		t.Fatalf("%v", w.left)
	}
	if r := w.one(core.ServerStopped, 0); r.A != 0 || r.B != 0 {
		t.Fatalf("%+v", r)
	}
	// The document's gap: an engine-driven context's share stays.
	w.one(core.StrategyRemoved, 4)
	w.count(core.LayoutReleased, 4, 0)
	w.one(core.RopeDropped, 4)
	for _, r := range w.records(core.Refused, 0) {
		if r.Failure != core.FailStopping || r.Flag {
			t.Fatalf("%+v", r)
		}
	}
	w.count(core.Refused, 0, 2)
	if len(w.timers) != 0 {
		t.Fatalf("timers left: %v", w.timers)
	}
	w.quiet(func() { w.ping(1) })
}

func TestStopIsBounded(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.ping(1)
	w.holdCloses = true
	w.until(w.now + 150*second) // the reaper hangs
	w.register(2)
	w.register(3)
	w.feed(core.Input{Kind: core.InputStop})
	w.after(core.JoinBound)
	if len(w.closes) != 2 || w.closes[1].Owner != 2 {
		t.Fatalf("%+v", w.closes)
	}
	w.after(core.JoinBound)
	if len(w.left) != 1 || w.left[0] != core.ExitBounded {
		t.Fatalf("%v", w.left)
	}
	if r := w.one(core.ServerStopped, 0); r.A != 3 || r.B != 3*testLayers*testBlocks*testBlockSize {
		t.Fatalf("%+v", r)
	}
}

// Everything that is malformed, unknown or unsupported is silence and a
// record, and the loop lives on (PROTOCOL, section 1.6).
func TestNothingStopsTheLoop(t *testing.T) {
	cfg := testConfig()
	cfg.EngineDriven, cfg.Blend = false, false
	w := newWorld(t, cfg)
	bad := []struct {
		frames [][]byte
		want   core.Failure
	}{
		{[][]byte{{0x00}}, core.FailShortMessage},
		{[][]byte{{0x00}, {0x16}}, core.FailPayloadCount},                        // PING of before liveness (A9)
		{[][]byte{{0x00}, {0x16}, {0xc3}}, core.FailUndecodable},                 // PING(true)
		{[][]byte{{0x00}, {0x7f}, {0x01}}, core.FailUnknownType},                 // no such number
		{[][]byte{{0x00}, {0xa1, 'x'}, {0x01}}, core.FailUnsupported},            // a named operation
		{[][]byte{{0x00}, {0x04}, {0x01}}, core.FailUnsupported},                 // Q cache
		{[][]byte{{0x00}, {0x0f}, {0x01}}, core.FailUnsupported},                 // engine-driven is not loaded
		{[][]byte{{0x00}, {0x22}, {0x01}}, core.FailUnsupported},                 // nor is blend
		{[][]byte{{0x00}, {0x1c}, {0x01}, {0x01}, {0x02}}, core.FailUnsupported}, // 28
	}
	for _, b := range bad {
		var f core.Frames
		for _, part := range b.frames {
			f.Append(part)
		}
		before := len(w.log)
		w.quiet(func() { w.frames(1, &f, w.now) })
		if r := w.log[len(w.log)-1]; len(w.log) != before+1 || r.Kind != core.Refused || r.Failure != b.want || r.Flag {
			t.Fatalf("%x: %+v, want %v", b.frames, r, b.want)
		}
	}
	w.quiet(func() {
		w.feed(core.Input{Kind: core.InputFrames})
		w.feed(core.Input{Kind: core.InputFrames, Decoded: "what"})
		w.feed(core.Input{Kind: core.InputOpened, Op: 77})
		w.feed(core.Input{Kind: core.InputReleased, Op: 77})
		w.feed(core.Input{Kind: core.InputCopied, Op: 77})
		w.feed(core.Input{Kind: core.InputClosed, Peer: 3})
		w.feed(core.Input{Kind: core.InputExited, Instance: 3})
		w.feed(core.Input{Kind: core.InputTimer, Timer: core.TimerKey{Kind: core.TimerJob, Slot: 1 << 31}})
		w.feed(core.Input{Kind: core.InputTimer, Timer: core.TimerKey{Kind: core.TimerMainStep}})
	})
	w.ping(1)
	if !w.last().OK {
		t.Fatal("dead")
	}
}

func TestTheInboxIsBounded(t *testing.T) {
	w := newWorld(t, testConfig())
	w.holdOpens = true
	w.send(1, registerRequest(1, testModel))
	r := pingRequest(1)
	for range core.MaxJobs {
		w.out.Reset()
		r.UID, r.RawType = []byte{0}, []byte{0x16}
		w.s.Step(w.now, &core.Input{Kind: core.InputFrames, Peer: 1, Decoded: &r}, &w.out)
	}
	if w.s.Load().Inbox != core.MaxJobs {
		t.Fatalf("%+v", w.s.Load())
	}
	w.quiet(func() { w.ping(1) })
	if r := w.one(core.PoolFull, 1); r.A != uint64(wire.Ping) || r.Failure != core.FailQueueFull {
		t.Fatalf("%+v", r)
	}
	w.endOpen(0, core.NoFailure)
	w.until(w.now)
	if len(w.replies) != core.MaxJobs+1 {
		t.Fatalf("%d replies", len(w.replies))
	}
}

func TestAnOldServerKnowsNoLiveness(t *testing.T) { // A9
	cfg := testConfig()
	cfg.Legacy = true
	w := newWorld(t, cfg)
	w.register(1)
	stamped := w.context(core.ServerDriven, 1).LastSeen
	w.after(time.Second)
	w.send(1, wire.Request{Type: wire.Ping, Legacy: true})
	if v := w.context(core.ServerDriven, 1); !w.last().OK || v.Latched || v.LastSeen != stamped {
		t.Fatalf("%+v", v)
	}
	w.quiet(func() { w.ping(1) }) // a new client at an old server
	w.until(w.now + 100000*second)
	w.context(core.ServerDriven, 1)
}

func TestLanesAreBoundRoundRobin(t *testing.T) {
	cfg := testConfig()
	cfg.AffinityLanes = 2
	w := newWorld(t, cfg)
	w.register(1)
	w.holdCopies = true
	send := func(peer core.Peer, prompt uint32) { w.send(peer, transferRequest(wire.Store, 1, prompt, 1)) }
	send(10, 1)
	send(11, 2)
	send(12, 3) // the first lane again
	send(11, 4)
	if l := w.s.Load(); len(w.copies) != 2 || l.LanesBusy != 2 || l.LanesWait != 2 {
		t.Fatalf("%+v", l)
	}
}

// Each engine group has its own block size; a chunk is copied group by group
// into one slot.
func TestGroupsOfDifferentBlockSizes(t *testing.T) {
	w := newWorld(t, testConfig())
	r := registerRequest(1, testModel)
	r.Groups = []core.Group{
		{ID: 0, Layers: []int64{0}, TokensPerBlock: 16, SlidingWindow: -1, Physical: 1},
		{ID: 1, Layers: []int64{1}, TokensPerBlock: 32, SlidingWindow: -1, Physical: 2},
	}
	w.send(1, r)
	w.until(w.now)
	s := transferRequest(wire.Store, 1, 1, 2)
	s.Blocks, s.BlockEnds = []uint32{0, 1, 2, 3, 30, 31}, []int{4, 6}
	w.send(1, s)
	c := w.copies[0]
	want := []core.ChunkCopy{
		{Slot: 0, Group: 0, First: 0, Count: 2}, {Slot: 0, Group: 1, First: 2, Count: 1},
		{Slot: 1, Group: 0, First: 3, Count: 2}, {Slot: 1, Group: 1, First: 5, Count: 1},
	}
	if !slices.Equal(c.Chunks, want) || !slices.Equal(c.Blocks, []uint32{0, 1, 30, 2, 3, 31}) {
		t.Fatalf("%+v", c)
	}
	if l := w.s.Load(); l.StoreBytes != 2*(2+2)*testBlockSize {
		t.Fatalf("%+v", l)
	}
	s.Blocks[5] = testBlocks / 2 // two physical blocks each
	w.quiet(func() { w.send(1, s) })
}

func TestARegistrationThatMakesNoSenseGetsNoTransfer(t *testing.T) {
	for name, spoil := range map[string]func(r *wire.Request){
		"layer out of range":  func(r *wire.Request) { r.Groups[0].Layers = []int64{0, 2} },
		"blocks do not fit":   func(r *wire.Request) { r.Groups[0].TokensPerBlock = 24 },
		"negative block size": func(r *wire.Request) { r.Groups[0].TokensPerBlock = -16 },
		"no tensors":          func(r *wire.Request) { r.Exports, r.Groups[0].Layers = nil, nil },
		"absurd": func(r *wire.Request) {
			r.Groups[0].Physical = 1 << 16
			r.Exports[0].BlockBytes = 1<<32 - 1
		},
	} {
		r := registerRequest(1, testModel)
		spoil(&r)
		if a := describeServerDriven(&r, 32); a.chunkBytes != 0 {
			t.Errorf("%s: chunks of %d bytes", name, a.chunkBytes)
		}
	}
	w := newWorld(t, testConfig())
	r := registerRequest(1, testModel)
	r.Groups[0].TokensPerBlock = 24
	w.send(1, r)
	w.until(w.now)
	w.context(core.ServerDriven, 1) // the document registers whatever opens
	w.quiet(func() { w.store(1, 1, 1) })
	if r := w.records(core.Refused, 1); len(r) != 1 || r[0].Failure != core.FailBadBlocks {
		t.Fatalf("%+v", r)
	}
}
