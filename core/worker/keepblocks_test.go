package worker

import (
	"testing"

	"vigil/core"
	"vigil/core/wire"
)

// B21: what was sent is on its way to the server, whatever the health says. A
// document worker reports it as ended, and its blocks are used again under the
// copy that still comes; with keep-blocks it ends by its reply.
func TestWhatWasSentKeepsItsBlocksThroughAnOutage(t *testing.T) {
	for _, keep := range []bool{false, true} {
		d := serving(t, wire.PingVerdict{}, func(c *core.WorkerConfig) { c.Protections.KeepBlocks = keep })
		d.retrieve(2, 5)
		sent := d.last(wire.Retrieve)
		d.pass(2 * interval) // a ping without an answer
		d.settle()
		if d.w.Healthy() {
			t.Fatal("a failed ping left the worker healthy")
		}
		told := d.finished()
		if !keep {
			d.told(told[0], 2, core.OutcomeFailed, 5)
			continue
		}
		if len(told) != 0 || d.w.Pending() != 1 {
			t.Fatalf("given up although it may still be carried out: %v", told)
		}
		d.answer(sent, wire.Reply{OK: true, Data: []byte{}})
		if told = d.finished(); len(told) != 1 || told[0].Request != 2 || d.w.Pending() != 0 {
			t.Fatalf("after the reply: %v, %d pending", told, d.w.Pending())
		}
	}
}
