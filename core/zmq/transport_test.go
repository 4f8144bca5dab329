package zmq

import (
	"bytes"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	zmq4 "github.com/pebbe/zmq4"

	"vigil/core"
)

// A request goes to the server and its reply back, in order, over TCP and ipc.
func TestRequestsAndRepliesInOrder(t *testing.T) {
	for _, bind := range []string{loopback, "ipc://" + filepath.Join(t.TempDir(), "d", "socket")} {
		t.Run(bind[:3], func(t *testing.T) {
			server, client := new(ear), new(ear)
			// Above the burst, or ROUTER would drop replies that wait for a slow client.
			r := listen(t, Options{Bind: []string{bind}, HighWater: 10000}, server)
			server.do = func(p core.Peer, f *core.Frames) { r.Send(p, f) }
			d := dial(t, Options{HighWater: 10000}, r.Endpoints()[0], client)
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("server %+v\nclient %+v", r.Stats(), d.Stats())
				}
			})
			const n = 3000
			for i := range n {
				d.Send(0, message(fmt.Sprint(i), "", strings.Repeat("x", i%100)))
			}
			for side, all := range map[string][]heard{"server": server.wait(t, n), "client": client.wait(t, n)} {
				last := core.Time(0)
				for i, h := range all {
					if got := string(h.frames.Part(0)); got != fmt.Sprint(i) || h.frames.Len() != 3 || len(h.frames.Part(1)) != 0 || len(h.frames.Part(2)) != i%100 {
						t.Fatalf("%s: message %d reads %q", side, i, text(&h.frames))
					}
					if h.arrived < last {
						t.Fatalf("%s: message %d arrived before the one before it", side, i)
					}
					last = h.arrived
				}
			}
			first := server.all[0]
			if first.peer != 1 {
				t.Errorf("the first peer is %d", first.peer)
			}
			if bind[:3] == "ipc" && first.origin.PID == 0 || bind[:3] == "tcp" && first.origin.Address != "127.0.0.1" {
				t.Errorf("the first peer comes from %+v", first.origin)
			}
			if s := r.Stats(); s.Received != n || s.Sent != n || s.Peers != 1 || s.QueueFull+s.UnknownPeer+s.PeerFull+s.Broken != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A client that comes back is another peer, and the old one is closed after
// everything that it said.
func TestAReconnectIsANewPeer(t *testing.T) {
	for _, bind := range []string{loopback, "ipc://" + filepath.Join(t.TempDir(), "socket")} {
		server := new(ear)
		r := listen(t, Options{Bind: []string{bind}}, server)
		for range 3 {
			d, err := Dial(Options{Connect: r.Endpoints()[0]}, new(ear))
			if err != nil {
				t.Fatal(err)
			}
			for i := range 50 {
				d.Send(0, message(fmt.Sprint(i)))
			}
			if err := d.Close(); err != nil { // the linger lets all of it out
				t.Fatal(err)
			}
		}
		all := server.wait(t, 3*51)
		next := map[core.Peer]int{}
		closed := map[core.Peer]bool{}
		for _, h := range all {
			switch {
			case h.closed && (closed[h.peer] || next[h.peer] != 50):
				t.Fatalf("%s: peer %d closed after %d of 50 messages, or twice", bind, h.peer, next[h.peer])
			case h.closed:
				closed[h.peer] = true
			case closed[h.peer]:
				t.Fatalf("%s: peer %d spoke after it was closed", bind, h.peer)
			case string(h.frames.Part(0)) != fmt.Sprint(next[h.peer]):
				t.Fatalf("%s: peer %d out of order", bind, h.peer)
			default:
				next[h.peer]++
			}
		}
		if len(next) != 3 || len(closed) != 3 || !closed[1] || !closed[2] || !closed[3] {
			t.Errorf("%s: peers %v, closed %v", bind, next, closed)
		}
		if s := r.Stats(); s.Peers != 0 || s.Opened != 3 || s.Closed != 3 || s.Unattributed != 0 {
			t.Errorf("%s: %+v", bind, s)
		}
	}
}

// A connection breaks under a client that lives: the server sees the old peer
// close and a new one come, the client is told as well.
func TestABrokenConnection(t *testing.T) {
	server, client := new(ear), new(ear)
	r := listen(t, Options{}, server)
	p := newProxy(t, r.Endpoints()[0])
	d := dial(t, Options{}, p.endpoint, client)
	d.Send(0, message("before"))
	server.wait(t, 1)
	p.breakAll()
	eventually(t, "the server hears of the break", func() bool { return r.Stats().Closed == 1 })
	eventually(t, "the client hears of the break", func() bool { return client.count() == 1 })
	d.Send(0, message("after"))
	all := server.wait(t, 3)
	if all[0].peer != 1 || !all[1].closed || all[1].peer != 1 || all[2].peer != 2 || text(&all[2].frames) != "|after" {
		t.Errorf("%+v", all)
	}
	if got := client.wait(t, 1)[0]; !got.closed || got.peer != 0 {
		t.Errorf("the client heard %+v", got)
	}
}

// What is not a request: it is given on or counted, and nothing stops.
func TestOddMessages(t *testing.T) {
	server := new(ear)
	r := listen(t, Options{MaxFrames: 16, MaxMessageBytes: 1000}, server)
	d := dial(t, Options{MaxMessageBytes: 1 << 20}, r.Endpoints()[0], new(ear))
	thousand, fifteen := new(core.Frames), new(core.Frames)
	for range 1000 {
		thousand.Append([]byte("y"))
	}
	for range 15 {
		fifteen.Append(bytes.Repeat([]byte("z"), 100))
	}
	d.Send(0, message("\xff\x00garbage"))
	d.Send(0, message(""))
	d.Send(0, message("", "", ""))
	d.Send(0, new(core.Frames)) // nothing at all: never leaves
	d.Send(0, thousand)
	d.Send(0, fifteen) // each frame below the bound, all of it above
	d.Send(0, message("a", "b"))
	all := server.wait(t, 4)
	for i, want := range []string{"|\xff\x00garbage", "|", "|||", "|a|b"} {
		if got := text(&all[i].frames); got != want || all[i].peer != 1 {
			t.Errorf("message %d reads %q of peer %d, want %q", i, got, all[i].peer, want)
		}
	}
	if s := r.Stats(); s.TooManyFrames != 1 || s.TooLarge != 1 || s.Received != 4 || s.Broken != 0 {
		t.Errorf("%+v", s)
	}
	if s := d.Stats(); s.Empty != 1 {
		t.Errorf("%+v", s)
	}
	// One frame over the bound costs the connection, and nobody else's.
	other := dial(t, Options{}, r.Endpoints()[0], new(ear))
	other.Send(0, message("hello"))
	server.wait(t, 5)
	d.Send(0, message(strings.Repeat("x", 1001)))
	eventually(t, "the connection of the too large frame is closed", func() bool { return r.Stats().Closed == 1 })
	other.Send(0, message("still here"))
	all = server.wait(t, 7)
	if h := all[len(all)-1]; text(&h.frames) != "|still here" || h.peer != 2 {
		t.Errorf("the other one reads %q of peer %d", text(&h.frames), h.peer)
	}
}

// Strangers who speak no ZeroMQ, or half of it, are closed and counted.
func TestStrangersAtThePort(t *testing.T) {
	server := new(ear)
	r := listen(t, Options{HandshakeTimeout: 300 * time.Millisecond}, server)
	address := strings.TrimPrefix(r.Endpoints()[0], "tcp://")
	for _, says := range []string{"", "GET / HTTP/1.0\r\n\r\n", "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f", "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL" + strings.Repeat("\x00", 48)} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte(says)); err != nil {
			t.Fatal(err)
		}
	}
	d := dial(t, Options{}, r.Endpoints()[0], new(ear))
	d.Send(0, message("hello"))
	server.wait(t, 1)
	eventually(t, "four strangers are closed", func() bool { return r.Stats().HandshakesFailed >= 4 })
	if s := r.Stats(); s.Peers != 1 || s.Opened != 1 {
		t.Errorf("%+v", s)
	}
}

// A reply to nobody is dropped in silence, and counted.
func TestRepliesToNobody(t *testing.T) {
	server := new(ear)
	r := listen(t, Options{}, server)
	client := new(ear)
	d := dial(t, Options{}, r.Endpoints()[0], client)
	r.Send(1, message("too early"))
	r.Send(99, message("never was"))
	d.Send(0, message("hello"))
	server.wait(t, 1)
	r.Send(1, message("welcome"))
	client.wait(t, 1)
	d.Close()
	eventually(t, "the peer is closed", func() bool { return r.Stats().Closed == 1 })
	r.Send(1, message("too late"))
	eventually(t, "three are dropped", func() bool { return r.Stats().UnknownPeer == 3 })
	if got := client.wait(t, 1); len(got) < 1 || text(&got[0].frames) != "|welcome" {
		t.Errorf("the client heard %+v", got)
	}
}

// One connection floods. The others are served meanwhile, each in its turn: a
// request beside the flood waits for a batch, not for the flood.
func TestAFloodFromOneLeavesTheOthersTheirShare(t *testing.T) {
	var flood atomic.Int64
	var r *Router
	ready := make(chan struct{})
	server := &echo{on: func(p core.Peer, f *core.Frames) {
		<-ready
		if f.Part(0)[0] != 'f' {
			r.Send(p, f)
			return
		}
		flood.Add(1)
		time.Sleep(time.Millisecond) // the server is the slow part
	}}
	r = listen(t, Options{Batch: 8}, server)
	close(ready)
	storm := dial(t, Options{Linger: -1}, r.Endpoints()[0], new(ear))
	client := new(ear)
	d := dial(t, Options{}, r.Endpoints()[0], client)
	const waiting = 10000 // in sockets and queues: 10 s of the server's time
	for range waiting {
		storm.Send(0, message("flood"))
	}
	eventually(t, "the flood runs", func() bool { return flood.Load() > 0 })
	var times []time.Duration
	for i := range 9 {
		began := time.Now()
		d.Send(0, message("c"))
		client.wait(t, i+1)
		times = append(times, time.Since(began))
	}
	if n := flood.Load(); n > waiting/2 {
		t.Skipf("%d of the flood are gone already: this machine is too busy to tell", n)
	}
	slices.Sort(times)
	if median := times[len(times)/2]; median > 500*time.Millisecond {
		t.Errorf("requests beside the flood took %s", times)
	}
}

type echo struct {
	on func(core.Peer, *core.Frames)
}

func (e *echo) Message(p core.Peer, _ core.Time, f *core.Frames) { e.on(p, f) }
func (e *echo) Closed(core.Peer)                                 {}

// The server is away. What its client sends waits, up to the bounds, is told
// apart from what is dropped, and comes as one burst in order.
func TestTheServerGoesAwayAndComesBack(t *testing.T) {
	server := new(ear)
	first := listen(t, Options{}, server)
	endpoint := first.Endpoints()[0]
	d := dial(t, Options{HighWater: 10, SendQueue: 20}, endpoint, new(ear))
	d.Send(0, message("hello"))
	server.wait(t, 1)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the client noticed", func() bool { return d.Stats().Closed == 1 })
	for i := range 100 {
		d.Send(0, message(fmt.Sprint(i)))
		if i < 30 {
			time.Sleep(2 * time.Millisecond) // the socket's goroutine takes what fits
		}
	}
	// libzmq counts what was read in steps of half the high-water mark.
	kept := 100 - int(d.Stats().QueueFull)
	if kept < 25 || kept > 30 {
		t.Errorf("%d of 100 were kept, want 10 in the socket and 20 in the queue", kept)
	}
	again := new(ear)
	listen(t, Options{Bind: []string{endpoint}}, again)
	for i, h := range again.wait(t, kept) {
		if text(&h.frames) != "|"+fmt.Sprint(i) {
			t.Fatalf("message %d reads %s", i, text(&h.frames))
		}
	}
	d.Send(0, message("on"))
	if all := again.wait(t, kept+1); text(&all[kept].frames) != "|on" {
		t.Errorf("after the burst: %s", text(&all[kept].frames))
	}
	if again.all[0].peer != 1 {
		t.Errorf("peer %d", again.all[0].peer)
	}
}

// A peer that does not take its replies fills its own connection only.
func TestAPeerThatDoesNotRead(t *testing.T) {
	server := new(ear)
	r := listen(t, Options{HighWater: 10}, server)
	hold := make(chan struct{})
	deaf := dial(t, Options{HighWater: 10}, r.Endpoints()[0], &echo{on: func(core.Peer, *core.Frames) { <-hold }})
	defer close(hold)
	client := new(ear)
	d := dial(t, Options{}, r.Endpoints()[0], client)
	deaf.Send(0, message("deaf"))
	server.wait(t, 1)
	d.Send(0, message("good"))
	good := server.wait(t, 2)[1].peer
	big := message(strings.Repeat("x", 1<<20))
	for range 64 {
		r.Send(1, big)
	}
	eventually(t, "the connection is full", func() bool { return r.Stats().PeerFull > 0 })
	r.Send(good, message("hello"))
	client.wait(t, 1)
}

// The table of peers is bounded: the one that is silent longest makes room.
func TestAFullTableClosesTheMostSilent(t *testing.T) {
	server := new(ear)
	r := listen(t, Options{MaxPeers: 3}, server)
	ctx, err := NewContext()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ctx.Close() })
	clients := make([]*Dealer, 4)
	for i := range clients {
		clients[i] = dial(t, Options{Context: ctx}, r.Endpoints()[0], new(ear))
		clients[i].Send(0, message("hello"))
		n := i + 1
		if i == 3 {
			n++ // with the closing of the evicted
		}
		server.wait(t, n)
		if i == 2 { // the first speaks again: the second is the most silent
			clients[0].Send(0, message("again"))
			server.wait(t, 4)
			server.mu.Lock()
			server.all = server.all[:3]
			server.mu.Unlock()
		}
	}
	all := server.wait(t, 5)
	if !all[3].closed || all[3].peer != 2 || all[4].peer != 4 {
		t.Errorf("%+v", all[3:])
	}
	clients[1].Send(0, message("I am still here"))
	all = server.wait(t, 7)
	if !all[5].closed || all[5].peer != 3 || all[6].peer != 5 {
		t.Errorf("%+v", all[5:])
	}
	if s := r.Stats(); s.Evicted != 2 || s.Peers != 3 {
		t.Errorf("%+v", s)
	}
}

// A client comes and speaks while the server is busy with another's message.
// The news of its connection and its message are then read in one go, and it
// is not taken for one that is gone.
func TestAClientThatComesWhileTheServerIsBusy(t *testing.T) {
	server := new(ear)
	r := listen(t, Options{}, server)
	busy := make(chan struct{})
	began := make(chan struct{})
	server.do = func(p core.Peer, f *core.Frames) {
		if text(f) == "|busy" {
			close(began)
			<-busy
		}
	}
	first := dial(t, Options{}, r.Endpoints()[0], new(ear))
	first.Send(0, message("busy"))
	<-began
	second := dial(t, Options{}, r.Endpoints()[0], new(ear))
	second.Send(0, message("hello"))
	eventually(t, "the second is connected", func() bool { return second.Stats().Peers == 1 && second.Stats().Sent == 1 })
	time.Sleep(50 * time.Millisecond)
	close(busy)
	server.wait(t, 2)
	time.Sleep(3 * settle)
	second.Send(0, message("again"))
	all := server.wait(t, 3)
	if all[2].closed || all[1].peer != all[2].peer {
		t.Errorf("%+v", all)
	}
}

// A client that chooses its identity, which real ones do not, is a new peer
// with each connection all the same.
func TestAChosenIdentity(t *testing.T) {
	server := new(ear)
	r := listen(t, Options{}, server)
	ctx, err := zmq4.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	defer ctx.Term()
	for i := range 3 {
		soc, err := ctx.NewSocket(zmq4.DEALER)
		if err != nil {
			t.Fatal(err)
		}
		soc.SetIdentity("me")
		soc.SetLinger(time.Second)
		soc.Connect(r.Endpoints()[0])
		soc.SendMessage("1")
		soc.SendMessage("2")
		server.wait(t, 3*i+2)
		soc.Close()
		server.wait(t, 3*i+3)
	}
	for i, h := range server.wait(t, 9) {
		if h.peer != core.Peer(i/3+1) || h.closed != (i%3 == 2) {
			t.Errorf("%d: %+v", i, h)
		}
	}
}

// Closing is bounded also where a peer takes nothing, and where the sink does
// not return it says so.
func TestClosingIsBounded(t *testing.T) {
	leavesNothing(t)
	d, err := Dial(Options{Connect: "tcp://127.0.0.1:1", Linger: 50 * time.Millisecond}, new(ear))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		d.Send(0, message("nobody listens"))
	}
	began := time.Now()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("closing took %s", took)
	}
	d.Send(0, message("too late"))
	if got := d.Stats().QueueFull; got != 1 {
		t.Errorf("%d dropped after the close", got)
	}
	if err := d.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

// What is queued when a server closes still goes out.
func TestTheLastReplies(t *testing.T) {
	server, client := new(ear), new(ear)
	r := listen(t, Options{}, server)
	d := dial(t, Options{}, r.Endpoints()[0], client)
	d.Send(0, message("hello"))
	server.wait(t, 1)
	for i := range 500 {
		r.Send(1, message(fmt.Sprint(i)))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	all := client.wait(t, 500)
	if text(&all[499].frames) != "|499" {
		t.Errorf("the last one reads %s", text(&all[499].frames))
	}
}

// A thousand clients in one context come and go.
func TestManyClientsComeAndGo(t *testing.T) {
	if testing.Short() {
		t.Skip("300 threads")
	}
	server := new(ear)
	r := listen(t, Options{}, server)
	leavesNothing(t)
	ctx, err := NewContext()
	if err != nil {
		t.Fatal(err)
	}
	const n = 300
	clients := make([]*Dealer, n)
	for i := range clients {
		clients[i], err = Dial(Options{Context: ctx, Connect: r.Endpoints()[0]}, new(ear))
		if err != nil {
			t.Fatal(err)
		}
		clients[i].Send(0, message("hello"))
	}
	server.wait(t, n)
	if s := r.Stats(); s.Peers != n {
		t.Errorf("%+v", s)
	}
	for _, d := range clients {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := ctx.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "all are closed", func() bool { return r.Stats().Closed == n })
	seen := map[core.Peer]int{}
	for _, h := range server.wait(t, 2*n) {
		if h.closed == (seen[h.peer] == 0) {
			t.Fatalf("peer %d: closed %v after %d", h.peer, h.closed, seen[h.peer])
		}
		seen[h.peer]++
	}
	if s := r.Stats(); s.Peers != 0 || len(r.peers.byFD) != 0 || len(r.peers.open) != 0 || len(r.peers.leaving) != 0 {
		t.Errorf("%+v, table %d %d %d", s, len(r.peers.byFD), len(r.peers.open), len(r.peers.leaving))
	}
}
