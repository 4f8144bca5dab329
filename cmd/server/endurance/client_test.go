package endurance_test

import (
	"testing"
	"time"

	zmq4 "github.com/pebbe/zmq4"

	"vigil/core"
	"vigil/core/wire"
	"vigil/realgpu/hostshm"
)

// Why this file: the measuring side. It is as light as the library lets it be,
// so that what is measured is the server, and it can send what no worker would.

// client is a bare DEALER. One goroutine uses it.
type client struct {
	t   testing.TB
	own *zmq4.Context // nil where it is shared
	soc *zmq4.Socket
	uid uint64
}

func dial(t testing.TB, endpoint string) *client {
	t.Helper()
	ctx, err := zmq4.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	c := dialIn(t, ctx, endpoint)
	c.own = ctx
	return c
}

func dialIn(t testing.TB, ctx *zmq4.Context, endpoint string) *client {
	t.Helper()
	soc, err := ctx.NewSocket(zmq4.DEALER)
	if err != nil {
		t.Fatal(err)
	}
	soc.SetLinger(0)
	soc.SetSndhwm(0)
	soc.SetRcvhwm(0)
	soc.SetSndtimeo(20 * time.Second)
	soc.SetRcvtimeo(20 * time.Second)
	if err := soc.Connect(endpoint); err != nil {
		t.Fatal(err)
	}
	return &client{t: t, soc: soc}
}

func (c *client) close() {
	c.soc.Close()
	if c.own != nil {
		c.own.Term()
	}
}

// parts are the frames of a message.
type parts [][]byte

func partsOf(f *core.Frames) (p parts) {
	for i := range f.Len() {
		p = append(p, append([]byte(nil), f.Part(i)...))
	}
	return p
}

func encode(r wire.Request) parts {
	var f core.Frames
	wire.EncodeRequest(&f, &r)
	return partsOf(&f)
}

func (c *client) send(p parts) {
	for i, b := range p {
		flags := zmq4.SNDMORE
		if i == len(p)-1 {
			flags = 0
		}
		if _, err := c.soc.SendBytes(b, flags); err != nil {
			c.t.Fatalf("sending: %v", err)
		}
	}
}

// skip takes a message and looks at nothing.
func (c *client) skip() {
	for more := true; more; {
		if _, err := c.soc.RecvBytes(0); err != nil {
			c.t.Fatalf("receiving: %v", err)
		}
		more, _ = c.soc.GetRcvmore()
	}
}

// receive takes a reply; false where none came in time.
func (c *client) receive(within time.Duration) (wire.Reply, bool) {
	c.t.Helper()
	c.soc.SetRcvtimeo(within)
	defer c.soc.SetRcvtimeo(20 * time.Second)
	list, err := c.soc.RecvMessageBytes(0)
	if err != nil {
		return wire.Reply{}, false
	}
	var f core.Frames
	for _, p := range list {
		f.Append(p)
	}
	var r wire.Reply
	if why := wire.DecodeReply(&f, &r); why != core.NoFailure {
		// The refusal of a type that is no request has no form of ours.
		return wire.Reply{Refusal: why, Raw: list[1]}, true
	}
	return r, true
}

// ask sends a request and waits for its reply.
func (c *client) ask(r wire.Request) wire.Reply {
	c.t.Helper()
	c.uid++
	r.UIDNumber = c.uid
	c.send(encode(r))
	reply, ok := c.receive(20 * time.Second)
	if !ok {
		c.t.Fatalf("%s has no answer", r.Type)
	}
	if reply.UIDNumber != c.uid {
		c.t.Fatalf("%s: the answer to %d, not to %d", r.Type, reply.UIDNumber, c.uid)
	}
	return reply
}

func pingOf(id core.InstanceID) wire.Request {
	return wire.Request{Type: wire.Ping, Instance: id}
}

// engineOf registers an engine-driven instance, which has no memory of its own.
func engineOf(id core.InstanceID) wire.Request {
	return wire.Request{
		Type: wire.RegisterEngineDriven, Instance: id, Model: []byte("m"), WorldSize: 1,
		BlockSize: blockTokens, NumLayers: 2, HiddenDim: 128, DType: []byte("float16"),
	}
}

// The shape of the memory that these clients export: pages of 16 tokens, the
// server's chunks of 256.
const (
	blockTokens = 16
	chunkTokens = 256
	chunkBlocks = chunkTokens / blockTokens
)

// memory is a client's exported memory: tensors of blocks in one segment.
type memory struct {
	*hostshm.Segment
	layers, blocks, blockBytes int
}

func newMemory(t testing.TB, layers, blocks, blockBytes int) *memory {
	t.Helper()
	name, err := hostshm.NewName("vigil-kv")
	if err != nil {
		t.Fatal(err)
	}
	s, err := hostshm.Create("", name, int64(layers*blocks*blockBytes))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &memory{s, layers, blocks, blockBytes}
}

func (m *memory) register(id core.InstanceID) wire.Request {
	r := wire.Request{Type: wire.RegisterKVCache, Instance: id, Model: []byte("m"), WorldSize: 1, Engine: []byte("vllm")}
	group := core.Group{TokensPerBlock: blockTokens, SlidingWindow: -1, Physical: 1}
	tensor := uint64(m.blocks * m.blockBytes)
	for l := range m.layers {
		r.Exports = append(r.Exports, m.Export(core.Export{
			Offset: uint64(l) * tensor, Bytes: tensor, Blocks: uint32(m.blocks), BlockBytes: uint32(m.blockBytes),
			DType: []byte("float16"), Shape: []int64{int64(m.blocks), 2, blockTokens, 1, int64(m.blockBytes / (4 * blockTokens))},
		}))
		group.Layers = append(group.Layers, int64(l))
	}
	r.Groups = []core.Group{group}
	return r
}

// afterRegister is above the uid of every register of a test: a client's uids
// count up, and a transfer with a lower one than its instance's register is
// taken for an earlier context's (B21).
const afterRegister = 1 << 20

// transferOf stores or retrieves so many chunks of a prompt that nobody else
// has: its first token is the serial. The blocks begin at from.
func transferOf(t wire.Type, id core.InstanceID, serial uint64, chunks, from int) wire.Request {
	r := wire.Request{Type: t, UIDNumber: afterRegister + serial, Instance: id, Event: make([]byte, 64)}
	r.Key = wire.Key{Model: []byte("m"), WorldSize: 1, End: int64(chunks * chunkTokens), RequestID: []byte("r"), Tokens: make([]uint32, chunks*chunkTokens)}
	r.Key.Tokens[0], r.Key.Tokens[1] = uint32(serial), uint32(serial>>32)
	for i := 2; i < len(r.Key.Tokens); i++ {
		r.Key.Tokens[i] = uint32(i*2654435761) % 150_000
	}
	for b := range chunks * chunkBlocks {
		r.Blocks = append(r.Blocks, uint32(from+b))
	}
	r.BlockEnds = []int{len(r.Blocks)}
	return r
}
