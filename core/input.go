package core

// InputKind says which fields of an Input are set.
type InputKind uint8

// What a world can tell a machine.
const (
	InputStart    InputKind = iota // first input of a life; Entropy is set
	InputFrames                    // a message: Peer, Arrived, Frames, and at the server Decoded
	InputClosed                    // the connection Peer closed at the host
	InputTimer                     // Timer fired
	InputOpened                    // the open Op ended: Failure, Bytes
	InputReleased                  // the close Op ended: Failure
	InputCopied                    // the copy Op ended: Failure
	InputExited                    // the process behind the connection Peer is proven dead
	InputCall                      // worker only: the engine asks something, Call
	InputStop                      // shut down in order
	inputKindEnd                   // not a kind
)

var inputKindNames = [inputKindEnd]string{
	"start", "frames", "closed", "timer", "opened", "released", "copied", "exited", "call", "stop",
}

// String is the kind's name in reports.
func (k InputKind) String() string { return nameOf(inputKindNames[:], int(k)) }

// Input is one thing that happened, as data. Everything a machine knows of the
// world comes in one. Slices and pointers are valid during the step only.
type Input struct {
	Kind     InputKind
	Timer    TimerKey
	Failure  Failure
	Peer     Peer
	Arrived  Time // frames: when they reached this host, on this process's clock
	Op       Op
	Bytes    uint64 // opened: bytes now charged to the server for the mapping
	Instance InstanceID
	Entropy  [16]byte
	Frames   *Frames
	// Decoded is the *wire.Request that the shell decoded from Frames. Decoding
	// and hashing a long key is a function of the message alone, so a shell may
	// do it away from the owner's goroutine before the message enters.
	Decoded any
	Call    *Call
}

// CallKind says what an engine asks of its worker adapter.
type CallKind uint8

// The calls of an engine.
const (
	CallRegister CallKind = iota // register_kv_caches: Exports, Groups
	CallStore                    // submit a store: Request, Tokens, Start, End, Blocks
	CallRetrieve                 // submit a retrieve: the same, and Skip
	CallFinished                 // get_finished: ask what ended
	CallShutdown                 // leave in order
	callKindEnd                  // not a kind
)

var callKindNames = [callKindEnd]string{"register", "store", "retrieve", "finished", "shutdown"}

// String is the call's name in reports.
func (k CallKind) String() string { return nameOf(callKindNames[:], int(k)) }

// Call is one call of an engine. Slices are valid during the step only.
type Call struct {
	Kind    CallKind
	Request RequestID
	Tokens  []uint32 // the whole prefix up to End
	Start   int      // first token of the range; a multiple of the chunk
	End     int      // one past the last token of the range
	Skip    int      // retrieve: leading tokens of the range to leave untouched
	Blocks  []uint32 // block ids for the range, group after group
	Exports []Export
	Groups  []Group
}

// Group is one group of layers that share a block table.
type Group struct {
	ID             int64
	Layers         []int64
	TokensPerBlock int64
	SlidingWindow  int64 // tokens; -1 is none
	Physical       int64 // physical blocks per engine block, 1 where unsaid
}
