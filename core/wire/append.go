package wire

import "encoding/binary"

// Why this file: msgpack's primitives in their shortest forms, appended to a
// buffer. The shortest form is what the real clients send, and equality of
// bytes with theirs is part of the contract.

func appendUint(b []byte, v uint64) []byte {
	switch {
	case v <= 0x7f:
		return append(b, byte(v))
	case v <= 0xff:
		return append(b, codeUint8, byte(v))
	case v <= 0xffff:
		return append(b, codeUint16, byte(v>>8), byte(v))
	case v <= 0xffffffff:
		return append(b, codeUint32, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	return binary.BigEndian.AppendUint64(append(b, codeUint64), v)
}

func appendInt(b []byte, v int64) []byte {
	switch {
	case v >= 0:
		return appendUint(b, uint64(v))
	case v >= -32:
		return append(b, byte(v))
	case v >= -1<<7:
		return append(b, codeInt8, byte(v))
	case v >= -1<<15:
		return append(b, codeInt16, byte(v>>8), byte(v))
	case v >= -1<<31:
		return append(b, codeInt32, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	return binary.BigEndian.AppendUint64(append(b, codeInt64), uint64(v))
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, codeTrue)
	}
	return append(b, codeFalse)
}

func appendTextHead(b []byte, n int) []byte {
	switch {
	case n <= 31:
		return append(b, 0xa0|byte(n))
	case n <= 0xff:
		return append(b, codeStr8, byte(n))
	case n <= 0xffff:
		return append(b, codeStr16, byte(n>>8), byte(n))
	}
	return append(b, codeStr32, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func appendText(b, s []byte) []byte { return append(appendTextHead(b, len(s)), s...) }

func appendWord(b []byte, s string) []byte { return append(appendTextHead(b, len(s)), s...) }

func appendData(b, s []byte) []byte {
	switch n := len(s); {
	case n <= 0xff:
		b = append(b, codeBin8, byte(n))
	case n <= 0xffff:
		b = append(b, codeBin16, byte(n>>8), byte(n))
	default:
		b = append(b, codeBin32, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return append(b, s...)
}

func appendArray(b []byte, n int) []byte {
	switch {
	case n <= 15:
		return append(b, 0x90|byte(n))
	case n <= 0xffff:
		return append(b, codeArray16, byte(n>>8), byte(n))
	}
	return append(b, codeArray32, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func appendDict(b []byte, n int) []byte {
	if n <= 15 {
		return append(b, 0x80|byte(n))
	}
	return append(b, codeMap16, byte(n>>8), byte(n))
}

func appendExtHead(b []byte, kind byte, n int) []byte {
	switch {
	case n == 1 || n == 2 || n == 4 || n == 8 || n == 16:
		head := byte(codeFixExt1)
		for ; n > 1; n >>= 1 {
			head++
		}
		return append(b, head, kind)
	case n <= 0xff:
		return append(b, codeExt8, byte(n), kind)
	case n <= 0xffff:
		return append(b, codeExt16, byte(n>>8), byte(n), kind)
	}
	return append(b, codeExt32, byte(n>>24), byte(n>>16), byte(n>>8), byte(n), kind)
}
