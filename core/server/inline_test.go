package server

import (
	"testing"

	"vigil/core"
	"vigil/core/wire"
)

// inlineWorld is a server without a pool, with one engine-driven worker, and
// the books of a shell that keeps inline data.
type inlineWorld struct {
	*world
	parcels uint64
}

func newInlineWorld(t *testing.T) *inlineWorld {
	cfg := testConfig()
	cfg.PoolBytes, cfg.L1Bytes = 0, 1000
	w := &inlineWorld{world: newWorld(t, cfg)}
	w.registerEngine(4)
	return w
}

// commit sends a COMMIT_STORE whose data the shell keeps, and returns what the
// server said of them.
func (w *inlineWorld) commit(id core.InstanceID, prompt uint32, n int, bytes uint64) (inline []core.InlineEffect, ok bool) {
	w.t.Helper()
	w.parcels++
	r := wire.Request{
		UID: []byte{1}, RawType: []byte{17}, Type: wire.CommitStore, Instance: id,
		Key: keyOf(prompt, n, "r"), Parcel: w.parcels, ParcelBytes: bytes,
	}
	var hasher wire.Hasher
	r.Key.Chunks = hasher.Chunks(nil, &r.Key, testConfig().ChunkTokens)
	w.replies = nil
	w.feed(core.Input{Kind: core.InputFrames, Peer: 4, Arrived: w.now, Decoded: &r})
	return w.out.Inlines, len(w.replies) == 1 && w.replies[0].OK
}

func (w *inlineWorld) fetch(prompt uint32, n int) (slot core.Slot, ok bool) {
	w.t.Helper()
	w.replies = nil
	w.send(4, wire.Request{Type: wire.PrepareRetrieve, Instance: 4, Key: keyOf(prompt, n, "r")})
	s := w.out.Sends[0]
	if w.replies[0].OK != s.Filled {
		w.t.Fatalf("the answer says %v and is filled: %v", w.replies[0].OK, s.Filled)
	}
	return s.Slot, s.Filled
}

func TestInlineDataAreKeptAndDelivered(t *testing.T) {
	w := newInlineWorld(t)
	inline, ok := w.commit(4, 1, 3, 300)
	if !ok || len(inline) != 1 || !inline[0].Keep || inline[0].Parcel != 1 {
		t.Fatalf("%+v %v", inline, ok)
	}
	if slot, ok := w.fetch(1, 3); !ok || slot != inline[0].Slot {
		t.Fatalf("slot %d %v", slot, ok)
	}
	for n := range 5 {
		if _, ok := w.fetch(1, n); ok != (n == 3) {
			t.Fatalf("%d chunks of 3 stored together: %v", n, ok)
		}
	}
	// A look-up promises what can be had as one, and keeps that until it is freed.
	w.send(8, lookupRequest("look", 1, 5))
	w.send(8, wire.Request{Type: wire.QueryPrefetchStatus, RequestID: []byte("look")})
	if got := w.replies[len(w.replies)-1].Int; got != 3 {
		t.Fatalf("the look-up found %d chunks", got)
	}
	if l := w.s.Load(); l.Locks != 1 || l.StoreBytes != 300 {
		t.Fatalf("%+v", l)
	}
	for n := range 3 {
		w.send(8, lookupRequest("shorter", 1, n))
		w.send(8, wire.Request{Type: wire.QueryPrefetchStatus, RequestID: []byte("shorter")})
		if got := w.replies[len(w.replies)-1].Int; got != 0 {
			t.Fatalf("%d chunks of data that cannot be cut, for a look-up of %d", got, n)
		}
	}
	free := lookupRequest("look", 1, 5)
	free.Type = wire.FreeLookupLocks
	w.send(8, free)
	if l := w.s.Load(); l.Locks != 0 {
		t.Fatalf("%d locks are left", l.Locks)
	}
	// The same again is there already, and its second copy is nobody's.
	if inline, ok = w.commit(4, 1, 3, 300); !ok || len(inline) != 1 || inline[0].Keep {
		t.Fatalf("%+v %v", inline, ok)
	}
	w.send(4, wire.Request{Type: wire.CommitRetrieve, Instance: 4, Key: keyOf(1, 3, "r")})
	if !w.replies[len(w.replies)-1].OK {
		t.Fatal("the commit of a retrieve")
	}
}

// Every parcel is kept or dropped, once, however its request ends.
func TestEveryParcelHasAnEnd(t *testing.T) {
	w := newInlineWorld(t)
	for what, c := range map[string]struct {
		id    core.InstanceID
		n     int
		bytes uint64
	}{"too large": {4, 1, 1001}, "not registered": {9, 1, 10}, "no whole chunk": {4, 0, 10}} {
		if inline, ok := w.commit(c.id, 7, c.n, c.bytes); ok || len(inline) != 1 || inline[0].Keep {
			t.Errorf("%s: %+v %v", what, inline, ok)
		}
	}
	for prompt := uint32(10); prompt < 20; prompt++ { // the oldest make room
		if inline, ok := w.commit(4, prompt, 1, 400); !ok || !inline[0].Keep {
			t.Fatalf("%+v %v", inline, ok)
		}
	}
	if l := w.s.Load(); l.StoreBytes > 1000 {
		t.Fatalf("%d bytes of 1000", l.StoreBytes)
	}
	if _, ok := w.fetch(10, 1); ok {
		t.Fatal("what was evicted is delivered")
	}
	w.feed(core.Input{Kind: core.InputStop})
	if inline, ok := w.commit(4, 30, 1, 10); ok || len(inline) != 1 || inline[0].Keep {
		t.Fatalf("a server that stops: %+v %v", inline, ok)
	}
	if err := consistent(w.s); err != nil {
		t.Fatal(err)
	}
}
