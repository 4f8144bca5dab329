package reports

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// part is one of n shards with one scenario.
func part(index, of uint64) *Suite {
	s := NewSuite("document", []Scenario{{
		ID: "A1", Name: "a", Verdict: Pass, Runs: 10, Events: 100 * index, SimSeconds: 5, Hash: fmt.Sprintf("%016x", index<<60+7),
		Owed:       []Owed{{Kind: "step", Never: "it never took hold"}},
		Violations: []Violation{{Invariant: "ONE", Seed: index, Declared: true, Verdict: Safety}, {Invariant: "QUIET", Seed: 9 - index, Verdict: Safety, Token: "t"}},
		Coverage:   &Coverage{Runs: 10, Faults: map[string]int{}, NoFault: []string{"kill", "pause"}},
		World:      "00ff",
	}}, 0)
	s.Shard = &Shard{Index: index, Of: of, First: 0, Count: 10 * of, Code: "x"}
	return s
}

func nothing(*Scenario) []Violation { return nil }

// In whatever order parts are named, they add up to the same bytes.
func TestPartsMergeInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 6).Draw(t, "shards")
		var parts []*Suite
		var names []string
		for i := range n {
			p := part(i+1, n)
			p.Scenarios[0].Owed[0].Runs = rapid.IntRange(0, 2).Draw(t, "came")
			if rapid.Bool().Draw(t, "fired") {
				p.Scenarios[0].Coverage.Faults["kill"] = 3
				p.Scenarios[0].Coverage.NoFault = []string{"pause"}
			}
			parts, names = append(parts, p), append(names, fmt.Sprint("r", i))
		}
		var first string
		for range 3 {
			order := rapid.Permutation(parts).Draw(t, "order")
			var owed Owed
			whole, err := MergeSuites(names, order, func(sc *Scenario) []Violation { owed = sc.Owed[0]; return nil })
			if err != nil {
				t.Fatal(err)
			}
			text, _ := json.Marshal(whole)
			if first == "" {
				first = string(text)
			}
			if string(text) != first {
				t.Fatalf("in one order\n%s\nin another\n%s", first, text)
			}
			sum := 0
			for _, p := range parts {
				sum += p.Scenarios[0].Owed[0].Runs
			}
			if owed.Runs != sum || whole.Scenarios[0].Runs != int(10*n) {
				t.Fatalf("%d owed and %d runs", owed.Runs, whole.Scenarios[0].Runs)
			}
		}
	})
}

// What no part showed is judged once, over all of them.
func TestWhatIsOwedIsJudgedOverAllParts(t *testing.T) {
	for _, came := range []int{0, 1} {
		parts := []*Suite{part(1, 2), part(2, 2)}
		parts[1].Scenarios[0].Owed[0].Runs = came
		whole, err := MergeSuites([]string{"a", "b"}, parts, func(sc *Scenario) []Violation {
			if sc.Owed[0].Runs == 0 {
				return []Violation{{Invariant: "step", Verdict: Missed}}
			}
			return nil
		})
		want := Pass
		if came == 0 {
			want = Missed
		}
		if err != nil || whole.Scenarios[0].Verdict != want {
			t.Errorf("came %d times: %v, %v", came, whole.Scenarios[0].Verdict, err)
		}
	}
}

// A part whose runs are not all there makes the whole unknown, and nothing that
// is owed is held against it.
func TestAPartThatWasCutShortIsSaid(t *testing.T) {
	parts := []*Suite{part(1, 2), part(2, 2)}
	parts[1].Scenarios[0].Runs = 4
	whole, err := MergeSuites([]string{"a", "b"}, parts, func(*Scenario) []Violation { t.Error("it was judged"); return nil })
	if err != nil || whole.Verdict != Unknown || !strings.Contains(strings.Join(whole.Scenarios[0].Notes, " "), "14 of 20") {
		t.Errorf("%+v, %v", whole, err)
	}
}

// Parts of two wholes are told apart, in one line that names the files.
func TestPartsOfTwoWholesAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p []*Suite) []*Suite
		says   string
	}{
		{"nothing", func(p []*Suite) []*Suite { return nil }, "nothing to merge"},
		{"one missing", func(p []*Suite) []*Suite { return p[:2] }, "shard 3/3 is missing"},
		{"one twice", func(p []*Suite) []*Suite { return append(p, p[1]) }, "r1 and r3 are both shard 2/3"},
		{"no shard", func(p []*Suite) []*Suite { p[1].Shard = nil; return p }, "r1 is no shard"},
		{"another design", func(p []*Suite) []*Suite { p[2].Design = "hardened"; return p }, "r0 is of design document and r2 of hardened"},
		{"other seeds", func(p []*Suite) []*Suite { p[2].Shard.First = 5; return p }, "from 5 on"},
		{"another program", func(p []*Suite) []*Suite { p[1].Shard.Code = "y"; return p }, "r0 was made by x and r1 by y"},
		{"other parts", func(p []*Suite) []*Suite { p[1].Shard.Of = 4; return p }, "r1 shard 2/4"},
		{"no such part", func(p []*Suite) []*Suite { p[1].Shard.Index = 9; return p }, "shard 9/3"},
		{"other scenarios", func(p []*Suite) []*Suite { p[1].Scenarios[0].ID = "A2"; return p }, "one has A1 where the other has A2"},
		{"a changed file", func(p []*Suite) []*Suite { p[1].Scenarios[0].World = "0000"; return p }, "its file was changed"},
		{"more scenarios", func(p []*Suite) []*Suite { p[1].Scenarios = append(p[1].Scenarios, Scenario{}); return p }, "r1 2:"},
		{"no hash", func(p []*Suite) []*Suite { p[1].Scenarios[0].Hash = "?"; return p }, "is no hash"},
	} {
		parts := c.change([]*Suite{part(1, 3), part(2, 3), part(3, 3)})
		_, err := MergeSuites([]string{"r0", "r1", "r2", "r3"}[:max(len(parts), 1)], parts, nothing)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}
