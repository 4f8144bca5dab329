package endurance_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vigil/cmd/server/servertest"
	"vigil/core"
	"vigil/core/wire"
	"vigil/realgpu/hostshm"
)

// Why this file: a ping must not wait behind somebody's long prompt.

// Eight workers store and retrieve under keys of 128 k tokens as fast as they
// can. The 99th percentile of a ping stays under 20 ms and under five times
// that of a server that does nothing else. The idle server is pinged by the
// same client in turns with the busy one, so both pings meet a machine whose
// processors the workers keep busy; how the idle one answers on a quiet machine
// is told beside it, and so are the pings that go over the workers' own
// connections, behind their own prompts.
func TestPingsBesideLongPrompts(t *testing.T) {
	if servertest.Race {
		t.Skip("the race detector is no measure of speed")
	}
	const (
		workers    = 8
		chunks     = 128 << 10 / chunkTokens
		blockBytes = 1 << 10
		pinger     = core.InstanceID(1000)
	)
	length := of(2*time.Second, 30*time.Second)
	run := func(design string) {
		idle := serve(t, "--bind", "tcp://127.0.0.1:0", "--pool-bytes", "1MiB", "--design", design)
		busy := serve(t, "--bind", "tcp://127.0.0.1:0", "--pool-bytes", "1MiB", "--design", design, "--l1-bytes", "256MiB")
		toIdle, toBusy := dial(t, idle.bind), dial(t, busy.bind)
		defer toIdle.close()
		defer toBusy.close()
		toIdle.ask(engineOf(pinger))
		toBusy.ask(engineOf(pinger))
		ping := encode(pingOf(pinger))
		measure := func(length time.Duration) (idles, busies []float64) {
			for begun := time.Now(); time.Since(begun) < length; {
				for i, c := range []*client{toIdle, toBusy} {
					took := c.rounds(ping, 1, 1).Seconds() * 1e3
					if i == 0 {
						idles = append(idles, took)
					} else {
						busies = append(busies, took)
					}
				}
				time.Sleep(500 * time.Microsecond)
			}
			return idles, busies
		}
		quiet, _ := measure(length / 3)

		var stop atomic.Bool
		var group sync.WaitGroup
		var transfers, refused atomic.Int64
		var mu sync.Mutex
		var own []float64
		for w := range workers {
			id := core.InstanceID(w + 1)
			m := newMemory(t, 1, chunks*chunkBlocks, blockBytes)
			hostshm.Fill(m.Bytes(), uint64(w))
			c := dial(t, busy.bind)
			if r := c.ask(m.register(id)); r.Refusal != core.NoFailure {
				t.Fatalf("register: %s", r.Refusal)
			}
			var stores, retrieves []parts
			for n := range 4 { // encoded before, so that the client takes no time from the server
				stores = append(stores, encode(transferOf(wire.Store, id, uint64(w*4+n), chunks, 0)))
				retrieves = append(retrieves, encode(transferOf(wire.Retrieve, id, uint64(w*4+n), chunks, 0)))
			}
			beat := encode(pingOf(id))
			group.Go(func() {
				defer c.close()
				for n := 0; !stop.Load(); n++ {
					for _, p := range []parts{stores[n%4], retrieves[n%4]} {
						c.send(p)
						began := time.Now()
						pinged := n%4 == 0
						if pinged { // behind its own prompt
							c.send(beat)
						}
						for range 1 + map[bool]int{true: 1}[pinged] {
							r, ok := c.receive(20 * time.Second)
							switch {
							case !ok:
								refused.Add(1)
							case r.Type == wire.Ping:
								mu.Lock()
								own = append(own, time.Since(began).Seconds()*1e3)
								mu.Unlock()
							case !r.OK:
								refused.Add(1)
							default:
								transfers.Add(1)
							}
						}
					}
				}
			})
		}
		time.Sleep(length / 6)
		had := transfers.Load()
		profiled := busy.profile("long-prompts-"+design, length/2)
		beside, busies := measure(length)
		done := transfers.Load() - had
		profiled()
		stop.Store(true)
		group.Wait()
		q, b, l := percentile(quiet, .99), percentile(beside, .99), percentile(busies, .99)
		t.Logf("%s: ping p50 %.2f ms, p99 %.2f ms beside %d transfers of 128 k tokens a second (%d refused or missed); idle server beside it p50 %.2f ms, p99 %.2f ms, so %.2f times; idle on a quiet machine p99 %.2f ms; on the workers' own connections p50 %.2f ms, p99 %.2f ms; %d pings",
			design, percentile(busies, .5), l, int(float64(done)/length.Seconds()), refused.Load(), percentile(beside, .5), b, l/b, q, percentile(own, .5), percentile(own, .99), len(busies))
		if done == 0 {
			t.Error("nothing was transferred")
		}
		if l >= 20*slack {
			t.Errorf("%s: the 99th percentile of a ping is %.2f ms", design, l)
		}
		if l >= 5*slack*b {
			t.Errorf("%s: the 99th percentile of a ping is %.2f times that of an idle server", design, l/b)
		}
	}
	run("hardened")
	if full {
		run("document")
	}
}

func percentile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return v[min(int(q*float64(len(v))), len(v)-1)]
}
