package sim

// What a story makes an engine do beside its traffic: take other memory, or
// stand still with its heartbeat beating on. Apart from engine.go because no
// engine does either by itself.

// reallocate has the engine take other memory and register that under its id
// (B9). It holds nothing that is on its way, as a real one would not: false
// while a request of it is pending, and before it has any memory.
func (e *engine) reallocate() bool {
	if e.allocation < 0 || e.stuck || len(e.pending) > 0 {
		return false
	}
	e.allocation, e.next = -1, 0
	return e.register()
}

// stick holds the engine's own thread: it submits nothing and does not ask
// what ended, while the adapter's heartbeat goes on (B16).
func (e *engine) stick() bool {
	if e.stuck || e.process().state == absent {
		return false
	}
	e.stuck = true
	return true
}

// unstick lets the engine go on where it stood.
func (e *engine) unstick() {
	if !e.stuck {
		return
	}
	e.stuck = false
	e.schedule()
	if e.polling {
		e.polling = false
		e.poll()
	}
}
