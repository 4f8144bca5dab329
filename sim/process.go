package sim

import (
	"vigil/core"
	"vigil/faults"
)

// processState is where a process is in its life.
type processState uint8

const (
	absent  processState = iota // not started, or gone
	running                     //
	paused                      // SIGSTOP, or its host is suspended
)

// timer is one armed timer of a process. Its heap event is lazy: moving it
// later or taking it back costs nothing until the event comes up.
type timer struct {
	key    core.TimerKey
	at     core.Time // on the process's clock; core.Never once disarmed
	queued core.Time // world time of the heap event that will look at it
}

// process is one operating-system process: the server, or one worker with its
// engine. It is kept small: in a world of 100,000 the cost of an event is the
// cost of fetching what it touches.
type process struct {
	world   *World
	machine core.Machine // nil for the raw client
	// offset is its monotonic clock minus the world's time. A freeze leaves the
	// clock going; a suspended host's clock stands still.
	offset  core.Time
	timers  []timer
	index   int32 // 0 is the server, i+1 worker i
	state   processState
	starve  bool // its heartbeat thread gets no processor
	leaving bool // asked to shut down in order
	life    uint64
	few     [2]timer // where timers begins: a worker seldom has more at a time
	*aside
}

// aside is what most events of a process do not touch. life counts its starts,
// so that what was meant for an earlier life is dropped.
type aside struct {
	pid     uint64    // in its namespace
	stopped core.Time // world time of the suspension that still holds, else core.Never
	held    []event   // what came up while it was paused
	starved []event   // heartbeat timers that came up while that thread starved
}

// name is the process's number as records carry it.
func (p *process) number() uint64 { return uint64(p.index) }

// actor is the process's number on the tape.
func (p *process) actor() int { return int(p.index) }

// Now is the process's monotonic clock.
func (p *process) Now() core.Time { return p.world.now + p.offset }

// Arm sets a timer. One that is due at once is the next step of a thread: how
// long the thread takes to it is the tape's.
func (p *process) Arm(key core.TimerKey, at core.Time) {
	w := p.world
	if at <= p.Now() {
		at = p.Now().Add(w.choices.Span(ForGap, p.actor(), gapTime, gapTime))
		if w.choices.Chance(ForGap, p.actor(), 8) { // now and then the scheduler looks elsewhere
			at = at.Add(w.choices.Span(ForGap, p.actor(), longGapTime, longGapTime))
		}
	}
	due := w.onTick(at - p.offset)
	for i := range p.timers {
		t := &p.timers[i]
		if t.key != key {
			continue
		}
		t.at = at
		if due < t.queued {
			t.queued = due
			w.push(evTimer, p.actor(), due, packKey(key))
		}
		return
	}
	p.timers = append(p.timers, timer{key, at, due})
	w.push(evTimer, p.actor(), due, packKey(key))
}

// Disarm takes a timer back.
func (p *process) Disarm(key core.TimerKey) {
	for i := range p.timers {
		if p.timers[i].key == key {
			p.timers[i].at = core.Never
			return
		}
	}
}

func packKey(key core.TimerKey) uint64 { return uint64(key.Kind)<<32 | uint64(key.Slot) }

func unpackKey(what uint64) core.TimerKey {
	return core.TimerKey{Kind: core.TimerKind(what >> 32), Slot: uint32(what)}
}

// timerUp looks at the timer whose event came up and fires it if it is due. It
// reports false where the event was only a stale reminder.
func (p *process) timerUp(e event) bool {
	key := unpackKey(e.what)
	for i := range p.timers {
		t := &p.timers[i]
		if t.key != key || t.queued != e.at {
			continue
		}
		if t.at == core.Never {
			p.forget(i)
			return false
		}
		if due := p.world.onTick(t.at - p.offset); due > e.at { // moved later, or the clock stood still
			t.queued = due
			p.world.push(evTimer, p.actor(), due, e.what)
			return false
		}
		if p.state == paused || p.starve && key.Kind.Heartbeat() {
			// Where it is kept until the process or the thread goes on.
			t.queued = heldBack
			if p.state == paused {
				p.held = append(p.held, e)
			} else {
				p.starved = append(p.starved, e)
			}
			return false
		}
		p.forget(i)
		in := &p.world.input
		*in = core.Input{Kind: core.InputTimer, Timer: key}
		p.feed(in)
		// A thread that sees the stop ends in silence. The deadline of requests is
		// one timer for all, and is left alone when its request ends (core/worker).
		if len(p.world.driver.Effects.Order) == 0 && !p.leaving && key.Kind != core.TimerRequest {
			p.inVain(key)
		}
		return true
	}
	return false
}

// feed gives the process's machine one input. The world has one driver, which
// serves whichever process acts.
func (p *process) feed(in *core.Input) {
	d := &p.world.driver
	if p.world.grain > 0 {
		p.world.ticks.prints[p.index].valid = false
	}
	d.Machine, d.Actor = p.machine, core.ActorServer+core.Actor(p.index)
	d.Clock, d.Transport, d.Memory, d.Engine, d.Recorder, d.Leaver = p, p, p, p, p, p
	d.Inline = &p.world.parcels
	d.Feed(in)
}

// inVain tells of a timer that nobody waited for.
func (p *process) inVain(key core.TimerKey) {
	r := p.world.truth(core.TimerInVain, p)
	r.A, r.B = p.number(), uint64(key.Kind)
	p.world.emit()
}

// heldBack marks a timer whose event waits for its process: earlier than any
// time, so that arming it again queues no second event.
const heldBack = core.Time(-1 << 62)

// forget drops timer i.
func (p *process) forget(i int) {
	last := len(p.timers) - 1
	p.timers[i] = p.timers[last]
	p.timers = p.timers[:last]
}

// release puts back what a pause or a starved thread held, as if the scheduler
// woke its threads one by one: the tape decides in which order overdue timers
// and waiting messages are seen.
func (p *process) release(held []event) []event {
	w := p.world
	for _, e := range held {
		at := w.now.Add(w.choices.Span(ForOrder, p.actor(), wakeTime, wakeTime))
		switch e.kind {
		case evTimer:
			key := unpackKey(e.what)
			for i := range p.timers {
				if p.timers[i].key == key && p.timers[i].queued == heldBack {
					p.timers[i].queued = at
					w.push(evTimer, p.actor(), at, e.what)
					break
				}
			}
		case evHandle, evTake:
			w.net.enqueue(e, at)
		default:
			w.push(e.kind, int(e.who), at, e.what)
		}
	}
	return held[:0]
}

// pause stops the process; with clock it is its host that is suspended, so its
// monotonic clock stands still as well.
func (p *process) pause(clock bool) bool {
	if p.state != running {
		return false
	}
	p.state = paused
	if clock {
		p.stopped = p.world.now
	}
	p.world.truth(core.ProcessPaused, p).A = p.number()
	p.world.emit()
	return true
}

// resume lets the process go on.
func (p *process) resume() bool {
	if p.state != paused {
		return false
	}
	p.state = running
	if p.stopped != core.Never {
		p.offset -= p.world.now - p.stopped
		p.stopped = core.Never
	}
	p.world.truth(core.ProcessResumed, p).A = p.number()
	p.world.emit()
	p.held = p.release(p.held)
	if !p.starve { // its heartbeat got its processor back while the process stood still
		p.starved = p.release(p.starved)
	}
	return true
}

// gone empties what only a living process has.
func (p *process) gone() {
	p.state = absent
	p.life++
	p.timers = p.timers[:0]
	p.world.net.dropHeld(p.held)
	p.held = p.held[:0]
	p.starved = p.starved[:0]
	p.starve = false
	p.leaving = false
	p.stopped = core.Never
}

// Send hands a message to the network.
func (p *process) Send(peer core.Peer, frames *core.Frames) {
	if p.index == 0 {
		p.world.net.reply(peer, frames)
		return
	}
	p.world.net.request(p.actor()-1, frames)
}

// Open, Close and Copy begin a memory operation.
func (p *process) Open(o *core.OpenOrder)   { p.world.memory.open(o) }
func (p *process) Close(o *core.CloseOrder) { p.world.memory.close(o) }
func (p *process) Copy(o *core.CopyOrder)   { p.world.memory.copy(o) }

// Tell answers the engine of this process.
func (p *process) Tell(t *core.Tell) { p.world.engines[p.index-1].tell(t) }

// Record takes a claim of the core into the event log, at the world's time.
func (p *process) Record(r *core.Record) {
	if r.Kind == core.WorkerStarted {
		p.world.identities[p.index-1] = r.Instance
		r.A = p.pid
	}
	p.world.record(r)
}

// Leave ends the process in order: the server's at once, a worker's where its
// engine was told that the worker has left, for that is what it waits for.
func (p *process) Leave(code core.ExitCode) {
	if p.index == 0 || p.world.engines[p.index-1].told {
		p.world.exits = append(p.world.exits, exit{who: p.actor(), bounded: code == core.ExitBounded})
	}
}

// The latencies that a plan leaves unset, and those that are the host's own.
var (
	gapTime     = faults.Span{Low: 1_000, High: 50_000}         // from one step of a thread to its next
	longGapTime = faults.Span{Low: 50_000, High: 3_000_000}     // the same when the scheduler looks elsewhere
	wakeTime    = faults.Span{Low: 0, High: 1_000_000}          // from SIGCONT to a thread's first step
	latencyTime = faults.Span{Low: 50_000, High: 1_000_000}     // of a message
	openTime    = faults.Span{Low: 1_000_000, High: 20_000_000} // of an open
	closeTime   = faults.Span{Low: 1_000_000, High: 10_000_000} // of a close
	copyTime    = faults.Span{Low: 100_000, High: 3_000_000}    // of a copy
	bootTime    = faults.Span{Low: 1_000_000_000, High: 2_000_000_000}
	connectTime = faults.Span{Low: 100_000, High: 5_000_000}        // of a first connection
	backoffTime = faults.Span{Low: 10_000_000, High: 1_000_000_000} // of a reconnect
	noticeTime  = faults.Span{Low: 100_000, High: 50_000_000}       // until a host sees that a connection closed
	healTime    = faults.Span{Low: 1_000_000, High: 400_000_000}    // until a stalled stream is retransmitted
	stepTime    = faults.Span{Low: 1_000_000, High: 20_000_000}     // of one engine step
)
