package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"vigil/core"
	"vigil/realgpu"
)

func mmap(t testing.TB, bytes int) []byte {
	t.Helper()
	b, err := syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Why there is no driver is one clear line.
func TestWhyThereIsNoDriver(t *testing.T) {
	if _, err := Load("libcuda-that-is-nowhere.so.1"); err == nil || err.Error() != "libcuda-that-is-nowhere.so.1 was not found" {
		t.Errorf("no library: %v", err)
	}
	if _, err := Load("/proc/self/cmdline"); err == nil || !strings.HasPrefix(err.Error(), "/proc/self/cmdline cannot be loaded: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("no library at all: %v", err)
	}
	if _, err := Load("libc.so.6"); err == nil || err.Error() != "libc.so.6 has no cuInit: it is too old, or no driver" {
		t.Errorf("another library: %v", err)
	}
	d := driver(t)
	for line, want := range map[string]string{
		"cuInit result=100":             d.Path + ": cuInit: CUDA_ERROR_NO_DEVICE (100)",
		"cuInit result=803":             d.Path + ": cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)",
		"cuInit result=4711":            d.Path + ": cuInit: CUresult 4711",
		"cuDriverGetVersion result=999": d.Path + ": cuDriverGetVersion: CUDA_ERROR_UNKNOWN (999)",
	} {
		end := faults(t, line)
		if _, err := Load(d.Path); err == nil || err.Error() != want {
			t.Errorf("%s: %v", line, err)
		}
		end()
	}
	for line, want := range map[string]string{
		"cuDeviceGetCount result=3":                       "cuda: cuDeviceGetCount: CUDA_ERROR_NOT_INITIALIZED (3)",
		"cuDeviceGet result=101":                          "cuda: cuDeviceGet on device 0: CUDA_ERROR_INVALID_DEVICE (101)",
		"cuDeviceGetName result=1":                        "cuda: cuDeviceGetName on device 0: CUDA_ERROR_INVALID_VALUE (1)",
		"cuDeviceGetUuid_v2 result=1":                     "cuda: cuDeviceGetUuid on device 0: CUDA_ERROR_INVALID_VALUE (1)",
		"cuDeviceTotalMem_v2 result=1":                    "cuda: cuDeviceTotalMem on device 0: CUDA_ERROR_INVALID_VALUE (1)",
		"cuDevicePrimaryCtxRetain after=1 result=2":       "cuda: cuDevicePrimaryCtxRetain on device 1 (vigil stand-in device, GPU-76696769-6c2d-7374-616e-642d696e0001): CUDA_ERROR_OUT_OF_MEMORY (2)",
		"cuDevicePrimaryCtxRetain after=1 result=46 hi=1": "cuda: cuDevicePrimaryCtxRetain on device 1 (vigil stand-in device, GPU-76696769-6c2d-7374-616e-642d696e0001): CUDA_ERROR_DEVICE_UNAVAILABLE (46)",
	} {
		end := faults(t, line)
		if _, err := New(Options{Driver: d, Slots: store{}, Done: func(core.Input) {}}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", line, err)
		}
		end()
	}
	if _, err := New(Options{Driver: d}); err == nil {
		t.Error("a Memory without slots")
	}
}

// Every call of an operation can fail, and then the operation fails with the
// call, the device and the result in the log; nothing is left open, and the
// next one is as good as any.
func TestEveryCallThatAnOperationMakesMayFail(t *testing.T) {
	s := newServer(t, nil)
	w := startWorker(t)
	x := w.alloc(0, 1<<20, 1)
	export := x.tensor(16, 4096)
	number := core.Mapping(0)
	said := func(call, result string) {
		t.Helper()
		if want := call + " on device 0 (vigil stand-in device, GPU-76696769-6c2d-7374-616e-642d696e0000): " + result; !strings.Contains(s.log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, s.log)
		}
		s.log.Reset()
	}
	for _, c := range []struct {
		line, call, result string
		want               core.Failure
	}{
		{"cuCtxSetCurrent result=201", "cuCtxSetCurrent", "CUDA_ERROR_INVALID_CONTEXT (201)", core.FailOpen},
		{"cuIpcOpenMemHandle_v2 result=205", "cuIpcOpenMemHandle", "CUDA_ERROR_MAP_FAILED (205)", core.FailOpen},
		{"cuIpcOpenMemHandle_v2 result=1", "cuIpcOpenMemHandle", "CUDA_ERROR_INVALID_VALUE (1)", core.FailOpen},
		{"cuIpcOpenMemHandle_v2 result=400", "cuIpcOpenMemHandle", "CUDA_ERROR_INVALID_HANDLE (400)", core.FailOpen},
		{"cuIpcOpenMemHandle_v2 result=711", "cuIpcOpenMemHandle", "CUDA_ERROR_TOO_MANY_PEERS (711)", core.FailOpen},
		{"cuIpcOpenMemHandle_v2 result=999", "cuIpcOpenMemHandle", "CUDA_ERROR_UNKNOWN (999)", core.FailOpen},
		{"cuIpcOpenMemHandle_v2 result=2", "cuIpcOpenMemHandle", "CUDA_ERROR_OUT_OF_MEMORY (2)", core.FailOutOfMemory},
		{"cuMemGetAddressRange_v2 result=500", "cuMemGetAddressRange", "CUDA_ERROR_NOT_FOUND (500)", core.FailOpen},
	} {
		end := faults(t, c.line)
		number++
		if in := s.open(number, export); in.Failure != c.want || in.Bytes != 0 {
			t.Errorf("%s: the open ends with %s", c.line, in.Failure)
		}
		said(c.call, c.result)
		end()
		if got := s.Stats(); got.Charged != 0 || got.Mappings != 0 {
			t.Errorf("%s: left open: %+v", c.line, got)
		}
	}
	number++
	s.opened(number, export)
	large := []core.ChunkCopy{chunk(0, 0, 1024)} // two stages
	blocks := make([]uint32, 1024)               // all of them are block 0
	all := make([]byte, 16*4096)
	realgpu.Fill(all, 1)
	for _, c := range []struct {
		line, call string
		way        core.Direction
	}{
		{"cuMemcpyDtoHAsync_v2 result=2", "cuMemcpyDtoHAsync", core.CopyOut},
		{"cuMemcpyDtoHAsync_v2 after=300 result=2", "cuMemcpyDtoHAsync", core.CopyOut},
		{"cuMemcpyHtoDAsync_v2 result=2", "cuMemcpyHtoDAsync", core.CopyIn},
		{"cuEventRecord result=2", "cuEventRecord", core.CopyOut},
		{"cuEventRecord after=1 count=1 result=2", "cuEventRecord", core.CopyIn},
		{"cuEventQuery result=2", "cuEventQuery", core.CopyOut},
	} {
		end := faults(t, c.line)
		if in := s.copy(number, c.way, large, blocks); in.Failure != core.FailCopy {
			t.Errorf("%s: the copy ends with %s", c.line, in.Failure)
		}
		said(c.call, "CUDA_ERROR_OUT_OF_MEMORY (2)")
		end()
		if in := s.copy(number, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 15)}, count(16)[1:]); in.Failure != core.NoFailure || !bytes.Equal(s.store[0][:15*4096], all[4096:]) {
			t.Errorf("%s: the copy after it: %s", c.line, in.Failure)
		}
		s.log.Reset()
	}
	// Slow enough that the thread sleeps on the event.
	end := faults(t, "work delay=50 count=1", "cuEventSynchronize result=2")
	if in := s.copy(number, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 1)}, []uint32{0}); in.Failure != core.FailCopy {
		t.Errorf("cuEventSynchronize: %s", in.Failure)
	}
	said("cuEventSynchronize", "CUDA_ERROR_OUT_OF_MEMORY (2)")
	end()
	end = faults(t, "cuEventRecord result=2", "cuStreamSynchronize result=1")
	if in := s.copy(number, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 1)}, []uint32{0}); in.Failure != core.FailCopy {
		t.Errorf("cuStreamSynchronize: %s", in.Failure)
	}
	said("cuStreamSynchronize", "CUDA_ERROR_INVALID_VALUE (1)")
	end()
	// A close that fails gives nothing back; the next one does.
	end = faults(t, "cuIpcCloseMemHandle result=206")
	if in := s.close(number); in.Failure != core.FailClose || s.Stats().Charged != 1<<20 {
		t.Errorf("%s with %d bytes charged", in.Failure, s.Stats().Charged)
	}
	said("cuIpcCloseMemHandle", "CUDA_ERROR_UNMAP_FAILED (206)")
	end()
	if in := s.close(number); in.Failure != core.NoFailure || s.Stats().Charged != 0 {
		t.Errorf("%s with %d bytes charged", in.Failure, s.Stats().Charged)
	}
	for _, v := range s.devices {
		if err := v.usable(); err != nil {
			t.Errorf("a failure that passes has isolated a device: %v", err)
		}
	}
}

// A lane that cannot be equipped is not kept: the copy fails, and the next one
// gets another lane.
func TestALaneThatCannotBeEquipped(t *testing.T) {
	for _, call := range []string{"cuStreamCreate", "cuEventCreate", "cuMemHostAlloc"} {
		t.Run(call, func(t *testing.T) {
			s := newServer(t, nil)
			w := startWorker(t)
			s.opened(1, w.alloc(0, 4096, 1).tensor(1, 4096))
			end := faults(t, call+" result=2")
			if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 1)}, []uint32{0}); in.Failure != core.FailCopy || !strings.Contains(s.log.String(), call+" on device 0") {
				t.Errorf("%s\n%s", in.Failure, s.log)
			}
			end()
			if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 1)}, []uint32{0}); in.Failure != core.NoFailure {
				t.Errorf("the copy after it: %s", in.Failure)
			}
		})
	}
}

// The worker's own side says what failed, too.
func TestAnOwnersCallsMayFail(t *testing.T) {
	leavesNothing(t)
	d := driver(t)
	if _, err := NewOwner(d, 7); err == nil || !strings.Contains(err.Error(), "there is no device 7") {
		t.Errorf("no such device: %v", err)
	}
	o, err := NewOwner(d, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if _, err := o.Alloc(1 << 50); resultOf(err) != OutOfMemory {
		t.Errorf("too much: %v", err)
	}
	for _, call := range []string{"cuMemAlloc_v2", "cuIpcGetMemHandle", "cuMemsetD32Async"} {
		end := faults(t, call+" result=800")
		_, err := o.Alloc(4096)
		if resultOf(err) != 800 || !strings.Contains(err.Error(), strings.TrimSuffix(call, "_v2")+" on device 1") {
			t.Errorf("%s: %v", call, err)
		}
		end()
	}
	a, err := o.Alloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Fill(0, 4096, 0xabcdef01); err != nil {
		t.Error(err)
	}
	b := make([]byte, 8)
	if err := a.Read(4088, b); err != nil || b[0] != 1 || b[7] != 0xab {
		t.Errorf("%x, %v", b, err)
	}
	for what, err := range map[string]error{
		"a write past the end": a.Write(4090, b), "a read past the end": a.Read(1<<40, b),
		"a fill past the end": a.Fill(4096, 4, 0), "a fill of no words": a.Fill(0, 3, 0),
	} {
		if err == nil {
			t.Errorf("%s passes", what)
		}
	}
	end := faults(t, "cuMemFree_v2 result=1", "cuMemGetInfo_v2 result=1")
	if _, _, err := o.Free(); resultOf(err) != 1 {
		t.Errorf("cuMemGetInfo: %v", err)
	}
	if err := a.Free(); resultOf(err) != 1 {
		t.Errorf("cuMemFree: %v", err)
	}
	end()
	if err := errors.Join(a.Free(), a.Free()); err != nil {
		t.Error(err)
	}
}

// After each result that leaves a context broken, one device is isolated: what
// begins on it fails at once and says since when, the other device serves on,
// and the server's own memory of it is honest.
func TestAStickyErrorIsolatesItsDevice(t *testing.T) {
	if !alone(t) {
		return
	}
	s := newServer(t, nil)
	w := startWorker(t)
	x, y := w.alloc(0, 4096, 1), w.alloc(1, 4096, 2)
	s.opened(1, x.tensor(1, 4096))
	s.opened(2, y.tensor(1, 4096))
	one := []core.ChunkCopy{chunk(0, 0, 1)}
	faults(t, "work device=0 result=700 count=1")
	if in := s.copy(1, core.CopyOut, one, []uint32{0}); in.Failure != core.FailCopy {
		t.Errorf("the copy that broke it: %s", in.Failure)
	}
	began := time.Now()
	if in := s.copy(1, core.CopyOut, one, []uint32{0}); in.Failure != core.FailCopy {
		t.Errorf("a copy on the broken device: %s", in.Failure)
	}
	if in := s.open(3, x.tensor(1, 4096)); in.Failure != core.FailOpen {
		t.Errorf("an open on the broken device: %s", in.Failure)
	}
	if in := s.close(1); in.Failure != core.FailClose {
		t.Errorf("a close on the broken device: %s", in.Failure)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("that took %s", took)
	}
	if in := s.copy(2, core.CopyOut, one, []uint32{0}); in.Failure != core.NoFailure || realgpu.Mismatch(s.store[0][:4096], 2) >= 0 {
		t.Errorf("a copy on the other device: %s", in.Failure)
	}
	if in := s.close(2); in.Failure != core.NoFailure {
		t.Errorf("a close on the other device: %s", in.Failure)
	}
	d := s.Devices()
	if !strings.Contains(d[0].Lost, "CUDA_ERROR_ILLEGAL_ADDRESS (700)") || d[1].Lost != "" || d[0].Open != 4096 {
		t.Errorf("the devices say %+v", d)
	}
	if n := strings.Count(s.log.String(), "a device is isolated"); n != 1 {
		t.Errorf("that is said %d times", n)
	}
	if !strings.Contains(s.log.String(), "the device is isolated since cuE") && !strings.Contains(s.log.String(), "the device is isolated since cu") {
		t.Errorf("later failures do not say why:\n%s", s.log)
	}
}

// Which results those are, each provoked in an open that the driver breaks.
func TestWhichErrorsAreSticky(t *testing.T) {
	for r := range resultNames {
		v := &device{driver: &Driver{}, log: slog.New(slog.DiscardHandler)}
		err := v.failed(&function{name: "cuCall"}, r)
		if lost := v.lost.Load() != nil; lost != r.Sticky() {
			t.Errorf("%s: isolated %v", r, lost)
		}
		if resultOf(fmt.Errorf("wrapped: %w", err)) != r || !strings.Contains(err.Error(), resultNames[r]) {
			t.Errorf("%s: %v", r, err)
		}
	}
	for _, r := range []Result{4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 806, 810, 911} {
		if !r.Sticky() {
			t.Errorf("%s is not taken for one that breaks its context", r)
		}
	}
	// What a stranger's handle can bring about must not isolate a device.
	for _, r := range []Result{1, 2, 201, 205, 206, 208, 217, 400, 704, 711, 800, 999} {
		if r.Sticky() {
			t.Errorf("%s is taken for one that breaks its context", r)
		}
	}
}

// A device that somebody else found lost is isolated too.
func TestADeviceThatIsLost(t *testing.T) {
	if !alone(t) {
		return
	}
	s := newServer(t, nil)
	w := startWorker(t)
	x := w.alloc(0, 4096, 1)
	u, err := ParseUUID(string(x.uuid))
	if err != nil {
		t.Fatal(err)
	}
	s.Lose(UUID{}, errors.New("nobody"))
	s.opened(1, x.tensor(1, 4096))
	s.Lose(u, errors.New("it has fallen off the bus"))
	if in := s.open(2, x.tensor(1, 4096)); in.Failure != core.FailOpen || !strings.Contains(s.log.String(), "fallen off the bus") {
		t.Errorf("%s\n%s", in.Failure, s.log)
	}
	if in := s.close(1); in.Failure != core.NoFailure {
		t.Errorf("a close that the driver carries out still: %s", in.Failure)
	}
}

// More closes hang in the driver than any pool would have threads. Whoever else
// opens, copies and closes on the same device does not notice; the bytes that
// hang stay charged, and a shutdown that cannot end names them.
func TestClosesThatHangStarveNobody(t *testing.T) {
	if !alone(t) {
		return
	}
	s := newServer(t, nil)
	w := startWorker(t)
	const hung = 65
	for i := range hung {
		s.opened(core.Mapping(100+i), w.alloc(0, 4096, i).tensor(1, 4096))
	}
	other := w.alloc(0, 4096, 77)
	s.opened(1, other.tensor(1, 4096))
	faults(t, fmt.Sprintf("cuIpcCloseMemHandle hang count=%d", hung))
	for i := range hung {
		s.closing(core.Mapping(100 + i))
	}
	for s.Stats().Closing != hung {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	began := time.Now()
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 1)}, []uint32{0}); in.Failure != core.NoFailure || realgpu.Mismatch(s.store[0][:4096], 77) >= 0 {
		t.Errorf("a copy: %s", in.Failure)
	}
	s.opened(2, w.alloc(0, 4096, 78).tensor(1, 4096))
	if in := s.close(2); in.Failure != core.NoFailure {
		t.Errorf("a close: %s", in.Failure)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("others waited %s behind closes that hang", took)
	}
	got := s.Stats()
	if got.Closing != hung || got.Charged != (hung+1)*4096 {
		t.Errorf("%d closes hang, %d bytes are charged", got.Closing, got.Charged)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); err == nil || !strings.Contains(err.Error(), "65 closes") || !strings.Contains(err.Error(), "66 mappings are held") {
		t.Errorf("the shutdown says %v", err)
	}
}

// A copy that never ends holds its mapping, and the close behind it; others of
// the device go on. When it ends after all, so does the close.
func TestACopyThatHangs(t *testing.T) {
	s := newServer(t, nil)
	w := startWorker(t)
	s.opened(1, w.alloc(0, 4096, 1).tensor(1, 4096))
	s.opened(2, w.alloc(0, 4096, 2).tensor(1, 4096))
	end := faults(t, "work hang count=1")
	first := s.copying(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 1)}, []uint32{0})
	time.Sleep(30 * time.Millisecond)
	last := s.closing(1)
	if in := s.copy(2, core.CopyOut, []core.ChunkCopy{chunk(1, 0, 1)}, []uint32{0}); in.Failure != core.NoFailure {
		t.Errorf("another copy: %s", in.Failure)
	}
	if got := s.Stats(); got.Copying != 1 || got.Closing != 1 {
		t.Errorf("%+v", got)
	}
	end()
	if in := s.wait(); in.Op != first || in.Failure != core.NoFailure {
		t.Errorf("%+v", in)
	}
	if in := s.wait(); in.Op != last || in.Failure != core.NoFailure {
		t.Errorf("%+v", in)
	}
}

// Trouble on purpose strikes as it does in the other backend.
func TestHooks(t *testing.T) {
	hooks := new(realgpu.Hooks)
	s := newServer(t, hooks)
	w := startWorker(t)
	x, y := w.alloc(0, 1<<20, 1), w.alloc(0, 1<<20, 2)
	hooks.SetRoom(1 << 20)
	s.opened(1, x.tensor(1, 4096))
	if in := s.open(2, y.tensor(1, 4096)); in.Failure != core.FailOutOfMemory || s.Stats().Charged != 1<<20 {
		t.Errorf("a small device: %s, %d bytes charged", in.Failure, s.Stats().Charged)
	}
	hooks.SetRoom(0)
	hooks.Add(realgpu.Rule{Operation: realgpu.Open, Fail: core.FailOpen, Count: 1})
	hooks.Add(realgpu.Rule{Operation: realgpu.Copy, Delay: 50 * time.Millisecond, Count: 1})
	hooks.Add(realgpu.Rule{Operation: realgpu.Close, Fail: core.FailClose, Count: 1})
	if in := s.open(2, y.tensor(1, 4096)); in.Failure != core.FailOpen {
		t.Errorf("open: %s", in.Failure)
	}
	began := time.Now()
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 1)}, []uint32{0}); in.Failure != core.NoFailure || time.Since(began) < 50*time.Millisecond {
		t.Errorf("copy: %s after %s", in.Failure, time.Since(began))
	}
	if in := s.close(1); in.Failure != core.FailClose {
		t.Errorf("close: %s", in.Failure)
	}
	hang := hooks.Add(realgpu.Rule{Operation: realgpu.Close, Hang: true})
	s.closing(1)
	for hooks.Struck(hang) == 0 || s.Stats().Closing != 1 {
		time.Sleep(time.Millisecond)
	}
	if h := s.Held(); len(h) != 1 || h[0].State != "closing" || h[0].Bytes != 1<<20 || !s.Hooked() {
		t.Errorf("%+v", h)
	}
}
