package worker

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"vigil/core"
	"vigil/core/wire"
)

// Any input in any order: the worker never panics, tells the engine of each
// request at most once and at its end exactly once, and keeps quiet as its
// phases demand. A clone that takes the same input ends in the same state.
func TestAnyInputInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t, func(c *core.WorkerConfig) {
			c.Mode = core.TransferMode(rapid.IntRange(0, 1).Draw(t, "mode"))
			c.Blend = rapid.Bool().Draw(t, "blend")
			c.Prober = rapid.IntRange(0, 9).Draw(t, "prober") == 0
			c.Legacy = rapid.IntRange(0, 9).Draw(t, "legacy") == 0
			switch rapid.IntRange(0, 3).Draw(t, "design") {
			case 0: // the document's
			case 1:
				c.Protections = core.Hardened()
			default:
				for _, name := range core.ProtectionNames() {
					c.Protections.Set(name, rapid.Bool().Draw(t, name))
				}
			}
		})
		d.twins = true
		next := core.RequestID(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 11).Draw(t, "what") {
			case 0:
				d.register()
			case 1, 2:
				next++
				d.store(next)
			case 3, 4:
				next++
				d.retrieve(next)
			case 5:
				d.finished()
			case 6, 7, 8:
				if len(d.sent) > 0 {
					back := min(len(d.sent), 4)
					m := d.sent[len(d.sent)-1-rapid.IntRange(0, back-1).Draw(t, "which")]
					reply := wire.Reply{OK: rapid.IntRange(0, 3).Draw(t, "ok") > 0, Data: []byte{}, ShmName: []byte{}}
					if rapid.Bool().Draw(t, "slots") {
						reply.Slots = []wire.PoolSlot{{Length: 8, Shape: []int64{1}, DType: []byte("float16")}}
						reply.Indices = []int64{0}
					}
					if m.Type == wire.Settle {
						reply.Indices = rapid.SliceOfN(rapid.Int64Range(0, 9), 0, 3).Draw(t, "still")
					}
					if m.Type == wire.Ping && rapid.Bool().Draw(t, "verdict") {
						reply.Ping = wire.PingVerdict{Aware: rapid.Bool().Draw(t, "aware"), Boot: rapid.Uint64Range(0, 2).Draw(t, "boot")}
						reply.Ping.Registered = reply.Ping.Aware && rapid.Bool().Draw(t, "registered")
					}
					if rapid.IntRange(0, 4).Draw(t, "refused") == 0 {
						d.refuse(m, rapid.SampledFrom([]core.Failure{core.FailNotRegistered, core.FailReleasing, core.FailNoSpace}).Draw(t, "why"))
						break
					}
					d.answer(m, reply)
				}
			case 9:
				if rapid.IntRange(0, 4).Draw(t, "stray") > 0 {
					d.fire(core.Never)
				} else {
					kind := core.TimerKind(rapid.IntRange(0, int(core.TimerKinds)).Draw(t, "timer"))
					if _, armed := d.timers[kind]; !armed { // an armed one fires at its time
						d.step(&core.Input{Kind: core.InputTimer, Timer: core.TimerKey{Kind: kind}})
					}
				}
			case 10:
				var f core.Frames
				for range rapid.IntRange(0, 4).Draw(t, "parts") {
					f.Append(rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(t, "part"))
				}
				d.step(&core.Input{Kind: core.InputFrames, Frames: &f})
			case 11:
				switch rapid.IntRange(0, 9).Draw(t, "end") {
				case 0:
					d.call(core.Call{Kind: core.CallShutdown})
				case 1:
					d.step(&core.Input{Kind: core.InputKind(rapid.IntRange(0, 12).Draw(t, "kind")), Call: &core.Call{Kind: 9}})
				default:
					d.pass(time.Duration(rapid.IntRange(0, 15).Draw(t, "seconds")) * time.Second)
				}
			}
			check(t, d, next)
		}
		d.call(core.Call{Kind: core.CallShutdown})
		d.pass(400 * time.Second)
		if !d.left || len(d.timers) != 0 || d.w.Pending() != 0 {
			t.Fatalf("left %t, timers %v, pending %d", d.left, d.timers, d.w.Pending())
		}
		check(t, d, next)
	})
}

// check judges the records and the answers so far.
func check(t *rapid.T, d *desk, submitted core.RequestID) {
	var stopping, beatStopped, unregistered, stopped bool
	for _, r := range d.records {
		if r.Instance != d.w.Instance() {
			t.Fatalf("a %s without its instance", r.Kind)
		}
		if stopped {
			t.Fatalf("%s after the end", r.Kind)
		}
		switch r.Kind {
		case core.ShutdownBegan:
			stopping = true
		case core.HeartbeatStopped:
			beatStopped = true
		case core.UnregisterSent:
			unregistered = true
		case core.WorkerStopped:
			stopped = true
		case core.PingSent:
			if beatStopped || unregistered {
				t.Fatal("a ping after the heartbeat stopped")
			}
		case core.RegisterSent:
			if stopping || unregistered {
				t.Fatal("QUIET: a register after the stop")
			}
		case core.HeartbeatStarted, core.RecoveryBegan, core.HealthSet, core.HealthCleared:
			if stopping {
				t.Fatalf("%s after the stop", r.Kind)
			}
		}
	}
	checkRecoveries(t, d)
	told, held := map[core.RequestID]int{}, map[core.RequestID]bool{}
	for _, tell := range d.tells {
		switch {
		case tell.Kind == core.TellFinished && tell.Outcome == core.OutcomeFreed:
			if !held[tell.Request] {
				t.Fatalf("the blocks of request %d are freed, which is not held", tell.Request)
			}
			delete(held, tell.Request)
		case tell.Kind == core.TellFinished:
			held[tell.Request] = tell.Outcome == core.OutcomeHeld
			if told[tell.Request]++; told[tell.Request] > 1 {
				t.Fatalf("request %d was reported twice", tell.Request)
			}
			if tell.Request > submitted || tell.Request == 0 {
				t.Fatalf("request %d was never submitted", tell.Request)
			}
		}
	}
	for id, is := range held {
		if !is {
			delete(held, id)
		}
	}
	if len(held) != d.w.Held() && !stopped {
		t.Fatalf("%d requests are held, %d were told so and not freed", d.w.Held(), len(held))
	}
	seen := len(d.saw(core.Submitted))
	if len(told)+d.w.Pending() != seen {
		t.Fatalf("%d submitted, %d told, %d pending", seen, len(told), d.w.Pending())
	}
}

// checkRecoveries judges the order of health and recovery: the health is set by
// a recovery that succeeded and by nothing else, recoveries never overlap, no
// request is resolved twice, and with the protection on, none is older than its
// patience.
func checkRecoveries(t *rapid.T, d *desk) {
	healthy, recovering, succeeded := true, false, false
	resolved := map[uint64]bool{}
	for _, r := range d.records {
		switch r.Kind {
		case core.HealthCleared:
			if !healthy {
				t.Fatal("cleared twice")
			}
			healthy, succeeded = false, false
		case core.HealthSet:
			if healthy || !succeeded {
				t.Fatal("health was set without a recovery")
			}
			healthy = true
		case core.RecoveryBegan:
			if healthy || recovering {
				t.Fatal("a recovery of what is well, or a second one")
			}
			recovering = true
		case core.RecoveryEnded:
			if !recovering {
				t.Fatal("a recovery ended twice")
			}
			recovering, succeeded = false, r.Flag
		case core.RequestSent:
			if !healthy && d.w.cfg.Mode == core.ModeServerDriven {
				t.Fatal("a transfer went out while unhealthy")
			}
		case core.RequestResolved:
			if resolved[r.A] {
				t.Fatalf("request %d was resolved twice", r.A)
			}
			resolved[r.A] = true
		}
	}
	if !d.w.cfg.Protections.RequestDeadlines {
		return
	}
	for s := d.w.pending.active.head; s != none; s = d.w.pending.entries[s].next {
		if at, armed := d.timers[core.TimerRequest]; !armed || at > d.w.pending.at(s).due {
			t.Fatal("a request waits that no timer will end")
		}
	}
}
