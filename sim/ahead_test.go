package sim

import (
	"testing"
	"time"

	"vigil/core"
	"vigil/faults"
)

// Fetching ahead, and the queue's layout for a crowd, change how long a run
// takes and nothing else: the same world gives the same hash with and without,
// also where its workers die and come back.
func TestFetchingAheadChangesNothing(t *testing.T) {
	plan := &Plan{Server: core.DefaultServerConfig(), Until: 20 * time.Minute, FaultsOver: 15 * time.Minute}
	for i := range 24 {
		plan.Workers = append(plan.Workers, WorkerPlan{
			Config: core.DefaultWorkerConfig(), Pod: i % 3, Start: faults.Span{High: 200 * time.Second},
			Traffic: Traffic{Every: faults.Span{Low: time.Second, High: 90 * time.Second}},
		})
	}
	at := func(low time.Duration, f faults.Fault) {
		plan.Steps = append(plan.Steps, Step{At: faults.Span{Low: low, High: low + time.Minute}, Do: Action{Kind: ActFault, Fault: f}})
	}
	for i := range 8 {
		at(time.Duration(3+i)*time.Minute, faults.Fault{Kind: faults.Kill, Worker: i})
		at(time.Duration(4+i)*time.Minute, faults.Fault{Kind: faults.Restart, Worker: i})
	}
	at(8*time.Minute, faults.Fault{Kind: faults.ServerRestart, Worker: faults.Server})
	for seed := range uint64(20) {
		plain, ahead := NewWorld(), NewWorld()
		ahead.crowd = 0
		a, b := plain.Run(plan, NewChoices(seed), nil), ahead.Run(plan, NewChoices(seed), nil)
		if a.Panic+b.Panic != "" {
			t.Fatal(a.Panic, b.Panic)
		}
		if a.Hash != b.Hash || a.Records != b.Records {
			t.Fatalf("seed %d: %+v, and fetched ahead %+v", seed, a, b)
		}
		if plain.heap.known != 0 || ahead.heap.known == 0 {
			t.Fatal("both worlds look ahead, or none does")
		}
	}
}
