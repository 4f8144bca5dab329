package run

import (
	"strings"
	"testing"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/monitor"
	"vigil/sim"
	"vigil/sim/fork/fieldtest"
)

// judgesLeaveOut are the fields of the monitors and of the judge that their
// fingerprints do not fold, each with the reason why two that differ in it
// judge the same from now on.
var judgesLeaveOut = map[string]string{
	"Set.skewed": "of the setup", "Set.spare": "names", "Set.order": "a counter, folded by what it orders",
	"Set.violations": "the past, but for what was reported", "Set.dropped": "the past", "Set.unsettledAt": "of a step that is over",
	"Violation.Safety": "the past", "Violation.At": "the past", "Violation.Actors": "the past", "Violation.Message": "the past", "Violation.Invariant": "the past",
	"Set.closing": "the mappings that are closing, in no order", "mapping.place": "in that list",
	"bounds.opens": "of the setup", "bounds.park": "of the setup",
	"table.used":           "an index",
	"instance.reapedOrder": "folded by what it is before",
	"Judge.design":         "of the scenario", "Judge.arrivals": "of the scenario", "Judge.ends": "of the scenario", "Judge.twice": "of one record",
	"finding.line": "the past", "finding.kind": "the past", "finding.missed": "the past", "finding.at": "the past", "finding.actors": "the past", "finding.text": "the past",
	"Judge.findings": "the past, but for which check failed",
	"lives.current":  "the last life of each worker", "lives.count": "the number of that life", "lives.known": "of the index",
	"life.id": "a name",
}

// Every field that a monitor or the judge remembers either shows in the
// fingerprint or stands in the list with its reason.
func TestEveryFieldOfTheJudgesIsFoldedOrExplained(t *testing.T) {
	list, err := scenarios.Find("A16x", "A9", "A17", "A18", "A19", "B1", "B2", "B4", "B6", "B7", "B10", "B18", "B19", "A1", "A10", "A14")
	if err != nil {
		t.Fatal(err)
	}
	noticed := map[string]bool{}
	nobody := (*sim.Naming)(nil)
	for _, s := range list {
		for design, p := range map[string]core.Protections{"document": core.Document(), "hardened": core.Hardened()} {
			plan := Compile(s, p)
			w := &witness{monitors: monitor.New(SetupOf(plan)), judge: NewJudge(s, design, p)}
			dice := sim.NewChoices(1)
			world := sim.NewWorld()
			world.Begin(plan, sim.InTicks(DefaultTick, plainest{dice}), w)
			for k := 0; ; k++ {
				n := world.Ready()
				if n == 0 {
					break
				}
				if k%97 == 0 {
					ends := map[string]int64{"request.next": 0, "instance.requests": 0, "Set.workers": 0, "pool.items": 0, "table.cells": 0, "lives.all": 0, "Judge.checks": 0}
					fieldtest.Merge(noticed, fieldtest.Noticed(w.monitors, ends, []string{"Set.setup"},
						func() uint64 { return uint64(w.monitors.Fingerprint(nobody)) }))
					fieldtest.Merge(noticed, fieldtest.Noticed(w.judge, ends, []string{"Judge.wants", "Judge.byKind", "Judge.states", "Judge.measures", "Measure.Line"},
						func() uint64 { return uint64(w.judge.Fingerprint(nobody)) }))
				}
				if what := world.Step(int(dice.Below(sim.ForOrder, 0, uint64(n)))); what != "" {
					t.Fatalf("%s: %s", s.ID, what)
				}
			}
		}
	}
	for field, yes := range noticed {
		_, out := judgesLeaveOut[field]
		if strings.HasPrefix(field, "pool[") && strings.HasSuffix(field, ".free") {
			continue // names
		}
		switch {
		case yes && out:
			t.Errorf("%s shows in the fingerprint and is said to be left out: %s", field, judgesLeaveOut[field])
		case !yes && !out:
			t.Errorf("%s does not show in the fingerprint: fold it, or say in judgesLeaveOut why", field)
		}
	}
}
