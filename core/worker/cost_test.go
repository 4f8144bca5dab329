package worker

import (
	"testing"
	"time"
	"unsafe"

	"vigil/core"
	"vigil/core/wire"
)

// rig drives one worker without a harness's own garbage: replies are encoded
// once per message into one buffer.
type rig struct {
	w     *Worker
	out   core.Effects
	in    core.Input
	reply core.Frames
	uid   []byte
	now   core.Time
}

func newRig(tb testing.TB, mode core.TransferMode, design core.Protections) *rig {
	cfg := core.DefaultWorkerConfig()
	cfg.Protections = design
	cfg.Mode, cfg.ChunkTokens = mode, 16
	r := &rig{w: New(cfg)}
	r.step(core.Input{Kind: core.InputStart, Entropy: [16]byte{8: 9}})
	r.step(core.Input{Kind: core.InputCall, Call: &core.Call{Kind: core.CallRegister, Exports: exports()}})
	r.answer(wire.Reply{ShmName: []byte("/pool")})
	r.store()
	r.step(core.Input{Kind: core.InputTimer, Timer: core.TimerKey{Kind: core.TimerHeartbeat}})
	r.answer(pingReply)
	if !r.w.Registered() || r.w.beat.phase != beatSleeps {
		tb.Fatal("the rig does not stand")
	}
	return r
}

func (r *rig) step(in core.Input) {
	r.in = in
	r.out.Reset()
	r.w.Step(r.now, &r.in, &r.out)
}

// answer lets the reply to the last message come.
func (r *rig) answer(reply wire.Reply) {
	m := r.out.Message(r.out.Sends[len(r.out.Sends)-1])
	r.uid = append(r.uid[:0], m.Part(0)...)
	r.reply.Reset()
	wire.EncodeReply(&r.reply, r.uid, m.Part(1), wire.Type(m.Part(1)[0]), &reply)
	r.step(core.Input{Kind: core.InputFrames, Frames: &r.reply})
}

func (r *rig) ping() {
	r.now += core.Time(10 * time.Second)
	r.step(core.Input{Kind: core.InputTimer, Timer: core.TimerKey{Kind: core.TimerHeartbeat}})
	r.answer(pingReply)
}

// pingReply says all that a hardened server says; to the document's worker it
// is a yes.
var pingReply = wire.Reply{OK: true, Ping: wire.PingVerdict{Aware: true, Registered: true, Boot: 1 << 50}}

var storeCall = core.Call{Kind: core.CallStore, Request: 1 << 33, Tokens: tokens, End: 32, Blocks: []uint32{1, 2}}
var retrieveCall = core.Call{Kind: core.CallRetrieve, Request: 1 << 34, Tokens: tokens, End: 32, Blocks: []uint32{1, 2}}
var finishedCall = core.Call{Kind: core.CallFinished}
var bytesNo = wire.Reply{Data: []byte{}}
var bytesYes = wire.Reply{OK: true, Data: []byte{}}

func (r *rig) store() {
	r.step(core.Input{Kind: core.InputCall, Call: &storeCall})
	r.end(bytesYes)
}

func (r *rig) retrieve() {
	r.step(core.Input{Kind: core.InputCall, Call: &retrieveCall})
	r.end(bytesNo)
}

func (r *rig) end(reply wire.Reply) {
	for len(r.out.Sends) > 0 {
		r.answer(reply)
	}
	r.step(core.Input{Kind: core.InputCall, Call: &finishedCall})
}

func TestTheHotPathAllocatesNothing(t *testing.T) {
	for _, design := range []core.Protections{core.Document(), core.Hardened()} {
		r := newRig(t, core.ModeServerDriven, design)
		for name, act := range map[string]func(){"ping": r.ping, "store": r.store, "retrieve": r.retrieve} {
			act()
			if n := testing.AllocsPerRun(200, act); n != 0 {
				t.Errorf("%s: a %s allocates %g times", design, name, n)
			}
		}
	}
	// The maps of PREPARE replies are the codec's to pay for.
	r := newRig(t, core.ModeEngineDriven, core.Document())
	for name, c := range map[string]struct {
		act   func()
		t     wire.Type
		reply wire.Reply
	}{"store": {r.store, wire.PrepareStore, bytesYes}, "retrieve": {r.retrieve, wire.PrepareRetrieve, bytesNo}} {
		var decoded wire.Reply
		codec := func() {
			r.reply.Reset()
			wire.EncodeReply(&r.reply, []byte{1}, []byte{byte(c.t)}, c.t, &c.reply)
			wire.DecodeReply(&r.reply, &decoded)
		}
		codec()
		c.act()
		if n, own := testing.AllocsPerRun(200, c.act), testing.AllocsPerRun(200, codec); n > own {
			t.Errorf("an engine-driven %s allocates %g times, %g of them in the codec", name, n, own)
		}
	}
}

// 100,000 workers live in one world: an idle one must stay under a kibibyte.
func TestAnIdleWorkerIsSmall(t *testing.T) {
	const bound = 1024
	n := unsafe.Sizeof(Worker{})
	t.Logf("%d bytes", n)
	if n > bound-64 {
		t.Errorf("a worker is %d bytes; with its names that must stay under %d", n, bound)
	}
}

// eachDesign runs act under the document and with every protection.
func eachDesign(b *testing.B, act func(*rig)) {
	for _, design := range []core.Protections{core.Document(), core.Hardened()} {
		b.Run(design.String(), func(b *testing.B) {
			r := newRig(b, core.ModeServerDriven, design)
			b.ReportAllocs()
			for b.Loop() {
				act(r)
			}
		})
	}
}

func BenchmarkPing(b *testing.B) { eachDesign(b, (*rig).ping) }

func BenchmarkStore(b *testing.B) { eachDesign(b, (*rig).store) }

func BenchmarkRetrieve(b *testing.B) { eachDesign(b, (*rig).retrieve) }

// BenchmarkDropped is a submit and its report with no message: the books alone.
func BenchmarkDropped(b *testing.B) {
	r := newRig(b, core.ModeServerDriven, core.Document())
	r.w.healthy = false
	b.ReportAllocs()
	for b.Loop() {
		r.step(core.Input{Kind: core.InputCall, Call: &retrieveCall})
		r.step(core.Input{Kind: core.InputCall, Call: &finishedCall})
	}
}

func BenchmarkNew(b *testing.B) {
	cfg := core.DefaultWorkerConfig()
	b.ReportAllocs()
	for b.Loop() {
		New(cfg)
	}
}
