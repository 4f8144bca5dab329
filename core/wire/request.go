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

	Key       Key
	TPSize    int64
	Blocks    []uint32 // block ids, group after group
	BlockEnds []int    // BlockEnds[g] is where group g stops in Blocks
	Event     []byte   // opaque device event
	Skip      int64    // leading tokens of a retrieve to leave untouched
	RequestID []byte
	Timeout   time.Duration
	Data      []byte // COMMIT_STORE: inline bytes, opaque

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

	ints     []int64  // backing of Exports' shapes and Groups' layers
	tokens   []uint32 // backing of Key.Tokens
	chunks   []core.ChunkKey
	scratch  []byte
	groupOff []int
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

	OK      bool   // bool results; the bool of (bytes, bool); success of a map
	Data    []byte // the bytes of (bytes, bool); data of a map
	Int     int64  // int results
	Text    []byte // str results
	ShmName []byte // engine-driven registration
	Pool    int64  // engine-driven registration: bytes of the pool
	Slots   []PoolSlot
	Indices []int64 // PREPARE_STORE: which chunks the slots are for
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
