package server

// Upstream's liveness behaviours (PROTOCOL, section 7, test_worker_liveness.py
// and the layout registry's tests), told as our own stories through Step.

import (
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

func TestARegisterInsertsAnEntryThatIsNotLatched(t *testing.T) {
	w := newWorld(t, testConfig())
	began := w.now
	w.register(1)
	v := w.context(core.ServerDriven, 1)
	if w.s.TrackedInstances() != 1 || v.Latched || v.LastSeen != began {
		t.Fatalf("%d tracked, %+v", w.s.TrackedInstances(), v)
	}
	if v.Bytes != testLayers*testBlocks*testBlockSize || v.Incarnation != 1 || v.Mapping == 0 {
		t.Fatalf("%+v", v)
	}
	if r := w.one(core.ContextInserted, 1); r.Context != core.ServerDriven || r.Incarnation != 1 || r.B != v.Bytes {
		t.Fatalf("%+v", r)
	}
	if r := w.last(); !r.Nil || r.Type != wire.RegisterKVCache || r.peer != 1 {
		t.Fatalf("%+v", r)
	}
}

func TestANoopRegisterRefreshesBuildsNothingAndDoesNotLatch(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.after(10 * time.Second)
	w.register(1)
	v := w.context(core.ServerDriven, 1)
	if v.LastSeen != w.now || v.Latched || v.Incarnation != 1 {
		t.Fatalf("%+v", v)
	}
	w.count(core.OpenBegan, 1, 1)
	w.count(core.RegisterNoop, 1, 1)
	w.count(core.LayoutAcquired, 1, 1) // a no-op holds nothing more
	if r := w.records(core.Stamped, 1)[1]; core.StampCause(r.B) != core.StampNoop || core.Time(r.A) != w.now {
		t.Fatalf("%+v", r)
	}
}

func TestALatchedEntryStaysLatchedThroughANoopRegister(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.ping(1)
	w.register(1)
	if !w.context(core.ServerDriven, 1).Latched {
		t.Fatal("the no-op register took the latch off")
	}
}

func TestAPingLatchesAndTrafficDoesNot(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.after(time.Second)
	w.store(1, 7, 1)
	v := w.context(core.ServerDriven, 1)
	if v.Latched || v.LastSeen != w.now {
		t.Fatalf("after a store: %+v", v)
	}
	w.after(time.Second)
	w.ping(1)
	w.ping(1)
	if v = w.context(core.ServerDriven, 1); !v.Latched || v.LastSeen != w.now {
		t.Fatalf("after a ping: %+v", v)
	}
	w.count(core.Latched, 1, 1)
}

func TestAPingOfAnUnknownIDAndOfAProberAnswerTrueAndTrackNothing(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(42)
	before := w.context(core.ServerDriven, 42)
	w.after(time.Second)
	w.ping(999)
	if r := w.last(); !r.OK {
		t.Fatalf("%+v", r)
	}
	w.send(5, wire.Request{Type: wire.Ping, NoInstance: true}) // A12
	if r := w.last(); !r.OK || r.peer != 5 {
		t.Fatalf("%+v", r)
	}
	if w.s.TrackedInstances() != 1 || w.context(core.ServerDriven, 42) != before {
		t.Fatal("a ping of somebody else touched 42")
	}
}

func TestAPingTouchesEveryRegistryThatHoldsTheID(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.registerEngine(1)
	w.after(time.Second)
	w.ping(1)
	for _, kind := range []core.ContextKind{core.ServerDriven, core.EngineDriven} {
		if v := w.context(kind, 1); !v.Latched || v.LastSeen != w.now {
			t.Fatalf("%v: %+v", kind, v)
		}
	}
	if w.s.TrackedInstances() != 2 {
		t.Fatal("an id in two registries counts twice")
	}
}

// The reap of two windows: at 1000 s of silence with 120 and 3600, what pinged
// goes, what never pinged stays (A1, A2).
func TestTheTwoWindows(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.ping(1)
	w.register(2) // never pings
	w.until(w.now + 880*second)
	w.register(3)
	w.ping(3)
	w.after(100 * time.Second)
	w.gone(core.ServerDriven, 1)
	w.context(core.ServerDriven, 2)
	w.context(core.ServerDriven, 3)
	if w.s.TrackedInstances() != 2 {
		t.Fatalf("%d tracked", w.s.TrackedInstances())
	}
	released := w.one(core.LayoutReleased, 1)
	if released.A != layoutHash([]byte(testModel), 1) || w.s.LayoutHolders(testModel, 1) != 2 {
		t.Fatalf("%+v, %d holders", released, w.s.LayoutHolders(testModel, 1))
	}
	if r := w.one(core.ReapDecided, 1); !r.Flag || r.B != uint64(120*second) {
		t.Fatalf("%+v", r)
	}
	w.until(w.now + 3600*second)
	if r := w.one(core.ReapDecided, 2); r.Flag || r.B != uint64(3600*second) {
		t.Fatalf("%+v", r)
	}
	w.one(core.DropFannedOut, 2)
}

// Stale is strictly more than the window: at exactly the edge an entry lives
// for one more scan (PROTOCOL, section 4.2).
func TestTheEdgesOfBothWindows(t *testing.T) {
	for _, late := range []core.Time{0, 1} {
		for _, latched := range []bool{true, false} {
			cfg := testConfig()
			w := newWorld(t, cfg)
			window := core.Time(cfg.Grace)
			w.fire(core.TimerKey{Kind: core.TimerScan})
			w.now -= late // so that the scan's times lie on the edge, or just past it
			w.register(1)
			if latched {
				window = core.Time(cfg.Reap)
				w.ping(1)
			}
			w.now += late
			edge := w.context(core.ServerDriven, 1).LastSeen + window + late
			w.until(edge)
			if got := len(w.records(core.ReapDecided, 1)); got != int(late) {
				t.Fatalf("latched %v, %d ns past the window: %d reaps", latched, late, got)
			}
			w.until(edge + core.Time(cfg.Scan()))
			w.one(core.ReapDecided, 1)
		}
	}
}

func TestScansStartAtOnceAndFollowTheEndOfTheLast(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.ping(1)
	w.until(w.now)
	w.count(core.ScanBegan, 0, 1) // the first is due at the start
	w.holdCloses = true
	w.until(w.now + 150*second) // 120 is not over the window, 150 is
	w.count(core.ScanEnded, 0, 5)
	w.until(w.now + 17*second) // the release takes so long
	w.endClose(0, core.NoFailure)
	w.until(w.now)
	end := w.now
	w.count(core.ScanEnded, 0, 6)
	w.until(end + 30*second - 1)
	w.count(core.ScanBegan, 0, 6)
	w.until(end + 30*second)
	w.count(core.ScanBegan, 0, 7)
}

func TestUnregisterCleansUpAndASecondOneIsNoError(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.send(1, idRequest(wire.UnregisterKVCache, 1))
	if w.s.TrackedInstances() != 0 || w.s.LayoutHolders(testModel, 1) != 0 || !w.last().Nil {
		t.Fatal("something stayed")
	}
	w.one(core.CloseEnded, 1)
	w.one(core.LayoutReleased, 1)
	answered := len(w.replies)
	w.send(1, idRequest(wire.UnregisterKVCache, 1))
	if len(w.replies) != answered+1 || !w.last().Nil {
		t.Fatal("unregistering an unknown id is an ordinary success")
	}
	if r := w.one(core.Refused, 1); r.Failure != core.FailNotRegistered || !r.Flag {
		t.Fatalf("%+v", r)
	}
	w.one(core.LayoutReleased, 1)
}

func TestContextAndStrategyGoTogether(t *testing.T) {
	w := newWorld(t, testConfig())
	w.registerEngine(1)
	w.ping(1)
	w.registerEngine(2)
	if r := w.last(); string(r.ShmName) != core.DefaultPoolName || r.Pool != 1<<20 {
		t.Fatalf("%+v", r)
	}
	w.until(w.now + 180*second)
	w.gone(core.EngineDriven, 1)
	w.context(core.EngineDriven, 2)
	removed, strategy := w.one(core.ContextRemoved, 1), w.one(core.StrategyRemoved, 1)
	if removed.At != strategy.At || removed.Incarnation != strategy.Incarnation {
		t.Fatalf("%+v, %+v", removed, strategy)
	}
	if w.s.strategies.find(1) >= 0 || w.s.strategies.find(2) < 0 {
		t.Fatal("the strategies do not match the contexts")
	}
	w.one(core.LayoutReleased, 1)
}

func TestEngineDrivenTrafficRefreshesAndAnUnknownIDIsSilence(t *testing.T) {
	w := newWorld(t, testConfig())
	w.registerEngine(1)
	for _, kind := range []wire.Type{wire.PrepareStore, wire.CommitStore, wire.PrepareRetrieve, wire.CommitRetrieve} {
		w.after(time.Second)
		w.send(1, wire.Request{Type: kind, Instance: 1, Key: keyOf(1, 1, "r")})
		if v := w.context(core.EngineDriven, 1); v.LastSeen != w.now || v.Latched {
			t.Fatalf("%v: %+v", kind, v)
		}
		w.quiet(func() { w.send(2, wire.Request{Type: kind, Instance: 2, Key: keyOf(1, 1, "r")}) })
	}
	for _, r := range w.records(core.Refused, 2) {
		if r.Failure != core.FailNotRegistered || r.Flag {
			t.Fatalf("%+v", r)
		}
	}
	w.count(core.Refused, 2, 4)
}

func TestWithAWindowOfZeroNothingIsReapedAndPingsStillLatch(t *testing.T) { // A15
	cfg := testConfig()
	cfg.Reap, cfg.Grace = 0, 0
	w := newWorld(t, cfg)
	w.register(1)
	w.ping(1)
	w.until(w.now + 100000*second)
	if !w.last().OK || !w.context(core.ServerDriven, 1).Latched {
		t.Fatal("the ping did not count")
	}
	w.count(core.ScanBegan, 0, 0)
}

func TestTheFanOutDropsRopeStateOfTheReapedIDOnly(t *testing.T) { // A18
	w := newWorld(t, testConfig())
	for id := core.InstanceID(1); id <= 2; id++ {
		w.register(id)
		w.send(core.Peer(id), wire.Request{Type: wire.RegisterRope, Instance: id, HeadSize: 64})
		w.ping(id)
	}
	rope := w.context(core.RopeState, 1)
	if rope.Incarnation == w.context(core.ServerDriven, 1).Incarnation {
		t.Fatal("blend state has an incarnation of its own")
	}
	for range 20 {
		w.after(10 * time.Second)
		w.ping(2)
	}
	w.gone(core.RopeState, 1)
	w.context(core.RopeState, 2)
	if r := w.one(core.RopeDropped, 1); r.A != 1 || r.Incarnation != rope.Incarnation {
		t.Fatalf("%+v", r)
	}
	w.send(2, idRequest(wire.UnregisterRope, 2))
	if r := w.one(core.RopeDropped, 2); r.A != 0 {
		t.Fatalf("%+v", r)
	}
	w.send(2, idRequest(wire.UnregisterRope, 999)) // unknown: no error
	if !w.last().Nil {
		t.Fatal("no answer")
	}
}

// One registry, two holders: the first to leave keeps the descriptor, the last
// takes it away; a holder that leaves twice takes nobody's share.
func TestALayoutLivesAsLongAsItsHolders(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	w.registerEngine(2)
	w.send(3, registerRequest(3, "other"))
	w.until(w.now)
	if w.s.LayoutHolders(testModel, 1) != 2 || w.s.LayoutHolders("other", 1) != 1 || w.s.LayoutHolders(testModel, 2) != 0 {
		t.Fatal("wrong holders")
	}
	first := w.s.contexts.entries[w.s.contexts.find(1)]
	w.s.layouts.acquire(&w.out, core.ServerDriven, &first) // a holder already
	if w.s.LayoutHolders(testModel, 1) != 2 {
		t.Fatal("one holder counts twice")
	}
	w.send(1, idRequest(wire.UnregisterKVCache, 1))
	w.s.layouts.release(&w.out, core.ServerDriven, &first) // once more
	if w.s.LayoutHolders(testModel, 1) != 1 {
		t.Fatal("a share was returned twice")
	}
	w.send(2, idRequest(wire.UnregisterEngineDriven, 2))
	if w.s.LayoutHolders(testModel, 1) != 0 || w.s.LayoutHolders("other", 1) != 1 {
		t.Fatal("the last holder left the descriptor behind")
	}
	if r := w.one(core.LayoutReleased, 2); r.B != 0 || r.Context != core.EngineDriven {
		t.Fatalf("%+v", r)
	}
}

func TestTheNewestDescriptorOverwrites(t *testing.T) {
	w := newWorld(t, testConfig())
	w.register(1)
	pos := w.s.layouts.find([]byte(testModel), 1)
	old := w.s.layouts.known.entries[pos].descriptor
	w.register(1) // a no-op changes nothing
	if w.s.layouts.known.entries[pos].descriptor != old {
		t.Fatal("the no-op changed the descriptor")
	}
	r := registerRequest(2, testModel)
	r.Hints.KVLayout = []byte("HND")
	w.send(2, r)
	w.until(w.now)
	if w.s.layouts.known.entries[pos].descriptor == old {
		t.Fatal("the newer descriptor did not replace the older one")
	}
}

func TestTheSameIDReapedAgainIsCounted(t *testing.T) { // A20
	w := newWorld(t, testConfig())
	for n := uint64(1); n <= 3; n++ {
		w.register(1)
		w.ping(1)
		w.until(w.now + 180*second)
		removed := w.records(core.ContextRemoved, 1)
		if r := removed[len(removed)-1]; r.B != n || core.RemovalCause(r.A) != core.RemovedByReaper {
			t.Fatalf("%+v", r)
		}
	}
}

// endClose ends one pending close.
func (w *world) endClose(i int, why core.Failure) {
	o := w.closes[i]
	w.closes = append(w.closes[:i], w.closes[i+1:]...)
	w.feed(core.Input{Kind: core.InputReleased, Op: o.Op, Failure: why})
}

// endOpen ends one pending open.
func (w *world) endOpen(i int, why core.Failure) {
	o := w.opens[i]
	w.opens = append(w.opens[:i], w.opens[i+1:]...)
	w.feed(core.Input{Kind: core.InputOpened, Op: o.Op, Failure: why, Bytes: 1 << 20})
}

// endCopy ends the copy begun last.
func (w *world) endCopy(why core.Failure) {
	o := w.copies[len(w.copies)-1]
	w.feed(core.Input{Kind: core.InputCopied, Op: o.Op, Failure: why})
}
