package sim

import (
	"time"

	"vigil/core"
	"vigil/faults"
)

// Time in ticks. A search through all orders of events needs a world in which
// orders are what there is to decide. So a tape may say that time is coarse:
// whatever falls on one tick happens at one instant, and its order is asked of
// the tape, all of it; what is shorter than a tick takes none. A message then
// travels, a thread takes its next step and a mapping closes "at any moment of
// this instant", which is what a search has to try.
//
// Order that a real system keeps is kept: a connection's messages arrive and
// are taken in one behind the other, and the host sees a connection close
// behind what came over it. An event that does nothing (a timer that was taken
// back, a message of a life that is over) is no choice: it goes by itself.

// Grained is a source that knows how coarse the time of its run is; 0 is
// nanoseconds.
type Grained interface{ Grain() time.Duration }

// InTicks lets source decide in a world whose time goes in ticks.
func InTicks(grain time.Duration, source Source) *Choices {
	return &Choices{source: source, grain: grain}
}

// Grain is how coarse the time of the tape's run is; 0 is nanoseconds.
func (t *Tape) Grain() time.Duration {
	for i := range t.Streams {
		if s := &t.Streams[i]; s.Purpose == ForGrain && len(s.Values) > 0 && s.Values[0] < 1<<62 {
			return time.Duration(s.Values[0])
		}
	}
	return 0
}

// ticks decides on a time in span, in whole ticks.
func (c *Choices) ticks(purpose Purpose, actor int, span faults.Span) time.Duration {
	low, high := span.Low/c.grain, span.High/c.grain
	if high > low {
		low += time.Duration(c.Below(purpose, actor, uint64(high-low)+1))
	}
	return low * c.grain
}

// StepObserver is an observer that wants to know where an event ends, for in
// ticks the time of the next one does not tell.
type StepObserver interface {
	Observer
	// StepOver says that everything of one event has been observed.
	StepOver()
}

// ticks is what a world in ticks needs beside the heap, whose events then all
// lie in its soonest part, in no order.
type ticks struct {
	world *World
	steps StepObserver
	ready []int32 // events of the heap that can come next
	wide  bool    // some time of the plan is more than one tick wide
	// prints are the folds of the workers' machines, each with the time for which
	// it holds: most events leave most workers as they are.
	prints []machinePrint

	printer printer
}

type machinePrint struct {
	at    core.Time
	fold  core.Digest
	valid bool
}

func (t *ticks) begin(w *World, grain time.Duration) {
	t.world, w.grain, t.ready = w, core.Time(grain), t.ready[:0]
	t.steps, _ = w.observer.(StepObserver)
	if grain > 0 {
		w.heap.horizon = core.Never
		t.prints = resized(t.prints, len(w.plan.Workers)+2)
		t.wide = w.wide(grain)
	}
}

// wide reports whether the times of anything but the story are a choice.
func (w *World) wide(grain time.Duration) bool {
	for _, s := range [...][2]faults.Span{
		{w.plan.Latency, latencyTime}, {w.plan.OpenTime, openTime}, {w.plan.CloseTime, closeTime}, {w.plan.CopyTime, copyTime},
	} {
		if s[0].Zero() {
			s[0] = s[1]
		}
		if s[0].High/grain > s[0].Low/grain {
			return true
		}
	}
	for i := range w.plan.Steps {
		if f := &w.plan.Steps[i].Do.Fault; f.Amount.High/grain > f.Amount.Low/grain {
			return true
		}
	}
	return false
}

// onTick rounds a time up to a tick.
func (w *World) onTick(at core.Time) core.Time {
	if w.grain > 0 && at != core.Never {
		if over := at % w.grain; over > 0 {
			at += w.grain - over
		}
	}
	return at
}

// behind is the earliest time behind another event of the same connection.
func (w *World) behind(at core.Time) core.Time {
	if w.grain > 0 {
		return at
	}
	return at + 1
}

// nextRequest numbers an engine's request. In ticks the number does not tell
// which of two engines came first, so that their orders lead to one state.
func (w *World) nextRequest(who int) core.RequestID {
	if w.grain == 0 {
		w.requests++
		return w.requests
	}
	n := &w.requests
	if who < len(w.engines) {
		n = &w.engines[who].asked
	}
	*n++
	return *n*core.RequestID(len(w.engines)+1) + core.RequestID(who)
}

// placeInTicks finds the place of a worker's allocation. Its number is in the
// handle, so it must not tell which of two workers came first.
func (m *memory) placeInTicks(worker int, life uint64) int {
	for slot := worker; ; slot += len(m.world.engines) {
		for slot >= len(m.allocations) {
			m.allocations = extended(m.allocations)
			a := &m.allocations[len(m.allocations)-1]
			*a = allocation{worker: -1, tags: a.tags[:0]}
		}
		if a := &m.allocations[slot]; a.worker < 0 || a.open == 0 && a.life != life {
			return slot
		}
	}
}

// playTicks plays every event up to end, which then is the present.
func (w *World) playTicks(end core.Time) {
	for {
		n := w.gather(end)
		if n == 0 {
			break
		}
		i := 0
		if n > 1 {
			i = int(w.choices.Below(ForOrder, 0, uint64(n)))
		}
		w.step(i)
	}
	w.now = end
}

// step plays event i of those that can come next.
func (w *World) step(i int) {
	w.happen(w.heap.out(w.ticks.ready[i]))
	if w.ticks.steps != nil {
		w.ticks.steps.StepOver()
	}
}

// out takes event i out of a heap without an order.
func (h *heap) out(i int32) event {
	e := h.soon[i]
	last := len(h.soon) - 1
	h.soon[i] = h.soon[last]
	h.soon = h.soon[:last]
	return e
}

// gather finds the events that can come next, in the order of their asking, and
// returns how many there are; 0 where nothing comes up to end. Events that do
// nothing are gone afterwards.
func (w *World) gather(end core.Time) int {
	t := &w.ticks
	for {
		t.ready = t.ready[:0]
		if len(w.heap.soon) == 0 {
			return 0
		}
		at := core.Never
		for i := range w.heap.soon {
			at = min(at, w.heap.soon[i].at)
		}
		if at > end {
			return 0
		}
		idle := int32(-1)
		for i := range w.heap.soon {
			e := &w.heap.soon[i]
			// In the order of asking: what waits for its process waits in line.
			if e.at == at && (idle < 0 || e.seq < w.heap.soon[idle].seq) && w.idle(e) {
				idle = int32(i)
			}
		}
		if idle >= 0 {
			w.heapIdle(idle)
			continue
		}
		blocked := int32(-1)
		for i := range w.heap.soon {
			e := &w.heap.soon[i]
			if e.at != at {
				continue
			}
			if w.blocked(e) {
				blocked = int32(i)
				continue
			}
			t.insert(int32(i))
		}
		if len(t.ready) > 0 {
			return len(t.ready)
		}
		// Only what waits for an earlier message that a healed cut still keeps: it
		// falls in behind that.
		w.heapIdle(blocked)
	}
}

// heapIdle lets an event pass by that does nothing but a note for later.
func (w *World) heapIdle(i int32) {
	e := w.heap.out(i)
	w.now = max(w.now, e.at)
	w.handleEvent(e)
}

// insert keeps what is ready in the order of asking.
func (t *ticks) insert(i int32) {
	soon := t.world.heap.soon
	t.ready = append(t.ready, i)
	for k := len(t.ready) - 1; k > 0 && soon[t.ready[k]].seq < soon[t.ready[k-1]].seq; k-- {
		t.ready[k], t.ready[k-1] = t.ready[k-1], t.ready[k]
	}
}

// idle reports whether an event of the present tick does nothing but perhaps
// wait for its process, so that no order of it and another makes a difference.
func (w *World) idle(e *event) bool {
	switch e.kind {
	case evTimer:
		return !w.processes[e.who].due(e)
	case evReach, evReply:
		m := w.net.find(e.what)
		if m < 0 {
			return true
		}
		ln, _ := w.net.links[e.who].lane(e.kind == evReach)
		return !w.net.messages[m].loose && ln.cut
	case evHandle, evTake:
		p := &w.processes[0]
		if e.kind == evTake {
			p = &w.processes[e.who+1]
		}
		return w.net.find(e.what) < 0 || p.state == paused
	case evMemory:
		if e.who == 1 {
			return w.processes[0].state == absent
		}
		return w.memory.operations[uint32(e.what)].gen != uint32(e.what>>32)
	case evConnect:
		return w.net.sockets[e.who].epoch != e.what || w.net.links[e.who].peer != 0 || w.processes[e.who+1].state == absent
	case evPeerClosed, evExited:
		return w.processes[0].state != running
	case evStart:
		p := &w.processes[e.who]
		return p.life != e.what || p.state != absent
	case evRegister, evTraffic, evPoll:
		p := &w.processes[e.who]
		return p.life != e.what || p.state != running
	}
	return false
}

// due reports whether the timer of an event is one that fires now.
func (p *process) due(e *event) bool {
	key := unpackKey(e.what)
	for i := range p.timers {
		t := &p.timers[i]
		if t.key == key && t.queued == e.at {
			return t.at != core.Never && p.world.onTick(t.at-p.offset) <= e.at && p.state != paused && !(p.starve && key.Kind.Heartbeat())
		}
	}
	return false
}

// blocked reports whether an event must wait for another of the same tick.
func (w *World) blocked(e *event) bool {
	switch e.kind {
	case evReach, evReply:
		m := w.net.find(e.what)
		if !w.net.messages[m].loose {
			ln, _ := w.net.links[e.who].lane(e.kind == evReach)
			return ln.head != m
		}
	case evTimer: // the same timer was asked for twice
	case evHandle, evTake, evPeerClosed:
	default:
		return false
	}
	for i := range w.heap.soon {
		o := &w.heap.soon[i]
		if o.seq >= e.seq || o.at > e.at || o.who != e.who {
			continue
		}
		switch {
		case o.kind == e.kind && e.kind == evTimer:
			if o.what == e.what {
				return true
			}
		case o.kind == e.kind && e.kind != evPeerClosed:
			if e.kind == evHandle || e.kind == evTake || w.net.loose(o) {
				return true
			}
		case e.kind == evPeerClosed && o.kind == evReach && w.net.loose(o):
			return true
		}
	}
	return false
}

// loose reports whether an event is a message whose connection closed behind it.
func (n *network) loose(e *event) bool {
	m := n.find(e.what)
	return m >= 0 && n.messages[m].loose
}
