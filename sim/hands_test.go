package sim

import (
	"testing"
	"time"

	"vigil/core"
	"vigil/faults"
)

// Stories of what a story may make an engine do beside its traffic.

type count map[core.RecordKind]int

func (c count) Observe(r *core.Record) { c[r.Kind]++ }

func handsPlan(steps ...Step) *Plan {
	plan := &Plan{Server: core.DefaultServerConfig(), Until: 200 * time.Second, Steps: steps}
	plan.Workers = []WorkerPlan{{Name: "w1", Config: core.DefaultWorkerConfig(), Traffic: Traffic{
		Every: faults.Fixed(5 * time.Second), To: 100 * time.Second,
	}}}
	return plan
}

func at(d time.Duration, do Action) Step { return Step{At: faults.Fixed(d), Do: do} }

// Other memory under the same id: the document answers with a no-op.
func TestAnEngineRegistersOtherMemory(t *testing.T) {
	seen := count{}
	r := NewWorld().Run(handsPlan(at(150*time.Second, Action{Kind: ActReallocate})), NewChoices(1), seen)
	if len(r.Unfired) != 0 || seen[core.RegisterNoop] != 1 || seen[core.MappingOpened] != 1 {
		t.Errorf("unfired %v, %d no-op registers, %d opens; want none, 1, 1", r.Unfired, seen[core.RegisterNoop], seen[core.MappingOpened])
	}
}

// A request under way keeps the memory that it was promised.
func TestAnEngineKeepsItsMemoryWhileARequestIsPending(t *testing.T) {
	hang := at(time.Second, Action{Kind: ActFault, Fault: faults.Fault{Kind: faults.HangCopy, Worker: 0}})
	r := NewWorld().Run(handsPlan(hang, at(150*time.Second, Action{Kind: ActReallocate})), NewChoices(1), nil)
	if len(r.Unfired) != 1 || r.Unfired[0] != 1 {
		t.Errorf("unfired %v, want the reallocation alone", r.Unfired)
	}
}

// The stuck engine's requests stop, its pings do not, and it goes on after.
func TestAStuckEngineStillPings(t *testing.T) {
	stuck := at(20*time.Second, Action{Kind: ActFault, Fault: faults.Fault{Kind: faults.StickEngine, Worker: 0, For: faults.Fixed(60 * time.Second)}})
	pings, early, during, late := 0, 0, 0, 0
	r := NewWorld().Run(handsPlan(stuck), NewChoices(1), watcher(func(r *core.Record) {
		switch {
		case r.Kind == core.PingAnswered && r.At > core.Time(30*time.Second) && r.At < core.Time(80*time.Second):
			pings++
		case r.Kind == core.EngineSubmitted && r.At < core.Time(20*time.Second):
			early++
		case r.Kind == core.EngineSubmitted && r.At < core.Time(80*time.Second):
			during++
		case r.Kind == core.EngineSubmitted:
			late++
		}
	}))
	if len(r.Unfired) != 0 || pings < 4 || early == 0 || during != 0 || late == 0 {
		t.Errorf("unfired %v, %d pings meanwhile, requests %d before, %d meanwhile, %d after", r.Unfired, pings, early, during, late)
	}
}

// An unregister in the name of a dead worker reaches the server.
func TestAnUnregisterByHand(t *testing.T) {
	seen := count{}
	kill := at(120*time.Second, Action{Kind: ActFault, Fault: faults.Fault{Kind: faults.Kill, Worker: 0}})
	r := NewWorld().Run(handsPlan(kill, at(130*time.Second, Action{Kind: ActUnregister})), NewChoices(1), seen)
	if len(r.Unfired) != 0 || seen[core.UnregisterCame] != 1 || seen[core.MappingClosed] != 1 {
		t.Errorf("unfired %v, %d unregisters, %d mappings closed; want none, 1, 1", r.Unfired, seen[core.UnregisterCame], seen[core.MappingClosed])
	}
}

type watcher func(*core.Record)

func (f watcher) Observe(r *core.Record) { f(r) }

// A heartbeat that starved and got its processor back while its process stood
// still goes on with it.
func TestAStarvedHeartbeatGoesOnAfterAPause(t *testing.T) {
	starve := at(20*time.Second, Action{Kind: ActFault, Fault: faults.Fault{Kind: faults.StarveHeartbeat, Worker: 0, For: faults.Fixed(30 * time.Second)}})
	pause := at(40*time.Second, Action{Kind: ActFault, Fault: faults.Fault{Kind: faults.Pause, Worker: 0, For: faults.Fixed(30 * time.Second)}})
	pings := 0
	NewWorld().Run(handsPlan(starve, pause), NewChoices(1), watcher(func(r *core.Record) {
		if r.Kind == core.PingSent && r.At > core.Time(70*time.Second) {
			pings++
		}
	}))
	if pings < 10 {
		t.Errorf("%d pings after the process went on, want about 13", pings)
	}
}
