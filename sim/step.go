package sim

import (
	"fmt"

	"vigil/core"
)

// A search does not let a world run: it asks what can come next, forks the
// world and has each of it come. Run by a tape of the same decisions is the
// same run.

// Begin lays out a plan's world for a caller who steps it. Time must go in
// ticks (InTicks). observer, which may be nil, sees every record.
func (w *World) Begin(plan *Plan, choices *Choices, observer Observer) {
	if choices.grain <= 0 {
		panic("sim: only a world in ticks can be stepped")
	}
	w.reset(plan, choices, observer)
}

// Watch gives a forked world the choices and the observer of its own.
func (w *World) Watch(choices *Choices, observer Observer) {
	w.choices, w.observer = choices, observer
	w.ticks.steps, _ = observer.(StepObserver)
}

// Ready returns how many events can come next, at one instant; 0 when the run
// is over. Where there are several, their order is the tape's next decision for
// ForOrder of actor 0.
func (w *World) Ready() int { return w.gather(core.Time(w.plan.Until)) }

// Step has event i of those that Ready counted come. Where the code under test
// panics it says with what, and the world is no good any more.
func (w *World) Step(i int) (panicked string) {
	defer func() {
		if cause := recover(); cause != nil {
			panicked = fmt.Sprintf("%v at %s", cause, panicPlace())
		}
	}()
	w.step(i)
	return ""
}

// End ends a run that Ready said is over.
func (w *World) End() Result {
	end := core.Time(w.plan.Until)
	w.now = end
	w.truth(core.WorldEnded, nil)
	w.emit()
	return Result{Events: w.events, Records: w.records, Hash: w.hash, End: end, Unfired: w.story.unfired(nil)}
}

// Now is the world's time.
func (w *World) Now() core.Time { return w.now }

// What an event touches, as a set: two events that touch nothing in common
// lead to the same state in either order. Bit 0 is the server with its memory,
// bit i worker i-1 with its engine and its memory, at most maxTouched of them.
const (
	touchesServer = uint64(1)
	touchesAll    = ^uint64(0)
	maxTouched    = 63
)

// Touches returns what event i of those that can come next touches. Whatever is
// not plainly the affair of one process touches everything.
func (w *World) Touches(i int) uint64 {
	e := &w.heap.soon[w.ticks.ready[i]]
	// A story that waits for records makes their order matter.
	if len(w.processes) > maxTouched || len(w.story.watches) > 0 {
		return touchesAll
	}
	switch e.kind {
	case evTimer:
		if e.who == 0 {
			return w.serverTouches()
		}
		return w.workerTouches(int(e.who))
	case evReach, evHandle:
		// A message leaves its worker's socket, where another may fall in behind it.
		if m := w.net.find(e.what); w.net.messages[m].loose || w.processes[0].state != running {
			return touchesAll
		}
		return w.serverTouches()
	case evReply, evTake:
		if w.processes[e.who+1].state != running {
			return touchesAll
		}
		return w.workerTouches(int(e.who) + 1)
	case evTraffic, evPoll:
		return w.workerTouches(int(e.who))
	case evMemory:
		if w.processes[0].state != running || e.who == 1 {
			return touchesAll
		}
		set := w.serverTouches()
		if o := &w.memory.operations[uint32(e.what)]; o.mapping >= 0 {
			if a := w.memory.mappings[o.mapping].allocation; a >= 0 {
				set |= 1 << (w.memory.allocations[a].worker + 1)
			}
		}
		return set
	}
	return touchesAll
}

// Decides reports whether event i of those that can come next may have decisions
// within it beside those that are always the plainest.
func (w *World) Decides(i int) bool { return w.ticks.wide || w.Touches(i) == touchesAll }

// serverTouches: a server that is told to stop may end its process.
func (w *World) serverTouches() uint64 {
	if !w.server.Serving() {
		return touchesAll
	}
	return touchesServer
}

// workerTouches: a worker that serves sends and is told, no more. One that
// starts or leaves may end its process and with it its connection and its
// memory.
func (w *World) workerTouches(process int) uint64 {
	p, e := &w.processes[process], (*engine)(nil)
	if process > len(w.engines) { // the raw client
		return touchesAll
	}
	if e = &w.engines[process-1]; p.leaving || !e.registered || w.net.links[process-1].peer == 0 {
		return touchesAll
	}
	return 1 << process
}
