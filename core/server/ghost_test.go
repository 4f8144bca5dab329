package server

import (
	"slices"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// B8: what nobody waits for any more does not come into being.

func hardenedWorld(t *testing.T) *world {
	cfg := testConfig()
	cfg.Protections = core.Hardened()
	return newWorld(t, cfg)
}

func TestARegisterPastItsDeadlineIsRefused(t *testing.T) {
	w := hardenedWorld(t)
	long := w.now.Add(-core.DefaultTimeout - time.Second)
	w.sendAt(1, registerRequest(1, testModel), long)
	if r := w.last(); r.Refusal != core.FailDeadline {
		t.Fatalf("server-driven: %+v", r)
	}
	w.sendAt(2, engineRequest(2), long)
	if r := w.last(); r.Refusal != core.FailDeadline {
		t.Fatalf("engine-driven: %+v", r)
	}
	w.gone(core.ServerDriven, 1)
	w.gone(core.EngineDriven, 2)
	w.sendAt(2, engineRequest(2), w.now.Add(-core.DefaultTimeout))
	w.context(core.EngineDriven, 2)
}

// A connection that closes takes back the register that would be answered over
// it, whether its memory is being opened or it waits; and nothing else, for
// its worker may live.
func TestAClosedConnectionTakesItsRegisterBack(t *testing.T) {
	w := hardenedWorld(t)
	w.register(1)
	w.registerEngine(1)
	w.holdOpens = true
	w.send(5, registerRequest(5, testModel))
	again := registerRequest(5, testModel)
	again.Exports[0].Handle = []byte("/other")
	w.send(5, again) // waits for the one before it
	w.send(6, registerRequest(6, testModel))
	w.feed(core.Input{Kind: core.InputClosed, Peer: 5})
	w.feed(core.Input{Kind: core.InputClosed, Peer: 1})
	opens := len(w.opens)
	w.holdOpens = false
	for _, o := range slices.Clone(w.opens) {
		w.feed(core.Input{Kind: core.InputOpened, Op: o.Op, Bytes: 1 << 20})
	}
	w.after(time.Second)
	w.gone(core.ServerDriven, 5)
	if len(w.opens) != opens {
		t.Fatal("what waited is opened all the same")
	}
	w.count(core.CloseEnded, 5, 1)
	w.context(core.ServerDriven, 6)
	w.context(core.ServerDriven, 1)
	w.context(core.EngineDriven, 1)
}

// A proof of death is a reap like any other in the count of its id's (A20).
func TestAProofOfDeathIsCounted(t *testing.T) {
	w := hardenedWorld(t)
	w.register(1)
	w.feed(core.Input{Kind: core.InputExited, Peer: 1})
	if r := w.one(core.ContextRemoved, 1); core.RemovalCause(r.A) != core.RemovedByProof || r.B != 1 {
		t.Fatalf("%+v", r)
	}
}

// B16: the age of the last transfer is told apart from that of the last ping.
func TestProgressIsTheLastTransfers(t *testing.T) {
	w := hardenedWorld(t)
	w.register(1)
	w.ping(1)
	if v := w.context(core.ServerDriven, 1); v.Transferred {
		t.Fatalf("%+v", v)
	}
	w.after(time.Second)
	w.store(1, 1, 1)
	moved := w.now
	w.after(time.Minute)
	w.ping(1)
	w.send(1, wire.Request{Type: wire.Noop})
	if v := w.context(core.ServerDriven, 1); !v.Transferred || v.LastMoved != moved || v.LastSeen != w.now {
		t.Fatalf("%+v, moved at %d", v, moved)
	}
}

// Registers that wait for something of their own instance are bounded; what
// waits already is served, and what waits for a place does not count.
func TestWhatWaitsForItsOwnInstanceIsBounded(t *testing.T) {
	w := hardenedWorld(t)
	w.holdOpens = true
	w.send(1, registerRequest(1, testModel))
	for range int(ownBounds[core.BoundParked]) {
		w.send(2, registerRequest(1, testModel))
	}
	if n := len(w.replies); n != 0 {
		t.Fatalf("%d answers before the memory is open", n)
	}
	w.send(3, registerRequest(1, testModel))
	if r := w.last(); r.Refusal != core.FailQueueFull {
		t.Fatalf("%+v", r)
	}
	w.ping(9) // holds up nobody else
	if r := w.last(); !r.OK {
		t.Fatalf("%+v", r)
	}
	w.endOpen(0, core.NoFailure)
	w.until(w.now)
	if n := len(w.replies); n != int(ownBounds[core.BoundParked])+3 {
		t.Fatalf("%d answers", n)
	}
}
