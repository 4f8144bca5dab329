package server

import (
	"slices"

	"vigil/core"
	"vigil/core/wire"
)

// Engine-driven contexts: the worker moves its bytes itself, through slots of
// a shared pool. Context and strategy are a pair in every step (A19), and
// nothing here waits for anything.

// registerEngine is REGISTER_KV_CACHE_ENGINE_DRIVEN_CONTEXT.
func (s *Server) registerEngine(now core.Time, m *message, out *core.Effects) {
	came(out, core.RegisterArrived, core.EngineDriven, m)
	if s.cfg.Protections.RegisterDeadline && now.Sub(m.arrived) > core.DefaultTimeout {
		s.refuse(out, m, core.FailDeadline) // its client has given up (B8)
		return
	}
	id := uint64(m.r.Instance)
	about := describeEngineDriven(m.r, s.cfg.ChunkTokens)
	if pos := s.engines.find(id); pos >= 0 {
		if !s.cfg.Protections.ReplaceOtherMemory || s.engines.entries[pos].about.content == about.content {
			s.refresh(now, core.EngineDriven, &s.engines.entries[pos], m.peer, out)
			s.answerPool(out, m)
			return
		}
		e, half := s.popPair(out, pos, core.RemovedByReplace)
		s.releaseEngine(out, &e, &half)
	}
	if s.engines.live() >= s.most(core.BoundInstances) {
		s.refuse(out, m, core.FailQueueFull)
		return
	}
	e := entry{
		instance: m.r.Instance, incarnation: s.nextIncarnation(),
		about: about, peer: m.peer,
	}
	s.insertPair(out, &e, now)
	s.layouts.acquire(out, core.EngineDriven, &e)
	s.answerPool(out, m)
}

// insertPair adds a context and its strategy in one go.
func (s *Server) insertPair(out *core.Effects, e *entry, now core.Time) {
	pos := s.engines.add(uint64(e.instance))
	s.engines.entries[pos] = *e
	e = &s.engines.entries[pos]
	at := s.strategies.add(uint64(e.instance))
	half := &s.strategies.entries[at]
	half.incarnation, half.writes, half.reads = e.incarnation, half.writes[:0], half.reads[:0]
	note(out, core.ContextInserted, core.EngineDriven, e, 0, 0)
	note(out, core.StrategyAdded, core.EngineDriven, e, 0, 0)
	stamp(out, core.EngineDriven, e, now, core.StampRegister)
}

// popPair removes a context and its strategy in one go and returns both.
// The strategy's slots are valid until the next registration.
func (s *Server) popPair(out *core.Effects, pos int32, cause core.RemovalCause) (entry, strategy) {
	e := s.engines.entries[pos]
	at := s.strategies.find(uint64(e.instance))
	half := s.strategies.entries[at]
	s.engines.remove(pos)
	s.strategies.remove(at)
	s.removed(out, core.EngineDriven, &e, cause)
	note(out, core.StrategyRemoved, core.EngineDriven, &e, 0, 0)
	return e, half
}

// answerPool tells the worker where the shared pool is.
func (s *Server) answerPool(out *core.Effects, m *message) {
	r := s.blank()
	r.Window = s.window()
	if s.cfg.PoolBytes > 0 {
		s.poolName = append(s.poolName[:0], s.cfg.PoolName...)
		r.ShmName, r.Pool = s.poolName, int64(s.cfg.PoolBytes)
	}
	s.answer(out, m)
}

// unregisterEngine is UNREGISTER_KV_CACHE_ENGINE_DRIVEN_CONTEXT.
func (s *Server) unregisterEngine(m *message, out *core.Effects) {
	came(out, core.UnregisterCame, core.EngineDriven, m)
	pos := s.engines.find(uint64(m.r.Instance))
	if pos < 0 {
		s.nothingToDrop(out, core.EngineDriven, m)
		return
	}
	e, half := s.popPair(out, pos, core.RemovedByClient)
	s.releaseEngine(out, &e, &half)
	s.answerNil(out, m)
}

// releaseEngine is the cleanup of a popped pair: pending writes and reads,
// then the layout share. The document finishes the writes, so what a dead
// worker had half written becomes readable (PROTOCOL, section 4.3; B10).
func (s *Server) releaseEngine(out *core.Effects, e *entry, half *strategy) {
	for _, slot := range half.writes {
		if s.cfg.Protections.DropHalfWritten {
			s.store.drop(out, slot)
		} else {
			s.store.finish(out, slot)
		}
	}
	for _, slot := range half.reads {
		s.store.unlock(out, slot)
	}
	s.layouts.release(out, core.EngineDriven, e)
}

// resolve finds the pair of a PREPARE or COMMIT and refreshes it; traffic
// never latches. Both are nil, and the request is ended, where there is none.
func (s *Server) resolve(now core.Time, m *message, out *core.Effects) (*entry, *strategy) {
	pos := s.engines.find(uint64(m.r.Instance))
	if pos < 0 {
		s.refuse(out, m, core.FailNotRegistered)
		return nil, nil
	}
	e := &s.engines.entries[pos]
	s.stampTransfer(out, core.EngineDriven, e, m, now)
	e.peer = m.peer
	return e, &s.strategies.entries[s.strategies.find(uint64(m.r.Instance))]
}

// prepareStore is PREPARE_STORE: it reserves a slot for each chunk that is not
// there, as far as there is room. Without a pool the bytes come inline with
// the commit and nothing is reserved.
func (s *Server) prepareStore(now core.Time, m *message, out *core.Effects) {
	e, half := s.resolve(now, m, out)
	if e == nil {
		return
	}
	r := s.blank()
	if s.cfg.PoolBytes == 0 {
		r.Inline = true
		s.answer(out, m)
		return
	}
	if e.about.chunkBytes == 0 {
		s.refuse(out, m, core.FailBadBlocks)
		return
	}
	chunks := m.r.Key.Chunks
	for i := range chunks {
		if pos := s.store.find(&chunks[i]); pos >= 0 {
			s.store.touch(pos)
			continue
		}
		if len(half.writes) >= s.most(core.BoundSlots) {
			break
		}
		slot, ok := s.store.reserve(out, &chunks[i], e.about.chunkBytes, true, e)
		if !ok {
			break
		}
		half.writes = append(half.writes, slot)
		r.Slots = append(r.Slots, s.poolSlot(e, slot))
		r.Indices = append(r.Indices, int64(i))
	}
	s.answer(out, m)
}

func (s *Server) poolSlot(e *entry, slot core.Slot) wire.PoolSlot {
	c := &s.store.chunks[slot]
	return wire.PoolSlot{Offset: int64(c.offset), Length: int64(c.bytes), Shape: e.about.shape, DType: e.about.dtype}
}

// commitStore is COMMIT_STORE: what this very pair had reserved of the range
// becomes readable. A commit that finds nothing reserved says no; so does one
// with inline bytes where there is a pool, or a shell that keeps none.
func (s *Server) commitStore(now core.Time, m *message, out *core.Effects) {
	e, half := s.resolve(now, m, out)
	if e == nil {
		return
	}
	if m.r.Parcel != 0 {
		ok := s.commitInline(m, e, out)
		s.blank().OK = ok
		s.answer(out, m)
		return
	}
	done := false
	for i := range m.r.Key.Chunks {
		pos := s.store.find(&m.r.Key.Chunks[i])
		if pos < 0 {
			continue
		}
		if c := &s.store.chunks[pos]; c.state == chunkReserved && c.incarnation == e.incarnation {
			s.store.finish(out, core.Slot(pos))
			done = true
		}
	}
	if done {
		left := half.writes[:0]
		for _, slot := range half.writes {
			if s.store.chunks[slot].state == chunkReserved {
				left = append(left, slot)
			}
		}
		half.writes = left
	}
	s.blank().OK = done
	s.answer(out, m)
}

// prepareRetrieve is PREPARE_RETRIEVE: slots of the whole range, locked until
// the commit, or a miss.
func (s *Server) prepareRetrieve(now core.Time, m *message, out *core.Effects) {
	e, half := s.resolve(now, m, out)
	if e == nil {
		return
	}
	if s.cfg.PoolBytes == 0 {
		s.prepareInline(m, out)
		return
	}
	r := s.blank()
	if s.findRange(m, e.about.chunkBytes, true) && len(half.reads)+len(s.scratch) <= s.most(core.BoundSlots) {
		s.lockRange(out, m)
		for _, slot := range s.scratch {
			half.reads = append(half.reads, slot)
			r.Slots = append(r.Slots, s.poolSlot(e, slot))
		}
		r.OK = true
	}
	s.answer(out, m)
}

// commitRetrieve is COMMIT_RETRIEVE: the locks of the range go back, once per
// prepare. Marks on the chunks make it one pass over each list.
func (s *Server) commitRetrieve(now core.Time, m *message, out *core.Effects) {
	e, half := s.resolve(now, m, out)
	if e == nil {
		return
	}
	if s.cfg.PoolBytes == 0 { // nothing was locked: the data went with the reply
		s.blank().OK = true
		s.answer(out, m)
		return
	}
	marked := s.scratch[:0]
	for i := range m.r.Key.Chunks {
		if pos := s.store.find(&m.r.Key.Chunks[i]); pos >= 0 {
			s.store.chunks[pos].mark++
			marked = append(marked, core.Slot(pos))
		}
	}
	done := false
	half.reads = slices.DeleteFunc(half.reads, func(slot core.Slot) bool {
		c := &s.store.chunks[slot]
		if c.mark == 0 {
			return false
		}
		c.mark--
		s.store.unlock(out, slot)
		done = true
		return true
	})
	for _, slot := range marked {
		s.store.chunks[slot].mark = 0
	}
	s.scratch = marked
	s.blank().OK = done
	s.answer(out, m)
}
