package wire

import (
	"time"

	"vigil/core"
)

// Request is one request, decoded or to be encoded. Which fields count depends
// on Type; see the request table. It is reused from message to message: Reset
// empties it and keeps its buffers.
type Request struct {
	// UID and RawType are frames 0 and 1 as they came; a reply echoes them byte
	// for byte. When encoding, UIDNumber and Type are used instead.
	UID, RawType []byte
	UIDNumber    uint64
	Type         Type
	Name         []byte // Named: the operation's name

	// Failure is why the message is refused, NoFailure where it decoded.
	// Decoding stops at the first; Type is set where the type frame was read.
	Failure core.Failure

	Instance core.InstanceID
	// NoInstance is true for a PING with nil: an untracked prober.
	NoInstance bool
	// Legacy is true for a PING of before liveness (A9): it has no payload.
	// Only a Legacy decoder sets it.
	Legacy bool
	// OldNumber is true where the request came under the other dialect's
	// number: a rope register as 25, a rope drop as 26, GET_EXPERIMENTAL as 32.
	// A rope drop under it is to be served only for an id that has rope state,
	// for 26 had another meaning too (PROTOCOL, section 0).
	OldNumber bool

	Key       Key
	TPSize    int64
	Blocks    []uint32 // block ids, group after group
	BlockEnds []int    // BlockEnds[g] is where group g stops in Blocks
	Event     []byte   // opaque device event
	Skip      int64    // leading tokens of a retrieve to leave untouched
	RequestID []byte
	Timeout   time.Duration
	Data      []byte // COMMIT_STORE: inline bytes, opaque
	// Parcel is the shell's number for Data that it keeps, 0 where it keeps
	// none, and ParcelBytes how long they are. Not on the wire.
	Parcel, ParcelBytes uint64

	Model     []byte
	WorldSize int64
	Engine    []byte // "vllm", "sglang", "trtllm", "mock", "atom"
	Hints     Hints
	Exports   []core.Export
	Groups    []core.Group

	// Engine-driven registration.
	BlockSize, NumLayers, HiddenDim int64
	DType                           []byte
	UseMLA                          bool

	// Rope registration.
	HeadSize int64
	Neox     bool

	// ReportBlockAllocation: how many records; their content is not kept.
	Records int

	// Settle: transfers with a smaller uid are wanted no more.
	Before uint64

	payloads int    // payload frames that came
	part     int    // part in which decoding stopped
	why      string // what is wrong there

	buf *buffers // kept from message to message
}

// buffers are the backing of what decoding fills. The exported slices alias
// them after Decode only, so that a caller may point those at its own memory
// to encode. They lie apart so that Reset clears little.
type buffers struct {
	ints      []int64 // Exports' shapes and Groups' layers
	tokens    []uint32
	blocks    []uint32
	blockEnds []int
	exports   []core.Export
	groups    []core.Group
	chunks    []core.ChunkKey
	hasher    Hasher
}

// Reset empties r and keeps its buffers: those that Decode fills, and Blocks
// and BlockEnds for callers that append to them before encoding.
func (r *Request) Reset() {
	blocks, ends, buf := r.Blocks[:0], r.BlockEnds[:0], r.buf
	*r = Request{}
	r.Blocks, r.BlockEnds, r.buf = blocks, ends, buf
}

// buffers returns the emptied buffers.
func (r *Request) buffers() *buffers {
	if r.buf == nil {
		r.buf = new(buffers)
	}
	b := r.buf
	b.ints, b.tokens, b.blocks, b.blockEnds = b.ints[:0], b.tokens[:0], b.blocks[:0], b.blockEnds[:0]
	b.exports, b.groups, b.chunks = b.exports[:0], b.groups[:0], b.chunks[:0]
	return b
}

// refuse says why the message is refused and where decoding stopped.
func (r *Request) refuse(f core.Failure, part int, why string) {
	r.Failure, r.part, r.why = f, part, why
}

// Hints is what a registration says of its memory's layout.
type Hints struct {
	KVLayout       []byte // "NHD", "HND" or others; opaque
	NumKVHeads     int64
	TokensPerBlock int64
	HeadDim        int64
}

// Key names a range of a prompt: the whole prefix is sent each time.
type Key struct {
	Model     []byte
	WorldSize int64
	Worker    int64 // -1 where nil: a look-up for all ranks
	Tokens    []uint32
	Start     int64
	End       int64
	RequestID []byte
	Salt      []byte
	// Chunks are the whole chunks of [Start, End), each with its whole prefix
	// hashed; set by decoding, not encoded. Worker is copied from the key (0
	// where it is nil).
	Chunks []core.ChunkKey
}

// Reply is one reply, decoded or to be encoded; Type says which fields count.
type Reply struct {
	UIDNumber uint64
	Type      Type
	// Nil is true where there is no result frame, or its content is nil.
	Nil bool
	// Refusal is why the request was refused, where the server says so, and
	// FailUnknownVerdict where it says so in a word that we do not know; set by
	// decoding, EncodeRefusal writes it. The other fields then mean no.
	Refusal core.Failure

	// Ping is what the answer to a PING says beyond OK.
	Ping PingVerdict

	// Window is, behind a register, how long the server lets a worker be silent;
	// 0 where it does not say.
	Window time.Duration

	OK      bool   // bool results; the bool of (bytes, bool); success of a map
	Data    []byte // the bytes of (bytes, bool); data of a map
	Int     int64  // int results
	Text    []byte // str results
	ShmName []byte // engine-driven registration
	Pool    int64  // engine-driven registration: bytes of the pool
	Slots   []PoolSlot
	// Indices are, for a PREPARE_STORE, which chunks the slots are for, and for
	// a Settle the uids of the transfers that are still under way.
	Indices []int64
	// Inline is true where the context of a PREPARE_STORE is an empty map: the
	// worker sends its data with the commit instead of through the pool.
	Inline bool
	// Name and Raw are set for a named operation: its name and its result
	// frame, for whoever sent it to decode.
	Name, Raw []byte

	ints    []int64
	indices []int64
	slots   []PoolSlot
}

// PoolSlot is one place in the server's shared pool that an engine-driven
// worker reads or writes itself.
type PoolSlot struct {
	Offset, Length int64
	Shape          []int64
	DType          []byte
}

// Decoder decodes requests. It holds settings only, and may be shared.
type Decoder struct {
	ChunkTokens int  // tokens in one chunk, for Key.Chunks
	Legacy      bool // PING has no payload (scenario A9)
}
