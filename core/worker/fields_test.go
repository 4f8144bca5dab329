package worker

import (
	"strings"
	"testing"

	"vigil/sim/fork/fieldtest"
)

// leftOut are the fields of a worker that its fingerprint does not fold, each
// with the reason why two workers that differ in it behave the same.
var leftOut = map[string]string{
	"Worker.nextUID":        "a counter of names",
	"WorkerConfig.Instance": "the id is folded",
	"WorkerConfig.Salt":     "folded as the name on the wire",
	"departure.memory":      "a name: Canonical tells what waits for it",
	"departure.rope":        "a name: Canonical tells what waits for it",
	"heartbeat.uid":         "a name: Canonical tells what waits for it",
	"registration.uid":      "a name: Canonical tells what waits for it",
	"settling.uid":          "a name: Canonical tells what waits for it",
	"settling.before":       "folded by which requests it is about",
	"entry.request":         "a name: AppendRequests tells it to whoever follows the engine",
	"entry.prev":            "the order backwards",
	"list.tail":             "where the order ends",
	"table.free":            "places",
	"table.index":           "an index",
	"table.tracked":         "the entries of the index, counted",
}

// Every field of a worker either shows in its fingerprint or stands in the list
// with the reason why it need not.
func TestEveryFieldIsFoldedOrExplained(t *testing.T) {
	noticed := map[string]bool{}
	for _, life := range []struct {
		acts []func(*desk)
		d    *desk
	}{{wholeLife, newDesk(t)}, {protectedLife, newDesk(t, hardened)}} {
		for _, act := range life.acts {
			act(life.d)
			d := life.d
			fieldtest.Merge(noticed, fieldtest.Noticed(d.w, map[string]int64{
				"list.head": -1, "list.tail": -1, "entry.next": -1, "entry.prev": -1, "table.free": -1, "table.entries": 0, "table.index": 0,
			}, []string{"Worker.reply", "Worker.ends", "Worker.digits"}, func() uint64 { return uint64(d.w.Fingerprint(d.now)) }))
		}
	}
	for field, yes := range noticed {
		if strings.HasPrefix(field, "Protections.") {
			continue // those that act at the server, and all others
		}
		why, out := leftOut[field]
		switch {
		case yes && out:
			t.Errorf("%s shows in the fingerprint and is said to be left out: %s", field, why)
		case !yes && !out:
			t.Errorf("%s does not show in the fingerprint: fold it, or say in leftOut why two workers that differ in it behave the same", field)
		}
	}
}
