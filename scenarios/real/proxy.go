package real

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"vigil/core"
	"vigil/core/wire"
	"vigil/faults"
)

// proxy stands between one worker and the server. It forwards bytes; a cut
// stalls them or breaks the connection, a delay holds each piece back. Of what
// the worker sends it reads along, so that a message that has reached the
// server's host is known to have.
type proxy struct {
	worker int
	path   string // where the worker connects
	server string // where the server listens
	say    func(core.Record)
	scaled func(time.Duration) time.Duration

	mu       sync.Mutex
	gate     *sync.Cond
	stalled  [2]bool // by direction
	refusing bool    // a reset cut acts
	delay    faults.Span
	links    map[*link]bool
	closed   bool
	listener *net.UnixListener
	wait     sync.WaitGroup
}

const (
	toServer = 0
	toWorker = 1
)

// link is one connection through the proxy.
type link struct {
	worker, server net.Conn
	silent         bool // the worker's node is lost: its side's end is not passed on
}

func newProxy(worker int, path, server string, say func(core.Record), scaled func(time.Duration) time.Duration) (*proxy, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	p := &proxy{worker: worker, path: path, server: server, say: say, scaled: scaled, links: map[*link]bool{}, listener: l}
	p.gate = sync.NewCond(&p.mu)
	p.wait.Go(p.accept)
	return p, nil
}

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.mu.Lock()
		no := p.refusing || p.closed
		// While a stall holds the way to the server, so would the network hold a
		// new connection: it waits at the gate, after the accept.
		p.mu.Unlock()
		if no {
			c.Close()
			continue
		}
		s, err := net.DialTimeout("unix", p.server, time.Second)
		if err != nil { // the server is away
			c.Close()
			continue
		}
		l := &link{worker: c, server: s}
		p.mu.Lock()
		p.links[l] = true
		p.mu.Unlock()
		p.say(core.Record{Kind: core.ConnectionOpened, B: uint64(p.worker) + 1})
		p.wait.Go(func() { p.carry(l) })
	}
}

// carry forwards both ways until either side is done.
func (p *proxy) carry(l *link) {
	var both sync.WaitGroup
	both.Go(func() { p.pump(l, l.worker, l.server, toServer) })
	both.Go(func() { p.pump(l, l.server, l.worker, toWorker) })
	both.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
	p.say(core.Record{Kind: core.ConnectionClosed, B: uint64(p.worker) + 1})
}

func (p *proxy) pump(l *link, from, to net.Conn, way int) {
	var messages []core.Record
	decoder := wire.Decoder{ChunkTokens: 1}
	var request wire.Request
	reads := newReader(func(f *core.Frames) {
		request.Reset()
		decoder.Legacy = false
		decoder.Decode(f, &request)
		if request.Failure == core.FailPayloadCount {
			request.Reset()
			decoder.Legacy = true
			decoder.Decode(f, &request)
		}
		messages = append(messages, core.Record{Kind: core.MessageReached, B: uint64(request.Type), Instance: request.Instance})
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !p.hold(l, way) {
				break
			}
			if way == toServer {
				reads.feed(buffer[:n])
				for i := range messages {
					p.say(messages[i])
				}
				messages = messages[:0]
			}
			if _, e := to.Write(buffer[:n]); e != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	// An end is news, and news does not pass a cut either.
	p.mu.Lock()
	for (p.stalled[way] || l.silent) && p.links[l] && !p.closed {
		p.gate.Wait()
	}
	p.mu.Unlock()
	l.worker.Close()
	l.server.Close()
}

// hold waits out the delay and the stall of a direction; false where the
// connection broke meanwhile.
func (p *proxy) hold(l *link, way int) bool {
	p.mu.Lock()
	d := p.delay
	p.mu.Unlock()
	if !d.Zero() {
		span := d.Low
		if d.High > d.Low {
			span += rand.N(d.High - d.Low)
		}
		if span = p.scaled(span); span >= 100*time.Microsecond {
			time.Sleep(span)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stalled[way] && p.links[l] && !p.closed {
		p.gate.Wait()
	}
	return p.links[l] && !p.closed
}

// cut cuts the link.
func (p *proxy) cut(ways core.CutWays, reset bool) {
	p.mu.Lock()
	p.say(core.Record{Kind: core.LinkCut, A: uint64(p.worker) + 1, B: uint64(ways)})
	if reset {
		p.refusing = true
		p.breakAll()
	} else {
		p.stalled[toServer] = p.stalled[toServer] || ways != core.CutToWorker
		p.stalled[toWorker] = p.stalled[toWorker] || ways != core.CutToServer
	}
	p.mu.Unlock()
}

// breakAll closes every connection; the caller has the lock.
func (p *proxy) breakAll() {
	for l := range p.links {
		delete(p.links, l)
		l.worker.Close()
		l.server.Close()
	}
	p.gate.Broadcast()
}

// heal ends a cut; false where there was none.
func (p *proxy) heal() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	had := p.refusing || p.stalled[toServer] || p.stalled[toWorker]
	p.refusing, p.stalled = false, [2]bool{}
	p.say(core.Record{Kind: core.LinkHealed, A: uint64(p.worker) + 1})
	p.gate.Broadcast()
	return had
}

func (p *proxy) slow(d faults.Span) {
	p.mu.Lock()
	p.delay = d
	p.mu.Unlock()
}

// lose keeps the end of the worker's side from the server, as when a node is
// lost. A later life's connections are its own.
func (p *proxy) lose() {
	p.mu.Lock()
	for l := range p.links {
		l.silent = true
	}
	p.mu.Unlock()
}

func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.breakAll()
	p.mu.Unlock()
	p.wait.Wait()
}
