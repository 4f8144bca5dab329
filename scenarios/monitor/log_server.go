package monitor

import (
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// What one life of the server has written so far.

type serverLog struct {
	up       bool // started
	stopping bool
	lastOp   uint64 // of opens, closes and copies: they count up
	lastJob  uint64

	mappings pool[mappingLog] // by number
	contexts pool[contextLog] // by incarnation
	copies   pool[copyLog]    // by operation
	jobs     pool[jobLog]     // by number
	slots    pool[slotLog]    // by slot + 1
	asked    pool[int32]      // registers and unregisters that began, by instance and kind
	messages pool[int32]      // messages that were taken in and not refused, by peer and type; no pings
	reaped   pool[int32]      // by instance
	live     uint64           // contexts that serve

	scanning bool
	decided  uint64 // reaps of the scan
	ended    *jobEnd
	end      jobEnd
	full     core.Record // a full pool whose refusal has to follow
	arrived  core.Record // a register that waits for nothing: what came of it has to follow
	ropes    pool[bool]  // by instance
	refusals int         // answers that say no, less those that came
}

// followed bounds each of the pools; what does not fit is not judged.
const followed = 1 << 16

func (s *serverLog) reset() {
	s.mappings.reset()
	s.contexts.reset()
	s.copies.reset()
	s.jobs.reset()
	s.slots.reset()
	s.asked.reset()
	s.messages.reset()
	s.reaped.reset()
	s.ropes.reset()
	*s = serverLog{
		mappings: s.mappings, contexts: s.contexts, copies: s.copies, jobs: s.jobs,
		slots: s.slots, asked: s.asked, messages: s.messages, reaped: s.reaped, ropes: s.ropes,
		refusals: s.refusals, // an answer may come when its server is gone
	}
}

// bump adds to a count of a pool and returns what it was, -1 where nothing is counted.
func bump(p *pool[int32], key uint64, by int32) int32 {
	at := p.get(key)
	if at < 0 {
		if by < 0 {
			return -1
		}
		if at = p.add(key, followed); at < 0 {
			return -1
		}
	}
	was := p.items[at]
	if p.items[at] += by; p.items[at] <= 0 {
		p.drop(key, at)
	}
	return was
}

// handled is a message that the server's process took in.
func (s *serverLog) handled(r *core.Record) {
	if t := wire.Type(r.B); t != wire.Ping {
		bump(&s.messages, r.A<<8|r.B, 1)
	}
}

func (s *serverLog) operation(l *Log, r *core.Record, op uint64) {
	if op>>20 <= s.lastOp {
		l.wrong(r, nobody, "operation %d comes after operation %d", op>>20, s.lastOp)
	}
	s.lastOp = op >> 20
}

// begun is one register or unregister less that began for an instance.
func (s *serverLog) begun(r *core.Record, register bool) bool {
	return bump(&s.asked, askedKey(r, register), -1) > 0
}

func askedKey(r *core.Record, register bool) uint64 {
	return uint64(r.Instance)<<3 | uint64(r.Context)<<1 | uint64(index(register))
}

func (s *serverLog) claim(l *Log, r *core.Record) {
	if s.full.Kind != core.RecordNone && r.Kind != core.Refused {
		l.wrong(r, nobody, "a full pool was told of, and no refusal")
		s.full = core.Record{}
	}
	if s.arrived.Kind != core.RecordNone && s.arrived.Instance != r.Instance {
		l.wrong(&s.arrived, nobody, "nothing is told of what came of it")
	}
	s.arrived = core.Record{}
	if !s.up && r.Kind != core.ServerStarted {
		l.wrong(r, nobody, "it has not started")
		s.up = true
	}
	switch r.Kind {
	case core.RopeAdded, core.RopeDropped:
		s.rope(l, r)
	case core.Stamped, core.Latched, core.ContextInserted, core.ContextRemoved, core.ReapDecided, core.RegisterNoop:
		s.context(l, r)
	case core.OpenBegan, core.OpenEnded, core.CloseBegan, core.CloseEnded, core.ReleaseStuck:
		s.memory(l, r)
	case core.TransferBegan, core.CopyBegan, core.CopyEnded, core.TransferEnded:
		s.transfer(l, r)
	case core.LockTaken, core.LockReturned, core.ChunkReserved, core.ChunkReady, core.ChunkDropped:
		s.slot(l, r)
	case core.ServerStarted:
		if s.up || time.Duration(r.A) != l.setup.Reap || time.Duration(r.B) != l.setup.Grace {
			l.wrong(r, nobody, "it runs, or with other windows")
		}
		s.up = true
	case core.ServerStopping:
		s.stopping = true
	case core.ServerStopped:
		s.stopped(l, r)
	case core.RegisterArrived, core.UnregisterCame:
		bump(&s.asked, askedKey(r, r.Kind == core.RegisterArrived), 1)
		if s.took(r.A, requestsOf(r)) <= 0 {
			l.wrong(r, nobody, "no such message was taken in from connection %d", r.A)
		}
		if r.Kind == core.RegisterArrived && r.Context != core.ServerDriven { // which may wait for its memory
			s.arrived = *r
		}
	case core.ScanBegan:
		if s.scanning || r.A != s.live {
			l.wrong(r, nobody, "the scan before it has not ended, or %d contexts serve and not %d", s.live, r.A)
		}
		s.scanning, s.decided = true, 0
	case core.ScanEnded:
		if !s.scanning || r.A != s.decided {
			l.wrong(r, nobody, "no scan began, or %d were reaped and not %d", s.decided, r.A)
		}
		s.scanning = false
	case core.PoolFull:
		s.full = *r
	case core.Refused:
		switch f := &s.full; {
		case f.Kind != core.RecordNone && (f.A != r.A || f.Failure != r.Failure):
			l.wrong(r, nobody, "a full pool was told of for another request")
		case f.Kind == core.RecordNone && r.Failure == core.FailQueueFull && wire.PoolOf(wire.Type(r.A)) != wire.PoolSync: // a register meets other bounds too
			l.wrong(r, nobody, "no full pool was told of")
		}
		s.full = core.Record{}
		if r.Failure == core.NoFailure {
			l.wrong(r, nobody, "it does not say why")
		}
		if r.Flag {
			s.refusals++
		}
		if t := wire.Type(r.A); t != wire.Ping && s.took(r.B, t) <= 0 {
			l.wrong(r, nobody, "no %s was taken in from connection %d", t, r.B)
		}
	case core.ServerWarned:
		if r.Failure == core.NoFailure {
			l.wrong(r, nobody, "it does not say of what")
		}
	}
}

// rope is a record about blend state.
func (s *serverLog) rope(l *Log, r *core.Record) {
	at := s.ropes.get(uint64(r.Instance))
	if (at < 0) != (r.Kind == core.RopeAdded) && s.ropes.index.used < followed {
		l.wrong(r, nobody, "it has blend state, or none")
		return
	}
	if r.Kind == core.RopeDropped {
		s.ropes.drop(uint64(r.Instance), at)
		return
	}
	if s.ropes.add(uint64(r.Instance), followed); !s.begun(r, true) {
		l.wrong(r, nobody, "no register came")
	}
}

// took returns how many messages of a type came from a connection.
func (s *serverLog) took(peer uint64, t wire.Type) int32 {
	at := s.messages.get(peer<<8 | uint64(t))
	if at < 0 {
		return int32(index(s.messages.index.used >= followed))
	}
	return s.messages.items[at]
}

// requestsOf is the request that a record of its arrival is about.
func requestsOf(r *core.Record) wire.Type {
	types := [...][2]wire.Type{
		core.ServerDriven: {wire.UnregisterKVCache, wire.RegisterKVCache},
		core.EngineDriven: {wire.UnregisterEngineDriven, wire.RegisterEngineDriven},
		core.RopeState:    {wire.UnregisterRope, wire.RegisterRope},
	}
	if int(r.Context) >= len(types) {
		return wire.NoType
	}
	return types[r.Context][index(r.Kind == core.RegisterArrived)]
}

// stopped is the server's last word: what it leaves to the operating system.
func (s *serverLog) stopped(l *Log, r *core.Record) {
	bytes, known := uint64(0), true
	for i := range s.mappings.index.cells {
		c := &s.mappings.index.cells[i]
		if c.key == 0 {
			continue
		}
		m := &s.mappings.items[c.value]
		if known = known && (m.ended || !m.opened); m.opened && !m.closed {
			bytes += m.bytes
		}
	}
	if !s.stopping || known && r.B != bytes {
		l.wrong(r, nobody, "it did not stop, or %d bytes are open and not %d", bytes, r.B)
	}
	s.stopping, s.up = false, false
}

// exited is its process leaving in order.
func (s *serverLog) exited(l *Log, r *core.Record) {
	if s.up {
		l.wrong(r, nobody, "it left, and its log does not say so")
	}
	s.reset()
}
