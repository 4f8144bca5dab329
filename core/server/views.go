package server

import "vigil/core"

// Read-only views, for status pages, metrics and tests. Strings are the
// server's own and stay valid.

// ContextView is one context as the registry has it.
type ContextView struct {
	Kind        core.ContextKind
	Instance    core.InstanceID
	Incarnation core.Incarnation
	Mapping     core.Mapping // 0 where the server opened nothing
	Bytes       uint64
	LastSeen    core.Time
	Transferred bool
	LastMoved   core.Time // its last transfer; 0 before the first
	Latched     bool
	Reaped      uint64 // times this id was reaped so far
	Model       string
	WorldSize   int64
	BlockSize   int64 // engine-driven
	UseMLA      bool  // engine-driven
}

// Contexts visits the contexts of a kind in the order of their insertion,
// until visit returns false.
func (s *Server) Contexts(kind core.ContextKind, visit func(ContextView) bool) {
	switch kind {
	case core.ServerDriven:
		s.visit(kind, &s.contexts, visit)
	case core.EngineDriven:
		s.visit(kind, &s.engines, visit)
	case core.RopeState:
		for pos := s.ropes.first(); pos >= 0; pos = s.ropes.after(pos) {
			if !visit(s.ropeView(pos)) {
				return
			}
		}
	}
}

func (s *Server) visit(kind core.ContextKind, r *registry[entry], visit func(ContextView) bool) {
	for pos := r.first(); pos >= 0; pos = r.after(pos) {
		if !visit(s.view(kind, &r.entries[pos])) {
			return
		}
	}
}

// Context returns one context; false where there is none.
func (s *Server) Context(kind core.ContextKind, id core.InstanceID) (ContextView, bool) {
	pos := int32(-1)
	switch kind {
	case core.ServerDriven:
		if pos = s.contexts.find(uint64(id)); pos >= 0 {
			return s.view(kind, &s.contexts.entries[pos]), true
		}
	case core.EngineDriven:
		if pos = s.engines.find(uint64(id)); pos >= 0 {
			return s.view(kind, &s.engines.entries[pos]), true
		}
	case core.RopeState:
		if pos = s.ropes.find(uint64(id)); pos >= 0 {
			return s.ropeView(pos), true
		}
	}
	return ContextView{}, false
}

func (s *Server) view(kind core.ContextKind, e *entry) ContextView {
	return ContextView{
		Kind: kind, Instance: e.instance, Incarnation: e.incarnation, Mapping: e.mapping, Bytes: e.bytes,
		LastSeen: e.lastSeen, Transferred: e.transferred, LastMoved: e.moved, Latched: e.latched, Reaped: s.timesReaped(e.instance),
		Model: e.about.model, WorldSize: e.about.world, BlockSize: e.about.blockSize, UseMLA: e.about.mla,
	}
}

func (s *Server) ropeView(pos int32) ContextView {
	e := &s.ropes.entries[pos]
	return ContextView{Kind: core.RopeState, Instance: e.instance, Incarnation: e.incarnation}
}

// Config is what the server was told at its start.
func (s *Server) Config() core.ServerConfig { return s.cfg }

// TrackedInstances counts the entries that liveness is tracked for; an id in
// two registries counts twice (PROTOCOL, section 4.9).
func (s *Server) TrackedInstances() int { return s.contexts.live() + s.engines.live() }

// LayoutHolders returns how many contexts hold a layout's descriptor.
func (s *Server) LayoutHolders(model string, worldSize int64) int {
	pos := s.layouts.find([]byte(model), worldSize)
	if pos < 0 {
		return 0
	}
	return s.layouts.known.entries[pos].holders
}

// ReleaseBy says who releases a context.
type ReleaseBy uint8

// Who releases contexts.
const (
	ByUnregister ReleaseBy = iota
	ByReaper
	ByShutdown
	ByReplace // other memory, or a register that was taken back
)

// ReleaseView is a context that serves no more and is not released yet.
type ReleaseView struct {
	Instance    core.InstanceID
	Incarnation core.Incarnation
	Mapping     core.Mapping
	Bytes       uint64
	By          ReleaseBy
	Closing     bool      // its close has begun; else it waits for copies, or for another's close
	Stuck       bool      // it passed its bound
	Since       core.Time // when it began; 0 where it has not
}

// Releases visits what is being released, until visit returns false. A close
// that hangs stays in here, and so does everything that waits behind it.
func (s *Server) Releases(visit func(ReleaseView) bool) {
	for pos := s.releases.first(); pos >= 0; pos = s.releases.after(pos) {
		r := &s.releases.entries[pos]
		v := viewRelease(&r.entry, r.by)
		v.Closing, v.Stuck, v.Since = r.state == releaseClosing, r.stuck, r.since
		if !visit(v) {
			return
		}
	}
	if r := &s.reaper; r.target == targetServerDriven {
		for i := int(r.at); i < len(r.batch); i++ {
			if !visit(viewRelease(&r.batch[i].entry, ByReaper)) {
				return
			}
		}
	}
}

func viewRelease(e *entry, by ReleaseBy) ReleaseView {
	return ReleaseView{Instance: e.instance, Incarnation: e.incarnation, Mapping: e.mapping, Bytes: e.bytes, By: by}
}

// Lost counts the contexts that a failed close left behind, and their bytes:
// nobody will release them while this server lives.
func (s *Server) Lost() (contexts int, bytes uint64) { return s.lost.contexts, s.lost.bytes }

// Serving reports whether nobody has told the server to stop.
func (s *Server) Serving() bool { return s.stop.stage == stopNot }

// Load is how much is under way.
type Load struct {
	MainHeld   bool // a SYNC handler holds the main loop
	Inbox      int  // messages that wait for the main loop
	NormalBusy int  // slots of the NORMAL pool that are held
	NormalWait int  // messages that wait for one
	LanesBusy  int  // lanes of the AFFINITY pool that are held
	LanesWait  int  // messages that wait for theirs
	Scanning   bool // a reaper cycle is under way
	Sessions   int  // look-up sessions
	Locks      int  // read locks that sessions hold
	Chunks     int  // of the store, reserved and ready
	StoreBytes uint64
	Reported   uint64 // block allocations reported by engines
	Stopping   bool
}

// Load returns how much is under way.
func (s *Server) Load() Load {
	l := Load{
		MainHeld: s.main.held, Inbox: int(s.inbox.length),
		NormalBusy: s.normalBusy, NormalWait: int(s.normal.length),
		Scanning: s.reaper.state != reaperIdle,
		Sessions: s.sessions.live(), Locks: s.locks,
		Chunks: s.store.live(), StoreBytes: s.store.used,
		Reported: s.allocationReports, Stopping: s.stop.stage != stopNot,
	}
	for i := range s.lanes {
		if s.lanes[i].busy {
			l.LanesBusy++
		}
		l.LanesWait += int(s.lanes[i].waiting.length)
	}
	return l
}

// ChunkState returns the slot of a chunk and whether it may be read; ok is
// false where the store has no such chunk.
func (s *Server) ChunkState(key core.ChunkKey) (slot core.Slot, ready, ok bool) {
	pos := s.store.find(&key)
	if pos < 0 {
		return 0, false, false
	}
	return core.Slot(pos), s.store.chunks[pos].state == chunkReady, true
}

// PoolPlace returns where in the shared pool a slot's bytes lie; ok is false
// for a slot whose bytes are the shell's own.
func (s *Server) PoolPlace(slot core.Slot) (offset, bytes uint64, ok bool) {
	if uint64(slot) >= uint64(len(s.store.chunks)) {
		return 0, 0, false
	}
	c := &s.store.chunks[slot]
	if c.state == chunkFree || !c.pooled {
		return 0, 0, false
	}
	return c.offset, c.bytes, true
}
