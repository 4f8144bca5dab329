package zmq

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	zmq4 "github.com/pebbe/zmq4"

	"vigil/core"
)

// Why this file: what the transport costs beside the least that one can write
// with the same library: a loop that receives a message and sends it back.

// pingParts are the frames of a PING: uid, type, instance id.
var pingParts = [][]byte{{0xcd, 1, 2}, {22}, {0xcf, 0x12, 0x34, 0x56, 0x78, 0x90, 0xab, 0xcd, 0xef}}

// pingClient is the measuring side, the same for both: a bare DEALER that keeps
// so many requests in flight.
type pingClient struct {
	ctx *zmq4.Context
	soc *zmq4.Socket
}

func newPingClient(b testing.TB, endpoint string) *pingClient {
	ctx, err := zmq4.NewContext()
	if err != nil {
		b.Fatal(err)
	}
	soc, err := ctx.NewSocket(zmq4.DEALER)
	if err != nil {
		b.Fatal(err)
	}
	soc.SetLinger(0)
	soc.SetRcvtimeo(10 * time.Second)
	if err := soc.Connect(endpoint); err != nil {
		b.Fatal(err)
	}
	return &pingClient{ctx, soc}
}

func (c *pingClient) close() { c.soc.Close(); c.ctx.Term() }

func (c *pingClient) send(b testing.TB) {
	for i, p := range pingParts {
		flags := zmq4.SNDMORE
		if i == len(pingParts)-1 {
			flags = 0
		}
		if _, err := c.soc.SendBytes(p, flags); err != nil {
			b.Fatal(err)
		}
	}
}

func (c *pingClient) receive(b testing.TB) {
	for more := true; more; {
		if _, err := c.soc.RecvBytes(0); err != nil {
			b.Fatal(err)
		}
		more, _ = c.soc.GetRcvmore()
	}
}

// rounds makes n round trips with so many in flight.
func (c *pingClient) rounds(b testing.TB, n, flight int) {
	for range min(n, flight) {
		c.send(b)
	}
	for i := range n {
		c.receive(b)
		if i+flight < n {
			c.send(b)
		}
	}
}

// bareEcho is a server of nothing but the library.
func bareEcho(b testing.TB) (endpoint string, stop func()) {
	ctx, err := zmq4.NewContext()
	if err != nil {
		b.Fatal(err)
	}
	soc, err := ctx.NewSocket(zmq4.ROUTER)
	if err != nil {
		b.Fatal(err)
	}
	soc.SetLinger(0)
	if err := soc.Bind(loopback); err != nil {
		b.Fatal(err)
	}
	endpoint, _ = soc.GetLastEndpoint()
	var done sync.WaitGroup
	soc.SetRcvtimeo(100 * time.Millisecond)
	quit := make(chan struct{})
	done.Go(func() {
		for {
			m, err := soc.RecvMessageBytes(0)
			if err != nil {
				select {
				case <-quit:
					return
				default:
					continue
				}
			}
			soc.SendMessage(m)
		}
	})
	return endpoint, func() { close(quit); done.Wait(); soc.Close(); ctx.Term() }
}

// loopEcho answers from another goroutine, the way core/loop does: a batch at a
// time, messages pooled, a wake-up only where it sleeps.
type loopEcho struct {
	mu      sync.Mutex
	waiting []item
	free    []*core.Frames
	asleep  bool
	wake    chan struct{}
}

func (e *loopEcho) Message(p core.Peer, _ core.Time, f *core.Frames) {
	e.mu.Lock()
	c := new(core.Frames)
	if n := len(e.free); n > 0 {
		c, e.free = e.free[n-1], e.free[:n-1]
	}
	c.CopyFrom(f)
	e.waiting = append(e.waiting, item{p, c})
	asleep := e.asleep
	e.asleep = false
	e.mu.Unlock()
	if asleep {
		e.wake <- struct{}{}
	}
}

func (e *loopEcho) Closed(core.Peer) {}

func (e *loopEcho) run(r *Router) {
	var batch []item
	for {
		e.mu.Lock()
		for i := range batch {
			e.free = append(e.free, batch[i].frames)
		}
		batch, e.waiting = e.waiting, batch[:0]
		e.asleep = len(batch) == 0
		asleep := e.asleep
		e.mu.Unlock()
		if asleep {
			if _, ok := <-e.wake; !ok {
				return
			}
		}
		for _, i := range batch {
			r.Send(i.peer, i.frames)
		}
	}
}

// ourEcho is the transport: how "owner" answers inside the sink at once,
// "queue" inside the sink through the queue, "loop" from another goroutine.
func ourEcho(b testing.TB, how string) (endpoint string, stop func()) {
	var r *Router
	var sink Sink
	ready := make(chan struct{})
	loop := &loopEcho{wake: make(chan struct{}, 1)}
	switch how {
	case "owner":
		sink = &echo{on: func(p core.Peer, f *core.Frames) { <-ready; r.Reply(p, f) }}
	case "queue":
		sink = &echo{on: func(p core.Peer, f *core.Frames) { <-ready; r.Send(p, f) }}
	case "loop":
		sink = loop
	}
	var err error
	if r, err = Listen(Options{Bind: []string{loopback}}, sink); err != nil {
		b.Fatal(err)
	}
	close(ready)
	go loop.run(r)
	return r.Endpoints()[0], func() { r.Close(); close(loop.wake) }
}

// BenchmarkPing prints the rate of each way and its ratio to the bare loop. The
// two take turns of a few hundred round trips, and the ratio is the median of
// the turns', so that both meet the same noise.
func BenchmarkPing(b *testing.B) {
	for _, flight := range []int{1, 16, 256} {
		for _, how := range []string{"owner", "queue", "loop"} {
			b.Run(fmt.Sprintf("flight=%d/%s", flight, how), func(b *testing.B) {
				bareAt, stopBare := bareEcho(b)
				defer stopBare()
				ourAt, stopOurs := ourEcho(b, how)
				defer stopOurs()
				bare, ours := newPingClient(b, bareAt), newPingClient(b, ourAt)
				defer bare.close()
				defer ours.close()
				bare.rounds(b, 1000, flight)
				ours.rounds(b, 1000, flight)
				var bareTimes, ourTimes, ratios []float64
				turn := 200 + 4*flight
				for b.Loop() {
					began := time.Now()
					bare.rounds(b, turn, flight)
					middle := time.Now()
					ours.rounds(b, turn, flight)
					end := time.Now()
					bareTimes = append(bareTimes, middle.Sub(began).Seconds())
					ourTimes = append(ourTimes, end.Sub(middle).Seconds())
					ratios = append(ratios, middle.Sub(began).Seconds()/end.Sub(middle).Seconds())
				}
				b.ReportMetric(float64(turn)/median(ourTimes), "ours/s")
				b.ReportMetric(float64(turn)/median(bareTimes), "bare/s")
				b.ReportMetric(median(ratios), "ratio")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
