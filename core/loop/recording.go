package loop

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
	"time"

	"vigil/core"
	"vigil/core/server"
	"vigil/core/wire"
)

// The recording: every input that the core was fed, in segment files of one
// folder. A segment is a magic line and records; a record is
//
//	4 bytes  length of the body, little-endian
//	4 bytes  CRC-32C of the body
//	body     one byte that says what it is, then that
//
// The first record is a head (JSON), the second a snapshot of the core, then
// come inputs, and in the end an end. Each input carries the running digest of
// everything that the core had asked for in this segment before it, so a
// replay that differs is caught at the very input. A message is recorded as
// the core reads it: decoded, with its chunks' hashes and without its tokens
// and inline data.
//
// What a kill -9 leaves is good up to the last whole record that reached the
// system: the owner hands records over in memory, and a writer brings them to
// the file at once, so the last few milliseconds may be missing.

// The bounds and defaults of a recording.
const (
	// DefaultSegmentBytes is when a new segment begins; a segment is also at
	// least snapshotShare times as long as its snapshot.
	DefaultSegmentBytes = 64 << 20
	snapshotShare       = 4
	// DefaultKeep is how many segments stay; the oldest goes first.
	DefaultKeep = 16
	// RecordingBacklog bounds what waits for the disk. Beyond it inputs are not
	// recorded until the disk has caught up; then a new segment begins.
	RecordingBacklog = 64 << 20
	// recordHead is the length and the sum before each body.
	recordHead = 8
)

const (
	magic          = "vigil recording 1\n"
	segmentPattern = "segment-*.vigil"
)

// What a body is.
const (
	bodyHead = 1 + iota
	bodySnapshot
	bodyInput
	bodyEnd
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// RecordingOptions is where and how long a recording is.
type RecordingOptions struct {
	Dir          string // made where it is not there, for this user alone
	SegmentBytes int64  // 0 is DefaultSegmentBytes
	Keep         int    // segments; 0 is DefaultKeep, negative keeps all
}

// SegmentHead is the first record of a segment.
type SegmentHead struct {
	Segment   int    `json:"segment"`     // from 1, as in the file's name
	Life      uint64 `json:"life"`        // which server; segments of one life belong together
	First     uint64 `json:"first_input"` // number of the first input, from 0 in a life
	Continues bool   `json:"continues"`   // nothing is missing since the segment before
	Started   int64  `json:"started_unix_ns"`
	At        int64  `json:"at_ns"`
	TimeScale int64  `json:"time_scale"`
}

// RecordingStatus is how a recording fares.
type RecordingStatus struct {
	Segment int
	Inputs  uint64 // recorded
	Lost    uint64 // not recorded, since the disk did not keep up
	Waiting int    // bytes
	Err     string // why it ended early; empty while it goes on
}

// Recording is the writer of a recording's files. Make one for each server.
type Recording struct {
	dir   string
	limit int64
	keep  int
	next  int // number of the next segment

	mu      sync.Mutex
	blocks  []block // what the writer has to do, in order
	waiting int     // bytes in blocks
	closed  bool
	failed  error
	wake    chan struct{}
	done    chan struct{}
}

// block is bytes for one segment; a positive segment begins that one first.
type block struct {
	segment int
	bytes   []byte
}

// NewRecording begins to write into a folder, behind what is there.
func NewRecording(options RecordingOptions) (*Recording, error) {
	if err := os.MkdirAll(options.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	r := &Recording{
		dir: options.Dir, limit: options.SegmentBytes, keep: options.Keep,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if r.limit <= 0 {
		r.limit = DefaultSegmentBytes
	}
	if r.keep == 0 {
		r.keep = DefaultKeep
	}
	there, err := segments(options.Dir)
	if err != nil {
		return nil, err
	}
	r.next = 1
	if n := len(there); n > 0 {
		r.next = there[n-1].number + 1
	}
	probe, err := os.CreateTemp(options.Dir, ".probe-*")
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	probe.Close()
	os.Remove(probe.Name())
	go r.run()
	return r, nil
}

type segmentFile struct {
	path   string
	number int
}

// segments lists the segments of a folder in their order.
func segments(dir string) ([]segmentFile, error) {
	names, err := filepath.Glob(filepath.Join(dir, segmentPattern)) // sorted
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	var list []segmentFile
	for _, path := range names {
		var n int
		if _, err := fmt.Sscanf(filepath.Base(path), "segment-%d.vigil", &n); err == nil && n > 0 && filepath.Base(path) == segmentName(n) {
			list = append(list, segmentFile{path, n})
		}
	}
	return list, nil
}

func segmentName(n int) string { return fmt.Sprintf("segment-%09d.vigil", n) }

// hand gives the writer bytes; it copies nothing and waits for nobody. It
// returns how many bytes wait.
func (r *Recording) hand(b block) int {
	r.mu.Lock()
	if r.closed || r.failed != nil {
		r.mu.Unlock()
		return 0
	}
	r.blocks = append(r.blocks, b)
	r.waiting += len(b.bytes)
	waiting := r.waiting
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return waiting
}

func (r *Recording) state() (waiting int, failed error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting, r.failed
}

// Close writes what waits and ends the recording. It may be called again.
func (r *Recording) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	<-r.done
	_, err := r.state()
	return err
}

// run is the writer.
func (r *Recording) run() {
	defer close(r.done)
	var file *os.File
	defer func() {
		if file != nil {
			file.Close()
		}
	}()
	for {
		r.mu.Lock()
		blocks, closed, failed := r.blocks, r.closed, r.failed
		r.blocks = nil
		r.mu.Unlock()
		if len(blocks) == 0 {
			if closed {
				return
			}
			<-r.wake
			continue
		}
		for _, b := range blocks {
			if failed == nil {
				file, failed = r.write(file, b)
			}
			giveBuffer(b.bytes)
			r.mu.Lock()
			r.waiting -= len(b.bytes)
			r.failed = failed
			r.mu.Unlock()
		}
	}
}

func (r *Recording) write(file *os.File, b block) (*os.File, error) {
	if b.segment > 0 {
		if file != nil {
			if err := file.Close(); err != nil {
				return nil, fmt.Errorf("recording: %w", err)
			}
		}
		r.prune(b.segment)
		var err error
		file, err = os.OpenFile(filepath.Join(r.dir, segmentName(b.segment)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, fmt.Errorf("recording: %w", err)
		}
	}
	if file == nil {
		return nil, errors.New("recording: no segment")
	}
	if _, err := file.Write(b.bytes); err != nil {
		return file, fmt.Errorf("recording: %w", err)
	}
	return file, nil
}

// prune makes room for segment n.
func (r *Recording) prune(n int) {
	if r.keep < 0 {
		return
	}
	there, err := segments(r.dir)
	if err != nil {
		return
	}
	for _, s := range there {
		if s.number <= n-r.keep {
			os.Remove(s.path)
		}
	}
}

var buffers = sync.Pool{}

func takeBuffer() []byte {
	if b, ok := buffers.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, 64<<10)
}

func giveBuffer(b []byte) {
	if cap(b) <= 1<<20 {
		buffers.Put(&b)
	}
}

// tape is the owner's side of a recording: a core.Machine around the server
// that also digests what each step asks for.
type tape struct {
	recording *Recording
	machine   *server.Server
	pace      *pace

	life    uint64
	inputs  uint64 // of the life, recorded or not
	kept    uint64
	lost    uint64
	losing  bool
	segment int
	size    int64 // of the segment so far
	limit   int64
	digest  core.Digest // of the segment so far
	buffer  []byte      // records on their way to the writer
}

func newTape(r *Recording, m *server.Server, p *pace) *tape {
	return &tape{recording: r, machine: m, pace: p}
}

// Step is the server's, and what it asks for is folded into the digest.
func (t *tape) Step(now core.Time, in *core.Input, out *core.Effects) {
	t.machine.Step(now, in, out)
	foldEffects(&t.digest, out)
}

// begin opens the first segment.
func (t *tape) begin() {
	t.life = uint64(time.Now().UnixNano())
	t.rotate(false)
}

// rotate begins a segment with the state as it is.
func (t *tape) rotate(continues bool) {
	if t.segment > 0 && continues {
		t.finish()
	}
	t.segment = t.recording.next
	t.recording.next++
	head, err := json.Marshal(SegmentHead{
		Segment: t.segment, Life: t.life, First: t.inputs, Continues: continues,
		Started: time.Now().UnixNano(), At: int64(t.pace.now()), TimeScale: t.pace.times,
	})
	if err != nil {
		return // it has no field that could not be written
	}
	b := append(takeBuffer(), magic...)
	b = sealed(append(opened(b), bodyHead), head)
	from := len(b)
	b = t.machine.AppendSnapshot(append(opened(b), bodySnapshot))
	seal(b[from:])
	snapshot := int64(len(b) - from)
	t.digest, t.size, t.limit = 0, int64(len(b)), max(t.recording.limit, snapshotShare*snapshot)
	t.recording.hand(block{t.segment, b})
}

// opened leaves room for a record's head.
func opened(b []byte) []byte { return append(b, 0, 0, 0, 0, 0, 0, 0, 0) }

// sealed appends the rest of a body whose record began len(opened) and one
// byte before the end of b, and fills the head in.
func sealed(b, rest []byte) []byte {
	from := len(b) - recordHead - 1
	b = append(b, rest...)
	seal(b[from:])
	return b
}

// seal fills in the head of the record that b is.
func seal(b []byte) {
	body := b[recordHead:]
	binary.LittleEndian.PutUint32(b, uint32(len(body)))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(body, castagnoli))
}

// input records an input before its step.
func (t *tape) input(now core.Time, in *core.Input) {
	switch {
	case t.losing && !t.caughtUp():
		t.inputs++
		t.lost++
		return
	case t.losing:
		t.losing = false
		t.rotate(false)
	case t.size > t.limit:
		t.rotate(true)
	}
	t.inputs++
	t.kept++
	if t.buffer == nil {
		t.buffer = takeBuffer()
	}
	from := len(t.buffer)
	b := append(opened(t.buffer), bodyInput)
	b = binary.LittleEndian.AppendUint64(b, uint64(t.digest))
	b = appendInput(b, now, in)
	seal(b[from:])
	t.buffer = b
	t.size += int64(len(b) - from)
	if len(b) >= 48<<10 {
		t.flush()
	}
}

// caughtUp reports whether the disk has room again for a new segment.
func (t *tape) caughtUp() bool {
	waiting, failed := t.recording.state()
	return failed == nil && waiting <= RecordingBacklog/2
}

// flush hands over what is recorded so far. The owner calls it whenever it has
// nothing better to do, and the tape when its buffer is full.
func (t *tape) flush() {
	if len(t.buffer) == 0 {
		return
	}
	waiting := t.recording.hand(block{bytes: t.buffer})
	t.buffer = nil
	if waiting > RecordingBacklog {
		t.losing = true
	}
}

// finish ends a segment that is whole.
func (t *tape) finish() {
	t.flush()
	b := append(opened(takeBuffer()), bodyEnd)
	b = binary.LittleEndian.AppendUint64(b, uint64(t.digest))
	seal(b)
	t.recording.hand(block{bytes: b})
}

// end ends the recording. A core that panicked is not whole: its last input is
// recorded and what became of it is not.
func (t *tape) end(whole bool) {
	if whole && t.segment > 0 && !t.losing {
		t.finish()
	}
	t.flush()
	t.recording.Close()
}

func (t *tape) status() RecordingStatus {
	waiting, failed := t.recording.state()
	s := RecordingStatus{Segment: t.segment, Inputs: t.kept, Lost: t.lost, Waiting: waiting}
	if failed != nil {
		s.Err = failed.Error()
	}
	return s
}

// appendInput writes an input down.
func appendInput(b []byte, now core.Time, in *core.Input) []byte {
	b = append(binary.AppendVarint(b, int64(now)), byte(in.Kind))
	switch in.Kind {
	case core.InputStart:
		b = append(b, in.Entropy[:]...)
	case core.InputFrames:
		b = binary.AppendUvarint(b, uint64(in.Peer))
		b = binary.AppendVarint(b, int64(in.Arrived))
		if r, ok := in.Decoded.(*wire.Request); ok && r != nil {
			b = server.AppendRequest(b, r)
		}
	case core.InputClosed, core.InputExited:
		b = binary.AppendUvarint(b, uint64(in.Peer))
	case core.InputTimer:
		b = binary.AppendUvarint(append(b, byte(in.Timer.Kind)), uint64(in.Timer.Slot))
	case core.InputOpened, core.InputReleased, core.InputCopied:
		b = binary.AppendUvarint(append(b, byte(in.Failure)), uint64(in.Op))
		b = binary.AppendUvarint(b, in.Bytes)
	}
	return b
}

// readInput reads what appendInput wrote. request is where a message is decoded
// to; it must be empty.
func readInput(b []byte, in *core.Input, request *wire.Request) (now core.Time, err error) {
	c := scan{b: b}
	now = core.Time(c.int())
	*in = core.Input{Kind: core.InputKind(c.byte())}
	switch in.Kind {
	case core.InputStart:
		c.bytes(in.Entropy[:])
	case core.InputFrames:
		in.Peer, in.Arrived = core.Peer(c.uint()), core.Time(c.int())
		if len(c.b) > 0 && !c.short {
			if err := server.ReadRequest(c.b, request); err != nil {
				return 0, err
			}
			in.Decoded = request
		}
		c.b = nil
	case core.InputClosed, core.InputExited:
		in.Peer = core.Peer(c.uint())
	case core.InputTimer:
		in.Timer.Kind, in.Timer.Slot = core.TimerKind(c.byte()), uint32(c.uint())
	case core.InputOpened, core.InputReleased, core.InputCopied:
		in.Failure, in.Op, in.Bytes = core.Failure(c.byte()), core.Op(c.uint()), c.uint()
	case core.InputStop:
	default:
		return 0, fmt.Errorf("kind %d of input is not known", in.Kind)
	}
	if c.short || len(c.b) > 0 {
		return 0, fmt.Errorf("input of kind %s is not what it should be", in.Kind)
	}
	return now, nil
}

// scan reads numbers; short is set where they end too early.
type scan struct {
	b     []byte
	short bool
}

func (c *scan) uint() uint64 {
	v, n := binary.Uvarint(c.b)
	return v * c.pass(n)
}

func (c *scan) int() int64 {
	v, n := binary.Varint(c.b)
	return v * int64(c.pass(n))
}

func (c *scan) byte() byte {
	if len(c.b) == 0 {
		c.short = true
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

func (c *scan) bytes(to []byte) {
	if len(c.b) < len(to) {
		c.short = true
		return
	}
	c.b = c.b[copy(to, c.b):]
}

// pass goes past n bytes; it returns 0 where there was no number.
func (c *scan) pass(n int) uint64 {
	if n <= 0 || c.short {
		c.short, c.b = true, nil
		return 0
	}
	c.b = c.b[n:]
	return 1
}

// foldEffects folds everything that a step asked for.
func foldEffects(d *core.Digest, e *core.Effects) {
	for _, ref := range e.Order {
		d.Uint(uint64(ref.Kind))
		switch ref.Kind {
		case core.EffectRecord:
			d.Record(&e.Records[ref.Index])
		case core.EffectSend:
			s := e.Sends[ref.Index]
			d.Uint(uint64(s.Peer))
			if s.Filled {
				d.Uint(uint64(s.Slot))
			}
			f := e.Message(s)
			d.Bytes(f.Bytes)
			for _, end := range f.Ends {
				d.Uint(uint64(end))
			}
		case core.EffectArm:
			a := e.Arms[ref.Index]
			d.Uint(uint64(a.Key.Kind)<<32 | uint64(a.Key.Slot))
			d.Uint(uint64(a.At))
		case core.EffectDisarm:
			k := e.Disarms[ref.Index]
			d.Uint(uint64(k.Kind)<<32 | uint64(k.Slot))
		case core.EffectOpen:
			o := &e.Opens[ref.Index]
			d.Uint(uint64(o.Op))
			d.Uint(uint64(o.Mapping))
			d.Uint(uint64(o.Owner) ^ uint64(o.Incarnation)<<32)
			d.Uint(uint64(len(o.Exports)))
		case core.EffectClose:
			o := &e.Closes[ref.Index]
			d.Uint(uint64(o.Op))
			d.Uint(uint64(o.Mapping))
			d.Uint(uint64(o.Owner) ^ uint64(o.Incarnation)<<32)
		case core.EffectCopy:
			o := e.CopyAt(ref.Index)
			d.Uint(uint64(o.Op))
			d.Uint(uint64(o.Mapping)<<8 | uint64(o.Direction))
			for i := range o.Chunks {
				c := &o.Chunks[i]
				d.Uint(uint64(c.Slot)<<32 | uint64(c.Group))
				d.Uint(uint64(c.First)<<32 | uint64(c.Count))
				d.Uint(uint64(c.Skip))
			}
			for _, b := range o.Blocks {
				d.Uint(uint64(b))
			}
		case core.EffectExit:
			d.Uint(uint64(e.Exit))
		case core.EffectInline:
			i := e.Inlines[ref.Index]
			d.Uint(i.Parcel)
			d.Uint(uint64(i.Slot))
			d.Bool(i.Keep)
		}
	}
}
