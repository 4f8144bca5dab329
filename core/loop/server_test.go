package loop

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

func TestAPingIsAnswered(t *testing.T) {
	leaks(t)
	var waited []time.Duration
	r := newRig(t, func(o *ServerOptions) { o.OnPing = func(d time.Duration) { waited = append(waited, d) } })
	if a := r.ask(3, pingOf(42)); a.Type != wire.Ping || !a.OK {
		t.Fatalf("%+v", a)
	}
	if v := r.sync(); len(waited) != 1 || v.Counts.Requests[wire.Ping] != 1 {
		t.Fatalf("%v %+v", waited, v.Counts.Requests[wire.Ping])
	}
}

// A worker that pinged and fell silent keeps its context to the end of its
// window and loses it at the scan after; its memory is closed.
func TestASilentWorkerIsReapedAfterItsWindow(t *testing.T) {
	leaks(t)
	r := newRig(t, nil)
	r.ask(1, registerOf(7))
	r.ask(1, pingOf(7))
	page, next, err := r.s.Instances(context.Background(), core.ServerDriven, 0, 10)
	if err != nil || len(page) != 1 || next != -1 || page[0].Window != core.DefaultReap || !page[0].Latched {
		t.Fatalf("%+v %d %v", page, next, err)
	}
	r.pass(core.DefaultReap)
	if r.count(core.ReapDecided) != 0 {
		t.Fatal("it was reaped at its window, not after it")
	}
	if page, _, _ = r.s.Instances(context.Background(), core.ServerDriven, 0, 10); page[0].Age != core.DefaultReap {
		t.Fatalf("its age is %s", page[0].Age)
	}
	r.pass(core.DefaultReap/core.ScansPerWindow + time.Second)
	v := r.sync()
	if v.Counts.ReapedWindow != 1 || v.Counts.Removed[core.RemovedByReaper] != 1 || v.ServerDriven != 0 || v.MappedBytes != 0 {
		t.Fatalf("%+v", v)
	}
	r.quiet()
	if r.memory.closed != 1 {
		t.Fatalf("%d mappings were closed", r.memory.closed)
	}
}

// With a time scale a window of 120 s passes in 2 s of the clock.
func TestTimeRunsFaster(t *testing.T) {
	r := newRig(t, func(o *ServerOptions) { o.TimeScale = 60 })
	r.ask(1, registerOf(7))
	r.ask(1, pingOf(7))
	for range 20 {
		r.mock.Add(100 * time.Millisecond)
		r.quiet()
	}
	if now := r.s.Now(); now != core.Time(120*time.Second) || r.count(core.ReapDecided) != 0 {
		t.Fatalf("it is %s, %d reaped", now.Sub(0), r.count(core.ReapDecided))
	}
	for range 6 {
		r.mock.Add(100 * time.Millisecond)
		r.quiet()
	}
	if r.count(core.ReapDecided) != 1 {
		t.Fatal("not reaped")
	}
}

// What a worker stored another one gets, to the byte, and the store's memory
// goes back when its chunks go.
func TestBytesGoThroughTheStore(t *testing.T) {
	leaks(t)
	r := newRig(t, func(o *ServerOptions) { o.Config.L1Bytes = 8 * testChunkBytes })
	r.ask(1, registerOf(1))
	r.ask(2, registerOf(2))
	mine, theirs := r.memory.device("/memory-1"), r.memory.device("/memory-2")
	for i := range mine {
		mine[i] = byte(i*7 + i>>8)
	}
	if a := r.ask(1, transferOf(wire.Store, 1, 5, 3)); !a.OK || string(a.Data) != "event" {
		t.Fatalf("store: %+v", a)
	}
	if a := r.ask(2, transferOf(wire.Retrieve, 2, 5, 3)); !a.OK {
		t.Fatalf("retrieve: %+v", a)
	}
	if n := 3 * testChunkBytes; !bytes.Equal(theirs[:n], mine[:n]) || theirs[n] != 0 {
		t.Fatal("the bytes are others")
	}
	if a := r.ask(2, transferOf(wire.Retrieve, 2, 6, 1)); a.OK {
		t.Fatal("a prompt that nobody stored was delivered")
	}
	for prompt := 10; prompt < 40; prompt++ { // more than fits
		if a := r.ask(1, transferOf(wire.Store, 1, prompt, 2)); !a.OK {
			t.Fatalf("store %d: %+v", prompt, a)
		}
	}
	v := r.sync()
	if v.Load.StoreBytes > 8*testChunkBytes || v.StoreMapped != slabBytes || v.Counts.Stored != 31 || v.Counts.Retrieved != 1 || v.Counts.Missed != 1 {
		t.Fatalf("%+v", v)
	}
	if n := r.s.slots.held; n != v.Load.StoreBytes {
		t.Fatalf("%d bytes held, %d used", n, v.Load.StoreBytes)
	}
	r.ask(1, wire.Request{Type: wire.Clear})
	r.sync()
	if r.s.slots.held != 0 {
		t.Fatalf("%d bytes held after a clear", r.s.slots.held)
	}
}

// Chunks of many sizes: places are used again, slabs go back.
func TestSlotsOfManySizes(t *testing.T) {
	r := newRig(t, func(o *ServerOptions) { o.Config.L1Bytes = 1 << 40 })
	s := &r.s.slots
	r.s.Abort()
	<-r.s.Done()
	places := make([]slotPlace, 200)
	for round := range 20 {
		for i := range places {
			if places[i].slab != nil {
				continue
			}
			if !s.place(&places[i], uint64(1+(i*round*37)%900)<<10) {
				t.Fatal("no room")
			}
			b := places[i].slab.bytes[uint64(places[i].index)*places[i].slab.class.stride:]
			b[0], b[places[i].slab.class.chunk-1] = 1, 1
		}
		s.places = places
		for i := range places {
			if (i+round)%3 > 0 || round == 19 {
				s.drop(core.Slot(i))
			}
		}
		places = s.places
	}
	if s.held != 0 || s.mapped > 1<<30 {
		t.Fatalf("%d held, %d mapped", s.held, s.mapped)
	}
	s.places = places
	s.close()
}

func longStore(id core.InstanceID, prompt, tokens int) wire.Request {
	q := transferOf(wire.Store, id, prompt, 1)
	for len(q.Key.Tokens) < tokens {
		q.Key.Tokens = append(q.Key.Tokens, uint32(len(q.Key.Tokens)))
	}
	return q
}

// The messages of one connection enter in their order whatever their length,
// and those of others do not wait for them.
func TestOrderOfOneConnection(t *testing.T) {
	leaks(t)
	r := newRig(t, nil)
	const peers, rounds = 6, 40
	go func() {
		uid := uint64(1 << 20)
		for i := range rounds {
			for p := core.Peer(1); p <= peers; p++ {
				q := wire.Request{Type: wire.Noop}
				if (i+int(p))%3 == 0 {
					q = wire.Request{Type: wire.Lookup, Key: keyOf(i, 1), TPSize: 1}
					q.Key.Worker = -1
					for len(q.Key.Tokens) < 20000 {
						q.Key.Tokens = append(q.Key.Tokens, 1)
					}
				}
				q.UIDNumber = uid
				uid++
				r.s.Message(p, r.s.Now(), frames(q))
			}
		}
	}()
	last := map[core.Peer]uint64{}
	for range peers * rounds {
		p, a := r.reply()
		if a.UIDNumber <= last[p] {
			t.Fatalf("peer %d: %d came after %d", p, a.UIDNumber, last[p])
		}
		last[p] = a.UIDNumber
	}
	r.decoded()
}

// blockLong keeps the decoders from handing on the long messages of peer 1.
func blockLong(s *Server) (release func()) {
	block := make(chan struct{})
	enter := s.decoders.enter
	s.decoders.enter = func(m *message) {
		if m.peer == 1 && len(m.frames.Bytes) > InlineDecodeBytes {
			<-block
		}
		enter(m)
	}
	return func() { close(block) }
}

// A ping overtakes the long prompts of other connections, and waits behind
// those of its own.
func TestAPingOvertakesOthersPrompts(t *testing.T) {
	r := newRig(t, func(o *ServerOptions) { o.Decoders = 1 })
	release := blockLong(r.s)
	long := frames(wire.Request{Type: wire.Lookup, Key: longStore(1, 1, 128<<10).Key, TPSize: 1})
	for range 20 {
		r.s.Message(1, r.s.Now(), long)
	}
	r.send(1, pingOf(8))
	if a := r.ask(2, pingOf(9)); a.Type != wire.Ping {
		t.Fatalf("%+v", a)
	}
	r.s.Closed(1)
	release()
	for n := range 21 {
		if p, a := r.reply(); p != 1 || (a.Type == wire.Ping) != (n == 20) {
			t.Fatalf("answer %d is of request %d of peer %d", n, a.Type, p)
		}
	}
	r.decoded()
}

// A proof of death comes behind what the dead process had sent: the context
// that its last message made goes too.
func TestAProofComesBehindTheMessages(t *testing.T) {
	r := newRig(t, func(o *ServerOptions) {
		o.Decoders = 1
		o.Config.Protections.ProofOfDeath = true
	})
	release := blockLong(r.s)
	r.s.Message(1, r.s.Now(), frames(wire.Request{Type: wire.Lookup, Key: longStore(1, 1, 128<<10).Key, TPSize: 1}))
	r.send(1, engineOf(7))
	r.s.Closed(1)
	r.s.Exited(1)
	r.sync()
	release()
	for range 2 {
		r.reply()
	}
	r.decoded()
	if v := r.sync(); v.EngineDriven != 0 || v.Counts.Removed[core.RemovedByProof] != 1 {
		t.Fatalf("%d contexts, removed %v", v.EngineDriven, v.Counts.Removed)
	}
}

// What one connection may have waiting is bounded; beyond it a message is
// refused, and the others are served.
func TestAFloodOfOneConnectionIsRefused(t *testing.T) {
	r := newRig(t, func(o *ServerOptions) { o.Decoders = 1 })
	release := blockLong(r.s)
	long := frames(wire.Request{Type: wire.Lookup, Key: longStore(1, 1, 4000).Key, TPSize: 1})
	for range DecodePeerMessages + 10 {
		r.s.Message(1, r.s.Now(), long)
	}
	if a := r.ask(2, pingOf(5)); !a.OK {
		t.Fatal("the others are not served")
	}
	v := r.sync()
	if v.Overflowed != 10 || v.Counts.Refused[core.FailQueueFull] != 10 {
		t.Fatalf("%d beyond the bound, %d refused", v.Overflowed, v.Counts.Refused[core.FailQueueFull])
	}
	release()
	r.decoded()
}

func TestStatusPages(t *testing.T) {
	r := newRig(t, nil)
	for id := core.InstanceID(1); id <= 25; id++ {
		r.ask(core.Peer(id), engineOf(id))
	}
	for id := core.InstanceID(1); id <= 25; id += 5 {
		r.ask(core.Peer(id), wire.Request{Type: wire.UnregisterEngineDriven, Instance: id})
	}
	seen := map[core.InstanceID]bool{}
	for cursor, pages := 0, 0; cursor >= 0; pages++ {
		list, next, err := r.s.Instances(context.Background(), core.EngineDriven, cursor, 7)
		if err != nil || pages > 5 {
			t.Fatal(err, pages)
		}
		for _, i := range list {
			if seen[i.Instance] || i.Window != core.DefaultGrace {
				t.Fatalf("%+v", i)
			}
			seen[i.Instance] = true
		}
		cursor = next
	}
	if len(seen) != 20 || seen[1] || !seen[2] {
		t.Fatalf("%d seen", len(seen))
	}
	if v := r.sync(); v.EngineDriven != 20 || v.Load.Stopping {
		t.Fatalf("%+v", v)
	}
}

// A shutdown lets a transfer end, refuses what is new, closes every context,
// and says that nothing was held.
func TestAShutdownLetsWorkEnd(t *testing.T) {
	leaks(t)
	r := newRig(t, nil)
	for id := core.InstanceID(1); id <= 3; id++ {
		r.ask(core.Peer(id), registerOf(id))
	}
	r.memory.mu.Lock()
	r.memory.hold = func(k core.InputKind) bool { return k == core.InputCopied }
	r.memory.mu.Unlock()
	r.send(1, transferOf(wire.Store, 1, 5, 2))
	r.sync()
	ended := make(chan Ending)
	go func() {
		e, err := r.s.Shutdown(context.Background())
		if err != nil {
			t.Error(err)
		}
		ended <- e
	}()
	for !r.sync().Stopping {
		time.Sleep(time.Millisecond)
	}
	r.send(2, transferOf(wire.Store, 2, 9, 1)) // new work
	if a := r.ask(3, pingOf(3)); !a.OK {
		t.Fatal("a ping is not answered while the server drains")
	}
	if v := r.sync(); v.Counts.Refused[core.FailStopping] != 1 {
		t.Fatalf("%d refused", v.Counts.Refused[core.FailStopping])
	}
	r.memory.release()
	if _, a := r.reply(); a.Type != wire.Store || !a.OK {
		t.Fatalf("the store's answer is lost: %+v", a)
	}
	e := <-ended
	if e.Code != core.ExitOrderly || e.Contexts != 0 || r.memory.closed != 3 || e.String() != "nothing was held" {
		t.Fatalf("%v, %d closed", e, r.memory.closed)
	}
	if _, err := r.s.Status(context.Background()); err != ErrStopped {
		t.Fatalf("a server that ended answers: %v", err)
	}
	r.s.Message(1, 0, frames(pingOf(1))) // nobody there, and nothing happens
	r.s.Ended(core.Input{Kind: core.InputCopied})
}

// A close that hangs ends the shutdown after its bound, by name.
func TestAShutdownIsBounded(t *testing.T) {
	leaks(t)
	r := newRig(t, nil)
	r.ask(1, registerOf(1))
	r.memory.mu.Lock()
	r.memory.hold = func(k core.InputKind) bool { return k == core.InputReleased }
	r.memory.mu.Unlock()
	ended := make(chan Ending)
	go func() { e, _ := r.s.Shutdown(context.Background()); ended <- e }()
	var e Ending
	for wait := true; wait; {
		select {
		case e = <-ended:
			wait = false
		default:
			r.mock.Add(time.Second)
		}
	}
	if e.Code != core.ExitBounded || e.Contexts != 1 || len(e.Held) != 1 || e.Held[0].Instance != 1 || e.HeldBytes != testBlocks*testBlockBytes {
		t.Fatalf("%+v", e)
	}
	if want := "1 contexts with 65536 bytes were still held: instance 1 (releasing, mapping 1, 65536 bytes)"; e.String() != want {
		t.Fatal(e)
	}
}

// A second signal ends it at once, and what was being opened is named too.
func TestAShutdownThatIsCutShort(t *testing.T) {
	leaks(t)
	r := newRig(t, nil)
	r.ask(1, registerOf(1))
	r.memory.mu.Lock()
	r.memory.hold = func(core.InputKind) bool { return true }
	r.memory.mu.Unlock()
	r.send(2, registerOf(2))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	e, err := r.s.Shutdown(ctx)
	if err != context.DeadlineExceeded || e.Code != core.ExitBounded || e.Contexts != 2 || e.Held[1].State != "being opened" {
		t.Fatalf("%+v %v", e, err)
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	cfg := testConfig()
	cfg.Reap = time.Second
	if _, err := NewServer(ServerOptions{Config: cfg}); err == nil {
		t.Error("a window of a second")
	}
	if _, err := NewServer(ServerOptions{Config: testConfig()}); err == nil {
		t.Error("no memory")
	}
	memory := func(Slots, func(core.Input)) (core.Memory, error) { return nil, fmt.Errorf("no device") }
	if _, err := NewServer(ServerOptions{Config: testConfig(), Memory: memory}); err == nil || err.Error() != "loop: memory: no device" {
		t.Error(err)
	}
	if _, err := NewServer(ServerOptions{Config: testConfig(), Memory: memory, Pool: make([]byte, 10)}); err == nil {
		t.Error("a pool that is too small")
	}
}
