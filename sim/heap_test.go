package sim

import (
	"testing"

	"pgregory.net/rapid"
	"vigil/core"
)

// Whatever is pushed comes out in the order of time, each once.
func TestHeapGivesEventsInOrderOfTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 200).Draw(t, "times")
		var h heap
		for i, at := range times {
			h.push(event{at: core.Time(at), what: uint64(i)})
		}
		c := NewChoices(rapid.Uint64().Draw(t, "seed"))
		seen := make([]bool, len(times))
		last := core.Time(-1)
		for range times {
			e := h.next(c)
			if e.at < last {
				t.Fatalf("event at %d came after one at %d", e.at, last)
			}
			if seen[e.what] {
				t.Fatalf("event %d came twice", e.what)
			}
			seen[e.what], last = true, e.at
		}
		if len(h.events) != 0 {
			t.Fatalf("%d events left over", len(h.events))
		}
	})
}

// Every order of a few simultaneous events can be reached by the tape, or an
// exhaustive search would miss some.
func TestTapeReachesEveryOrderOfSimultaneousEvents(t *testing.T) {
	const n = 4
	orders := map[[n]uint64]bool{}
	for seed := uint64(0); seed < 2000; seed++ {
		var h heap
		for i := uint64(0); i < n; i++ {
			h.push(event{at: 7, what: i})
		}
		c := NewChoices(seed)
		var order [n]uint64
		for i := range order {
			order[i] = h.next(c).what
		}
		orders[order] = true
	}
	if len(orders) != 24 {
		t.Fatalf("%d of the 24 orders were reached", len(orders))
	}
}
