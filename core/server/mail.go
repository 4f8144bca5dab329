package server

import (
	"vigil/core"
	"vigil/core/wire"
)

// message is a request on its way to its handler: fresh from the wire (letter
// is -1), or out of a queue (letter is its place there).
type message struct {
	r       *wire.Request
	arrived core.Time
	peer    core.Peer
	letter  int32
}

// mail holds the messages that wait, each with a copy of its request, since
// what the shell decoded lives for one step only. Queues are chains through
// the letters; their buffers are used again.
type mail struct {
	places
	letters []letter
	bytes   uint64 // held by all letters together, at most core.BoundHeldBytes
}

type letter struct {
	r       wire.Request // its slices are this letter's own
	arrived core.Time
	peer    core.Peer
	size    uint64
	next    int32 // letter+1
}

// queue is a chain of letters, first in first out.
type queue struct {
	head, tail int32 // letter+1
	length     int32
}

// keep copies a message into a letter; false where the bounds forbid it.
func (m *mail) keep(in *message, busy int, bounds *core.Bounds) (int32, bool) {
	size := sizeOf(in.r)
	if uint64(m.live()+busy) >= bounds[core.BoundJobs] || m.bytes+size > bounds[core.BoundHeldBytes] {
		return -1, false
	}
	pos := m.take()
	if int(pos) == len(m.letters) {
		m.letters = extended(m.letters)
	}
	l := &m.letters[pos]
	l.arrived, l.peer, l.size, l.next = in.arrived, in.peer, size, 0
	copyRequest(&l.r, in.r)
	m.bytes += size
	return pos, true
}

// discard ends a letter.
func (m *mail) discard(pos int32) {
	l := &m.letters[pos]
	m.bytes -= l.size
	if l.size > keptBuffer {
		l.r = wire.Request{}
	}
	m.give(pos)
}

// open returns the message of a letter.
func (m *mail) open(pos int32) message {
	l := &m.letters[pos]
	return message{&l.r, l.arrived, l.peer, pos}
}

func (q *queue) push(m *mail, pos int32) {
	m.letters[pos].next = 0
	if q.tail != 0 {
		m.letters[q.tail-1].next = pos + 1
	} else {
		q.head = pos + 1
	}
	q.tail = pos + 1
	q.length++
}

// pop returns the first letter, -1 where the queue is empty.
func (q *queue) pop(m *mail) int32 {
	if q.head == 0 {
		return -1
	}
	pos := q.head - 1
	q.head = m.letters[pos].next
	if q.head == 0 {
		q.tail = 0
	}
	q.length--
	return pos
}

func (m *mail) reset() {
	m.empty()
	m.letters, m.bytes = m.letters[:0], 0
}

// sizeOf is about what a copy of the request takes.
func sizeOf(r *wire.Request) uint64 {
	n := r.ParcelBytes
	for _, size := range [...]int{
		len(r.UID), len(r.RawType), len(r.Event), len(r.RequestID), len(r.Key.Model), len(r.Key.RequestID),
		len(r.Model), len(r.Engine), len(r.DType), 20 * len(r.Key.Chunks), 4 * len(r.Blocks), 8 * len(r.BlockEnds),
	} {
		n += uint64(size)
	}
	for i := range r.Exports {
		x := &r.Exports[i]
		for _, size := range [...]int{128, len(x.Handle), len(x.Device), len(x.DType), 8 * len(x.Shape)} {
			n += uint64(size)
		}
	}
	for i := range r.Groups {
		n += 64
		n += 8 * uint64(len(r.Groups[i].Layers))
	}
	return n
}

// copyRequest copies what a handler reads of a request into to's own buffers.
// Tokens and salt are in the chunks' hashes already, inline data are the
// shell's to keep, and an operation's name has become its type.
func copyRequest(to, from *wire.Request) {
	to.UID = append(to.UID[:0], from.UID...)
	to.RawType = append(to.RawType[:0], from.RawType...)
	to.UIDNumber, to.Type, to.Failure = from.UIDNumber, from.Type, from.Failure
	to.Instance, to.NoInstance, to.OldNumber = from.Instance, from.NoInstance, from.OldNumber
	to.TPSize, to.Skip, to.Timeout, to.Records = from.TPSize, from.Skip, from.Timeout, from.Records
	to.Parcel, to.ParcelBytes, to.Before = from.Parcel, from.ParcelBytes, from.Before

	k, f := &to.Key, &from.Key
	k.Model = append(k.Model[:0], f.Model...)
	k.WorldSize, k.Worker, k.Start, k.End = f.WorldSize, f.Worker, f.Start, f.End
	k.RequestID = append(k.RequestID[:0], f.RequestID...)
	k.Chunks = append(k.Chunks[:0], f.Chunks...)
	to.Blocks = append(to.Blocks[:0], from.Blocks...)
	to.BlockEnds = append(to.BlockEnds[:0], from.BlockEnds...)
	to.Event = append(to.Event[:0], from.Event...)
	to.RequestID = append(to.RequestID[:0], from.RequestID...)

	to.Model = append(to.Model[:0], from.Model...)
	to.WorldSize = from.WorldSize
	to.Engine = append(to.Engine[:0], from.Engine...)
	to.Hints.KVLayout = append(to.Hints.KVLayout[:0], from.Hints.KVLayout...)
	to.Hints.NumKVHeads, to.Hints.TokensPerBlock, to.Hints.HeadDim = from.Hints.NumKVHeads, from.Hints.TokensPerBlock, from.Hints.HeadDim
	to.BlockSize, to.NumLayers, to.HiddenDim = from.BlockSize, from.NumLayers, from.HiddenDim
	to.DType = append(to.DType[:0], from.DType...)
	to.UseMLA, to.HeadSize, to.Neox = from.UseMLA, from.HeadSize, from.Neox

	to.Exports = to.Exports[:0]
	for i := range from.Exports {
		to.Exports = extended(to.Exports)
		x, y := &to.Exports[i], &from.Exports[i]
		handle, device, dtype, shape := x.Handle[:0], x.Device[:0], x.DType[:0], x.Shape[:0]
		*x = *y
		x.Handle, x.Device = append(handle, y.Handle...), append(device, y.Device...)
		x.DType, x.Shape = append(dtype, y.DType...), append(shape, y.Shape...)
	}
	to.Groups = to.Groups[:0]
	for i := range from.Groups {
		to.Groups = extended(to.Groups)
		layers := to.Groups[i].Layers[:0]
		to.Groups[i] = from.Groups[i]
		to.Groups[i].Layers = append(layers, from.Groups[i].Layers...)
	}
}
