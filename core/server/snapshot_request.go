package server

import (
	"errors"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// A request as the core reads it, written down: a letter of a snapshot, and a
// message in a recording. The tokens of a key are not in it, for their hashes
// are, and neither are inline data: so a prompt of 128 k tokens takes 10 kB.

// What of a request follows, beyond what every one has.
const (
	hasName = 1 << iota
	hasKey
	hasBlocks
	hasEvent
	hasRequestID
	hasModel // what both registrations say
	hasExports
	hasNumbers
)

// AppendRequest appends what the core reads of r to b.
func AppendRequest(b []byte, r *wire.Request) []byte {
	w := writer{b}
	w.request(r)
	return w.b
}

// ReadRequest reads what AppendRequest wrote into to, which must be empty;
// nothing of b is kept.
func ReadRequest(b []byte, to *wire.Request) error {
	r := reader{b: b}
	r.request(to)
	if r.bad == "" && len(r.b) > 0 {
		r.bad = "has bytes behind its end"
	}
	if r.bad != "" {
		return errors.New("recorded request " + r.bad)
	}
	return nil
}

func (w *writer) request(r *wire.Request) {
	has := uint64(0)
	set := func(bit uint64, is bool) {
		if is {
			has |= bit
		}
	}
	k := &r.Key
	set(hasName, len(r.Name) > 0)
	set(hasKey, len(k.Model)+len(k.RequestID)+len(k.Chunks) > 0 || k.WorldSize|k.Worker|k.Start|k.End != 0)
	set(hasBlocks, len(r.Blocks)+len(r.BlockEnds) > 0)
	set(hasEvent, len(r.Event) > 0)
	set(hasRequestID, len(r.RequestID) > 0)
	set(hasModel, len(r.Model)+len(r.Engine)+len(r.DType)+len(r.Hints.KVLayout) > 0 ||
		r.WorldSize|r.Hints.NumKVHeads|r.Hints.TokensPerBlock|r.Hints.HeadDim|r.BlockSize|r.NumLayers|r.HiddenDim|r.HeadSize != 0 ||
		r.UseMLA || r.Neox)
	set(hasExports, len(r.Exports)+len(r.Groups) > 0)
	set(hasNumbers, r.TPSize|r.Skip|int64(r.Timeout)|int64(r.Records) != 0 || r.Parcel|r.Before != 0)
	w.uint(uint64(r.Type))
	w.uint(has)
	w.bytes(r.UID)
	w.bytes(r.RawType)
	w.uint(r.UIDNumber)
	w.uint(uint64(r.Failure))
	w.uint(uint64(r.Instance))
	flags := uint64(0)
	if r.NoInstance {
		flags |= 1
	}
	if r.OldNumber {
		flags |= 2
	}
	if r.Legacy {
		flags |= 4
	}
	w.uint(flags)
	if has&hasName != 0 {
		w.bytes(r.Name)
	}
	if has&hasKey != 0 {
		w.bytes(k.Model)
		w.int(k.WorldSize)
		w.int(k.Worker)
		w.int(k.Start)
		w.int(k.End)
		w.bytes(k.RequestID)
		w.uint(uint64(len(k.Chunks)))
		for i := range k.Chunks {
			w.b = append(w.b, k.Chunks[i].Hash[:]...)
			w.int(int64(k.Chunks[i].Worker))
		}
	}
	if has&hasBlocks != 0 {
		w.uint(uint64(len(r.Blocks)))
		for _, n := range r.Blocks {
			w.uint(uint64(n))
		}
		w.uint(uint64(len(r.BlockEnds)))
		for _, n := range r.BlockEnds {
			w.uint(uint64(n))
		}
	}
	if has&hasEvent != 0 {
		w.bytes(r.Event)
	}
	if has&hasRequestID != 0 {
		w.bytes(r.RequestID)
	}
	if has&hasModel != 0 {
		w.bytes(r.Model)
		w.int(r.WorldSize)
		w.bytes(r.Engine)
		w.bytes(r.Hints.KVLayout)
		w.int(r.Hints.NumKVHeads)
		w.int(r.Hints.TokensPerBlock)
		w.int(r.Hints.HeadDim)
		w.int(r.BlockSize)
		w.int(r.NumLayers)
		w.int(r.HiddenDim)
		w.bytes(r.DType)
		w.bool(r.UseMLA)
		w.int(r.HeadSize)
		w.bool(r.Neox)
	}
	if has&hasExports != 0 {
		w.exports(r)
	}
	if has&hasNumbers != 0 {
		w.int(r.TPSize)
		w.int(r.Skip)
		w.int(int64(r.Timeout))
		w.int(int64(r.Records))
		w.uint(r.Parcel)
		w.uint(r.ParcelBytes)
		w.uint(r.Before)
	}
}

func (w *writer) exports(r *wire.Request) {
	w.uint(uint64(len(r.Exports)))
	for i := range r.Exports {
		x := &r.Exports[i]
		w.uint(uint64(x.Kind))
		w.bytes(x.Handle)
		w.bytes(x.Device)
		w.uint(x.Offset)
		w.uint(x.Bytes)
		w.uint(uint64(x.Blocks))
		w.uint(uint64(x.BlockBytes))
		w.bytes(x.DType)
		w.uint(uint64(len(x.Shape)))
		for _, n := range x.Shape {
			w.int(n)
		}
	}
	w.uint(uint64(len(r.Groups)))
	for i := range r.Groups {
		g := &r.Groups[i]
		w.int(g.ID)
		w.int(g.TokensPerBlock)
		w.int(g.SlidingWindow)
		w.int(g.Physical)
		w.uint(uint64(len(g.Layers)))
		for _, n := range g.Layers {
			w.int(n)
		}
	}
}

func (r *reader) request(q *wire.Request) {
	q.Type = wire.Type(r.below(256))
	has := r.below(2 * hasNumbers)
	q.UID, q.RawType = r.own(), r.own()
	q.UIDNumber, q.Failure = r.uint(), core.Failure(r.below(256))
	q.Instance = core.InstanceID(r.uint())
	flags := r.below(8)
	q.NoInstance, q.OldNumber, q.Legacy = flags&1 != 0, flags&2 != 0, flags&4 != 0
	if has&hasName != 0 {
		q.Name = r.own()
	}
	if has&hasKey != 0 {
		k := &q.Key
		k.Model, k.WorldSize, k.Worker = r.own(), r.int(), r.int()
		k.Start, k.End, k.RequestID = r.int(), r.int(), r.own()
		for n := r.size(wire.MaxTokens); n > 0 && r.bad == ""; n-- {
			var c core.ChunkKey
			if len(r.b) < len(c.Hash) {
				r.fail("ends in the middle of a hash")
				return
			}
			r.b = r.b[copy(c.Hash[:], r.b):]
			c.Worker = int32(r.int())
			k.Chunks = append(k.Chunks, c)
		}
	}
	if has&hasBlocks != 0 {
		for n := r.size(wire.MaxBlocks); n > 0; n-- {
			q.Blocks = append(q.Blocks, uint32(r.below(1<<32)))
		}
		for n := r.size(core.MaxGroups); n > 0; n-- {
			q.BlockEnds = append(q.BlockEnds, int(r.below(uint64(len(q.Blocks))+1)))
		}
	}
	if has&hasEvent != 0 {
		q.Event = r.own()
	}
	if has&hasRequestID != 0 {
		q.RequestID = r.own()
	}
	if has&hasModel != 0 {
		q.Model, q.WorldSize, q.Engine = r.own(), r.int(), r.own()
		q.Hints = wire.Hints{KVLayout: r.own(), NumKVHeads: r.int(), TokensPerBlock: r.int(), HeadDim: r.int()}
		q.BlockSize, q.NumLayers, q.HiddenDim = r.int(), r.int(), r.int()
		q.DType, q.UseMLA, q.HeadSize, q.Neox = r.own(), r.bool(), r.int(), r.bool()
	}
	if has&hasExports != 0 {
		r.exports(q)
	}
	if has&hasNumbers != 0 {
		q.TPSize, q.Skip = r.int(), r.int()
		q.Timeout, q.Records = time.Duration(r.int()), int(r.int())
		q.Parcel, q.ParcelBytes, q.Before = r.uint(), r.uint(), r.uint()
	}
}

// own copies a byte string; nil where it is empty.
func (r *reader) own() []byte { return append([]byte(nil), r.bytes()...) }

func (r *reader) exports(q *wire.Request) {
	for n := r.size(core.MaxExports); n > 0 && r.bad == ""; n-- {
		x := core.Export{Kind: core.MemoryKind(r.below(256)), Handle: r.own(), Device: r.own()}
		x.Offset, x.Bytes = r.uint(), r.uint()
		x.Blocks, x.BlockBytes, x.DType = uint32(r.below(1<<32)), uint32(r.below(1<<32)), r.own()
		for m := r.size(wire.MaxDimensions); m > 0; m-- {
			x.Shape = append(x.Shape, r.int())
		}
		q.Exports = append(q.Exports, x)
	}
	for n := r.size(core.MaxGroups); n > 0 && r.bad == ""; n-- {
		g := core.Group{ID: r.int(), TokensPerBlock: r.int(), SlidingWindow: r.int(), Physical: r.int()}
		for m := r.size(wire.MaxLayers); m > 0; m-- {
			g.Layers = append(g.Layers, r.int())
		}
		q.Groups = append(q.Groups, g)
	}
}
