package loop

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// With every protection a close that hangs holds up nobody, is shown as stuck,
// and what was recorded of it replays.
func TestAHungReleaseIsShownAndHoldsUpNobody(t *testing.T) {
	leaks(t)
	dir := filepath.Join(t.TempDir(), "tape")
	recording, err := NewRecording(RecordingOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(o *ServerOptions) {
		o.Config.Protections, o.Config.NormalSlots, o.Config.AffinityLanes = core.Hardened(), 4, 16
		o.Recording = recording
	})
	for id := core.InstanceID(1); id <= 3; id++ {
		r.ask(core.Peer(id), registerOf(id))
		r.ask(core.Peer(id), pingOf(id))
		r.ask(core.Peer(id), transferOf(wire.Store, id, int(id), 1))
		r.ask(core.Peer(id), pingOf(id))
	}
	r.memory.mu.Lock()
	first := true
	r.memory.hold = func(k core.InputKind) bool {
		hang := k == core.InputReleased && first
		first = first && !hang
		return hang
	}
	r.memory.mu.Unlock()
	for range 20 { // 1 and 2 are silent, 3 pings
		r.pass(10 * time.Second)
		if a := r.ask(3, pingOf(3)); !a.OK {
			t.Fatal("the survivor's ping")
		}
	}
	v := r.sync()
	if v.ServerDriven != 1 || v.Counts.Removed[core.RemovedByReaper] != 2 {
		t.Fatalf("%d serve, %d reaped", v.ServerDriven, v.Counts.Removed[core.RemovedByReaper])
	}
	if v.ReleaseCount != 1 || v.Stuck != 1 || v.StuckBytes != testBlocks*testBlockBytes || !v.Releases[0].Stuck || v.Releases[0].For < core.ReleaseBound {
		t.Fatalf("%d releases, %d stuck: %+v", v.ReleaseCount, v.Stuck, v.Releases)
	}
	if r.memory.closed != 1 || v.Counts.Records[core.ReleaseStuck] != 1 {
		t.Fatalf("%d closed, %d recorded as stuck", r.memory.closed, v.Counts.Records[core.ReleaseStuck])
	}
	r.memory.release()
	r.quiet()
	if v = r.sync(); v.ReleaseCount != 0 || v.Stuck != 0 {
		t.Fatalf("%+v", v.Releases)
	}
	if e, err := r.s.Shutdown(context.Background()); err != nil || e.Code != core.ExitOrderly || e.Contexts != 0 {
		t.Fatalf("%v %v", e, err)
	}
	if report := replay(t, dir); report.Difference != nil || report.Inputs == 0 {
		t.Fatalf("%v", report.Difference)
	}
}

// What is refused is answered, in a drain as well.
func TestRefusalsAreAnswered(t *testing.T) {
	r := newRig(t, func(o *ServerOptions) { o.Config.Protections = core.Hardened() })
	if a := r.ask(1, transferOf(wire.Store, 77, 1, 1)); a.OK {
		t.Fatal("an unknown instance stored")
	}
	r.ask(1, registerOf(1))
	r.memory.mu.Lock()
	r.memory.hold = func(k core.InputKind) bool { return k == core.InputCopied }
	r.memory.mu.Unlock()
	r.send(1, transferOf(wire.Store, 1, 5, 2))
	r.sync()
	go r.s.Shutdown(context.Background())
	for !r.sync().Stopping {
		time.Sleep(time.Millisecond)
	}
	if a := r.ask(2, transferOf(wire.Store, 1, 6, 1)); a.OK || a.Type != wire.Store {
		t.Fatalf("%+v", a)
	}
	r.memory.release()
	if _, a := r.reply(); !a.OK {
		t.Fatal("what was under way")
	}
	<-r.s.Done()
}
