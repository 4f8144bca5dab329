package worker

import "vigil/core"

// What a shell shows of a worker. Nothing here is asked by the worker itself.

// Instance is the worker's id; 0 before its start.
func (w *Worker) Instance() core.InstanceID { return w.id }

// Healthy is what the heartbeat last made of the server; true before there is
// a heartbeat.
func (w *Worker) Healthy() bool { return w.healthy }

// Pending is how many submitted requests the engine was not yet told the end of.
func (w *Worker) Pending() int { return w.pending.count() - w.Held() }

// Held is how many requests ended with their blocks still taken.
func (w *Worker) Held() int {
	t, held := &w.pending, 0
	for s := t.held.head; s != none; s = t.entries[s].next {
		held++
	}
	for s := t.ready.head; s != none; s = t.entries[s].next {
		if t.entries[s].outcome == core.OutcomeFreed {
			held++
		}
	}
	return held
}

// Registered reports whether the server ever answered a registration.
func (w *Worker) Registered() bool { return w.registered }
