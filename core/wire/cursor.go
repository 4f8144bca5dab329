package wire

import (
	"encoding/binary"
	"unicode/utf8"

	"vigil/core"
)

// Why this file: requests are decoded in place, without an interface and
// without allocation, so the reader of msgpack's primitives is our own. It is
// tested against vmihailenco/msgpack in both directions.

// cursor reads one msgpack document from its front. The first thing wrong
// sticks: what is left becomes empty, so every later read fails too and loops
// over declared lengths end.
type cursor struct {
	b    []byte // what is left
	why  string // what is wrong, for Explain
	fail core.Failure
}

// msgpack's one-byte heads.
const (
	codeNil     = 0xc0
	codeFalse   = 0xc2
	codeTrue    = 0xc3
	codeBin8    = 0xc4
	codeBin16   = 0xc5
	codeBin32   = 0xc6
	codeExt8    = 0xc7
	codeExt16   = 0xc8
	codeExt32   = 0xc9
	codeFloat32 = 0xca
	codeFloat64 = 0xcb
	codeUint8   = 0xcc
	codeUint16  = 0xcd
	codeUint32  = 0xce
	codeUint64  = 0xcf
	codeInt8    = 0xd0
	codeInt16   = 0xd1
	codeInt32   = 0xd2
	codeInt64   = 0xd3
	codeFixExt1 = 0xd4
	codeFixExt  = 0xd8 // 16 bytes, the longest fixed extension
	codeStr8    = 0xd9
	codeStr16   = 0xda
	codeStr32   = 0xdb
	codeArray16 = 0xdc
	codeArray32 = 0xdd
	codeMap16   = 0xde
	codeMap32   = 0xdf
)

const truncated = "ends before its value does"

func (c *cursor) stop(f core.Failure, why string) {
	if c.fail == core.NoFailure {
		c.fail, c.why = f, why
	}
	c.b = nil
}

func (c *cursor) bad(why string)   { c.stop(core.FailUndecodable, why) }
func (c *cursor) large(why string) { c.stop(core.FailTooLarge, why) }

// end checks that the document was all there is.
func (c *cursor) end() {
	if len(c.b) != 0 {
		c.bad("has bytes after its value")
	}
}

// head returns the next head without taking it; codeNil's neighbour 0xc1,
// which msgpack never uses, where nothing is left.
func (c *cursor) head() byte {
	if len(c.b) == 0 {
		c.bad(truncated)
		return 0xc1
	}
	return c.b[0]
}

// take returns the next n bytes.
func (c *cursor) take(n int) []byte {
	if n > len(c.b) {
		c.bad(truncated)
		return nil
	}
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

// length takes the head and an n byte length that follows it.
func (c *cursor) length(n int) int {
	if len(c.b) < 1+n {
		c.bad(truncated)
		return 0
	}
	var v int
	switch n {
	case 1:
		v = int(c.b[1])
	case 2:
		v = int(binary.BigEndian.Uint16(c.b[1:]))
	case 4:
		v = int(binary.BigEndian.Uint32(c.b[1:]))
	}
	c.b = c.b[1+n:]
	return v
}

// integer reads an integer of any width. A negative one comes as its two's
// complement. Anything else is left in place with ok false.
func (c *cursor) integer() (v uint64, negative, ok bool) {
	b := c.b
	if len(b) == 0 {
		c.bad(truncated)
		return 0, false, false
	}
	head := b[0]
	if head <= 0x7f {
		c.b = b[1:]
		return uint64(head), false, true
	}
	if head >= 0xe0 {
		c.b = b[1:]
		return uint64(int64(int8(head))), true, true
	}
	if head < codeUint8 || head > codeInt64 {
		return 0, false, false
	}
	n := 1 << ((head - codeUint8) & 3)
	if len(b) < 1+n {
		c.bad(truncated)
		return 0, false, false
	}
	switch n {
	case 1:
		v = uint64(b[1])
	case 2:
		v = uint64(binary.BigEndian.Uint16(b[1:]))
	case 4:
		v = uint64(binary.BigEndian.Uint32(b[1:]))
	case 8:
		v = binary.BigEndian.Uint64(b[1:])
	}
	c.b = b[1+n:]
	if head >= codeInt8 {
		shift := 64 - 8*n
		v = uint64(int64(v<<shift) >> shift)
		negative = int64(v) < 0
	}
	return v, negative, true
}

// int reads an integer that fits 64 signed bits and is nothing else: fields of
// composite values are not coerced (PROTOCOL, section 1.4).
func (c *cursor) int() int64 {
	v, negative, ok := c.integer()
	if !ok {
		c.bad("is not an integer")
		return 0
	}
	if !negative && v > 1<<63-1 {
		c.bad("is an integer that does not fit 64 signed bits")
		return 0
	}
	return int64(v)
}

// natural reads an integer that is not negative and fits 63 bits.
func (c *cursor) natural() uint64 {
	v := c.int()
	if v < 0 {
		c.bad("is a negative integer")
		return 0
	}
	return uint64(v)
}

// isNil takes a nil where there is one.
func (c *cursor) isNil() bool {
	if c.head() != codeNil {
		return false
	}
	c.b = c.b[1:]
	return true
}

// bool reads a boolean and nothing else.
func (c *cursor) bool() bool {
	switch c.head() {
	case codeTrue:
		c.b = c.b[1:]
		return true
	case codeFalse:
		c.b = c.b[1:]
		return false
	}
	c.bad("is not a boolean")
	return false
}

// text reads a str of at most max bytes of valid UTF-8.
func (c *cursor) text(max int) []byte {
	var n int
	switch head := c.head(); {
	case head >= 0xa0 && head <= 0xbf:
		n = int(head & 0x1f)
		c.b = c.b[1:]
	case head == codeStr8:
		n = c.length(1)
	case head == codeStr16:
		n = c.length(2)
	case head == codeStr32:
		n = c.length(4)
	default:
		c.bad("is not a string")
		return nil
	}
	if n > max {
		c.large("is a string over its bound")
		return nil
	}
	s := c.take(n)
	if !utf8.Valid(s) {
		c.bad("is a string that is not UTF-8")
		return nil
	}
	return s
}

// data reads a bin of at most max bytes.
func (c *cursor) data(max int) []byte {
	var n int
	switch c.head() {
	case codeBin8:
		n = c.length(1)
	case codeBin16:
		n = c.length(2)
	case codeBin32:
		n = c.length(4)
	default:
		c.bad("is not a byte string")
		return nil
	}
	if n > max {
		c.large("is a byte string over its bound")
		return nil
	}
	return c.take(n)
}

// container is one of msgpack's two: their heads differ by their codes alone.
type container struct {
	fixed    byte // the upper half of a head that holds the count itself
	wide     byte // the head before a count of 16 bits; the next code is before 32
	values   int  // of an element: a pair has two
	other    string
	tooLarge string
}

var (
	anArray = container{0x90, codeArray16, 1, "is not an array", "is an array over its bound"}
	aMap    = container{0x80, codeMap16, 2, "is not a map", "is a map over its bound"}
)

// unbounded is more than any head can count: what is passed over is bounded by
// the frame alone.
const unbounded = 1 << 32

// of reports whether a head is one of the container's.
func (k container) of(head byte) bool {
	return head&0xf0 == k.fixed || head == k.wide || head == k.wide+1
}

// open reads the head of a container of at most max elements and returns how
// many there are. Every value takes a byte or more, so a count that the frame
// cannot hold is refused here.
func (c *cursor) open(k container, max int) int {
	var n int
	switch head := c.head(); {
	case !k.of(head):
		c.bad(k.other)
		return 0
	case head == k.wide:
		n = c.length(2)
	case head == k.wide+1:
		n = c.length(4)
	default:
		n = int(head & 0x0f)
		c.b = c.b[1:]
	}
	if n > max {
		c.large(k.tooLarge)
		return 0
	}
	if n > len(c.b)/k.values {
		c.bad(truncated)
		return 0
	}
	return n
}

// array reads the head of an array of at most max elements.
func (c *cursor) array(max int) int { return c.open(anArray, max) }

// dict reads the head of a map of at most MaxFields pairs.
func (c *cursor) dict() int { return c.open(aMap, MaxFields) }

// extension reads an extension and returns its type and body.
func (c *cursor) extension() (kind byte, body []byte) {
	var n int
	switch head := c.head(); {
	case head >= codeFixExt1 && head <= codeFixExt:
		n = 1 << (head - codeFixExt1)
		c.b = c.b[1:]
	case head == codeExt8:
		n = c.length(1)
	case head == codeExt16:
		n = c.length(2)
	case head == codeExt32:
		n = c.length(4)
	default:
		c.bad("is not an extension")
		return 0, nil
	}
	t := c.take(1)
	body = c.take(n)
	if c.fail != core.NoFailure {
		return 0, nil
	}
	return t[0], body
}

// skip passes over one value of any class, nested at most MaxDepth deep.
func (c *cursor) skip() { c.skipAt(0) }

func (c *cursor) skipAt(depth int) {
	if depth > MaxDepth {
		c.large("is nested too deep")
		return
	}
	head := c.head()
	n := 0 // values that follow
	switch {
	case head <= 0x7f, head >= 0xe0, head == codeNil, head == codeFalse, head == codeTrue:
		c.take(1)
		return
	case head >= codeUint8 && head <= codeInt64:
		c.take(1 + 1<<((head-codeUint8)&3))
		return
	case head == codeFloat32:
		c.take(5)
		return
	case head == codeFloat64:
		c.take(9)
		return
	case head >= 0xa0 && head <= 0xbf:
		c.take(1 + int(head&0x1f))
		return
	case head == codeStr8, head == codeBin8:
		c.take(c.length(1))
		return
	case head == codeStr16, head == codeBin16:
		c.take(c.length(2))
		return
	case head == codeStr32, head == codeBin32:
		c.take(c.length(4))
		return
	case head >= codeExt8 && head <= codeExt32, head >= codeFixExt1 && head <= codeFixExt:
		c.extension()
		return
	case anArray.of(head):
		n = c.open(anArray, unbounded)
	case aMap.of(head):
		n = aMap.values * c.open(aMap, unbounded)
	default:
		c.bad("is not msgpack")
		return
	}
	for ; n > 0 && c.fail == core.NoFailure; n-- {
		c.skipAt(depth + 1)
	}
}
