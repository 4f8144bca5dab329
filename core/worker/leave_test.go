package worker

import (
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// Upstream: test_shutdown_stops_heartbeat_before_unregister.
func TestShutdownStopsTheHeartbeatBeforeUnregister(t *testing.T) {
	d := registered(t)
	d.store(1)
	d.settle()
	d.answer(d.last(wire.Store), wire.Reply{OK: true, Data: []byte{}})
	d.answer(d.last(wire.Ping), yes)
	d.finished()
	from := len(d.records)
	d.call(core.Call{Kind: core.CallShutdown})
	d.story(from, core.ShutdownBegan)
	d.settle()
	d.story(from, core.ShutdownBegan, core.HeartbeatStopped, core.UnregisterSent)
	if !d.records[from+1].Flag || d.count(wire.Ping) != 1 {
		t.Fatal("a sleeping heartbeat joins at once and pings no more")
	}
	m := d.last(wire.UnregisterKVCache)
	if m.Instance != d.w.Instance() {
		t.Fatal("other id")
	}
	d.answer(m, wire.Reply{})
	d.story(from, core.ShutdownBegan, core.HeartbeatStopped, core.UnregisterSent, core.UnregisterEnded, core.WorkerStopped)
	if !d.left || d.out.Exit != core.ExitOrderly || !d.wasTold(core.TellShutdown) || len(d.timers) != 0 {
		t.Fatal("it did not leave cleanly")
	}
}

// Upstream: test_shutdown_without_heartbeat_sends_unregister.
func TestShutdownWithoutHeartbeatSendsOneUnregister(t *testing.T) {
	for _, change := range []func(*core.WorkerConfig){func(*core.WorkerConfig) {}, engineDriven, blend} {
		d := newDesk(t, change) // never registered
		d.step(&core.Input{Kind: core.InputStop})
		d.step(&core.Input{Kind: core.InputStop})
		d.call(core.Call{Kind: core.CallShutdown})
		d.store(1) // too late to start a heartbeat
		d.settle()
		if d.count(wire.UnregisterKVCache) != 1 || len(d.sent) != 1 || len(d.saw(core.HeartbeatStarted)) != 0 {
			t.Fatalf("sent %d messages", len(d.sent))
		}
		d.answer(d.last(wire.UnregisterKVCache), wire.Reply{})
		if !d.left {
			t.Fatal("it did not leave")
		}
	}
}

func TestUnregisterHasTheFormOfTheContext(t *testing.T) {
	d := registered(t, engineDriven)
	d.call(core.Call{Kind: core.CallShutdown})
	if d.count(wire.UnregisterEngineDriven) != 1 || d.count(wire.UnregisterKVCache) != 0 {
		t.Fatal("wrong form")
	}
	d = registered(t, blend)
	d.call(core.Call{Kind: core.CallShutdown})
	n := len(d.sent)
	if d.sent[n-2].Type != wire.UnregisterRope || d.sent[n-1].Type != wire.UnregisterKVCache {
		t.Fatal("the rope state must be dropped before the memory")
	}
	d.answer(d.sent[n-1], wire.Reply{})
	if d.left {
		t.Fatal("it left before the rope drop was answered")
	}
	d.answer(d.sent[n-2], wire.Reply{})
	if !d.left {
		t.Fatal("it did not leave")
	}
}

// PROTOCOL 5.5: no answer to UNREGISTER only warns.
func TestUnregisterWithoutAnswerOnlyWarns(t *testing.T) {
	d := registered(t, blend)
	d.call(core.Call{Kind: core.CallShutdown})
	from := len(d.records)
	d.pass(300*time.Second - 1)
	if d.left {
		t.Fatal("left early")
	}
	d.pass(1)
	d.story(from, core.UnregisterEnded, core.UnregisterEnded, core.WorkerWarned, core.WorkerStopped)
	if d.records[from].Failure != core.FailDeadline || !d.left || !d.wasTold(core.TellWarning) {
		t.Fatal("no warning, or it did not leave")
	}
}

// Upstream: test_straggler_cycle_after_stop_skips_callback_and_event. A ping
// in flight outlives the join; its answer then changes nothing.
func TestAStragglerAfterTheStopTouchesNothing(t *testing.T) {
	for _, reply := range []wire.Reply{yes, no} {
		d := unhealthy(t)
		d.pass(10 * time.Second) // a ping is in flight, the worker unhealthy
		registers := d.count(wire.RegisterKVCache)
		from := len(d.records)
		d.call(core.Call{Kind: core.CallShutdown})
		d.settle()
		d.story(from, core.ShutdownBegan) // it waits for the cycle
		d.pass(core.JoinBound)
		d.story(from, core.ShutdownBegan, core.HeartbeatStopped, core.UnregisterSent)
		if d.records[from+1].Flag {
			t.Fatal("it says that it joined")
		}
		d.answer(d.last(wire.Ping), reply)
		d.settle()
		d.story(from, core.ShutdownBegan, core.HeartbeatStopped, core.UnregisterSent, core.PingAnswered)
		if d.w.Healthy() || d.count(wire.RegisterKVCache) != registers || d.timers[core.TimerHeartbeat] != 0 {
			t.Fatal("the straggler set health, registered or slept on")
		}
	}
}

// A cycle whose wait ends within the bound joins.
func TestACycleThatEndsInTimeJoins(t *testing.T) {
	for _, answered := range []bool{true, false} {
		d := registered(t)
		d.store(1)
		d.settle()
		d.answer(d.last(wire.Store), wire.Reply{OK: true, Data: []byte{}})
		d.pass(7 * time.Second)
		from := len(d.records)
		d.call(core.Call{Kind: core.CallShutdown})
		d.pass(2 * time.Second)
		d.story(from, core.ShutdownBegan)
		ended := core.PingAnswered
		if answered {
			d.answer(d.last(wire.Ping), yes)
		} else {
			d.pass(time.Second) // its own deadline
			ended = core.PingFailed
		}
		d.story(from, core.ShutdownBegan, ended, core.HeartbeatStopped, core.UnregisterSent)
		if !d.records[from+2].Flag || !d.w.Healthy() {
			t.Fatal("it did not join, or the stopped cycle cleared the health")
		}
	}
}

// Upstream: test_recover_callback_skips_register_after_stop_requested. The
// stop falls between the cycle's own look at the flag and its callback.
func TestAStopBeforeTheCallbackSkipsIt(t *testing.T) {
	d := unhealthy(t)
	d.pass(10 * time.Second)
	d.answer(d.last(wire.Ping), yes)
	from, registers := len(d.records), d.count(wire.RegisterKVCache)
	d.call(core.Call{Kind: core.CallShutdown})
	d.settle()
	d.story(from, core.ShutdownBegan, core.HeartbeatStopped, core.UnregisterSent)
	if d.w.Healthy() || d.count(wire.RegisterKVCache) != registers {
		t.Fatal("the callback ran after the stop")
	}
}

// The stop falls between the callback's success and the publish.
func TestAStopBeforeThePublishSkipsIt(t *testing.T) {
	d := unhealthy(t)
	d.pass(10 * time.Second)
	d.answer(d.last(wire.Ping), yes)
	d.settle()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.call(core.Call{Kind: core.CallShutdown})
	d.settle()
	if d.w.Healthy() || len(d.saw(core.HealthSet)) != 0 || d.count(wire.UnregisterKVCache) != 1 {
		t.Fatal("health was set after the stop")
	}
}

// A11: shutdown while a recovery is under way; its answer comes in the join,
// after it, or never.
func TestShutdownDuringARecovery(t *testing.T) {
	for _, c := range []struct {
		after  time.Duration
		joined bool
	}{{2 * time.Second, true}, {20 * time.Second, false}, {299 * time.Second, false}} {
		d := unhealthy(t, blend)
		d.pass(10 * time.Second)
		d.answer(d.last(wire.Ping), yes)
		d.settle()
		recovery := d.last(wire.RegisterKVCache)
		ropes := d.count(wire.RegisterRope)
		d.call(core.Call{Kind: core.CallShutdown})
		d.pass(c.after)
		sent := len(d.sent)
		d.answer(recovery, wire.Reply{})
		d.settle()
		if r := d.saw(core.HeartbeatStopped); len(r) != 1 || r[0].Flag != c.joined {
			t.Fatalf("after %s: %+v", c.after, r)
		}
		for _, m := range d.sent[sent:] {
			if m.Type != wire.UnregisterKVCache && m.Type != wire.UnregisterRope {
				t.Fatalf("the straggler sent a %s", m.Type)
			}
		}
		if d.w.Healthy() || d.count(wire.RegisterRope) != ropes {
			t.Fatal("the straggler set health or registered")
		}
		if r := d.saw(core.RecoveryEnded); len(r) != 1 || r[0].Flag {
			t.Fatal("a recovery that was stopped is no success")
		}
		d.pass(301 * time.Second)
		if !d.left || len(d.timers) != 0 {
			t.Fatal("it did not leave, or left a timer behind")
		}
	}
}

// A10: the stop at every moment of a cycle, healthy and not: the sends after it
// are the unregister and nothing else.
func TestShutdownAtEveryPhaseOfTheCycle(t *testing.T) {
	phases := map[string]func(d *desk){
		"before the first ping": func(d *desk) { d.store(1) },
		"ping in flight":        func(d *desk) { d.store(1); d.settle() },
		"asleep": func(d *desk) {
			d.store(1)
			d.settle()
			d.answer(d.last(wire.Ping), yes)
		},
		"about to clear":  func(d *desk) { d.store(1); d.settle(); d.fire(core.Never) },
		"asleep, unwell":  func(d *desk) { d.store(1); d.pass(10 * time.Second) },
		"pinging, unwell": func(d *desk) { d.store(1); d.pass(20 * time.Second) },
		"about to recover": func(d *desk) {
			d.store(1)
			d.pass(20 * time.Second)
			d.answer(d.last(wire.Ping), yes)
		},
		"recovering": func(d *desk) {
			d.store(1)
			d.pass(20 * time.Second)
			d.answer(d.last(wire.Ping), yes)
			d.settle()
		},
		"about to set": func(d *desk) {
			d.store(1)
			d.pass(20 * time.Second)
			d.answer(d.last(wire.Ping), yes)
			d.settle()
			d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
		},
	}
	for name, reach := range phases {
		for _, answers := range []bool{true, false} {
			d := registered(t)
			reach(d)
			sent := len(d.sent)
			d.call(core.Call{Kind: core.CallShutdown})
			d.settle()
			d.store(2) // too late
			for i := 0; i < len(d.sent); i++ {
				if answers {
					d.answer(d.sent[i], wire.Reply{OK: true, Data: []byte{}})
					d.settle()
				}
			}
			d.pass(400 * time.Second)
			if got := len(d.sent) - sent; got != 1 || d.sent[sent].Type != wire.UnregisterKVCache {
				t.Fatalf("%s, answers %t: %d messages after the stop", name, answers, got)
			}
			if !d.left || len(d.timers) != 0 || d.w.Pending() != 0 {
				t.Fatalf("%s, answers %t: left %t, timers %v, pending %d", name, answers, d.left, d.timers, d.w.Pending())
			}
			before := len(d.records)
			d.store(3)
			d.register()
			d.call(core.Call{Kind: core.CallFinished})
			d.story(before) // it is gone
		}
	}
}

// What the engine submitted ends for it, once, also when it leaves.
func TestShutdownEndsWhatIsPending(t *testing.T) {
	d := registered(t)
	d.store(1)
	d.retrieve(2, 5)
	d.retrieve(3, 6)
	d.answer(d.last(wire.Retrieve), wire.Reply{OK: true, Data: []byte{}})
	d.settle()
	d.answer(d.last(wire.Ping), yes)
	from := len(d.tells)
	d.call(core.Call{Kind: core.CallShutdown})
	d.settle()
	d.answer(d.last(wire.UnregisterKVCache), wire.Reply{})
	told := d.tells[from:]
	if len(told) != 4 || told[3].Kind != core.TellShutdown {
		t.Fatalf("told %+v", told)
	}
	d.told(told[0], 3, core.OutcomeLoaded)
	d.told(told[1], 1, core.OutcomeFailed)
	d.told(told[2], 2, core.OutcomeFailed, 5)
}

// Upstream: test_register_uses_local_context_when_self_transfer_ctx_nulled: a
// shutdown while the engine's own register is waiting.
func TestShutdownDuringTheEnginesRegister(t *testing.T) {
	d := newDesk(t, blend)
	d.register()
	d.call(core.Call{Kind: core.CallShutdown})
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	if d.count(wire.RegisterRope) != 0 || d.wasTold(core.TellRegistered) || !d.wasTold(core.TellRegisterFailed) {
		t.Fatal("it registered on after the stop")
	}
	d.register() // refused
	d.pass(300 * time.Second)
	if !d.left || len(d.timers) != 0 || d.count(wire.RegisterKVCache) != 1 {
		t.Fatal("it did not leave")
	}
	d = newDesk(t)
	d.register()
	d.call(core.Call{Kind: core.CallShutdown})
	d.answer(d.last(wire.UnregisterKVCache), wire.Reply{})
	if !d.left || !d.wasTold(core.TellRegisterFailed) || len(d.timers) != 0 {
		t.Fatal("the engine's register was left open")
	}
}

// A cycle that still waits when the worker is done ends with it, timer and all.
func TestTheLastStragglerLeavesNoTimer(t *testing.T) {
	d := registered(t)
	d.store(1)
	d.settle() // a ping in flight, its deadline 10 s away
	d.call(core.Call{Kind: core.CallShutdown})
	d.pass(core.JoinBound)
	d.answer(d.last(wire.UnregisterKVCache), wire.Reply{})
	if !d.left || len(d.timers) != 0 {
		t.Fatalf("left %t, timers %v", d.left, d.timers)
	}
}
