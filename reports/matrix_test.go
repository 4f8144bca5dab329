package reports

import (
	"bytes"
	"encoding/json"
	"testing"
)

// some is a matrix with a protection that two stories need, one that one
// variant needs, and one that nothing needs.
func some() *Matrix {
	return &Matrix{
		Version: 1, Design: "hardened", Verdict: Missed, Seeds: 50, OffSeeds: 20, Wall: 12.25,
		Scenarios: []string{"A1", "A8/uuid", "A8/pid", "B4/twice", "B9"},
		Rows: []MatrixRow{
			{Name: "replace-other-memory", ShownBy: "B9", NeededBy: []MatrixNeed{{Scenario: "A8/pid", Invariant: "INTEGRITY"}, {Scenario: "B9", Invariant: "INTEGRITY"}}},
			{Name: "boot-token", ShownBy: "B4", NeededBy: []MatrixNeed{{Scenario: "B4/twice", Invariant: "expect ended", Seed: 3}}},
			{Name: "wishful", ShownBy: "A1", NeededBy: []MatrixNeed{}},
		},
		AllOn: []MatrixVerdict{{"A1", Pass, 50, "00"}, {"A8/uuid", Pass, 50, "01"}, {"A8/pid", Safety, 50, "02"}, {"B4/twice", Pass, 50, "03"}, {"B9", Pass, 50, "04"}},
	}
}

func TestMatrixForAPerson(t *testing.T) {
	for _, c := range []struct {
		name   string
		width  int
		colour bool
	}{{"matrix-pipe.txt", 0, false}, {"matrix-40.txt", 40, false}, {"matrix-80-colour.txt", 80, true}} {
		var b bytes.Buffer
		if err := WriteMatrix(&b, some(), c.width, c.colour); err != nil {
			t.Fatal(err)
		}
		golden(t, c.name, b.Bytes())
	}
}

// A matrix of which nothing is wrong says so, and no more.
func TestAWholeMatrixPasses(t *testing.T) {
	m := some()
	m.Rows, m.Verdict = m.Rows[:2], Pass
	m.AllOn[2].Verdict = Pass
	var b bytes.Buffer
	if err := WriteMatrix(&b, m, 0, false); err != nil {
		t.Fatal(err)
	}
	golden(t, "matrix-pass.txt", b.Bytes())
	if len(m.Unneeded()) != 0 {
		t.Errorf("%v are said to be needed by nothing", m.Unneeded())
	}
}

func TestPairingsForAPerson(t *testing.T) {
	p := &Pairings{Version: 1, Verdict: Safety, Seeds: 20, Wall: 3, Pairings: []string{"old, old", "old, new"}, Rows: []PairingRow{
		{"A1", []PairingCell{{Broke: map[string]int{}}, {Broke: map[string]int{}}}},
		{"B1", []PairingCell{{Broke: map[string]int{"CONVERGE": 20, "TERMINAL": 4}, Order: []string{"CONVERGE", "TERMINAL"}}, {Broke: map[string]int{}, Beside: "ONCE, seed 2: twice", Order: []string{"ONCE"}}}},
		{"B9", []PairingCell{{Broke: map[string]int{}}, {Broke: map[string]int{"INTEGRITY": 1}, Order: []string{"INTEGRITY"}, Worse: "INTEGRITY, seed 7: wrong bytes"}}},
	}}
	var b bytes.Buffer
	if err := WritePairings(&b, p, 80, false); err != nil {
		t.Fatal(err)
	}
	golden(t, "pairings-80.txt", b.Bytes())
	text, err := json.Marshal(p)
	if err != nil || !json.Valid(text) {
		t.Errorf("no JSON: %v", err)
	}
}
