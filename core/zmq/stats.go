package zmq

import "sync/atomic"

// Why this file: silence towards the peer is not silence towards the operator.

// Stats is a reading of an endpoint's counters.
type Stats struct {
	Received, ReceivedBytes uint64 // messages given to the sink
	Sent, SentBytes         uint64 // messages given to libzmq

	// What came in and was dropped, by its first reason.
	TooManyFrames, TooLarge uint64

	// What was to go out and was dropped.
	QueueFull   uint64 // no room in the send queue
	UnknownPeer uint64 // a number that never was or is closed, or a connection that is gone
	PeerFull    uint64 // a connection whose high-water mark is reached
	Empty       uint64 // a message without frames
	Unsent      uint64 // still queued when the endpoint closed

	Peers            int64  // in the table now
	Opened, Closed   uint64 // peers so far
	Evicted          uint64 // of the closed: silent longest in a full table
	Unattributed     uint64 // of the opened: libzmq did not say on which descriptor
	NoProcess        uint64 // of the opened, with Options.Processes: ipc, and no descriptor of the process
	HandshakesFailed uint64 // connections that did not speak ZeroMQ, in time, or with a key
	Refused          uint64 // of those: a key that is not on the list
	Broken           uint64 // receives that ended with an error of libzmq
}

type counters struct {
	received, receivedBytes, sent, sentBytes         atomic.Uint64
	tooManyFrames, tooLarge                          atomic.Uint64
	queueFull, unknownPeer, peerFull, empty, unsent  atomic.Uint64
	opened, closed, evicted, unattributed, noProcess atomic.Uint64
	handshakesFailed, refused, broken                atomic.Uint64
	peers                                            atomic.Int64
}

func (c *counters) read() Stats {
	return Stats{
		Received: c.received.Load(), ReceivedBytes: c.receivedBytes.Load(), Sent: c.sent.Load(), SentBytes: c.sentBytes.Load(),
		TooManyFrames: c.tooManyFrames.Load(), TooLarge: c.tooLarge.Load(),
		QueueFull: c.queueFull.Load(), UnknownPeer: c.unknownPeer.Load(), PeerFull: c.peerFull.Load(), Empty: c.empty.Load(), Unsent: c.unsent.Load(),
		Peers: c.peers.Load(), Opened: c.opened.Load(), Closed: c.closed.Load(), Evicted: c.evicted.Load(), Unattributed: c.unattributed.Load(), NoProcess: c.noProcess.Load(),
		HandshakesFailed: c.handshakesFailed.Load(), Refused: c.refused.Load(), Broken: c.broken.Load(),
	}
}
