package explore

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"vigil/sim"
)

func drawnTape(t *rapid.T) *sim.Tape {
	tape := &sim.Tape{}
	for purpose := sim.ForStart; purpose <= sim.ForEntropy; purpose++ {
		for actor := range rapid.IntRange(0, 3).Draw(t, "actors") {
			values := rapid.SliceOfN(rapid.Uint64(), 1, 20).Draw(t, "values")
			tape.Streams = append(tape.Streams, sim.Stream{Purpose: purpose, Actor: actor * 31, Values: values})
		}
	}
	return tape
}

func TestATapeComesBackFromItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tape := drawnTape(t)
		text := EncodeTape(tape)
		back, err := DecodeTape(text)
		if err != nil || !reflect.DeepEqual(back.Streams, tape.Streams) {
			t.Fatalf("%v: wrote %v, read %v", err, tape.Streams, back)
		}
	})
}

// A tape that was damaged anywhere is refused.
func TestADamagedTapeIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := EncodeTape(drawnTape(t))
		damaged := bytes.Clone(text)
		if at := rapid.IntRange(0, len(text)-1).Draw(t, "at"); rapid.Bool().Draw(t, "cut") {
			damaged = damaged[:at]
		} else {
			damaged[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "change"))
		}
		if _, err := DecodeTape(damaged); err == nil {
			t.Fatalf("read as if nothing were wrong:\n%s", damaged)
		}
	})
}

func FuzzDecodeTape(f *testing.F) {
	f.Add([]byte("vigil-tape 1 1\ncheck 00000000\n"))
	f.Add(EncodeTape(&sim.Tape{Streams: []sim.Stream{{Purpose: sim.ForLatency, Actor: 1, Values: []uint64{0, 1, 1 << 40}}}}))
	f.Fuzz(func(t *testing.T, text []byte) {
		tape, err := DecodeTape(text)
		if err != nil {
			return
		}
		if again := EncodeTape(tape); !bytes.Equal(again, text) {
			t.Fatalf("%q reads as a tape that is written %q", text, again)
		}
	})
}
