package sim_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"vigil/core"
	"vigil/core/server"
	"vigil/core/wire"
	"vigil/core/worker"
)

// For scale: the standard world once more, the way it is usually tested - one
// goroutine a process, channels for a network, and a clock that is faked by
// testing/synctest or by benbjohnson's mock. The cores, frames and traffic are
// the same; only what drives them differs. BenchmarkStandardWorld prints the
// three side by side.

// shell drives one machine on a goroutine of its own.
type shell struct {
	world  *shellWorld
	driver core.Driver
	inbox  chan func(*shell)
	timers map[core.TimerKey]*clock.Timer
	index  int // 0 is the server
	next   core.RequestID
}

type shellWorld struct {
	clock  clock.Clock
	start  time.Time
	events atomic.Int64
	shells []*shell
	done   chan struct{}
	group  sync.WaitGroup
	random struct {
		sync.Mutex
		*rand.Rand
	}
}

func (w *shellWorld) between(low, high time.Duration) time.Duration {
	w.random.Lock()
	defer w.random.Unlock()
	return low + time.Duration(w.random.Int64N(int64(high-low)))
}

// post has the shell's own goroutine do something.
func (s *shell) post(do func(*shell)) {
	select {
	case s.inbox <- do:
	case <-s.world.done:
	}
}

func (s *shell) feed(in *core.Input) {
	s.world.events.Add(1)
	s.driver.Feed(in)
}

func (s *shell) Now() core.Time { return core.Time(s.world.clock.Now().Sub(s.world.start)) }

func (s *shell) Arm(key core.TimerKey, at core.Time) {
	s.Disarm(key)
	s.timers[key] = s.world.clock.AfterFunc(max(0, at.Sub(s.Now())), func() {
		s.post(func(s *shell) { s.feed(&core.Input{Kind: core.InputTimer, Timer: key}) })
	})
}

func (s *shell) Disarm(key core.TimerKey) {
	if t := s.timers[key]; t != nil {
		t.Stop()
		delete(s.timers, key)
	}
}

func (s *shell) Send(peer core.Peer, frames *core.Frames) {
	copied := new(core.Frames)
	copied.CopyFrom(frames)
	to, from := s.world.shells[0], core.Peer(s.index)
	if s.index == 0 {
		to = s.world.shells[peer]
	}
	s.world.clock.AfterFunc(s.world.between(50*time.Microsecond, time.Millisecond), func() {
		to.post(func(to *shell) {
			in := &core.Input{Kind: core.InputFrames, Frames: copied, Peer: from, Arrived: to.Now()}
			if to.index == 0 {
				r := new(wire.Request)
				(&wire.Decoder{ChunkTokens: 16}).Decode(copied, r)
				in.Decoded = r
			}
			to.feed(in)
		})
	})
}

func (s *shell) after(kind core.InputKind, op core.Op, bytes uint64) {
	s.world.clock.AfterFunc(s.world.between(100*time.Microsecond, 3*time.Millisecond), func() {
		s.post(func(s *shell) { s.feed(&core.Input{Kind: kind, Op: op, Bytes: bytes}) })
	})
}

func (s *shell) Open(o *core.OpenOrder)   { s.after(core.InputOpened, o.Op, 1<<20) }
func (s *shell) Close(o *core.CloseOrder) { s.after(core.InputReleased, o.Op, 0) }
func (s *shell) Copy(o *core.CopyOrder)   { s.after(core.InputCopied, o.Op, 0) }
func (s *shell) Record(*core.Record)      {}
func (s *shell) Leave(core.ExitCode)      {}

func (s *shell) Tell(t *core.Tell) {
	switch t.Kind {
	case core.TellRegistered:
		s.traffic()
	case core.TellWake:
		s.world.clock.AfterFunc(s.world.between(time.Millisecond, 20*time.Millisecond), func() {
			s.post(func(s *shell) {
				s.feed(&core.Input{Kind: core.InputCall, Call: &core.Call{Kind: core.CallFinished}})
			})
		})
	}
}

func (s *shell) traffic() {
	s.world.clock.AfterFunc(30*time.Second, func() {
		s.post(func(s *shell) {
			s.next++
			n := 16 * int(s.world.between(1, 5))
			call := &core.Call{Kind: core.CallRetrieve, Request: s.next, Tokens: make([]uint32, n), End: n}
			if s.next%2 == 0 {
				call.Kind = core.CallStore
			}
			for i := range call.Tokens {
				call.Tokens[i] = uint32(i * n)
			}
			for b := 0; b < n/16; b++ {
				call.Blocks = append(call.Blocks, uint32(b))
			}
			s.feed(&core.Input{Kind: core.InputCall, Call: call})
			s.traffic()
		})
	})
}

// run plays lasts of virtual time; pass is how the clock goes on.
func runShells(c clock.Clock, lasts time.Duration, pass func(time.Duration)) int64 {
	w := &shellWorld{clock: c, start: c.Now(), done: make(chan struct{})}
	w.random.Rand = rand.New(rand.NewPCG(1, 2))
	plan := standardPlan(lasts)
	for i := 0; i <= len(plan.Workers); i++ {
		s := &shell{world: w, index: i, inbox: make(chan func(*shell), 1024), timers: map[core.TimerKey]*clock.Timer{}}
		s.driver = core.Driver{Clock: s, Transport: s, Memory: s, Engine: s, Recorder: s, Leaver: s}
		s.driver.Machine = server.New(plan.Server)
		if i > 0 {
			s.driver.Machine = worker.New(plan.Workers[i-1].Config)
		}
		w.shells = append(w.shells, s)
	}
	for _, s := range w.shells {
		w.group.Add(1)
		go func() {
			defer w.group.Done()
			for {
				select {
				case do := <-s.inbox:
					do(s)
				case <-w.done:
					return
				}
			}
		}()
	}
	for i, s := range w.shells {
		s.post(func(s *shell) {
			s.feed(&core.Input{Kind: core.InputStart, Entropy: [16]byte{15: byte(i + 1)}})
			if i > 0 {
				s.feed(&core.Input{Kind: core.InputCall, Call: &core.Call{
					Kind: core.CallRegister,
					Exports: []core.Export{{
						Kind: core.HostSHM, Handle: []byte{'/', byte('a' + i)}, Device: []byte("cpu"),
						Bytes: 64 * 4096, Blocks: 64, BlockBytes: 4096, DType: []byte("uint8"), Shape: []int64{64, 4096},
					}},
					Groups: []core.Group{{TokensPerBlock: 16, SlidingWindow: -1, Physical: 1, Layers: []int64{0}}},
				}})
			}
		})
	}
	pass(lasts)
	close(w.done)
	w.group.Wait()
	for _, s := range w.shells {
		for _, t := range s.timers {
			t.Stop()
		}
	}
	return w.events.Load()
}

func underSynctest(t *testing.T, lasts time.Duration) (events int64, took time.Duration) {
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		events = runShells(clock.New(), lasts, time.Sleep)
	})
	return events, time.Since(began)
}

func underMock(lasts time.Duration) (int64, time.Duration) {
	began := time.Now()
	mock := clock.NewMock()
	events := runShells(mock, lasts, func(d time.Duration) { mock.Add(d) })
	return events, time.Since(began)
}
