package cuda

import (
	"testing"

	"pgregory.net/rapid"

	"vigil/core"
)

// Whatever is opened and closed in whichever order, under whichever names: what
// the table says is open is what the driver has open, and the device gives out
// as much.
func TestTheTableIsWhatTheDeviceSays(t *testing.T) {
	s := newServer(t, nil)
	w := startWorker(t)
	type named struct {
		exported
		memory int
		bytes  uint64
	}
	var handles []named
	for i := range 4 {
		bytes := (i + 1) << 14
		x := w.alloc(0, bytes, i)
		handles = append(handles, named{x, i, uint64(bytes)})
		other := exported{append([]byte(nil), x.handle...), x.uuid} // the stand-in does not look at the last byte
		other.handle[63] = byte(i + 1)
		handles = append(handles, named{other, i, uint64(bytes)})
	}
	idle := free(t, 0)
	number := core.Mapping(0)
	rapid.Check(t, func(r *rapid.T) {
		type held struct{ memories map[int]uint64 }
		open := map[core.Mapping]held{}
		order := []core.Mapping{}
		r.Cleanup(func() { // also where the check ends in the middle
			for _, m := range order {
				s.close(m)
			}
		})
		agree := func() {
			t.Helper()
			all := map[int]uint64{}
			for _, h := range open {
				for m, bytes := range h.memories {
					all[m] = bytes
				}
			}
			sum := uint64(0)
			for _, bytes := range all {
				sum += bytes
			}
			if got := s.Stats(); got.Charged != sum || got.Mappings != len(open) {
				r.Fatalf("%d bytes of %d mappings are charged, and %d of %d are open", got.Charged, got.Mappings, sum, len(open))
			}
			if got := len(s.imports.byBase); got != len(all) {
				r.Fatalf("%d allocations are open in the table, want %d", got, len(all))
			}
		}
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			if len(order) > 0 && rapid.Bool().Draw(r, "close") {
				i := rapid.IntRange(0, len(order)-1).Draw(r, "which")
				if in := s.close(order[i]); in.Failure != core.NoFailure {
					r.Fatal(in.Failure)
				}
				delete(open, order[i])
				order = append(order[:i], order[i+1:]...)
			} else {
				number++
				h := held{map[int]uint64{}}
				var exports []core.Export
				want := uint64(0)
				for _, k := range rapid.SliceOfN(rapid.IntRange(0, len(handles)-1), 1, 5).Draw(r, "handles") {
					x := handles[k]
					exports = append(exports, x.tensor(1, uint32(x.bytes)))
					if h.memories[x.memory] == 0 {
						h.memories[x.memory] = x.bytes
						want += x.bytes
					}
				}
				in := s.open(number, exports...)
				if in.Failure != core.NoFailure || in.Bytes != want {
					r.Fatalf("%s with %d bytes, want %d", in.Failure, in.Bytes, want)
				}
				open[number] = h
				order = append(order, number)
			}
			agree()
		}
		for len(order) > 0 {
			m := order[0]
			order = order[1:]
			if in := s.close(m); in.Failure != core.NoFailure {
				r.Fatal(in.Failure)
			}
			delete(open, m)
			agree()
		}
	})
	w.kill()
	if got := free(t, 0); got != idle+(1+2+3+4)<<14+2<<20 {
		t.Errorf("when the worker is dead and nothing is open, %d bytes are free; with the worker it was %d", got, idle)
	}
}

// A device's name comes from a stranger.
func FuzzParseUUID(f *testing.F) {
	for _, text := range []string{"GPU-76696769-6c2d-7374-616e-642d696e0001", "mig-", "76696769-6c2d-7374-616e-642d696e000g", "cpu"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseUUID(text)
		if err != nil {
			return
		}
		if again, err := ParseUUID(u.String()); err != nil || again != u {
			t.Errorf("%q is %s, which is %s, %v", text, u, again, err)
		}
	})
}
