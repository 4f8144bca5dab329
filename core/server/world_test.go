package server

import (
	"slices"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// world is what a test plays against a Server: it carries every request over
// the real codec, keeps what the server asked for, and ends memory operations
// when the test says so (at once, by default).
type world struct {
	t       testing.TB
	s       *Server
	now     core.Time
	out     core.Effects
	log     []core.Record
	timers  []core.ArmEffect
	replies []reply
	opens   []core.OpenOrder
	closes  []core.CloseOrder
	copies  []core.CopyOrder
	left    []core.ExitCode
	uid     uint64
	decoder wire.Decoder
	// holdX leaves operations pending for the test to end.
	holdOpens, holdCloses, holdCopies bool
	spy                               func(core.Time, *core.Input) // sees every input first
}

type reply struct {
	peer core.Peer
	wire.Reply
}

const second = core.Time(time.Second)

func testConfig() core.ServerConfig {
	cfg := core.DefaultServerConfig()
	cfg.ChunkTokens, cfg.L1Bytes, cfg.PoolBytes = 32, 1<<24, 1<<20
	return cfg
}

func newWorld(t testing.TB, cfg core.ServerConfig) *world {
	w := &world{t: t, s: New(cfg), now: 1000 * second, decoder: wire.Decoder{ChunkTokens: cfg.ChunkTokens, Legacy: cfg.Legacy}}
	w.feed(core.Input{Kind: core.InputStart})
	return w
}

// feed gives the server one input and carries out what it asked for.
func (w *world) feed(in core.Input) {
	if w.spy != nil {
		w.spy(w.now, &in)
	}
	w.out.Reset()
	w.s.Step(w.now, &in, &w.out)
	var ended []core.Input
	for _, ref := range w.out.Order {
		switch ref.Kind {
		case core.EffectRecord:
			r := w.out.Records[ref.Index]
			r.At = w.now
			w.log = append(w.log, r)
		case core.EffectSend:
			send := w.out.Sends[ref.Index]
			var r reply
			r.peer = send.Peer
			var frames core.Frames
			frames.CopyFrom(w.out.Message(send))
			if why := wire.DecodeReply(&frames, &r.Reply); why != core.NoFailure {
				w.t.Fatalf("a reply that no client can read: %v", why)
			}
			w.replies = append(w.replies, r)
		case core.EffectArm:
			a := w.out.Arms[ref.Index]
			w.disarm(a.Key)
			w.timers = append(w.timers, a)
		case core.EffectDisarm:
			w.disarm(w.out.Disarms[ref.Index])
		case core.EffectOpen:
			o := w.out.Opens[ref.Index]
			if w.holdOpens {
				w.opens = append(w.opens, o)
			} else {
				ended = append(ended, core.Input{Kind: core.InputOpened, Op: o.Op, Bytes: bytesOf(o.Exports)})
			}
		case core.EffectClose:
			o := w.out.Closes[ref.Index]
			if w.holdCloses {
				w.closes = append(w.closes, o)
			} else {
				ended = append(ended, core.Input{Kind: core.InputReleased, Op: o.Op})
			}
		case core.EffectCopy:
			o := *w.out.CopyAt(ref.Index)
			o.Chunks, o.Blocks = slices.Clone(o.Chunks), slices.Clone(o.Blocks)
			w.copies = append(w.copies, o)
			if !w.holdCopies {
				ended = append(ended, core.Input{Kind: core.InputCopied, Op: o.Op})
			}
		case core.EffectExit:
			w.left = append(w.left, w.out.Exit)
		}
	}
	for _, in := range ended {
		w.feed(in)
	}
}

func bytesOf(exports []core.Export) uint64 {
	var n uint64
	for i := range exports {
		n += exports[i].Bytes
	}
	return n
}

func (w *world) disarm(key core.TimerKey) {
	w.timers = slices.DeleteFunc(w.timers, func(a core.ArmEffect) bool { return a.Key == key })
}

// until lets time pass to at, firing what is due on the way.
func (w *world) until(at core.Time) {
	for {
		next := -1
		for i, a := range w.timers {
			if a.At <= at && (next < 0 || a.At < w.timers[next].At) {
				next = i
			}
		}
		if next < 0 {
			w.now = max(w.now, at)
			return
		}
		w.fire(w.timers[next].Key)
	}
}

// fire fires one armed timer, whatever else is due.
func (w *world) fire(key core.TimerKey) {
	w.t.Helper()
	for _, a := range w.timers {
		if a.Key == key {
			w.now = max(w.now, a.At)
			w.disarm(key)
			w.feed(core.Input{Kind: core.InputTimer, Timer: key})
			return
		}
	}
	w.t.Fatalf("timer %v is not armed", key)
}

func (w *world) armed(kind core.TimerKind) bool {
	return slices.ContainsFunc(w.timers, func(a core.ArmEffect) bool { return a.Key.Kind == kind })
}

// after lets a time pass.
func (w *world) after(d time.Duration) { w.until(w.now.Add(d)) }

// send carries one request over the codec.
func (w *world) send(peer core.Peer, r wire.Request) {
	w.t.Helper()
	w.sendAt(peer, r, w.now)
}

func (w *world) sendAt(peer core.Peer, r wire.Request, arrived core.Time) {
	w.t.Helper()
	r.UIDNumber = w.uid
	w.uid++
	var f core.Frames
	wire.EncodeRequest(&f, &r)
	w.frames(peer, &f, arrived)
}

func (w *world) frames(peer core.Peer, f *core.Frames, arrived core.Time) {
	var decoded wire.Request
	w.decoder.Decode(f, &decoded)
	w.feed(core.Input{Kind: core.InputFrames, Peer: peer, Arrived: arrived, Frames: f, Decoded: &decoded})
	// The shell uses its buffers again: whatever still looks at them is wrong.
	for i := range f.Bytes {
		f.Bytes[i] = 0xee
	}
	for i := range decoded.Blocks {
		decoded.Blocks[i] = 1 << 31
	}
	for i := range decoded.Key.Chunks {
		decoded.Key.Chunks[i] = core.ChunkKey{}
	}
}

// records returns what was written of a kind about an instance (0: any).
func (w *world) records(kind core.RecordKind, id core.InstanceID) []core.Record {
	var found []core.Record
	for _, r := range w.log {
		if r.Kind == kind && (id == 0 || r.Instance == id) {
			found = append(found, r)
		}
	}
	return found
}

// one returns the only record of a kind about an instance.
func (w *world) one(kind core.RecordKind, id core.InstanceID) core.Record {
	w.t.Helper()
	found := w.records(kind, id)
	if len(found) != 1 {
		w.t.Fatalf("%v of %d: %d records, want 1", kind, id, len(found))
	}
	return found[0]
}

func (w *world) count(kind core.RecordKind, id core.InstanceID, want int) {
	w.t.Helper()
	if got := len(w.records(kind, id)); got != want {
		w.t.Fatalf("%v of %d: %d records, want %d", kind, id, got, want)
	}
}

// last returns the newest reply.
func (w *world) last() reply {
	w.t.Helper()
	if len(w.replies) == 0 {
		w.t.Fatal("no reply")
	}
	return w.replies[len(w.replies)-1]
}

// quiet runs f and fails if the server answered anything.
func (w *world) quiet(f func()) {
	w.t.Helper()
	before := len(w.replies)
	f()
	if len(w.replies) != before {
		w.t.Fatalf("the server answered %v", w.replies[before:])
	}
}

func (w *world) context(kind core.ContextKind, id core.InstanceID) ContextView {
	w.t.Helper()
	v, ok := w.s.Context(kind, id)
	if !ok {
		w.t.Fatalf("no %v context of %d", kind, id)
	}
	return v
}

func (w *world) gone(kind core.ContextKind, id core.InstanceID) {
	w.t.Helper()
	if _, ok := w.s.Context(kind, id); ok {
		w.t.Fatalf("%d still has a %v context", id, kind)
	}
}

// The requests of a test's workers. The peer of a worker is its id.

const (
	testModel     = "model"
	testBlocks    = 64
	testBlockSize = 4096
	testLayers    = 2
	// testChunkBytes is one chunk of 32 tokens: 2 blocks in each layer.
	testChunkBytes = 2 * testLayers * testBlockSize
)

func registerRequest(id core.InstanceID, model string) wire.Request {
	r := wire.Request{
		Type: wire.RegisterKVCache, Instance: id, Model: []byte(model), WorldSize: 1, Engine: []byte("vllm"),
		Hints:  wire.Hints{KVLayout: []byte("NHD")},
		Groups: []core.Group{{Layers: []int64{0, 1}, TokensPerBlock: 16, SlidingWindow: -1, Physical: 1}},
	}
	for range testLayers {
		r.Exports = append(r.Exports, core.Export{
			Kind: core.HostSHM, Handle: []byte("/memory"), Device: []byte("cpu"), DType: []byte("float16"),
			Bytes: testBlocks * testBlockSize, Blocks: testBlocks, BlockBytes: testBlockSize, Shape: []int64{testBlocks, testBlockSize / 2},
		})
	}
	return r
}

func (w *world) register(id core.InstanceID) {
	w.t.Helper()
	w.send(core.Peer(id), registerRequest(id, testModel))
	w.until(w.now)
}

func engineRequest(id core.InstanceID) wire.Request {
	return wire.Request{
		Type: wire.RegisterEngineDriven, Instance: id, Model: []byte(testModel), WorldSize: 1,
		BlockSize: 16, NumLayers: 2, HiddenDim: 64, DType: []byte("float16"),
	}
}

func (w *world) registerEngine(id core.InstanceID) {
	w.t.Helper()
	w.send(core.Peer(id), engineRequest(id))
}

func pingRequest(id core.InstanceID) wire.Request {
	return wire.Request{Type: wire.Ping, Instance: id}
}

func (w *world) ping(id core.InstanceID) {
	w.t.Helper()
	w.send(core.Peer(id), pingRequest(id))
}

func idRequest(t wire.Type, id core.InstanceID) wire.Request {
	return wire.Request{Type: t, Instance: id}
}

// keyOf is a key over n whole chunks of a prompt; prompts differ in their
// first token.
func keyOf(prompt uint32, n int, request string) wire.Key {
	tokens := make([]uint32, 32*n)
	for i := range tokens {
		tokens[i] = prompt*1000 + uint32(i)
	}
	return wire.Key{Model: []byte(testModel), WorldSize: 1, Tokens: tokens, End: int64(len(tokens)), RequestID: []byte(request)}
}

func chunksOf(k wire.Key) []core.ChunkKey {
	var h wire.Hasher
	return h.Chunks(nil, &k, 32)
}

func transferRequest(t wire.Type, id core.InstanceID, prompt uint32, n int) wire.Request {
	r := wire.Request{Type: t, Instance: id, Key: keyOf(prompt, n, "r"), Event: []byte("event")}
	for b := range 2 * n {
		r.Blocks = append(r.Blocks, uint32(b))
	}
	r.BlockEnds = []int{len(r.Blocks)}
	return r
}

func (w *world) store(id core.InstanceID, prompt uint32, n int) {
	w.t.Helper()
	w.send(core.Peer(id), transferRequest(wire.Store, id, prompt, n))
}

func (w *world) retrieve(id core.InstanceID, prompt uint32, n int) {
	w.t.Helper()
	w.send(core.Peer(id), transferRequest(wire.Retrieve, id, prompt, n))
}

func lookupRequest(request string, prompt uint32, n int) wire.Request {
	r := wire.Request{Type: wire.Lookup, Key: keyOf(prompt, n, request), TPSize: 1}
	r.Key.Worker = -1
	return r
}
