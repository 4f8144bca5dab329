package server

import "vigil/core"

// store is the bookkeeping of the L1 store: which chunk lies in which slot,
// how many bytes are spoken for, who is writing, who is reading, and what was
// used least recently. The bytes themselves are the shell's.
//
// A chunk is reserved, then ready, then dropped. Only what is ready and locked
// by nobody is in the ring of what may be evicted, oldest use first.
type store struct {
	places
	ring   // ready and unlocked, least recently used first
	keys   index
	chunks []chunk
	used   uint64 // bytes of reserved and ready chunks
	budget uint64
	most   int     // chunks
	room   extents // of the shared pool
}

type chunkState uint8

const (
	chunkFree chunkState = iota
	chunkReserved
	chunkReady
)

type chunk struct {
	key         core.ChunkKey
	instance    core.InstanceID // who reserved it
	incarnation core.Incarnation
	bytes       uint64
	offset      uint64 // in the shared pool, where pooled
	readers     uint32
	mark        uint32 // scratch within one step, else 0
	state       chunkState
	pooled      bool // its bytes lie in the shared pool
}

// noSlot marks a lock that a session no longer holds.
const noSlot core.Slot = 1<<32 - 1

func chunkHash(key *core.ChunkKey) uint64 {
	return key.Low() ^ uint64(uint32(key.Worker))*0xd1b54a32d192ed03
}

// find returns the slot of key, reserved or ready, -1 where there is none.
func (s *store) find(key *core.ChunkKey) int32 {
	hash := chunkHash(key)
	for pos := s.keys.first(hash); pos >= 0; pos = s.keys.following(pos, hash) {
		if s.chunks[pos].key == *key {
			return pos
		}
	}
	return -1
}

// ready returns the slot of key where its bytes are complete, as large as a
// reader expects and in the memory that the reader can reach; else -1.
func (s *store) ready(key *core.ChunkKey, bytes uint64, pooled bool) int32 {
	pos := s.find(key)
	if pos < 0 {
		return -1
	}
	if c := &s.chunks[pos]; c.state != chunkReady || c.bytes != bytes || c.pooled != pooled {
		return -1
	}
	return pos
}

// touch makes a chunk the most recently used.
func (s *store) touch(pos int32) {
	if c := &s.chunks[pos]; c.state == chunkReady && c.readers == 0 {
		s.cut(pos)
		s.push(pos)
	}
}

// reserve makes a place for a chunk that is not in the store, evicting what
// nobody reads; false where there is no room.
func (s *store) reserve(out *core.Effects, key *core.ChunkKey, bytes uint64, pooled bool, by *entry) (core.Slot, bool) {
	if bytes > s.budget || pooled && bytes > s.room.size {
		return 0, false // however much made room
	}
	for s.used > s.budget-bytes || s.live() >= s.most {
		if !s.evict(out, false) {
			return 0, false
		}
	}
	var offset uint64
	if pooled {
		at, ok := s.room.take(bytes)
		for !ok {
			if !s.evict(out, true) {
				return 0, false
			}
			at, ok = s.room.take(bytes)
		}
		offset = at
	}
	pos := s.take()
	if int(pos) == len(s.chunks) {
		s.chunks = extended(s.chunks)
	}
	s.chunks[pos] = chunk{
		key: *key, instance: by.instance, incarnation: by.incarnation,
		bytes: bytes, offset: offset, pooled: pooled, state: chunkReserved,
	}
	s.keys.put(chunkHash(key), pos)
	s.used += bytes
	s.note(out, core.ChunkReserved, pos, key.Low())
	return core.Slot(pos), true
}

// evict drops the least recently used chunk that nobody reads; pooled: only
// one of the shared pool helps.
func (s *store) evict(out *core.Effects, pooled bool) bool {
	pos := s.first()
	for pooled && pos >= 0 && !s.chunks[pos].pooled {
		pos = s.after(pos)
	}
	if pos < 0 {
		return false
	}
	s.drop(out, core.Slot(pos))
	return true
}

// finish makes a reserved chunk readable.
func (s *store) finish(out *core.Effects, slot core.Slot) {
	c := &s.chunks[slot]
	c.state = chunkReady
	s.push(int32(slot))
	s.note(out, core.ChunkReady, int32(slot), c.key.Low())
}

// drop forgets a chunk that nobody reads.
func (s *store) drop(out *core.Effects, slot core.Slot) {
	c := &s.chunks[slot]
	ready := c.state == chunkReady
	if ready {
		s.cut(int32(slot))
	}
	if c.pooled {
		s.room.give(c.offset, c.bytes)
	}
	s.keys.drop(int32(slot))
	s.used -= c.bytes
	c.state = chunkFree
	s.give(int32(slot))
	s.note(out, core.ChunkDropped, int32(slot), c.key.Low()).Flag = ready
}

// lock keeps a ready chunk from eviction until it is unlocked.
func (s *store) lock(out *core.Effects, slot core.Slot) {
	c := &s.chunks[slot]
	if c.readers == 0 {
		s.cut(int32(slot))
	}
	c.readers++
	s.note(out, core.LockTaken, int32(slot), uint64(c.readers))
}

// unlock returns one lock.
func (s *store) unlock(out *core.Effects, slot core.Slot) {
	c := &s.chunks[slot]
	c.readers--
	if c.readers == 0 {
		s.push(int32(slot))
	}
	s.note(out, core.LockReturned, int32(slot), uint64(c.readers))
}

// note writes a record about a slot; the instance is the chunk's writer.
func (s *store) note(out *core.Effects, kind core.RecordKind, pos int32, b uint64) *core.Record {
	r := out.Record(kind)
	c := &s.chunks[pos]
	r.Instance, r.Incarnation, r.A, r.B = c.instance, c.incarnation, uint64(pos), b
	return r
}

func (s *store) reset(budget, pool uint64, most int) {
	s.empty()
	s.clear()
	s.keys.reset()
	s.chunks, s.used, s.budget, s.most = s.chunks[:0], 0, budget, most
	s.room.reset(pool)
}
