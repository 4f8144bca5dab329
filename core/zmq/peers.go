package zmq

import (
	"encoding/binary"
	"slices"
	"time"

	"vigil/core"
)

// Why this file: ROUTER knows its connections by identities, the core by
// numbers that never come twice, and libzmq tells of a closed connection by a
// descriptor, which the system uses again at once. This file keeps the three
// together, so that a closing is attributed to the right peer.
//
// The rule. The first message of an identity tells its descriptor. When the
// monitor tells that the descriptor closed, the peer is leaving; it is closed
// once nothing of it waits in the socket any more: the socket was found empty
// settle after the news, or at the latest settleBound after it. Messages that
// are read until then are still the peer's.
//
// Corner cases. A first message that is read after its connection closed makes
// a peer that is leaving at once. Of two identities on one open descriptor the
// older connection is dead: where both are ROUTER's own, they count up; else
// the one that was read first. An identity that the client chose, or that is
// leaving, is looked at anew with each message, since another connection may
// come with the same.

const (
	// settle is far longer than libzmq takes between telling of a closed
	// connection and handing out its last messages, and far shorter than
	// anything that waits for the news.
	settle      = 20 * time.Millisecond
	settleBound = time.Second
)

// unknownFD is the descriptor of a peer whose closing nobody will tell.
const unknownFD = -1

type peerEntry struct {
	identity   []byte
	number     core.Peer
	fd         int
	leaving    bool
	since      time.Time // leaving
	prev, next int32     // by last message; next is more recent
}

// none is no entry.
const none = int32(-1)

type peerTable struct {
	entries    []peerEntry
	free       []int32
	byIdentity map[string]int32
	byNumber   map[core.Peer]int32
	byFD       map[int]int32 // the open connections that spoke
	open       map[int]bool  // the open descriptors, as the monitor tells
	leaving    []int32
	oldest     int32 // silent longest
	newest     int32
	last       core.Peer
	most       int
}

func newPeerTable(most int) *peerTable {
	return &peerTable{
		byIdentity: map[string]int32{}, byNumber: map[core.Peer]int32{}, byFD: map[int]int32{}, open: map[int]bool{},
		oldest: none, newest: none, most: most,
	}
}

// find returns the entry of an identity, none where it is new. Sure: its
// connection is the one that it had, so that nobody need ask.
func (t *peerTable) find(identity []byte) (at int32, sure bool) {
	at, known := t.byIdentity[string(identity)]
	if !known {
		return none, false
	}
	return at, routers(identity) && !t.entries[at].leaving
}

// routers reports whether ROUTER itself made the identity.
func routers(identity []byte) bool { return len(identity) == 5 && identity[0] == 0 }

// spoke notes that a message came.
func (t *peerTable) spoke(at int32) {
	if t.newest != at {
		t.unlink(at)
		t.link(at)
	}
}

func (t *peerTable) link(at int32) {
	e := &t.entries[at]
	e.prev, e.next = t.newest, none
	if t.newest != none {
		t.entries[t.newest].next = at
	} else {
		t.oldest = at
	}
	t.newest = at
}

func (t *peerTable) unlink(at int32) {
	e := &t.entries[at]
	if e.prev != none {
		t.entries[e.prev].next = e.next
	} else {
		t.oldest = e.next
	}
	if e.next != none {
		t.entries[e.next].prev = e.prev
	} else {
		t.newest = e.prev
	}
}

// same reports whether a known identity's message came on the connection that
// the entry stands for. The monitor has been read just before.
func (t *peerTable) same(at int32, fd int) bool {
	e := &t.entries[at]
	if routers(e.identity) || fd == unknownFD {
		return true // ROUTER gives each connection its own
	}
	if e.leaving {
		return !t.open[fd] // else another connection came with its identity
	}
	return e.fd == fd
}

// add makes a peer of a new identity. The table has room.
func (t *peerTable) add(identity []byte, fd int, now time.Time) int32 {
	at := int32(len(t.entries))
	if n := len(t.free); n > 0 {
		at = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		t.entries = append(t.entries, peerEntry{})
	}
	t.last++
	t.entries[at] = peerEntry{identity: append([]byte(nil), identity...), number: t.last, fd: fd}
	t.byIdentity[string(identity)] = at
	t.byNumber[t.last] = at
	t.link(at)
	if fd == unknownFD {
		return at
	}
	if !t.open[fd] {
		t.leave(at, now)
		return at
	}
	if other, taken := t.byFD[fd]; taken {
		if later(t.entries[other].identity, identity) {
			t.leave(at, now)
			return at
		}
		t.leave(other, now)
	}
	t.byFD[fd] = at
	return at
}

// later reports whether a is of a later connection than b, as far as ROUTER's
// counting tells.
func later(a, b []byte) bool {
	return routers(a) && routers(b) && int32(binary.BigEndian.Uint32(a[1:])-binary.BigEndian.Uint32(b[1:])) > 0
}

// leave notes that a peer's connection is closed.
func (t *peerTable) leave(at int32, now time.Time) {
	e := &t.entries[at]
	if e.leaving {
		return
	}
	if of, known := t.byFD[e.fd]; known && of == at {
		delete(t.byFD, e.fd)
	}
	e.leaving, e.since, e.fd = true, now, unknownFD
	t.leaving = append(t.leaving, at)
}

// accepted and disconnected are what the monitor tells.
func (t *peerTable) accepted(fd int, now time.Time) {
	t.disconnected(fd, now) // in case that news was lost
	t.open[fd] = true
}

func (t *peerTable) disconnected(fd int, now time.Time) {
	delete(t.open, fd)
	if at, known := t.byFD[fd]; known {
		t.leave(at, now)
	}
}

// remove takes a peer out and returns its number.
func (t *peerTable) remove(at int32) core.Peer {
	e := &t.entries[at]
	if !e.leaving {
		if of, known := t.byFD[e.fd]; known && of == at {
			delete(t.byFD, e.fd)
		}
	} else if t.leaving[0] == at {
		t.leaving = t.leaving[1:] // the usual case, also when all leave at once
	} else if i := slices.Index(t.leaving, at); i >= 0 {
		t.leaving = slices.Delete(t.leaving, i, i+1)
	}
	number := e.number
	delete(t.byIdentity, string(e.identity))
	delete(t.byNumber, number)
	t.unlink(at)
	*e = peerEntry{prev: none, next: none}
	t.free = append(t.free, at)
	return number
}

// settled returns a leaving peer that can be closed, none where there is none
// yet. Empty: the socket was just found without a message.
func (t *peerTable) settled(now time.Time, empty bool) int32 {
	if len(t.leaving) == 0 {
		return none
	}
	at := t.leaving[0] // the first to leave
	waited := now.Sub(t.entries[at].since)
	if waited >= settleBound || empty && waited >= settle {
		return at
	}
	return none
}
