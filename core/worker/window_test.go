package worker

import (
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// B22: a worker whose interval does not fit the window that the register's
// answer says warns, and pings three times a window. One whose interval fits,
// or whose server says nothing, changes nothing.
func TestAnIntervalFitsTheServersWindow(t *testing.T) {
	for _, c := range []struct {
		name     string
		interval time.Duration
		window   time.Duration
		agreed   bool
		pings    int // in two minutes from the first
	}{
		{"fits", 10 * time.Second, 120 * time.Second, true, 12},
		{"does not fit", 60 * time.Second, 120 * time.Second, true, 3},
		{"does not fit, without the protection", 60 * time.Second, 120 * time.Second, false, 2},
		{"the server says nothing", 60 * time.Second, 0, true, 2},
	} {
		d := newDesk(t, func(k *core.WorkerConfig) {
			k.Interval = c.interval
			k.Protections = core.Hardened()
			k.Protections.AgreedWindow = c.agreed
		})
		d.register()
		warned := len(d.saw(core.WorkerWarned))
		d.answer(d.last(wire.RegisterKVCache), wire.Reply{Nil: true, Window: c.window})
		adapts := c.agreed && c.window > 0 && 3*c.interval > c.window
		if r := d.saw(core.WorkerWarned)[warned:]; (len(r) == 1) != adapts || adapts && (!r[0].Flag || r[0].B != uint64(c.window)) {
			t.Errorf("%s: warned %+v", c.name, r)
		}
		for until := d.now.Add(2 * time.Minute); d.now < until; d.now = max(d.now, until) {
			for d.fire(until - 1) {
				if d.w.beat.phase == beatAwaitsPing {
					d.answer(d.last(wire.Ping), says(known))
				}
			}
		}
		if got := d.count(wire.Ping); got != c.pings {
			t.Errorf("%s: %d pings in two minutes, want %d", c.name, got, c.pings)
		}
	}
}

// A server that comes back with another window is followed by the next register.
func TestAnotherWindowIsFollowed(t *testing.T) {
	d := newDesk(t, hardened, func(k *core.WorkerConfig) { k.Interval = 60 * time.Second })
	d.register()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{Nil: true, Window: 120 * time.Second})
	d.settle()
	d.answer(d.last(wire.Ping), says(absent))
	d.settle()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{Nil: true, Window: 600 * time.Second})
	d.settle()
	if d.w.interval() != 60*time.Second {
		t.Fatalf("it pings every %s", d.w.interval())
	}
}
