package sim

import (
	"testing"

	"pgregory.net/rapid"
	"vigil/core"
)

// Whatever is pushed comes out in the order of time, each once.
func TestHeapGivesEventsInOrderOfTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := rapid.SampledFrom([]int64{1, 1 << 17, 1 << 20, 1 << 27, 1 << 30, 1 << 36}).Draw(t, "scale")
		times := rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 400).Draw(t, "times")
		for i := range times {
			times[i] *= scale
		}
		var h heap
		h.reset(rapid.Bool().Draw(t, "crowded"))
		for i, at := range times {
			h.push(event{at: core.Time(at), what: uint64(i)})
		}
		c := NewChoices(rapid.Uint64().Draw(t, "seed"))
		seen := make([]bool, len(times))
		last := core.Time(-1)
		for i := 0; i < len(times); i++ {
			if at, some := h.peek(); !some || at < last {
				t.Fatalf("peek says %d, %v after %d", at, some, last)
			}
			e := h.next(c)
			h.lookAhead(e.at)
			if e.at < last {
				t.Fatalf("event at %d came after one at %d", e.at, last)
			}
			if seen[e.what] {
				t.Fatalf("event %d came twice", e.what)
			}
			seen[e.what], last = true, e.at
			if rapid.IntRange(0, 3).Draw(t, "push") == 3 { // what happens makes more happen, not before now
				at := e.at + core.Time(rapid.Int64Range(0, 90<<30).Draw(t, "after"))
				h.push(event{at: at, what: uint64(len(times))})
				times, seen = append(times, int64(at)), append(seen, false)
			}
		}
		if at, some := h.peek(); some {
			t.Fatalf("an event at %d is left over", at)
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
		h.reset(false)
		for i := uint64(0); i < n; i++ {
			h.push(event{at: 7, what: i})
		}
		c := NewChoices(seed)
		var order [n]uint64
		for i := range order {
			h.peek()
			order[i] = h.next(c).what
		}
		orders[order] = true
	}
	if len(orders) != 24 {
		t.Fatalf("%d of the 24 orders were reached", len(orders))
	}
}
