package sim_test

import (
	"fmt"
	"testing"
	"time"

	"vigil/core"
	"vigil/faults"
	"vigil/sim"
)

// standardPlan is the world that speed is measured in: 16 workers, 10 s
// heartbeats, a store or a retrieve each 30 s, chunks of 16 tokens, keys of 16
// to 64 tokens.
func standardPlan(lasts time.Duration) *sim.Plan { return worldOf(16, lasts) }

func worldOf(workers int, lasts time.Duration) *sim.Plan {
	p := &sim.Plan{Server: core.DefaultServerConfig(), Until: lasts, PromptLow: 16, PromptHigh: 64}
	p.Server.ChunkTokens = 16
	for i := 0; i < workers; i++ {
		c := core.DefaultWorkerConfig()
		c.ChunkTokens = 16
		p.Workers = append(p.Workers, sim.WorkerPlan{
			Name: fmt.Sprintf("w%d", i+1), Config: c, Pod: i % 64,
			Traffic: sim.Traffic{Every: faults.Span{Low: 29 * time.Second, High: 31 * time.Second}},
			Start:   faults.Span{High: 20 * time.Second},
		})
	}
	return p
}

// The standard world does what it is for: workers register, ping, store and
// retrieve, and each delivered block is right.
func TestStandardWorldServes(t *testing.T) {
	counts := map[core.RecordKind]int{}
	result := sim.NewWorld().Run(standardPlan(time.Hour), sim.NewChoices(1), observe(func(r *core.Record) {
		counts[r.Kind]++
	}))
	if result.Panic != "" {
		t.Fatal(result.Panic)
	}
	for kind, least := range map[core.RecordKind]int{
		core.ContextInserted: 16, core.PingAnswered: 16 * 350, core.EngineTold: 16 * 100, core.BlocksRight: 200,
	} {
		if counts[kind] < least {
			t.Errorf("%s: %d, want at least %d", kind, counts[kind], least)
		}
	}
	for _, kind := range []core.RecordKind{
		core.BlocksWrong, core.MessageLost, core.Refused, core.HealthCleared, core.ContextRemoved, core.CopyTouchedRelease,
	} {
		if counts[kind] != 0 {
			t.Errorf("%s: %d in a world without faults", kind, counts[kind])
		}
	}
	if counts[core.EngineSubmitted]-counts[core.EngineTold] > 16 {
		t.Errorf("%d submitted, %d told", counts[core.EngineSubmitted], counts[core.EngineTold])
	}
}

type observe func(*core.Record)

func (f observe) Observe(r *core.Record) { f(r) }

// Same plan and tape, same hash: in a used world as in a fresh one.
func TestRunIsAFunctionOfPlanAndTape(t *testing.T) {
	plan := standardPlan(10 * time.Minute)
	used := sim.NewWorld()
	used.Run(standardPlan(time.Minute), sim.NewChoices(77), nil)
	for seed := uint64(0); seed < 5; seed++ {
		a := used.Run(plan, sim.NewChoices(seed), nil)
		b := sim.NewWorld().Run(plan, sim.NewChoices(seed), nil)
		if a.Hash != b.Hash || a.Events != b.Events || a.Records != b.Records {
			t.Fatalf("seed %d: %+v in a used world, %+v in a fresh one", seed, a, b)
		}
		if c := used.Run(plan, sim.NewChoices(seed+1000), nil); c.Hash == a.Hash {
			t.Fatalf("seeds %d and %d gave one hash", seed, seed+1000)
		}
	}
}

// A recorded tape replays to the same hash.
func TestTapeReplaysToTheSameHash(t *testing.T) {
	plan := standardPlan(5 * time.Minute)
	var tape sim.Tape
	c := sim.NewChoices(4)
	c.Record(&tape)
	a := sim.NewWorld().Run(plan, c, nil)
	b := sim.NewWorld().Run(plan, sim.ChoicesFrom(&tape), nil)
	if a.Hash != b.Hash {
		t.Fatalf("recorded %x, replayed %x", a.Hash, b.Hash)
	}
}

func BenchmarkStandardWorld(b *testing.B) {
	plan := standardPlan(24 * time.Hour)
	w, c := sim.NewWorld(), sim.NewChoices(1)
	var events uint64
	b.ReportAllocs()
	for b.Loop() {
		c.Reseed(1)
		events += w.Run(plan, c, nil).Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(24*3600*float64(b.N)/b.Elapsed().Seconds(), "sim/real")
}

func BenchmarkFourWorkersTenMinutes(b *testing.B) {
	plan := worldOf(4, 10*time.Minute)
	w, c := sim.NewWorld(), sim.NewChoices(1)
	var events uint64
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.Reseed(uint64(i))
		events += w.Run(plan, c, nil).Events
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

// For scale: the same world driven by goroutines over a faked clock.
func TestScaleAgainstFakedClocks(t *testing.T) {
	if testing.Short() {
		t.Skip("a comparison of speed; make bench runs it")
	}
	began := time.Now()
	result := sim.NewWorld().Run(standardPlan(time.Hour), sim.NewChoices(1), nil)
	ours := float64(result.Events) / time.Since(began).Seconds()
	events, took := underSynctest(t, 10*time.Minute)
	bubble := float64(events) / took.Seconds()
	events, took = underMock(20 * time.Second)
	mock := float64(events) / took.Seconds()
	t.Logf("events a second: sim %.0f, testing/synctest %.0f (1/%.0f), benbjohnson mock %.0f (1/%.0f)", ours, bubble, ours/bubble, mock, ours/mock)
	if ours < bubble || ours < mock {
		t.Errorf("the simulator is slower than a faked clock")
	}
}
