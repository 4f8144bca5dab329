package sim

import (
	"testing"
	"time"

	"vigil/faults"
)

// One more decision of one purpose or actor must not move any other stream.
func TestStreamsAreIndependent(t *testing.T) {
	plain, extra := NewChoices(5), NewChoices(5)
	extra.Below(ForLatency, 3, 1000)
	extra.Below(ForOrder, 1, 7)
	for i := 0; i < 100; i++ {
		for _, actor := range []int{0, 1, 2} {
			a, b := plain.Below(ForLatency, actor, 1_000_000), extra.Below(ForLatency, actor, 1_000_000)
			if a != b {
				t.Fatalf("draw %d of actor %d moved from %d to %d", i, actor, a, b)
			}
		}
	}
}

// A recorded tape decides the same again, and for the plainest past its end.
func TestTapeReplays(t *testing.T) {
	var tape Tape
	c := NewChoices(9)
	c.Record(&tape)
	var want []uint64
	for i := 0; i < 200; i++ {
		want = append(want, c.Below(Purpose(i%int(purposes)), i%5, uint64(i)+1))
	}
	again := ChoicesFrom(&tape)
	for i, v := range want {
		if got := again.Below(Purpose(i%int(purposes)), i%5, uint64(i)+1); got != v {
			t.Fatalf("decision %d: recorded %d, replayed %d", i, v, got)
		}
	}
	if got := again.Below(ForLoss, 0, 100); got != 0 {
		t.Fatalf("past the end the tape decided %d, want the plainest, 0", got)
	}
}

// A reseeded tape is a fresh one: nothing of the last run is left in it.
func TestReseedForgets(t *testing.T) {
	used := NewChoices(1)
	for i := 0; i < 50; i++ {
		used.Below(ForLatency, i%3, 100)
	}
	used.Reseed(2)
	fresh := NewChoices(2)
	for i := 0; i < 50; i++ {
		if a, b := used.Below(ForLatency, i%4, 100), fresh.Below(ForLatency, i%4, 100); a != b {
			t.Fatalf("draw %d: reseeded %d, fresh %d", i, a, b)
		}
	}
}

// A span is met at both ends and never left.
func TestSpanStaysInBounds(t *testing.T) {
	c := NewChoices(3)
	span := faults.Span{Low: 2, High: 5}
	met := map[time.Duration]bool{}
	for i := 0; i < 1000; i++ {
		d := c.Span(ForStory, 0, span, faults.Span{})
		if d < span.Low || d > span.High {
			t.Fatalf("span gave %d", d)
		}
		met[d] = true
	}
	if len(met) != 4 {
		t.Fatalf("only %d of 4 values were met", len(met))
	}
}

func BenchmarkBelow(b *testing.B) {
	c := NewChoices(1)
	for b.Loop() {
		c.Below(ForLatency, 3, 1000)
	}
}
