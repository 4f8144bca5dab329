package hostshm

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"vigil/core"
)

// The bytes of a chunk lie in its slot tensor after tensor, block after block,
// and go back to whatever blocks they are asked for.
func TestAChunkGoesOutAndComesBack(t *testing.T) {
	s := newServer(t, nil)
	keys, values := newSegment(t, 16*512), newSegment(t, 64+16*256)
	Fill(keys.Bytes(), 1)
	Fill(values.Bytes(), 2)
	second := plain(values.Name(), 16, 256)
	second.Offset = 64
	if in := s.open(1, plain(keys.Name(), 16, 512), second); in.Failure != core.NoFailure || in.Bytes != 8192+8192 {
		t.Fatalf("open: %+v", in)
	}
	blocks := []uint32{3, 4, 5, 9}
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(2, 0, 4)}, blocks); in.Failure != core.NoFailure {
		t.Fatalf("copy out: %s", in.Failure)
	}
	var want []byte
	for _, b := range blocks {
		want = append(want, keys.Bytes()[512*b:512*b+512]...)
	}
	for _, b := range blocks {
		want = append(want, values.Bytes()[64+256*b:64+256*b+256]...)
	}
	if !bytes.Equal(s.store[2][:len(want)], want) {
		t.Fatal("the slot does not hold tensor after tensor, block after block")
	}
	before := bytes.Clone(values.Bytes())
	in := s.copy(1, core.CopyIn, []core.ChunkCopy{{Slot: 2, First: 0, Count: 4, Skip: 1}}, []uint32{0, 12, 1, 15})
	if in.Failure != core.NoFailure {
		t.Fatalf("copy in: %s", in.Failure)
	}
	for i, b := range []int{0, 12, 1, 15} {
		at := 64 + 256*b
		from := values.Bytes()
		wantBlock := want[4*512+256*i : 4*512+256*i+256]
		if i < 1 {
			wantBlock = before[at : at+256] // skipped: left alone
		}
		if !bytes.Equal(from[at:at+256], wantBlock) {
			t.Errorf("block %d does not hold what its chunk's block %d held", b, i)
		}
	}
	if got := s.Stats(); got.Charged != 16384 || got.Mappings != 1 || got.Copied != 2 || got.CopiedBytes != 2*4*768 {
		t.Errorf("accounts: %+v", got)
	}
	if in := s.close(1); in.Failure != core.NoFailure {
		t.Fatalf("close: %s", in.Failure)
	}
	if got := s.Stats().Charged; got != 0 {
		t.Errorf("%d bytes are charged after the close", got)
	}
}

// Keys and values in two halves: a block's bytes are both.
func TestKeysAndValuesInTwoHalves(t *testing.T) {
	s := newServer(t, nil)
	seg := newSegment(t, 2*8*100)
	Fill(seg.Bytes(), 3)
	e := plain(seg.Name(), 8, 200)
	e.Shape = []int64{2, 8, 100}
	if in := s.open(1, e); in.Failure != core.NoFailure {
		t.Fatal(in.Failure)
	}
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 2)}, []uint32{2, 3}); in.Failure != core.NoFailure {
		t.Fatal(in.Failure)
	}
	m := seg.Bytes()
	want := bytes.Join([][]byte{m[200:300], m[1000:1100], m[300:400], m[1100:1200]}, nil)
	if !bytes.Equal(s.store[0][:400], want) {
		t.Error("a block is not its keys and then its values")
	}
	if in := s.copy(1, core.CopyIn, []core.ChunkCopy{chunk(0, 0, 2)}, []uint32{7, 0}); in.Failure != core.NoFailure {
		t.Fatal(in.Failure)
	}
	if !bytes.Equal(m[700:800], want[:100]) || !bytes.Equal(m[1500:1600], want[100:200]) || !bytes.Equal(m[0:100], want[200:300]) {
		t.Error("the halves went back to the wrong places")
	}
}

// Two engine groups, one of which has two physical blocks behind each id.
func TestGroupsFollowEachOtherInASlot(t *testing.T) {
	s := newServer(t, nil)
	seg := newSegment(t, 3*16*64)
	Fill(seg.Bytes(), 4)
	exports := make([]core.Export, 3)
	for i := range exports {
		exports[i] = plain(seg.Name(), 16, 64)
		exports[i].Offset = uint64(i) * 16 * 64
	}
	op := s.next()
	s.Memory.Open(&core.OpenOrder{Op: op, Mapping: 1, Owner: 1, Incarnation: 1, Exports: exports,
		Groups: []core.Group{{Layers: []int64{2, 0}}, {Layers: []int64{1}, Physical: 2}}})
	if in := s.ended(op, core.InputOpened); in.Failure != core.NoFailure || in.Bytes != 4096 {
		t.Fatalf("%+v: three tensors of one segment are one mapping", in)
	}
	in := s.copy(1, core.CopyOut, []core.ChunkCopy{
		{Slot: 0, Group: 0, First: 0, Count: 2}, {Slot: 0, Group: 1, First: 2, Count: 1},
		{Slot: 1, Group: 0, First: 3, Count: 2}, {Slot: 1, Group: 1, First: 5, Count: 1},
	}, []uint32{1, 5, 7, 2, 6, 3})
	if in.Failure != core.NoFailure {
		t.Fatal(in.Failure)
	}
	block := func(tensor, b int) []byte { return seg.Bytes()[tensor*1024+b*64 : tensor*1024+b*64+64] }
	for slot, want := range [][][]byte{
		{block(0, 1), block(0, 5), block(2, 1), block(2, 5), block(1, 14), block(1, 15)},
		{block(0, 2), block(0, 6), block(2, 2), block(2, 6), block(1, 6), block(1, 7)},
	} {
		if !bytes.Equal(s.store[slot][:6*64], bytes.Join(want, nil)) {
			t.Errorf("slot %d does not hold its groups in order", slot)
		}
	}
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{{Slot: 0, Group: 1, Count: 1}}, []uint32{8}); in.Failure != core.FailBadBlocks {
		t.Errorf("block 8 of a group with 8: %s", in.Failure)
	}
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{{Slot: 0, Group: 2, Count: 1}}, []uint32{0}); in.Failure != core.FailBadBlocks {
		t.Errorf("a group that there is not: %s", in.Failure)
	}
}

// A worker dies by SIGKILL. What the server mapped of it stays mapped, charged
// and readable until the server closes it; then the kernel shows it gone.
func TestADeadWorkersMemoryStaysChargedUntilClosed(t *testing.T) {
	s := newServer(t, nil)
	cmd, name := startWorker(t)
	if in := s.open(1, plain(name, 256, 4096)); in.Failure != core.NoFailure || in.Bytes != 1<<20 {
		t.Fatalf("open: %+v", in)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	gone, err := Sweep("", testPrefix)
	if err != nil || len(gone) != 1 || gone[0] != name {
		t.Fatalf("the sweep took %q (%v), want %q", gone, err, name)
	}
	if got := mapped(t, name[1:]); got != 1<<20 {
		t.Fatalf("after the kill the kernel shows %d bytes mapped, want %d", got, 1<<20)
	}
	if got := s.Stats().Charged; got != 1<<20 {
		t.Errorf("%d bytes are charged", got)
	}
	blocks := []uint32{0, 1, 2, 3}
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 4)}, blocks); in.Failure != core.NoFailure {
		t.Errorf("copy out of a dead worker's memory: %s", in.Failure)
	}
	if at := Mismatch(s.store[0][:4*4096], 7); at >= 0 {
		t.Errorf("byte %d of the dead worker's memory is wrong", at)
	}
	if in := s.close(1); in.Failure != core.NoFailure {
		t.Fatal(in.Failure)
	}
	if got := mapped(t, name[1:]); got != 0 {
		t.Errorf("after the close the kernel shows %d bytes mapped", got)
	}
}

// Many workers die at once; nothing of them is left.
func TestManyDeadWorkersLeaveNothing(t *testing.T) {
	s := newServer(t, nil)
	for i := range 8 {
		cmd, name := startWorker(t)
		if in := s.open(core.Mapping(i+1), plain(name, 256, 4096)); in.Failure != core.NoFailure {
			t.Fatal(in.Failure)
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
	if got := mapped(t, testPrefix); got != 8<<20 {
		t.Errorf("%d bytes are mapped, want %d", got, 8<<20)
	}
	if gone, err := Sweep("", testPrefix); err != nil || len(gone) != 8 {
		t.Errorf("the sweep took %q (%v)", gone, err)
	}
	for i := range 8 {
		if in := s.close(core.Mapping(i + 1)); in.Failure != core.NoFailure {
			t.Error(in.Failure)
		}
	}
}

// The sweep leaves what lives, what is another namespace's and what it does
// not know.
func TestTheSweepLeavesTheLivingAlone(t *testing.T) {
	leavesNothing(t)
	mine := newSegment(t, 4096)
	space, err := namespace()
	if err != nil {
		t.Fatal(err)
	}
	// The same PID with another start time is another process, long gone.
	start, _ := startOf(os.Getpid())
	reused := strings.Replace(mine.Name(), "_"+itoa(start)+"_", "_"+itoa(start+1)+"_", 1)
	foreign := strings.Replace(reused, "_"+itoa(space)+"_", "_"+itoa(space+1)+"_", 1)
	keep := []string{foreign, "/" + testPrefix + "_1_2_3", "/" + testPrefix + "x_1_2_3_4"}
	for _, name := range keep {
		other, err := Create("", name, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
	}
	dead, err := Create("", reused, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer dead.Close()
	gone, err := Sweep("", testPrefix)
	if err != nil || len(gone) != 1 || gone[0] != reused {
		t.Errorf("the sweep took %q (%v), want %q alone", gone, err, reused)
	}
}

// A segment that shrinks is an error to whoever copies, not the end of the
// server: seen before the copy, and in the middle of it.
func TestATruncatedSegmentFailsTheCopy(t *testing.T) {
	s := newServer(t, nil)
	seg := newSegment(t, 1<<20)
	if in := s.open(1, plain(seg.Name(), 256, 4096)); in.Failure != core.NoFailure {
		t.Fatal(in.Failure)
	}
	if err := os.Truncate(DefaultDir+seg.Name(), 8192); err != nil {
		t.Fatal(err)
	}
	last := []uint32{255}
	for _, way := range []core.Direction{core.CopyOut, core.CopyIn} {
		if in := s.copy(1, way, []core.ChunkCopy{chunk(0, 0, 1)}, last); in.Failure != core.FailCopy {
			t.Errorf("way %d: %s, want %s", way, in.Failure, core.FailCopy)
		}
	}
	if got := s.Stats().Faults; got != 0 {
		t.Errorf("%d faults: the size was not looked at first", got)
	}
	// The gap between the look and the copy: look at a size that still fits.
	s.mappings[1].segments[0].required = 1
	for _, way := range []core.Direction{core.CopyOut, core.CopyIn} {
		if in := s.copy(1, way, []core.ChunkCopy{chunk(0, 0, 1)}, last); in.Failure != core.FailCopy {
			t.Errorf("way %d, in mid-copy: %s, want %s", way, in.Failure, core.FailCopy)
		}
	}
	if got := s.Stats().Faults; got != 2 {
		t.Errorf("%d faults were counted, want 2", got)
	}
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 1)}, []uint32{1}); in.Failure != core.NoFailure {
		t.Errorf("what is left of the segment: %s", in.Failure)
	}
	s.mappings[1].segments[0].required = 1 << 20 // what its release is charged
	if in := s.open(2, plain(seg.Name(), 256, 4096)); in.Failure != core.FailOpen {
		t.Errorf("opening the short segment: %s", in.Failure)
	}
	if in := s.close(1); in.Failure != core.NoFailure {
		t.Error(in.Failure)
	}
}

// While copies run, the segment is cut and grown again: each copy ends, well
// or with an error, and the server lives.
func TestASegmentThatChangesUnderTheCopies(t *testing.T) {
	s := newServer(t, nil)
	seg := newSegment(t, 1<<20)
	if in := s.open(1, plain(seg.Name(), 256, 4096)); in.Failure != core.NoFailure {
		t.Fatal(in.Failure)
	}
	s.store = make(store, 300) // each copy its own slot, as the core sees to
	for i := range s.store {
		s.store[i] = make([]byte, 16*4096)
		blocks := make([]uint32, 16)
		for k := range blocks {
			blocks[k] = uint32(255 - 16*(i%16) - k)
		}
		s.Memory.Copy(&core.CopyOrder{Op: core.Op(1000 + i), Mapping: 1, Owner: 1, Incarnation: 1, Direction: core.Direction(i / 2 % 2),
			Chunks: []core.ChunkCopy{chunk(core.Slot(i), 0, 16)}, Blocks: blocks})
		os.Truncate(DefaultDir+seg.Name(), int64(i%2)<<20)
	}
	for range 300 {
		if in := s.wait(); in.Failure != core.NoFailure && in.Failure != core.FailCopy {
			t.Fatal(in.Failure)
		}
	}
}

// What a stranger may say that is not so.
func TestWhatCannotBeOpened(t *testing.T) {
	s := newServer(t, nil)
	seg := newSegment(t, 4096)
	link := DefaultDir + "/" + testPrefix + "-link"
	if err := os.Symlink(DefaultDir+seg.Name(), link); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(link)
	pipe := DefaultDir + "/" + testPrefix + "-pipe"
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(pipe)
	good := func(change func(*core.Export)) core.Export {
		e := plain(seg.Name(), 16, 256)
		change(&e)
		return e
	}
	for name, exports := range map[string][]core.Export{
		"no tensor":           {},
		"too many tensors":    make([]core.Export, core.MaxExports+1),
		"device memory":       {good(func(e *core.Export) { e.Kind = core.CUDA })},
		"no such segment":     {good(func(e *core.Export) { e.Handle = []byte("/" + testPrefix + "-none") })},
		"a way out":           {good(func(e *core.Export) { e.Handle = []byte("/../etc/passwd") })},
		"a symbolic link":     {good(func(e *core.Export) { e.Handle = []byte("/" + testPrefix + "-link") })},
		"a pipe":              {good(func(e *core.Export) { e.Handle = []byte("/" + testPrefix + "-pipe") })},
		"one byte too many":   {good(func(e *core.Export) { e.Bytes = 4097 })},
		"offset past the end": {good(func(e *core.Export) { e.Offset = 1 })},
		"offset that wraps":   {good(func(e *core.Export) { e.Offset = 1<<64 - 1 })},
		"4 EiB":               {good(func(e *core.Export) { e.Bytes = 1 << 62 })},
		"blocks past bytes":   {good(func(e *core.Export) { e.Blocks = 17 })},
		"blocks that wrap":    {good(func(e *core.Export) { e.Blocks, e.BlockBytes = 1<<32-1, 1<<32-1 })},
		"nothing":             {good(func(e *core.Export) { e.Bytes, e.Blocks = 0, 0 })},
		"an odd half":         {good(func(e *core.Export) { e.BlockBytes = 255; e.Shape = []int64{2, 16, 8} })},
		"the second is bad":   {good(func(*core.Export) {}), good(func(e *core.Export) { e.Handle = []byte("/x/y") })},
	} {
		if in := s.open(9, exports...); in.Failure != core.FailOpen || in.Bytes != 0 {
			t.Errorf("%s: %+v", name, in)
		}
	}
	for name, groups := range map[string][]core.Group{
		"a layer past the last":   {{Layers: []int64{0}}, {Layers: []int64{1}}},
		"a layer before":          {{Layers: []int64{-1}}},
		"too many physical":       {{Physical: 1 << 40}},
		"a negative physical":     {{Physical: -1}},
		"too many groups":         make([]core.Group, core.MaxGroups+1),
		"more than 63 bits layer": {{Layers: []int64{1<<63 - 1}}},
	} {
		op := s.next()
		s.Memory.Open(&core.OpenOrder{Op: op, Mapping: 9, Owner: 1, Incarnation: 1, Exports: []core.Export{plain(seg.Name(), 16, 256)}, Groups: groups})
		if in := s.ended(op, core.InputOpened); in.Failure != core.FailOpen {
			t.Errorf("%s: %s", name, in.Failure)
		}
	}
	if got := s.Stats(); got.Charged != 0 || got.Mappings != 0 {
		t.Errorf("refused opens left %+v", got)
	}
}

// An order that names the wrong mapping, owner, incarnation or slot ends with
// an error and touches nothing.
func TestOrdersThatDoNotFit(t *testing.T) {
	s := newServer(t, nil)
	seg := newSegment(t, 4096)
	if in := s.open(1, plain(seg.Name(), 16, 256)); in.Failure != core.NoFailure {
		t.Fatal(in.Failure)
	}
	if in := s.open(1, plain(seg.Name(), 16, 256)); in.Failure != core.FailOpen {
		t.Errorf("a number that is in use: %s", in.Failure)
	}
	one := []core.ChunkCopy{chunk(0, 0, 1)}
	if in := s.copy(2, core.CopyOut, one, []uint32{0}); in.Failure != core.FailCopy {
		t.Errorf("no such mapping: %s", in.Failure)
	}
	if in := s.copy(1, core.CopyOut, one, []uint32{16}); in.Failure != core.FailBadBlocks {
		t.Errorf("block 16 of 16: %s", in.Failure)
	}
	if in := s.copy(1, core.CopyOut, one, nil); in.Failure != core.FailBadBlocks {
		t.Errorf("more blocks than there are: %s", in.Failure)
	}
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(99, 0, 1)}, []uint32{0}); in.Failure != core.FailCopy {
		t.Errorf("no such slot: %s", in.Failure)
	}
	s.store[7] = make([]byte, 255)
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(7, 0, 1)}, []uint32{0}); in.Failure != core.FailCopy {
		t.Errorf("a slot one byte too short: %s", in.Failure)
	}
	op := s.next()
	s.Memory.Copy(&core.CopyOrder{Op: op, Mapping: 1, Owner: 1, Incarnation: 2, Chunks: one, Blocks: []uint32{0}})
	if in := s.ended(op, core.InputCopied); in.Failure != core.FailStale {
		t.Errorf("another incarnation's mapping: %s", in.Failure)
	}
	op = s.next()
	s.Memory.Close(&core.CloseOrder{Op: op, Mapping: 1, Owner: 2, Incarnation: 1})
	if in := s.ended(op, core.InputReleased); in.Failure != core.FailClose {
		t.Errorf("another owner's mapping: %s", in.Failure)
	}
	if in := s.close(1); in.Failure != core.NoFailure {
		t.Error(in.Failure)
	}
	if in := s.close(1); in.Failure != core.FailClose {
		t.Errorf("closing twice: %s", in.Failure)
	}
}

// A close waits for the copy that began before it, and a copy that comes after
// the close began is refused: no copy touches memory in release.
func TestACloseWaitsForItsCopies(t *testing.T) {
	hooks := new(Hooks)
	hooks.Add(Rule{Operation: Copy, Delay: 200 * time.Millisecond})
	s := newServer(t, hooks)
	seg := newSegment(t, 4096)
	s.open(1, plain(seg.Name(), 16, 256))
	one := []core.ChunkCopy{chunk(0, 0, 1)}
	began := time.Now()
	s.Memory.Copy(&core.CopyOrder{Op: 100, Mapping: 1, Owner: 1, Incarnation: 1, Chunks: one, Blocks: []uint32{0}})
	s.Memory.Close(&core.CloseOrder{Op: 101, Mapping: 1, Owner: 1, Incarnation: 1})
	s.Memory.Copy(&core.CopyOrder{Op: 102, Mapping: 1, Owner: 1, Incarnation: 1, Chunks: one, Blocks: []uint32{0}})
	if in := s.wait(); in.Op != 102 || in.Failure != core.FailCopy {
		t.Errorf("the copy after the close: %+v", in)
	}
	if in := s.wait(); in.Op != 100 || in.Failure != core.NoFailure {
		t.Errorf("the copy before the close: %+v", in)
	}
	if in := s.wait(); in.Op != 101 || in.Failure != core.NoFailure || time.Since(began) < 200*time.Millisecond {
		t.Errorf("the close: %+v after %s", in, time.Since(began))
	}
	if got := s.Stats().Overlaps; got != 1 {
		t.Errorf("%d overlaps were counted, want 1", got)
	}
}
