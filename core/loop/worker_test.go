package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"vigil/core"
)

// cable joins workers to a server in memory. A worker's peer is its place in
// the list + 1; a cut cable loses what is sent.
type cable struct {
	server  *Server
	mu      sync.Mutex
	workers []*Worker
	cut     bool
	// deliver carries one message at a time to a worker, off the owner.
	inbox chan func()
}

func newCable(t *testing.T, s *Server) *cable {
	c := &cable{server: s, inbox: make(chan func(), 1<<12)}
	go func() {
		for f := range c.inbox {
			f()
		}
	}()
	t.Cleanup(func() { close(c.inbox) })
	return c
}

// Send is the server's end.
func (c *cable) Send(peer core.Peer, f *core.Frames) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return
	}
	w := c.workers[peer-1]
	g := new(core.Frames)
	g.CopyFrom(f)
	c.inbox <- func() { w.Message(0, w.Now(), g) }
}

func (c *cable) setCut(cut bool) {
	c.mu.Lock()
	c.cut = cut
	c.mu.Unlock()
}

type workerEnd struct {
	c    *cable
	peer core.Peer
}

func (e workerEnd) Send(_ core.Peer, f *core.Frames) {
	e.c.mu.Lock()
	cut := e.c.cut
	e.c.mu.Unlock()
	if !cut {
		e.c.server.Message(e.peer, e.c.server.Now(), f)
	}
}

// connected is a rig whose transport is a cable.
func connected(t *testing.T) (*rig, *cable) {
	r := &rig{t: t, mock: clock.NewMock()}
	s, err := NewServer(ServerOptions{
		Config: testConfig(), Clock: r.mock,
		Memory: func(slots Slots, ended func(core.Input)) (core.Memory, error) {
			r.memory = &deviceMemory{slots: slots, ended: ended, devices: map[string][]byte{}, mappings: map[core.Mapping][]byte{}}
			return r.memory, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.s = s
	c := newCable(t, s)
	s.Start(c)
	t.Cleanup(func() { s.Abort(); <-s.Done() })
	return r, c
}

func (c *cable) worker(t *testing.T, r *rig) *Worker {
	t.Helper()
	cfg := core.DefaultWorkerConfig()
	cfg.ChunkTokens, cfg.Model = testChunk, "model"
	w, err := NewWorker(WorkerOptions{Config: cfg, Clock: r.mock})
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.workers = append(c.workers, w)
	peer := core.Peer(len(c.workers))
	c.mu.Unlock()
	w.Start(workerEnd{c, peer})
	t.Cleanup(func() { w.Abort(); <-w.Done() })
	return w
}

func transfer(request core.RequestID, prompt, n int) Transfer {
	t := Transfer{Request: request, Tokens: keyOf(prompt, n).Tokens, End: n * testChunk}
	for b := range 2 * n {
		t.Blocks = append(t.Blocks, uint32(b))
	}
	return t
}

// finish waits until so many requests ended.
func finish(t *testing.T, w *Worker, n int) map[core.RequestID]Finished {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ended := map[core.RequestID]Finished{}
	for len(ended) < n {
		if err := w.Wait(ctx); err != nil {
			t.Fatalf("%d of %d ended: %v", len(ended), n, err)
		}
		list, err := w.Finished(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			if _, twice := ended[f.Request]; twice {
				t.Fatalf("%d ended twice", f.Request)
			}
			ended[f.Request] = f
		}
	}
	return ended
}

func TestAWorkerFromRegisterToShutdown(t *testing.T) {
	leaks(t)
	r, c := connected(t)
	a, b := c.worker(t, r), c.worker(t, r)
	ctx := context.Background()
	if a.Instance() == 0 || a.Instance() == b.Instance() || !a.Healthy() {
		t.Fatal("ids")
	}
	for _, w := range []*Worker{a, b} {
		if err := w.Register(ctx, []core.Export{exportOf(w.Instance())}, groupsOf()); err != nil {
			t.Fatal(err)
		}
	}
	mine := r.memory.device(fmt.Sprintf("/memory-%d", a.Instance()))
	for i := range mine {
		mine[i] = byte(i * 3)
	}
	if err := a.Store(ctx, transfer(1, 5, 3)); err != nil {
		t.Fatal(err)
	}
	if f := finish(t, a, 1)[1]; f.Outcome != core.OutcomeStored || !f.Store {
		t.Fatalf("%+v", f)
	}
	b.Retrieve(ctx, transfer(7, 5, 3))
	b.Retrieve(ctx, transfer(8, 6, 1))
	ended := finish(t, b, 2)
	if ended[7].Outcome != core.OutcomeLoaded || ended[8].Outcome != core.OutcomeMissed || len(ended[8].Blocks) != 2 {
		t.Fatalf("%+v", ended)
	}
	if theirs := r.memory.device(fmt.Sprintf("/memory-%d", b.Instance())); string(theirs[:3*testChunkBytes]) != string(mine[:3*testChunkBytes]) {
		t.Fatal("the bytes are others")
	}
	if err := a.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if v := r.sync(); v.ServerDriven != 1 || v.Counts.Removed[core.RemovedByClient] != 1 {
		t.Fatalf("%+v", v)
	}
	if err := a.Store(ctx, transfer(2, 5, 3)); err != ErrStopped {
		t.Fatalf("a worker that ended: %v", err)
	}
	if err := a.Register(ctx, nil, nil); err != ErrStopped {
		t.Fatalf("a worker that ended: %v", err)
	}
	if err := a.Wait(ctx); err != nil {
		t.Fatal(err)
	}
}

// A server that is away makes a worker unhealthy, ends what it waits for, and
// a server that is back makes it healthy again.
func TestAWorkerThroughAnOutage(t *testing.T) {
	leaks(t)
	r, c := connected(t)
	w := c.worker(t, r)
	ctx := context.Background()
	if err := w.Register(ctx, []core.Export{exportOf(w.Instance())}, groupsOf()); err != nil {
		t.Fatal(err)
	}
	w.Store(ctx, transfer(1, 1, 1))
	finish(t, w, 1)
	r.pass(15 * time.Second)
	c.setCut(true)
	w.Retrieve(ctx, transfer(2, 1, 1)) // lost on the way
	health := func(want bool) {
		t.Helper()
		for range 200 {
			if w.Healthy() == want {
				return
			}
			r.mock.Add(time.Second)
			w.Finished(ctx)
		}
		t.Fatalf("healthy is not %v after 200 s", want)
	}
	for w.Healthy() {
		r.mock.Add(time.Second)
	}
	if f := finish(t, w, 1)[2]; f.Outcome != core.OutcomeFailed || len(f.Blocks) != 2 {
		t.Fatalf("%+v", f)
	}
	w.Store(ctx, transfer(3, 1, 1))
	if f := finish(t, w, 1)[3]; f.Outcome != core.OutcomeDropped {
		t.Fatalf("%+v", f)
	}
	c.setCut(false)
	health(true)
	w.Retrieve(ctx, transfer(4, 1, 1))
	if f := finish(t, w, 1)[4]; f.Outcome != core.OutcomeLoaded {
		t.Fatalf("%+v", f)
	}
}

// Nobody answers: a registration fails after the request's time, and a
// shutdown ends what is left and tells it.
func TestAWorkerWithoutAServer(t *testing.T) {
	leaks(t)
	mock := clock.NewMock()
	cfg := core.DefaultWorkerConfig()
	cfg.ChunkTokens = testChunk
	w, err := NewWorker(WorkerOptions{Config: cfg, Clock: mock})
	if err != nil {
		t.Fatal(err)
	}
	w.Start(make(wireTo, 1000))
	ctx := context.Background()
	failed := make(chan error, 1)
	go func() { failed <- w.Register(ctx, []core.Export{exportOf(1)}, nil) }()
	for wait := true; wait; {
		select {
		case err := <-failed:
			var why RegisterError
			if !errors.As(err, &why) || why.Failure != core.FailDeadline {
				t.Fatal(err)
			}
			wait = false
		default:
			mock.Add(5 * time.Second)
		}
	}
	short, cancel := context.WithCancel(ctx)
	cancel()
	if err := w.Register(short, nil, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w.Finished(ctx)
	w.Store(ctx, transfer(9, 1, 1))
	ended := make(chan error)
	go func() { ended <- w.Shutdown(ctx) }()
	for wait := true; wait; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			wait = false
		default:
			mock.Add(5 * time.Second)
		}
	}
	list, err := w.Finished(ctx)
	if err != nil || len(list) != 1 || list[0].Request != 9 || list[0].Outcome != core.OutcomeFailed {
		t.Fatalf("%+v %v", list, err)
	}
	if _, err := w.Finished(ctx); err != ErrStopped {
		t.Fatal(err)
	}
}
