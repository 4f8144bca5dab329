package zmq

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// Why this file: a network that can break.

type proxy struct {
	endpoint string
	mu       sync.Mutex
	pairs    []net.Conn
}

// newProxy forwards to a server until the test ends.
func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{endpoint: "tcp://" + l.Addr().String()}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", strings.TrimPrefix(to, "tcp://"))
			if err != nil {
				c.Close()
				continue
			}
			p.mu.Lock()
			p.pairs = append(p.pairs, c, s)
			p.mu.Unlock()
			all.Go(func() { io.Copy(s, c); s.Close(); c.Close() })
			all.Go(func() { io.Copy(c, s); s.Close(); c.Close() })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.breakAll()
		all.Wait()
	})
	return p
}

func (p *proxy) breakAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.pairs {
		c.Close()
	}
	p.pairs = nil
}
