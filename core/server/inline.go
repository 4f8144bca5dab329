package server

import (
	"encoding/binary"

	"vigil/core"
	"vigil/core/wire"
)

// Inline data: where there is no shared pool, an engine-driven worker sends its
// bytes with COMMIT_STORE and gets them back with PREPARE_RETRIEVE, in a form
// that only it can read. They cannot be cut into chunks or put together, so
// what was stored for a range is delivered for that very range, and any other
// range is a miss.
//
// In the store such data are one entry under a key of its own, whole from the
// step that accepts it. Its worker is below zero, so it is neither a server-driven chunk's key nor a pooled one's,
// and the three never meet.

// inlineKey is the key of the data of a range: that of its last chunk, in which
// the whole prefix is, with the range's start.
func inlineKey(last core.ChunkKey, start int64) core.ChunkKey {
	last.Worker = ^last.Worker
	half := last.Hash[8:]
	binary.LittleEndian.PutUint64(half, binary.LittleEndian.Uint64(half)^(uint64(start)+1)*0x9e3779b97f4a7c15)
	return last
}

// inlineRange is the key of a request's range; false where that is not made of
// whole chunks.
func (s *Server) inlineRange(k *wire.Key) (core.ChunkKey, bool) {
	n := len(k.Chunks)
	if n == 0 || k.End-k.Start != int64(n)*int64(s.cfg.ChunkTokens) {
		return core.ChunkKey{}, false
	}
	return inlineKey(k.Chunks[n-1], k.Start), true
}

// lookInline makes a look-up find the longest inline data that begin where it
// does, if they are longer than the chunks that it found: what it promises can
// be retrieved as one, and is kept from eviction until the session ends.
func (s *Server) lookInline(out *core.Effects, e *session, k *wire.Key) {
	if s.cfg.PoolBytes > 0 {
		return
	}
	for n := len(k.Chunks); int64(n) > e.hits; n-- {
		if !s.findInline(e, k.Chunks[n-1]) {
			continue
		}
		for i := range e.slots {
			s.returnLock(out, &e.slots[i])
		}
		e.hits, e.inline, e.slots = int64(n), true, append(e.slots[:0], s.scratch...)
		for _, slot := range e.slots {
			s.store.lock(out, slot)
			s.locks++
		}
	}
}

// findInline puts the data of every rank that end with a chunk into scratch.
func (s *Server) findInline(e *session, last core.ChunkKey) bool {
	s.scratch = s.scratch[:0]
	for rank := range e.ranks {
		last.Worker = int32(rank)
		key := inlineKey(last, e.start)
		pos := s.store.find(&key)
		if pos < 0 || s.locks+len(s.scratch) >= s.most(core.BoundLocks) {
			return false
		}
		s.scratch = append(s.scratch, core.Slot(pos))
	}
	return true
}

// commitInline is COMMIT_STORE with data.
func (s *Server) commitInline(m *message, e *entry, out *core.Effects) bool {
	key, ok := s.inlineRange(&m.r.Key)
	if !ok {
		out.DropInline(m.r.Parcel)
		return false
	}
	if pos := s.store.find(&key); pos >= 0 { // it is there already
		s.store.touch(pos)
		out.DropInline(m.r.Parcel)
	} else {
		slot, ok := s.store.reserve(out, &key, m.r.ParcelBytes, false, e)
		if !ok {
			out.DropInline(m.r.Parcel)
			return false
		}
		out.KeepInline(m.r.Parcel, slot)
		s.store.finish(out, slot)
	}
	return true
}

// prepareInline is PREPARE_RETRIEVE without a pool.
func (s *Server) prepareInline(m *message, out *core.Effects) {
	r := s.blank()
	key, ok := s.inlineRange(&m.r.Key)
	pos := int32(-1)
	if ok {
		pos = s.store.find(&key)
	}
	if pos < 0 {
		s.answer(out, m)
		return
	}
	s.store.touch(pos)
	r.OK = true
	wire.EncodeReply(out.SendFilled(m.peer, core.Slot(pos)), m.r.UID, m.r.RawType, m.r.Type, r)
}
