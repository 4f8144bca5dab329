package wire

import (
	"encoding/binary"
	"math/bits"
	"time"

	"vigil/core"
)

// Why this file: a payload whose declared class is exactly int or bool is
// coerced on the real system the way Python's int() and bool() do, so a worker
// that sends true or "12" is understood there and must be here (PROTOCOL,
// section 1.4). Floats are taken apart by their bits: the core computes with
// none.

// coerceInt reads what int() makes an integer of: an integer, a boolean, a
// float (cut towards zero) or a numeric string.
func (c *cursor) coerceInt() int64 {
	switch head := c.head(); {
	case head == codeTrue || head == codeFalse:
		c.b = c.b[1:]
		return int64(head - codeFalse)
	case head == codeFloat32 || head == codeFloat64:
		negative, mantissa, exponent := c.float()
		return c.whole(negative, mantissa, exponent)
	case head >= 0xa0 && head <= 0xbf, head >= codeStr8 && head <= codeStr32:
		return c.numeral(c.text(MaxText))
	case head >= codeBin8 && head <= codeBin32:
		return c.numeral(c.data(MaxText))
	}
	return c.int()
}

// coerceID reads an instance id: 63 bits, coerced as any int payload.
func (c *cursor) coerceID() core.InstanceID {
	v := c.coerceInt()
	if v < 0 {
		c.bad("is a negative instance id")
		return 0
	}
	return core.InstanceID(v)
}

// float reads a float as mantissa * 2^exponent; infinities and NaN have an
// exponent of notFinite, and NaN alone a mantissa.
func (c *cursor) float() (negative bool, mantissa uint64, exponent int) {
	var raw uint64
	var width, bias int
	switch c.head() {
	case codeFloat32:
		b := c.take(5)
		if b == nil {
			return
		}
		raw, width, bias = uint64(binary.BigEndian.Uint32(b[1:])), 23, 127
		negative = raw>>31 == 1
		raw &= 1<<31 - 1
	case codeFloat64:
		b := c.take(9)
		if b == nil {
			return
		}
		raw, width, bias = binary.BigEndian.Uint64(b[1:]), 52, 1023
		negative = raw>>63 == 1
		raw &= 1<<63 - 1
	default:
		c.bad("is not a number")
		return
	}
	biased := int(raw >> width)
	mantissa = raw & (1<<width - 1)
	switch biased {
	case 2*bias + 1:
		return negative, mantissa, notFinite
	case 0:
		biased = 1 // subnormal: no hidden bit
	default:
		mantissa |= 1 << width
	}
	return negative, mantissa, biased - bias - width
}

const notFinite = 1 << 20

// whole cuts a float towards zero.
func (c *cursor) whole(negative bool, mantissa uint64, exponent int) int64 {
	if exponent == notFinite || exponent > 10 { // 53 bits of mantissa and 10 are 63
		c.bad("is a float that no integer of 64 bits holds")
		return 0
	}
	var v uint64
	switch {
	case exponent >= 0:
		if bits.Len64(mantissa)+exponent > 63 {
			c.bad("is a float that no integer of 64 bits holds")
			return 0
		}
		v = mantissa << exponent
	case exponent > -64:
		v = mantissa >> -exponent
	}
	if negative {
		return -int64(v)
	}
	return int64(v)
}

// numeral reads a decimal numeral as int() does: blanks around it, a sign,
// digits that single underscores may part.
func (c *cursor) numeral(s []byte) int64 {
	const why = "is a string that is not a whole number of 64 bits"
	if c.fail != core.NoFailure {
		return 0
	}
	for len(s) > 0 && blank(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && blank(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	negative := false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		s = s[1:]
	}
	var v uint64
	digit := false // the last byte was a digit
	for _, b := range s {
		switch {
		case b >= '0' && b <= '9':
			d := uint64(b - '0')
			if v > (1<<63-1-d)/10 {
				c.bad(why)
				return 0
			}
			v = v*10 + d
			digit = true
		case b == '_' && digit:
			digit = false
		default:
			c.bad(why)
			return 0
		}
	}
	if !digit {
		c.bad(why)
		return 0
	}
	if negative {
		return -int64(v)
	}
	return int64(v)
}

func blank(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }

// truth reads any value as bool() judges it: nothing, zero and empty are
// false. A NaN and an extension are true.
func (c *cursor) truth() bool {
	head := c.head()
	before := c.b
	verdict := true
	switch {
	case head == codeNil, head == codeFalse:
		verdict = false
	case head == codeFloat32, head == codeFloat64:
		_, mantissa, _ := c.float()
		verdict = mantissa != 0 || c.infinite(before)
	case head <= 0x7f, head >= 0xe0, head >= codeUint8 && head <= codeInt64:
		v, _, _ := c.integer()
		verdict = v != 0
	case head == 0xa0, head == 0x90, head == 0x80:
		verdict = false
	case head == codeStr8, head == codeBin8:
		verdict = c.length(1) != 0
	case head == codeStr16, head == codeBin16, head == codeArray16, head == codeMap16:
		verdict = c.length(2) != 0
	case head == codeStr32, head == codeBin32, head == codeArray32, head == codeMap32:
		verdict = c.length(4) != 0
	}
	if c.fail == core.NoFailure {
		c.b = before
		c.skip()
	}
	return verdict && c.fail == core.NoFailure
}

// infinite reports whether the float at the front of b has no mantissa because
// it is infinite and not because it is zero.
func (c *cursor) infinite(b []byte) bool {
	var probe = cursor{b: b}
	_, _, exponent := probe.float()
	return exponent == notFinite
}

// seconds reads a float payload, or an integer in its place, as a duration
// from 0 to MaxTimeout. NaN is no duration.
func (c *cursor) seconds() time.Duration {
	if head := c.head(); head != codeFloat32 && head != codeFloat64 {
		v, negative, ok := c.integer()
		switch {
		case !ok:
			c.bad("is not a number of seconds")
			return 0
		case negative:
			return 0
		case v > uint64(MaxTimeout/time.Second):
			return MaxTimeout
		}
		return time.Duration(v) * time.Second
	}
	negative, mantissa, exponent := c.float()
	switch {
	case exponent == notFinite && mantissa != 0:
		c.bad("is not a number of seconds")
		return 0
	case negative || mantissa == 0 && exponent != notFinite:
		return 0
	case exponent >= 0:
		if exponent > 10 || mantissa<<exponent > uint64(MaxTimeout/time.Second) {
			return MaxTimeout
		}
		return time.Duration(mantissa<<exponent) * time.Second
	}
	// mantissa * 10^9 / 2^-exponent, rounded to the nearest.
	high, low := bits.Mul64(mantissa, uint64(time.Second))
	shift := uint(-exponent)
	if shift > 127 {
		return 0
	}
	half := shift - 1
	if half < 64 {
		var carry uint64
		low, carry = bits.Add64(low, 1<<half, 0)
		high += carry
	} else {
		high += 1 << (half - 64)
	}
	if shift >= 64 {
		low, high = high>>(shift-64), 0
	} else {
		low, high = low>>shift|high<<(64-shift), high>>shift
	}
	if high != 0 || low > uint64(MaxTimeout) {
		return MaxTimeout
	}
	return time.Duration(low)
}

// appendSeconds writes d as a float64 of seconds, correctly rounded: what a
// client computes is a division of a whole number of nanoseconds.
func appendSeconds(b []byte, d time.Duration) []byte {
	b = append(b, codeFloat64)
	if d <= 0 {
		return binary.BigEndian.AppendUint64(b, 0)
	}
	n := uint64(d)
	// q is n/10^9 scaled by 2^shift, so that it has 55 or 56 bits: 53 to keep
	// and enough to round with.
	shift := 85 - bits.Len64(n)
	var high, low uint64
	if shift >= 64 {
		high = n << (shift - 64)
	} else {
		high, low = n>>(64-shift), n<<shift
	}
	q, rest := bits.Div64(high, low, uint64(time.Second))
	length := bits.Len64(q)
	drop := length - 53
	mantissa := q >> drop
	lost := q & (1<<drop - 1)
	half := uint64(1) << (drop - 1)
	if lost > half || lost == half && (rest != 0 || mantissa&1 == 1) {
		mantissa++
	}
	exponent := uint64(length - 1 - shift + 1023)
	return binary.BigEndian.AppendUint64(b, exponent<<52+mantissa-1<<52)
}
