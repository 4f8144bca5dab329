package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/benbjohnson/clock"

	"vigil/core"
	"vigil/core/worker"
)

// The blocking facade of a worker adapter, for an engine that calls it from
// its own goroutines.

// WorkerOptions is what a Worker is told at its start. The zero value of each
// field but Config is a default.
type WorkerOptions struct {
	Config    core.WorkerConfig
	Clock     clock.Clock // nil is the real one
	TimeScale int         // time runs so many times as fast; tests only
	// Entropy is the operating system's unless given.
	Entropy func() [16]byte
	// Actor is who the worker's records are of; 0 is core.FirstWorker.
	Actor core.Actor
	// Events may be nil. The worker closes it at its end.
	Events *EventLog
	// OnRecord sees each record, on the owner's goroutine.
	OnRecord func(*core.Record)
}

// Worker is a running worker adapter. Its methods are safe for concurrent use;
// Message and Closed are called by the goroutine that receives.
type Worker struct {
	options WorkerOptions
	machine *worker.Worker
	owner   owner
	started atomic.Bool
	done    chan struct{}

	// The owner's.
	registering chan error // whoever waits for the register's end
	finished    []Finished // answers of the get_finished under way
	collecting  bool
	code        core.ExitCode
	// Told when the machine leaves, before it is asked: at a shutdown.
	leftovers []Finished

	wake     chan struct{} // TellWake; one is enough
	warnings chan core.Failure
	healthy  atomic.Bool
	instance atomic.Uint64
}

// Finished is how one of the engine's requests ended.
type Finished struct {
	Request core.RequestID
	Outcome core.Outcome
	Store   bool
	Blocks  []uint32 // that hold nothing valid: retrieves only
}

// maxWarnings bounds the warnings that nobody took; more are dropped.
const maxWarnings = 16

// NewWorker makes a worker that does nothing before Start.
func NewWorker(options WorkerOptions) (*Worker, error) {
	if err := options.Config.Validate(); err != nil {
		return nil, fmt.Errorf("loop: %w", err)
	}
	if options.Entropy == nil {
		options.Entropy = entropy
	}
	if options.Actor == 0 {
		options.Actor = core.FirstWorker
	}
	w := &Worker{
		options: options, machine: worker.New(options.Config), done: make(chan struct{}),
		wake: make(chan struct{}, 1), warnings: make(chan core.Failure, maxWarnings),
	}
	w.healthy.Store(true)
	o := &w.owner
	o.init(newPace(options.Clock, options.TimeScale))
	o.take, o.done = w.take, giveMessage
	o.settled = func() { w.healthy.Store(w.machine.Healthy()) }
	o.driver.Machine, o.driver.Actor = w.machine, options.Actor
	o.driver.Engine, o.driver.Recorder, o.driver.Leaver = engine{w}, workerRecorder{w}, workerLeaver{w}
	return w, nil
}

// Start begins the life: the transport carries requests to the server, its
// peer 0. Only once.
func (w *Worker) Start(transport core.Transport) {
	if w.started.Swap(true) {
		panic("loop: Worker.Start called twice")
	}
	o := &w.owner
	o.driver.Transport = transport
	// The id is known when Start returns, so the first step is the caller's.
	o.tick()
	if w.options.Events != nil {
		w.options.Events.begin(0, 0, w.options.Config.Protections.String(), &o.pace)
	}
	o.input = core.Input{Kind: core.InputStart, Entropy: w.options.Entropy()}
	o.feed()
	w.instance.Store(uint64(w.machine.Instance()))
	go func() {
		defer close(w.done)
		o.run()
		if w.registering != nil {
			w.registering <- ErrStopped
		}
		if w.options.Events != nil {
			w.options.Events.Close()
		}
	}()
}

// Now is the worker's time; transports stamp arrivals with it.
func (w *Worker) Now() core.Time { return w.owner.pace.now() }

// Instance is the worker's id; 0 before Start.
func (w *Worker) Instance() core.InstanceID { return core.InstanceID(w.instance.Load()) }

// Healthy is what the heartbeat last made of the server.
func (w *Worker) Healthy() bool { return w.healthy.Load() }

// Done is closed when the worker has ended.
func (w *Worker) Done() <-chan struct{} { return w.done }

// Warnings carries what an operator should know; what nobody takes is dropped.
func (w *Worker) Warnings() <-chan core.Failure { return w.warnings }

// Message takes a reply of the server. It copies what it keeps.
func (w *Worker) Message(peer core.Peer, arrived core.Time, frames *core.Frames) {
	m := takeMessage(len(frames.Bytes))
	m.peer, m.arrived = peer, arrived
	m.frames.CopyFrom(frames)
	if !w.owner.box.message(m) {
		giveMessage(m)
	}
}

// Closed takes the closing of the connection in.
func (w *Worker) Closed(peer core.Peer) {
	w.owner.box.put(item{kind: core.InputClosed, peer: peer})
}

func (w *Worker) take(m *message, in *core.Input) {
	*in = core.Input{Kind: core.InputFrames, Peer: m.peer, Arrived: m.arrived, Frames: &m.frames}
}

// call feeds one call of the engine, on the owner's goroutine.
func (w *Worker) call(c *core.Call) {
	w.owner.input = core.Input{Kind: core.InputCall, Call: c}
	w.owner.feed()
}

// Register announces the engine's memory and waits for the answer: nil, or why
// the engine cannot start. When ctx ends first, the registration goes on.
func (w *Worker) Register(ctx context.Context, exports []core.Export, groups []core.Group) error {
	answer := make(chan error, 1)
	begun, err := ask(ctx, &w.owner, func() bool {
		if w.registering != nil {
			return false
		}
		w.registering = answer
		w.call(&core.Call{Kind: core.CallRegister, Exports: exports, Groups: groups})
		return true
	})
	switch {
	case err != nil:
		return err
	case !begun:
		return errors.New("loop: a registration is under way")
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-w.done:
		select {
		case err := <-answer:
			return err
		default:
			return ErrStopped
		}
	}
}

// Transfer is one store or retrieve of an engine.
type Transfer struct {
	Request    core.RequestID // unique in the engine's life
	Tokens     []uint32       // the whole prefix up to End
	Start, End int            // the range, in tokens; Start is a multiple of the chunk
	Skip       int            // retrieve: leading tokens of the range to leave untouched
	Blocks     []uint32       // block ids for the range, group after group
}

// Store submits a store; Finished tells how it ended. The slices may be used
// again when it returns.
func (w *Worker) Store(ctx context.Context, t Transfer) error {
	return w.submit(ctx, core.CallStore, t)
}

// Retrieve submits a retrieve; Finished tells how it ended.
func (w *Worker) Retrieve(ctx context.Context, t Transfer) error {
	return w.submit(ctx, core.CallRetrieve, t)
}

func (w *Worker) submit(ctx context.Context, kind core.CallKind, t Transfer) error {
	if ctx.Done() != nil {
		// The caller may leave before the owner comes to it.
		t.Tokens, t.Blocks = slices.Clone(t.Tokens), slices.Clone(t.Blocks)
	}
	_, err := ask(ctx, &w.owner, func() struct{} {
		w.call(&core.Call{
			Kind: kind, Request: t.Request, Tokens: t.Tokens, Start: t.Start, End: t.End, Skip: t.Skip, Blocks: t.Blocks,
		})
		return struct{}{}
	})
	return err
}

// Finished returns what ended since it was asked last, each request once. It
// waits for nothing; see Wait. After the end it returns what the shutdown said
// of the requests that were left, once.
func (w *Worker) Finished(ctx context.Context) ([]Finished, error) {
	list, err := ask(ctx, &w.owner, func() []Finished {
		w.collecting, w.finished = true, w.leftovers
		w.leftovers = nil
		w.call(&core.Call{Kind: core.CallFinished})
		w.collecting = false
		list := w.finished
		w.finished = nil
		return list
	})
	if errors.Is(err, ErrStopped) {
		<-w.done
		if left := w.takeLeftovers(); left != nil {
			return left, nil
		}
	}
	return list, err
}

// takeLeftovers is for after the end, when there is no owner any more.
func (w *Worker) takeLeftovers() []Finished {
	w.owner.box.mu.Lock()
	defer w.owner.box.mu.Unlock()
	left := w.leftovers
	w.leftovers = nil
	return left
}

// Wait returns when something has ended that Finished has not told yet, or the
// worker has ended, or with the context's error.
func (w *Worker) Wait(ctx context.Context) error {
	select {
	case <-w.wake:
		return nil
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown leaves in order and waits for it; the core bounds how long it takes.
// When ctx ends first, the worker ends at once, as if killed.
func (w *Worker) Shutdown(ctx context.Context) error {
	if !w.started.Swap(true) {
		close(w.done)
		return nil
	}
	w.owner.box.put(item{run: func() { w.call(&core.Call{Kind: core.CallShutdown}) }})
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		w.Abort()
		<-w.done
		return ctx.Err()
	}
}

// StarveHeartbeat holds the heartbeat alone back, as if its thread got no
// processor, until it is called again with false (the fault starve-heartbeat).
func (w *Worker) StarveHeartbeat(on bool) {
	w.owner.box.put(item{run: func() {
		if on {
			w.owner.starve = true
			return
		}
		w.owner.feedHeartbeat()
	}})
}

// Abort ends the worker at once without a word to the server.
func (w *Worker) Abort() {
	w.owner.box.put(item{run: func() { w.owner.gone = true }})
}

// engine is who the machine tells.
type engine struct{ w *Worker }

func (e engine) Tell(t *core.Tell) {
	w := e.w
	switch t.Kind {
	case core.TellRegistered:
		w.answerRegister(nil)
	case core.TellRegisterFailed:
		w.answerRegister(RegisterError{t.Failure})
	case core.TellFinished:
		f := Finished{t.Request, t.Outcome, t.Store, slices.Clone(t.Blocks)}
		if w.collecting {
			w.finished = append(w.finished, f)
			return
		}
		w.leftovers = append(w.leftovers, f) // at most core.MaxPending, and what was dropped beyond
		w.ring()
	case core.TellWake:
		w.ring()
	case core.TellWarning:
		select {
		case w.warnings <- t.Failure:
		default:
		}
	}
}

func (w *Worker) ring() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Worker) answerRegister(err error) {
	if w.registering != nil {
		w.registering <- err
		w.registering = nil
	}
}

// RegisterError is why a registration failed.
type RegisterError struct{ Failure core.Failure }

// Error says it with what to do.
func (e RegisterError) Error() string {
	if e.Failure == core.FailDeadline {
		return "registration: the server did not respond in time; is it running at this address, and of this version?"
	}
	return "registration failed: " + e.Failure.String()
}

type workerRecorder struct{ w *Worker }

func (k workerRecorder) Record(r *core.Record) {
	if k.w.options.Events != nil {
		k.w.options.Events.record(r)
	}
	if k.w.options.OnRecord != nil {
		k.w.options.OnRecord(r)
	}
}

type workerLeaver struct{ w *Worker }

func (l workerLeaver) Leave(code core.ExitCode) {
	l.w.code = code
	l.w.owner.gone = true
}
