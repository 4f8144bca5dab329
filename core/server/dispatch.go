package server

import (
	"vigil/core"
	"vigil/core/wire"
)

// Dispatch: SYNC requests run on the main loop, one at a time; the others in
// bounded pools. While a SYNC handler waits for memory, every later message
// waits in the inbox, pings too: the main loop is what reads messages
// (PROTOCOL, section 3). A handler that need not wait runs at once when its
// slot is free.

// lane is one single-file worker of the AFFINITY pool.
type lane struct {
	waiting queue
	busy    bool
}

// bound is the lane of a peer, chosen at its first use and never changed.
type bound struct {
	peer core.Peer
	lane int32
}

// arrive takes a message in.
func (s *Server) arrive(now core.Time, in *core.Input, out *core.Effects) {
	r, ok := in.Decoded.(*wire.Request)
	if !ok || r == nil {
		rec := out.Record(core.Refused)
		rec.B, rec.Failure = uint64(in.Peer), core.FailUndecodable
		return
	}
	m := message{r, min(in.Arrived, now), in.Peer, -1}
	switch {
	case s.stop.stage != stopNot:
		s.refuse(out, &m, core.FailStopping)
		return
	case s.cfg.Protections.StampOnArrival && r.Failure == core.NoFailure:
		s.stampArrival(out, &m) // before any queue can hold it up (B11)
	}
	if s.main.held {
		s.enqueue(out, &s.inbox, &m)
		return
	}
	s.dispatch(now, &m, out)
}

// enqueue has a message wait. One beyond the bounds is dropped and counted;
// what waits already is served.
func (s *Server) enqueue(out *core.Effects, q *queue, m *message) {
	if m.letter < 0 {
		pos, ok := s.mail.keep(m, s.jobs.live(), &s.cfg.Bounds)
		if !ok {
			r := out.Record(core.PoolFull)
			r.Instance, r.A, r.Failure = m.r.Instance, uint64(m.r.Type), core.FailQueueFull
			s.refuse(out, m, core.FailQueueFull)
			return
		}
		m.letter = pos
	}
	q.push(&s.mail, m.letter)
	m.letter = -1 // the queue's now
}

// dispatch is what the main loop does with one message: check, then run it or
// hand it to its pool.
func (s *Server) dispatch(now core.Time, m *message, out *core.Effects) {
	if m.r.Failure != core.NoFailure {
		s.refuse(out, m, m.r.Failure)
		return
	}
	if !s.serves(m.r.Type) {
		s.refuse(out, m, core.FailUnsupported)
		return
	}
	switch wire.PoolOf(m.r.Type) {
	case wire.PoolSync:
		s.runSync(now, m, out)
	case wire.PoolNormal:
		if s.normalBusy >= s.cfg.NormalSlots {
			s.enqueue(out, &s.normal, m)
		} else if s.runNormal(now, m, out) {
			s.normalBusy++
		}
	case wire.PoolAffinity:
		at := s.laneOf(m.peer)
		if s.lanes[at].busy {
			s.enqueue(out, &s.lanes[at].waiting, m)
		} else {
			s.lanes[at].busy = s.runAffinity(now, m, at, out)
		}
	default:
		s.refuse(out, m, core.FailUnsupported)
	}
}

// serves reports whether a loaded module has a handler for t.
func (s *Server) serves(t wire.Type) bool {
	switch t {
	case wire.RegisterKVCache, wire.UnregisterKVCache, wire.Store, wire.Retrieve:
		return s.cfg.ServerDriven
	case wire.RegisterEngineDriven, wire.UnregisterEngineDriven,
		wire.PrepareStore, wire.CommitStore, wire.PrepareRetrieve, wire.CommitRetrieve:
		return s.cfg.EngineDriven
	case wire.RegisterRope, wire.UnregisterRope:
		return s.cfg.Blend
	case wire.RegisterQCache, wire.UnregisterQCache, wire.StoreQ, wire.Named:
		return false // their modules are not ours
	}
	return true
}

// runSync runs a handler of the main loop; it may hold the loop.
func (s *Server) runSync(now core.Time, m *message, out *core.Effects) {
	switch m.r.Type {
	case wire.RegisterKVCache:
		s.register(now, m, out)
	case wire.UnregisterKVCache:
		s.unregister(now, m, out)
	case wire.RegisterEngineDriven:
		s.registerEngine(now, m, out)
	case wire.UnregisterEngineDriven:
		s.unregisterEngine(m, out)
	case wire.RegisterRope:
		s.registerRope(m, out)
	case wire.UnregisterRope:
		s.unregisterRope(m, out)
	case wire.GetChunkSize:
		s.blank().Int = int64(s.cfg.ChunkTokens)
		s.answer(out, m)
	case wire.Noop:
		s.blank().Text = noopText
		s.answer(out, m)
	case wire.Settle:
		s.giveUpOlder(m, out)
	case wire.GetExperimental: // no experimental module; silence would cost a client 300 s
		s.blank()
		s.answer(out, m)
	default:
		s.refuse(out, m, core.FailUnsupported)
	}
}

var noopText = []byte("OK")

// runNormal runs a handler of the NORMAL pool; true where it holds its slot.
func (s *Server) runNormal(now core.Time, m *message, out *core.Effects) bool {
	switch m.r.Type {
	case wire.Ping:
		s.ping(now, m, out)
	case wire.Lookup:
		s.lookup(m, out)
	case wire.QueryPrefetchStatus, wire.QueryPrefetchLookupHits:
		s.queryPrefetch(m, out)
	case wire.WaitPrefetchStatus:
		return s.waitPrefetch(now, m, out)
	case wire.FreeLookupLocks:
		s.freeLocks(m, out)
	case wire.EndSession:
		s.endSession(m, out)
	case wire.Clear:
		s.clearStore(m, out)
	case wire.ReportBlockAllocation:
		s.allocationReports += uint64(m.r.Records)
		s.answerNil(out, m)
	default:
		s.refuse(out, m, core.FailUnsupported)
	}
	return false
}

// runAffinity runs a handler in a lane; true where it holds the lane.
func (s *Server) runAffinity(now core.Time, m *message, at int32, out *core.Effects) bool {
	switch m.r.Type {
	case wire.Store:
		return s.storeChunks(now, m, at, out)
	case wire.Retrieve:
		return s.retrieveChunks(now, m, at, out)
	case wire.PrepareStore:
		s.prepareStore(now, m, out)
	case wire.CommitStore:
		s.commitStore(now, m, out)
	case wire.PrepareRetrieve:
		s.prepareRetrieve(now, m, out)
	case wire.CommitRetrieve:
		s.commitRetrieve(now, m, out)
	default:
		s.refuse(out, m, core.FailUnsupported)
	}
	return false
}

// laneOf returns the lane of a connection, binding it at its first use, round
// robin. It is never unbound, so each reconnect moves on by one.
func (s *Server) laneOf(peer core.Peer) int32 {
	at := int32(0)
	if s.cfg.AffinityLanes > 1 {
		if pos := s.peers.find(uint64(peer)); pos >= 0 {
			return s.peers.entries[pos].lane
		}
		if s.peers.live() < maxPeers {
			at = int32(s.lanesBound % uint64(s.cfg.AffinityLanes))
			s.lanesBound++
			pos := s.peers.add(uint64(peer))
			s.peers.entries[pos] = bound{peer, at}
		} else {
			at = int32(uint64(peer) % uint64(s.cfg.AffinityLanes))
		}
	}
	for int(at) >= len(s.lanes) {
		s.lanes = append(s.lanes, lane{})
	}
	return at
}

// settle runs what waits for a slot that is free by now, oldest first in each
// queue, until nothing that waits can run. It ends, for every turn takes a
// letter out or stops.
func (s *Server) settle(now core.Time, out *core.Effects) {
	for !s.main.held && s.inbox.length > 0 {
		m := s.mail.open(s.inbox.pop(&s.mail))
		pos := m.letter
		s.dispatch(now, &m, out)
		s.sorted(pos, &m)
	}
	for s.normal.length > 0 && s.normalBusy < s.cfg.NormalSlots {
		m := s.mail.open(s.normal.pop(&s.mail))
		if s.runNormal(now, &m, out) {
			s.normalBusy++
		}
		s.mail.discard(m.letter)
	}
	if s.freedLane != 0 {
		at := s.freedLane - 1
		s.freedLane = 0
		for !s.lanes[at].busy && s.lanes[at].waiting.length > 0 {
			m := s.mail.open(s.lanes[at].waiting.pop(&s.mail))
			s.lanes[at].busy = s.runAffinity(now, &m, at, out)
			s.mail.discard(m.letter)
		}
	}
	if s.stop.stage == stopWaiting {
		s.maybeClose(now, out)
	}
}

// sorted ends a letter that no further queue took over.
func (s *Server) sorted(pos int32, m *message) {
	if m.letter == pos {
		s.mail.discard(pos)
	}
}
