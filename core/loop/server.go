package loop

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"

	"vigil/core"
	"vigil/core/server"
	"vigil/core/wire"
)

// DefaultDrain bounds how long a shutdown waits for the transfers and
// registrations that are under way.
const DefaultDrain = 10 * time.Second

// MemoryMaker opens the memory backend of a server: it copies to and from the
// bytes that slots gives, and reports the end of each operation to ended, from
// any goroutine.
type MemoryMaker func(slots Slots, ended func(core.Input)) (core.Memory, error)

// ServerOptions is what a Server is told at its start. The zero value of each
// field but Config and Memory is a default.
type ServerOptions struct {
	Config core.ServerConfig
	// Memory is needed where the configuration loads server-driven contexts.
	Memory MemoryMaker
	// Pool is the shared memory of engine-driven workers, mapped; Config names
	// it and says its size. It stays the caller's, who unlinks it in the end.
	Pool []byte

	Clock     clock.Clock // nil is the real one
	TimeScale int         // time runs so many times as fast; tests only
	Decoders  int         // goroutines for long messages; 0 is half the processors
	Drain     time.Duration
	// Entropy is the operating system's unless given.
	Entropy func() [16]byte

	// Events and Recording may be nil. The server closes both at its end.
	Events    *EventLog
	Recording *Recording

	// OnRecord sees each record and OnPing how long each ping waited from its
	// arrival at the host to its answer. Both run on the owner's goroutine, so
	// they must be quick and must not ask the server anything.
	OnRecord func(*core.Record)
	OnPing   func(time.Duration)
}

// Server is a running server core: the owner, the decoders, the store's bytes.
// Its methods are safe for concurrent use; Message and Closed are called by
// the one goroutine that receives from the transport.
type Server struct {
	options  ServerOptions
	machine  *server.Server
	owner    owner
	decoders decoders
	slots    slots
	inline   *inline // nil where the workers have a shared pool
	counts   Counts
	tape     *tape
	stage    drainStage
	stopping atomic.Bool
	dropped  atomic.Uint64 // messages that came when nobody took them any more
	overflow atomic.Uint64 // messages beyond the decoders' bounds
	pinged   *message      // the ping under way, for OnPing
	ending   Ending
	started  atomic.Bool
	done     chan struct{}
}

// ErrStopped is returned to whoever asks a server or worker that has ended.
var ErrStopped = errors.New("loop: it has ended")

// NewServer makes a server that does nothing before Start.
func NewServer(options ServerOptions) (*Server, error) {
	if err := options.Config.Validate(); err != nil {
		return nil, fmt.Errorf("loop: %w", err)
	}
	c := &options.Config
	if options.Memory == nil && c.ServerDriven {
		return nil, errors.New("loop: server-driven contexts need a memory backend: set ServerOptions.Memory or turn Config.ServerDriven off")
	}
	if options.Pool != nil && uint64(len(options.Pool)) < c.PoolBytes {
		return nil, fmt.Errorf("loop: the shared pool has %d bytes and the configuration says %d", len(options.Pool), c.PoolBytes)
	}
	if options.Drain == 0 {
		options.Drain = DefaultDrain
	}
	if options.Decoders <= 0 {
		options.Decoders = max(1, runtime.GOMAXPROCS(0)/2)
	}
	if options.Entropy == nil {
		options.Entropy = entropy
	}
	s := &Server{options: options, machine: server.New(*c), done: make(chan struct{})}
	s.slots = slots{machine: s.machine, pool: options.Pool}
	if c.EngineDriven && c.PoolBytes == 0 {
		s.inline = new(inline)
		s.inline.init()
		s.owner.driver.Inline = s.inline
	}
	s.decoders.decoder = wire.Decoder{ChunkTokens: c.ChunkTokens, Legacy: c.Legacy}
	s.decoders.enter = s.enter
	o := &s.owner
	o.init(newPace(options.Clock, options.TimeScale))
	o.take, o.done, o.settled = s.take, s.gave, s.settle
	o.driver.Machine, o.driver.Actor = s.machine, core.ActorServer
	o.driver.Recorder, o.driver.Leaver = recorder{s}, leaver{s}
	if options.Recording != nil {
		s.tape = newTape(options.Recording, s.machine, &o.pace)
		o.driver.Machine, o.before = s.tape, s.tape.input
	}
	if options.Memory != nil {
		memory, err := options.Memory(&s.slots, s.Ended)
		if err != nil {
			return nil, fmt.Errorf("loop: memory: %w", err)
		}
		o.driver.Memory = memory
		s.slots.pins, _ = memory.(Pinner)
	}
	return s, nil
}

func entropy() (e [16]byte) {
	rand.Read(e[:]) // never fails
	return e
}

// Start begins the life: the transport carries the answers, and takes them from
// two goroutines at once. Only once.
func (s *Server) Start(transport core.Transport) {
	if s.started.Swap(true) {
		panic("loop: Server.Start called twice")
	}
	s.owner.driver.Transport = sender{s, transport}
	if s.inline != nil {
		s.inline.transport = transport
		s.inline.courier.start(transport)
	}
	s.decoders.start(s.options.Decoders)
	go s.run()
}

func (s *Server) run() {
	defer close(s.done)
	whole := false
	defer func() {
		// A panic of the core ends the process, but not before what led to it
		// is on the disk.
		s.closeLogs(whole)
	}()
	o := &s.owner
	o.tick()
	if s.options.Events != nil {
		c := &s.options.Config
		s.options.Events.begin(c.Reap, c.Grace, c.Protections.String(), &o.pace)
	}
	if s.tape != nil {
		s.tape.begin()
	}
	o.input = core.Input{Kind: core.InputStart, Entropy: s.options.Entropy()}
	o.feed()
	o.run()
	s.decoders.stop()
	s.takeStock()
	if s.inline != nil {
		s.inline.close()
	}
	if s.machine.Load().LanesBusy == 0 {
		s.slots.close() // else a copy that hangs may yet touch them
	}
	whole = true
}

func (s *Server) closeLogs(whole bool) {
	if s.tape != nil {
		s.tape.end(whole)
	}
	if s.options.Events != nil {
		s.options.Events.Close()
	}
}

// Now is the server's time; transports stamp arrivals with it.
func (s *Server) Now() core.Time { return s.owner.pace.now() }

// Message takes a message that arrived at the host at that time. It copies
// what it keeps, and it waits while the mailbox is full.
func (s *Server) Message(peer core.Peer, arrived core.Time, frames *core.Frames) {
	m := takeMessage(len(frames.Bytes))
	m.peer, m.arrived = peer, arrived
	if !s.decoders.must(peer, len(frames.Bytes)) {
		m.frames.CopyFrom(frames)
		s.decoders.decoder.Decode(&m.frames, &m.request)
		s.enter(m)
		return
	}
	m.frames.CopyFrom(frames)
	if !s.decoders.add(m) {
		s.overflow.Add(1)
		s.decoders.refuse(m, frames)
		s.enter(m)
	}
}

// Closed takes the closing of a connection in, behind its messages.
func (s *Server) Closed(peer core.Peer) { s.behind(peer, false) }

// Exited takes in that the process behind a connection is proven dead, behind
// its messages too: a registration that came before must not outlive the proof.
func (s *Server) Exited(peer core.Peer) { s.behind(peer, true) }

func (s *Server) behind(peer core.Peer, exited bool) {
	m := takeMessage(0)
	m.peer, m.closed, m.exited = peer, true, exited
	m.frames.Reset()
	if !s.decoders.must(peer, 0) || !s.decoders.add(m) {
		s.enter(m)
	}
}

// Ended takes the end of a memory operation: an InputOpened, InputReleased or
// InputCopied.
func (s *Server) Ended(in core.Input) {
	s.owner.box.put(item{kind: in.Kind, op: in.Op, bytes: in.Bytes, failure: in.Failure, instance: in.Instance})
}

// enter hands a decoded message to the owner.
func (s *Server) enter(m *message) {
	if m.closed {
		i := item{kind: core.InputClosed, peer: m.peer}
		if m.exited {
			i.kind = core.InputExited
		}
		s.gave(m)
		s.owner.box.put(i)
		return
	}
	if s.inline != nil {
		m.pack()
	}
	if s.stopping.Load() && m.request.Failure == core.NoFailure && !endsWork(m.request.Type) {
		m.request.Failure = core.FailStopping
	}
	if !s.owner.box.message(m) {
		s.dropped.Add(1)
		s.gave(m)
	}
}

// endsWork reports whether a request is still served while the server drains:
// signs of life, and what gives back or completes what its sender holds.
func endsWork(t wire.Type) bool {
	switch t {
	case wire.Ping, wire.CommitStore, wire.CommitRetrieve, wire.FreeLookupLocks, wire.EndSession,
		wire.UnregisterKVCache, wire.UnregisterEngineDriven, wire.UnregisterRope:
		return true
	}
	return false
}

// take and gave are the owner's: a message before and after its step.
func (s *Server) take(m *message, in *core.Input) {
	*in = core.Input{
		Kind: core.InputFrames, Peer: m.peer, Arrived: m.arrived, Frames: &m.frames, Decoded: &m.request,
	}
	s.counts.Requests[m.request.Type]++
	if s.inline != nil {
		s.inline.arrive(m)
	}
	s.pinged = nil
	if m.request.Type == wire.Ping && s.options.OnPing != nil {
		s.pinged = m
	}
}

func (s *Server) gave(m *message) {
	if m.charge > 0 {
		s.decoders.held.Add(-m.charge)
	}
	giveMessage(m)
}

// sender is the server's transport with an eye on pings.
type sender struct {
	s         *Server
	transport core.Transport
}

func (t sender) Send(peer core.Peer, frames *core.Frames) {
	if m := t.s.pinged; m != nil && m.peer == peer {
		t.s.pinged = nil
		t.s.options.OnPing(t.s.owner.now.Sub(m.arrived))
	}
	t.transport.Send(peer, frames)
}

type leaver struct{ s *Server }

func (l leaver) Leave(code core.ExitCode) {
	l.s.ending.Code = code
	l.s.owner.gone = true
}

// recorder is where the core's records go.
type recorder struct{ s *Server }

func (k recorder) Record(r *core.Record) {
	s := k.s
	s.counts.take(r)
	if r.Kind == core.ChunkDropped {
		s.slots.drop(core.Slot(r.A))
		if s.inline != nil {
			s.inline.drop(core.Slot(r.A))
		}
	}
	if s.options.Events != nil {
		s.options.Events.record(r)
	}
	if s.options.OnRecord != nil {
		s.options.OnRecord(r)
	}
}

// Done is closed when the server has ended and everything of it is closed.
func (s *Server) Done() <-chan struct{} { return s.done }

// ask runs f on the owner's goroutine and returns what it returns.
func ask[T any](ctx context.Context, o *owner, f func() T) (T, error) {
	answer := make(chan T, 1)
	var none T
	if !o.box.put(item{run: func() { answer <- f() }}) {
		return none, ErrStopped
	}
	select {
	case t := <-answer:
		return t, nil
	case <-ctx.Done():
		return none, ctx.Err()
	case <-o.ended:
		select {
		case t := <-answer: // it was the last thing that the owner did
			return t, nil
		default:
			return none, ErrStopped
		}
	}
}
