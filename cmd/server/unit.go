package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"vigil/core"
	"vigil/core/loop"
	"vigil/core/zmq"
)

// Why this file: one worker with its memory, its socket and its engine.

// unit is one worker. Its engine is one goroutine, run.
type unit struct {
	c       *workerConfig
	out     *printer
	figures *meter // of a load; nil for a worker that prints for itself
	link    *link
	worker  *loop.Worker
	memory  *kvMemory
	pool    *sharedPool
	prompts []*prompt

	random  *rand.Rand
	free    []uint32
	pending map[core.RequestID]submitted
	held    map[core.RequestID][]uint32 // ended, and the server may still touch their blocks
	stored  []known                     // prompts whose store ended well, the last so many
	kept    int                         // where the next one goes
	fresh   uint64                      // prompts made so far, where each store has a new one
	last    core.RequestID
	submits int
	totals  totals
	broken  chan string

	mu       sync.Mutex
	failures map[core.RequestID]core.Failure
	pingSent core.Time
}

// known is a prompt with its number.
type known struct {
	n int
	p *prompt
}

// submitted is a request that the engine waits for.
type submitted struct {
	known
	store  bool
	blocks []uint32
	at     time.Time
}

// newUnit makes a worker, asks the server for its chunk size and starts the
// worker's core. The configuration's own chunk size is asked for once in a
// load. nil without an error: the way out began meanwhile.
func newUnit(ctx context.Context, c *workerConfig, shared *zmq.Context, out *printer, figures *meter) (made *unit, err error) {
	u := &unit{c: c, out: out, figures: figures, pending: map[core.RequestID]submitted{}, held: map[core.RequestID][]uint32{}, failures: map[core.RequestID]core.Failure{}, broken: make(chan string, 1)}
	if u.memory, err = newMemory(c); err != nil {
		return nil, err
	}
	defer func() {
		if made == nil {
			u.drop()
		}
	}()
	if c.core.Mode == core.ModeEngineDriven {
		u.pool = newSharedPool(u.memory, u.fail)
	}
	if u.link, err = dial(c, shared, u.pool); err != nil {
		return nil, err
	}
	if err = u.settleChunk(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, nil
		}
		if errors.Is(err, errNoAnswer) {
			out.print(line{Event: "register-failed", Failure: core.FailDeadline.String(), Text: err.Error()})
			return nil, &ending{exitUnserved}
		}
		return nil, err
	}
	options := loop.WorkerOptions{Config: c.core, TimeScale: c.timeScale, Actor: core.Actor(c.actor), OnRecord: u.record}
	if c.eventLog != "" {
		if options.Events, err = loop.CreateEventLog(c.eventLog); err != nil {
			return nil, err
		}
	}
	if u.worker, err = loop.NewWorker(options); err != nil {
		return nil, err
	}
	u.link.worker.Store(u.worker)
	u.worker.Start(u.link.dealer)
	u.random = rand.New(rand.NewPCG(c.seed, uint64(u.worker.Instance())))
	for b := range c.blocks {
		u.free = append(u.free, uint32(c.blocks-1-b))
	}
	return u, nil
}

// settleChunk completes the configuration; in a load the first unit does.
func (u *unit) settleChunk(ctx context.Context) error {
	c := u.c
	if u.figures == nil || c.core.ChunkTokens == 0 || u.figures.prompts == nil {
		tokens := c.chunkTokens
		if tokens == 0 {
			wait, cancel := context.WithTimeoutCause(ctx, max(c.real(c.timeout), time.Second), errNoAnswer)
			defer cancel()
			var err error
			if tokens, err = u.link.askChunk(wait); err != nil {
				return err
			}
		}
		if err := c.chunked(tokens); err != nil {
			return err
		}
		u.prompts = makePrompts(c)
		if u.figures != nil {
			u.figures.prompts = u.prompts
		}
	} else {
		u.prompts = u.figures.prompts
	}
	if u.pool != nil {
		u.pool.blocks = c.core.ChunkTokens / c.blockTokens
	}
	return nil
}

// drop undoes newUnit, and is the end of run.
func (u *unit) drop() {
	if u.worker != nil {
		u.worker.Abort()
		<-u.worker.Done()
	}
	if u.link != nil {
		u.link.dealer.Close()
	}
	if u.pool != nil {
		u.pool.close()
	}
	if u.memory != nil {
		u.memory.own.Close()
	}
}

// fail is a trouble that no request can tell: the worker ends.
func (u *unit) fail(text string) {
	select {
	case u.broken <- text:
	default:
	}
}

func (u *unit) say(l line) {
	if u.figures != nil && l.Event != "wrong" && l.Event != "register-failed" && l.Event != "broken" {
		return
	}
	l.Instance = instanceText(u.worker.Instance())
	u.out.print(l)
}

// record sees the core's records, on its owner's goroutine.
func (u *unit) record(r *core.Record) {
	if u.pool != nil {
		u.pool.record(r)
	}
	switch r.Kind {
	case core.RequestResolved, core.RequestDropped:
		if r.Failure != core.NoFailure {
			u.mu.Lock()
			u.failures[core.RequestID(r.A)] = r.Failure
			u.mu.Unlock()
		}
	case core.PingSent:
		u.pingSent = r.At
	case core.PingAnswered:
		if u.figures != nil {
			u.figures.pings.add(u.c.real(r.At.Sub(u.pingSent)))
		}
	case core.PingFailed:
		u.say(line{Event: "ping-failed", Failure: r.Failure.String()})
	case core.HealthCleared:
		u.say(line{Event: "unhealthy"})
	case core.HealthSet:
		u.say(line{Event: "healthy"})
	case core.RecoveryEnded:
		l := line{Event: "recovered"}
		if !r.Flag {
			l.Event = "recovery-failed"
		}
		u.say(l)
	case core.WorkerWarned:
		l := line{Event: "warning", Failure: r.Failure.String()}
		switch {
		case r.Failure == core.FailWindow && r.Flag:
			l.Text = fmt.Sprintf("3 x the heartbeat interval is %s and exceeds the server's window of %s: this worker pings every %s instead", time.Duration(r.A), time.Duration(r.B), time.Duration(r.B)/3)
		case r.Failure == core.FailWindow:
			l.Text = fmt.Sprintf("3 x the heartbeat interval is %s and exceeds %s, the smallest window that a server may have: a few lost pings could reap this worker", time.Duration(r.A), time.Duration(r.B))
		}
		u.say(l)
	}
}

// run is the engine: it registers, submits and verifies until leave, and then
// leaves in order.
func (u *unit) run(leave, abort context.Context) error {
	c, k := u.c, &u.c.core
	defer u.drop()
	u.say(line{
		Event: "started", PID: pid(), Connect: c.connect, Mode: c.mode, Model: c.model, Rank: at(c.rank), World: c.world, ChunkTokens: k.ChunkTokens,
		Blocks: c.blocks, Bytes: u.memory.bytes(), Backend: u.memory.own.Backend(), Segment: u.memory.own.Name(), Design: k.Protections.String(), TimeScale: c.timeScale,
	})
	begun := time.Now()
	exports, groups := u.memory.exports(c)
	if err := u.worker.Register(leave, exports, groups); err != nil {
		if leave.Err() != nil {
			return u.end(abort, nil)
		}
		l := line{Event: "register-failed", Text: err.Error()}
		var refused loop.RegisterError
		if errors.As(err, &refused) {
			l.Failure = refused.Failure.String()
		}
		u.say(l)
		return u.end(abort, &ending{exitUnserved})
	}
	u.say(line{Event: "registered", Bytes: u.memory.bytes(), Took: milliseconds(time.Since(begun))})
	err := u.serve(leave)
	if err == nil {
		u.await()
	}
	return u.end(abort, err)
}

// await lets what is in flight end, as an engine does before it goes: an
// unregister that overtakes a request is that request's refusal.
func (u *unit) await() {
	ctx, cancel := context.WithTimeout(context.Background(), flightWait)
	defer cancel()
	for len(u.pending) > 0 && u.worker.Healthy() {
		if u.worker.Wait(ctx) != nil || u.collect(ctx) != nil {
			return
		}
	}
}

// flightWait bounds how long a worker that leaves waits for its requests.
const flightWait = 2 * time.Second

// serve is the traffic.
func (u *unit) serve(leave context.Context) error {
	c := u.c
	if c.length > 0 {
		var cancel context.CancelFunc
		leave, cancel = context.WithTimeout(leave, c.real(c.length))
		defer cancel()
	}
	traffic := !c.idle
	every := c.real(c.every)
	next := time.Now().Add(c.real(c.warmup))
	for leave.Err() == nil {
		now := time.Now()
		for traffic && len(u.pending) < c.inFlight && !now.Before(next) {
			if c.every == 0 && !u.worker.Healthy() {
				next = now.Add(50 * time.Millisecond) // nothing is gained by asking faster
				break
			}
			if err := u.submit(leave, u.submits%2 == 0 || len(u.stored) == 0); err != nil {
				return u.brokeOff(leave, err)
			}
			if next = next.Add(every); next.Before(now) {
				next = now // a worker that was stopped does not catch up
			}
		}
		quiet, cancel := context.WithCancel(leave)
		if traffic && len(u.pending) < c.inFlight {
			quiet, cancel = context.WithDeadline(leave, next)
		}
		woken := make(chan error, 1)
		go func() { woken <- u.worker.Wait(quiet) }()
		select {
		case text := <-u.broken:
			cancel()
			<-woken
			u.say(line{Event: "broken", Text: text})
			return &ending{exitUnserved}
		case <-woken:
		}
		cancel()
		if err := u.collect(leave); err != nil {
			return u.brokeOff(leave, err)
		}
	}
	return nil
}

// brokeOff tells a way out that began from a worker that ended by itself.
func (u *unit) brokeOff(leave context.Context, err error) error {
	if leave.Err() != nil {
		return nil
	}
	u.say(line{Event: "broken", Text: err.Error()})
	return &ending{exitUnserved}
}

// submit asks for one store or retrieve. Without free blocks it waits for the
// next time, as a scheduler does.
func (u *unit) submit(ctx context.Context, store bool) error {
	c := u.c
	need := c.blocksPerPrompt()
	if len(u.free) < need {
		return nil
	}
	var k known
	switch {
	case !store:
		k = u.stored[u.random.IntN(len(u.stored))]
	case c.anew:
		k.n = int(u.fresh % uint64(c.prompts))
		k.p = makePrompt(c, c.seed^uint64(u.worker.Instance()), 2*u.fresh) // its first chunk is its own
		u.fresh++
	default:
		k.n = u.random.IntN(c.prompts)
		k.p = u.prompts[k.n]
	}
	p := k.p
	u.submits++
	u.last++
	s := submitted{known: k, store: store, blocks: make([]uint32, need)}
	copy(s.blocks, u.free[len(u.free)-need:])
	u.free = u.free[:len(u.free)-need]
	prepare := func() error { return u.memory.blank(s.blocks) }
	if store {
		prepare = func() error { return u.memory.fill(p, s.blocks) }
	}
	if err := prepare(); err != nil {
		return err
	}
	if u.pool != nil {
		u.pool.submit(u.last, s.blocks)
	}
	t := loop.Transfer{Request: u.last, Tokens: p.tokens, End: len(p.tokens), Blocks: s.blocks}
	s.at = time.Now()
	u.pending[u.last] = s
	if store {
		return u.worker.Store(ctx, t)
	}
	return u.worker.Retrieve(ctx, t)
}

// collect takes what ended.
func (u *unit) collect(ctx context.Context) error {
	list, err := u.worker.Finished(ctx)
	for i := range list {
		u.finished(&list[i])
	}
	return err
}

func (u *unit) finished(f *loop.Finished) {
	if f.Outcome == core.OutcomeFreed {
		u.free = append(u.free, u.held[f.Request]...)
		delete(u.held, f.Request)
		return
	}
	s, ok := u.pending[f.Request]
	if !ok {
		return
	}
	delete(u.pending, f.Request)
	took := time.Since(s.at)
	u.mu.Lock()
	failure := u.failures[f.Request]
	delete(u.failures, f.Request)
	u.mu.Unlock()
	bytes := uint64(len(s.blocks)) * uint64(u.c.blockBytes) * uint64(u.c.layers)
	l := line{Request: uint64(f.Request), Operation: "retrieve", Prompt: at(s.n), Blocks: len(s.blocks), Took: milliseconds(took)}
	if s.store {
		l.Operation = "store"
	}
	if failure != core.NoFailure {
		l.Failure = failure.String()
	}
	switch f.Outcome {
	case core.OutcomeStored:
		l.Event, l.Bytes = "stored", bytes
		if failure == core.NoFailure {
			u.totals.Stored++
			u.totals.Bytes += bytes
			if len(u.stored) < u.c.prompts {
				u.stored = append(u.stored, s.known)
			} else {
				u.stored[u.kept%len(u.stored)] = s.known
			}
			u.kept++
			u.figures.done(true, took, bytes)
		} else { // the server said that it kept nothing
			l.Event, l.Bytes = "failed", 0
			u.totals.Failed++
			u.figures.failed()
		}
	case core.OutcomeLoaded:
		block, layer, byteAt, ok, err := u.memory.verify(s.p, s.blocks)
		if err != nil {
			u.fail(err.Error()) // it cannot be known
			l.Event = "failed"
			u.totals.Failed++
			u.figures.failed()
			break
		}
		if !ok {
			l.Event, l.Block, l.Layer, l.Byte = "wrong", at(block), at(layer), at(byteAt)
			u.totals.Wrong++
			u.figures.wrongBytes()
			break
		}
		l.Event, l.Bytes, l.Verified = "retrieved", bytes, true
		u.totals.Retrieved++
		u.totals.Bytes += bytes
		u.figures.done(false, took, bytes)
	case core.OutcomeMissed:
		l.Event, l.Failure = "missed", ""
		u.totals.Missed++
		u.figures.miss()
	case core.OutcomeDropped:
		l.Event = "dropped"
		u.totals.Dropped++
		u.figures.failed()
	default:
		l.Event = "failed"
		u.totals.Failed++
		u.figures.failed()
	}
	// Blocks of a request that was given up without keep-blocks may still be
	// written to: the server does not know. They are not used again for a while.
	switch f.Outcome {
	case core.OutcomeHeld:
		u.held[f.Request] = s.blocks
	case core.OutcomeFailed:
		u.free = append(s.blocks, u.free...)
	default:
		u.free = append(u.free, s.blocks...)
	}
	u.say(l)
}

// end leaves in order and says how it all went.
func (u *unit) end(abort context.Context, why error) error {
	u.say(line{Event: "stopping"})
	bounded, cancel := context.WithTimeout(abort, u.c.real(u.c.stop))
	err := u.worker.Shutdown(bounded)
	cancel()
	if list, e := u.worker.Finished(context.Background()); e == nil {
		for i := range list {
			u.finished(&list[i])
		}
	}
	if err != nil {
		u.sayHeld(err)
	}
	t := u.totals
	u.say(line{Event: "stopped", Totals: &t})
	switch {
	case t.Wrong > 0:
		return &ending{exitWrongBytes}
	case why != nil:
		return why
	case err != nil:
		return &ending{exitHeld}
	}
	return nil
}

// sayHeld names what nobody said was let go.
func (u *unit) sayHeld(err error) {
	why := "a second signal"
	if errors.Is(err, context.DeadlineExceeded) {
		why = fmt.Sprintf("%s after the first signal (stop-seconds)", u.c.stop)
	}
	blocks := 0
	for _, s := range u.pending {
		blocks += len(s.blocks)
	}
	for _, list := range u.held {
		blocks += len(list)
	}
	bytes := u.memory.bytes()
	u.say(line{
		Event: "held", Bytes: bytes, Segment: u.memory.own.Name(), Blocks: blocks,
		Text: fmt.Sprintf("ended by %s before the server said goodbye: it may still hold this worker's context (%d bytes, segment %s) until its window is over, and copy for %d requests (%d blocks)",
			why, bytes, u.memory.own.Name(), len(u.pending)+len(u.held), blocks),
	})
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
