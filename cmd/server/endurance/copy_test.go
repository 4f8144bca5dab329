package endurance_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"vigil/cmd/server/servertest"
	"vigil/core"
	"vigil/core/wire"
	"vigil/realgpu/hostshm"
)

// Why this file: what moving bytes costs, beside moving the same bytes with
// nothing around it.

// Chunks of 1 MiB with four requests in flight are stored and retrieved at no
// less than half the rate of a plain copy of the same blocks, in turns.
//
// A request of four chunks, a prompt of a thousand tokens, has to reach that. A
// request of a single chunk moves for 60 microseconds, which is what waking the
// next process in the chain may take where others want the processors too; it
// is reported, and bounded by what shows a defect of ours.
func TestStoreAndRetrieveAgainstMemcpy(t *testing.T) {
	if servertest.Race {
		t.Skip("the race detector is no measure of speed")
	}
	for _, c := range []struct {
		chunks int
		least  float64
	}{{1, 0.35}, {4, 0.5}} {
		againstMemcpy(t, c.chunks, c.least)
	}
}

// againstMemcpy moves so many chunks with each request.
func againstMemcpy(t *testing.T, each int, least float64) {
	const (
		layers, blockBytes = 2, 32 << 10
		chunk              = layers * chunkBlocks * blockBytes // 1 MiB
		chunks             = 64                                // of the worker's memory
		store              = 256                               // chunks of the store
		flight             = 4
		id                 = core.InstanceID(5)
	)
	s := serve(t, "--l1-bytes", "256MiB", "--pool-bytes", "0")
	c := dial(t, s.bind)
	defer c.close()
	m := newMemory(t, layers, chunks*chunkBlocks, blockBytes)
	hostshm.Fill(m.Bytes(), 9)
	if r := c.ask(m.register(id)); r.Refusal != core.NoFailure {
		t.Fatalf("register: %s", r.Refusal)
	}
	plain := make([]byte, store*chunk) // the same working set
	hostshm.Fill(plain, 1)
	block := func(l, b int) []byte {
		from := (l*chunks*chunkBlocks + b) * blockBytes
		return m.Bytes()[from : from+blockBytes]
	}
	at := 0
	memcpy := func(out bool) float64 {
		began := time.Now()
		for n := range chunks {
			to := plain[at*chunk : (at+1)*chunk]
			at = (at + 1) % store
			for l := range layers {
				for b := range chunkBlocks {
					if out {
						copy(to, block(l, n*chunkBlocks+b))
					} else {
						copy(block(l, n*chunkBlocks+b), to)
					}
					to = to[blockBytes:]
				}
			}
		}
		return time.Since(began).Seconds()
	}
	serial := uint64(0)
	turn := func(kind wire.Type, first uint64) float64 {
		var list []parts
		for n := range chunks / each {
			list = append(list, encode(transferOf(kind, id, first+uint64(n), each, n*each*chunkBlocks)))
		}
		began := time.Now()
		for n := range len(list) + flight {
			if n >= flight {
				if list, err := c.soc.RecvMessageBytes(0); err != nil || !bytes.HasSuffix(list[2], []byte{0xc3}) {
					t.Fatalf("%s: answered %q, %v", kind, list, err)
				}
			}
			if n < len(list) {
				c.send(list[n])
			}
		}
		return time.Since(began).Seconds()
	}
	var rates [4][]float64
	var ratios [2][]float64
	defer s.profile(fmt.Sprintf("copies-%d", each), 2*time.Second)()
	const mib = chunks * chunk >> 20
	for begun, n := time.Now(), 0; n < 12 || time.Since(begun) < of(time.Second, 15*time.Second); n++ {
		out := memcpy(true)
		stored := turn(wire.Store, serial)
		in := memcpy(false)

		retrieved := turn(wire.Retrieve, serial)
		serial += chunks
		if n < 6 {
			continue // the store's pages are new
		}
		for i, v := range []float64{out, stored, in, retrieved} {
			rates[i] = append(rates[i], mib/v)
		}
		ratios[0] = append(ratios[0], out/stored)
		ratios[1] = append(ratios[1], in/retrieved)
	}
	t.Logf("%d MiB a request: memcpy out %.0f MiB/s, STORE %.0f MiB/s (%.2f of it); memcpy in %.0f MiB/s, RETRIEVE %.0f MiB/s (%.2f of it); %d turns of %d chunks of 1 MiB, %d in flight",
		each, median(rates[0]), median(rates[1]), median(ratios[0]), median(rates[2]), median(rates[3]), median(ratios[1]), len(ratios[0]), chunks, flight)
	for i, what := range []string{"STORE", "RETRIEVE"} {
		if r := median(ratios[i]); r < least/slack {
			t.Errorf("%s of %d MiB a request runs at %.2f of memcpy's rate", what, each, r)
		}
	}
	// The bytes that the last turn brought are those that it had stored.
	hostshm.Fill(m.Bytes(), 77)
	turn(wire.Store, serial)
	clear(m.Bytes())
	turn(wire.Retrieve, serial)
	if at := hostshm.Mismatch(m.Bytes(), 77); at >= 0 {
		t.Errorf("byte %d is wrong", at)
	}
}
