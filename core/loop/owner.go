package loop

import (
	"github.com/benbjohnson/clock"

	"vigil/core"
)

// owner is the one goroutine that drives a machine. It is the machine's
// core.Clock: the time is read once per step, before the step.
type owner struct {
	pace   pace
	now    core.Time // of the step under way
	timers timers
	box    mailbox
	driver core.Driver
	input  core.Input // of the step under way

	// take makes a message an input, and done takes the message back after its
	// step. before, where set, sees each input before its step. settled, where
	// set, runs before each batch and before each sleep.
	take    func(*message, *core.Input)
	done    func(*message)
	before  func(core.Time, *core.Input)
	settled func()
	// until is a time at which settled must run, Never for none.
	until core.Time
	alarm alarm

	gone bool // set by the owner itself: it ends after this step
	// starve holds back what the heartbeat thread waits for (a test's fault):
	// its timers that fell due wait in starved.
	starve  bool
	starved []core.TimerKey
	ended   chan struct{}
}

func (o *owner) init(p pace) {
	o.pace, o.until = p, core.Never
	o.box.init()
	o.driver.Clock = o
	o.driver.Effects = new(core.Effects)
	o.ended = make(chan struct{})
}

// Now, Arm and Disarm are the machine's clock; the owner alone calls them.
func (o *owner) Now() core.Time                      { return o.now }
func (o *owner) Arm(key core.TimerKey, at core.Time) { o.forget(key); o.timers.arm(key, at) }
func (o *owner) Disarm(key core.TimerKey)            { o.forget(key); o.timers.disarm(key) }

// forget takes a starved timer back.
func (o *owner) forget(key core.TimerKey) {
	for i := range o.starved {
		if o.starved[i] == key {
			o.starved = append(o.starved[:i], o.starved[i+1:]...)
			return
		}
	}
}

// feedHeartbeat ends the starving: what fell due meanwhile is due now.
func (o *owner) feedHeartbeat() {
	for _, key := range o.starved {
		o.timers.arm(key, o.now)
	}
	o.starve, o.starved = false, o.starved[:0]
}

// tick reads the time; it never moves back.
func (o *owner) tick() {
	if now := o.pace.now(); now > o.now {
		o.now = now
	}
}

// feed takes one step with o.input.
func (o *owner) feed() {
	o.tick()
	if o.before != nil {
		o.before(o.now, &o.input)
	}
	o.driver.Feed(&o.input)
}

func (o *owner) fire() bool {
	key, ok := o.timers.due(o.now)
	if ok && o.starve && key.Kind.Heartbeat() {
		o.starved = append(o.starved, key)
		return true
	}
	if ok {
		o.input = core.Input{Kind: core.InputTimer, Timer: key}
		o.feed()
	}
	return ok
}

// run is the goroutine. A timer that is due takes its turn between any two
// items, so neither a flood of messages nor a reaper with much to do holds the
// other back.
func (o *owner) run() {
	defer close(o.ended)
	defer func() {
		for _, i := range o.box.close() {
			if i.message != nil {
				o.done(i.message)
			}
		}
	}()
	defer o.alarm.stop()
	var batch []item
	for !o.gone {
		o.tick()
		if o.settled != nil {
			o.settled()
		}
		if o.gone {
			return
		}
		fired := o.fire()
		if batch = o.box.take(batch[:0], !fired); len(batch) > 0 {
			o.work(batch)
		} else if !fired {
			o.alarm.sleep(o, min(o.timers.next(), o.until))
		}
	}
}

// work takes a batch in. Once the machine is done, what is left of the batch
// has nobody to go to.
func (o *owner) work(batch []item) {
	for i := range batch {
		if !o.gone {
			o.handle(&batch[i])
		} else if m := batch[i].message; m != nil {
			o.done(m)
		}
		batch[i] = item{}
		if !o.gone {
			o.fire()
		}
	}
}

// alarm is the one timer of the clock, set to the earliest that is armed. Most
// steps arm nothing earlier, so it is seldom set anew.
type alarm struct {
	timer *clock.Timer
	at    core.Time // what it is set to
}

// sleep waits for the mailbox to ring, or until next.
func (a *alarm) sleep(o *owner, next core.Time) {
	if next == core.Never {
		<-o.box.wake
		return
	}
	if wait := o.pace.wait(next.Sub(o.now)); a.timer == nil {
		a.timer = o.pace.clock.Timer(wait)
	} else if next != a.at {
		a.stop()
		a.timer.Reset(wait)
	}
	a.at = next
	select {
	case <-o.box.wake:
	case <-a.timer.C:
		a.at = core.Never
	}
}

func (a *alarm) stop() {
	if a.timer != nil && !a.timer.Stop() {
		select { // a tick that nobody took would block a mock clock
		case <-a.timer.C:
		default:
		}
	}
}

func (o *owner) handle(i *item) {
	switch {
	case i.message != nil:
		o.take(i.message, &o.input)
		o.feed()
		o.done(i.message)
	case i.run != nil:
		o.tick()
		i.run()
	default:
		o.input = core.Input{
			Kind: i.kind, Peer: i.peer, Op: i.op, Bytes: i.bytes, Instance: i.instance, Failure: i.failure,
		}
		o.feed()
	}
}
