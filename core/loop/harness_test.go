package loop

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"vigil/core"
	"vigil/core/wire"
)

const (
	testChunk      = 32 // tokens
	testBlocks     = 64
	testBlockBytes = 1024
	testChunkBytes = 2 * testBlockBytes // 16 tokens a block
)

func testConfig() core.ServerConfig {
	cfg := core.DefaultServerConfig()
	cfg.ChunkTokens, cfg.L1Bytes, cfg.PoolBytes = testChunk, 1<<20, 1<<16
	return cfg
}

// sent is a message that a server sent.
type sent struct {
	peer   core.Peer
	frames core.Frames
}

// wireTo is a transport of channels.
type wireTo chan sent

func (w wireTo) Send(peer core.Peer, f *core.Frames) {
	var s sent
	s.peer = peer
	s.frames.CopyFrom(f)
	w <- s
}

// deviceMemory is a memory backend whose mappings are byte slices by handle.
type deviceMemory struct {
	slots Slots
	ended func(core.Input)

	mu       sync.Mutex
	devices  map[string][]byte
	mappings map[core.Mapping][]byte
	held     []func() // operations that wait, where hold says so
	hold     func(kind core.InputKind) bool
	opened   int
	closed   int
}

func (d *deviceMemory) do(kind core.InputKind, run func() core.Input) {
	d.mu.Lock()
	hold := d.hold != nil && d.hold(kind)
	end := func() { go func() { d.ended(run()) }() }
	if hold {
		d.held = append(d.held, end)
	}
	d.mu.Unlock()
	if !hold {
		end()
	}
}

func (d *deviceMemory) release() {
	d.mu.Lock()
	held := d.held
	d.held, d.hold = nil, nil
	d.mu.Unlock()
	for _, end := range held {
		end()
	}
}

func (d *deviceMemory) device(handle string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.devices[handle] == nil {
		d.devices[handle] = make([]byte, testBlocks*testBlockBytes)
	}
	return d.devices[handle]
}

func (d *deviceMemory) Open(o *core.OpenOrder) {
	op, mapping, handle := o.Op, o.Mapping, string(o.Exports[0].Handle)
	d.do(core.InputOpened, func() core.Input {
		b := d.device(handle)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.mappings[mapping] = b
		d.opened++
		return core.Input{Kind: core.InputOpened, Op: op, Bytes: uint64(len(b))}
	})
}

func (d *deviceMemory) Close(o *core.CloseOrder) {
	op, mapping := o.Op, o.Mapping
	d.do(core.InputReleased, func() core.Input {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.mappings, mapping)
		d.closed++
		return core.Input{Kind: core.InputReleased, Op: op}
	})
}

func (d *deviceMemory) Copy(o *core.CopyOrder) {
	order := *o
	order.Chunks = append([]core.ChunkCopy(nil), o.Chunks...)
	order.Blocks = append([]uint32(nil), o.Blocks...)
	var slots [][]byte
	for i := range order.Chunks {
		slots = append(slots, d.slots.Slot(order.Chunks[i].Slot))
	}
	d.do(core.InputCopied, func() core.Input {
		d.mu.Lock()
		defer d.mu.Unlock()
		in := core.Input{Kind: core.InputCopied, Op: order.Op}
		b := d.mappings[order.Mapping]
		for i, c := range order.Chunks {
			for j, block := range order.Blocks[c.First : c.First+c.Count] {
				theirs := b[int(block)*testBlockBytes : (int(block)+1)*testBlockBytes]
				if len(slots[i]) != testChunkBytes {
					in.Failure = core.FailCopy
					return in
				}
				ours := slots[i][j*testBlockBytes : (j+1)*testBlockBytes]
				if order.Direction == core.CopyOut {
					copy(ours, theirs)
				} else {
					copy(theirs, ours)
				}
			}
		}
		return in
	})
}

// rig is a running server with everything around it in memory.
type rig struct {
	t       testing.TB
	s       *Server
	out     wireTo
	memory  *deviceMemory
	mock    *clock.Mock
	records []core.Record // the owner's; read after sync
	uid     uint64
}

// newRig starts a server on a mock clock; change edits its options.
func newRig(t testing.TB, change func(*ServerOptions)) *rig {
	t.Helper()
	r := &rig{t: t, out: make(wireTo, 1<<16), mock: clock.NewMock()}
	options := ServerOptions{
		Config: testConfig(), Clock: r.mock, Decoders: 2,
		Memory: func(slots Slots, ended func(core.Input)) (core.Memory, error) {
			r.memory = &deviceMemory{slots: slots, ended: ended, devices: map[string][]byte{}, mappings: map[core.Mapping][]byte{}}
			return r.memory, nil
		},
		Entropy:  func() [16]byte { return [16]byte{1} },
		OnRecord: func(k *core.Record) { r.records = append(r.records, *k) },
	}
	if change != nil {
		change(&options)
	}
	s, err := NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	r.s = s
	s.Start(r.out)
	t.Cleanup(func() {
		if r.memory != nil {
			r.memory.release()
		}
		s.Abort()
		<-s.Done()
	})
	return r
}

func frames(r wire.Request) *core.Frames {
	f := new(core.Frames)
	wire.EncodeRequest(f, &r)
	return f
}

func (r *rig) send(peer core.Peer, q wire.Request) {
	q.UIDNumber = r.uid
	r.uid++
	r.s.Message(peer, r.s.Now(), frames(q))
}

// reply waits for the next message that the server sends.
func (r *rig) reply() (core.Peer, wire.Reply) {
	r.t.Helper()
	select {
	case s := <-r.out:
		var reply wire.Reply
		if why := wire.DecodeReply(&s.frames, &reply); why != core.NoFailure {
			r.t.Fatalf("a reply that no client can read: %v", why)
		}
		return s.peer, reply
	case <-time.After(time.Minute): // far beyond what a loaded machine takes
		r.t.Fatal("no reply")
		panic("unreachable")
	}
}

// ask sends and waits for the answer.
func (r *rig) ask(peer core.Peer, q wire.Request) wire.Reply {
	r.t.Helper()
	r.send(peer, q)
	from, reply := r.reply()
	if from != peer {
		r.t.Fatalf("the answer went to peer %d, not %d", from, peer)
	}
	return reply
}

// sync returns when the owner has taken in everything before.
func (r *rig) sync() Status {
	r.t.Helper()
	v, err := r.s.Status(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// pass lets time pass, a few seconds at a time.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	for step := 5 * time.Second; d > 0; d -= step {
		r.mock.Add(min(d, step))
		r.quiet()
	}
}

// quiet returns when the owner has nothing to do: no timer due and no memory
// operation on its way.
func (r *rig) quiet() {
	r.t.Helper()
	for i := range 200 {
		before := r.sync().Counts.Records
		if i > 0 && i%8 == 0 {
			time.Sleep(time.Millisecond)
		} else {
			runtime.Gosched()
		}
		if r.sync().Counts.Records == before && i > 2 {
			return
		}
	}
}

// decoded waits until the decoders have nothing left, and nothing is counted.
func (r *rig) decoded() {
	r.t.Helper()
	for range 30000 {
		if v := r.sync(); v.Decoding == 0 && v.DecodeBytes == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	r.t.Fatal("the decoders do not get done")
}

// count is how many records of a kind there were.
func (r *rig) count(kind core.RecordKind) int { return int(r.sync().Counts.Records[kind]) }

func registerOf(id core.InstanceID) wire.Request {
	return wire.Request{
		Type: wire.RegisterKVCache, Instance: id, Model: []byte("model"), WorldSize: 1, Engine: []byte("vllm"),
		Hints:   wire.Hints{KVLayout: []byte("NHD")},
		Groups:  groupsOf(),
		Exports: []core.Export{exportOf(id)},
	}
}

func groupsOf() []core.Group {
	return []core.Group{{Layers: []int64{0}, TokensPerBlock: 16, SlidingWindow: -1, Physical: 1}}
}

func exportOf(id core.InstanceID) core.Export {
	return core.Export{
		Kind: core.HostSHM, Handle: []byte(fmt.Sprintf("/memory-%d", id)), Device: []byte("cpu"), DType: []byte("float16"),
		Bytes: testBlocks * testBlockBytes, Blocks: testBlocks, BlockBytes: testBlockBytes, Shape: []int64{testBlocks, testBlockBytes / 2},
	}
}

func engineOf(id core.InstanceID) wire.Request {
	return wire.Request{
		Type: wire.RegisterEngineDriven, Instance: id, Model: []byte("model"), WorldSize: 1,
		BlockSize: 16, NumLayers: 2, HiddenDim: 64, DType: []byte("float16"),
	}
}

func pingOf(id core.InstanceID) wire.Request { return wire.Request{Type: wire.Ping, Instance: id} }

// keyOf is the key of the first n chunks of a prompt.
func keyOf(prompt, n int) wire.Key {
	k := wire.Key{Model: []byte("model"), WorldSize: 1, RequestID: []byte("r"), End: int64(n * testChunk)}
	for i := range n * testChunk {
		k.Tokens = append(k.Tokens, uint32(prompt*1000+i))
	}
	return k
}

func transferOf(t wire.Type, id core.InstanceID, prompt, n int) wire.Request {
	q := wire.Request{Type: t, Instance: id, Key: keyOf(prompt, n), Event: []byte("event")}
	for b := range 2 * n {
		q.Blocks = append(q.Blocks, uint32(b))
	}
	q.BlockEnds = []int{len(q.Blocks)}
	return q
}

// leaks fails a test that leaves goroutines of this package behind.
func leaks(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		var stacks string
		for range 100 {
			buffer := make([]byte, 1<<20)
			stacks = string(buffer[:runtime.Stack(buffer, true)])
			left := 0
			for _, g := range strings.Split(stacks, "\n\n") {
				if strings.Contains(g, "vigil/core/loop.") && !strings.Contains(g, "testing.tRunner") {
					left++
				}
			}
			if left == 0 {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Errorf("goroutines are left:\n%s", stacks)
	})
}
