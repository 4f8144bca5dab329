package worker

import (
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// wholeLife is one life, as steps that a test can stop after.
var wholeLife = []func(d *desk){
	func(d *desk) { d.register() },
	func(d *desk) { d.answer(d.last(wire.RegisterKVCache), wire.Reply{}) },
	func(d *desk) { d.retrieve(1, 5, 6) },
	func(d *desk) { d.settle() },
	func(d *desk) { d.store(2) },
	func(d *desk) { d.answer(d.last(wire.Store), wire.Reply{OK: true, Data: []byte{}}) },
	func(d *desk) { d.pass(10 * time.Second) },
	func(d *desk) { d.retrieve(3, 9) },
	func(d *desk) { d.finished() },
	func(d *desk) { d.pass(10 * time.Second) },
	func(d *desk) { d.answer(d.last(wire.Ping), yes) },
	func(d *desk) { d.settle() },
	func(d *desk) { d.answer(d.last(wire.RegisterKVCache), wire.Reply{}) },
	func(d *desk) { d.settle() },
	func(d *desk) { d.retrieve(4, 1) },
	func(d *desk) { d.pass(10 * time.Second) },
	func(d *desk) { d.call(core.Call{Kind: core.CallShutdown}) },
	func(d *desk) { d.pass(core.JoinBound) },
	func(d *desk) { d.answer(d.last(wire.UnregisterKVCache), wire.Reply{}) },
}

// A clone goes on like its original and leaves it alone.
func TestACloneIsIndependent(t *testing.T) {
	for stop := range wholeLife {
		d := newDesk(t)
		for _, act := range wholeLife[:stop] {
			act(d)
		}
		original, before := d.w, d.w.Fingerprint(d.now)
		d.w = original.Clone()
		if d.w.Fingerprint(d.now) != before {
			t.Fatalf("after %d steps a clone has another fingerprint", stop)
		}
		now, records := d.now, len(d.records)
		for _, act := range wholeLife[stop:] {
			act(d)
		}
		if original.Fingerprint(now) != before {
			t.Fatalf("a clone's life from step %d changed its original", stop)
		}
		whole := newDesk(t)
		for _, act := range wholeLife {
			act(whole)
		}
		d.story(records, whole.kinds(records)...)
	}
}

// protectedLife is one life in which every protection acts.
var protectedLife = []func(d *desk){
	func(d *desk) { d.register() },
	func(d *desk) { d.answer(d.last(wire.RegisterKVCache), wire.Reply{}) },
	func(d *desk) { d.settle() },
	func(d *desk) { d.retrieve(1, 5, 6) },
	func(d *desk) {
		d.answer(d.last(wire.Ping), says(wire.PingVerdict{Aware: true, Registered: true, Boot: 7}))
	},
	func(d *desk) { d.store(2) },
	func(d *desk) { d.pass(interval) },
	func(d *desk) { d.retrieve(3, 9) },
	func(d *desk) { d.refuse(d.last(wire.Retrieve), core.FailNotRegistered) },
	func(d *desk) { d.answer(d.last(wire.Ping), says(wire.PingVerdict{Aware: true, Boot: 8})) },
	func(d *desk) { d.settle() },
	func(d *desk) { d.pass(interval) },
	func(d *desk) { d.refuse(d.last(wire.RegisterKVCache), core.FailReleasing) },
	func(d *desk) { d.answer(d.last(wire.Ping), says(wire.PingVerdict{Aware: true, Boot: 8})) },
	func(d *desk) { d.settle() },
	func(d *desk) { d.answer(d.last(wire.RegisterKVCache), wire.Reply{}) },
	func(d *desk) { d.finished() },
	func(d *desk) { d.retrieve(4, 1) },
	func(d *desk) { d.refuse(d.last(wire.Retrieve), core.FailNotRegistered) },
	func(d *desk) { d.pass(time.Second) },
	func(d *desk) { d.answer(d.last(wire.Ping), yes) },
	func(d *desk) { d.settle() },
	func(d *desk) { d.call(core.Call{Kind: core.CallShutdown}) },
	func(d *desk) { d.settle() },
	func(d *desk) { d.pass(core.JoinBound) },
	func(d *desk) { d.refuse(d.last(wire.UnregisterKVCache), core.FailStopping) },
}

// The same with every protection on.
func TestAProtectedCloneIsIndependent(t *testing.T) {
	seen := map[core.Digest]int{}
	for stop := range protectedLife {
		d := newDesk(t, hardened)
		for _, act := range protectedLife[:stop] {
			act(d)
		}
		original, before := d.w, d.w.Fingerprint(d.now)
		if step, known := seen[before]; known {
			t.Fatalf("after %d and %d steps it folds alike", step, stop)
		}
		seen[before] = stop
		d.w = original.Clone()
		now, records := d.now, len(d.records)
		for _, act := range protectedLife[stop:] {
			act(d)
		}
		if original.Fingerprint(now) != before {
			t.Fatalf("a clone's life from step %d changed its original", stop)
		}
		whole := newDesk(t, hardened)
		for _, act := range protectedLife {
			act(whole)
		}
		if d.story(records, whole.kinds(records)...); !d.left {
			t.Fatal("the life did not end")
		}
	}
}

// What the protections remember is told apart, each by itself.
func TestFingerprintsTellProtectedStatesApart(t *testing.T) {
	fresh := func() *desk {
		d := serving(t, known, hardened)
		d.pass(interval)
		d.retrieve(2, 5)
		return d
	}
	same := fresh()
	for name, change := range map[string]func(d *desk){
		"the server's life":               func(d *desk) { d.w.boot++ },
		"the warning":                     func(d *desk) { d.w.warned = true },
		"the wish to register again":      func(d *desk) { d.w.beat.again = true },
		"a request's deadline":            func(d *desk) { d.w.pending.at(d.w.pending.active.head).due++ },
		"the deadline's timer":            func(d *desk) { d.w.sweep.at++ },
		"that there is such a timer":      func(d *desk) { d.w.sweep = sweep{} },
		"a request older than its ping":   func(d *desk) { d.w.beat.uid = d.w.nextUID },
		"a ping older than the register":  func(d *desk) { d.w.enrolled = d.w.beat.uid + 1 },
		"all older than the register":     func(d *desk) { d.w.enrolled = d.w.nextUID },
		"a recovery beside the heartbeat": func(d *desk) { d.w.beat.recovery = registration{stage: enrolMemory, due: d.now + 9} },
		"the server's window":             func(d *desk) { d.w.window++ },
		"what is held":                    func(d *desk) { d.w.unsettled = true },
		"that the server cannot be asked": func(d *desk) { d.w.unasked = true },
		"that the server says nothing":    func(d *desk) { d.w.mute = true },
		"what was asked of it":            func(d *desk) { d.w.asked = settling{true, 99, 99} },
		"that it was asked":               func(d *desk) { d.w.asked = settling{true, 99, 0} },
		"a protection":                    func(d *desk) { d.w.cfg.Protections.PingThroughRecovery = false },
	} {
		d := fresh()
		if d.w.Fingerprint(d.now) != same.w.Fingerprint(same.now) {
			t.Fatal("one story, two fingerprints")
		}
		if change(d); d.w.Fingerprint(d.now) == same.w.Fingerprint(same.now) {
			t.Errorf("%s is not folded", name)
		}
	}
	d, e := fresh(), fresh()
	d.w.beat.recovery = registration{stage: enrolMemory, due: d.now + 9}
	e.w.beat.recovery = registration{stage: enrolMemory, due: d.now + 8}
	if d.w.Fingerprint(d.now) == e.w.Fingerprint(e.now) {
		t.Error("a recovery's deadline is not folded")
	}
}

// The exports of a clone do not lie in its original's buffers.
func TestACloneOwnsItsMemory(t *testing.T) {
	d := registered(t)
	d.retrieve(1, 5)
	c := d.w.Clone()
	before := c.Fingerprint(d.now)
	d.w.memory.bytes[0] ^= 1
	d.w.memory.numbers[0]++
	d.w.pending.entries[0].blocks[0] = 99
	d.w.names[0] ^= 1
	if c.Fingerprint(d.now) != before {
		t.Fatal("the clone shares a buffer")
	}
}

// Two lives that differ in when they were lived and in how much was numbered
// before fold alike.
func TestFingerprintsForgetNames(t *testing.T) {
	early, late := registered(t), registered(t)
	late.now += core.Time(time.Hour)
	early.store(1)
	late.store(1)
	for range 5 { // five pings more, and their uids
		late.settle()
		late.answer(late.last(wire.Ping), yes)
		late.pass(10 * time.Second)
	}
	early.settle()
	for _, d := range []*desk{early, late} {
		d.answer(d.last(wire.Store), wire.Reply{OK: true, Data: []byte{}})
		d.finished()
		d.settle()
	}
	early.retrieve(2)
	late.retrieve(77)
	if early.w.Fingerprint(early.now) != late.w.Fingerprint(late.now) {
		t.Fatal("the same behaviour, two fingerprints")
	}
	for _, of := range []wire.Type{wire.Ping, wire.Retrieve, wire.Store} {
		a, b := early.last(of), late.last(of)
		if early.w.Canonical(uidOf(a)) != late.w.Canonical(uidOf(b)) {
			t.Fatalf("the %s in flight has two names", of)
		}
	}
	if early.w.Canonical(uidOf(early.last(wire.Ping))) == 0 || early.w.Canonical(uidOf(early.last(wire.Store))) != 0 {
		t.Fatal("a ping is waited for, an answered store is not")
	}
}

func uidOf(m message) uint64 {
	var r wire.Reply
	var f core.Frames
	wire.EncodeReply(&f, m.UID, m.RawType, m.Type, &wire.Reply{Nil: true})
	wire.DecodeReply(&f, &r)
	return r.UIDNumber
}

// Every step of a life that changes what comes next changes the fingerprint.
func TestFingerprintsTellStatesApart(t *testing.T) {
	d := newDesk(t)
	seen := map[core.Digest]int{}
	for i, act := range wholeLife {
		act(d)
		f := d.w.Fingerprint(d.now)
		if before, known := seen[f]; known {
			t.Fatalf("steps %d and %d fold alike", before, i)
		}
		seen[f] = i
	}
	a, b := registered(t), registered(t)
	a.retrieve(1, 5)
	b.retrieve(1, 6)
	if a.w.Fingerprint(a.now) == b.w.Fingerprint(b.now) {
		t.Fatal("the blocks of a pending retrieve are not folded")
	}
	b = registered(t)
	b.retrieve(1, 5)
	b.now++
	if a.w.Fingerprint(a.now) == b.w.Fingerprint(b.now) {
		t.Fatal("the time to the next timer is not folded")
	}
}

// A worker that is used again is as good as new.
func TestResetIsNew(t *testing.T) {
	d := newDesk(t)
	for _, act := range wholeLife[:15] {
		act(d)
	}
	cfg := core.DefaultWorkerConfig()
	cfg.Model, cfg.Salt = "other", "salt"
	d.w.Reset(cfg)
	if d.w.Fingerprint(0) != New(cfg).Fingerprint(0) {
		t.Fatal("something of the last life is left")
	}
	for stop := range protectedLife {
		d = newDesk(t, hardened)
		for _, act := range protectedLife[:stop] {
			act(d)
		}
		d.w.Reset(d.w.cfg)
		if d.w.Fingerprint(0) != New(d.w.cfg).Fingerprint(0) || d.w.enrolled != 0 || d.w.boot != 0 {
			t.Fatalf("something of a life of %d steps is left", stop)
		}
	}
}
