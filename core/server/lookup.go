package server

import (
	"vigil/core"
	"vigil/core/wire"
)

// LOOKUP and its sessions. A look-up counts how much of a prompt the store
// has, keeps that from eviction by read locks, and remembers the answer under
// the request's id until the session ends.
type session struct {
	id    []byte
	start int64       // first token of the look-up's range
	hits  int64       // whole chunks found from there on, for every rank
	ranks int64       // of the look-up
	slots []core.Slot // hits times ranks, rank within chunk; noSlot once returned or taken over
	// inline: the hits are one piece of inline data for each rank, and slots has
	// one for each rank.
	inline bool
}

func requestHash(id []byte) uint64 {
	var d core.Digest
	d.Bytes(id)
	return uint64(d)
}

// findSession returns the position of a request's session, -1 where none is.
func (s *Server) findSession(id []byte) int32 {
	hash := requestHash(id)
	for pos := s.sessions.find(hash); pos >= 0; pos = s.sessions.ids.following(pos, hash) {
		if string(s.sessions.entries[pos].id) == string(id) {
			return pos
		}
	}
	return -1
}

// lookup is LOOKUP. A pair of model and world size that nobody registered gets
// a session with no hits, so that the client's next question has an answer
// (PROTOCOL, section 4.6).
func (s *Server) lookup(m *message, out *core.Effects) {
	k := &m.r.Key
	ranks := max(m.r.TPSize, 1)
	if ranks > maxTP {
		s.refuse(out, m, core.FailTooLarge)
		return
	}
	if old := s.findSession(k.RequestID); old >= 0 {
		s.closeSession(out, old)
	}
	for s.sessions.live() >= s.most(core.BoundSessions) {
		s.closeSession(out, s.sessions.first())
	}
	pos := s.sessions.add(requestHash(k.RequestID))
	e := &s.sessions.entries[pos]
	e.id = append(e.id[:0], k.RequestID...)
	e.start, e.hits, e.ranks, e.slots, e.inline = k.Start, 0, ranks, e.slots[:0], false
	if s.layouts.find(k.Model, k.WorldSize) >= 0 {
		for i := range k.Chunks {
			if !s.lockForAll(out, e, k.Chunks[i]) {
				break
			}
			e.hits++
		}
		s.lookInline(out, e, k)
	}
	s.wake(out, pos)
	s.answerNil(out, m)
}

// lockForAll locks one chunk for every rank, or for none.
func (s *Server) lockForAll(out *core.Effects, e *session, key core.ChunkKey) bool {
	whole := len(e.slots)
	for rank := range e.ranks {
		key.Worker = int32(rank)
		pos := s.store.find(&key)
		if pos < 0 || s.store.chunks[pos].state != chunkReady || s.locks+len(e.slots)-whole >= s.most(core.BoundLocks) {
			e.slots = e.slots[:whole]
			return false
		}
		e.slots = append(e.slots, core.Slot(pos))
	}
	for _, slot := range e.slots[whole:] {
		s.store.lock(out, slot)
		s.locks++
	}
	return true
}

// takeOver gives the lock that a session holds on chunk i of a range to the
// request that reads it; false where the session holds none there.
func (s *Server) takeOver(pos int32, k *wire.Key, i int, slot core.Slot) bool {
	e := &s.sessions.entries[pos]
	at := (k.Start-e.start)/int64(s.cfg.ChunkTokens) + int64(i)
	rank := max(k.Worker, 0)
	if e.inline || at < 0 || at >= e.hits || rank >= e.ranks || e.slots[at*e.ranks+rank] != slot {
		return false
	}
	e.slots[at*e.ranks+rank] = noSlot
	s.locks--
	return true
}

// returnLock returns one of a session's locks, once.
func (s *Server) returnLock(out *core.Effects, slot *core.Slot) {
	if *slot != noSlot {
		s.store.unlock(out, *slot)
		s.locks--
		*slot = noSlot
	}
}

func (s *Server) closeSession(out *core.Effects, pos int32) {
	e := &s.sessions.entries[pos]
	for i := range e.slots {
		s.returnLock(out, &e.slots[i])
	}
	if 4*cap(e.slots) > keptBuffer {
		e.slots = nil
	}
	s.sessions.remove(pos)
}

// queryPrefetch is QUERY_PREFETCH_STATUS and QUERY_PREFETCH_LOOKUP_HITS: the
// chunks found, or nil while there is no session.
func (s *Server) queryPrefetch(m *message, out *core.Effects) {
	s.fillHits(s.findSession(m.r.RequestID))
	s.answer(out, m)
}

func (s *Server) fillHits(pos int32) {
	r := s.blank()
	if pos < 0 {
		r.Nil = true
		return
	}
	r.Int = s.sessions.entries[pos].hits
}

// waitPrefetch is WAIT_PREFETCH_STATUS. It holds its slot of the NORMAL pool
// until there is a session or its time is up, and so it is what starves pings
// (A14, B11). True where the slot is held.
func (s *Server) waitPrefetch(now core.Time, m *message, out *core.Effects) bool {
	if pos := s.findSession(m.r.RequestID); pos >= 0 {
		s.fillHits(pos)
		s.answer(out, m)
		return false
	}
	pos, j := s.startJob(m, jobWaiting)
	j.request = append(j.request, m.r.RequestID...)
	j.deadline = now.Add(m.r.Timeout)
	s.jobs.waiting.push(pos)
	out.Arm(core.TimerKey{Kind: core.TimerJob, Slot: uint32(pos)}, j.deadline)
	return true
}

// wake ends the waits for a session that has appeared.
func (s *Server) wake(out *core.Effects, session int32) {
	id := s.sessions.entries[session].id
	for pos := s.jobs.waiting.first(); pos >= 0; {
		next := s.jobs.waiting.after(pos)
		if string(s.jobs.jobs[pos].request) == string(id) {
			out.Disarm(core.TimerKey{Kind: core.TimerJob, Slot: uint32(pos)})
			s.endWait(out, pos, session)
		}
		pos = next
	}
}

// waitedEnough ends a wait whose time is up: nil.
func (s *Server) waitedEnough(slot uint32, out *core.Effects) {
	if uint64(slot) < uint64(len(s.jobs.jobs)) && s.jobs.jobs[slot].state == jobWaiting {
		s.endWait(out, int32(slot), -1)
	}
}

func (s *Server) endWait(out *core.Effects, pos, session int32) {
	s.fillHits(session)
	s.answerJob(out, &s.jobs.jobs[pos])
	s.jobs.waiting.cut(pos)
	s.endJob(pos)
	s.normalBusy--
}

// freeLocks is FREE_LOOKUP_LOCKS: the locks that the request's session holds
// on the chunks of a range, for the ranks that are named.
func (s *Server) freeLocks(m *message, out *core.Effects) {
	k := &m.r.Key
	if pos := s.findSession(k.RequestID); pos >= 0 {
		e := &s.sessions.entries[pos]
		shift := (e.start - k.Start) / int64(s.cfg.ChunkTokens)
		for i := range e.slots {
			at, rank := int64(i)/e.ranks+shift, int64(i)%e.ranks
			if e.inline { // on the whole: it goes back with its last chunk's
				at += e.hits - 1
			}
			if slot := e.slots[i]; slot != noSlot && at >= 0 && at < int64(len(k.Chunks)) && rank < max(m.r.TPSize, 1) {
				key := k.Chunks[at]
				if e.inline {
					key = inlineKey(key, e.start)
				}
				if s.store.chunks[slot].key.Hash == key.Hash {
					s.returnLock(out, &e.slots[i])
				}
			}
		}
	}
	s.answerNil(out, m)
}

// endSession is END_SESSION: whatever the session still locks goes back.
func (s *Server) endSession(m *message, out *core.Effects) {
	if pos := s.findSession(m.r.RequestID); pos >= 0 {
		s.closeSession(out, pos)
	}
	s.answerNil(out, m)
}

// clearStore is CLEAR: everything that nobody reads or writes.
func (s *Server) clearStore(m *message, out *core.Effects) {
	for s.store.evict(out, false) {
	}
	s.answerNil(out, m)
}
