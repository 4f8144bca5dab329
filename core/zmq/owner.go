package zmq

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	zmq4 "github.com/pebbe/zmq4"

	"vigil/core"
)

// Why this file: the goroutine that owns a socket, the same for both kinds.

// Sink takes what a socket receives. Its methods are called from the socket's
// own goroutine, one at a time: while one runs, nothing else is received or
// sent on that socket.
type Sink interface {
	// Message takes a message, without the identity. The frames are valid
	// during the call only. Arrived is the time by Options.Now at which the
	// message's batch was taken from the socket.
	Message(peer core.Peer, arrived core.Time, frames *core.Frames)
	// Closed tells that a peer's connection is closed. No message of it
	// follows. A Dealer's peer is 0, which comes back with the next connection.
	Closed(peer core.Peer)
}

// Opener is a Sink that wants to know where a peer comes from. Opened is called
// before the first message of a Router's peer.
type Opener interface {
	Opened(peer core.Peer, from Origin)
}

// Origin is where a connection comes from.
type Origin struct {
	Address string // the host's, as libzmq tells it; empty where it does not
	PID     int    // of the process, in this process's PID namespace; ipc only, else 0
	// Process is a descriptor of the process that opened the connection
	// (pidfd_open(2)), which can be read once that process is dead. Nil without
	// Options.Processes, for other transports than ipc, and where the process is
	// not sure. Whoever takes Opened closes it.
	Process *os.File
}

// kind is what differs between a ROUTER and a DEALER. All of it is called from
// the socket's goroutine.
type kind interface {
	// receive gives up to limit messages to the sink. Empty: there are no more.
	receive(limit int) (empty bool)
	// send gives one message to libzmq or drops it. False: there is no room,
	// and it must be tried again later.
	send(peer core.Peer, frames *core.Frames) bool
	// event takes what the monitor tells.
	event(what zmq4.Event, fd int, at time.Time)
	// settle closes what can be closed. Pending: there will be more to close.
	settle(empty bool) (pending bool)
}

// owner is a socket and its goroutine, the only one that touches it.
type owner struct {
	kind
	options Options
	sink    Sink
	counters
	queue queue

	context *Context
	own     bool // the context ends with the endpoint
	soc     *zmq4.Socket
	monitor *zmq4.Socket
	door    *doorkeeper // nil without a list of clients
	waiter  *waiter
	atDoor  int // its place in the waiter

	frames core.Frames // the message that is being received
	looks  int         // passes since the monitor was read
	stop   atomic.Bool
	ended  chan struct{}
	ending error  // why libzmq did not end well; read after ended
	after  func() // what the kind has to do when its socket is closed
}

const (
	monitorPlace = 2 // in the waiter, behind the wake-up and the socket
	// monitorPasses is how many passes of a busy loop may go by without a look
	// at the monitor.
	monitorPasses = 16
	// idle bounds a wait that nothing ends.
	idle = time.Second
	// settleStep is how long a wait lasts while something is to be closed.
	settleStep = settle / 4
	// batchBytes ends a batch whatever its length: what is to be sent, a ping's
	// answer among it, waits for the batch, and a few long prompts take longer
	// to receive than a thousand pings.
	batchBytes = 256 << 10
	// keepReceived is the largest buffer that is kept for the next message. A
	// socket has one, so it may be as large as long prompts are; growing it
	// anew for each of them costs more than receiving them.
	keepReceived = 4 << 20
	// yields is how often others are let run before a wait, after messages.
	yields = 4
	// closeGrace is what Close grants beyond the linger.
	closeGrace = 5 * time.Second
)

var monitorSerial atomic.Uint64

const watched = zmq4.EVENT_ACCEPTED | zmq4.EVENT_DISCONNECTED | zmq4.EVENT_HANDSHAKE_SUCCEEDED |
	zmq4.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq4.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq4.EVENT_HANDSHAKE_FAILED_AUTH

// start makes the socket, lets ready bind or connect it, and starts its
// goroutine.
func (o *owner) start(k kind, what zmq4.Type, options Options, sink Sink, ready func() error) (err error) {
	if sink == nil {
		return errors.New("zmq: a sink is needed")
	}
	if err := options.settle(); err != nil {
		return err
	}
	o.kind, o.options, o.sink, o.ended = k, options, sink, make(chan struct{})
	o.queue.most, o.queue.mostBytes = options.SendQueue, options.SendQueueBytes
	if o.context = options.Context; o.context == nil {
		if o.context, err = NewContext(); err != nil {
			return err
		}
		o.own = true
	}
	defer func() {
		if err != nil {
			o.release(0)
		}
	}()
	if o.soc, err = o.context.zmq.NewSocket(what); err != nil {
		return fmt.Errorf("zmq: making a socket: %w", err)
	}
	if err = options.both(o.soc); err != nil {
		return err
	}
	if err = o.watch(); err != nil {
		return fmt.Errorf("zmq: watching connections: %w", err)
	}
	if err = ready(); err != nil {
		return err
	}
	if o.waiter, err = newWaiter(); err != nil {
		return fmt.Errorf("zmq: making a wake-up: %w", err)
	}
	o.queue.wake = o.waiter.wake
	sockets := []*zmq4.Socket{o.soc, o.monitor}
	if o.door != nil {
		sockets = append(sockets, o.door.soc)
	}
	for _, s := range sockets {
		fd, err := s.GetFd()
		if err != nil {
			return fmt.Errorf("zmq: the socket's descriptor: %w", err)
		}
		o.atDoor = o.waiter.add(fd)
	}
	go o.run()
	return nil
}

// watch makes the monitor. Its queue is without bound on purpose: libzmq's
// thread would wait for room in it while it holds a lock that closing the
// socket needs. It holds the connections that came and went during one call of
// the sink.
func (o *owner) watch() error {
	address := fmt.Sprintf("inproc://monitor-%d", monitorSerial.Add(1))
	if err := o.soc.Monitor(address, watched); err != nil {
		return err
	}
	var err error
	if o.monitor, err = o.context.zmq.NewSocket(zmq4.PAIR); err != nil {
		return err
	}
	return errors.Join(o.monitor.SetRcvhwm(0), o.monitor.SetLinger(0), o.monitor.Connect(address))
}

func (o *owner) run() {
	// Not locked to a thread, on purpose. libzmq lets a socket move between
	// threads across a full memory fence, and the scheduler's hand-overs are
	// one. On a thread of its own, each message to another goroutine and each
	// answer back would wake a thread, which costs more than all the rest: a
	// third of the bare library's rate in place of all of it (BenchmarkPing).
	defer close(o.ended)
	var batch []item
	at := 0 // the first of the batch that is not sent
	// libzmq tells a reader that something came only after that reader found
	// nothing once.
	o.look()
	if o.door != nil {
		o.answerDoor()
	}
	for !o.stop.Load() {
		if at == len(batch) {
			batch, at = o.queue.take(batch), 0
		}
		from := at
		for at < len(batch) && o.send(batch[at].peer, batch[at].frames) {
			at++
		}
		if at > from {
			o.queue.done(batch[from:at])
		}
		if o.looks++; o.looks >= monitorPasses || o.waiter.ready(monitorPlace) {
			o.look()
		}
		had := o.received.Load()
		empty := o.receive(o.options.Batch)
		if o.door != nil && (o.waiter.ready(o.atDoor) || !empty) {
			o.answerDoor()
		}
		pending := o.settle(empty)
		if empty && o.received.Load() != had {
			// Whom the sink woke is next in line on this very thread: with its
			// answers in the queue there is no wait, and nobody to wake.
			for i := 0; i < yields && o.queue.empty(); i++ {
				runtime.Gosched()
			}
		}
		if empty {
			o.rest(at < len(batch), pending)
		}
	}
	left := len(batch) - at
	for at < len(batch) && o.send(batch[at].peer, batch[at].frames) {
		at, left = at+1, left-1
	}
	if left == 0 {
		batch = o.queue.take(nil)
		left = len(batch)
		for at = 0; at < len(batch) && o.send(batch[at].peer, batch[at].frames); at++ {
			left--
		}
	}
	o.release(left)
}

// rest waits for news. Blocked: a message waits for room in the socket.
func (o *owner) rest(blocked, pending bool) {
	o.queue.waiting.Store(true)
	defer o.queue.waiting.Store(false)
	if o.stop.Load() || !blocked && !o.queue.empty() {
		return
	}
	if blocked {
		// The receive before may have taken in the news of room.
		if events, err := o.soc.GetEvents(); err == nil && events&zmq4.POLLOUT != 0 {
			return
		}
	}
	limit := idle
	if pending {
		limit = settleStep
	}
	o.waiter.wait(limit)
}

// look reads the monitor.
func (o *owner) look() {
	o.looks = 0
	for {
		what, _, value, err := o.monitor.RecvEvent(zmq4.DONTWAIT)
		if err != nil {
			return
		}
		switch what {
		case zmq4.EVENT_HANDSHAKE_FAILED_NO_DETAIL, zmq4.EVENT_HANDSHAKE_FAILED_PROTOCOL, zmq4.EVENT_HANDSHAKE_FAILED_AUTH:
			o.handshakesFailed.Add(1)
		default:
			o.event(what, value, time.Now())
		}
	}
}

func (o *owner) answerDoor() { o.door.answer(func() { o.refused.Add(1) }) }

// parts receives what is left of a message into o.frames, its first part given
// or, where first is nil, received as well. Whole: it is all there; else it was
// dropped and counted.
func (o *owner) parts(first []byte) (whole bool) {
	f := &o.frames
	f.Reset()
	part, size, n := first, int64(0), 0
	for {
		if part == nil {
			var err error
			if part, err = o.soc.RecvBytes(zmq4.DONTWAIT); err != nil {
				o.broken.Add(1) // parts come together, so this is the end of libzmq
				return false
			}
		}
		n++
		if size += int64(len(part)); n <= o.options.MaxFrames && size <= o.options.MaxMessageBytes {
			f.Append(part)
		}
		part = nil
		if more, err := o.soc.GetRcvmore(); err != nil || !more {
			break
		}
	}
	switch {
	case n > o.options.MaxFrames:
		o.tooManyFrames.Add(1)
	case size > o.options.MaxMessageBytes:
		o.tooLarge.Add(1)
	default:
		o.received.Add(1)
		o.receivedBytes.Add(uint64(size))
		return true
	}
	if cap(f.Bytes) > keepReceived {
		f.Bytes = nil
	}
	return false
}

// trim lets a big message's buffer go once it was given on.
func (o *owner) trim() {
	if cap(o.frames.Bytes) > keepReceived {
		o.frames.Bytes = nil
	}
}

// sendParts sends the frames behind what was sent already.
func (o *owner) sendParts(f *core.Frames) error {
	last := f.Len() - 1
	for i := 0; i <= last; i++ {
		flags := zmq4.DONTWAIT
		if i < last {
			flags |= zmq4.SNDMORE
		}
		if _, err := o.soc.SendBytes(f.Part(i), flags); err != nil {
			return err
		}
	}
	o.sent.Add(1)
	o.sentBytes.Add(uint64(len(f.Bytes)))
	return nil
}

// hand puts a message into the queue.
func (o *owner) hand(peer core.Peer, frames *core.Frames) {
	if !o.queue.push(peer, frames) {
		o.queueFull.Add(1)
	}
}

// release ends what start made, as far as it came.
func (o *owner) release(unsent int) {
	o.queue.close()
	o.unsent.Add(uint64(unsent + len(o.queue.take(nil))))
	if o.monitor != nil {
		o.soc.Monitor("", watched) // before its other end goes, or libzmq would wait for it
		o.monitor.Close()
	}
	if o.door != nil {
		o.door.soc.Close()
	}
	if o.soc != nil {
		o.ending = o.soc.Close()
	}
	if o.after != nil {
		o.after()
	}
	if o.own {
		if err := o.context.Close(); o.ending == nil {
			o.ending = err
		}
	}
	if o.waiter != nil {
		o.waiter.close() // nobody wakes it: the queue is closed
	}
}

// close stops the goroutine and waits for its end, as long as the linger and
// closeGrace.
func (o *owner) close() error {
	o.stop.Store(true)
	o.queue.close()
	limit := time.NewTimer(o.options.Linger + closeGrace)
	defer limit.Stop()
	select {
	case <-o.ended:
		return o.ending
	case <-limit.C:
		return fmt.Errorf("zmq: the socket is still open after %s: its sink has not returned", o.options.Linger+closeGrace)
	}
}
