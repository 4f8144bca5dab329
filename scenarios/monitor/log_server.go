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

// mappingLog is one mapping, as claimed and as it is.
type mappingLog struct {
	bytes   uint64 // charged, in truth
	opened  bool   // in truth
	closed  bool   // in truth, since the last close began
	began   bool   // its open is claimed
	ended   bool   // and its end
	closing bool   // a close is claimed
	since   core.Time
}

type contextLog struct {
	stamp   core.Time
	stamped bool
	latched bool
	serving bool
}

type copyLog struct {
	mapping uint64
	store   bool
}

type jobLog struct {
	incarnation core.Incarnation
	chunks      uint64
	store       bool
}

// jobEnd counts what a copy's end did to the store, which is what its job moved.
type jobEnd struct {
	incarnation core.Incarnation
	store, well bool
	moved       uint64
}

type slotLog struct {
	hash    uint64
	readers uint64
	ready   bool
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

// mapping is device memory being opened or closed in truth.
func (s *serverLog) mapping(l *Log, r *core.Record) {
	at := s.mappings.get(r.A)
	if at < 0 {
		l.wrong(r, nobody, "the world did so to mapping %d, of which the log holds nothing", r.A)
		return
	}
	m := &s.mappings.items[at]
	switch r.Kind {
	case core.MappingOpened:
		m.opened, m.bytes = true, r.B
	case core.MappingClosing:
		if !m.closing {
			l.wrong(r, nobody, "mapping %d is being closed, and the log does not say so", r.A)
		}
	case core.MappingClosed:
		m.closed = true
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

// context is a record about an entry of a registry.
func (s *serverLog) context(l *Log, r *core.Record) {
	if r.Context == core.RopeState {
		if r.Kind == core.RegisterNoop && !s.begun(r, true) {
			l.wrong(r, nobody, "no register came")
		}
		return
	}
	at := s.contexts.get(uint64(r.Incarnation))
	if r.Kind == core.ContextInserted {
		if at >= 0 || !s.begun(r, true) {
			l.wrong(r, nobody, "incarnation %d serves already, or no register came for it", r.Incarnation)
		}
		if at < 0 {
			at = s.contexts.add(uint64(r.Incarnation), followed)
		}
		if s.live++; at >= 0 {
			s.contexts.items[at] = contextLog{serving: true}
		}
		if r.Context == core.ServerDriven {
			if m := s.mappings.get(r.A); m < 0 || !s.mappings.items[m].ended || s.mappings.items[m].bytes != r.B {
				l.wrong(r, nobody, "mapping %d with %d bytes is not what was opened for it", r.A, r.B)
			}
		}
		return
	}
	if at < 0 {
		if s.contexts.index.used < followed {
			l.wrong(r, nobody, "incarnation %d was not inserted", r.Incarnation)
		}
		return
	}
	c := &s.contexts.items[at]
	switch r.Kind {
	case core.Stamped:
		if c.stamped && core.Time(r.A) < c.stamp || core.Time(r.A) > r.At && r.B != uint64(core.StampRegister) && !l.setup.ClockStands {
			l.wrong(r, nobody, "a stamp of %s after one of %s", seconds(core.Time(r.A)), seconds(c.stamp))
		}
		if (core.StampCause(r.B) == core.StampRegister) == c.stamped {
			l.wrong(r, nobody, "the first stamp of a context is its register's, and no other")
		}
		c.stamp, c.stamped = core.Time(r.A), true
	case core.Latched:
		if c.latched {
			l.wrong(r, nobody, "it has latched")
		}
		c.latched = true
	case core.RegisterNoop:
		if !s.begun(r, true) {
			l.wrong(r, nobody, "no register came")
		}
	case core.ReapDecided:
		window := l.setup.Grace
		if c.latched {
			window = l.setup.Reap
		}
		if core.Time(r.A) != c.stamp || r.Flag != c.latched || time.Duration(r.B) != window {
			l.wrong(r, nobody, "its last stamp was at %s, and its window is %s", seconds(c.stamp), seconds(window))
		}
		s.decided++
		bump(&s.reaped, uint64(r.Instance), 1)
	case core.ContextRemoved:
		switch core.RemovalCause(r.A) {
		case core.RemovedByProof:
			bump(&s.reaped, uint64(r.Instance), 1)
		case core.RemovedByClient:
			if !s.begun(r, false) {
				l.wrong(r, nobody, "no unregister came")
			}
		}
		count := uint64(0)
		if n := s.reaped.get(uint64(r.Instance)); n >= 0 {
			count = uint64(s.reaped.items[n])
		}
		if r.B != count {
			l.wrong(r, nobody, "instance %d was reaped %d times, and not %d", uint64(r.Instance), count, r.B)
		}
		s.live--
		s.contexts.drop(uint64(r.Incarnation), at)
	}
}

// memory is a record about an open or a close.
func (s *serverLog) memory(l *Log, r *core.Record) {
	at := s.mappings.get(r.A)
	if r.Kind == core.OpenBegan {
		s.operation(l, r, r.B)
		if at >= 0 {
			l.wrong(r, nobody, "mapping %d is there", r.A)
			return
		}
		if at = s.mappings.add(r.A, followed); at >= 0 {
			s.mappings.items[at].began = true
		}
		return
	}
	if at < 0 {
		if s.mappings.index.used < followed {
			l.wrong(r, nobody, "of the open of mapping %d nothing is told, or it is closed", r.A)
		}
		return
	}
	m := &s.mappings.items[at]
	well := r.Failure == core.NoFailure
	switch r.Kind {
	case core.OpenEnded:
		if m.ended || well != m.opened || well && r.B != m.bytes {
			l.wrong(r, nobody, "mapping %d has %d bytes, or is not open, or that was told", r.A, m.bytes)
		}
		if m.ended = true; !well {
			s.mappings.drop(r.A, at)
		}
	case core.CloseBegan:
		s.operation(l, r, r.B)
		if !m.ended || m.closing {
			l.wrong(r, nobody, "mapping %d is not open, or is being closed", r.A)
		}
		m.closing, m.closed, m.since = true, false, r.At
	case core.CloseEnded:
		given := uint64(0)
		if m.closed {
			given = m.bytes
		}
		if !m.closing || well != m.closed || r.B != given {
			l.wrong(r, nobody, "%d bytes of mapping %d came back, or no close began", given, r.A)
		}
		if m.closing = false; well {
			s.mappings.drop(r.A, at)
		}
	case core.ReleaseStuck:
		if r.B != m.bytes {
			l.wrong(r, nobody, "mapping %d has %d bytes", r.A, m.bytes)
		}
	}
}

// transfer is a record about a job that copies.
func (s *serverLog) transfer(l *Log, r *core.Record) {
	switch r.Kind {
	case core.TransferBegan:
		if r.A <= s.lastJob {
			l.wrong(r, nobody, "job %d comes after job %d", r.A, s.lastJob)
		}
		s.lastJob = r.A
		if at := s.jobs.add(r.A, followed); at >= 0 {
			s.jobs.items[at] = jobLog{r.Incarnation, r.B, r.Flag}
		}
	case core.CopyBegan:
		s.operation(l, r, r.B)
		if at := s.copies.add(r.B, followed); at >= 0 {
			s.copies.items[at] = copyLog{r.A, r.Flag}
		}
	case core.CopyEnded:
		at := s.copies.get(r.B)
		if at < 0 || s.copies.items[at] != (copyLog{r.A, r.Flag}) {
			if s.copies.index.used < followed {
				l.wrong(r, nobody, "copy %d on mapping %d is not under way", r.B, r.A)
			}
			return
		}
		s.copies.drop(r.B, at)
		s.end = jobEnd{incarnation: r.Incarnation, store: r.Flag, well: r.Failure == core.NoFailure}
		s.ended = &s.end
	case core.TransferEnded:
		at := s.jobs.get(r.A)
		if at < 0 {
			if s.jobs.index.used < followed {
				l.wrong(r, nobody, "job %d is not under way", r.A)
			}
			return
		}
		q := s.jobs.items[at]
		if q.incarnation != r.Incarnation || q.store != r.Flag || r.B > q.chunks {
			l.wrong(r, nobody, "job %d moves %d chunks of another context, or the other way", r.A, q.chunks)
		}
		s.jobs.drop(r.A, at)
		moved := uint64(0)
		if e := s.ended; e != nil && e.well && r.Failure == core.NoFailure {
			moved = e.moved
		}
		if r.B != moved || moved > 0 && !r.Flag && moved != q.chunks {
			l.wrong(r, nobody, "job %d moved %d of %d chunks, and a retrieve moves all", r.A, moved, q.chunks)
		}
		s.ended = nil
	}
}

// slot is a record about a chunk of the store.
func (s *serverLog) slot(l *Log, r *core.Record) {
	key := r.A + 1
	at := s.slots.get(key)
	if r.Kind == core.ChunkReserved {
		if at >= 0 {
			l.wrong(r, nobody, "slot %d is taken", r.A)
		} else if at = s.slots.add(key, followed); at >= 0 {
			s.slots.items[at].hash = r.B
		}
		return
	}
	if at < 0 {
		if s.slots.index.used < followed {
			l.wrong(r, nobody, "slot %d is free", r.A)
		}
		return
	}
	c := &s.slots.items[at]
	switch r.Kind {
	case core.ChunkReady:
		if c.ready || c.hash != r.B {
			l.wrong(r, nobody, "slot %d is ready, or is another chunk's", r.A)
		}
		c.ready = true
		if e := s.ended; e != nil && e.store {
			e.moved++
		}
	case core.ChunkDropped:
		if c.hash != r.B || c.ready != r.Flag || c.readers != 0 {
			l.wrong(r, nobody, "slot %d is another chunk's, or read, or its state is told wrong", r.A)
		}
		s.slots.drop(key, at)
	case core.LockTaken:
		if c.readers++; c.readers != r.B || !c.ready {
			l.wrong(r, nobody, "slot %d has %d readers, or is not ready", r.A, c.readers)
		}
	case core.LockReturned:
		if c.readers--; c.readers != r.B {
			l.wrong(r, nobody, "slot %d has %d readers", r.A, c.readers)
		}
		if e := s.ended; e != nil && !e.store {
			e.moved++
		}
	}
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
