package worker

import (
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// Upstream: test_instance_id_is_uuid_derived_63_bit_int.
func TestTheIdComesFromEntropyAndFits63Bits(t *testing.T) {
	entropy := [16]byte{8: 0xff, 9: 2, 15: 7}
	d := newDesk(t)
	w := New(core.DefaultWorkerConfig())
	var out core.Effects
	w.Step(0, &core.Input{Kind: core.InputStart, Entropy: entropy}, &out)
	if w.Instance() != core.InstanceIDFromEntropy(entropy) || w.Instance() > core.MaxInstanceID {
		t.Fatalf("id %x is not the entropy's", uint64(w.Instance()))
	}
	if w.Instance() == d.w.Instance() {
		t.Fatal("other entropy gave the same id")
	}
	if r := d.saw(core.WorkerStarted); len(r) != 1 || r[0].Instance != d.w.Instance() {
		t.Fatal("the start does not name the id")
	}
	d = newDesk(t, func(c *core.WorkerConfig) { c.Instance = 4711 })
	if d.w.Instance() != 4711 {
		t.Fatal("a configured id was not used")
	}
}

// Upstream: test_startup_warns_when_heartbeat_interval_exceeds_reap_floor and
// its counterpart: 15 s warns, 10 s is silent.
func TestASlowHeartbeatWarnsAtStart(t *testing.T) {
	for interval, want := range map[time.Duration]int{10 * time.Second: 0, 10*time.Second + 1: 1, 15 * time.Second: 1} {
		d := newDesk(t, func(c *core.WorkerConfig) { c.Interval = interval })
		warned := d.saw(core.WorkerWarned)
		if len(warned) != want {
			t.Fatalf("interval %s: %d warnings, want %d", interval, len(warned), want)
		}
		if want == 1 && (warned[0].Failure != core.FailWindow || warned[0].A != uint64(3*interval) || warned[0].B != uint64(core.ReapFloor)) {
			t.Fatalf("the warning does not say the numbers: %+v", warned[0])
		}
	}
}

// Upstream: test_heartbeat_lazy_start_wires_callback_before_start.
func TestTheHeartbeatStartsWithTheFirstTransferAndOnlyOnce(t *testing.T) {
	d := registered(t)
	d.pass(time.Hour)
	if d.count(wire.Ping) != 0 {
		t.Fatal("a worker without traffic pinged")
	}
	if !d.w.Healthy() {
		t.Fatal("a worker must start healthy")
	}
	from := len(d.records)
	d.store(1)
	d.story(from, core.Submitted, core.HeartbeatStarted, core.RequestSent) // the first transfer is not gated
	d.settle()
	if d.count(wire.Ping) != 1 || d.last(wire.Ping).at != d.now {
		t.Fatal("the first ping must go out at once")
	}
	if d.last(wire.Ping).Instance != d.w.Instance() {
		t.Fatal("the ping does not carry the id")
	}
	d.store(2)
	d.retrieve(3)
	if n := len(d.saw(core.HeartbeatStarted)); n != 1 {
		t.Fatalf("%d heartbeats", n)
	}
}

// PROTOCOL 5.1: the period is interval + reply time, and interval + deadline
// while the server is silent.
func TestThePeriodIsTheIntervalAfterTheReply(t *testing.T) {
	d := registered(t)
	d.store(1)
	d.settle()
	first := d.now
	d.pass(3 * time.Second)
	d.answer(d.last(wire.Ping), yes)
	d.pass(10 * time.Second)
	if got := d.last(wire.Ping).at - first; got != core.Time(13*time.Second) {
		t.Fatalf("second ping after %s, want 13s", seconds(got))
	}
	silent := d.now
	d.pass(20 * time.Second)
	if got := d.last(wire.Ping).at - silent; got != core.Time(20*time.Second) {
		t.Fatalf("ping after a silent one came after %s, want 20s", seconds(got))
	}
	if n := d.count(wire.Ping); n != 3 {
		t.Fatalf("%d pings, want 3", n)
	}
}

// A healthy ping costs one timer, one message and one reply, and no step more.
func TestAHealthyPingCostsNoExtraStep(t *testing.T) {
	d := registered(t)
	d.store(1)
	d.settle()
	d.answer(d.last(wire.Ping), yes)
	if !d.fire(d.now.Add(10 * time.Second)) {
		t.Fatal("no ping")
	}
	if len(d.out.Sends) != 1 || len(d.out.Arms) != 1 || d.out.Arms[0].Key.Kind != core.TimerPingReply || len(d.out.Disarms) != 0 {
		t.Fatalf("the ping: %d sends, arms %v, disarms %v", len(d.out.Sends), d.out.Arms, d.out.Disarms)
	}
	d.answer(d.last(wire.Ping), yes)
	if len(d.out.Sends) != 0 || len(d.out.Disarms) != 1 || len(d.out.Arms) != 1 || d.out.Arms[0] != (core.ArmEffect{Key: core.TimerKey{Kind: core.TimerHeartbeat}, At: d.now.Add(10 * time.Second)}) {
		t.Fatalf("the reply: arms %v, disarms %v", d.out.Arms, d.out.Disarms)
	}
}

// PROTOCOL 5.1: no threshold, no grace.
func TestOneFailedPingFlipsHealth(t *testing.T) {
	d := registered(t)
	d.store(1)
	d.settle()
	from := len(d.records)
	d.pass(10*time.Second - 1)
	if !d.w.Healthy() {
		t.Fatal("unhealthy before the deadline")
	}
	d.pass(1)
	d.story(from, core.PingFailed, core.HealthCleared)
	if d.w.Healthy() {
		t.Fatal("healthy after a failed ping")
	}
}

// A server that says no is as good as one that says nothing.
func TestAPingAnsweredNoFlipsHealth(t *testing.T) {
	d := registered(t)
	d.store(1)
	d.settle()
	from := len(d.records)
	d.answer(d.last(wire.Ping), no)
	d.settle()
	d.story(from, core.PingAnswered, core.HealthCleared)
}

// Upstream: test_heartbeat_first_ping_runs_callback_before_setting_event.
func TestRecoveryRegistersBeforeHealthIsSet(t *testing.T) {
	d := unhealthy(t)
	d.pass(10 * time.Second)
	from := len(d.records)
	d.answer(d.last(wire.Ping), yes)
	d.story(from, core.PingAnswered)
	d.settle()
	d.story(from, core.PingAnswered, core.RecoveryBegan, core.RegisterSent)
	if d.w.Healthy() {
		t.Fatal("healthy before the register was answered")
	}
	d.retrieve(9)
	if d.count(wire.Retrieve) != 0 {
		t.Fatal("traffic went out before the recovery ended")
	}
	again := d.last(wire.RegisterKVCache)
	if string(again.Exports[0].Handle) != "/seg" || again.Instance != d.w.Instance() {
		t.Fatal("the recovery registered something else")
	}
	from = len(d.records)
	d.answer(again, wire.Reply{})
	d.story(from, core.RegisterEnded, core.RecoveryEnded)
	if d.w.Healthy() {
		t.Fatal("the publish must be a step of its own")
	}
	d.settle()
	d.story(from, core.RegisterEnded, core.RecoveryEnded, core.HealthSet)
	if d.timers[core.TimerHeartbeat] != d.now.Add(10*time.Second) {
		t.Fatal("no sleep after the recovery")
	}
	if r := d.saw(core.RegisterEnded); !r[len(r)-1].Flag || r[len(r)-1].Context != core.ServerDriven {
		t.Fatal("the register's record does not say that it was a recovery")
	}
}

// Upstream: test_recover_callback_rebuilds_transfer_ctx_without_closing_previous.
func TestEachRecoveryMakesANewContext(t *testing.T) {
	d := unhealthy(t)
	for i := 1; i <= 3; i++ {
		d.pass(10 * time.Second)
		d.answer(d.last(wire.Ping), yes)
		d.settle()
		d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
		d.settle()
		if n := d.count(wire.RegisterKVCache); n != 1+i || !d.w.Healthy() {
			t.Fatalf("recovery %d: %d contexts asked for, healthy %t", i, n, d.w.Healthy())
		}
		d.pass(20 * time.Second) // the next ping is not answered
		if d.w.Healthy() {
			t.Fatal("still healthy")
		}
	}
	if d.count(wire.UnregisterKVCache) != 0 {
		t.Fatal("a recovery closed a context")
	}
}

// PROTOCOL 5.2: the register blocks the heartbeat thread for as long as the
// request timeout, and a failed one is tried again at the next good ping.
func TestASlowRecoveryBlocksTheHeartbeatAndIsTriedAgain(t *testing.T) {
	d := unhealthy(t)
	d.pass(10 * time.Second)
	d.answer(d.last(wire.Ping), yes)
	d.settle()
	pings, from := d.count(wire.Ping), len(d.records)
	late := d.last(wire.RegisterKVCache)
	d.pass(300*time.Second - 1)
	if d.count(wire.Ping) != pings {
		t.Fatal("a ping went out while the callback was waiting")
	}
	d.pass(1)
	d.story(from, core.RegisterEnded, core.RecoveryEnded)
	if d.w.Healthy() || d.records[from+1].Flag {
		t.Fatal("a recovery without an answer made the worker healthy")
	}
	d.answer(late, wire.Reply{}) // its deadline passed: nobody waits
	d.story(from, core.RegisterEnded, core.RecoveryEnded)
	d.pass(10 * time.Second)
	d.answer(d.last(wire.Ping), yes)
	d.settle()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.settle()
	if !d.w.Healthy() || d.count(wire.RegisterKVCache) != 3 {
		t.Fatal("the next good ping did not recover")
	}
}

// A worker that registered nothing has nothing to recover.
func TestRecoveryWithoutMemoryOnlySetsHealth(t *testing.T) {
	d := newDesk(t)
	d.store(1)
	d.pass(20 * time.Second)
	from := len(d.records)
	d.answer(d.last(wire.Ping), yes)
	d.settle()
	d.story(from, core.PingAnswered, core.RecoveryBegan, core.RecoveryEnded, core.HealthSet)
	if d.count(wire.RegisterKVCache) != 0 {
		t.Fatal("it registered memory that it does not have")
	}
}

// PROTOCOL 5.1: a late reply resolves an abandoned future; harmless.
func TestALatePingReplyIsDropped(t *testing.T) {
	d := unhealthy(t)
	late := d.last(wire.Ping)
	from := len(d.records)
	d.answer(late, yes)
	d.settle()
	d.story(from)
	d.pass(10 * time.Second) // now a new ping is waiting
	from = len(d.records)
	d.answer(late, yes)
	d.settle()
	d.story(from)
	if d.w.Healthy() {
		t.Fatal("a late reply made the worker healthy")
	}
}

// A reply that is no message, names nobody or comes from elsewhere changes nothing.
func TestNonsenseFromTheServerIsDropped(t *testing.T) {
	d := registered(t)
	d.store(1)
	d.settle()
	from, before := len(d.records), d.w.Fingerprint(d.now)
	ping := d.last(wire.Ping)
	for _, parts := range [][][]byte{
		{}, {{1}}, {{0xc1}, {0x16}, {0xc3}}, {ping.UID, {0xc1}, {0xc3}}, {ping.UID, {0x16}, {0xc1}},
		{{0xcd, 0x7f, 0xff}, {0x16}, {0xc3}}, {ping.UID, {0x7f}, {0xc3}}, {ping.UID, {0x16}, {}},
	} {
		var f core.Frames
		for _, p := range parts {
			f.Append(p)
		}
		d.step(&core.Input{Kind: core.InputFrames, Frames: &f})
		d.settle()
	}
	var f core.Frames
	wire.EncodeReply(&f, ping.UID, ping.RawType, wire.Ping, &yes)
	d.step(&core.Input{Kind: core.InputFrames, Frames: &f, Peer: 3})
	d.step(&core.Input{Kind: core.InputFrames})
	d.story(from)
	if d.w.Fingerprint(d.now) != before {
		t.Fatal("nonsense changed the state")
	}
}

// A12: a prober pings with nil from its start and registers nothing.
func TestAProberPingsNilFromItsStart(t *testing.T) {
	d := newDesk(t, prober)
	d.settle()
	if m := d.last(wire.Ping); !m.NoInstance || d.count(wire.Ping) != 1 {
		t.Fatal("a prober must ping with nil at once")
	}
	d.register()
	if !d.wasTold(core.TellRegisterFailed) {
		t.Fatal("a prober registered")
	}
	d.pass(20 * time.Second)
	d.answer(d.last(wire.Ping), yes)
	d.settle()
	if !d.w.Healthy() {
		t.Fatal("no recovery")
	}
	d.call(core.Call{Kind: core.CallShutdown})
	d.settle()
	if !d.left || len(d.sent) != d.count(wire.Ping) {
		t.Fatal("a prober sent more than pings, or did not leave")
	}
}

// A9: the client before liveness sends no payload.
func TestALegacyPingHasNoPayload(t *testing.T) {
	d := registered(t, legacy)
	d.store(1)
	d.settle()
	if m := d.last(wire.Ping); m.frames.Len() != 2 {
		t.Fatalf("a legacy ping has %d frames, want 2", m.frames.Len())
	}
	d.answer(d.last(wire.Ping), yes)
	if !d.w.Healthy() {
		t.Fatal("unhealthy")
	}
}
