package zmq

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	zmq4 "github.com/pebbe/zmq4"

	"vigil/core"
)

// Why this file: the server's side.

// Router is a server's endpoint. It implements core.Transport. Safe for
// concurrent use.
type Router struct {
	owner
	peers     *peerTable
	opener    Opener // nil where the sink is none
	endpoints []string
	files     []socketFile
}

var _ core.Transport = (*Router)(nil)

// Listen binds a ROUTER to every endpoint of Options.Bind and starts its
// goroutine. An error names the endpoint or the option and the remedy, and
// leaves nothing behind.
func Listen(options Options, sink Sink) (*Router, error) {
	if len(options.Bind) == 0 {
		return nil, errors.New("zmq: nothing to bind to; name an endpoint such as tcp://127.0.0.1:5555")
	}
	if options.Connect != "" {
		return nil, errors.New("zmq: a server binds; Connect is a client's")
	}
	r := new(Router)
	r.opener, _ = sink.(Opener)
	r.after = func() {
		for i := range r.files {
			r.files[i].remove()
		}
	}
	err := r.start(r, zmq4.ROUTER, options, sink, func() error {
		r.peers = newPeerTable(r.options.MaxPeers)
		if err := r.options.server(r.soc); err != nil {
			return err
		}
		if c := &r.options.Curve; c.Enabled() && len(c.Clients) > 0 {
			var err error
			if r.door, err = newDoorkeeper(r.context.zmq, c.Clients); err != nil {
				return err
			}
		}
		for _, endpoint := range options.Bind {
			if err := r.bind(endpoint); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Router) bind(endpoint string) error {
	path := ipcPath(endpoint)
	switch {
	case strings.HasPrefix(endpoint, "tcp://"), strings.HasPrefix(endpoint, "inproc://"):
	case strings.HasPrefix(endpoint, "ipc://"):
		if err := prepareIPC(path); err != nil {
			return err
		}
	default:
		return fmt.Errorf("zmq: cannot bind to %q: an endpoint is tcp://HOST:PORT or ipc://PATH", endpoint)
	}
	if err := r.soc.Bind(endpoint); err != nil {
		remedy := ""
		switch zmq4.AsErrno(err) {
		case zmq4.EADDRINUSE:
			remedy = "; stop the other server or choose another port"
		case zmq4.EADDRNOTAVAIL:
			remedy = "; this host has no such address"
		}
		return fmt.Errorf("zmq: cannot bind to %s: %w%s", endpoint, err, remedy)
	}
	if path != "" {
		file, err := secureIPC(path)
		if err != nil {
			os.Remove(path)
			return err
		}
		r.files = append(r.files, file)
	}
	bound, err := r.soc.GetLastEndpoint()
	if err != nil {
		return fmt.Errorf("zmq: cannot bind to %s: %w", endpoint, err)
	}
	r.endpoints = append(r.endpoints, strings.TrimRight(bound, "\x00"))
	return nil
}

// Endpoints lists what is bound, with the ports that were picked.
func (r *Router) Endpoints() []string { return append([]string(nil), r.endpoints...) }

// Send copies a message into the queue towards a peer and returns at once.
// Towards a peer that is not, or no more, it is dropped in silence, and so it
// is where the queue or the connection is full; Stats counts each.
func (r *Router) Send(peer core.Peer, frames *core.Frames) { r.hand(peer, frames) }

// Reply sends at once, without the queue. Only the sink may call it, and only
// inside its methods.
func (r *Router) Reply(peer core.Peer, frames *core.Frames) { r.send(peer, frames) }

// Stats reads the counters.
func (r *Router) Stats() Stats { return r.read() }

// Close sends what is queued, closes the socket and ends the goroutine. No call
// of the sink follows its return, also none of Closed. It takes at most
// Options.Linger where peers do not take their messages; a sink that does not
// return makes it give up 5 s later, with an error.
func (r *Router) Close() error { return r.close() }

func (r *Router) receive(limit int) (empty bool) {
	arrived, stamped := core.Time(0), false
	for until := r.receivedBytes.Load() + batchBytes; limit > 0 && r.receivedBytes.Load() < until; limit-- {
		identity, err := r.soc.RecvBytes(zmq4.DONTWAIT)
		if err != nil {
			r.brokenUnlessEmpty(err)
			return true
		}
		if !stamped {
			arrived, stamped = r.options.Now(), true
		}
		at, sure := r.peers.find(identity)
		var first []byte
		var about map[string]string
		if !sure {
			// The identity's own part carries no news; the next one does.
			if first, about, err = r.soc.RecvBytesWithMetadata(zmq4.DONTWAIT, "__fd", "Peer-Address"); err != nil {
				r.broken.Add(1)
				continue
			}
		}
		if !r.parts(first) {
			continue
		}
		if !sure {
			at = r.attribute(at, identity, about)
		}
		r.peers.spoke(at)
		r.sink.Message(r.peers.entries[at].number, arrived, &r.frames)
		r.trim()
	}
	return false
}

// brokenUnlessEmpty counts what is not merely an empty socket.
func (o *owner) brokenUnlessEmpty(err error) {
	if zmq4.AsErrno(err) != eagain {
		o.broken.Add(1)
		time.Sleep(time.Millisecond) // a broken socket must not spin
	}
}

// attribute finds out whose a message is whose identity is new or may have
// come with another connection.
func (r *Router) attribute(at int32, identity []byte, about map[string]string) int32 {
	r.look() // what closed before this message was read must be known
	fd, err := strconv.Atoi(about["__fd"])
	if err != nil || fd < 0 {
		fd = unknownFD
	}
	if at != none && !r.peers.same(at, fd) {
		r.drop(at)
		at = none
	}
	if at != none {
		return at
	}
	if len(r.peers.byIdentity) >= r.peers.most {
		r.evicted.Add(1)
		r.drop(r.peers.oldest)
	}
	at = r.peers.add(identity, fd, time.Now())
	r.counters.opened.Add(1)
	r.counters.peers.Add(1)
	if fd == unknownFD {
		r.unattributed.Add(1)
	}
	if r.opener != nil {
		from := originOf(about["Peer-Address"])
		from.Process = r.process(at)
		r.opener.Opened(r.peers.entries[at].number, from)
	}
	return at
}

// originOf reads libzmq's address of a peer: a host, or for ipc a name and the
// user, group and process behind colons.
func originOf(address string) Origin {
	o := Origin{Address: address}
	if parts := strings.Split(address, ":"); len(parts) == 4 {
		if pid, err := strconv.Atoi(parts[3]); err == nil && pid > 0 && !strings.Contains(parts[0], ".") && parts[0] != "" {
			o = Origin{Address: parts[0], PID: pid}
		}
	}
	return o
}

// drop closes a peer.
func (r *Router) drop(at int32) {
	number := r.peers.remove(at)
	r.closed.Add(1)
	r.counters.peers.Add(-1)
	r.sink.Closed(number)
}

func (r *Router) send(peer core.Peer, frames *core.Frames) bool {
	at, known := r.peers.byNumber[peer]
	if !known {
		r.unknownPeer.Add(1)
		return true
	}
	if frames.Len() == 0 {
		r.empty.Add(1)
		return true
	}
	_, err := r.soc.SendBytes(r.peers.entries[at].identity, zmq4.DONTWAIT|zmq4.SNDMORE)
	if err == nil {
		err = r.sendParts(frames)
	}
	if err != nil {
		switch zmq4.AsErrno(err) {
		case zmq4.EHOSTUNREACH:
			r.unknownPeer.Add(1)
		case eagain:
			r.peerFull.Add(1)
		default:
			r.broken.Add(1)
		}
	}
	return true
}

func (r *Router) event(what zmq4.Event, fd int, at time.Time) {
	switch what {
	case zmq4.EVENT_ACCEPTED:
		r.peers.accepted(fd, at)
	case zmq4.EVENT_DISCONNECTED:
		r.peers.disconnected(fd, at)
	}
}

func (r *Router) settle(empty bool) (pending bool) {
	if len(r.peers.leaving) == 0 {
		return false
	}
	now := time.Now()
	for {
		at := r.peers.settled(now, empty)
		if at == none {
			return len(r.peers.leaving) > 0
		}
		r.drop(at)
	}
}
