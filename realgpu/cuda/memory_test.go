package cuda

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"vigil/core"
	"vigil/realgpu"
)

// A worker stores and another one gets it, byte for byte, through slots that
// are larger than a stage; what was not to be touched is not.
func TestBytesGoThroughTheStore(t *testing.T) {
	s := newServer(t, nil)
	a, b := startWorker(t), startWorker(t)
	const blocks, size = 96, 64 << 10 // 6 MiB: three stages
	from, to := a.alloc(0, blocks*size, 7), b.alloc(1, blocks*size, 8)
	if got := s.opened(1, from.tensor(blocks, size)); got != blocks*size {
		t.Errorf("the mapping is charged %d bytes", got)
	}
	s.opened(2, to.tensor(blocks, size))
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, blocks)}, count(blocks)); in.Failure != core.NoFailure {
		t.Fatal(in.Failure)
	}
	if at := realgpu.Mismatch(s.store[0][:blocks*size], 7); at >= 0 {
		t.Errorf("the slot is wrong from byte %d on", at)
	}
	skip := chunk(0, 0, blocks)
	skip.Skip = 1
	if in := s.copy(2, core.CopyIn, []core.ChunkCopy{skip}, count(blocks)); in.Failure != core.NoFailure {
		t.Fatal(in.Failure)
	}
	if got := b.ask("check 0 7"); got != "0" {
		t.Errorf("the skipped block: the first byte that is not the store's is %s, want 0", got)
	}
	if in := s.copy(2, core.CopyIn, []core.ChunkCopy{chunk(0, 0, blocks)}, count(blocks)); in.Failure != core.NoFailure {
		t.Fatal(in.Failure)
	}
	if got := b.ask("check 0 7"); got != "-1" {
		t.Errorf("the receiver's memory is wrong from byte %s on", got)
	}
	if got := a.ask("check 0 7"); got != "-1" {
		t.Errorf("the giver's memory was touched at byte %s", got)
	}
	if got := s.Stats(); got.CopiedBytes != 3*blocks*size-size || got.Copied != 3 {
		t.Errorf("%+v", got)
	}
}

// Blocks in any order, keys and values apart, several tensors, an offset into
// the allocation: the bytes are those that the layout says.
func TestTheLayoutIsTheOneOfEveryBackend(t *testing.T) {
	s := newServer(t, nil)
	w := startWorker(t)
	const bytesOf = 1 << 16
	x := w.alloc(0, bytesOf, 3)
	all := make([]byte, bytesOf)
	realgpu.Fill(all, 3)
	plain := x.tensor(8, 256)
	plain.Offset = 4096
	halves := x.tensor(16, 128)
	halves.Offset, halves.Shape = 8192, []int64{2, 16, 4, 16}
	s.opened(1, plain, halves)
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 3)}, []uint32{5, 2, 3}); in.Failure != core.NoFailure {
		t.Fatal(in.Failure)
	}
	var want []byte
	for _, b := range []int{5, 2, 3} {
		want = append(want, all[4096+256*b:][:256]...)
	}
	for _, b := range []int{5, 2, 3} {
		want = append(append(want, all[8192+64*b:][:64]...), all[8192+16*64+64*b:][:64]...)
	}
	if !bytes.Equal(s.store[0][:len(want)], want) {
		t.Error("the slot holds other bytes")
	}
}

// However often and by how many registrations an allocation is named, it is
// open once, and gone from the device with the last one.
func TestAnAllocationIsOpenOnce(t *testing.T) {
	s := newServer(t, nil)
	w := startWorker(t)
	before := free(t, 0)
	x := w.alloc(0, 1<<20, 1)
	first, second := x.tensor(16, 1024), x.tensor(16, 1024)
	second.Offset = 1 << 19
	if got := s.opened(1, first, second); got != 1<<20 {
		t.Errorf("two tensors of one allocation are charged %d bytes", got)
	}
	if got := s.opened(2, first); got != 1<<20 {
		t.Errorf("the second registration holds %d bytes", got)
	}
	if got := s.Stats(); got.Charged != 1<<20 || got.Reopened != 1 || got.Mappings != 2 {
		t.Errorf("%+v", got)
	}
	w.kill()
	if in := s.close(1); in.Failure != core.NoFailure {
		t.Error(in.Failure)
	}
	if in := s.copy(2, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 16)}, count(16)); in.Failure != core.NoFailure {
		t.Errorf("the other registration's copy: %s", in.Failure)
	}
	if got := free(t, 0); got > before-1<<20 {
		t.Errorf("the device has %d bytes free and %d at first, while one registration has 1 MiB open", got, before)
	}
	if in := s.close(2); in.Failure != core.NoFailure {
		t.Error(in.Failure)
	}
	if got := free(t, 0); got != before {
		t.Errorf("after the last close the device has %d bytes free, at first %d", got, before)
	}
}

// A handle with other bytes for the same memory joins what is open, and the
// driver gets as many closes as opens.
func TestAnotherNameOfTheSameMemory(t *testing.T) {
	s := newServer(t, nil)
	w := startWorker(t)
	x := w.alloc(0, 1<<20, 1)
	other := exported{bytes.Clone(x.handle), x.uuid}
	other.handle[63] ^= 1 // the stand-in does not look there
	if got := s.opened(1, x.tensor(16, 1024), other.tensor(16, 1024)); got != 1<<20 {
		t.Errorf("charged %d bytes", got)
	}
	s.opened(2, other.tensor(16, 1024))
	if got := s.imports.alias; got != 1 {
		t.Errorf("%d opens found another name", got)
	}
	s.close(1)
	if got := s.Stats().Charged; got != 1<<20 {
		t.Errorf("charged %d bytes", got)
	}
	s.close(2)
	if got := s.Stats().Charged; got != 0 {
		t.Errorf("charged %d bytes", got)
	}
	w.kill()
	if s.opened(3, startWorker(t).alloc(0, 4096, 1).tensor(1, 4096)) != 4096 {
		t.Error("the next one")
	}
}

// What a worker says is not believed.
func TestBadExportsAreRefused(t *testing.T) {
	s := newServer(t, nil)
	w := startWorker(t)
	x := w.alloc(0, 1<<16, 1)
	good := x.tensor(16, 4096)
	for what, change := range map[string]func(*core.Export){
		"another kind":                 func(e *core.Export) { e.Kind = core.HostSHM },
		"a short handle":               func(e *core.Export) { e.Handle = e.Handle[:63] },
		"no handle of anybody":         func(e *core.Export) { e.Handle = make([]byte, 64) },
		"an end past the allocation":   func(e *core.Export) { e.Offset = 1 },
		"an offset past it":            func(e *core.Export) { e.Offset = 1 << 40 },
		"an end past every allocation": func(e *core.Export) { e.Offset = 1<<64 - 1 },
		"more blocks than bytes":       func(e *core.Export) { e.Blocks = 17 },
		"no UUID":                      func(e *core.Export) { e.Device = []byte("cpu") },
		"an odd block in halves":       func(e *core.Export) { e.Blocks, e.BlockBytes, e.Shape = 2, 3, []int64{2, 2, 3} },
	} {
		e := good
		e.Handle = bytes.Clone(good.Handle)
		change(&e)
		if in := s.open(1, e); in.Failure != core.FailOpen {
			t.Errorf("%s: %s", what, in.Failure)
		}
	}
	if in := s.open(1); in.Failure != core.FailOpen {
		t.Errorf("no exports: %s", in.Failure)
	}
	if got := s.Stats(); got.Charged != 0 || got.Mappings != 0 {
		t.Errorf("after refusals: %+v", got)
	}
	s.opened(1, good)
	for what, c := range map[string]struct {
		chunks []core.ChunkCopy
		blocks []uint32
		want   core.Failure
	}{
		"a block that is not there":     {[]core.ChunkCopy{chunk(0, 0, 1)}, []uint32{16}, core.FailBadBlocks},
		"more blocks than were given":   {[]core.ChunkCopy{chunk(0, 0, 2)}, []uint32{0}, core.FailBadBlocks},
		"a group that is not there":     {[]core.ChunkCopy{{Group: 1, Count: 1}}, []uint32{0}, core.FailBadBlocks},
		"a slot that is not there":      {[]core.ChunkCopy{chunk(99, 0, 1)}, []uint32{0}, core.FailCopy},
		"a chunk larger than its slot ": {[]core.ChunkCopy{chunk(0, 0, 2049)}, make([]uint32, 2049), core.FailCopy},
	} {
		if in := s.copy(1, core.CopyOut, c.chunks, c.blocks); in.Failure != c.want {
			t.Errorf("%s: %s, want %s", what, in.Failure, c.want)
		}
	}
	op := s.next()
	s.Memory.Copy(&core.CopyOrder{Op: op, Mapping: 1, Owner: 1, Incarnation: 2})
	if in := s.ended(op, core.InputCopied); in.Failure != core.FailStale {
		t.Errorf("another incarnation: %s", in.Failure)
	}
}

// Several devices by their UUID, in every spelling; one that this process does
// not see is opened by a peer; memory on two devices in one registration.
func TestDevices(t *testing.T) {
	if os.Getenv(aloneMode) != "" {
		os.Setenv("VIGIL_STANDIN_DEVICES", "3")
		os.Setenv("VIGIL_STANDIN_VISIBLE", "2")
	}
	if !alone(t) {
		return
	}
	s := newServer(t, nil)
	w := startWorker(t, "VIGIL_STANDIN_VISIBLE=3")
	x, y, z := w.alloc(0, 4096, 1), w.alloc(1, 4096, 2), w.alloc(2, 4096, 3)
	if bytes.Equal(x.uuid, y.uuid) {
		t.Fatal("two devices have one UUID")
	}
	bare := exported{y.handle, []byte(strings.ToUpper(strings.TrimPrefix(string(y.uuid), "GPU-")))}
	if got := s.opened(1, x.tensor(1, 4096), bare.tensor(1, 4096)); got != 8192 {
		t.Errorf("two allocations are charged %d bytes", got)
	}
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 1)}, []uint32{0}); in.Failure != core.NoFailure {
		t.Error(in.Failure)
	}
	if realgpu.Mismatch(s.store[0][:4096], 1) >= 0 || realgpu.Mismatch(s.store[0][4096:8192], 2) >= 0 {
		t.Error("the bytes of two devices are wrong")
	}
	for i, d := range s.Devices() {
		if d.Open != 4096 || d.Ordinal != i || d.Name != "vigil stand-in device" || d.Lost != "" {
			t.Errorf("device %d: %+v", i, d)
		}
	}
	s.opened(2, z.tensor(1, 4096))
	if in := s.copy(2, core.CopyOut, []core.ChunkCopy{chunk(1, 0, 1)}, []uint32{0}); in.Failure != core.NoFailure || realgpu.Mismatch(s.store[1][:4096], 3) >= 0 {
		t.Errorf("memory of a device that only a peer reaches: %s", in.Failure)
	}
}

// A close that comes while a copy runs waits for it; a copy that comes after
// the close is refused and counted.
func TestACloseWaitsForTheCopiesBeforeIt(t *testing.T) {
	s := newServer(t, nil)
	w := startWorker(t)
	s.opened(1, w.alloc(0, 1<<16, 1).tensor(16, 4096))
	faults(t, "work delay=200 count=1")
	began := time.Now()
	first := s.copying(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 1)}, []uint32{0})
	last := s.closing(1)
	late := s.copying(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 1)}, []uint32{0})
	var order []core.Op
	for range 3 {
		order = append(order, s.wait().Op)
	}
	if order[0] != late || order[1] != first || order[2] != last || time.Since(began) < 200*time.Millisecond {
		t.Errorf("they ended in the order %v after %s", order, time.Since(began))
	}
	if got := s.Stats(); got.Overlaps != 1 {
		t.Errorf("%+v", got)
	}
}

// Opening what is being closed waits for the close, and gets it then.
func TestReopeningWaitsForTheClose(t *testing.T) {
	s := newServer(t, nil)
	w := startWorker(t)
	x := w.alloc(0, 4096, 5)
	s.opened(1, x.tensor(1, 4096))
	faults(t, "cuIpcCloseMemHandle delay=200 count=1")
	last := s.closing(1)
	time.Sleep(20 * time.Millisecond)
	again := s.next()
	s.Memory.Open(&core.OpenOrder{Op: again, Mapping: 2, Owner: 1, Incarnation: 2, Exports: []core.Export{x.tensor(1, 4096)}})
	a, b := s.wait(), s.wait()
	if a.Op != last && b.Op != last || a.Failure != core.NoFailure || b.Failure != core.NoFailure {
		t.Fatalf("%+v, then %+v", a, b)
	}
	if got := s.Stats(); got.Charged != 4096 || got.Opened != 2 || got.Closed != 1 {
		t.Errorf("%+v", got)
	}
}

// Slots that lie in memory which the backend was told of are copied to and from
// without a detour, and that memory goes when it is given up.
func TestPinnedSlots(t *testing.T) {
	s := newServer(t, nil)
	slab := mmap(t, 4<<20)
	s.Took(slab)
	s.store[0] = slab[1<<20 : 2<<20]
	for !s.pins.holds(s.store[0]) {
		time.Sleep(time.Millisecond)
	}
	if s.pins.holds(s.store[1]) || s.pins.holds(nil) || s.pins.holds(slab[: 4<<20 : 4<<20][4<<20:]) {
		t.Error("what is not pinned passes for pinned")
	}
	w := startWorker(t)
	x := w.alloc(0, 1<<20, 9)
	s.opened(1, x.tensor(256, 4096))
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 256)}, count(256)); in.Failure != core.NoFailure {
		t.Fatal(in.Failure)
	}
	if at := realgpu.Mismatch(s.store[0], 9); at >= 0 {
		t.Errorf("wrong from byte %d on", at)
	}
	realgpu.Fill(s.store[0], 10)
	if in := s.copy(1, core.CopyIn, []core.ChunkCopy{chunk(0, 0, 256)}, count(256)); in.Failure != core.NoFailure {
		t.Fatal(in.Failure)
	}
	if got := w.ask("check 0 10"); got != "-1" {
		t.Errorf("wrong from byte %s on", got)
	}
	s.store[0] = nil
	s.Gave(slab)
	if s.pins.holds(slab) {
		t.Error("memory that was given up passes for pinned")
	}
}

// A driver that refuses to pin costs a detour, and no copy.
func TestWhereNothingCanBePinned(t *testing.T) {
	s := newServer(t, nil)
	faults(t, "cuMemHostRegister_v2 result=2")
	slab := mmap(t, 1<<20)
	s.Took(slab)
	s.store[0] = slab
	for !strings.Contains(s.log.String(), "cannot be pinned") { // else nobody is told
		time.Sleep(time.Millisecond)
	}
	if s.pins.holds(slab) {
		t.Error("memory that could not be pinned passes for pinned")
	}
	w := startWorker(t)
	s.opened(1, w.alloc(0, 1<<20, 9).tensor(256, 4096))
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 256)}, count(256)); in.Failure != core.NoFailure || realgpu.Mismatch(slab, 9) >= 0 {
		t.Errorf("%s", in.Failure)
	}
	s.Gave(slab)
}

func TestUUIDs(t *testing.T) {
	u, err := ParseUUID("GPU-76696769-6c2d-7374-616e-642d696e0001")
	if err != nil || u.String() != "GPU-76696769-6c2d-7374-616e-642d696e0001" {
		t.Errorf("%s, %v", u, err)
	}
	for _, text := range []string{"76696769-6C2D-7374-616E-642D696E0001", "MIG-76696769-6c2d-7374-616e-642d696e0001"} {
		if got, err := ParseUUID(text); err != nil || got != u {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "cpu", "GPU-", strings.Repeat("x", 36), "76696769-6c2d-7374-616e-642d696e000", strings.Repeat("a", 200)} {
		if got, err := ParseUUID(text); err == nil {
			t.Errorf("%q is taken for %s", text, got)
		} else if len(err.Error()) > 150 {
			t.Errorf("%d bytes of error", len(err.Error()))
		}
	}
}
