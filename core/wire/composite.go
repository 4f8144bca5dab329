package wire

import (
	"bytes"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"

	"vigil/core"
)

// Why this file: the composite values of registrations and of the engine-driven
// path come once in a worker's life, so the msgpack library reads and writes
// them. It is kept on a lead: a cursor walks the whole value first, so bounds,
// nesting and lengths are known to hold before the library sees it, and each
// value's class is checked before it is read, because the library takes nil
// for zero and a float for an integer where the real system does not.

// composite reads one value through the library. What is wrong sticks in the
// cursor that the value came from.
type composite struct {
	dec *msgpack.Decoder
	c   *cursor
}

// composite takes the next value of c for reading. Its reader must be given
// back with close.
func (c *cursor) composite() composite {
	body := c.b
	c.skip()
	if c.fail != core.NoFailure {
		body = nil
	} else {
		body = body[:len(body)-len(c.b)]
	}
	dec := msgpack.GetDecoder()
	dec.Reset(bytes.NewReader(body))
	return composite{dec, c}
}

func (m *composite) close() { msgpack.PutDecoder(m.dec) }

func (m *composite) failed() bool { return m.c.fail != core.NoFailure }

// head returns the next value's first byte; an unused one after a failure, so
// that no class fits.
func (m *composite) head() byte {
	head, err := m.dec.PeekCode()
	if err != nil || m.failed() {
		m.c.bad(truncated)
		return 0xc1
	}
	return head
}

func (m *composite) check(err error) {
	if err != nil {
		m.c.bad("is not what the msgpack library can read")
	}
}

func (m *composite) dict() int {
	head := m.head()
	if head>>4 != 0x8 && head != codeMap16 && head != codeMap32 {
		m.c.bad("is not a map")
		return 0
	}
	n, err := m.dec.DecodeMapLen()
	m.check(err)
	if n > MaxFields {
		m.c.large("is a map over its bound")
	}
	return n
}

func (m *composite) array(max int) int {
	head := m.head()
	if head>>4 != 0x9 && head != codeArray16 && head != codeArray32 {
		m.c.bad("is not an array")
		return 0
	}
	n, err := m.dec.DecodeArrayLen()
	m.check(err)
	if n > max {
		m.c.large("is an array over its bound")
	}
	return n
}

func (m *composite) text(max int) []byte {
	head := m.head()
	if head>>5 != 0x5 && (head < codeStr8 || head > codeStr32) {
		m.c.bad("holds something where a string belongs")
		return nil
	}
	s, err := m.dec.DecodeBytes()
	m.check(err)
	if len(s) > max {
		m.c.large("holds a string over its bound")
	}
	if !utf8.Valid(s) {
		m.c.bad("holds a string that is not UTF-8")
	}
	return s
}

func (m *composite) int() int64 {
	head := m.head()
	switch {
	case head == codeUint64:
		v, err := m.dec.DecodeUint64()
		m.check(err)
		if v > 1<<63-1 {
			m.c.bad("holds an integer that does not fit 64 signed bits")
		}
		return int64(v)
	case head <= 0x7f, head >= 0xe0, head >= codeUint8 && head <= codeInt64:
		v, err := m.dec.DecodeInt64()
		m.check(err)
		return v
	}
	m.c.bad("holds something where an integer belongs")
	return 0
}

func (m *composite) bool() bool {
	if head := m.head(); head != codeTrue && head != codeFalse {
		m.c.bad("holds something where a boolean belongs")
		return false
	}
	v, err := m.dec.DecodeBool()
	m.check(err)
	return v
}

func (m *composite) ints(dst []int64, max int) []int64 {
	for n := m.array(max); n > 0 && !m.failed(); n-- {
		dst = append(dst, m.int())
	}
	return dst
}

func (m *composite) skip() { m.check(m.dec.Skip()) }

// writer lets the library append to a message.
type writer struct{ f *core.Frames }

// Write never fails: it appends.
func (w writer) Write(b []byte) (int, error) {
	w.f.Bytes = append(w.f.Bytes, b...)
	return len(b), nil
}

// WriteByte never fails.
func (w writer) WriteByte(b byte) error {
	w.f.Bytes = append(w.f.Bytes, b)
	return nil
}

// encoder writes through the library. No call of it can fail, since its writer
// does not, so errors are not looked at.
type encoder struct{ enc *msgpack.Encoder }

func newEncoder(f *core.Frames) encoder {
	enc := msgpack.GetEncoder()
	enc.Reset(writer{f})
	return encoder{enc}
}

func (e encoder) close() { msgpack.PutEncoder(e.enc) }

func (e encoder) dict(n int)    { _ = e.enc.EncodeMapLen(n) }
func (e encoder) array(n int)   { _ = e.enc.EncodeArrayLen(n) }
func (e encoder) word(s string) { _ = e.enc.EncodeString(s) }

func (e encoder) int(name string, v int64) {
	e.word(name)
	_ = e.enc.EncodeInt(v)
}

func (e encoder) text(name string, s []byte) {
	e.word(name)
	e.word(string(s))
}

func (e encoder) bool(name string, v bool) {
	e.word(name)
	_ = e.enc.EncodeBool(v)
}

func (e encoder) ints(name string, s []int64) {
	e.word(name)
	e.array(len(s))
	for _, v := range s {
		_ = e.enc.EncodeInt(v)
	}
}
