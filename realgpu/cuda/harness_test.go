package cuda

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"vigil/core"
	"vigil/realgpu"
	"vigil/realgpu/hostshm"
)

// Why this file: the real binding over the stand-in driver (realgpu/standin),
// workers that are real processes, and the proof that a test left nothing
// behind.

// childMode marks a process that is a worker; aloneMode one that is a single
// test, which may break its devices for good.
const (
	childMode = "VIGIL_CUDA_TEST_CHILD"
	aloneMode = "VIGIL_CUDA_TEST_ALONE"
)

var standin struct{ dir, library, why string }

func TestMain(m *testing.M) {
	if os.Getenv(childMode) != "" {
		worker()
		return
	}
	code := 1
	func() {
		dir, err := os.MkdirTemp("/dev/shm", "vigil-standin-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		defer os.RemoveAll(dir)
		defer hostshm.Sweep("", "vigil-standin") // of workers that were killed when nobody was left to bury them
		standin.dir, standin.library = dir, os.Getenv(aloneMode)
		if standin.library == "" {
			standin.library = filepath.Join(dir, "libcuda-standin.so")
			if out, err := exec.Command("../../scripts/standin", dir).CombinedOutput(); err != nil {
				standin.why = fmt.Sprintf("%v: %s", err, out)
			}
		}
		os.Setenv("VIGIL_STANDIN_STATE", filepath.Join(dir, "state"))
		code = m.Run()
	}()
	os.Exit(code)
}

// driver is the stand-in, loaded.
func driver(t testing.TB) *Driver {
	t.Helper()
	if standin.why != "" {
		t.Skipf("the stand-in driver cannot be built here (it needs a C compiler): %s", standin.why)
	}
	d, err := Shared(standin.library)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// faults has the stand-in make trouble until the returned function is called or
// the test ends.
func faults(t testing.TB, lines ...string) (end func()) {
	t.Helper()
	path := filepath.Join(standin.dir, "state.faults")
	if err := os.WriteFile(path+".new", []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	end = func() { os.Remove(path) }
	t.Cleanup(end)
	return end
}

// alone reports whether this process is the test's own. Else it runs the test
// in one, and the caller returns.
func alone(t *testing.T) bool {
	t.Helper()
	driver(t)
	if os.Getenv(aloneMode) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), aloneMode+"="+standin.library)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("in a process of its own: %v\n%s", err, out)
	} else if !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in a process of its own it did not run:\n%s", out)
	}
	return false
}

// worker is a process that allocates and exports what its parent says:
//
//	alloc DEVICE BYTES SEED   answers a handle and the device's UUID
//	free N                    frees the n-th
//	check N SEED              answers the first wrong byte of the n-th, -1
//
// It ends with its input.
func worker() {
	d, err := Load(os.Getenv(childMode))
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	owners := map[int]*Owner{}
	var list []*Allocation
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		var n [3]int
		for i := range words[1:] {
			n[i], _ = strconv.Atoi(words[i+1])
		}
		switch words[0] {
		case "alloc":
			o := owners[n[0]]
			if o == nil {
				if o, err = NewOwner(d, n[0]); err != nil {
					fmt.Println("error:", err)
					continue
				}
				owners[n[0]] = o
			}
			a, err := o.Alloc(uint64(n[1]))
			if err == nil {
				pattern := make([]byte, n[1])
				realgpu.Fill(pattern, uint64(n[2]))
				err = a.Write(0, pattern)
			}
			if err != nil {
				fmt.Println("error:", err)
				continue
			}
			list = append(list, a)
			fmt.Printf("%x %s\n", a.handle, o.Device().UUID)
		case "free":
			fmt.Println("freed", list[n[0]].Free())
		case "check":
			b := make([]byte, list[n[0]].Bytes())
			if err := list[n[0]].Read(0, b); err != nil {
				fmt.Println("error:", err)
				continue
			}
			fmt.Println(realgpu.Mismatch(b, uint64(n[1])))
		}
	}
}

// process is such a worker.
type process struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func startWorker(t testing.TB, env ...string) *process {
	t.Helper()
	driver(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childMode+"="+standin.library), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t, cmd, in, bufio.NewReader(out)}
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	}
}

func (p *process) ask(format string, args ...any) string {
	p.t.Helper()
	fmt.Fprintf(p.in, format+"\n", args...)
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("the worker has ended: %v", err)
	}
	return strings.TrimSpace(line)
}

// exported is an allocation of a worker.
type exported struct{ handle, uuid []byte }

func (p *process) alloc(device, bytes, seed int) exported {
	p.t.Helper()
	line := p.ask("alloc %d %d %d", device, bytes, seed)
	handle, uuid, _ := strings.Cut(line, " ")
	b, err := hex.DecodeString(handle)
	if err != nil || len(b) != handleBytes {
		p.t.Fatalf("the worker said %q", line)
	}
	return exported{b, []byte(uuid)}
}

// tensor exports the allocation's first bytes.
func (e exported) tensor(blocks, blockBytes uint32) core.Export {
	return core.Export{
		Kind: core.CUDA, Handle: e.handle, Device: e.uuid, DType: []byte("uint8"),
		Bytes: uint64(blocks) * uint64(blockBytes), Blocks: blocks, BlockBytes: blockBytes,
	}
}

// store is the bytes of an L1 store.
type store [][]byte

func (s store) Slot(n core.Slot) []byte {
	if int(n) < len(s) {
		return s[n]
	}
	return nil
}

// server drives a Memory the way a core does.
type server struct {
	*Memory
	t      testing.TB
	store  store
	inputs chan core.Input
	op     core.Op
	log    *logText
}

// logText is what was logged, from whichever goroutine.
type logText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logText) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

func newServer(t testing.TB, hooks *realgpu.Hooks) *server {
	t.Helper()
	d := driver(t)
	leavesNothing(t)
	s := &server{t: t, inputs: make(chan core.Input, 4096), log: new(logText)}
	for range 8 {
		s.store = append(s.store, make([]byte, 8<<20))
	}
	var err error
	s.Memory, err = New(Options{Driver: d, Slots: s, Done: func(in core.Input) { s.inputs <- in }, Hooks: hooks, Log: slog.New(slog.NewTextHandler(s.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil && os.Getenv(aloneMode) == "" {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(s.log.String())
		}
		if got := s.Stats(); (got.Charged != 0 || got.Mappings != 0) && os.Getenv(aloneMode) == "" {
			t.Errorf("after the shutdown %d bytes of %d mappings are charged", got.Charged, got.Mappings)
		}
	})
	return s
}

func (s *server) Slot(n core.Slot) []byte { return s.store.Slot(n) }

// wait returns the next input; the test ends where none comes.
func (s *server) wait() core.Input {
	s.t.Helper()
	select {
	case in := <-s.inputs:
		return in
	case <-time.After(10 * time.Second):
		s.t.Fatal("no operation ended within 10 s")
		return core.Input{}
	}
}

func (s *server) next() core.Op { s.op++; return s.op }

func (s *server) openFor(owner core.InstanceID, number core.Mapping, exports ...core.Export) core.Input {
	s.t.Helper()
	op := s.next()
	s.Memory.Open(&core.OpenOrder{Op: op, Mapping: number, Owner: owner, Incarnation: 1, Exports: exports})
	return s.ended(op, core.InputOpened)
}

func (s *server) open(number core.Mapping, exports ...core.Export) core.Input {
	s.t.Helper()
	return s.openFor(1, number, exports...)
}

// opened is open that must succeed.
func (s *server) opened(number core.Mapping, exports ...core.Export) uint64 {
	s.t.Helper()
	in := s.open(number, exports...)
	if in.Failure != core.NoFailure {
		s.t.Fatalf("mapping %d: %s\n%s", number, in.Failure, s.log)
	}
	return in.Bytes
}

func (s *server) closing(number core.Mapping) core.Op {
	op := s.next()
	s.Memory.Close(&core.CloseOrder{Op: op, Mapping: number, Owner: 1, Incarnation: 1})
	return op
}

func (s *server) close(number core.Mapping) core.Input {
	s.t.Helper()
	return s.ended(s.closing(number), core.InputReleased)
}

func (s *server) copying(number core.Mapping, way core.Direction, chunks []core.ChunkCopy, blocks []uint32) core.Op {
	op := s.next()
	s.Memory.Copy(&core.CopyOrder{Op: op, Mapping: number, Owner: 1, Incarnation: 1, Direction: way, Chunks: chunks, Blocks: blocks})
	return op
}

func (s *server) copy(number core.Mapping, way core.Direction, chunks []core.ChunkCopy, blocks []uint32) core.Input {
	s.t.Helper()
	return s.ended(s.copying(number, way, chunks, blocks), core.InputCopied)
}

func (s *server) ended(op core.Op, kind core.InputKind) core.Input {
	s.t.Helper()
	in := s.wait()
	if in.Op != op || in.Kind != kind {
		s.t.Fatalf("operation %d ended as %d of kind %s", op, in.Op, in.Kind)
	}
	return in
}

// free is how many bytes of a device nobody has.
func free(t testing.TB, device int) uint64 {
	t.Helper()
	o, err := NewOwner(driver(t), device)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	free, _, err := o.Free()
	if err != nil {
		t.Fatal(err)
	}
	return free
}

// leavesNothing proves at the end of a test that it left no mapping of device
// memory and no goroutine. Cleanups run last in, first out, so it is called
// before what it checks is made.
func leavesNothing(t testing.TB) {
	t.Helper()
	if os.Getenv(aloneMode) != "" {
		return // its process ends
	}
	goroutines := runtime.NumGoroutine()
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		var complaint string
		for range 100 {
			text, err := os.ReadFile("/proc/self/maps")
			switch n := runtime.NumGoroutine(); {
			case err != nil:
				t.Fatal(err)
			case strings.Contains(string(text), "/dev/shm/vigil-standin_"):
				complaint = "device memory is mapped still"
			case n > goroutines:
				complaint = fmt.Sprintf("%d goroutines before, %d after", goroutines, n)
			default:
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Error(complaint)
	})
}

func chunk(slot core.Slot, first, count uint32) core.ChunkCopy {
	return core.ChunkCopy{Slot: slot, First: first, Count: count}
}

func count(n int) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = uint32(i)
	}
	return list
}
