package hostshm

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"vigil/core"
)

// Why this file: a server without a core, a worker that is a real process, and
// the proof that a test left nothing behind.

// testPrefix marks the segments of one test binary, so that two that run at
// once do not see each other's.
var testPrefix = "vigiltest" + strconv.Itoa(os.Getpid())

// childPrefix tells a child which prefix its parent looks for.
const childPrefix = "VIGIL_HOSTSHM_CHILD"

func TestMain(m *testing.M) {
	if prefix := os.Getenv(childPrefix); prefix != "" {
		worker(prefix)
		return
	}
	os.Exit(m.Run())
}

// worker is a process that exports one segment and then waits to be killed.
func worker(prefix string) {
	name, err := NewName(prefix)
	if err == nil {
		var s *Segment
		if s, err = Create("", name, 1<<20); err == nil {
			Fill(s.Bytes(), 7)
			fmt.Println(name)
			bufio.NewReader(os.Stdin).ReadByte() // until the parent is gone
			s.Close()
			return
		}
	}
	fmt.Println("error:", err)
	os.Exit(1)
}

// startWorker runs a worker process and returns it with its segment's name.
func startWorker(t *testing.T) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childPrefix+"="+testPrefix)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil { // held open as long as we live
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if line = strings.TrimSpace(line); err != nil || !strings.HasPrefix(line, "/") {
		t.Fatalf("the worker said %q (%v)", line, err)
	}
	return cmd, line
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
	t      *testing.T
	store  store
	inputs chan core.Input
	op     core.Op
}

func newServer(t *testing.T, hooks *Hooks) *server {
	t.Helper()
	leavesNothing(t)
	s := &server{t: t, inputs: make(chan core.Input, 4096)}
	for range 8 {
		s.store = append(s.store, make([]byte, 1<<20))
	}
	var err error
	s.Memory, err = New(Options{Slots: s, Done: func(in core.Input) { s.inputs <- in }, Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if got := s.Stats(); got.Charged != 0 || got.Mappings != 0 {
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

func (s *server) open(number core.Mapping, exports ...core.Export) core.Input {
	s.t.Helper()
	op := s.next()
	s.Memory.Open(&core.OpenOrder{Op: op, Mapping: number, Owner: 1, Incarnation: 1, Exports: exports})
	return s.ended(op, core.InputOpened)
}

func (s *server) close(number core.Mapping) core.Input {
	s.t.Helper()
	op := s.next()
	s.Memory.Close(&core.CloseOrder{Op: op, Mapping: number, Owner: 1, Incarnation: 1})
	return s.ended(op, core.InputReleased)
}

func (s *server) copy(number core.Mapping, way core.Direction, chunks []core.ChunkCopy, blocks []uint32) core.Input {
	s.t.Helper()
	op := s.next()
	s.Memory.Copy(&core.CopyOrder{Op: op, Mapping: number, Owner: 1, Incarnation: 1, Direction: way, Chunks: chunks, Blocks: blocks})
	return s.ended(op, core.InputCopied)
}

func (s *server) ended(op core.Op, kind core.InputKind) core.Input {
	s.t.Helper()
	in := s.wait()
	if in.Op != op || in.Kind != kind {
		s.t.Fatalf("operation %d ended as %d of kind %s", op, in.Op, in.Kind)
	}
	return in
}

// leavesNothing proves at the end of a test that it left no segment, mapping,
// descriptor or goroutine. Cleanups run last in, first out, so it is called
// before what it checks is made.
func leavesNothing(t *testing.T) {
	t.Helper()
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		var complaint string
		for range 100 {
			if complaint = left(t, goroutines, files); complaint == "" {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Error(complaint)
	})
}

func left(t *testing.T, goroutines, files int) string {
	if names, _ := filepath.Glob(filepath.Join(DefaultDir, testPrefix+"*")); len(names) > 0 {
		return fmt.Sprintf("segments are left: %s", names)
	}
	if maps := mapped(t, testPrefix); maps > 0 {
		return fmt.Sprintf("%d bytes are mapped still", maps)
	}
	if n := descriptors(t); n > files {
		return fmt.Sprintf("%d descriptors before, %d after", files, n)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		return fmt.Sprintf("%d goroutines before, %d after", goroutines, n)
	}
	return ""
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// mapped returns how many bytes of segments with a mark in their name this
// process has mapped, as the kernel says.
func mapped(t *testing.T, mark string) (bytes_ uint64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, []byte(mark)) {
			continue
		}
		var from, to uint64
		if _, err := fmt.Sscanf(string(line), "%x-%x ", &from, &to); err != nil {
			t.Fatalf("/proc/self/maps: %q: %v", line, err)
		}
		bytes_ += to - from
	}
	return bytes_
}

// newSegment makes a segment of this process for the length of the test.
func newSegment(t *testing.T, bytes int64) *Segment {
	t.Helper()
	name, err := NewName(testPrefix)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Create("", name, bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// plain exports the first bytes of a segment as one tensor.
func plain(name string, blocks, blockBytes uint32) core.Export {
	return core.Export{
		Kind: core.HostSHM, Handle: []byte(name), Device: []byte("cpu"), DType: []byte("uint8"),
		Bytes: uint64(blocks) * uint64(blockBytes), Blocks: blocks, BlockBytes: blockBytes,
	}
}

func chunk(slot core.Slot, first, count uint32) core.ChunkCopy {
	return core.ChunkCopy{Slot: slot, First: first, Count: count}
}
