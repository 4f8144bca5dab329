package loop

import (
	"sync"
	"sync/atomic"

	"vigil/core"
	"vigil/core/wire"
)

// The decoders: long messages are decoded, and their chunks hashed, by a few
// goroutines beside the owner. The messages of one connection enter in their
// order, whatever their lengths: while one of them is in here, those behind it
// queue here as well. Connections take turns, a message each.

// The bounds on what waits to be decoded. A message beyond one of them enters
// at once, as a refusal.
const (
	// InlineDecodeBytes is the length up to which a message is decoded by the
	// goroutine that brings it: about 20 microseconds of decoding and hashing.
	InlineDecodeBytes = 8 << 10
	// DecodeBytes bounds what all connections have in here or on the way to
	// their step.
	DecodeBytes = 512 << 20
	// DecodePeerBytes and DecodePeerMessages bound one connection.
	DecodePeerBytes    = 128 << 20
	DecodePeerMessages = 1024
)

type decoders struct {
	decoder wire.Decoder
	enter   func(*message) // hands a decoded message to the owner

	queued atomic.Int64 // connections that have something in here
	held   atomic.Int64 // bytes, until the step is over

	mu      sync.Mutex
	work    sync.Cond
	peers   map[core.Peer]*backlog
	ready   []*backlog // first in, first out
	spare   []*backlog
	closed  bool
	running sync.WaitGroup
}

// backlog is what one connection has waiting. It is in ready, or being worked
// on, as long as it is in peers.
type backlog struct {
	peer     core.Peer
	messages []*message
	bytes    int64
}

func (d *decoders) start(n int) {
	d.work.L = &d.mu
	d.peers = make(map[core.Peer]*backlog)
	d.running.Add(n)
	for range n {
		go d.run()
	}
}

// stop ends the goroutines; what waits is given up.
func (d *decoders) stop() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.work.Broadcast()
	d.running.Wait()
	for _, b := range d.peers {
		for _, m := range b.messages {
			giveMessage(m)
		}
	}
	d.peers, d.ready = nil, nil
}

// must reports whether a message has to come through here.
func (d *decoders) must(peer core.Peer, bytes int) bool {
	if bytes > InlineDecodeBytes {
		return true
	}
	if d.queued.Load() == 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.peers[peer] != nil
}

// add queues a message; false where a bound forbids it. Messages of one peer
// must be added by one goroutine, the one that asked must.
func (d *decoders) add(m *message) bool {
	bytes := int64(len(m.frames.Bytes))
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	b := d.peers[m.peer]
	if !m.closed && (d.held.Load()+bytes > DecodeBytes ||
		b != nil && (b.bytes+bytes > DecodePeerBytes || len(b.messages) >= DecodePeerMessages)) {
		return false
	}
	m.charge = bytes
	d.held.Add(bytes)
	if b == nil {
		if n := len(d.spare); n > 0 {
			b, d.spare = d.spare[n-1], d.spare[:n-1]
		} else {
			b = new(backlog)
		}
		b.peer, b.bytes = m.peer, 0
		d.peers[m.peer] = b
		d.ready = append(d.ready, b)
		d.queued.Add(1)
		d.work.Signal()
	}
	b.messages = append(b.messages, m)
	b.bytes += bytes
	return true
}

// run is one decoder. A backlog that it works on is in nobody else's hands.
func (d *decoders) run() {
	defer d.running.Done()
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		for len(d.ready) == 0 && !d.closed {
			d.work.Wait()
		}
		if d.closed {
			return
		}
		b := d.ready[0]
		d.ready = d.ready[1:]
		m := b.messages[0]
		d.mu.Unlock()
		bytes := m.charge
		if !m.closed {
			d.decoder.Decode(&m.frames, &m.request)
		}
		d.enter(m)
		d.mu.Lock()
		if d.closed {
			b.messages = append(b.messages[:0], b.messages[1:]...)
			return
		}
		b.bytes -= bytes
		if b.messages = append(b.messages[:0], b.messages[1:]...); len(b.messages) > 0 {
			d.ready = append(d.ready, b)
			continue
		}
		delete(d.peers, b.peer)
		d.queued.Add(-1)
		if len(d.spare) < 64 {
			d.spare = append(d.spare, b)
		}
	}
}

// refuse makes m the refusal of a message that is not taken in: its first two
// frames, which an answer echoes, and the failure.
func (d *decoders) refuse(m *message, frames *core.Frames) {
	m.frames.Reset()
	for i := range min(2, frames.Len()) {
		if part := frames.Part(i); len(part) <= wire.MaxTypeBytes {
			m.frames.Append(part)
		}
	}
	d.decoder.Decode(&m.frames, &m.request)
	m.request.Failure = core.FailQueueFull
}
