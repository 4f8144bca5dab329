package zmq

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"vigil/core"
)

// Why this file: the order in which news of connections and their messages are
// read is not ours to choose, so the orders that matter are told here.

func made(n uint32) []byte { return binary.BigEndian.AppendUint32([]byte{0}, n) }

// closes returns whom the table closes when the socket was found empty long
// after everything.
func closes(p *peerTable, at time.Time) (list []core.Peer) {
	for {
		e := p.settled(at, true)
		if e == none {
			return list
		}
		list = append(list, p.remove(e))
	}
}

func TestAttribution(t *testing.T) {
	now := time.Now()
	later := now.Add(time.Minute)
	for name, c := range map[string]struct {
		story func(p *peerTable)
		want  string
	}{
		"spoke, then closed": {func(p *peerTable) {
			p.accepted(9, now)
			p.add(made(1), 9, now)
			p.disconnected(9, now)
		}, "[1]"},
		"closed before its first message is read": {func(p *peerTable) {
			p.accepted(9, now)
			p.disconnected(9, now)
			p.add(made(1), 9, now)
		}, "[1]"},
		"never spoke": {func(p *peerTable) {
			p.accepted(9, now)
			p.disconnected(9, now)
		}, "[]"},
		"the descriptor is used again at once": {func(p *peerTable) {
			p.accepted(9, now)
			p.add(made(1), 9, now)
			p.disconnected(9, now)
			p.accepted(9, now)
			p.add(made(2), 9, now)
		}, "[1]"},
		"the dead one's message is read first": {func(p *peerTable) {
			p.accepted(9, now)
			p.disconnected(9, now)
			p.accepted(9, now)
			p.add(made(1), 9, now)
			p.add(made(2), 9, now)
		}, "[1]"},
		"the dead one's message is read last": {func(p *peerTable) {
			p.accepted(9, now)
			p.disconnected(9, now)
			p.accepted(9, now)
			p.add(made(2), 9, now)
			p.add(made(1), 9, now)
		}, "[2]"}, // peer 2 is the dead connection's, read second
		"identities wrap": {func(p *peerTable) {
			p.accepted(9, now)
			p.disconnected(9, now)
			p.accepted(9, now)
			p.add(made(1<<32-1), 9, now)
			p.add(made(0), 9, now)
		}, "[1]"},
		"news of the closing is lost": {func(p *peerTable) {
			p.accepted(9, now)
			p.add(made(1), 9, now)
			p.accepted(9, now)
		}, "[1]"},
		"unknown descriptor": {func(p *peerTable) {
			p.accepted(9, now)
			p.add(made(1), unknownFD, now)
			p.disconnected(9, now)
		}, "[]"},
		"another's closing": {func(p *peerTable) {
			p.accepted(8, now)
			p.accepted(9, now)
			p.add(made(1), 8, now)
			p.add(made(2), 9, now)
			p.disconnected(9, now)
		}, "[2]"},
	} {
		p := newPeerTable(100)
		c.story(p)
		if got := fmt.Sprint(closes(p, later)); got != c.want {
			t.Errorf("%s: closes %s, want %s", name, got, c.want)
		}
	}
}

// An identity that a client chose may come back on another connection, before
// or after the news of the closing is read.
func TestAChosenIdentityOnAnotherConnection(t *testing.T) {
	now := time.Now()
	p := newPeerTable(10)
	p.accepted(9, now)
	at := p.add([]byte("me"), 9, now)
	if _, sure := p.find([]byte("me")); sure {
		t.Error("a chosen identity is not looked at anew")
	}
	if !p.same(at, 9) || p.same(at, 8) {
		t.Error("while it is open: the descriptor does not tell the connections apart")
	}
	p.disconnected(9, now)
	if !p.same(at, 9) {
		t.Error("after the closing: its own last message is taken for another's")
	}
	p.accepted(9, now)
	if p.same(at, 9) {
		t.Error("another connection on the same descriptor is taken for the closed one")
	}
}

// A closing waits until the socket was found empty, but not for ever.
func TestAClosingWaitsForWhatIsInTheSocket(t *testing.T) {
	now := time.Now()
	p := newPeerTable(10)
	p.accepted(9, now)
	at := p.add(made(1), 9, now)
	p.disconnected(9, now)
	if p.settled(now, true) != none {
		t.Error("closed before libzmq had handed out its last messages")
	}
	if p.settled(now.Add(settle), false) != none {
		t.Error("closed with messages in the socket")
	}
	if p.settled(now.Add(settle), true) != at {
		t.Error("not closed with an empty socket")
	}
	if p.settled(now.Add(settleBound), false) != at {
		t.Error("a socket that is never empty holds the closing for ever")
	}
}

// Random lives of connections: the table's indexes agree, each number is
// closed at most once, and at the end nothing is left.
func TestTheTableStaysWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Now()
	p := newPeerTable(40)
	open := map[int][]byte{} // what really is open
	identity := uint32(0)
	closed := map[core.Peer]bool{}
	drop := func(at int32) {
		number := p.remove(at)
		if closed[number] {
			t.Fatalf("peer %d closed twice", number)
		}
		closed[number] = true
	}
	for range 20000 {
		now = now.Add(time.Duration(random.IntN(15)) * time.Millisecond)
		fd := random.IntN(60)
		switch id, is := open[fd], open[fd] != nil; {
		case !is:
			identity++
			open[fd] = made(identity)
			p.accepted(fd, now)
		case random.IntN(4) == 0:
			delete(open, fd)
			p.disconnected(fd, now)
		default:
			at, _ := p.find(id)
			if at == none {
				if len(p.byIdentity) >= p.most {
					drop(p.oldest)
				}
				at = p.add(id, fd, now)
			}
			p.spoke(at)
			if p.newest != at {
				t.Fatal("who just spoke is not the newest")
			}
		}
		for at := p.settled(now, random.IntN(2) == 0); at != none; at = p.settled(now, true) {
			drop(at)
		}
		n := 0
		for at := p.oldest; at != none; at = p.entries[at].next {
			n++
		}
		if n != len(p.byIdentity) || n != len(p.byNumber) || n > p.most || n != len(p.entries)-len(p.free) || len(p.byFD)+len(p.leaving) != n {
			t.Fatalf("%d in line, %d identities, %d numbers, %d entries less %d free, %d open and %d leaving",
				n, len(p.byIdentity), len(p.byNumber), len(p.entries), len(p.free), len(p.byFD), len(p.leaving))
		}
	}
	for fd := range open {
		p.disconnected(fd, now)
	}
	for at := p.settled(now.Add(time.Hour), true); at != none; at = p.settled(now.Add(time.Hour), true) {
		drop(at)
	}
	if len(p.byIdentity)+len(p.byFD)+len(p.open)+len(p.leaving) != 0 || len(closed) != int(p.last) {
		t.Errorf("left: %d %d %d %d; closed %d of %d", len(p.byIdentity), len(p.byFD), len(p.open), len(p.leaving), len(closed), p.last)
	}
}
