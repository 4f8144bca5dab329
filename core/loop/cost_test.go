package loop

import (
	"context"
	"runtime"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// quietTransport counts what is sent.
type quietTransport struct {
	sent    chan struct{}
	n, want int
}

func (q *quietTransport) Send(core.Peer, *core.Frames) {
	if q.n++; q.n == q.want {
		q.sent <- struct{}{}
	}
}

func noMemory(Slots, func(core.Input)) (core.Memory, error) { return nil, nil }

// populated starts a server with n engine-driven instances that have pinged.
func populated(t testing.TB, n int, change func(*ServerOptions)) (*Server, *quietTransport) {
	t.Helper()
	cfg := core.DefaultServerConfig()
	cfg.ChunkTokens = testChunk
	o := ServerOptions{Config: cfg, Memory: noMemory}
	if change != nil {
		change(&o)
	}
	s, err := NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	q := &quietTransport{sent: make(chan struct{}, 1), want: 2 * n}
	s.Start(q)
	t.Cleanup(func() { s.Abort(); <-s.Done() })
	for id := core.InstanceID(1); id <= core.InstanceID(n); id++ {
		s.Message(core.Peer(id), s.Now(), frames(engineOf(id)))
		s.Message(core.Peer(id), s.Now(), frames(pingOf(id)))
	}
	if n > 0 {
		<-q.sent
	}
	return s, q
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The figures that the server promises: under 1 KiB of heap for a tracked
// instance, a scan of 100,000 entries under 10 ms, a page of a status at once.
func TestWhatAHundredThousandInstancesCost(t *testing.T) {
	if testing.Short() || raceOn {
		t.Skip("slow")
	}
	const n = 100_000
	before := heap()
	s, _ := populated(t, n, nil)
	if each := (heap() - before) / n; each >= 1024 {
		t.Errorf("%d bytes of heap for each instance", each)
	} else {
		t.Logf("%d bytes of heap for each instance", each)
	}
	scan, err := ask(context.Background(), &s.owner, func() time.Duration {
		best := time.Hour
		for range 5 { // the machine has others to serve
			o := &s.owner
			o.input = core.Input{Kind: core.InputTimer, Timer: core.TimerKey{Kind: core.TimerScan}}
			began := time.Now()
			o.feed()
			best = min(best, time.Since(began))
		}
		return best
	})
	if err != nil || scan >= 10*time.Millisecond {
		t.Errorf("a scan takes %s %v", scan, err)
	}
	t.Logf("a scan takes %s", scan)
	began := time.Now()
	v, err := s.Status(context.Background())
	if err != nil || v.EngineDriven != n {
		t.Fatal(err)
	}
	page, next, err := s.Instances(context.Background(), core.EngineDriven, n/2, MaxPage)
	if err != nil || len(page) != MaxPage || next != n/2+MaxPage {
		t.Fatal(len(page), next, err)
	}
	t.Logf("a status and a page take %s", time.Since(began))
}

// A ping allocates nothing on its way through.
func TestAPingAllocatesNothing(t *testing.T) {
	if raceOn {
		t.Skip("under the race detector pools lose things on purpose")
	}
	s, q := populated(t, 10, nil)
	ping := frames(pingOf(3))
	round := func(n int) {
		q.n, q.want = 0, n
		for range n {
			s.Message(3, s.Now(), ping)
		}
		<-q.sent
	}
	round(20000)
	// Where others have the machine, a round lets more messages wait at once than
	// the pool holds: the calmest round tells what a ping costs by itself.
	each := 1e9
	for n := 0; n < 10 && each > 0.1; n++ {
		each = min(each, testing.AllocsPerRun(1, func() { round(20000) })/20000)
	}
	if each >= 0.5 {
		t.Errorf("%.2f allocations for a ping", each)
	}
}

// BenchmarkPing is a ping through everything but sockets: copied, decoded,
// handed over, stepped, answered.
func BenchmarkPing(b *testing.B) {
	for _, bench := range []struct {
		name   string
		change func(*ServerOptions)
	}{
		{"plain", nil},
		{"recorded", func(o *ServerOptions) {
			r, err := NewRecording(RecordingOptions{Dir: b.TempDir(), Keep: 2})
			if err != nil {
				b.Fatal(err)
			}
			o.Recording = r
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s, q := populated(b, 1000, bench.change)
			pings := make([]*core.Frames, 1000)
			for i := range pings {
				pings[i] = frames(pingOf(core.InstanceID(i + 1)))
			}
			q.n, q.want = 0, b.N
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				s.Message(core.Peer(i%1000+1), s.Now(), pings[i%1000])
			}
			<-q.sent
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pings/s")
		})
	}
}

// BenchmarkRoundTrip is one ping at a time, so what a wake-up costs.
func BenchmarkRoundTrip(b *testing.B) {
	s, _ := populated(b, 1, nil)
	out := make(wireTo, 1)
	ask(context.Background(), &s.owner, func() bool { s.owner.driver.Transport = sender{s, out}; return true })
	ping := frames(pingOf(1))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		s.Message(1, s.Now(), ping)
		<-out
	}
}

// BenchmarkLongPrompt is a look-up of 128 k tokens, decoded beside the owner.
func BenchmarkLongPrompt(b *testing.B) {
	s, q := populated(b, 1, nil)
	long := frames(wire.Request{Type: wire.Lookup, Key: longStore(1, 1, 128<<10).Key, TPSize: 1})
	q.n, q.want = 0, b.N
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		s.Message(core.Peer(1), s.Now(), long)
		for s.decoders.held.Load() > 64<<20 {
			runtime.Gosched()
		}
	}
	<-q.sent
}
