package worker

import (
	"testing"

	"vigil/core"
	"vigil/core/wire"
)

// B21: what was sent is on its way to the server, whatever the health says. A
// document worker reports it as ended, and its blocks are used again under the
// copy that still comes; with keep-blocks it ends by its reply.
func TestWhatWasSentKeepsItsBlocksThroughAnOutage(t *testing.T) {
	for _, keep := range []bool{false, true} {
		d := serving(t, wire.PingVerdict{}, func(c *core.WorkerConfig) { c.Protections.KeepBlocks = keep })
		d.retrieve(2, 5)
		sent := d.last(wire.Retrieve)
		d.pass(2 * interval) // a ping without an answer
		d.settle()
		if d.w.Healthy() {
			t.Fatal("a failed ping left the worker healthy")
		}
		told := d.finished()
		if !keep {
			d.told(told[0], 2, core.OutcomeFailed, 5)
			continue
		}
		if len(told) != 0 || d.w.Pending() != 1 {
			t.Fatalf("given up although it may still be carried out: %v", told)
		}
		d.answer(sent, wire.Reply{OK: true, Data: []byte{}})
		if told = d.finished(); len(told) != 1 || told[0].Request != 2 || d.w.Pending() != 0 {
			t.Fatalf("after the reply: %v, %d pending", told, d.w.Pending())
		}
	}
}

// overdue is a hardened worker whose retrieve 2 and store 3 have passed their
// deadline, and whose engine was told so. Its pings are answered all the while.
func overdue(t *testing.T, verdict wire.PingVerdict) *desk {
	d := serving(t, verdict, hardened)
	d.retrieve(2, 5)
	d.store(3)
	for range 31 {
		d.settle()
		d.answer(d.last(wire.Ping), says(verdict))
		d.pass(interval)
	}
	return d
}

// At its deadline a request ends for the engine, once, and its blocks do not:
// they are free when the server says that it does nothing any more.
func TestBlocksOfAnOverdueRequestAreHeldUntilTheServerSaysSo(t *testing.T) {
	d := overdue(t, known)
	told := d.finished()
	if len(told) != 2 || d.w.Pending() != 0 || d.w.Held() != 2 {
		t.Fatalf("told %v, %d pending, %d held", told, d.w.Pending(), d.w.Held())
	}
	d.told(told[0], 2, core.OutcomeHeld, 5)
	d.told(told[1], 3, core.OutcomeHeld)
	retrieve, ask := d.last(wire.Retrieve), d.last(wire.Settle)
	if ask.Instance != d.w.Instance() || ask.Before <= d.last(wire.Store).UIDNumber {
		t.Fatalf("asked of %v before %d", ask.Instance, ask.Before)
	}
	d.answer(ask, wire.Reply{Indices: []int64{int64(retrieve.UIDNumber)}})
	if told = d.finished(); len(told) != 1 {
		t.Fatalf("told %v, and the retrieve is still under way", told)
	}
	d.told(told[0], 3, core.OutcomeFreed)
	asked := d.count(wire.Settle)
	d.settle()
	d.answer(d.last(wire.Ping), says(known))
	if d.count(wire.Settle) != asked+1 {
		t.Fatal("it does not ask again behind a ping")
	}
	d.answer(d.last(wire.Settle), wire.Reply{})
	if told = d.finished(); len(told) != 1 || d.w.Held() != 0 {
		t.Fatalf("told %v, %d held", told, d.w.Held())
	}
	d.told(told[0], 2, core.OutcomeFreed)
	asked = d.count(wire.Settle)
	d.pass(interval)
	d.settle()
	d.answer(d.last(wire.Ping), says(known))
	if d.count(wire.Settle) != asked {
		t.Fatal("it asks about nothing")
	}
}

// What else says that a request is over: its own late reply, another life of
// the server, and a server that cannot say it.
func TestWhatFreesHeldBlocks(t *testing.T) {
	for name, story := range map[string]func(d *desk){
		"its reply":   func(d *desk) { d.answer(d.last(wire.Retrieve), wire.Reply{OK: true, Data: []byte{}}) },
		"its refusal": func(d *desk) { d.refuse(d.last(wire.Retrieve), core.FailStale) },
		"a later transfer, where the server does not know the question": func(d *desk) {
			d.refuse(d.last(wire.Settle), core.FailUnsupported)
			d.later()
		},
		"another server": func(d *desk) {
			d.settle()
			d.answer(d.last(wire.Ping), says(wire.PingVerdict{Aware: true, Boot: 8}))
		},
		"a later transfer, at an old server": func(d *desk) {
			d.settle()
			d.answer(d.last(wire.Ping), yes)
			d.later()
		},
	} {
		for _, early := range []bool{false, true} {
			d := overdue(t, wire.PingVerdict{Aware: true, Registered: true, Boot: 7})
			if !early {
				d.finished()
			}
			story(d)
			told := d.finished()
			outcome := core.OutcomeFreed
			if early { // before the engine asked: it never learns of the hold
				outcome = core.OutcomeFailed
			}
			found := false
			for _, tell := range told {
				found = found || tell.Request == 2 && tell.Outcome == outcome
			}
			if !found {
				t.Errorf("%s, before the engine asked: %t: told %v", name, early, told)
			}
		}
	}
}

// later is one more transfer that is carried out.
func (d *desk) later() {
	d.store(9)
	d.answer(d.last(wire.Store), wire.Reply{OK: true, Data: []byte{}})
}

// A server that shuts down may still copy, and what cannot be asked about is
// not free for that: a document server carries out late what hangs there.
func TestWhatIsNotFreedAndWhatIsNotHeld(t *testing.T) {
	d := overdue(t, known)
	d.finished()
	d.refuse(d.last(wire.Settle), core.FailStopping)
	if told := d.finished(); len(told) != 0 || d.w.Held() != 2 {
		t.Fatalf("freed by a server that stops: %v", told)
	}
	d = overdue(t, wire.PingVerdict{})
	if told := d.finished(); len(told) != 2 || told[0].Outcome != core.OutcomeHeld || d.w.Held() != 2 || d.count(wire.Settle) != 0 {
		t.Fatalf("told %v, %d held, asked %d times", told, d.w.Held(), d.count(wire.Settle))
	}
	d.store(9)
	d.refuse(d.last(wire.Store), core.FailQueueFull) // it never came to the others' lane
	if d.w.Held() != 2 {
		t.Fatal("freed by a refusal of another")
	}
	d = overdue(t, known)
	d.finished()
	d.later()
	if d.w.Held() != 2 {
		t.Fatal("a server that can be asked has several lanes, and the connection may have changed")
	}
	d = serving(t, known, hardened, engineDriven)
	d.retrieve(2, 5)
	for range 31 {
		d.settle()
		d.answer(d.last(wire.Ping), says(known))
		d.pass(interval)
	}
	if told := d.finished(); len(told) != 1 || told[0].Outcome != core.OutcomeFailed {
		t.Fatalf("engine-driven: %v", told)
	}
}
