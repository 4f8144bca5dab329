package zmq

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	zmq4 "github.com/pebbe/zmq4"

	"vigil/core"
)

// Why this file: a client's side.

const eagain = zmq4.Errno(syscall.EAGAIN)

// serverPeer is the server as a client sees it.
const serverPeer = core.Peer(0)

// Dealer is a client's endpoint. It implements core.Transport. Safe for
// concurrent use.
type Dealer struct {
	owner
	connected bool
	leaving   bool // the connection closed, the sink does not know yet
	since     time.Time
}

var _ core.Transport = (*Dealer)(nil)

// Dial starts a DEALER that connects to Options.Connect, now or whenever the
// server is there: it is no error that it is not.
func Dial(options Options, sink Sink) (*Dealer, error) {
	if options.Connect == "" {
		return nil, errors.New("zmq: nothing to connect to; name an endpoint such as tcp://127.0.0.1:5555")
	}
	if len(options.Bind) > 0 {
		return nil, errors.New("zmq: a client connects; Bind is a server's")
	}
	d := new(Dealer)
	err := d.start(d, zmq4.DEALER, options, sink, func() error {
		if err := d.options.client(d.soc); err != nil {
			return err
		}
		switch scheme, _, _ := strings.Cut(options.Connect, "://"); scheme {
		case "tcp", "ipc", "inproc":
		default:
			return fmt.Errorf("zmq: cannot connect to %q: an endpoint is tcp://HOST:PORT or ipc://PATH", options.Connect)
		}
		if err := d.soc.Connect(options.Connect); err != nil {
			return fmt.Errorf("zmq: cannot connect to %s: %w", options.Connect, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Send copies a message into the queue towards the server and returns at once.
// While the server is away, messages wait: HighWater of them in the socket, and
// then SendQueue of them in the queue. What comes after those is dropped and
// counted. The peer is always the server; its number is not looked at.
func (d *Dealer) Send(_ core.Peer, frames *core.Frames) { d.hand(serverPeer, frames) }

// Reply sends at once, without the queue, and drops where there is no room.
// Only the sink may call it, and only inside its methods. What is in the queue
// may come after it.
func (d *Dealer) Reply(frames *core.Frames) {
	if !d.send(serverPeer, frames) {
		d.peerFull.Add(1)
	}
}

// Stats reads the counters; Peers is 1 while connected.
func (d *Dealer) Stats() Stats { return d.read() }

// Close is Router.Close. What waits for a server that is away is given up when
// the linger is over.
func (d *Dealer) Close() error { return d.close() }

func (d *Dealer) receive(limit int) (empty bool) {
	arrived, stamped := core.Time(0), false
	for until := d.receivedBytes.Load() + batchBytes; limit > 0 && d.receivedBytes.Load() < until; limit-- {
		first, err := d.soc.RecvBytes(zmq4.DONTWAIT)
		if err != nil {
			d.brokenUnlessEmpty(err)
			return true
		}
		if !stamped {
			arrived, stamped = d.options.Now(), true
		}
		if d.parts(first) {
			d.sink.Message(serverPeer, arrived, &d.frames)
			d.trim()
		}
	}
	return false
}

func (d *Dealer) send(_ core.Peer, frames *core.Frames) bool {
	if frames.Len() == 0 {
		d.empty.Add(1)
		return true
	}
	err := d.sendParts(frames)
	if err == nil {
		return true
	}
	if zmq4.AsErrno(err) == eagain {
		return false // of a message that broke off, libzmq forgets the first parts
	}
	d.broken.Add(1)
	return true
}

func (d *Dealer) event(what zmq4.Event, _ int, at time.Time) {
	switch what {
	case zmq4.EVENT_HANDSHAKE_SUCCEEDED:
		if d.leaving {
			d.tellClosed() // before anything of the new connection
		}
		d.connected = true
		d.counters.opened.Add(1)
		d.counters.peers.Store(1)
	case zmq4.EVENT_DISCONNECTED:
		if d.connected {
			d.connected, d.leaving, d.since = false, true, at
			d.counters.peers.Store(0)
		}
	}
}

func (d *Dealer) settle(empty bool) (pending bool) {
	if !d.leaving {
		return false
	}
	if waited := time.Since(d.since); waited < settle || !empty && waited < settleBound {
		return true
	}
	d.tellClosed()
	return false
}

func (d *Dealer) tellClosed() {
	d.leaving = false
	d.closed.Add(1)
	d.sink.Closed(serverPeer)
}
