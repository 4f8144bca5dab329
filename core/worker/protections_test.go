package worker

import (
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

const (
	interval = 10 * time.Second
	timeout  = 300 * time.Second
)

// serving is a registered worker whose first transfer is over and whose ping
// was answered with the verdict.
func serving(t judge, v wire.PingVerdict, change ...func(*core.WorkerConfig)) *desk {
	d := registered(t, change...)
	d.store(1)
	d.settle()
	d.answer(d.last(firstTransfer(d)), wire.Reply{OK: true, Data: []byte{}})
	d.answer(d.last(wire.Ping), says(v))
	d.finished()
	if !d.w.Healthy() {
		t.Fatal("the worker does not serve")
	}
	return d
}

// beat lets the next ping be answered.
func (d *desk) beat(v wire.PingVerdict) {
	d.pass(interval)
	d.answer(d.last(wire.Ping), says(v))
}

// B1, open: a worker that is told that it is not registered takes the answer
// for true and serves errors for ever. The same where the server says nothing.
func TestWithoutAwarenessALostRegistrationStaysLost(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*core.WorkerConfig)
		answer wire.PingVerdict
	}{
		"old worker, new server": {func(*core.WorkerConfig) {}, absent},
		"new worker, old server": {hardened, wire.PingVerdict{}},
	} {
		d := serving(t, wire.PingVerdict{}, c.change)
		from := d.count(wire.RegisterKVCache)
		for range 20 {
			d.beat(c.answer)
			d.settle()
		}
		if !d.w.Healthy() || d.count(wire.RegisterKVCache) != from {
			t.Fatalf("%s: healthy %t, registered again %d times", name, d.w.Healthy(), d.count(wire.RegisterKVCache)-from)
		}
	}
}

// B1, closed: it registers again at once, before any transfer goes out.
func TestAWorkerThatIsToldItIsGoneRegistersAgain(t *testing.T) {
	d := serving(t, known, with("registration-aware-ping"))
	d.retrieve(2, 5)
	d.pass(interval)
	from := len(d.records)
	d.answer(d.last(wire.Ping), says(absent))
	d.story(from, core.PingAnswered, core.HealthCleared)
	d.retrieve(3, 6)
	if d.count(wire.Retrieve) != 1 {
		t.Fatal("a transfer went out to where nothing is registered")
	}
	d.settle()
	if d.wakes() < 2 || d.count(wire.RegisterKVCache) != 2 {
		t.Fatal("the engine was not woken, or nothing was registered")
	}
	from = len(d.records)
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.settle()
	d.story(from, core.RegisterEnded, core.RecoveryEnded, core.HealthSet)
	d.beat(known)
	d.settle()
	if !d.w.Healthy() || d.count(wire.RegisterKVCache) != 2 {
		t.Fatal("it did not come to rest")
	}
}

// A register that is refused or not answered is tried again at the next ping.
func TestRegisteringAgainIsTriedUntilItSucceeds(t *testing.T) {
	d := serving(t, known, with("registration-aware-ping", "terminal-answers"))
	d.beat(absent)
	d.settle()
	d.refuse(d.last(wire.RegisterKVCache), core.FailOutOfMemory)
	d.settle()
	r := d.saw(core.RegisterEnded)
	if d.w.Healthy() || r[len(r)-1].Failure != core.FailOutOfMemory {
		t.Fatal("a refused recovery counts as a success")
	}
	d.beat(absent)
	d.settle()
	d.pass(timeout)
	d.beat(absent)
	d.settle()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.settle()
	if !d.w.Healthy() || d.count(wire.RegisterKVCache) != 4 {
		t.Fatalf("healthy %t after %d registers", d.w.Healthy(), d.count(wire.RegisterKVCache))
	}
}

// An answer to a ping that left before the registration ended speaks of the
// time before it; and a worker that never was registered has nothing to lose.
func TestAStaleNoIsNotTakenForNews(t *testing.T) {
	d := newDesk(t, with("registration-aware-ping"))
	d.store(1)
	d.settle()
	first := d.last(wire.Ping)
	d.answer(first, says(absent)) // never registered
	d.settle()
	d.pass(interval) // the second ping leaves before the register
	d.register()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.answer(d.last(wire.Ping), says(absent))
	d.settle()
	if !d.w.Healthy() || d.count(wire.RegisterKVCache) != 1 {
		t.Fatal("a stale answer made it register again")
	}
	d.beat(absent)
	d.settle()
	if d.w.Healthy() || d.count(wire.RegisterKVCache) != 2 {
		t.Fatal("a fresh answer did not")
	}
}

// While the engine's own register is on its way, it is what will tell.
func TestANoDuringTheEnginesRegisterWaitsForIt(t *testing.T) {
	d := serving(t, known, with("registration-aware-ping"))
	d.register() // lost on its way
	for range 29 {
		d.beat(absent)
		d.settle()
	}
	if d.count(wire.RegisterKVCache) != 2 || !d.w.Healthy() {
		t.Fatal("two registers at once")
	}
	d.beat(absent)
	d.beat(absent)
	d.settle()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.settle()
	if !d.w.Healthy() {
		t.Fatal("no recovery after it")
	}
}

// B1, the retrieve that goes out before the ping: its refusal wakes the
// heartbeat, which registers again after one good ping.
func TestARefusedTransferWakesTheHeartbeat(t *testing.T) {
	for _, answer := range []wire.PingVerdict{absent, {}, known} {
		d := serving(t, wire.PingVerdict{Aware: answer.Aware, Registered: answer.Aware}, hardened)
		d.pass(3 * time.Second)
		pings := d.count(wire.Ping)
		d.retrieve(2, 5)
		d.refuse(d.last(wire.Retrieve), core.FailNotRegistered)
		d.told(d.finished()[0], 2, core.OutcomeFailed, 5)
		d.retrieve(3, 6) // not yet registered again: refused too, no second wake
		d.settle()
		d.refuse(d.last(wire.Retrieve), core.FailNotRegistered)
		d.settle()
		if d.count(wire.Ping) != pings+1 {
			t.Fatalf("%+v: %d pings", answer, d.count(wire.Ping)-pings)
		}
		d.answer(d.last(wire.Ping), says(answer))
		d.settle()
		if d.w.Healthy() || d.count(wire.RegisterKVCache) != 2 {
			t.Fatalf("%+v: not registered again", answer)
		}
		d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
		d.settle()
		d.beat(known)
		d.settle()
		if !d.w.Healthy() || d.count(wire.RegisterKVCache) != 2 {
			t.Fatalf("%+v: it did not come to rest", answer)
		}
	}
}

// A refusal of a transfer that left before the last registration is no news.
func TestAStaleRefusalWakesNobody(t *testing.T) {
	d := serving(t, known, hardened)
	d.retrieve(2, 5)
	late := d.last(wire.Retrieve)
	d.register()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	pings := d.count(wire.Ping)
	d.refuse(late, core.FailNotRegistered)
	d.settle()
	if d.count(wire.Ping) != pings {
		t.Fatal("a stale refusal woke the heartbeat")
	}
	d.beat(known)
	d.settle()
	if d.count(wire.Ping) != pings+1 || d.count(wire.RegisterKVCache) != 2 {
		t.Fatal("a stale refusal was believed")
	}
	d.told(d.finished()[0], 2, core.OutcomeFailed, 5)
}

// The engine's own register, between the refusal and the ping's answer, does
// what the refusal asked for.
func TestTheEnginesRegisterSettlesARefusal(t *testing.T) {
	d := serving(t, known, hardened)
	d.retrieve(2, 5)
	d.refuse(d.last(wire.Retrieve), core.FailNotRegistered)
	d.settle()
	d.register()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.answer(d.last(wire.Ping), says(known))
	d.settle()
	if !d.w.Healthy() || d.count(wire.RegisterKVCache) != 2 {
		t.Fatal("it registered what was registered")
	}
}

// QUIET: a first registration that failed is not brought about behind the
// engine's back, whatever the pings say.
func TestAFailedFirstRegistrationIsNotRetriedByPings(t *testing.T) {
	d := newDesk(t, with("registration-aware-ping", "boot-token"))
	d.register()
	d.pass(timeout)
	d.store(1)
	d.settle()
	d.answer(d.last(wire.Ping), says(wire.PingVerdict{Aware: true, Boot: 7}))
	d.beat(wire.PingVerdict{Boot: 8})
	d.settle()
	if !d.w.Healthy() || d.count(wire.RegisterKVCache) != 1 {
		t.Fatal("it registered for an engine that gave up")
	}
}

// Any other refusal says nothing about the registration, and neither does one
// that an old worker does not read.
func TestOtherRefusalsWakeNobody(t *testing.T) {
	for _, c := range []struct {
		change func(*core.WorkerConfig)
		why    core.Failure
	}{{hardened, core.FailNoSpace}, {hardened, core.FailStopping}, {with("terminal-answers"), core.FailNotRegistered},
		{with("registration-aware-ping"), core.FailNotRegistered}} {
		d := serving(t, wire.PingVerdict{}, c.change)
		pings := d.count(wire.Ping)
		d.retrieve(2, 5)
		d.refuse(d.last(wire.Retrieve), c.why)
		d.settle()
		if d.count(wire.Ping) != pings {
			t.Fatalf("%s woke the heartbeat", c.why)
		}
	}
}

// B4, open: the server restarts between two good pings, and a request that it
// took along hangs. Closed: the next answer names another life.
func TestAServerThatRestartedTakesNothingAlongUnseen(t *testing.T) {
	for _, on := range []bool{false, true} {
		d := serving(t, wire.PingVerdict{Boot: 7}, func(c *core.WorkerConfig) { c.Protections.BootToken = on })
		d.retrieve(2, 5)
		d.store(3)
		d.pass(interval)
		d.retrieve(4, 6) // after the ping: nothing is known of it
		from := len(d.records)
		d.answer(d.last(wire.Ping), says(wire.PingVerdict{Boot: 8}))
		if !on {
			d.story(from, core.PingAnswered)
			continue
		}
		d.story(from, core.PingAnswered, core.RequestResolved, core.RequestResolved, core.HealthCleared)
		if r := d.records[from+1]; r.Failure != core.FailLost || r.Flag || r.A != 2 {
			t.Fatalf("resolved %+v", r)
		}
		d.answer(d.sent[len(d.sent)-4], wire.Reply{OK: true, Data: []byte{}}) // late: dropped
		d.settle()
		d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
		d.settle()
		told := d.finished()
		if len(told) != 2 || d.w.Pending() != 1 || !d.w.Healthy() {
			t.Fatalf("told %v", told)
		}
		d.told(told[0], 2, core.OutcomeFailed, 5)
		d.told(told[1], 3, core.OutcomeFailed)
		d.answer(d.last(wire.Retrieve), wire.Reply{OK: true, Data: []byte{}})
		d.told(d.finished()[0], 4, core.OutcomeLoaded)
		d.beat(wire.PingVerdict{Boot: 8})
		d.settle()
		if d.count(wire.RegisterKVCache) != 2 {
			t.Fatal("the same life made it register again")
		}
	}
}

// The first token is no change, silence is none either, and a server that also
// says whether the id is registered is believed.
func TestWhatIsNoRestart(t *testing.T) {
	d := serving(t, wire.PingVerdict{}, hardened)
	for _, v := range []wire.PingVerdict{{Boot: 7}, {}, {Boot: 7}} {
		d.retrieve(2, 5)
		d.beat(v)
		d.settle()
	}
	if d.count(wire.RegisterKVCache) != 1 || d.w.Pending() != 3 {
		t.Fatal("something was taken for a restart")
	}
	d.beat(wire.PingVerdict{Aware: true, Registered: true, Boot: 8})
	d.settle()
	if d.count(wire.RegisterKVCache) != 1 || len(d.finished()) != 3 || !d.w.Healthy() {
		t.Fatal("a new life that knows the id: what was sent is lost, the registration is not")
	}
	d.beat(wire.PingVerdict{Aware: true, Boot: 9})
	d.settle()
	if d.count(wire.RegisterKVCache) != 2 {
		t.Fatal("a new life that does not")
	}
}

// A change of life that is seen at the edge ends what nobody asked about.
func TestARestartSeenAtTheEdge(t *testing.T) {
	d := serving(t, wire.PingVerdict{Boot: 7}, with("boot-token"))
	d.retrieve(2, 5)
	d.pass(3 * interval) // a ping fails, nobody polls, the next one is out
	d.answer(d.last(wire.Ping), says(wire.PingVerdict{Boot: 8}))
	d.settle()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.settle()
	told := d.finished()
	if len(told) != 1 || !d.w.Healthy() || d.count(wire.RegisterKVCache) != 2 {
		t.Fatalf("told %v", told)
	}
	d.told(told[0], 2, core.OutcomeFailed, 5)
}

// A12-like, B12: the heartbeat begins with the registration, or not before the
// first transfer.
func TestAnEagerHeartbeatStartsWithTheRegistration(t *testing.T) {
	d := newDesk(t, with("eager-heartbeat"))
	d.register()
	d.pass(time.Minute)
	if d.count(wire.Ping) != 0 {
		t.Fatal("a ping before anything is registered")
	}
	from := len(d.records)
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.story(from, core.RegisterEnded, core.HeartbeatStarted)
	d.settle()
	if d.count(wire.Ping) != 1 {
		t.Fatal("no ping at once")
	}
	d.answer(d.last(wire.Ping), yes)
	d.store(1)
	d.register()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	if len(d.saw(core.HeartbeatStarted)) != 1 {
		t.Fatal("a second heartbeat")
	}
	// With blend, the whole registration counts.
	d = newDesk(t, with("eager-heartbeat"), blend)
	d.register()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	if len(d.saw(core.HeartbeatStarted)) != 0 {
		t.Fatal("half a registration started the heartbeat")
	}
	d.answer(d.last(wire.RegisterRope), wire.Reply{})
	if len(d.saw(core.HeartbeatStarted)) != 1 {
		t.Fatal("no heartbeat")
	}
	// One that failed starts none, a stop in between neither.
	d = newDesk(t, hardened)
	d.register()
	d.refuse(d.last(wire.RegisterKVCache), core.FailOutOfMemory)
	d.register()
	d.call(core.Call{Kind: core.CallShutdown})
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	if len(d.saw(core.HeartbeatStarted)) != 0 {
		t.Fatal("a heartbeat without a registration, or after the stop")
	}
}

// B7, open: a refusal is for an old worker what its form says. Closed: the
// engine is told that its request was not served.
func TestRefusalsEndARequestWithTheirReason(t *testing.T) {
	for _, mode := range []func(*core.WorkerConfig){func(*core.WorkerConfig) {}, engineDriven} {
		for _, on := range []bool{false, true} {
			d := serving(t, wire.PingVerdict{}, mode, func(c *core.WorkerConfig) { c.Protections.TerminalAnswers = on })
			d.store(2)
			d.refuse(d.sent[len(d.sent)-1], core.FailNoSpace)
			d.retrieve(3, 5)
			d.refuse(d.sent[len(d.sent)-1], core.FailQueueFull)
			told := d.finished()
			if len(told) != 2 || d.w.Pending() != 0 || !d.w.Healthy() {
				t.Fatalf("told %v", told)
			}
			r := d.saw(core.RequestResolved)
			r = r[len(r)-2:]
			if on {
				d.told(told[0], 2, core.OutcomeFailed)
				d.told(told[1], 3, core.OutcomeFailed, 5)
				if r[0].Failure != core.FailNoSpace || r[1].Failure != core.FailQueueFull || r[0].Flag || r[1].Flag {
					t.Fatalf("resolved %+v", r)
				}
			} else {
				d.told(told[0], 2, core.OutcomeStored)
				d.told(told[1], 3, core.OutcomeMissed, 5)
			}
		}
	}
}

// A refused COMMIT ends its request as a refused PREPARE does.
func TestARefusedCommit(t *testing.T) {
	d := registered(t, engineDriven, with("terminal-answers"))
	d.retrieve(2, 6)
	d.answer(d.last(wire.PrepareRetrieve), wire.Reply{OK: true, Data: []byte{}})
	d.refuse(d.last(wire.CommitRetrieve), core.FailStale)
	d.told(d.finished()[0], 2, core.OutcomeFailed, 6)
}

func TestARefusedRegisterFailsTheEngineAtOnce(t *testing.T) {
	for _, on := range []bool{false, true} {
		d := newDesk(t, func(c *core.WorkerConfig) { c.Protections.TerminalAnswers = on })
		d.register()
		d.refuse(d.last(wire.RegisterKVCache), core.FailOutOfMemory)
		last := d.tells[len(d.tells)-1]
		switch {
		case on && (last.Kind != core.TellRegisterFailed || last.Failure != core.FailOutOfMemory || d.w.Registered() || len(d.timers) != 0):
			t.Fatalf("told %+v, timers %v", last, d.timers)
		case !on && last.Kind != core.TellRegistered:
			t.Fatal("an old worker cannot tell a refusal from a success")
		}
	}
	// The rope state's half, too.
	d := newDesk(t, blend, hardened)
	d.register()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.refuse(d.last(wire.RegisterRope), core.FailQueueFull)
	if last := d.tells[len(d.tells)-1]; last.Kind != core.TellRegisterFailed || last.Failure != core.FailQueueFull {
		t.Fatalf("told %+v", last)
	}
}

func TestARefusedUnregisterEndsTheWait(t *testing.T) {
	d := registered(t, hardened, blend)
	d.call(core.Call{Kind: core.CallShutdown})
	d.settle()
	n := len(d.sent)
	d.refuse(d.sent[n-2], core.FailNotRegistered)
	d.refuse(d.sent[n-1], core.FailNotRegistered)
	r := d.saw(core.UnregisterEnded)
	if !d.left || len(r) != 2 || r[0].Failure != core.FailNotRegistered || r[1].Failure != core.FailNotRegistered {
		t.Fatalf("left %t, %+v", d.left, r)
	}
}

// A refused ping is a no, whatever its result frame says.
func TestARefusedPingIsANo(t *testing.T) {
	d := serving(t, known, hardened)
	d.pass(interval)
	d.refuse(d.last(wire.Ping), core.FailQueueFull)
	d.settle()
	r := d.saw(core.PingAnswered)
	if d.w.Healthy() || r[len(r)-1].Failure != core.FailQueueFull || r[len(r)-1].Flag {
		t.Fatal("still healthy")
	}
}

func TestAPingRefusedInContradictionIsANo(t *testing.T) {
	d := serving(t, known, hardened)
	d.pass(interval)
	m := d.last(wire.Ping)
	var f core.Frames
	wire.EncodeReply(&f, m.UID, m.RawType, wire.Ping, &yes)
	f.Append(append([]byte{0xa0 | 18}, "vigil.refused:lost"...))
	d.step(&core.Input{Kind: core.InputFrames, Frames: &f})
	d.settle()
	if d.w.Healthy() {
		t.Fatal("a refusal was taken for a yes")
	}
}

// A cycle that outlives the stop touches nothing, whatever it learns.
func TestAStragglerLearnsNothing(t *testing.T) {
	d := serving(t, wire.PingVerdict{Boot: 7}, hardened)
	d.retrieve(2, 5)
	d.pass(interval)
	d.call(core.Call{Kind: core.CallShutdown})
	d.pass(core.JoinBound)
	from := len(d.records)
	d.answer(d.last(wire.Ping), says(wire.PingVerdict{Aware: true, Boot: 8}))
	d.settle()
	d.story(from, core.PingAnswered)
}

// CONVERGE: a worker whose own old mapping is stuck in release is told so, once
// until a registration succeeds.
func TestAStuckReleaseIsToldOncePerEpisode(t *testing.T) {
	d := serving(t, known, hardened)
	warned := func() (n int) {
		for _, tell := range d.tells {
			if tell.Kind == core.TellWarning && tell.Failure == core.FailReleasing {
				n++
			}
		}
		return n
	}
	for episode := 1; episode <= 2; episode++ {
		for range 3 {
			d.beat(absent)
			d.settle()
			d.refuse(d.last(wire.RegisterKVCache), core.FailReleasing)
			d.settle()
			if d.w.Healthy() || warned() != episode || len(d.saw(core.WorkerWarned)) != episode {
				t.Fatalf("warned %d times in episode %d", warned(), episode)
			}
		}
		d.beat(absent)
		d.settle()
		d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
		d.settle()
	}
	d = newDesk(t, hardened)
	d.register()
	d.refuse(d.last(wire.RegisterKVCache), core.FailReleasing)
	if warned() != 1 || !d.wasTold(core.TellRegisterFailed) {
		t.Fatal("the engine's own register says nothing")
	}
}

// B7, open in TestAHealthyWorkerWaitsForEver. Closed: a lost reply is waited
// for as long as any request, and not a moment longer; one timer for all.
func TestALostReplyIsGivenUpAtItsDeadline(t *testing.T) {
	d := registered(t, with("request-deadlines"))
	pings := func(by time.Duration) { // the server is healthy, it only lost the replies
		for until := d.now.Add(by); d.now < until; {
			d.pass(min(time.Second, until.Sub(d.now)))
			if m := d.last(wire.Ping); m.at+core.Time(time.Second) >= d.now {
				d.answer(m, yes)
			}
		}
	}
	d.retrieve(1, 5)
	d.settle()
	pings(100 * time.Second)
	d.store(2)
	d.retrieve(3, 6)
	d.answer(d.last(wire.Retrieve), wire.Reply{OK: true, Data: []byte{}})
	d.told(d.finished()[0], 3, core.OutcomeLoaded)
	late := d.sent[2-1]
	pings(200*time.Second - 1)
	if len(d.finished()) != 0 {
		t.Fatal("given up before its time")
	}
	wakes := d.wakes()
	pings(1)
	if d.wakes() != wakes+1 {
		t.Fatal("nobody woke the engine")
	}
	told := d.finished()
	if len(told) != 1 || d.w.Pending() != 1 {
		t.Fatalf("told %v", told)
	}
	d.told(told[0], 1, core.OutcomeFailed, 5)
	r := d.saw(core.RequestResolved)
	if r[len(r)-1].Failure != core.FailDeadline || r[len(r)-1].A != 1 {
		t.Fatalf("resolved %+v", r[len(r)-1])
	}
	from := len(d.records)
	d.answer(late, wire.Reply{OK: true, Data: []byte{}})
	d.story(from)
	pings(100 * time.Second)
	d.told(d.finished()[0], 2, core.OutcomeFailed)
	if _, armed := d.timers[core.TimerRequest]; armed || d.w.Pending() != 0 {
		t.Fatal("something is left")
	}
}

// Traffic that is answered costs one timer in a whole patience, and none is
// taken back.
func TestAnsweredTrafficCostsOneDeadlineTimer(t *testing.T) {
	d := registered(t, with("request-deadlines"))
	arms := 0
	for i := range 40 {
		d.store(core.RequestID(i + 1))
		for _, a := range d.out.Arms {
			if a.Key.Kind == core.TimerRequest {
				arms++
			}
		}
		d.answer(d.last(wire.Store), wire.Reply{OK: true, Data: []byte{}})
		if len(d.out.Disarms) != 0 {
			t.Fatal("a timer was taken back")
		}
		d.finished()
		d.now = d.now.Add(time.Second)
	}
	if arms != 1 {
		t.Fatalf("%d timers for 40 stores", arms)
	}
	d.pass(timeout)
	if r := d.saw(core.RequestResolved); r[len(r)-1].Failure != core.NoFailure {
		t.Fatal("the timer ended what had ended")
	}
}

// Degraded mode ends all at once, also what has a deadline; the timer then
// finds nothing, and a stop takes it back.
func TestDeadlinesBesideDegradedModeAndStop(t *testing.T) {
	d := registered(t, with("request-deadlines"))
	d.retrieve(1, 5)
	d.pass(interval)
	d.told(d.finished()[0], 1, core.OutcomeFailed, 5)
	d.pass(timeout)
	if len(d.finished()) != 0 {
		t.Fatal("told twice")
	}
	d = registered(t, with("request-deadlines"))
	d.retrieve(1, 5)
	d.settle()
	d.answer(d.last(wire.Ping), yes)
	d.call(core.Call{Kind: core.CallShutdown})
	d.settle()
	d.answer(d.last(wire.UnregisterKVCache), wire.Reply{})
	if !d.left || len(d.timers) != 0 {
		t.Fatalf("left %t with timers %v", d.left, d.timers)
	}
}

// B20, open in TestASlowRecoveryBlocksTheHeartbeatAndIsTriedAgain. Closed: the
// pings go on, and nothing but the register's own end sets the health.
func TestPingsGoOnThroughARecovery(t *testing.T) {
	d := unhealthy(t, with("ping-through-recovery", "registration-aware-ping"))
	d.pass(interval)
	d.answer(d.last(wire.Ping), yes)
	d.settle()
	recovery, pings := d.last(wire.RegisterKVCache), d.count(wire.Ping)
	for i := range 20 {
		d.pass(interval)
		if d.count(wire.Ping) != pings+1+i {
			t.Fatalf("%d pings in %d intervals", d.count(wire.Ping)-pings, i+1)
		}
		d.answer(d.last(wire.Ping), says([]wire.PingVerdict{absent, {}, known}[i%3]))
		d.settle()
	}
	if d.w.Healthy() || d.count(wire.RegisterKVCache) != 2 {
		t.Fatal("a ping set the health, or started a second recovery")
	}
	d.pass(interval) // a ping is out
	from := len(d.records)
	d.answer(recovery, wire.Reply{})
	d.story(from, core.RegisterEnded, core.RecoveryEnded, core.HealthSet)
	d.answer(d.last(wire.Ping), says(absent)) // it left before the register ended
	d.settle()
	d.beat(known)
	d.settle()
	if !d.w.Healthy() || d.count(wire.RegisterKVCache) != 2 {
		t.Fatal("it did not come to rest")
	}
}

// The register's own deadline stands, and the next good ping tries again; a
// silent server in between changes nothing.
func TestARecoveryThatIsPingedThroughKeepsItsDeadline(t *testing.T) {
	d := unhealthy(t, with("ping-through-recovery"), blend)
	d.pass(interval)
	d.answer(d.last(wire.Ping), yes)
	d.settle()
	began := d.now
	for len(d.saw(core.RecoveryEnded)) == 0 {
		d.fire(core.Never)
	}
	if got := d.now - began; got != core.Time(timeout) || d.w.Healthy() || d.saw(core.RecoveryEnded)[0].Flag {
		t.Fatalf("ended after %s", seconds(got))
	}
	d.settle()
	if d.w.beat.phase == beatSleeps {
		d.pass(interval)
	}
	d.answer(d.last(wire.Ping), yes)
	d.settle()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.pass(interval)
	d.answer(d.last(wire.Ping), yes) // between the two messages of a registration
	d.answer(d.last(wire.RegisterRope), wire.Reply{})
	d.settle()
	if !d.w.Healthy() || len(d.saw(core.RecoveryBegan)) != 2 {
		t.Fatal("not recovered")
	}
}

// A server that restarts under a recovery took the register along: it is not
// waited for.
func TestARecoveryOfALostLifeIsBegunAgain(t *testing.T) {
	d := serving(t, wire.PingVerdict{Boot: 7}, hardened)
	d.beat(wire.PingVerdict{Aware: true, Boot: 8})
	d.settle()
	lost := d.last(wire.RegisterKVCache)
	d.pass(interval)
	from := len(d.records)
	d.answer(d.last(wire.Ping), says(wire.PingVerdict{Aware: true, Boot: 9}))
	d.settle()
	d.story(from, core.PingAnswered, core.RegisterEnded, core.RecoveryEnded, core.RecoveryBegan, core.RegisterSent)
	if d.records[from+1].Failure != core.FailLost || d.records[from+2].Flag {
		t.Fatal("the records hide the loss")
	}
	from = len(d.records)
	d.answer(lost, wire.Reply{})
	d.story(from)
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.settle()
	if !d.w.Healthy() {
		t.Fatal("not healthy")
	}
}

// A11 with pings going on: the shutdown waits for the register as it does where
// the thread is blocked in it.
func TestShutdownDuringARecoveryThatIsPingedThrough(t *testing.T) {
	for _, pinging := range []bool{false, true} {
		for _, c := range []struct {
			after  time.Duration
			joined bool
		}{{2 * time.Second, true}, {20 * time.Second, false}, {299 * time.Second, false}} {
			d := unhealthy(t, blend, hardened)
			d.pass(interval)
			d.answer(d.last(wire.Ping), yes)
			d.settle()
			recovery := d.last(wire.RegisterKVCache)
			ropes := d.count(wire.RegisterRope)
			if pinging {
				d.pass(interval) // a ping is out
			}
			pings := d.count(wire.Ping)
			d.call(core.Call{Kind: core.CallShutdown})
			d.settle()
			if pinging {
				d.answer(d.last(wire.Ping), says(absent))
			}
			d.pass(c.after)
			d.answer(recovery, wire.Reply{})
			d.settle()
			if r := d.saw(core.HeartbeatStopped); len(r) != 1 || r[0].Flag != c.joined {
				t.Fatalf("after %s: %+v", c.after, r)
			}
			if d.w.Healthy() || d.count(wire.RegisterRope) != ropes || d.count(wire.Ping) != pings {
				t.Fatal("the straggler set health, registered or pinged")
			}
			if r := d.saw(core.RecoveryEnded); len(r) != 1 || r[0].Flag {
				t.Fatal("a recovery that was stopped is no success")
			}
			d.pass(301 * time.Second)
			if !d.left || len(d.timers) != 0 {
				t.Fatalf("left %t with timers %v", d.left, d.timers)
			}
		}
	}
}

// The worker is gone before its ping and its register ended: no timer of it is
// left.
func TestTheEndTakesTheTimersOfARecoveryBack(t *testing.T) {
	d := unhealthy(t, hardened)
	d.pass(interval)
	d.answer(d.last(wire.Ping), yes)
	d.settle()
	d.pass(interval)
	d.call(core.Call{Kind: core.CallShutdown})
	d.pass(core.JoinBound)
	d.answer(d.last(wire.UnregisterKVCache), wire.Reply{})
	if !d.left || len(d.timers) != 0 {
		t.Fatalf("left %t with timers %v", d.left, d.timers)
	}
}

// The thread's wait and the register end in either order within the join.
func TestTheJoinWaitsForPingAndRegister(t *testing.T) {
	for _, pingFirst := range []bool{true, false} {
		d := unhealthy(t, hardened)
		d.pass(interval)
		d.answer(d.last(wire.Ping), yes)
		d.settle()
		d.pass(interval)
		d.call(core.Call{Kind: core.CallShutdown})
		ends := []func(){
			func() { d.answer(d.last(wire.Ping), yes) },
			func() { d.answer(d.last(wire.RegisterKVCache), wire.Reply{}) },
		}
		if !pingFirst {
			ends[0], ends[1] = ends[1], ends[0]
		}
		ends[0]()
		d.settle()
		if len(d.saw(core.HeartbeatStopped)) != 0 {
			t.Fatal("joined with half of it under way")
		}
		ends[1]()
		d.settle()
		if r := d.saw(core.HeartbeatStopped); len(r) != 1 || !r[0].Flag || d.w.Healthy() {
			t.Fatal("not joined")
		}
	}
}
