package server

import (
	"vigil/core"
	"vigil/core/wire"
)

// Server is the state of one life of a server. The zero value is not ready;
// use New, or Reset to use the buffers of an earlier life again.
type Server struct {
	cfg core.ServerConfig

	contexts   registry[entry]    // server-driven, by instance id
	engines    registry[entry]    // engine-driven, by instance id
	strategies registry[strategy] // the other half of engines, changed with it
	ropes      registry[rope]     // blend state, by instance id
	layouts    layouts
	store      store
	sessions   registry[session] // by hash of the request id
	locks      int               // held by all sessions
	reaped     registry[reapCount]

	mail       mail
	inbox      queue // what came while the main loop was held
	normal     queue // what waits for a slot of the NORMAL pool
	normalBusy int
	lanes      []lane
	lanesBound uint64          // peers bound to a lane so far
	peers      registry[bound] // by peer
	freedLane  int32           // lane+1 whose handler ended in this step
	jobs       jobs

	main       mainLoop
	enrolments registry[enrolment] // registers whose memory is being opened, by instance
	parked     queue               // registers that wait for something of their own instance
	turn       queue               // registers that wait for a place among the enrolments
	releases   registry[release]   // by mapping
	reaper     reaper
	stop       shutdown
	lost       held // popped by a cycle that a failed close ended: released by nobody

	boot uint64 // names this life of the server; 60 bits, not 0 once started

	// Counters of names. They only ever grow, so no name is used twice.
	incarnations core.Incarnation
	mappings     core.Mapping
	ops          uint64
	numbers      uint64

	allocationReports uint64

	reply    wire.Reply  // scratch of one step
	scratch  []core.Slot // scratch of one step
	poolName []byte      // scratch of one step
	picked   []int32     // scratch of one step
}

// held is what somebody has not given back.
type held struct {
	contexts int
	bytes    uint64
}

func (h *held) add(e *entry) {
	h.contexts++
	h.bytes += e.bytes
}

// New makes a server; the configuration must be valid. It serves once it has
// been told to start.
func New(cfg core.ServerConfig) *Server {
	s := new(Server)
	s.Reset(cfg)
	return s
}

// Reset makes s a new server and keeps its buffers.
func (s *Server) Reset(cfg core.ServerConfig) {
	s.cfg = cfg
	s.cfg.Bounds = bounded(cfg.Bounds)
	if cfg.Legacy {
		s.cfg.Protections = core.Document() // a server of a time before them
	}
	s.contexts.reset()
	s.engines.reset()
	s.strategies.reset()
	s.ropes.reset()
	s.layouts.known.reset()
	s.layouts.holders.reset()
	s.store.reset(cfg.L1Bytes, cfg.PoolBytes, s.most(core.BoundChunks))
	s.sessions.reset()
	s.reaped.reset()
	s.locks = 0
	s.mail.reset()
	s.inbox, s.normal, s.normalBusy = queue{}, queue{}, 0
	s.lanes, s.lanesBound, s.freedLane = s.lanes[:0], 0, 0
	s.peers.reset()
	s.jobs.reset()
	s.main = mainLoop{}
	s.enrolments.reset()
	s.parked, s.turn = queue{}, queue{}
	s.releases.reset()
	s.boot = 0
	s.reaper.reset()
	s.stop = shutdown{}
	s.lost = held{}
	s.incarnations, s.mappings, s.ops, s.numbers = 0, 0, 0, 0
	s.allocationReports = 0
}

// Step takes one input in. It is the only way in which anything changes.
func (s *Server) Step(now core.Time, in *core.Input, out *core.Effects) {
	if s.stop.stage == stopDone && in.Kind != core.InputFrames {
		return // gone; what still ends has nobody to end for
	}
	switch in.Kind {
	case core.InputStart:
		s.start(now, in, out)
	case core.InputFrames:
		s.arrive(now, in, out)
	case core.InputTimer:
		s.timer(now, in.Timer, out)
	case core.InputOpened:
		s.opened(now, in, out)
	case core.InputReleased:
		s.released(now, in, out)
	case core.InputCopied:
		s.copied(now, in, out)
	case core.InputClosed:
		s.disconnected(in.Peer)
	case core.InputExited:
		s.exited(now, in.Peer, out)
	case core.InputStop:
		s.beginStop(now, out)
	}
	s.settle(now, out)
}

// start begins the life. The reaper's first scan is due at once (PROTOCOL,
// section 4.2); with a window of 0 there is no reaper (A15).
func (s *Server) start(now core.Time, in *core.Input, out *core.Effects) {
	s.seed(in.Entropy)
	s.boot = bootOf(in.Entropy)
	r := out.Record(core.ServerStarted)
	r.A, r.B = uint64(s.cfg.Reap), uint64(s.cfg.Grace)
	if s.cfg.Reap > 0 && !s.cfg.Legacy {
		s.reaper.due = now
		out.Arm(core.TimerKey{Kind: core.TimerScan}, now)
	}
}

// bootOf names a life of the server by the entropy of its start.
func bootOf(entropy [16]byte) uint64 {
	d := core.Digest(3)
	d.Bytes(entropy[:])
	return uint64(d)>>4 | 1
}

// seed keeps strangers from choosing keys that meet in one bucket. It changes
// no behaviour, only where in memory things lie. What was registered before
// the start, if anything, keeps the old seed's places, so it is left alone.
func (s *Server) seed(entropy [16]byte) {
	var d core.Digest
	d.Bytes(entropy[:])
	for _, x := range [...]*index{
		&s.contexts.ids, &s.engines.ids, &s.strategies.ids, &s.ropes.ids, &s.layouts.known.ids,
		&s.layouts.holders.ids, &s.store.keys, &s.sessions.ids, &s.reaped.ids, &s.peers.ids, &s.enrolments.ids, &s.releases.ids,
	} {
		if x.count == 0 {
			x.seed = uint64(d)
		}
	}
}

func (s *Server) timer(now core.Time, key core.TimerKey, out *core.Effects) {
	switch key.Kind {
	case core.TimerScan:
		s.scan(now, out)
	case core.TimerReaperStep:
		s.reaperStep(now, out)
	case core.TimerMainStep:
		s.insert(now, key.Slot, out)
	case core.TimerRelease:
		s.releaseTimer(now, key.Slot, out)
	case core.TimerJob:
		s.waitedEnough(key.Slot, out)
	case core.TimerDrain:
		s.drained(now, out)
	}
}

// disconnected takes in that a connection closed. It tells nothing about the
// life of the worker behind it, for a reset link of a live one looks the same;
// only what would have been answered over it has nobody left.
func (s *Server) disconnected(peer core.Peer) {
	if s.cfg.Protections.RegisterDeadline {
		s.takeBackFrom(peer)
	}
}

// note writes a record about a context.
func note(out *core.Effects, kind core.RecordKind, context core.ContextKind, e *entry, a, b uint64) *core.Record {
	r := out.Record(kind)
	r.Context, r.Instance, r.Incarnation, r.A, r.B = context, e.instance, e.incarnation, a, b
	return r
}

// blank empties the reply that a handler is about to fill.
func (s *Server) blank() *wire.Reply {
	s.reply = wire.Reply{Slots: s.reply.Slots[:0], Indices: s.reply.Indices[:0]}
	return &s.reply
}

// answer sends the reply of the request that m carries.
func (s *Server) answer(out *core.Effects, m *message) {
	wire.EncodeReply(out.Send(m.peer), m.r.UID, m.r.RawType, m.r.Type, &s.reply)
}

// answerNil sends an ordinary success without a result.
func (s *Server) answerNil(out *core.Effects, m *message) {
	s.blank().Nil = true
	s.answer(out, m)
}

// answerJob sends the reply of the request that a job is for. A server that
// stops awaits no pool: what its jobs still answer is lost (PROTOCOL, 3).
func (s *Server) answerJob(out *core.Effects, j *job) {
	if s.stop.stage == stopNot {
		wire.EncodeReply(out.Send(j.peer), j.uid, j.raw, j.kind, &s.reply)
	}
}

// refuse ends a request that fails. Under the document nothing reaches the
// client (PROTOCOL, section 1.6); with terminal-answers it gets a refusal.
func (s *Server) refuse(out *core.Effects, m *message, why core.Failure) {
	rec := refused(out, m.r, m.peer, why)
	if m.r.Parcel != 0 {
		out.DropInline(m.r.Parcel)
	}
	if s.cfg.Protections.TerminalAnswers && len(m.r.UID) > 0 && len(m.r.RawType) > 0 {
		rec.Flag = true
		wire.EncodeRefusal(out.Send(m.peer), m.r.UID, m.r.RawType, m.r.Type, why)
	}
}

// refuseLater ends a request whose handler had to wait, and failed.
func (s *Server) refuseLater(out *core.Effects, to *replyTo, e *entry, why core.Failure) {
	r := out.Record(core.Refused)
	if e != nil {
		r.Context, r.Instance, r.Incarnation = core.ServerDriven, e.instance, e.incarnation
	}
	r.A, r.B, r.Failure = uint64(to.kind), uint64(to.peer), why
	if s.cfg.Protections.TerminalAnswers {
		r.Flag = true
		wire.EncodeRefusal(out.Send(to.peer), to.uid, to.raw, to.kind, why)
	}
}

func refused(out *core.Effects, r *wire.Request, peer core.Peer, why core.Failure) *core.Record {
	rec := out.Record(core.Refused)
	rec.Instance, rec.A, rec.B, rec.Failure = r.Instance, uint64(r.Type), uint64(peer), why
	return rec
}
