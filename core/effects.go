package core

// EffectKind says in which list of an Effects the effect lies.
type EffectKind uint8

// What a machine can ask of the world.
const (
	EffectSend EffectKind = iota
	EffectArm
	EffectDisarm
	EffectOpen
	EffectClose
	EffectCopy
	EffectRecord
	EffectTell
	EffectExit
	EffectInline
)

// EffectRef points at one effect; refs are kept in the order of asking.
type EffectRef struct {
	Kind  EffectKind
	Index uint32
}

// SendEffect is a message to send.
type SendEffect struct {
	Peer  Peer
	Index int // of the message in Effects.messages
	// Filled: the shell puts the bytes of Slot into the message's result, for
	// the core holds none.
	Filled bool
	Slot   Slot
}

// InlineEffect says what becomes of data that came inside a message and that
// the shell keeps under a number of its own, the parcel: it is the content of
// Slot from here on, or nobody's.
type InlineEffect struct {
	Parcel uint64
	Slot   Slot
	Keep   bool
}

// ArmEffect is a timer to arm.
type ArmEffect struct {
	Key TimerKey
	At  Time
}

// copyRange is a copy whose chunks and blocks lie in the Effects' own lists.
type copyRange struct {
	order                CopyOrder
	firstChunk, endChunk int
	firstBlock, endBlock int
}

// Effects is what one step asked for: data, in order, in buffers that are
// reused from step to step. One kind of effect is one typed list, so that a
// step pays for what it uses.
type Effects struct {
	Order   []EffectRef
	Sends   []SendEffect
	Arms    []ArmEffect
	Disarms []TimerKey
	Opens   []OpenOrder
	Closes  []CloseOrder
	Records []Record
	Tells   []Tell
	Inlines []InlineEffect
	Exit    ExitCode
	// Scratch is for a machine to keep a buffer in that means nothing between
	// two steps, so that 100,000 machines of one world share one.
	Scratch any

	copies   []copyRange
	chunks   []ChunkCopy
	blocks   []uint32
	messages []*Frames
	used     int // of messages
}

// Reset empties the effects and keeps the buffers.
func (e *Effects) Reset() {
	e.Order = e.Order[:0]
	e.Sends = e.Sends[:0]
	e.Arms = e.Arms[:0]
	e.Disarms = e.Disarms[:0]
	e.Opens = e.Opens[:0]
	e.Closes = e.Closes[:0]
	e.Records = e.Records[:0]
	e.Tells = e.Tells[:0]
	e.Inlines = e.Inlines[:0]
	e.copies = e.copies[:0]
	e.chunks = e.chunks[:0]
	e.blocks = e.blocks[:0]
	e.used = 0
}

func (e *Effects) ref(kind EffectKind, n int) {
	e.Order = append(e.Order, EffectRef{kind, uint32(n - 1)})
}

// Send starts a message to peer and returns it, empty, for the caller to fill
// before its step ends.
func (e *Effects) Send(peer Peer) *Frames {
	if e.used == len(e.messages) {
		e.messages = append(e.messages, new(Frames))
	}
	m := e.messages[e.used]
	m.Reset()
	e.Sends = append(e.Sends, SendEffect{Peer: peer, Index: e.used})
	e.used++
	e.ref(EffectSend, len(e.Sends))
	return m
}

// SendFilled is Send of a reply into which the shell puts a slot's bytes.
func (e *Effects) SendFilled(peer Peer, slot Slot) *Frames {
	m := e.Send(peer)
	s := &e.Sends[len(e.Sends)-1]
	s.Filled, s.Slot = true, slot
	return m
}

// KeepInline makes a parcel the content of a slot.
func (e *Effects) KeepInline(parcel uint64, slot Slot) {
	e.Inlines = append(e.Inlines, InlineEffect{parcel, slot, true})
	e.ref(EffectInline, len(e.Inlines))
}

// DropInline says that nobody wants a parcel.
func (e *Effects) DropInline(parcel uint64) {
	e.Inlines = append(e.Inlines, InlineEffect{Parcel: parcel})
	e.ref(EffectInline, len(e.Inlines))
}

// Message returns the frames of a send.
func (e *Effects) Message(s SendEffect) *Frames { return e.messages[s.Index] }

// Arm asks for a timer input of key at or after at; it moves an armed key.
func (e *Effects) Arm(key TimerKey, at Time) {
	e.Arms = append(e.Arms, ArmEffect{key, at})
	e.ref(EffectArm, len(e.Arms))
}

// Disarm takes back key; no timer input of it follows this step.
func (e *Effects) Disarm(key TimerKey) {
	e.Disarms = append(e.Disarms, key)
	e.ref(EffectDisarm, len(e.Disarms))
}

// Open asks for the exports to be opened; InputOpened answers, or nothing does.
func (e *Effects) Open(o OpenOrder) {
	e.Opens = append(e.Opens, o)
	e.ref(EffectOpen, len(e.Opens))
}

// Close asks for a mapping to be closed; InputReleased answers, or nothing does.
func (e *Effects) Close(o CloseOrder) {
	e.Closes = append(e.Closes, o)
	e.ref(EffectClose, len(e.Closes))
}

// Copy starts a copy; the caller then adds its parts with CopyChunk.
// InputCopied answers, or nothing does.
func (e *Effects) Copy(o CopyOrder) {
	e.copies = append(e.copies, copyRange{
		order:      o,
		firstChunk: len(e.chunks), endChunk: len(e.chunks),
		firstBlock: len(e.blocks), endBlock: len(e.blocks),
	})
	e.ref(EffectCopy, len(e.copies))
}

// CopyChunk adds one chunk's blocks to the copy started last.
func (e *Effects) CopyChunk(slot Slot, group uint16, skip uint32, blocks []uint32) {
	c := &e.copies[len(e.copies)-1]
	e.chunks = append(e.chunks, ChunkCopy{
		Slot: slot, Group: group, Skip: skip,
		First: uint32(len(e.blocks) - c.firstBlock), Count: uint32(len(blocks)),
	})
	e.blocks = append(e.blocks, blocks...)
	c.endChunk, c.endBlock = len(e.chunks), len(e.blocks)
}

// CopyAt returns copy i with its parts. All of it lies in the effects' buffers
// and is valid until the next Reset.
func (e *Effects) CopyAt(i uint32) *CopyOrder {
	c := &e.copies[i]
	c.order.Chunks = e.chunks[c.firstChunk:c.endChunk]
	c.order.Blocks = e.blocks[c.firstBlock:c.endBlock]
	return &c.order
}

// Record writes one event record and returns it for the caller to complete.
// At and Actor are filled in by the driver.
func (e *Effects) Record(kind RecordKind) *Record {
	e.Records = append(e.Records, Record{Kind: kind})
	e.ref(EffectRecord, len(e.Records))
	return &e.Records[len(e.Records)-1]
}

// Tell answers the engine and returns the answer for the caller to complete.
func (e *Effects) Tell(kind TellKind, request RequestID) *Tell {
	if n := len(e.Tells); n < cap(e.Tells) {
		// Keep the block list's buffer of the slot that is reused.
		e.Tells = e.Tells[:n+1]
		e.Tells[n] = Tell{Kind: kind, Request: request, Blocks: e.Tells[n].Blocks[:0]}
	} else {
		e.Tells = append(e.Tells, Tell{Kind: kind, Request: request})
	}
	e.ref(EffectTell, len(e.Tells))
	return &e.Tells[len(e.Tells)-1]
}

// Leave says that the machine is done and its process may exit.
func (e *Effects) Leave(code ExitCode) {
	e.Exit = code
	e.Order = append(e.Order, EffectRef{EffectExit, 0})
}

// ExitCode is why a machine is done.
type ExitCode uint8

// The reasons to be done.
const (
	ExitOrderly ExitCode = iota // everything released
	ExitBounded                 // a bound on time passed with something still held
)

// TellKind says what an engine is told.
type TellKind uint8

// What a worker adapter tells its engine.
const (
	TellRegistered     TellKind = iota // the first registration succeeded
	TellRegisterFailed                 // it did not: the engine fails to start
	TellWake                           // something ended: ask get_finished at the next engine step
	TellFinished                       // answer of get_finished: Request ended, Outcome; Blocks are invalid. Once, but for OutcomeFreed
	TellShutdown                       // shutdown done
	TellWarning                        // Failure says what an operator should know
)

// Outcome is how an engine's request ended.
type Outcome uint8

// The outcomes of a request.
const (
	OutcomeNone    Outcome = iota
	OutcomeStored          // a store ended; whether it was kept is not promised
	OutcomeLoaded          // a retrieve delivered its blocks
	OutcomeMissed          // a retrieve found nothing, its blocks are invalid
	OutcomeFailed          // ended by an error or by degraded mode; a retrieve's blocks are invalid
	OutcomeDropped         // never sent because the server was unhealthy
	OutcomeHeld            // failed, but the server may still carry it out: its blocks stay taken until OutcomeFreed
	OutcomeFreed           // no end: the blocks of a request that ended as held may be used again
	outcomeEnd             // not an outcome
)

var outcomeNames = [outcomeEnd]string{"none", "stored", "loaded", "missed", "failed", "dropped", "held", "freed"}

// String is the outcome's name in reports and scenario files.
func (o Outcome) String() string { return nameOf(outcomeNames[:], int(o)) }

// Tell is one thing that an engine is told.
type Tell struct {
	Kind    TellKind
	Request RequestID
	Outcome Outcome
	Failure Failure
	Store   bool     // finished: it was a store
	Blocks  []uint32 // finished: blocks that hold nothing valid
}
