package sim

import (
	"slices"
	"testing"
	"time"

	"vigil/core"
	"vigil/faults"
)

// These stories misuse the device memory by hand: what the simulator must
// catch in a core it must catch here first.

type bench struct {
	*World
	seen map[core.RecordKind]int
	ends []core.Input
}

func (b *bench) Observe(r *core.Record) { b.seen[r.Kind]++ }

func newBench(deviceBytes uint64) *bench {
	b := &bench{World: NewWorld(), seen: map[core.RecordKind]int{}}
	plan := &Plan{Server: core.DefaultServerConfig(), Until: time.Hour, DeviceBytes: deviceBytes}
	for i := 0; i < 2; i++ {
		plan.Workers = append(plan.Workers, WorkerPlan{Config: core.DefaultWorkerConfig(), Idle: true})
	}
	b.reset(plan, NewChoices(1), b)
	b.heap.reset(false)
	for i := range b.processes {
		b.processes[i].state = running
		b.processes[i].machine = stepFunc(func(in *core.Input) { b.ends = append(b.ends, *in) })
	}
	return b
}

func (b *bench) pass() { b.play(b.now.Add(time.Second)) }

// export gives a worker memory and returns its exports.
func (b *bench) export(worker int) []core.Export {
	slot := b.memory.allocate(worker, b.processes[worker+1].life, 8, 100)
	return []core.Export{{Handle: b.memory.handleOf(slot, nil), Bytes: 800, Blocks: 8, BlockBytes: 100}}
}

func (b *bench) openAs(m core.Mapping, exports []core.Export) {
	b.memory.open(&core.OpenOrder{Op: core.Op(m), Mapping: m, Owner: 7, Incarnation: 1, Exports: exports, Groups: []core.Group{{Layers: []int64{0}}}})
}

func (b *bench) closeAs(m core.Mapping) {
	b.memory.close(&core.CloseOrder{Op: 100 + core.Op(m), Mapping: m, Owner: 7, Incarnation: 1})
}

func (b *bench) want(t *testing.T, kind core.RecordKind, n int) {
	t.Helper()
	if b.seen[kind] != n {
		t.Errorf("%s: %d, want %d", kind, b.seen[kind], n)
	}
}

func TestMappingOutlivesItsOwnerAndStaysCharged(t *testing.T) {
	b := newBench(0)
	b.openAs(1, b.export(0))
	b.pass()
	b.kill(&b.processes[1], false)
	b.pass()
	if b.memory.charged != 800 {
		t.Fatalf("%d bytes charged after the owner died, want 800", b.memory.charged)
	}
	b.closeAs(1)
	b.pass()
	if b.memory.charged != 0 {
		t.Fatalf("%d bytes charged after the close", b.memory.charged)
	}
	b.want(t, core.MappingClosed, 1)
}

func TestMisuseIsCaught(t *testing.T) {
	for name, story := range map[string]struct {
		kind core.RecordKind
		tell func(*bench)
	}{
		"opening what is still open": {core.MappingReopened, func(b *bench) {
			e := b.export(0)
			b.openAs(1, e)
			b.pass()
			b.openAs(2, e)
		}},
		"closing twice": {core.MappingClosedTwice, func(b *bench) {
			b.openAs(1, b.export(0))
			b.pass()
			b.closeAs(1)
			b.pass()
			b.closeAs(1)
		}},
		"closing what was never opened": {core.MappingUnknown, func(b *bench) { b.closeAs(9) }},
		"closing under a copy": {core.CopyTouchedRelease, func(b *bench) {
			b.openAs(1, b.export(0))
			b.pass()
			b.memory.copy(&core.CopyOrder{Op: 50, Mapping: 1})
			b.closeAs(1)
		}},
		"copying on a closed mapping": {core.CopyTouchedRelease, func(b *bench) {
			b.openAs(1, b.export(0))
			b.pass()
			b.closeAs(1)
			b.pass()
			b.memory.copy(&core.CopyOrder{Op: 50, Mapping: 1})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(0)
			story.tell(b)
			b.pass()
			b.want(t, story.kind, 1)
		})
	}
}

func TestRightUseIsInnocent(t *testing.T) {
	b := newBench(0)
	e := b.export(0)
	b.openAs(1, e)
	b.pass()
	b.memory.copy(&core.CopyOrder{Op: 50, Mapping: 1})
	b.pass()
	b.closeAs(1)
	b.pass()
	b.openAs(2, e) // open again once it is closed
	b.pass()
	for _, kind := range []core.RecordKind{
		core.MappingReopened, core.MappingClosedTwice, core.MappingUnknown, core.CopyTouchedRelease,
	} {
		b.want(t, kind, 0)
	}
}

func TestDeviceHasRoomForSoMuch(t *testing.T) {
	b := newBench(1000)
	b.openAs(1, b.export(0))
	b.pass()
	b.openAs(2, b.export(1))
	b.pass()
	if got := b.ends[len(b.ends)-1].Failure; got != core.FailOutOfMemory {
		t.Fatalf("the second open ended with %s", got)
	}
	b.closeAs(1)
	b.pass()
	b.openAs(3, b.export(1))
	b.pass()
	if got := b.ends[len(b.ends)-1].Failure; got != core.NoFailure {
		t.Fatalf("after the close an open ended with %s", got)
	}
}

// A handle of an earlier life opens nothing.
func TestStaleAndForgedHandlesFail(t *testing.T) {
	b := newBench(0)
	stale := b.export(0)
	b.kill(&b.processes[1], false)
	for _, handle := range [][]byte{stale[0].Handle, []byte("/vigil_sim_0_0_99"), []byte("/etc/passwd"), nil, []byte("/vigil_sim_1_2_3_4_5")} {
		b.openAs(5, []core.Export{{Handle: handle}})
		b.pass()
		if got := b.ends[len(b.ends)-1].Failure; got != core.FailOpen {
			t.Errorf("handle %q: %s", handle, got)
		}
	}
}

// A copy carries every block's tag, also where a chunk has several groups.
func TestCopiesCarryTags(t *testing.T) {
	b := newBench(0)
	exports := []core.Export{{Bytes: 800, Blocks: 8, BlockBytes: 100}, {Bytes: 400, Blocks: 8, BlockBytes: 50}}
	groups := []core.Group{{Layers: []int64{0}}, {Layers: []int64{1}}}
	for worker := range 2 {
		slot := b.memory.allocateAs(worker, b.processes[worker+1].life, exports, groups)
		given := slices.Clone(exports)
		for i := range given {
			given[i].Handle = b.memory.handleOf(slot, nil)
		}
		m := core.Mapping(worker + 1)
		b.memory.open(&core.OpenOrder{Op: core.Op(m), Mapping: m, Owner: 7, Incarnation: 1, Exports: given, Groups: groups})
	}
	b.pass()
	tags := b.memory.allocations[0].tags
	for i := range tags {
		tags[i] = uint64(100 + i)
	}
	order := core.CopyOrder{
		Op: 50, Mapping: 1, Blocks: []uint32{3, 1, 7, 0},
		Chunks: []core.ChunkCopy{{Slot: 2, First: 0, Count: 2}, {Slot: 2, Group: 1, First: 2, Count: 1}, {Slot: 0, First: 3, Count: 1}},
	}
	b.memory.copy(&order)
	b.pass()
	order.Op, order.Mapping, order.Direction = 51, 2, core.CopyIn
	order.Blocks = []uint32{0, 1, 2, 3}
	order.Chunks[0].Skip = 1
	b.memory.copy(&order)
	b.pass()
	want := make([]uint64, 16)
	want[1], want[3], want[8+2] = 101, 100, 8+107 // the second group's tags lie behind the first one's
	if got := b.memory.allocations[1].tags; !slices.Equal(got, want) {
		t.Fatalf("tags %v, want %v", got, want)
	}
}

// Slow, failing and hanging operations do as they are told, as often as told.
func TestTroublesStrikeAsTold(t *testing.T) {
	b := newBench(0)
	b.plan.Steps = make([]Step, 1)
	b.story.begin(b.World)
	b.memory.addTrouble(troubleOf(0, &faults.Fault{Kind: faults.FailOpen, Worker: 0, Count: 1}))
	e := b.export(0)
	b.openAs(1, e)
	b.pass()
	b.openAs(2, e)
	b.pass()
	if b.ends[0].Failure != core.FailOpen || b.ends[1].Failure != core.NoFailure {
		t.Fatalf("a fault on one open: first %s, second %s", b.ends[0].Failure, b.ends[1].Failure)
	}
	b.memory.addTrouble(troubleOf(0, &faults.Fault{Kind: faults.HangClose, Worker: faults.Everyone}))
	b.closeAs(2)
	b.pass()
	b.want(t, core.MappingHung, 1)
	if len(b.ends) != 2 || b.memory.charged != 800 {
		t.Fatalf("a hung close ended (%d ends) or gave its bytes back (%d charged)", len(b.ends), b.memory.charged)
	}
	if !b.story.struck[0] {
		t.Fatal("the fault struck and was not counted")
	}
}

// With the server's process every mapping goes, and what was under way with it.
func TestServersDeathGivesEverythingBack(t *testing.T) {
	b := newBench(0)
	b.openAs(1, b.export(0))
	b.pass()
	b.openAs(2, b.export(1))
	b.kill(&b.processes[0], false)
	before := len(b.ends)
	b.pass()
	if b.memory.charged != 0 || len(b.ends) != before {
		t.Fatalf("%d bytes charged, %d ends after the server's death", b.memory.charged, len(b.ends)-before)
	}
}
