package wire

import (
	"math/bits"

	"vigil/core"
)

// Why this file: exported memory on the wire. Extension 1 is what the real
// system's clients send, a Python pickle, and goes to the restricted reader of
// pickle.go. Extension 2 is our own workers' form: a plain map.

const (
	extPickle = 1
	extExport = 2
)

func (p *payloads) exports() {
	c := p.next()
	buf := p.buf
	n := c.array(core.MaxExports)
	for ; n > 0 && c.fail == core.NoFailure; n-- {
		kind, body := c.extension()
		if c.fail != core.NoFailure {
			break
		}
		in := cursor{b: body}
		var e core.Export
		switch kind {
		case extPickle:
			in.pickled(&e, &buf.ints)
		case extExport:
			in.export(&e, &buf.ints)
			in.end()
		default:
			in.bad("is an extension of an unknown type")
		}
		if in.fail != core.NoFailure {
			c.stop(in.fail, in.why)
			break
		}
		buf.exports = append(buf.exports, e)
	}
	p.r.Exports = buf.exports
	p.done(&c)
}

// export reads our own form. shapes is the backing of all shapes of a message.
func (c *cursor) export(e *core.Export, shapes *[]int64) {
	var kind []byte
	var blocks, blockBytes uint64
	for n := c.dict(); n > 0 && c.fail == core.NoFailure; n-- {
		switch string(c.text(MaxText)) {
		case "kind":
			kind = c.text(MaxWord)
		case "handle":
			e.Handle = c.data(MaxHandle)
		case "device":
			e.Device = c.text(MaxWord)
		case "offset":
			e.Offset = c.natural()
		case "bytes":
			e.Bytes = c.natural()
		case "shape":
			at := len(*shapes)
			*shapes = c.ints(*shapes, MaxDimensions)
			e.Shape = (*shapes)[at:len(*shapes):len(*shapes)]
		case "dtype":
			e.DType = c.text(MaxWord)
		case "blocks":
			blocks = c.natural()
		case "block_bytes":
			blockBytes = c.natural()
		default:
			c.skip()
		}
	}
	switch string(kind) {
	case "hostshm":
		e.Kind = core.HostSHM
		if !segmentName(e.Handle) {
			c.bad("is an export whose segment name is empty or has / or NUL within")
		}
	case "cuda":
		e.Kind = core.CUDA
		if len(e.Handle) == 0 {
			c.bad("is an export without a handle")
		}
	default:
		c.bad("is an export of an unknown kind of memory")
	}
	if blocks > 1<<32-1 || blockBytes > 1<<32-1 {
		c.large("is an export with too many or too large blocks")
	}
	e.Blocks, e.BlockBytes = uint32(blocks), uint32(blockBytes)
	if high, low := bits.Mul64(blocks, blockBytes); high != 0 || low > e.Bytes {
		c.bad("is an export whose blocks do not fit its bytes")
	}
	for _, d := range e.Shape {
		if d < 0 {
			c.bad("is an export with a negative dimension")
		}
	}
	if e.Offset+e.Bytes > 1<<63-1 {
		c.bad("is an export whose end does not fit 63 bits")
	}
}

// segmentName reports whether s can name a POSIX shared memory segment and
// nothing outside the place where segments are.
func segmentName(s []byte) bool {
	if len(s) > 0 && s[0] == '/' {
		s = s[1:]
	}
	if len(s) == 0 || string(s) == "." || string(s) == ".." {
		return false
	}
	for _, b := range s {
		if b == '/' || b == 0 {
			return false
		}
	}
	return true
}

// appendExport writes our own form as an extension. The body is written first
// and its head put before it, since the head says how long it is.
func appendExport(b []byte, e *core.Export) []byte {
	at := len(b)
	b = append(b, 0x89)
	b = appendWord(b, "kind")
	b = appendWord(b, e.Kind.String())
	b = appendWord(b, "handle")
	b = appendData(b, e.Handle)
	b = appendWord(b, "device")
	b = appendText(b, e.Device)
	b = appendWord(b, "offset")
	b = appendUint(b, e.Offset)
	b = appendWord(b, "bytes")
	b = appendUint(b, e.Bytes)
	b = appendWord(b, "shape")
	b = appendInts(b, e.Shape)
	b = appendWord(b, "dtype")
	b = appendText(b, e.DType)
	b = appendWord(b, "blocks")
	b = appendUint(b, uint64(e.Blocks))
	b = appendWord(b, "block_bytes")
	b = appendUint(b, uint64(e.BlockBytes))
	var room [6]byte
	head := appendExtHead(room[:0], extExport, len(b)-at)
	n := len(b) - at
	b = append(b, head...)
	copy(b[at+len(head):], b[at:at+n])
	copy(b[at:], head)
	return b
}
