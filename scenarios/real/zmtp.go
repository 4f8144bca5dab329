package real

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"vigil/core"
)

// ZMTP 3, as much of it as an onlooker and a raw client need: the proxy reads
// along to tell when a worker's message has reached the server's host, and the
// raw client fills the NORMAL pool without a C library.

const (
	greetingBytes = 64
	flagMore      = 1
	flagLong      = 2
	flagCommand   = 4
	// maxFrame bounds one frame that is read along; a longer one is passed over.
	maxFrame = 4 << 20
)

// reader takes one direction of a connection in pieces and gives each whole
// message to whole; frames that are too long are left empty.
type reader struct {
	whole  func(*core.Frames)
	frames core.Frames
	head   []byte // of the frame under way
	left   uint64 // of the frame's body
	flags  byte
	inBody bool
	skip   int  // of the greeting
	long   bool // the frame is passed over
	lost   bool // it is not ZMTP 3; nothing more is read
}

func newReader(whole func(*core.Frames)) *reader { return &reader{whole: whole, skip: greetingBytes} }

func (r *reader) feed(b []byte) {
	for len(b) > 0 && !r.lost {
		switch {
		case r.skip > 0:
			n := min(r.skip, len(b))
			if r.skip == greetingBytes && b[0] != 0xff {
				r.lost = true
			}
			r.skip -= n
			b = b[n:]
		case !r.inBody:
			r.head = append(r.head, b[0])
			b = b[1:]
			r.begin()
		default:
			n := min(r.left, uint64(len(b)))
			if r.flags&flagCommand == 0 && !r.long {
				r.frames.Bytes = append(r.frames.Bytes, b[:n]...)
			}
			r.left -= n
			b = b[n:]
			r.end()
		}
	}
}

// begin takes a frame's head in, once it is whole.
func (r *reader) begin() {
	r.flags = r.head[0]
	switch {
	case r.flags&flagLong == 0 && len(r.head) == 2:
		r.left = uint64(r.head[1])
	case r.flags&flagLong != 0 && len(r.head) == 9:
		r.left = binary.BigEndian.Uint64(r.head[1:])
	default:
		return
	}
	r.head, r.inBody = r.head[:0], true
	r.long = r.left > maxFrame
	r.end()
}

func (r *reader) end() {
	if r.left > 0 {
		return
	}
	r.inBody = false
	if r.flags&flagCommand != 0 {
		return
	}
	r.frames.EndPart()
	if r.flags&flagMore == 0 {
		r.whole(&r.frames)
		r.frames.Reset()
	}
}

// rawClient is a ZMTP client beside the workers, as a scheduler is. Its
// answers are read and dropped.
type rawClient struct{ conn net.Conn }

// greeting is ZMTP 3.0 with the NULL mechanism.
func greeting() []byte {
	g := make([]byte, greetingBytes)
	g[0], g[9], g[10] = 0xff, 0x7f, 3
	copy(g[12:], "NULL")
	return g
}

// dialRaw connects to a ROUTER that listens on a unix socket.
func dialRaw(path string) (*rawClient, error) {
	conn, err := net.DialTimeout("unix", path, 2*time.Second)
	if err != nil {
		return nil, err
	}
	c := &rawClient{conn}
	if err := c.shake(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("the server at %s does not speak ZMTP: %w", path, err)
	}
	go io.Copy(io.Discard, conn)
	return c, nil
}

func (c *rawClient) shake() error {
	c.conn.SetDeadline(time.Now().Add(5 * time.Second))
	defer c.conn.SetDeadline(time.Time{})
	if _, err := c.conn.Write(greeting()); err != nil {
		return err
	}
	in := bufio.NewReaderSize(c.conn, 512)
	theirs := make([]byte, greetingBytes)
	if _, err := io.ReadFull(in, theirs); err != nil {
		return err
	}
	if theirs[0] != 0xff || theirs[10] < 3 {
		return errors.New("its greeting is of another version")
	}
	body := []byte("\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00")
	if _, err := c.conn.Write(append([]byte{flagCommand, byte(len(body))}, body...)); err != nil {
		return err
	}
	head := make([]byte, 2)
	if _, err := io.ReadFull(in, head); err != nil {
		return err
	}
	if head[0] != flagCommand {
		return errors.New("it did not say that it is ready")
	}
	_, err := io.CopyN(io.Discard, in, int64(head[1]))
	return err
}

// send sends one message.
func (c *rawClient) send(f *core.Frames) error {
	var b []byte
	for i := range f.Len() {
		part := f.Part(i)
		flags := byte(0)
		if i < f.Len()-1 {
			flags = flagMore
		}
		if len(part) > 255 {
			b = binary.BigEndian.AppendUint64(append(b, flags|flagLong), uint64(len(part)))
		} else {
			b = append(b, flags, byte(len(part)))
		}
		b = append(b, part...)
	}
	c.conn.SetWriteDeadline(time.Now().Add(2 * time.Second))
	_, err := c.conn.Write(b)
	return err
}

func (c *rawClient) close() { c.conn.Close() }
