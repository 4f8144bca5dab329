package worker

import (
	"testing"

	"pgregory.net/rapid"

	"vigil/core"
)

// The table against a map: whatever is added, tracked again, answered and
// released in any order, a uid finds its own entry and no other.
func TestTheTableFindsWhatWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table table
		table.reset()
		waiting := map[uint64]int32{}
		var order []uint64
		uid := rapid.Uint64Range(0, 1<<40).Draw(t, "first uid")
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			uid += rapid.Uint64Range(1, 20).Draw(t, "gap")
			if len(order) == 0 || rapid.IntRange(0, 2).Draw(t, "what") > 0 {
				slot := table.add(core.RequestID(uid), true)
				table.at(slot).stage = stageTransfer
				table.track(slot, uid)
				waiting[uid], order = slot, append(order, uid)
				continue
			}
			i := rapid.IntRange(0, len(order)-1).Draw(t, "which")
			gone := order[i]
			order = append(order[:i], order[i+1:]...)
			slot := table.find(gone)
			if slot != waiting[gone] {
				t.Fatalf("uid %d found %d, want %d", gone, slot, waiting[gone])
			}
			table.forget(slot)
			table.settle(slot, core.OutcomeStored)
			table.release(slot)
			delete(waiting, gone)
			if table.find(gone) != none {
				t.Fatalf("uid %d is still found", gone)
			}
		}
		if table.tracked != len(waiting) || table.count() != len(waiting) {
			t.Fatalf("%d tracked, %d used, want %d", table.tracked, table.count(), len(waiting))
		}
		i := 0
		for slot := table.active.head; slot != none; slot = table.entries[slot].next {
			if table.entries[slot].uid != order[i] {
				t.Fatal("not in the order of submission")
			}
			i++
		}
		for uid, slot := range waiting {
			if table.find(uid) != slot {
				t.Fatalf("uid %d is lost", uid)
			}
		}
	})
}
