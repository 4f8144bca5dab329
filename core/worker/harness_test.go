package worker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// desk is a worker with a world made by hand: time stands still until a test
// moves it, and the server says only what a test says. It carries effects out
// as a driver does and keeps what a test asks about.
type desk struct {
	t       judge
	w       *Worker
	now     core.Time
	out     core.Effects
	timers  map[core.TimerKind]core.Time
	order   []core.TimerKind // in which they were armed, for ties
	sent    []message
	records []core.Record
	tells   []core.Tell
	left    bool
	// twins makes every step be taken by a clone too, which must end alike.
	twins bool
}

// judge is what a story needs of testing.T and of rapid.T.
type judge interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// message is one request as the server's host saw it.
type message struct {
	wire.Request
	frames core.Frames
	at     core.Time
}

func newDesk(t judge, change ...func(*core.WorkerConfig)) *desk {
	cfg := core.DefaultWorkerConfig()
	cfg.ChunkTokens = 16
	for _, c := range change {
		c(&cfg)
	}
	d := &desk{t: t, w: New(cfg), now: 1000 * core.Time(time.Second), timers: map[core.TimerKind]core.Time{}}
	d.step(&core.Input{Kind: core.InputStart, Entropy: [16]byte{8: 0x12, 9: 0x34, 15: 0x99}})
	return d
}

func engineDriven(c *core.WorkerConfig) { c.Mode = core.ModeEngineDriven }
func blend(c *core.WorkerConfig)        { c.Blend = true }
func prober(c *core.WorkerConfig)       { c.Prober = true }
func legacy(c *core.WorkerConfig)       { c.Legacy = true }

func (d *desk) step(in *core.Input) {
	var twin *Worker
	if d.twins {
		twin = d.w.Clone()
	}
	d.out.Reset()
	d.w.Step(d.now, in, &d.out)
	if d.twins {
		var out core.Effects
		twin.Step(d.now, in, &out)
		if twin.Fingerprint(d.now) != d.w.Fingerprint(d.now) || !slices.Equal(out.Records, d.out.Records) {
			d.t.Fatalf("a clone took a %s and ended elsewhere", in.Kind)
		}
	}
	for _, ref := range d.out.Order {
		switch ref.Kind {
		case core.EffectRecord:
			r := d.out.Records[ref.Index]
			r.At = d.now
			d.records = append(d.records, r)
		case core.EffectArm:
			a := d.out.Arms[ref.Index]
			d.unarm(a.Key.Kind)
			d.timers[a.Key.Kind] = a.At
			d.order = append(d.order, a.Key.Kind)
		case core.EffectDisarm:
			d.unarm(d.out.Disarms[ref.Index].Kind)
		case core.EffectSend:
			d.keep(d.out.Message(d.out.Sends[ref.Index]))
		case core.EffectTell:
			tell := d.out.Tells[ref.Index]
			tell.Blocks = slices.Clone(tell.Blocks)
			d.tells = append(d.tells, tell)
		case core.EffectExit:
			d.left = true
		}
	}
}

func (d *desk) unarm(k core.TimerKind) {
	delete(d.timers, k)
	d.order = slices.DeleteFunc(d.order, func(o core.TimerKind) bool { return o == k })
}

func (d *desk) keep(f *core.Frames) {
	m := message{at: d.now}
	m.frames.CopyFrom(f)
	decoder := wire.Decoder{ChunkTokens: 16, Legacy: d.w.cfg.Legacy}
	decoder.Decode(&m.frames, &m.Request)
	if m.Failure != core.NoFailure {
		d.t.Fatalf("the worker sent what a server cannot read: %s of %s", m.Failure, m.Type)
	}
	d.sent = append(d.sent, m)
}

// fire lets the timer that is due first fire, at its time; false where none is.
func (d *desk) fire(until core.Time) bool {
	kind, at := core.TimerNone, core.Never
	for _, k := range d.order {
		if d.timers[k] < at {
			kind, at = k, d.timers[k]
		}
	}
	if kind == core.TimerNone || at > until {
		return false
	}
	d.now = max(d.now, at)
	d.unarm(kind)
	d.step(&core.Input{Kind: core.InputTimer, Timer: core.TimerKey{Kind: kind}})
	return true
}

// settle fires what is due now: the separate steps of the heartbeat's cycle.
func (d *desk) settle() {
	for d.fire(d.now) {
	}
}

// pass lets time pass, with every timer that comes due in it.
func (d *desk) pass(by time.Duration) {
	until := d.now.Add(by)
	for d.fire(until) {
	}
	d.now = until
}

func (d *desk) call(c core.Call) { d.step(&core.Input{Kind: core.InputCall, Call: &c}) }

var tokens = func() []uint32 {
	t := make([]uint32, 64)
	for i := range t {
		t[i] = uint32(i + 1)
	}
	return t
}()

func (d *desk) store(id core.RequestID) {
	d.call(core.Call{Kind: core.CallStore, Request: id, Tokens: tokens, End: 32, Blocks: []uint32{1, 2}})
}

func (d *desk) retrieve(id core.RequestID, blocks ...uint32) {
	if len(blocks) == 0 {
		blocks = []uint32{7, 8}
	}
	d.call(core.Call{Kind: core.CallRetrieve, Request: id, Tokens: tokens, End: 32, Blocks: blocks})
}

func exports() []core.Export {
	return []core.Export{{
		Kind: core.HostSHM, Handle: []byte("/seg"), Device: []byte("cpu"), Bytes: 64 * 4096,
		Blocks: 64, BlockBytes: 4096, DType: []byte("float16"), Shape: []int64{2, 64, 16, 2, 32},
	}}
}

func (d *desk) register() {
	d.call(core.Call{Kind: core.CallRegister, Exports: exports(),
		Groups: []core.Group{{ID: 0, Layers: []int64{0, 1}, TokensPerBlock: 16, SlidingWindow: -1, Physical: 1}}})
}

// finished is one get_finished: what the engine is told in it.
func (d *desk) finished() []core.Tell {
	from := len(d.tells)
	d.call(core.Call{Kind: core.CallFinished})
	var told []core.Tell
	for _, tell := range d.tells[from:] {
		if tell.Kind == core.TellFinished {
			told = append(told, tell)
		}
	}
	return told
}

// last returns the newest request of a type.
func (d *desk) last(t wire.Type) message {
	for i := len(d.sent) - 1; i >= 0; i-- {
		if d.sent[i].Type == t {
			return d.sent[i]
		}
	}
	d.t.Fatalf("no %s was sent", t)
	return message{}
}

func (d *desk) count(t wire.Type) (n int) {
	for i := range d.sent {
		if d.sent[i].Type == t {
			n++
		}
	}
	return n
}

// answer lets the server's reply to m arrive.
func (d *desk) answer(m message, reply wire.Reply) {
	var f core.Frames
	wire.EncodeReply(&f, m.UID, m.RawType, m.Type, &reply)
	d.step(&core.Input{Kind: core.InputFrames, Frames: &f, Arrived: d.now})
}

// refuse lets a refusal of m arrive.
func (d *desk) refuse(m message, why core.Failure) {
	var f core.Frames
	wire.EncodeRefusal(&f, m.UID, m.RawType, m.Type, why)
	d.step(&core.Input{Kind: core.InputFrames, Frames: &f, Arrived: d.now})
}

// with switches protections on by name.
func with(names ...string) func(*core.WorkerConfig) {
	return func(c *core.WorkerConfig) {
		for _, n := range names {
			if !c.Protections.Set(n, true) {
				panic("no protection is named " + n)
			}
		}
	}
}

func hardened(c *core.WorkerConfig) { c.Protections = core.Hardened() }

// says is a good answer to a ping with a verdict.
func says(v wire.PingVerdict) wire.Reply { return wire.Reply{OK: true, Ping: v} }

var absent, known = wire.PingVerdict{Aware: true}, wire.PingVerdict{Aware: true, Registered: true}

var yes, no = wire.Reply{OK: true}, wire.Reply{OK: false}

// registered is a worker whose memory the server has.
func registered(t judge, change ...func(*core.WorkerConfig)) *desk {
	d := newDesk(t, change...)
	d.register()
	for n := len(d.sent) - 1; n < len(d.sent); n++ {
		d.answer(d.sent[n], wire.Reply{ShmName: []byte("/pool"), Pool: 1 << 20})
	}
	if !d.w.Registered() {
		t.Fatal("the registration did not succeed")
	}
	return d
}

// unhealthy is a registered worker whose first ping was not answered.
func unhealthy(t judge, change ...func(*core.WorkerConfig)) *desk {
	d := registered(t, change...)
	d.store(1)
	d.settle()
	d.answer(d.last(firstTransfer(d)), wire.Reply{OK: true, Data: []byte{}})
	d.finished()
	d.pass(10 * time.Second)
	if d.w.Healthy() {
		t.Fatal("a failed ping left the worker healthy")
	}
	return d
}

func firstTransfer(d *desk) wire.Type {
	if d.w.cfg.Mode == core.ModeEngineDriven {
		return wire.PrepareStore
	}
	return wire.Store
}

func (d *desk) kinds(from int) []core.RecordKind {
	var kinds []core.RecordKind
	for _, r := range d.records[from:] {
		kinds = append(kinds, r.Kind)
	}
	return kinds
}

// saw returns the records of a kind.
func (d *desk) saw(kind core.RecordKind) (found []core.Record) {
	for _, r := range d.records {
		if r.Kind == kind {
			found = append(found, r)
		}
	}
	return found
}

// story checks that the records from number from on are these kinds.
func (d *desk) story(from int, want ...core.RecordKind) {
	d.t.Helper()
	if got := d.kinds(from); !slices.Equal(got, want) {
		d.t.Fatalf("the story was\n  %s\nand should have been\n  %s", names(got), names(want))
	}
}

func names(kinds []core.RecordKind) string {
	var s []string
	for _, k := range kinds {
		s = append(s, k.String())
	}
	return strings.Join(s, ", ")
}

// told checks one end: its request, outcome and invalid blocks.
func (d *desk) told(tell core.Tell, id core.RequestID, outcome core.Outcome, blocks ...uint32) {
	d.t.Helper()
	if tell.Request != id || tell.Outcome != outcome || !slices.Equal(tell.Blocks, blocks) {
		d.t.Fatalf("request %d ended %s with invalid blocks %v; want request %d %s %v",
			tell.Request, tell.Outcome, tell.Blocks, id, outcome, blocks)
	}
}

func (d *desk) wakes() (n int) {
	for _, tell := range d.tells {
		if tell.Kind == core.TellWake {
			n++
		}
	}
	return n
}

func (d *desk) wasTold(kind core.TellKind) bool {
	return slices.ContainsFunc(d.tells, func(t core.Tell) bool { return t.Kind == kind })
}

func seconds(t core.Time) string { return fmt.Sprintf("%gs", time.Duration(t).Seconds()) }
