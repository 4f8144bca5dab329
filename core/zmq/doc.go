// Package zmq is the production transport: the server's ROUTER socket and a
// client's DEALER socket over libzmq, through github.com/pebbe/zmq4 (cgo).
//
// Contract. A socket belongs to one goroutine; it alone receives, sends and
// looks at the socket's events. It gives each message
// to the Sink inside a call, so the Sink must not block for long and must copy
// what it keeps. Other goroutines hand messages over with Send, which copies
// them into a bounded queue and never blocks; what does not fit is dropped and
// counted, as ZeroMQ drops what it has no room for.
//
// It promises what core.Transport promises: order on one connection, a bounded
// queue while the peer is away and then a burst, silence about loss. Nothing
// that a peer sends ends the loop: a message with too many parts or bytes is
// dropped and counted, a frame over the bound closes that connection alone,
// and since ROUTER takes from its connections in turn, a flood from one leaves
// the others their share.
//
// Peers. Each connection to a Router is a core.Peer, numbered from 1 in the
// order of its first message and never used again. libzmq says on which
// descriptor a message came in and which descriptor closed; from the two a
// closed connection is attributed to its peer, whose messages that are read
// already or lie in the socket still come before its Sink.Closed (peers.go has
// the rule and its corner cases). The table of peers is bounded by
// Options.MaxPeers; a newcomer to a full table takes the place of whoever has
// been silent longest, which is closed. There is no other eviction: a silent
// connection that is open costs one entry.
//
// Bounds that libzmq leaves open, for whoever binds to more than a trusted
// host: it counts messages, not bytes, so one connection can hold up to
// HighWater messages of MaxMessageBytes each; and it holds a message with any
// number of parts until its last part has come.
package zmq
