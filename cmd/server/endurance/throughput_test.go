package endurance_test

import (
	"testing"
	"time"

	"vigil/cmd/server/servertest"
	"vigil/core"
)

// Why this file: what a ping costs.

// rounds makes n round trips with so many in flight.
func (c *client) rounds(p parts, n, flight int) time.Duration {
	began := time.Now()
	for range min(n, flight) {
		c.send(p)
	}
	for i := range n {
		c.skip()
		if i+flight < n {
			c.send(p)
		}
	}
	return time.Since(began)
}

// saturated is how many pings are in flight where a rate is the server's: with
// fewer it tells mostly how fast the system wakes the next process in the
// chain, which is reported beside it.
const saturated = 256

// Pings are answered at no less than 0.8 of the rate of a bare echo loop, by
// the same client in the same run; and the hardened design's within 5% of the
// document's. The three take turns.
func TestPingThroughput(t *testing.T) {
	if servertest.Race {
		t.Skip("the race detector is no measure of speed")
	}
	echo := dial(t, startEcho(t))
	defer echo.close()
	designs := []string{"document", "hardened"}
	var clients []*client
	for _, d := range designs {
		s := serve(t, "--bind", "tcp://127.0.0.1:0", "--design", d, "--pool-bytes", "1MiB")
		c := dial(t, s.bind)
		defer c.close()
		for id := core.InstanceID(1); id <= 1000; id++ {
			c.ask(engineOf(id))
		}
		clients = append(clients, c)
	}
	ping := encode(pingOf(7))
	for _, flight := range []int{1, 16, saturated} {
		turn := 500 + 8*flight
		var bare []float64
		rates, ratios := [2][]float64{}, [2][]float64{}
		var apart []float64
		for begun, n := time.Now(), 0; n < 5 || time.Since(begun) < of(700*time.Millisecond, 20*time.Second); n++ {
			e := echo.rounds(ping, turn, flight).Seconds()
			first := n % 2 // whoever comes second meets warmer caches, or colder ones
			var took [2]float64
			for _, i := range []int{first, 1 - first} {
				took[i] = clients[i].rounds(ping, turn, flight).Seconds()
			}
			bare = append(bare, float64(turn)/e)
			for i := range took {
				rates[i] = append(rates[i], float64(turn)/took[i])
				ratios[i] = append(ratios[i], e/took[i])
			}
			apart = append(apart, took[0]/took[1])
		}
		t.Logf("%d in flight: bare %.0f/s, document %.0f/s (%.2f of it), hardened %.0f/s (%.2f of it); hardened at %.3f of document; %d turns",
			flight, median(bare), median(rates[0]), median(ratios[0]), median(rates[1]), median(ratios[1]), median(apart), len(apart))
		for i, d := range designs {
			if r := median(ratios[i]); flight == saturated && r < 0.8/slack {
				t.Errorf("%s with %d in flight: %.2f of a bare echo loop's rate", d, flight, r)
			}
		}
		if r := median(apart); flight == saturated && full && r < 0.95 {
			t.Errorf("%d in flight: hardened has %.3f of the document's rate", flight, r)
		}
	}
}

// A thousand workers that only ping every 10 s cost under 3% of a core.
func TestAThousandQuietWorkers(t *testing.T) {
	if servertest.Race {
		t.Skip("the race detector is no measure of speed")
	}
	const workers, interval = 1000, 10 * time.Second
	length := of(2*time.Second, 30*time.Second)
	s := serve(t, "--bind", "tcp://127.0.0.1:0", "--pool-bytes", "1MiB")
	ctx, err := newManySockets(workers + 16)
	if err != nil {
		t.Fatal(err)
	}
	var clients []*client
	var pings []parts
	for i := range workers {
		c := dialIn(t, ctx, s.bind)
		c.ask(engineOf(core.InstanceID(i + 1)))
		clients = append(clients, c)
		pings = append(pings, encode(pingOf(core.InstanceID(i+1))))
	}
	defer func() {
		for _, c := range clients {
			c.close()
		}
		ctx.Term()
	}()
	if p := s.status(); p.EngineDriven.Total != workers || p.Transport.Peers < workers {
		t.Fatalf("%d of %d registered, %d connections", p.EngineDriven.Total, workers, p.Transport.Peers)
	}
	time.Sleep(time.Second)
	sent := 0
	before, began := s.cpu(), time.Now()
	for time.Since(began) < length {
		due := int(time.Since(began) * workers / interval)
		for ; sent < due; sent++ {
			i := sent % workers
			if sent >= workers {
				clients[i].skip() // the answer of the round before
			}
			clients[i].send(pings[i])
		}
		time.Sleep(2 * time.Millisecond)
	}
	used, took := s.cpu()-before, time.Since(began)
	share := float64(used) / float64(took)
	t.Logf("%d connected workers, a ping each per %s: %s of processor time in %.1f s, %.2f%% of a core, for %d pings", workers, interval, used, took.Seconds(), 100*share, sent)
	if share > 0.03*slack {
		t.Errorf("%.2f%% of a core", 100*share)
	}
	for i := range clients { // everybody was answered
		if i < sent {
			clients[i].skip()
		}
	}
}

// A tracked instance takes under 1 KiB of heap in the program as it is
// deployed. How long a scan of as many takes is measured inside the loop, where
// it can be timed alone (core/loop, TestWhatAHundredThousandInstancesCost).
func TestWhatATrackedInstanceTakes(t *testing.T) {
	if servertest.Race {
		t.Skip("the race detector keeps a shadow of everything")
	}
	n := of(20_000, 100_000)
	s := serve(t, "--pool-bytes", "1MiB")
	c := dial(t, s.bind)
	defer c.close()
	flood := func(from, to int) {
		for i := from; i < to; i++ {
			c.send(encode(engineOf(core.InstanceID(i))))
			c.send(encode(pingOf(core.InstanceID(i))))
			if i >= from+64 {
				c.skip()
				c.skip()
			}
		}
		for range 2 * min(64, to-from) {
			c.skip()
		}
	}
	flood(1, 1001) // what the first requests build is not the instances'
	before := s.heap()
	flood(1001, 1001+n)
	after := s.heap()
	each := (float64(after) - float64(before)) / float64(n)
	p := s.status()
	t.Logf("%d tracked instances: %.0f bytes of heap each", p.EngineDriven.Total, each)
	if p.EngineDriven.Total != n+1000 || each >= 1024 {
		t.Errorf("%d tracked, %.0f bytes of heap each", p.EngineDriven.Total, each)
	}
	began := time.Now()
	c.ask(pingOf(3))
	if took := time.Since(began); took > time.Duration(slack*float64(20*time.Millisecond)) {
		t.Errorf("a ping among them took %s", took)
	}
}
