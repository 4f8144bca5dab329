package wire

import (
	"encoding/binary"
	"slices"

	"vigil/core"
)

// Why this file: a key carries its whole prompt as an array of integers, and
// the library spends tens of microseconds on a few hundred of them. These are
// plain loops over the bytes.

// uints reads an array of at most max integers from 0 to 2^32-1 and appends
// them to dst: token ids and block ids.
func (c *cursor) uints(dst []uint32, max int) []uint32 {
	n := c.array(max)
	if n == 0 {
		return dst
	}
	at := len(dst)
	dst = slices.Grow(dst, n)[:at+n]
	out := dst[at:]
	b := c.b
	for i := range out {
		if len(b) == 0 {
			c.bad(truncated)
			return dst[:at+i]
		}
		switch head := b[0]; {
		case head <= 0x7f:
			out[i] = uint32(head)
			b = b[1:]
			continue
		case head == codeUint8 && len(b) >= 2:
			out[i] = uint32(b[1])
			b = b[2:]
			continue
		case head == codeUint16 && len(b) >= 3:
			out[i] = uint32(b[1])<<8 | uint32(b[2])
			b = b[3:]
			continue
		case head == codeUint32 && len(b) >= 5:
			out[i] = binary.BigEndian.Uint32(b[1:])
			b = b[5:]
			continue
		}
		c.b = b
		v, negative, ok := c.integer()
		if !ok {
			c.bad("holds something that is not an integer")
			return dst[:at+i]
		}
		if negative || v > 1<<32-1 {
			c.bad("holds an integer outside 0 to 4294967295")
			return dst[:at+i]
		}
		out[i] = uint32(v)
		b = c.b
	}
	c.b = b
	return dst
}

// ints reads an array of at most max integers and appends them to dst.
func (c *cursor) ints(dst []int64, max int) []int64 {
	for n := c.array(max); n > 0 && c.fail == core.NoFailure; n-- {
		dst = append(dst, c.int())
	}
	return dst
}

// appendUints writes an array of integers.
func appendUints(b []byte, s []uint32) []byte {
	b = appendArray(b, len(s))
	b = slices.Grow(b, 5*len(s))
	for _, v := range s {
		switch {
		case v <= 0x7f:
			b = append(b, byte(v))
		case v <= 0xff:
			b = append(b, codeUint8, byte(v))
		case v <= 0xffff:
			b = append(b, codeUint16, byte(v>>8), byte(v))
		default:
			b = append(b, codeUint32, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
		}
	}
	return b
}

func appendInts(b []byte, s []int64) []byte {
	b = appendArray(b, len(s))
	for _, v := range s {
		b = appendInt(b, v)
	}
	return b
}
