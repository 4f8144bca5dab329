package server

import "vigil/core"

// STORE and RETRIEVE: the server copies whole chunks between a worker's memory
// and the store while the lane is held. The entry is refreshed at the start
// only, and the job keeps the mapping's number, not the entry: a reaper may
// close the mapping under it, which is the document's hole (B6).

// getAndTouch finds the context of a transfer and refreshes it. Traffic never
// latches (design document, section 5.1; A4). nil, and the request is ended,
// where there is no context or the blocks do not fit it.
func (s *Server) getAndTouch(now core.Time, m *message, out *core.Effects) *entry {
	pos := s.contexts.find(uint64(m.r.Instance))
	if pos < 0 {
		s.refuse(out, m, core.FailNotRegistered)
		return nil
	}
	e := &s.contexts.entries[pos]
	s.stampTransfer(out, core.ServerDriven, e, m, now)
	e.peer = m.peer
	if m.r.UIDNumber < e.fence || m.arrived < e.came { // both are kept with keep-blocks only
		s.refuse(out, m, core.FailStale) // given up, or meant for an earlier context (B21)
		return nil
	}
	if !fits(e.about, m) {
		s.refuse(out, m, core.FailBadBlocks)
		return nil
	}
	return e
}

// fits reports whether a request's blocks cover its chunks and lie within the
// memory: per group the blocks of all whole chunks, and at most those of a
// last partial one beside them. The decoder has seen that the range is one and
// that the groups' blocks follow one another.
func fits(a *registration, m *message) bool {
	k := &m.r.Key
	tokens := k.End - k.Start
	if a.chunkBytes == 0 || len(m.r.BlockEnds) != len(a.groups) {
		return false
	}
	first := 0
	for g := range a.groups {
		geo, end := &a.groups[g], m.r.BlockEnds[g]
		have, size := int64(end-first), int64(geo.tokens)
		if have < int64(len(k.Chunks))*int64(geo.blocks) || have > (tokens+size-1)/size {
			return false
		}
		for _, b := range m.r.Blocks[first:end] {
			if b >= geo.limit {
				return false
			}
		}
		first = end
	}
	return true
}

// beginTransfer makes the job of a transfer.
func (s *Server) beginTransfer(now core.Time, m *message, e *entry, at int32, store bool, out *core.Effects) (int32, *job) {
	pos, j := s.startJob(m, jobCopying)
	j.event = append(j.event[:0], m.r.Event...)
	j.incarnation, j.mapping, j.lane, j.store, j.began = e.incarnation, e.mapping, at, store, now
	j.chunks = int32(len(m.r.Key.Chunks))
	s.noteJob(out, core.TransferBegan, j, j.number, uint64(j.chunks))
	return pos, j
}

func (s *Server) noteJob(out *core.Effects, kind core.RecordKind, j *job, a, b uint64) *core.Record {
	r := out.Record(kind)
	r.Context, r.Instance, r.Incarnation, r.Flag = core.ServerDriven, j.instance, j.incarnation, j.store
	r.A, r.B = a, b
	return r
}

// endTransfer ends a transfer of which moved chunks were kept or delivered.
func (s *Server) endTransfer(out *core.Effects, pos int32, ok bool, moved int, why core.Failure) {
	j := &s.jobs.jobs[pos]
	s.noteJob(out, core.TransferEnded, j, j.number, uint64(moved)).Failure = why
	r := s.blank()
	r.OK, r.Data = ok, j.event
	s.answerJob(out, j)
	s.endJob(pos)
}

// storeChunks is STORE: it reserves what is missing, as far as there is room,
// and copies that. True where the lane is held.
func (s *Server) storeChunks(now core.Time, m *message, at int32, out *core.Effects) bool {
	e := s.getAndTouch(now, m, out)
	if e == nil {
		return false
	}
	pos, j := s.beginTransfer(now, m, e, at, true, out)
	chunks := m.r.Key.Chunks
	s.picked = s.picked[:0]
	for i := range chunks {
		if had := s.store.find(&chunks[i]); had >= 0 { // ready, or being written by somebody
			s.store.touch(had) // or making room for its successors could evict it
		} else {
			s.picked = append(s.picked, int32(i))
		}
	}
	missing := len(s.picked) > 0 // each once, since a chunk's key holds all before it
	for _, i := range s.picked {
		slot, ok := s.store.reserve(out, &chunks[i], e.about.chunkBytes, false, e)
		if !ok {
			break
		}
		j.slots = append(j.slots, slot)
	}
	s.picked = s.picked[:len(j.slots)]
	if len(j.slots) == 0 {
		why := core.NoFailure
		if missing {
			why = core.FailNoSpace
		}
		s.endTransfer(out, pos, !missing, 0, why)
		return false
	}
	s.beginCopy(m, pos, core.CopyOut, e.about, out)
	return true
}

// beginCopy asks for the job's slots to be copied; picked says which of the
// range's chunks they are.
func (s *Server) beginCopy(m *message, pos int32, way core.Direction, a *registration, out *core.Effects) {
	j := &s.jobs.jobs[pos]
	j.op = s.opOf(pos)
	s.noteJob(out, core.CopyBegan, j, uint64(j.mapping), uint64(j.op))
	out.Copy(core.CopyOrder{
		Op: j.op, Mapping: j.mapping, Owner: j.instance, Incarnation: j.incarnation, Direction: way,
	})
	for n, i := range s.picked {
		first := 0
		for g := range a.groups {
			geo := &a.groups[g]
			from := first + int(i)*int(geo.blocks)
			skip := min(max(m.r.Skip-int64(i)*int64(s.cfg.ChunkTokens), 0), int64(s.cfg.ChunkTokens)) // 0 for a store
			out.CopyChunk(j.slots[n], uint16(g), uint32(skip)/geo.tokens, m.r.Blocks[from:from+int(geo.blocks)])
			first = m.r.BlockEnds[g]
		}
	}
}

// retrieveChunks is RETRIEVE: the whole range, or a miss. It takes over the
// read locks that a look-up of the same request left on its chunks. True where
// the lane is held.
func (s *Server) retrieveChunks(now core.Time, m *message, at int32, out *core.Effects) bool {
	e := s.getAndTouch(now, m, out)
	if e == nil {
		return false
	}
	pos, j := s.beginTransfer(now, m, e, at, false, out)
	if !s.findRange(m, e.about.chunkBytes, false) {
		s.endTransfer(out, pos, false, 0, core.NoFailure)
		return false
	}
	s.lockRange(out, m)
	j.slots = append(j.slots, s.scratch...)
	s.picked = s.picked[:0]
	for i := range j.slots {
		s.picked = append(s.picked, int32(i))
	}
	s.beginCopy(m, pos, core.CopyIn, e.about, out)
	return true
}

// findRange puts the slots of a request's range into scratch; false where the
// range is not made of whole chunks or one of them is not ready.
func (s *Server) findRange(m *message, bytes uint64, pooled bool) bool {
	k := &m.r.Key
	s.scratch = s.scratch[:0]
	if len(k.Chunks) == 0 || k.End-k.Start != int64(len(k.Chunks))*int64(s.cfg.ChunkTokens) {
		return false
	}
	for i := range k.Chunks {
		pos := s.store.ready(&k.Chunks[i], bytes, pooled)
		if pos < 0 {
			return false
		}
		s.scratch = append(s.scratch, core.Slot(pos))
	}
	return true
}

// lockRange locks the slots in scratch, or takes a session's locks over.
func (s *Server) lockRange(out *core.Effects, m *message) {
	k := &m.r.Key
	from := s.findSession(k.RequestID)
	for i, slot := range s.scratch {
		if from < 0 || !s.takeOver(from, k, i, slot) {
			s.store.lock(out, slot)
		}
	}
}

// copied ends a transfer whose copy ended. A copy that fails leaves nothing
// behind: what was reserved for it is dropped.
func (s *Server) copied(now core.Time, in *core.Input, out *core.Effects) {
	pos := s.jobOf(in.Op)
	if pos < 0 {
		return
	}
	j := &s.jobs.jobs[pos]
	s.noteJob(out, core.CopyEnded, j, uint64(j.mapping), uint64(j.op)).Failure = in.Failure
	ok := in.Failure == core.NoFailure
	for _, slot := range j.slots {
		switch {
		case !j.store:
			s.store.unlock(out, slot)
		case ok && !j.unwanted:
			s.store.finish(out, slot)
		default:
			s.store.drop(out, slot)
		}
	}
	why := in.Failure
	if ok && j.unwanted {
		ok, why = false, core.FailStale
	}
	moved := 0
	if ok {
		moved = len(j.slots)
	}
	at, mapping := j.lane, j.mapping
	if s.cfg.Protections.TransferKeepsAlive {
		s.stampEnd(now, j, out)
	}
	s.endTransfer(out, pos, ok, moved, why)
	s.copyGone(mapping, out)
	s.lanes[at].busy = false
	s.freedLane = at + 1
}

// stampEnd refreshes the context that a transfer began with, if it is still
// the one: its worker was being served all the while.
func (s *Server) stampEnd(now core.Time, j *job, out *core.Effects) {
	if pos := s.contexts.find(uint64(j.instance)); pos >= 0 {
		if e := &s.contexts.entries[pos]; e.incarnation == j.incarnation {
			e.moved = now
			stamp(out, core.ServerDriven, e, now, core.StampTransfer)
		}
	}
}
