package sim

import (
	"testing"
	"time"

	"vigil/faults"
)

// A world that is used again is a fresh one, whatever it held before: here the
// raw client stands where an earlier world had a worker.
func TestAWorldUsedAgainIsFresh(t *testing.T) {
	large := handsPlan()
	for range 3 {
		large.Workers = append(large.Workers, large.Workers[0])
	}
	small := handsPlan(at(40*time.Second, Action{Kind: ActFault, Fault: faults.Fault{Kind: faults.BusyPool, Worker: faults.Server, For: faults.Fixed(20 * time.Second)}}))
	fresh := NewWorld().Run(small, NewChoices(5), nil)
	used := NewWorld()
	used.Run(large, NewChoices(5), nil)
	again := used.Run(small, NewChoices(5), nil)
	if again.Panic != "" || again.Hash != fresh.Hash {
		t.Errorf("used again: hash %016x, %q; fresh: %016x", uint64(again.Hash), again.Panic, uint64(fresh.Hash))
	}
}
