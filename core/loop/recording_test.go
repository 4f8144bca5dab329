package loop

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// recorded plays a life with something of everything and returns its folder.
func recorded(t *testing.T, options RecordingOptions) (dir string, inputs uint64) {
	t.Helper()
	options.Dir = filepath.Join(t.TempDir(), "tape")
	r := recordInto(t, options)
	v := r.sync()
	if _, err := r.s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	return options.Dir, v.Recording.Inputs
}

func recordInto(t *testing.T, options RecordingOptions) *rig {
	t.Helper()
	recording, err := NewRecording(options)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(o *ServerOptions) { o.Recording = recording })
	for id := core.InstanceID(1); id <= 4; id++ {
		r.ask(core.Peer(id), registerOf(id))
		r.ask(core.Peer(id), pingOf(id))
	}
	r.ask(5, engineOf(5))
	r.ask(1, transferOf(wire.Store, 1, 5, 3))
	r.ask(2, transferOf(wire.Retrieve, 2, 5, 3))
	r.ask(5, wire.Request{Type: wire.PrepareStore, Instance: 5, Key: keyOf(8, 1)})
	r.ask(5, wire.Request{Type: wire.CommitStore, Instance: 5, Key: keyOf(8, 1), Data: bytes.Repeat([]byte("bulk"), 30000)})
	r.ask(3, longStore(3, 7, 30000))
	r.s.Message(4, r.s.Now(), &core.Frames{Bytes: []byte{0xc1, 0xc1}, Ends: []int{1, 2}})
	r.s.Closed(4)
	for range 30 {
		r.pass(8 * time.Second)
		for range 5 {
			r.ask(1, pingOf(1))
			r.ask(2, pingOf(2))
		}
	}
	return r
}

func replay(t *testing.T, path string) *ReplayReport {
	t.Helper()
	report, err := Replay(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestARecordingReplays(t *testing.T) {
	leaks(t)
	dir, inputs := recorded(t, RecordingOptions{})
	kinds := map[core.InputKind]int{}
	report, err := Replay(dir, func(_ *Segment, in *Recorded, _ *core.Effects) { kinds[in.Input.Kind]++ })
	if err != nil {
		t.Fatal(err)
	}
	if report.Difference != nil || len(report.Torn) > 0 || report.Segments != 1 || report.Inputs < inputs {
		t.Fatalf("%+v %v", report, report.Difference)
	}
	for _, k := range []core.InputKind{
		core.InputStart, core.InputFrames, core.InputClosed, core.InputTimer, core.InputOpened, core.InputReleased, core.InputCopied, core.InputStop,
	} {
		if kinds[k] == 0 {
			t.Errorf("no input of kind %s", k)
		}
	}
	if again := replay(t, dir); again.Hash != report.Hash {
		t.Fatal("two replays differ")
	}
	// Bulk stays out: 120 kB of inline data and 30,000 tokens went through.
	files, _ := segments(dir)
	if info, err := os.Stat(files[0].path); err != nil || info.Size() > 40<<10 {
		t.Fatalf("%d bytes, %v", info.Size(), err)
	}
}

// Segments follow each other without a gap, and each can be replayed alone.
func TestARecordingRotates(t *testing.T) {
	dir, _ := recorded(t, RecordingOptions{SegmentBytes: 2 << 10, Keep: -1})
	report := replay(t, dir)
	if report.Difference != nil || report.Segments < 4 {
		t.Fatalf("%d segments, %v", report.Segments, report.Difference)
	}
	files, _ := segments(dir)
	total := uint64(0)
	for i, f := range files {
		one := replay(t, f.path)
		if one.Difference != nil || len(one.Torn) > 0 {
			t.Fatalf("%s: %v %v", f.path, one.Difference, one.Torn)
		}
		total += one.Inputs
		if err := ReadSegments(f.path, func(s *Segment) error {
			if s.Head.Segment != i+1 || s.Head.Continues != (i > 0) {
				t.Errorf("%+v", s.Head)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if total != report.Inputs {
		t.Fatalf("%d inputs alone, %d together", total, report.Inputs)
	}
	// The snapshot of a segment is held against the end of the one before.
	if err := os.Remove(files[1].path); err != nil {
		t.Fatal(err)
	}
	if report := replay(t, dir); report.Difference == nil {
		t.Fatal("a segment is missing and nobody noticed")
	}
}

func TestARecordingIsPruned(t *testing.T) {
	dir, _ := recorded(t, RecordingOptions{SegmentBytes: 2 << 10, Keep: 2})
	files, _ := segments(dir)
	if len(files) > 2 || files[0].number < 2 {
		t.Fatalf("%v", files)
	}
	if report := replay(t, dir); report.Difference != nil || report.Inputs == 0 {
		t.Fatalf("%+v", report)
	}
}

// Cut anywhere, a segment is good up to its last whole record, and the place
// is named.
func TestATornTail(t *testing.T) {
	dir, _ := recorded(t, RecordingOptions{})
	files, _ := segments(dir)
	whole, err := os.ReadFile(files[0].path)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), segmentName(1))
	all := replay(t, files[0].path).Inputs
	for n := len(whole) - 1; n > 0; n -= 1 + len(whole)/300 {
		if err := os.WriteFile(cut, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		report := replay(t, cut)
		if report.Difference != nil || report.Inputs > all {
			t.Fatalf("cut to %d: %v", n, report.Difference)
		}
		if len(report.Torn) == 1 {
			if at := report.Torn[0]; at.Path != cut || at.Offset > int64(n) || !strings.Contains(at.String(), "what is before it is good") {
				t.Fatalf("cut to %d: %v", n, at)
			}
		}
	}
	// A byte that changed ends the segment there.
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-200] ^= 4
	os.WriteFile(cut, damaged, 0o600)
	if report := replay(t, cut); len(report.Torn) != 1 || report.Torn[0].Why != "a record whose sum does not fit" || report.Difference != nil {
		t.Fatalf("%+v", report)
	}
	os.WriteFile(cut, []byte("something else\n and more of it"), 0o600)
	if _, err := Replay(cut, nil); err == nil || !strings.Contains(err.Error(), "not a segment of a recording") {
		t.Fatal(err)
	}
}

// An input that is not what it was gives other outputs, and the replay says at
// which input.
func TestTheFirstDifferenceIsNamed(t *testing.T) {
	dir, _ := recorded(t, RecordingOptions{})
	files, _ := segments(dir)
	data, _ := os.ReadFile(files[0].path)
	var target Recorded
	ReadSegments(files[0].path, func(s *Segment) error {
		return s.Inputs(func(in *Recorded) error {
			if q, ok := in.Input.Decoded.(*wire.Request); ok && q.Type == wire.Ping && in.Number > 20 && target.Number == 0 {
				target = *in
			}
			return nil
		})
	})
	// A ping's time, which its stamp has, is moved by a nanosecond.
	record := data[target.Offset:]
	n := int(uint32(record[0]) | uint32(record[1])<<8)
	var in core.Input
	request := new(wire.Request)
	now, err := readInput(record[recordHead+9:recordHead+n], &in, request)
	if err != nil {
		t.Fatal(err)
	}
	changed := append(append([]byte(nil), record[:recordHead+9]...), appendInput(nil, now+1, &in)...)
	seal(changed)
	out := append(append(append([]byte(nil), data[:target.Offset]...), changed...), record[recordHead+n:]...)
	path := filepath.Join(t.TempDir(), segmentName(1))
	os.WriteFile(path, out, 0o600)
	report := replay(t, path)
	if d := report.Difference; d == nil || d.Number != target.Number || d.Offset != target.Offset || !strings.Contains(d.String(), "request 22 of peer") {
		t.Fatalf("%v", report.Difference)
	}
}

// A second life in the same folder goes behind the first.
func TestTwoLivesInOneFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tape")
	for life := 1; life <= 2; life++ {
		r := recordInto(t, RecordingOptions{Dir: dir})
		if life == 1 {
			r.s.Abort() // not in order
			<-r.s.Done()
		} else if _, err := r.s.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if report := replay(t, dir); report.Segments != 2 || report.Difference != nil {
		t.Fatalf("%+v", report)
	}
}

// A disk that does not keep up costs inputs, and then a new segment begins.
func TestADiskThatDoesNotKeepUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tape")
	recording, err := NewRecording(RecordingOptions{Dir: dir, Keep: -1})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(o *ServerOptions) { o.Recording = recording })
	r.ask(1, engineOf(1))
	recording.mu.Lock()
	recording.waiting += 2 * RecordingBacklog
	recording.mu.Unlock()
	for range 100 {
		r.ask(1, pingOf(1))
	}
	if v := r.sync().Recording; v.Lost < 90 || v.Err != "" {
		t.Fatalf("%+v", v)
	}
	recording.mu.Lock()
	recording.waiting -= 2 * RecordingBacklog
	recording.mu.Unlock()
	for range 100 {
		r.ask(1, pingOf(1))
	}
	if v := r.sync().Recording; v.Segment != 2 || v.Lost > 101 {
		t.Fatalf("%+v", v)
	}
	r.s.Shutdown(context.Background())
	if report := replay(t, dir); report.Difference != nil || report.Segments != 2 {
		t.Fatalf("%+v", report)
	}
}

// A disk that fails ends the recording and not the server.
func TestADiskThatFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tape")
	recording, err := NewRecording(RecordingOptions{Dir: dir, SegmentBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(o *ServerOptions) { o.Recording = recording })
	r.ask(1, engineOf(1))
	os.RemoveAll(dir)
	for range 2000 {
		if a := r.ask(1, pingOf(1)); !a.OK {
			t.Fatal("not answered")
		}
	}
	if v := r.sync().Recording; !strings.Contains(v.Err, "recording: open") {
		t.Fatalf("%+v", v)
	}
	if _, err := NewRecording(RecordingOptions{Dir: "/proc/no"}); err == nil {
		t.Fatal("a folder that cannot be made")
	}
}

// What led to a panic of the core is in the recording.
func TestAPanicIsRecorded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tape")
	recording, err := NewRecording(RecordingOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewServer(ServerOptions{
		Config: testConfig(), Recording: recording,
		Memory: func(Slots, func(core.Input)) (core.Memory, error) { return nil, nil }, // and so it panics
	})
	if err != nil {
		t.Fatal(err)
	}
	s.owner.driver.Transport = sender{s, make(wireTo, 10)}
	s.decoders.start(1)
	s.Message(1, 0, frames(pingOf(1)))
	s.Message(1, 0, frames(registerOf(1)))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it did not panic")
			}
		}()
		s.run()
	}()
	s.decoders.stop()
	var last Recorded
	if err := ReadSegments(dir, func(seg *Segment) error {
		return seg.Inputs(func(in *Recorded) error { last = *in; return nil })
	}); err != nil {
		t.Fatal(err)
	}
	if what := DescribeInput(&last.Input); what != "request 1 of peer 1, instance 1" {
		t.Fatal(what)
	}
}

func TestInputsWrittenDown(t *testing.T) {
	for _, in := range []core.Input{
		{Kind: core.InputStart, Entropy: [16]byte{1, 2, 15: 9}},
		{Kind: core.InputClosed, Peer: 1 << 40},
		{Kind: core.InputTimer, Timer: core.TimerKey{Kind: core.TimerJob, Slot: 70000}},
		{Kind: core.InputOpened, Op: 3 << 20, Bytes: 1 << 40, Failure: core.FailOpen},
		{Kind: core.InputReleased, Op: 1},
		{Kind: core.InputCopied, Op: 1 << 63},
		{Kind: core.InputExited, Peer: 1 << 41},
		{Kind: core.InputStop},
		{Kind: core.InputFrames, Peer: 2, Arrived: -5},
	} {
		b := appendInput(nil, 12345, &in)
		var back core.Input
		now, err := readInput(b, &back, new(wire.Request))
		if err != nil || now != 12345 || back != in {
			t.Errorf("%+v: %+v %d %v", in, back, now, err)
		}
		for n := range b {
			if in.Kind == core.InputFrames && n >= 5 {
				continue
			}
			if _, err := readInput(b[:n], &back, new(wire.Request)); err == nil {
				t.Errorf("%s: %d of %d bytes are whole", in.Kind, n, len(b))
			}
		}
	}
	if _, err := readInput([]byte{0, 200}, new(core.Input), new(wire.Request)); err == nil {
		t.Error("an unknown kind")
	}
}

func FuzzSegment(f *testing.F) {
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &Segment{Path: "x", data: data}
		if s.open() == nil {
			s.Inputs(func(in *Recorded) error {
				DescribeInput(&in.Input)
				return nil
			})
		}
		readInput(data, new(core.Input), new(wire.Request))
	})
}

// chunkyWriter is a log file that fails on demand.
type chunkyWriter struct {
	bytes.Buffer
	block chan struct{}
	fail  error
}

func (w *chunkyWriter) Write(b []byte) (int, error) {
	if w.block != nil {
		<-w.block
	}
	if w.fail != nil {
		return 0, w.fail
	}
	return w.Buffer.Write(b)
}
func (w *chunkyWriter) Close() error { return nil }

func TestTheEventLogReadsAsItWasWritten(t *testing.T) {
	out := new(chunkyWriter)
	log := NewEventLog(out)
	r := newRig(t, func(o *ServerOptions) { o.Events = log })
	r.ask(1, registerOf(core.MaxInstanceID))
	r.ask(1, pingOf(core.MaxInstanceID))
	r.ask(1, transferOf(wire.Store, core.MaxInstanceID, 1, 2))
	r.s.Message(9, r.s.Now(), &core.Frames{Bytes: []byte{1}, Ends: []int{1}})
	r.pass(200 * time.Second)
	if _, err := r.s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	var header EventHeader
	var read []core.Record
	visit := func(e *Event) error { read = append(read, e.Record); return nil }
	torn, err := ReadEvents(strings.NewReader(text), func(h EventHeader) error { header = h; return nil }, visit)
	if err != nil || torn {
		t.Fatal(torn, err)
	}
	if header.Reap != int64(core.DefaultReap) || header.Design != "document" || header.TimeScale != 1 {
		t.Fatalf("%+v", header)
	}
	if len(read) != len(r.records) {
		t.Fatalf("%d records read, %d there were", len(read), len(r.records))
	}
	for i := range read {
		if read[i] != r.records[i] {
			t.Fatalf("%d: %+v %+v", i, read[i], r.records[i])
		}
	}
	// A kill leaves half a line.
	read = nil
	if torn, err = ReadEvents(strings.NewReader(text[:len(text)-5]), nil, visit); err != nil || !torn || len(read) != len(r.records)-1 {
		t.Fatal(torn, err, len(read))
	}
	lines := strings.SplitAfter(text, "\n")
	for what, bad := range map[string]string{
		"":                                  "no whole line",
		"{}\n":                              "its first line is not",
		lines[0] + "x\n":                    "line 2",
		lines[0] + "{\"kind\":\"slept\"}\n": `"slept" is no kind of record`,
		lines[0] + "{\"kind\":\"stamped\",\"failure\":\"tired\"}\n":        `"tired" is no failure`,
		lines[0] + "{\"kind\":\"stamped\",\"context\":\"none of ours\"}\n": `is no kind of context`,
		lines[0] + strings.Repeat("x", MaxEventLine+1):                     "more than",
		strings.Replace(lines[0], `"version":1`, `"version":7`, 1):         "version 7",
	} {
		if _, err := ReadEvents(strings.NewReader(what), nil, visit); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%.60q: %v", what, err)
		}
	}
}

// What does not fit is counted where it is missing, and nobody waits.
func TestAnEventLogThatDoesNotKeepUp(t *testing.T) {
	out := &chunkyWriter{block: make(chan struct{})}
	log := NewEventLog(out)
	p := newPace(nil, 1)
	log.begin(1, 2, "document", &p)
	const more = 1000
	for i := range 2*EventLogRecords + more {
		log.record(&core.Record{At: core.Time(i), Kind: core.Stamped, A: uint64(i)})
	}
	lost := log.Lost()
	close(out.block)
	log.record(&core.Record{At: core.Never, Kind: core.ScanBegan})
	log.Close()
	log.Close()
	marked, events := uint64(0), uint64(0)
	if _, err := ReadEvents(&out.Buffer, nil, func(e *Event) error {
		marked += e.Lost
		if e.Lost == 0 {
			events++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if lost < more || marked != log.Lost() || events+marked != 2*EventLogRecords+more+1 {
		t.Fatalf("%d lost, %d marked, %d there", lost, marked, events)
	}
}

func TestAnEventLogThatFails(t *testing.T) {
	full := errors.New("no space left")
	log := NewEventLog(&chunkyWriter{fail: full})
	p := newPace(nil, 1)
	log.begin(1, 2, "document", &p)
	log.record(&core.Record{Kind: core.Stamped})
	if err := log.Close(); !errors.Is(err, full) {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "events")
	first, err := CreateEventLog(path)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	if _, err := CreateEventLog(path); err == nil {
		t.Fatal("a log was written over")
	}
}
