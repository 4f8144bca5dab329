package hostshm

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"vigil/core"
)

func itoa(v uint64) string { return strconv.FormatUint(v, 10) }

// More closes hang than any pool would have threads. Whoever else opens,
// copies and closes does not notice; the bytes that hang stay charged.
func TestClosesThatHangStarveNobody(t *testing.T) {
	hooks := new(Hooks)
	rule := hooks.Add(Rule{Operation: Close, Owner: 666, Hang: true})
	s := newServer(t, hooks)
	seg := newSegment(t, 4096)
	const hung = 65
	for i := range hung {
		op := s.next()
		s.Memory.Open(&core.OpenOrder{Op: op, Mapping: core.Mapping(100 + i), Owner: 666, Incarnation: 1, Exports: []core.Export{plain(seg.Name(), 16, 256)}})
		if in := s.ended(op, core.InputOpened); in.Failure != core.NoFailure {
			t.Fatal(in.Failure)
		}
		s.Memory.Close(&core.CloseOrder{Op: s.next(), Mapping: core.Mapping(100 + i), Owner: 666, Incarnation: 1})
	}
	began := time.Now()
	if in := s.open(1, plain(seg.Name(), 16, 256)); in.Failure != core.NoFailure {
		t.Error(in.Failure)
	}
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 16)}, make([]uint32, 16)); in.Failure != core.NoFailure {
		t.Error(in.Failure)
	}
	if in := s.close(1); in.Failure != core.NoFailure {
		t.Error(in.Failure)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("others waited %s behind closes that hang", took)
	}
	got := s.Stats()
	if got.Closing != hung || got.Charged != hung*4096 {
		t.Errorf("%d closes hang with %d bytes, want %d with %d", got.Closing, got.Charged, hung, hung*4096)
	}
	if held := s.Held(); len(held) != hung || held[0].State != "closing" || held[0].Owner != 666 || held[0].Bytes != 4096 {
		t.Errorf("held: %d, first %+v", len(held), held[0])
	}
	if struck := hooks.Remove(rule); struck != hung {
		t.Errorf("the rule says that it struck %d", struck)
	}
	// A shutdown that waits for nothing names what hangs only where it is not
	// ours to end; what hangs on purpose ends with it (see the cleanup).
}

// A close that fails gives nothing back; the next one does.
func TestACloseThatFailsCanBeTriedAgain(t *testing.T) {
	hooks := new(Hooks)
	hooks.Add(Rule{Operation: Close, Fail: core.FailClose, Count: 1})
	s := newServer(t, hooks)
	seg := newSegment(t, 4096)
	s.open(1, plain(seg.Name(), 16, 256))
	if in := s.close(1); in.Failure != core.FailClose || s.Stats().Charged != 4096 {
		t.Errorf("%s with %d bytes charged", in.Failure, s.Stats().Charged)
	}
	if in := s.close(1); in.Failure != core.NoFailure || s.Stats().Charged != 0 {
		t.Errorf("%s with %d bytes charged", in.Failure, s.Stats().Charged)
	}
}

// A small device takes what fits and refuses the next clearly; room comes back
// with a close.
func TestASmallDevice(t *testing.T) {
	hooks := new(Hooks)
	hooks.SetRoom(2 * 4096)
	s := newServer(t, hooks)
	seg := newSegment(t, 4096)
	for number, want := range map[core.Mapping]core.Failure{1: core.NoFailure, 2: core.NoFailure} {
		if in := s.open(number, plain(seg.Name(), 16, 256)); in.Failure != want {
			t.Errorf("mapping %d: %s", number, in.Failure)
		}
	}
	if in := s.open(3, plain(seg.Name(), 16, 256)); in.Failure != core.FailOutOfMemory {
		t.Errorf("the third: %s", in.Failure)
	}
	s.close(1)
	if in := s.open(3, plain(seg.Name(), 16, 256)); in.Failure != core.NoFailure {
		t.Errorf("the third, with room: %s", in.Failure)
	}
	if got := s.Stats(); got.Charged != 8192 || got.Reopened == 0 {
		t.Errorf("%+v", got)
	}
}

// Slow, failing and hanging opens and copies, each struck as often as asked.
func TestTroubleStrikesWhomItIsFor(t *testing.T) {
	hooks := new(Hooks)
	s := newServer(t, hooks)
	seg := newSegment(t, 4096)
	hooks.Add(Rule{Operation: Open, Owner: 2, Fail: core.FailOpen})
	once := hooks.Add(Rule{Operation: Open, Delay: 50 * time.Millisecond, Count: 1})
	began := time.Now()
	if in := s.open(1, plain(seg.Name(), 16, 256)); in.Failure != core.NoFailure || time.Since(began) < 50*time.Millisecond {
		t.Errorf("%s after %s", in.Failure, time.Since(began))
	}
	if struck := hooks.Remove(once); struck != 1 {
		t.Errorf("struck %d", struck)
	}
	op := s.next()
	s.Memory.Open(&core.OpenOrder{Op: op, Mapping: 2, Owner: 2, Incarnation: 1, Exports: []core.Export{plain(seg.Name(), 16, 256)}})
	if in := s.ended(op, core.InputOpened); in.Failure != core.FailOpen {
		t.Errorf("owner 2: %s", in.Failure)
	}
	hang := hooks.Add(Rule{Operation: Copy, Hang: true, Count: 1})
	s.Memory.Copy(&core.CopyOrder{Op: 99, Mapping: 1, Owner: 1, Incarnation: 1, Chunks: []core.ChunkCopy{chunk(0, 0, 1)}, Blocks: []uint32{0}})
	for {
		if s.Stats().Copying == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for hooks.Struck(hang) == 0 {
		time.Sleep(time.Millisecond)
	}
	fail := hooks.Add(Rule{Operation: Copy, Fail: core.FailCopy, Count: 1})
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 1)}, []uint32{0}); in.Failure != core.FailCopy {
		t.Errorf("the failing copy: %s", in.Failure)
	}
	if in := s.copy(1, core.CopyOut, []core.ChunkCopy{chunk(0, 0, 1)}, []uint32{0}); in.Failure != core.NoFailure {
		t.Errorf("the copy after it: %s", in.Failure)
	}
	if struck := hooks.Remove(fail); struck != 1 {
		t.Errorf("struck %d", struck)
	}
}

// Rules cannot pile up.
func TestRulesAreBounded(t *testing.T) {
	hooks := new(Hooks)
	for range MaxRules {
		if hooks.Add(Rule{}) == 0 {
			t.Fatal("a rule was refused too early")
		}
	}
	if hooks.Add(Rule{}) != 0 {
		t.Error("a rule past the bound stands")
	}
}

// Trouble is loud when it is on, and off when nobody asked.
func TestHooksAreLoud(t *testing.T) {
	var log strings.Builder
	o := Options{Slots: store(nil), Done: func(core.Input) {}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	m, err := New(o)
	if err != nil || m.Hooked() || log.Len() != 0 {
		t.Errorf("without hooks: %v, %q", err, log.String())
	}
	o.Hooks = new(Hooks)
	if m, err = New(o); err != nil || !m.Hooked() || !strings.Contains(log.String(), "test hooks are on") {
		t.Errorf("with hooks: %v, %q", err, log.String())
	}
}

// A shutdown is bounded, and says what it could not end.
func TestAShutdownThatCannotEndNamesWhatIsHeld(t *testing.T) {
	leavesNothing(t)
	seg := newSegment(t, 4096)
	release := make(chan struct{})
	m, err := New(Options{Slots: store{make([]byte, 4096)}, Done: func(in core.Input) {
		if in.Kind == core.InputCopied {
			<-release
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	m.Open(&core.OpenOrder{Mapping: 1, Owner: 1, Incarnation: 1, Exports: []core.Export{plain(seg.Name(), 16, 256)}})
	for m.Stats().Opened == 0 {
		time.Sleep(time.Millisecond)
	}
	m.Copy(&core.CopyOrder{Mapping: 1, Owner: 1, Incarnation: 1})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := m.Shutdown(ctx); err == nil || !strings.Contains(err.Error(), "4096 bytes of 1 mappings are held") {
		t.Errorf("the shutdown says %v", err)
	}
	close(release)
	if err := m.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// Everything at once, for the race detector.
func TestManyAtOnce(t *testing.T) {
	hooks := new(Hooks)
	hooks.Add(Rule{Operation: Close, Fail: core.FailClose, Count: 5})
	hooks.Add(Rule{Operation: Copy, Delay: time.Millisecond, Count: 50})
	seg := newSegment(t, 1<<18)
	Fill(seg.Bytes(), 11)
	var mu sync.Mutex
	waiting := map[core.Op]chan core.Input{}
	s := store{}
	for range 16 {
		s = append(s, make([]byte, 1<<16))
	}
	m, err := New(Options{Slots: s, Hooks: hooks, Done: func(in core.Input) {
		mu.Lock()
		defer mu.Unlock()
		waiting[in.Op] <- in
	}})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for w := range 16 {
		all.Go(func() {
			answers := make(chan core.Input, 1)
			op := core.Op(w * 1000)
			ask := func(do func(core.Op)) core.Input {
				op++
				mu.Lock()
				waiting[op] = answers
				mu.Unlock()
				do(op)
				return <-answers
			}
			for round := range 20 {
				number := core.Mapping(w*1000 + round)
				owner := core.InstanceID(w)
				in := ask(func(op core.Op) {
					m.Open(&core.OpenOrder{Op: op, Mapping: number, Owner: owner, Incarnation: 1, Exports: []core.Export{plain(seg.Name(), 64, 4096)}})
				})
				if in.Failure != core.NoFailure {
					t.Error(in.Failure)
				}
				in = ask(func(op core.Op) {
					m.Copy(&core.CopyOrder{Op: op, Mapping: number, Owner: owner, Incarnation: 1,
						Chunks: []core.ChunkCopy{chunk(core.Slot(w), 0, 4)}, Blocks: []uint32{0, 1, 2, 3}})
				})
				if at := Mismatch(s[w][:4*4096], 11); in.Failure != core.NoFailure || at >= 0 {
					t.Errorf("%s, wrong at %d", in.Failure, at)
				}
				for {
					in = ask(func(op core.Op) {
						m.Close(&core.CloseOrder{Op: op, Mapping: number, Owner: owner, Incarnation: 1})
					})
					if in.Failure == core.NoFailure {
						break
					}
				}
				m.Stats()
				m.Held()
			}
		})
	}
	all.Wait()
	if err := m.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if got := m.Stats(); got.Charged != 0 || got.Copied != 16*20 || got.Closed != 16*20 {
		t.Errorf("%+v", got)
	}
}

// What may be a segment's name.
func TestNames(t *testing.T) {
	for _, good := range []string{"/a", "/vigil_kv_1_2", "/lmcache_kv_1_0", "/psm_9f-A.b", "/" + strings.Repeat("x", MaxName-1)} {
		if err := CheckName(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{
		"", "/", "a", "//", "/a/b", "/..", "/.", "/.hidden", "/a..b", "/../x", "../x", "/a\x00b", "/a b", "/a\n", "/é",
		"/%2e%2e", "/a\\b", "/" + strings.Repeat("x", MaxName), "/" + strings.Repeat("../", 300) + "etc",
	} {
		err := CheckName(bad)
		if err == nil {
			t.Errorf("%q passes", bad)
		} else if len(err.Error()) > 300 {
			t.Errorf("the error about %d bytes has %d", len(bad), len(err.Error()))
		}
	}
}

// FuzzName: whatever passes stays in the folder.
func FuzzName(f *testing.F) {
	f.Add("/a")
	f.Add("/../x")
	f.Fuzz(func(t *testing.T, name string) {
		if CheckName(name) != nil {
			return
		}
		if strings.Contains(name[1:], "/") || strings.Contains(name, "..") || strings.ContainsRune(name, 0) || len(name) > MaxName {
			t.Errorf("%q passes", name)
		}
	})
}

// The pattern tells every byte.
func TestThePatternTellsEveryByte(t *testing.T) {
	for _, size := range []int{1, 7, 8, 9, 4096, 4101} {
		b := make([]byte, size)
		Fill(b, 5)
		if at := Mismatch(b, 5); at != -1 {
			t.Errorf("%d bytes: wrong at %d", size, at)
		}
		for _, at := range []int{0, size / 2, size - 1} {
			b[at] ^= 0x10
			if got := Mismatch(b, 5); got != at {
				t.Errorf("%d bytes: changed at %d, found at %d", size, at, got)
			}
			b[at] ^= 0x10
		}
		if size >= 8 && Mismatch(b, 6) != 0 {
			t.Errorf("%d bytes: another seed's pattern passes", size)
		}
	}
}

// A segment's making says what is wrong.
func TestASegmentThatCannotBeMade(t *testing.T) {
	leavesNothing(t)
	seg := newSegment(t, 1)
	for name, c := range map[string]struct {
		name  string
		bytes int64
	}{
		"exists": {seg.Name(), 1}, "bad name": {"/a/b", 1}, "no bytes": {"/" + testPrefix + "0", 0},
		"no room": {"/" + testPrefix + "1", 1 << 60},
	} {
		if s, err := Create("", c.name, c.bytes); err == nil {
			t.Errorf("%s: made", name)
			s.Close()
		} else {
			t.Log(err)
		}
	}
}

// BenchmarkCopy is a chunk of 1 MiB in blocks of 32 KiB, beside plain copies
// over the same sizes.
func BenchmarkCopy(b *testing.B) {
	const block, blocks = 32 << 10, 1024
	name, err := NewName(testPrefix)
	if err != nil {
		b.Fatal(err)
	}
	seg, err := Create("", name, block*blocks)
	if err != nil {
		b.Fatal(err)
	}
	defer seg.Close()
	slots := store{}
	for range 32 {
		slots = append(slots, make([]byte, 1<<20))
	}
	for i := range slots {
		Fill(slots[i], 1)
	}
	ids := make([]uint32, 32*32)
	for i := range ids {
		ids[i] = uint32(i * 613 % blocks)
	}
	for _, flight := range []int{1, 4} {
		b.Run(fmt.Sprintf("hostshm/%d", flight), func(b *testing.B) {
			done := make(chan core.Input, flight)
			m, err := New(Options{Slots: slots, Done: func(in core.Input) { done <- in }})
			if err != nil {
				b.Fatal(err)
			}
			defer m.Shutdown(context.Background())
			m.Open(&core.OpenOrder{Mapping: 1, Owner: 1, Incarnation: 1, Exports: []core.Export{plain(name, blocks, block)}})
			if in := <-done; in.Failure != core.NoFailure {
				b.Fatal(in.Failure)
			}
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			pending := 0
			for i := 0; b.Loop(); i++ {
				if pending == flight {
					if in := <-done; in.Failure != core.NoFailure {
						b.Fatal(in.Failure)
					}
					pending--
				}
				m.Copy(&core.CopyOrder{Mapping: 1, Owner: 1, Incarnation: 1, Direction: core.Direction(i & 1),
					Chunks: []core.ChunkCopy{chunk(core.Slot(i%32), 0, 32)}, Blocks: ids[i%32*32 : i%32*32+32]})
				pending++
			}
			for ; pending > 0; pending-- {
				<-done
			}
		})
	}
	b.Run("plain", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for i := 0; b.Loop(); i++ {
			for k := range 32 {
				from := seg.Bytes()[int(ids[i%32*32+k])*block:][:block]
				to := slots[i%32][k*block : (k+1)*block]
				if i&1 == 1 {
					from, to = to, from
				}
				copy(to, from)
			}
		}
	})
}
