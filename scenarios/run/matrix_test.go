package run

import (
	"context"
	"testing"

	"vigil/core"
	"vigil/scenarios"
)

// The matrix shows a protection as needed by the story that misses it, and by
// no other; which does not depend on the jobs.
func TestMatrixShowsWhatAProtectionIsNeededFor(t *testing.T) {
	list, err := scenarios.Find("A1", "A8/pid", "B5")
	if err != nil {
		t.Fatal(err)
	}
	for _, jobs := range []int{1, 3} {
		rows := Matrix(context.Background(), list, MatrixOptions{
			Protections: []string{"replace-other-memory", "open-after-release", "drop-half-written"}, Count: 3, Jobs: jobs,
		})
		want := []map[string]string{{"A8/pid": "INTEGRITY"}, {"B5": "ONCE"}, {}}
		for i := range rows {
			for k := range rows[i].Needs {
				n := &rows[i].Needs[k]
				broke := ""
				if n.Broke != nil {
					broke = n.Broke.Invariant
				}
				if broke != want[i][n.Scenario.ID] {
					t.Errorf("without %s, %s breaks %q, want %q", rows[i].Protection, n.Scenario.ID, broke, want[i][n.Scenario.ID])
				}
				if n.Broke == nil && n.Runs != 3 || n.Broke != nil && n.Runs > 3 {
					t.Errorf("without %s, %s ran %d times", rows[i].Protection, n.Scenario.ID, n.Runs)
				}
			}
			if rows[i].Needed() != (len(want[i]) > 0) {
				t.Errorf("%s: needed is %v", rows[i].Protection, rows[i].Needed())
			}
		}
	}
}

// Every protection has the story that it names, which breaks without it.
func TestEveryProtectionIsShownByItsStory(t *testing.T) {
	for _, name := range core.ProtectionNames() {
		_, story, _ := core.DescribeProtection(name)
		list, err := scenarios.Find(story)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		rows := Matrix(context.Background(), list, MatrixOptions{Protections: []string{name}, Count: 10, Jobs: 2})
		if !rows[0].Needed() {
			t.Errorf("%s does not break without %s in 10 seeds", story, name)
		}
	}
}

// An old server corrupts with new workers as it does with old ones; a new one
// does not with old workers.
func TestPairingsOfOldAndNew(t *testing.T) {
	list, err := scenarios.Find("A8/pid", "B7/lost-reply")
	if err != nil {
		t.Fatal(err)
	}
	out := Pair(context.Background(), list, MatrixOptions{Count: 3, Jobs: 2})
	for i, want := range [][2]string{{"INTEGRITY", "TERMINAL"}, {"INTEGRITY", ""}, {"", "TERMINAL"}, {"", ""}} {
		for k := range list {
			got := ""
			for _, b := range out[i][k].Broke {
				got += b.Invariant
			}
			if got != want[k] || out[i][k].Worse != nil {
				t.Errorf("%s in %s broke %q (worse: %v), want %q", Pairings[i], list[k].ID, got, out[i][k].Worse, want[k])
			}
		}
	}
}

// What no pairing may do is told from what it merely does not mend.
func TestWhatAPairingMayNotDo(t *testing.T) {
	document := &Paired{Broke: []Broken{{"TERMINAL", 1}, {"INTEGRITY", 1}}}
	old, hardened := Pairings[1], Pairings[2]
	for _, c := range []struct {
		pair          Pairing
		broke         string
		worse, beside bool
	}{
		{old, "TERMINAL", false, false}, {old, "INTEGRITY", false, false}, {old, "NO-UAF", true, false}, {old, "ONCE", false, true},
		{hardened, "INTEGRITY", true, false}, {hardened, "TERMINAL", false, false}, {hardened, "CONVERGE", false, true},
	} {
		p := &Paired{first: []Violation{{Invariant: c.broke}}}
		p.judge(c.pair, document, document) // hardened workers mend nothing here
		if (p.Worse != nil) != c.worse || (p.Beside != nil) != c.beside {
			t.Errorf("%s breaking %s: worse %v, beside %v", c.pair, c.broke, p.Worse != nil, p.Beside != nil)
		}
	}
	p := &Paired{first: []Violation{{Invariant: "INTEGRITY"}}}
	if p.judge(hardened, document, &Paired{}); p.Worse != nil {
		t.Error("the hardened server is blamed for what hardened workers mend alone")
	}
}
