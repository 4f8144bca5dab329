package worker

import (
	"strconv"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// server is the only peer that a worker has.
const server core.Peer = 0

// life is where a worker stands between its start and its end.
type life uint8

const (
	unborn        life = iota // no InputStart yet: every other input is ignored
	running                   //
	joining                   // stop requested, waiting for the heartbeat thread
	unregistering             // the heartbeat is stopped, UNREGISTER is on its way
	gone                      // WorkerStopped is written: every input is ignored
)

// Worker is one life of one worker adapter. Make it with New; a process that
// restarts makes a new one, with a new id.
//
// What every ping touches comes first: where 100,000 workers share a world, an
// event costs what it has to fetch.
type Worker struct {
	id   core.InstanceID
	life life

	// healthy is the health event of the adapter. It is set from the start, so
	// that the first store or retrieve is not gated on a ping (section 6.1), and
	// only the heartbeat changes it.
	healthy bool
	// woken is true from a TellWake to the get_finished that answers it: an
	// engine that was woken will ask, so one knock is enough.
	woken bool
	// registered is true once the server answered a registration.
	registered bool
	// warned is true once the engine was told that its register waits for a
	// release, until a registration succeeds.
	warned bool

	nextUID uint64 // counts up from 0 in the life of a client (PROTOCOL, 1.3)
	// enrolled is the first uid after the last registration that succeeded: the
	// answer to an older one may speak of a time before it.
	enrolled uint64
	boot     uint64        // the server's life, as the last answered ping named it; 0 unknown
	window   time.Duration // the server's, as its last register said it; 0 unknown
	reply    *wire.Reply   // scratch, lies in that of the effects: every reply touches it
	beat     heartbeat
	cfg      core.WorkerConfig

	enrol   registration // the engine's own register call
	leave   departure
	memory  memory
	pending table
	sweep   sweep

	asked     settling
	unsettled bool // something is held
	mute      bool // the last ping that was answered said nothing: an old server's
	unasked   bool // this life of the server does not know vigil.settle

	names []byte // the model's name, then the salt, as bytes for the wire
	// What follows is scratch: it has no meaning between two steps.
	ends   []int
	digits [20]byte
}

// replyIn returns the buffer for decoded replies that lies in the effects.
func replyIn(out *core.Effects) *wire.Reply {
	if r, ok := out.Scratch.(*wire.Reply); ok {
		return r
	}
	r := new(wire.Reply)
	out.Scratch = r
	return r
}

// New makes a worker that waits for its InputStart. The configuration is taken
// as it is; a shell validates it first.
func New(cfg core.WorkerConfig) *Worker {
	w := new(Worker)
	w.Reset(cfg)
	return w
}

// Reset makes w as New would and keeps its buffers, so that a simulator that
// starts thousands of lives a second makes no garbage.
func (w *Worker) Reset(cfg core.WorkerConfig) {
	w.cfg = cfg
	w.id = 0
	w.life = unborn
	w.healthy, w.woken, w.registered, w.warned = true, false, false, false
	w.nextUID, w.enrolled, w.boot, w.window = 0, 0, 0, 0
	w.sweep = sweep{}
	w.asked, w.unsettled, w.mute, w.unasked = settling{}, false, false, false
	w.beat, w.enrol, w.leave = heartbeat{}, registration{}, departure{}
	w.memory.reset()
	w.pending.reset()
	w.names = append(append(w.names[:0], cfg.Model...), cfg.Salt...)
}

// Step takes one input in. See the package comment for what it promises.
func (w *Worker) Step(now core.Time, in *core.Input, out *core.Effects) {
	if w.life == unborn {
		if in.Kind == core.InputStart {
			w.start(now, in, out)
		}
		return
	}
	if w.life == gone {
		return
	}
	switch in.Kind {
	case core.InputFrames:
		w.receive(now, in, out)
	case core.InputTimer:
		w.fire(now, in.Timer.Kind, out)
	case core.InputCall:
		if in.Call != nil {
			w.call(now, in.Call, out)
		}
	case core.InputStop:
		w.shutdown(now, out)
	}
}

// start gives the worker its id. The id comes from entropy and is no PID: a
// PID is used again, and then names somebody else's memory (section 4).
func (w *Worker) start(now core.Time, in *core.Input, out *core.Effects) {
	w.life = running
	w.id = w.cfg.Instance
	if w.id == 0 {
		w.id = core.InstanceIDFromEntropy(in.Entropy)
	}
	w.record(out, core.WorkerStarted)
	if w.cfg.TooSlow() {
		r := w.record(out, core.WorkerWarned)
		r.Failure = core.FailWindow
		r.A, r.B = uint64(3*w.cfg.Interval), uint64(core.ReapFloor)
		out.Tell(core.TellWarning, 0).Failure = core.FailWindow
	}
	if w.cfg.Prober {
		w.startHeartbeat(now, out)
	}
}

// call takes one call of the engine in.
func (w *Worker) call(now core.Time, c *core.Call, out *core.Effects) {
	switch c.Kind {
	case core.CallRegister:
		w.register(now, c, out)
	case core.CallStore, core.CallRetrieve:
		w.submit(now, c, out)
	case core.CallFinished:
		w.reportFinished(out)
	case core.CallShutdown:
		w.shutdown(now, out)
	}
}

// fire takes one timer in. A timer that nothing waits for any more is ignored
// by the phase that it would have ended.
func (w *Worker) fire(now core.Time, kind core.TimerKind, out *core.Effects) {
	switch kind {
	case core.TimerHeartbeat:
		w.wakeHeartbeat(now, out)
	case core.TimerPingReply:
		w.pingTimedOut(now, out)
	case core.TimerHeartbeatStep:
		w.stepHeartbeat(now, out)
	case core.TimerRecovery:
		w.recoveryTimedOut(now, out)
	case core.TimerRegister:
		w.registerTimedOut(out)
	case core.TimerJoin:
		w.joinTimedOut(now, out)
	case core.TimerRequest:
		w.sweepPending(now, out)
	case core.TimerUnregister:
		w.unregisterTimedOut(out)
	}
}

// receive takes one reply in. Replies may come in any order and are told apart
// by their uid alone; one that nobody waits for, because its deadline passed
// or its future was forgotten, is dropped without a word, and so is one that
// cannot be read (PROTOCOL, section 1.2).
func (w *Worker) receive(now core.Time, in *core.Input, out *core.Effects) {
	if in.Frames == nil || in.Peer != server {
		return
	}
	w.reply = replyIn(out)
	if wire.DecodeReply(in.Frames, w.reply) != core.NoFailure {
		return
	}
	if !w.cfg.Protections.TerminalAnswers {
		w.reply.Refusal = core.NoFailure // an old client looks at no frame past the result
	} else if w.reply.Refusal != core.NoFailure {
		w.reply.OK = false
	}
	uid := w.reply.UIDNumber
	switch {
	case w.beat.phase == beatAwaitsPing && uid == w.beat.uid:
		w.pingAnswered(now, out)
	case w.beat.recovery.stage != enrolIdle && uid == w.beat.recovery.uid:
		w.recoveryAnswered(now, out)
	case w.enrol.stage != enrolIdle && uid == w.enrol.uid:
		w.registerAnswered(now, out)
	case w.leave.awaits(uid):
		w.unregisterAnswered(uid, out)
	case w.asked.awaited && uid == w.asked.uid:
		w.settleAnswered(out)
	default:
		if slot := w.pending.find(uid); slot != none {
			w.resolve(now, slot, out)
		}
	}
}

// stopping reports whether a stop was requested.
func (w *Worker) stopping() bool { return w.life > running }

// record writes one record of this instance and returns it to be completed.
func (w *Worker) record(out *core.Effects, kind core.RecordKind) *core.Record {
	r := out.Record(kind)
	r.Instance = w.id
	return r
}

// takeUID numbers the next request.
func (w *Worker) takeUID() uint64 {
	uid := w.nextUID
	w.nextUID++
	return uid
}

// model and salt are the configured names as the wire wants them.
func (w *Worker) model() []byte { return w.names[:len(w.cfg.Model)] }
func (w *Worker) salt() []byte  { return w.names[len(w.cfg.Model):] }

// requestText is an engine request's name on the wire: its number in decimal.
// It lives until the next call.
func (w *Worker) requestText(id core.RequestID) []byte {
	return strconv.AppendUint(w.digits[:0], uint64(id), 10)
}

// send encodes one request to the server.
func send(out *core.Effects, req *wire.Request) {
	wire.EncodeRequest(out.Send(server), req)
}

// key is the timer key of a kind; a worker has one timer of each.
func key(kind core.TimerKind) core.TimerKey { return core.TimerKey{Kind: kind} }
