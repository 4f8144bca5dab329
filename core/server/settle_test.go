package server

import (
	"slices"
	"testing"

	"vigil/core"
	"vigil/core/wire"
)

func keepingWorld(t *testing.T) *world {
	cfg := testConfig()
	cfg.Protections = core.Hardened()
	w := newWorld(t, cfg)
	w.register(1)
	w.store(1, 1, 2)
	w.holdCopies = true
	return w
}

// settled asks about every transfer before a uid and returns what is still
// under way.
func (w *world) settled(id core.InstanceID, before uint64) []int64 {
	w.t.Helper()
	w.send(core.Peer(id), wire.Request{Type: wire.Settle, Instance: id, Before: before})
	r := w.last()
	if r.Type != wire.Settle || r.Nil || r.Refusal != core.NoFailure {
		w.t.Fatalf("vigil.settle: %+v", r)
	}
	return slices.Clone(r.Indices)
}

// A worker gave up three transfers: a retrieve under way, and two that wait
// behind it. The first is named until its copy ended, the others are refused
// at once, and so is one that comes late over an old connection.
func TestWhatIsGivenUpIsNotCarriedOut(t *testing.T) {
	w := keepingWorld(t)
	first := w.uid
	w.retrieve(1, 1, 2)
	w.store(1, 2, 1)
	w.retrieve(1, 1, 2)
	wanted := w.uid
	w.store(1, 3, 1)
	if still := w.settled(1, wanted); !slices.Equal(still, []int64{int64(first)}) {
		t.Fatalf("under way: %v, want the retrieve %d", still, first)
	}
	if refused := w.records(core.Refused, 1); len(refused) != 2 || refused[0].Failure != core.FailStale || !refused[0].Flag {
		t.Fatalf("refused: %+v", refused)
	}
	if w.s.Load().LanesWait != 1 {
		t.Fatal("the store that is wanted went too")
	}
	copies := len(w.copies)
	w.endCopy(core.NoFailure)
	if still := w.settled(1, wanted); len(still) != 0 {
		t.Fatalf("under way after the end: %v", still)
	}
	if len(w.copies) != copies+1 {
		t.Fatalf("%d copies began, want the wanted store's", len(w.copies)-copies)
	}
	w.endCopy(core.NoFailure)
	w.uid = first // an old connection's
	w.retrieve(1, 1, 2)
	if r := w.last(); r.Refusal != core.FailStale || len(w.copies) != copies+1 {
		t.Fatalf("came late: %+v", r)
	}
	if _, ready, ok := w.s.ChunkState(chunksOf(keyOf(3, 1, ""))[0]); !ready || !ok {
		t.Fatal("the wanted store was not kept")
	}
}

// A store that is given up while its copy runs may read anything from then on:
// nothing of it is kept, and its worker need not wait for its end.
func TestAGivenUpStoreKeepsNothing(t *testing.T) {
	w := keepingWorld(t)
	w.store(1, 2, 1)
	key := chunksOf(keyOf(2, 1, ""))[0]
	if still := w.settled(1, w.uid); len(still) != 0 {
		t.Fatalf("under way: %v", still)
	}
	w.endCopy(core.NoFailure)
	if r := w.last(); r.Type != wire.Store || r.OK {
		t.Fatalf("%+v", r)
	}
	if _, _, ok := w.s.ChunkState(key); ok {
		t.Fatal("it was kept")
	}
}

// A process that has the id of a dead one (a PID, A8) registers other memory.
// What the dead one had sent is not carried out on it, whatever its uid.
func TestNoTransferReachesTheNextContext(t *testing.T) {
	w := keepingWorld(t)
	w.register(2)
	w.retrieve(2, 1, 2) // holds the lane
	w.uid = 500
	w.store(1, 2, 1) // waits behind it
	w.after(second.Sub(0))
	w.uid = 0
	again := registerRequest(1, testModel)
	again.Exports[0].Handle = []byte("/another")
	w.send(9, again)
	w.after(second.Sub(0))
	w.endCopy(core.NoFailure)
	if v := w.context(core.ServerDriven, 1); v.Incarnation != 3 {
		t.Fatalf("serves incarnation %d", v.Incarnation)
	} else if len(w.copies) != 2 {
		t.Fatal("the dead process's store reads the next one's memory")
	}
	w.uid = 1
	w.send(9, transferRequest(wire.Store, 1, 3, 1))
	if o := w.copies[len(w.copies)-1]; o.Owner != 1 {
		t.Fatalf("its own store is not carried out: %+v", w.last())
	}
}

// Without the protection the operation is none that is known.
func TestSettleNeedsItsProtection(t *testing.T) {
	cfg := testConfig()
	cfg.Protections = core.Hardened()
	cfg.Protections.KeepBlocks = false
	w := newWorld(t, cfg)
	w.register(1)
	w.send(1, wire.Request{Type: wire.Settle, Instance: 1, Before: 9})
	if r := w.last(); !r.Nil || r.Refusal != core.FailUnsupported {
		t.Fatalf("%+v", r)
	}
}
