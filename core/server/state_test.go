package server

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// busyWorld brings a server into a state that has something of everything.
func busyWorld(t testing.TB) *world {
	cfg := testConfig()
	cfg.NormalSlots, cfg.AffinityLanes = 2, 2
	w := newWorld(t, cfg)
	for id := core.InstanceID(1); id <= 3; id++ {
		w.register(id)
		w.ping(id)
		w.send(core.Peer(id), wire.Request{Type: wire.RegisterRope, Instance: id, HeadSize: 64})
	}
	w.registerEngine(4)
	w.store(1, 1, 3)
	w.store(1, 2, 1)
	w.send(8, lookupRequest("look", 1, 2))
	w.send(4, wire.Request{Type: wire.PrepareStore, Instance: 4, Key: keyOf(3, 2, "r")})
	w.send(4, wire.Request{Type: wire.CommitStore, Instance: 4, Key: keyOf(3, 1, "r")})
	w.send(4, wire.Request{Type: wire.PrepareRetrieve, Instance: 4, Key: keyOf(3, 1, "r")})
	w.holdCloses, w.holdCopies, w.holdOpens = true, true, true
	w.now += 140 * second
	w.ping(2)
	w.fire(core.TimerKey{Kind: core.TimerScan})
	w.fire(core.TimerKey{Kind: core.TimerReaperStep}) // 1 is being closed, 3 waits behind it
	w.store(2, 4, 2)
	w.store(2, 5, 1) // waits in the lane
	for _, id := range []string{"a", "b"} {
		w.send(9, wire.Request{Type: wire.WaitPrefetchStatus, RequestID: []byte(id), Timeout: time.Minute})
	}
	w.ping(2)                                // waits for a slot of NORMAL
	w.send(5, registerRequest(5, testModel)) // holds the main loop
	w.send(6, registerRequest(6, "other"))   // waits in the inbox
	w.ping(5)
	return w
}

// goOn plays the same rest of the story on a server and returns what it wrote.
func (w *world) goOn() string {
	w.endOpen(0, core.NoFailure)
	w.until(w.now)
	w.endCopy(core.NoFailure)
	w.endClose(0, core.NoFailure)
	w.until(w.now + 10*second)
	w.endOpen(0, core.NoFailure)
	w.until(w.now + 80*second)
	w.endClose(0, core.NoFailure)
	w.send(9, lookupRequest("a", 1, 3))
	w.endCopy(core.NoFailure)
	w.send(4, wire.Request{Type: wire.CommitRetrieve, Instance: 4, Key: keyOf(3, 1, "r")})
	w.until(w.now + 200*second)
	w.feed(core.Input{Kind: core.InputStop})
	w.until(w.now + 100*second)
	return fmt.Sprint(w.log, w.replies, w.left)
}

// fork gives the clone of a server a world of its own, in the same state.
func (w *world) fork() *world {
	f := *w
	f.s, f.out = w.s.Clone(), core.Effects{}
	f.timers = append([]core.ArmEffect(nil), w.timers...)
	f.opens = append([]core.OpenOrder(nil), w.opens...)
	f.closes = append([]core.CloseOrder(nil), w.closes...)
	f.copies = append([]core.CopyOrder(nil), w.copies...)
	f.log, f.replies = append([]core.Record(nil), w.log...), append([]reply(nil), w.replies...)
	return &f
}

func TestACloneIsIndependent(t *testing.T) {
	w := busyWorld(t)
	print, log := w.s.Fingerprint(w.now), fmt.Sprint(w.log)
	first, second := w.fork(), w.fork()
	one := first.goOn()
	if got := w.s.Fingerprint(w.now); got != print || fmt.Sprint(w.log) != log {
		t.Fatal("the clone's steps changed the original")
	}
	if second.s.Fingerprint(w.now) != print {
		t.Fatal("the clone's steps changed another clone")
	}
	if two := second.goOn(); two != one {
		t.Fatal("two clones went on differently")
	}
	if three := w.goOn(); three != one {
		t.Fatal("the original went on differently")
	}
}

func TestResetIsNew(t *testing.T) {
	w := busyWorld(t)
	w.goOn()
	w.s.Reset(w.s.cfg)
	fresh := New(w.s.cfg)
	if w.s.Fingerprint(0) != fresh.Fingerprint(0) {
		t.Fatal("something of the earlier life stayed")
	}
	again := &world{t: t, s: w.s, now: 1000 * second, decoder: w.decoder}
	again.feed(core.Input{Kind: core.InputStart})
	for id := core.InstanceID(1); id <= 3; id++ {
		again.register(id)
		again.store(id, uint32(id), 2)
	}
	if v := again.context(core.ServerDriven, 3); v.Incarnation != 3 {
		t.Fatalf("%+v", v)
	}
}

// A state's fold does not depend on when it is reached, nor on names that only
// serve to be compared.
func TestTheSameHistoryLaterFoldsTheSame(t *testing.T) {
	first := busyWorld(t)
	cfg := first.s.cfg
	w := newWorld(t, cfg)
	// Another past, all of it over: other ops, incarnations, mappings, slots.
	w.register(77)
	w.store(77, 9, 2)
	w.send(77, idRequest(wire.UnregisterKVCache, 77))
	w.send(77, wire.Request{Type: wire.Clear})
	if w.s.Fingerprint(w.now) == newWorld(t, cfg).s.Fingerprint(1000*second) {
		t.Fatal("a bound lane is behaviour") // 77 took the first lane
	}

	cfg.AffinityLanes = 1
	prints := map[core.Digest]bool{}
	for _, past := range []bool{false, true} {
		w := newWorld(t, cfg)
		if past {
			w.register(77)
			w.store(77, 9, 2)
			w.send(77, idRequest(wire.UnregisterKVCache, 77))
			w.send(77, wire.Request{Type: wire.Clear})
			w.until(w.now + 60*second)
		} else {
			w.until(w.now)
		}
		w.register(1)
		w.ping(1)
		w.store(1, 1, 2)
		w.registerEngine(2)
		w.send(2, wire.Request{Type: wire.PrepareStore, Instance: 2, Key: keyOf(3, 1, "r")})
		w.after(7 * time.Second)
		prints[w.s.Fingerprint(w.now)] = true
	}
	if len(prints) != 1 {
		t.Fatal("the past shows in the fold")
	}
}

func TestWhatDiffersFoldsDifferently(t *testing.T) {
	base := func() *world {
		w := newWorld(t, testConfig())
		w.register(1)
		w.register(2)
		w.after(time.Second)
		return w
	}
	stories := map[string]func(w *world){
		"nothing":     func(*world) {},
		"latch":       func(w *world) { w.ping(1) },
		"other latch": func(w *world) { w.ping(2) },
		"stamp":       func(w *world) { w.register(1) },
		"later":       func(w *world) { w.now++ },
		"rope":        func(w *world) { w.send(1, wire.Request{Type: wire.RegisterRope, Instance: 1, HeadSize: 64}) },
		"chunk":       func(w *world) { w.store(1, 1, 1) },
		"session":     func(w *world) { w.send(1, lookupRequest("r", 1, 1)) },
		"held":        func(w *world) { w.holdOpens = true; w.send(3, registerRequest(3, testModel)) },
		"inbox":       func(w *world) { w.holdOpens = true; w.send(3, registerRequest(3, testModel)); w.ping(1) },
		"removed":     func(w *world) { w.send(1, idRequest(wire.UnregisterKVCache, 1)) },
		"reordered": func(w *world) {
			w.send(1, idRequest(wire.UnregisterKVCache, 1))
			w.now -= second
			w.register(1)
			w.now += second
		},
		"stopping": func(w *world) { w.holdCloses = true; w.feed(core.Input{Kind: core.InputStop}) },
	}
	seen := map[core.Digest]string{}
	for name, tell := range stories {
		w := base()
		tell(w)
		print := w.s.Fingerprint(w.now)
		if other, ok := seen[print]; ok {
			t.Fatalf("%q and %q fold the same", name, other)
		}
		seen[print] = name
	}
}

// stepper drives one server with prepared inputs, for what is measured.
type stepper struct {
	s   *Server
	out core.Effects
	now core.Time
	in  core.Input
	r   wire.Request
}

func newStepper(cfg core.ServerConfig, workers int) *stepper {
	p := &stepper{s: New(cfg), now: second}
	p.step(core.Input{Kind: core.InputStart})
	for id := 1; id <= workers; id++ {
		r := registerRequest(core.InstanceID(id), testModel)
		p.r = r
		p.send()
		p.step(core.Input{Kind: core.InputOpened, Op: p.s.enrolments.entries[p.s.enrolments.first()].op, Bytes: 1})
		p.step(core.Input{Kind: core.InputTimer, Timer: core.TimerKey{Kind: core.TimerMainStep}})
	}
	return p
}

func (p *stepper) step(in core.Input) {
	p.in = in
	p.out.Reset()
	p.s.Step(p.now, &p.in, &p.out)
}

func (p *stepper) send() {
	p.r.UID, p.r.RawType = p.uid(), rawTypes[p.r.Type:p.r.Type+1]
	p.step(core.Input{Kind: core.InputFrames, Peer: 1, Arrived: p.now, Decoded: &p.r})
}

var uidByte = []byte{1}
var rawTypes = func() []byte {
	b := make([]byte, 64)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}()

func (p *stepper) uid() []byte { return uidByte }

// prepared returns a transfer of a prompt with its chunks hashed.
func prepared(kind wire.Type, id core.InstanceID, prompt uint32, n int) wire.Request {
	r := transferRequest(kind, id, prompt, n)
	r.Key.Chunks = chunksOf(r.Key)
	return r
}

// storeAndRetrieve is one store of a new prompt and one retrieve of it.
func (p *stepper) storeAndRetrieve(turn uint64) {
	for i := range p.r.Key.Chunks {
		binary.LittleEndian.PutUint64(p.r.Key.Chunks[i].Hash[:], turn)
	}
	for _, kind := range []wire.Type{wire.Store, wire.Retrieve} {
		p.r.Type = kind
		p.send()
		for i := range p.s.jobs.jobs {
			if j := &p.s.jobs.jobs[i]; j.state == jobCopying {
				p.step(core.Input{Kind: core.InputCopied, Op: j.op})
			}
		}
	}
}

func TestTheHotPathDoesNotAllocate(t *testing.T) {
	cfg := testConfig()
	cfg.L1Bytes = 8 * testChunkBytes // stores evict
	p := newStepper(cfg, 100)
	id := core.InstanceID(0)
	ping := func() {
		id = id%100 + 1
		p.now++
		p.r = wire.Request{Type: wire.Ping, Instance: id}
		p.send()
	}
	transfer := prepared(wire.Store, 1, 1, 2)
	turn := uint64(0)
	transfers := func() {
		p.r = transfer
		turn++
		p.storeAndRetrieve(turn)
	}
	waits := func() { // pings that wait for the main loop
		p.r = wire.Request{Type: wire.Ping, Instance: 1}
		p.s.main.held = true
		for range 10 {
			p.send()
		}
		p.s.main.held = false
		p.send()
	}
	for name, f := range map[string]func(){"ping": ping, "transfers": transfers, "waiting pings": waits} {
		for range 1000 {
			f()
		}
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if p.s.Load().Chunks == 0 {
		t.Fatal("nothing was stored")
	}
}

func TestAScanDoesNotAllocate(t *testing.T) {
	p := newStepper(testConfig(), 1000)
	scan := core.Input{Kind: core.InputTimer, Timer: core.TimerKey{Kind: core.TimerScan}}
	if n := testing.AllocsPerRun(100, func() { p.step(scan) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkPing(b *testing.B) {
	p := newStepper(testConfig(), 16)
	id := core.InstanceID(0)
	b.ReportAllocs()
	p.r = wire.Request{Type: wire.Ping, Instance: 1}
	p.send()
	for b.Loop() {
		id = id%16 + 1
		p.now++
		p.r.Instance = id
		p.out.Reset()
		p.s.Step(p.now, &p.in, &p.out)
	}
}

func BenchmarkStoreAndRetrieve(b *testing.B) {
	cfg := testConfig()
	cfg.L1Bytes = 1000 * testChunkBytes
	p := newStepper(cfg, 16)
	p.r = prepared(wire.Store, 1, 1, 2)
	turn := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		turn++
		p.storeAndRetrieve(turn)
	}
}

func BenchmarkScan100000(b *testing.B) {
	p := newStepper(testConfig(), 100_000)
	scan := core.Input{Kind: core.InputTimer, Timer: core.TimerKey{Kind: core.TimerScan}}
	b.ReportAllocs()
	for b.Loop() {
		p.step(scan)
	}
}

func BenchmarkNew(b *testing.B) {
	cfg := testConfig()
	b.ReportAllocs()
	for b.Loop() {
		New(cfg)
	}
}

func BenchmarkReset(b *testing.B) {
	p := newStepper(testConfig(), 16)
	cfg := testConfig()
	b.ReportAllocs()
	for b.Loop() {
		p.s.Reset(cfg)
		p.step(core.Input{Kind: core.InputStart})
	}
}

func BenchmarkClone(b *testing.B) {
	w := busyWorld(b)
	b.ReportAllocs()
	for b.Loop() {
		w.s.Clone()
	}
}

func BenchmarkFingerprint(b *testing.B) {
	w := busyWorld(b)
	b.ReportAllocs()
	for b.Loop() {
		w.s.Fingerprint(w.now)
	}
}
