package wire

import (
	"vigil/core"
)

// Why this file: a reply says what it answers by echoing the request's first
// two frames, so its type alone tells how its one result frame is read. There
// is no error form on this wire; refusal.go has what stands in for it.

// Reset empties r and keeps its buffers.
func (r *Reply) Reset() {
	*r = Reply{
		Slots: r.Slots[:0], Indices: r.Indices[:0],
		ints: r.ints[:0], indices: r.indices[:0], slots: r.slots[:0],
	}
}

// EncodeReply appends the frames of a reply to a request of type t whose first
// two frames were uid and rawType. There is no result frame where the result
// of t is None, where reply.Nil is set, and where t is no request of ours.
func EncodeReply(f *core.Frames, uid, rawType []byte, t Type, reply *Reply) {
	f.Append(uid)
	f.Append(rawType)
	appendResult(f, t, reply)
	if reply.Window > 0 && registers(t) {
		appendWindow(f, reply.Window, f.Len() == firstPayload)
	}
}

func appendResult(f *core.Frames, t Type, reply *Reply) {
	if reply.Nil {
		return
	}
	b := f.Bytes
	switch entryOf(t).result {
	case resultBool:
		if t == Ping && reply.OK {
			b = reply.Ping.append(b)
			break
		}
		b = appendBool(b, reply.OK)
	case resultStored:
		b = append(b, 0x92)
		b = appendData(b, reply.Data)
		b = appendBool(b, reply.OK)
	case resultMaybe, resultInt:
		b = appendInt(b, reply.Int)
	case resultText:
		b = appendText(b, reply.Text)
	case resultList:
		b = append(b, emptyArray...)
	case resultInts:
		b = appendInts(b, reply.Indices)
	case resultContext:
		b = append(b, 0x82)
		b = append(b, "\xa8shm_name"...)
		b = appendText(b, reply.ShmName)
		b = append(b, "\xa9pool_size"...)
		b = appendInt(b, reply.Pool)
	case resultPrepareStore:
		b = append(b, 0x81)
		b = append(b, "\xa7context"...)
		if reply.Inline {
			b = append(b, 0x80)
			break
		}
		b = append(b, 0x82)
		b = appendSlots(b, reply.Slots)
		b = append(b, "\xadchunk_indices"...)
		b = appendInts(b, reply.Indices)
	case resultPrepareRetrieve:
		b = append(b, 0x83)
		b = append(b, "\xa7success"...)
		b = appendBool(b, reply.OK)
		b = append(b, "\xa4data"...)
		b = appendData(b, reply.Data)
		b = append(b, "\xa7context"...)
		if len(reply.Slots) == 0 {
			b = append(b, 0x80)
			break
		}
		b = append(b, 0x81)
		b = appendSlots(b, reply.Slots)
	default:
		return
	}
	f.Bytes = b
	f.EndPart()
}

func appendSlots(b []byte, slots []PoolSlot) []byte {
	b = append(b, "\xa5slots"...)
	b = appendArray(b, len(slots))
	for i := range slots {
		s := &slots[i]
		b = append(b, 0x84)
		b = append(b, "\xa6offset"...)
		b = appendInt(b, s.Offset)
		b = append(b, "\xa6length"...)
		b = appendInt(b, s.Length)
		b = append(b, "\xa5shape"...)
		b = appendInts(b, s.Shape)
		b = append(b, "\xa5dtype"...)
		b = appendText(b, s.DType)
	}
	return b
}

// DecodeReply reads one message as a worker sees it into r. Frames past the
// result are ignored, but for the reason of a refusal and the window behind a
// register. A failure is one of FailShortMessage, FailTooLarge,
// FailUnknownType and FailUndecodable; UIDNumber is set where it was read.
func DecodeReply(f *core.Frames, r *Reply) core.Failure {
	r.Reset()
	if f.Len() < firstPayload {
		return core.FailShortMessage
	}
	uid, rawType := f.Part(0), f.Part(1)
	if len(f.Bytes) > MaxReplyBytes || len(uid) > MaxUIDBytes || len(rawType) > MaxTypeBytes {
		return core.FailTooLarge
	}
	c := cursor{b: uid}
	r.UIDNumber = c.natural()
	if c.end(); c.fail != core.NoFailure {
		return c.fail
	}
	c = cursor{b: rawType}
	number, negative, ok := c.integer()
	switch {
	case !ok && c.fail == core.NoFailure:
		r.Name = c.text(MaxNameBytes)
		r.Type = named(r.Name)
	case !negative:
		r.Type = replied(number)
	}
	if c.end(); c.fail != core.NoFailure || entryOf(r.Type).result == resultUnknown && r.Type != Named {
		return core.FailUnknownType
	}
	if f.Len() == firstPayload {
		r.Nil = true
		return core.NoFailure
	}
	if f.Len() > refusalFrame {
		r.Refusal = refusalIn(f.Part(refusalFrame))
		if registers(r.Type) {
			r.Window = windowIn(f.Part(refusalFrame))
		}
	}
	c = cursor{b: f.Part(firstPayload)}
	if r.Type == Named {
		r.Raw = c.b
		return core.NoFailure
	}
	form := entryOf(r.Type).result
	if form == resultBool {
		if r.Type == Ping {
			r.Ping.read(c)
		}
		r.OK = c.truth()
	} else if c.head() == codeNil {
		c.isNil()
		r.Nil = true
	} else {
		r.result(&c, form)
	}
	c.end()
	return c.fail
}

func (r *Reply) result(c *cursor, form result) {
	switch form {
	case resultNone:
		c.bad("is a result where none is expected")
	case resultStored:
		if c.array(MaxFields) != 2 {
			c.bad("is not a pair")
		}
		r.Data = c.data(MaxReplyBytes)
		r.OK = c.bool()
	case resultMaybe:
		r.Int = c.int()
	case resultInt:
		r.Int = c.coerceInt()
	case resultText:
		r.Text = c.text(MaxText)
	case resultList:
		for n := c.array(MaxFields); n > 0 && c.fail == core.NoFailure; n-- {
			c.text(MaxText)
		}
	case resultInts:
		r.indices = c.ints(r.indices, MaxSettled)
		r.Indices = r.indices
	case resultContext:
		r.context(c)
	case resultPrepareStore, resultPrepareRetrieve:
		r.prepared(c, form == resultPrepareRetrieve)
	}
}
