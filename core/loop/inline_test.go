package loop

import (
	"bytes"
	"context"
	"testing"

	"vigil/core"
	"vigil/core/wire"
)

// newInlineRig starts a server without a shared pool, with one engine-driven
// worker.
func newInlineRig(t *testing.T, change func(*ServerOptions)) *rig {
	r := newRig(t, func(o *ServerOptions) {
		o.Config.PoolBytes, o.Config.L1Bytes = 0, 8<<20
		if change != nil {
			change(o)
		}
	})
	r.ask(5, engineOf(5))
	return r
}

func commitOf(prompt, n int, data []byte) wire.Request {
	return wire.Request{Type: wire.CommitStore, Instance: 5, Key: keyOf(prompt, n), Data: data}
}

func fetchOf(prompt, n int) wire.Request {
	return wire.Request{Type: wire.PrepareRetrieve, Instance: 5, Key: keyOf(prompt, n)}
}

func contentOf(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*seed + i>>8 + seed)
	}
	return b
}

// What came with a commit goes out with a retrieve of the same range, whether
// the owner sends it or the courier, and the server looks at none of it.
func TestInlineDataComeBack(t *testing.T) {
	leaks(t)
	r := newInlineRig(t, nil)
	for i, size := range []int{1, 255, 256, parcelHeap, parcelHeap + 1, inlineSend, inlineSend + 1, 2 << 20} {
		want := contentOf(i+1, size)
		if a := r.ask(5, fetchOf(i, 2)); a.OK || len(a.Data) > 0 {
			t.Fatalf("%d bytes: delivered before they came", size)
		}
		if a := r.ask(5, wire.Request{Type: wire.PrepareStore, Instance: 5, Key: keyOf(i, 2)}); !a.Inline {
			t.Fatalf("it does not ask for inline data: %+v", a)
		}
		if a := r.ask(5, commitOf(i, 2, want)); !a.OK {
			t.Fatalf("%d bytes: not kept", size)
		}
		for range 2 {
			if a := r.ask(5, fetchOf(i, 2)); !a.OK || !bytes.Equal(a.Data, want) {
				t.Fatalf("%d bytes: %d came back, %v", size, len(a.Data), a.OK)
			}
		}
		if a := r.ask(5, fetchOf(i, 1)); a.OK {
			t.Fatal("a part of them was delivered")
		}
		if a := r.ask(5, wire.Request{Type: wire.CommitRetrieve, Instance: 5, Key: keyOf(i, 2)}); !a.OK {
			t.Fatal("the retrieve could not be committed")
		}
	}
	if v := r.sync(); v.InlineBytes != v.Load.StoreBytes || v.InlineBytes == 0 {
		t.Fatalf("%d bytes are kept, the books say %d", v.InlineBytes, v.Load.StoreBytes)
	}
	r.ask(5, wire.Request{Type: wire.Clear})
	if v := r.sync(); v.InlineBytes != 0 || len(r.s.inline.slots)+len(r.s.inline.came) != 0 {
		t.Fatalf("%d bytes are left after a clear", v.InlineBytes)
	}
}

// New data push the oldest out of the budget, and their memory goes with them.
func TestInlineDataStayInTheBudget(t *testing.T) {
	r := newInlineRig(t, nil)
	for i := range 20 {
		if a := r.ask(5, commitOf(i, 1, contentOf(i, 1<<20))); !a.OK {
			t.Fatalf("commit %d", i)
		}
		if v := r.sync(); v.InlineBytes > 8<<20 || v.InlineBytes != v.Load.StoreBytes {
			t.Fatalf("%d bytes are kept, the books say %d", v.InlineBytes, v.Load.StoreBytes)
		}
	}
	if a := r.ask(5, fetchOf(0, 1)); a.OK {
		t.Fatal("what was evicted is delivered")
	}
	if a := r.ask(5, fetchOf(19, 1)); !a.OK || !bytes.Equal(a.Data, contentOf(19, 1<<20)) {
		t.Fatal("the newest is gone")
	}
	// More than the whole budget is refused, and leaves nothing.
	kept := r.sync().InlineBytes
	if a := r.ask(5, commitOf(50, 1, make([]byte, 9<<20))); a.OK {
		t.Fatal("more than there is room for was kept")
	}
	if v := r.sync(); v.InlineBytes != kept {
		t.Fatalf("%d bytes, %d before", v.InlineBytes, kept)
	}
}

// A commit that has to wait for its lane keeps its data meanwhile, although
// the message's buffers are used again.
func TestInlineDataSurviveTheQueue(t *testing.T) {
	leaks(t)
	r := newInlineRig(t, func(o *ServerOptions) { o.Config.AffinityLanes = 1 })
	r.ask(1, registerOf(1))
	r.memory.mu.Lock()
	r.memory.hold = func(kind core.InputKind) bool { return kind == core.InputCopied }
	r.memory.mu.Unlock()
	r.send(1, transferOf(wire.Store, 1, 90, 1)) // holds the lane
	r.sync()
	sizes := []int{3, 5000, 200_000}
	for i, n := range sizes {
		r.send(5, commitOf(i, 1, contentOf(i+1, n)))
	}
	for range 100 { // what would trample on them
		r.ask(6, pingOf(6))
	}
	for v := r.sync(); v.Load.LanesWait != len(sizes); v = r.sync() { // the long ones are still being decoded
		r.quiet()
	}
	r.memory.release()
	for range 1 + len(sizes) {
		if _, a := r.reply(); !a.OK {
			t.Fatalf("%+v", a)
		}
	}
	for i, n := range sizes {
		if a := r.ask(5, fetchOf(i, 1)); !a.OK || !bytes.Equal(a.Data, contentOf(i+1, n)) {
			t.Fatalf("%d bytes: %d came back", n, len(a.Data))
		}
	}
	// Those that wait when the server ends are forgotten.
	r.memory.mu.Lock()
	r.memory.hold = func(kind core.InputKind) bool { return kind == core.InputCopied }
	r.memory.mu.Unlock()
	r.send(1, transferOf(wire.Store, 1, 91, 1))
	r.send(5, commitOf(20, 1, contentOf(20, 300_000)))
	r.send(5, commitOf(21, 1, contentOf(21, 30)))
	r.sync()
	r.s.Abort()
	<-r.s.Done()
	if i := r.s.inline; len(i.came)+len(i.slots) != 0 || i.bytes != 0 {
		t.Fatalf("%d parcels and %d slots with %d bytes are left", len(i.came), len(i.slots), i.bytes)
	}
}

// Nobody who is not registered has anything kept, and what he sent is dropped.
func TestInlineDataOfAStranger(t *testing.T) {
	r := newInlineRig(t, func(o *ServerOptions) { o.Config.Protections = core.Hardened() })
	q := commitOf(1, 1, contentOf(1, 1<<20))
	q.Instance = 77
	if a := r.ask(5, q); a.OK || a.Refusal != core.FailNotRegistered {
		t.Fatalf("%+v", a)
	}
	if v := r.sync(); v.InlineBytes != 0 {
		t.Fatalf("%d bytes are kept", v.InlineBytes)
	}
}

// A recording of inline traffic has none of its bytes and replays all the same.
func TestInlineTrafficReplays(t *testing.T) {
	dir := t.TempDir()
	recording, err := NewRecording(RecordingOptions{Dir: dir, SegmentBytes: 1 << 10, Keep: -1})
	if err != nil {
		t.Fatal(err)
	}
	r := newInlineRig(t, func(o *ServerOptions) { o.Recording = recording })
	for i := range 12 {
		r.ask(5, commitOf(i, 1, contentOf(i, 1<<20)))
		r.ask(5, fetchOf(i, 1))
		r.ask(5, wire.Request{Type: wire.Lookup, Key: keyOf(i, 1), TPSize: 1})
	}
	r.ask(5, fetchOf(0, 1))
	if _, err := r.s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	report := replay(t, dir)
	if report.Difference != nil || len(report.Torn) > 0 || report.Segments < 2 {
		t.Fatalf("%d segments, %v %v", report.Segments, report.Difference, report.Torn)
	}
}

// The courier's bound: what is beyond it is dropped and counted, and nothing
// stays held.
func TestTheCouriersBound(t *testing.T) {
	var c courier
	gate := make(chan struct{})
	c.start(gated{gate})
	p := newParcel(contentOf(1, inlineSend+1))
	reply := new(core.Frames)
	wire.EncodeReply(reply, []byte{1}, []byte{18}, wire.PrepareRetrieve, &wire.Reply{OK: true})
	for range courierQueue + 10 {
		c.take(1, reply, p)
	}
	if n := c.dropped.Load(); n < 8 || n > 10 {
		t.Fatalf("%d replies were dropped", n)
	}
	close(gate)
	c.stop()
	if n := p.holder.Load(); n != 1 {
		t.Fatalf("%d holders are left", n)
	}
	p.release()
}

type gated struct{ gate chan struct{} }

func (g gated) Send(core.Peer, *core.Frames) { <-g.gate }
