package zmq

import (
	"fmt"

	zmq4 "github.com/pebbe/zmq4"
)

// Why this file: libzmq's own threads. An endpoint brings its own by default,
// so that closing it leaves nothing; a program with a thousand clients shares.

// Context is libzmq's threads and sockets.
type Context struct{ zmq *zmq4.Context }

// NewContext starts libzmq's threads, one of which moves bytes.
func NewContext() (*Context, error) {
	c, err := zmq4.NewContext()
	if err != nil {
		return nil, fmt.Errorf("zmq: starting libzmq: %w", err)
	}
	// Each endpoint has two sockets, and one more with a list of clients.
	if err := c.SetMaxSockets(1 << 16); err != nil {
		c.Term()
		return nil, fmt.Errorf("zmq: starting libzmq: %w", err)
	}
	return &Context{c}, nil
}

// Close ends the threads. It blocks until every endpoint that uses the context
// is closed and their lingering messages are sent or given up.
func (c *Context) Close() error { return c.zmq.Term() }

// Version is the version of libzmq that is loaded.
func Version() string {
	major, minor, patch := zmq4.Version()
	return fmt.Sprintf("%d.%d.%d", major, minor, patch)
}
