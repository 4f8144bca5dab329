package run

import (
	"testing"
	"time"

	"vigil/core"
	"vigil/scenarios"
)

// A1: a dead worker is reaped in (window, window + scan] after its last stamp,
// and over the tape anywhere in it. A reaper whose times bunch up would hide
// what an unlucky phase does.
func TestReapTimeCoversItsRange(t *testing.T) {
	list, err := scenarios.Find("A1/server-driven")
	if err != nil {
		t.Fatal(err)
	}
	seeds := uint64(1000)
	if testing.Short() {
		seeds = 200
	}
	player := NewPlayer("document", core.Document())
	low, high := time.Hour, time.Duration(0)
	for seed := uint64(0); seed < seeds; seed++ {
		stamps := map[core.InstanceID]core.Time{}
		reaped := 0
		player.Play(list[0], seed, observer(func(r *core.Record) {
			switch r.Kind {
			case core.Stamped:
				stamps[r.Instance] = r.At
			case core.ReapDecided:
				reaped++
				silent := r.At.Sub(stamps[r.Instance])
				if silent <= 120*time.Second || silent > 150*time.Second {
					t.Errorf("seed %d: reaped %v after the last stamp", seed, silent)
				}
				low, high = min(low, silent), max(high, silent)
			}
		}))
		if reaped != 1 {
			t.Errorf("seed %d: %d reaps, want 1", seed, reaped)
		}
	}
	t.Logf("over %d seeds: from %v to %v after the last stamp", seeds, low, high)
	if low >= 122*time.Second || high <= 148*time.Second {
		t.Errorf("reaped from %v to %v after the last stamp: the range is not covered", low, high)
	}
}
