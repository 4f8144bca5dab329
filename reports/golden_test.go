package reports

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "record the output of this code as the expected one")

// golden compares output with its record in testdata. Run the test with
// -update to record it anew, and read the difference before committing it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (record it with: go test ./reports -update)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from its record.\n--- got\n%s\n--- want\n%s", path, got, want)
	}
}

// mixed is a suite with one scenario of each sort: passed, broke as declared,
// unsafe, starved, missed, and one from a file of the user's own.
func mixed() *Suite {
	return NewSuite("document", []Scenario{
		{Name: "kill-after-serving", ID: "A1", Verdict: Pass, Expected: "pass", Runs: 200, Events: 412_345, SimSeconds: 200 * 600, WallSeconds: 0.912345678, Hash: "00c5a1f2b3d4e5f6",
			Story: "a worker serves, then it is killed without a word"},
		{Name: "alive-but-never-pinged-past-the-grace", ID: "A3", Verdict: Pass, Expected: "breaks NO-FALSE-REAP in all (w1)", Breaks: []string{"NO-FALSE-REAP"}, Runs: 200, Events: 1_234_567, SimSeconds: 200 * 3700, WallSeconds: 1.5, Hash: "1122334455667788",
			Story:      "a worker registers and stays idle past the registration grace",
			Violations: []Violation{{Invariant: "NO-FALSE-REAP", AtSeconds: 3615.25, Actors: []string{"w1"}, Message: "w1 was reaped while alive", Seed: 0, Token: "v1-A3-d-0", Verdict: Safety, Declared: true, Replay: "simrun replay v1-A3-d-0"}}},
		{Name: "partition-longer-than-the-window", ID: "A6", Verdict: Safety, Expected: "pass", Runs: 200, FailedRuns: 12, Events: 999, SimSeconds: 60, WallSeconds: 0.2, Hash: "aabbccddeeff0011",
			Story: "the link is cut for longer than the reap window, then heals",
			Violations: []Violation{
				{Invariant: "ONE", AtSeconds: 142.318, Actors: []string{"server", "w1"}, Message: "w1 has two serving contexts of kind server-driven: incarnation 3 since 97.2s and incarnation 5 since 142.318s", Seed: 17, Token: "v1-A6-d-h", Verdict: Safety, Replay: "simrun replay v1-A6-d-h"},
				{Invariant: "TERMINAL", AtSeconds: 500, Message: "w1's request 4 never ended <b>&\x01", Seed: 18, Token: "v1-A6-d-i", Verdict: Liveness, Replay: "simrun replay v1-A6-d-i"},
			}},
		{Name: "mine", Verdict: Liveness, Expected: "pass", Runs: 1, Events: 12, SimSeconds: 30, WallSeconds: 0, Hash: "0000000000000001", File: "stories/mine.yaml",
			Story:      "my own story",
			Violations: []Violation{{Invariant: "RECLAIM", AtSeconds: 300, Actors: []string{"w3"}, Message: "w3's context is held: its close has waited since 240s on device 0", Seed: 2, Token: "v1-mine-d-2", Verdict: Liveness, Replay: "simrun replay v1-mine-d-2 stories/mine.yaml"}}},
		{Name: "pid-reuse/pid", ID: "A8/pid", Verdict: Missed, Expected: "breaks INTEGRITY in some", Breaks: []string{"INTEGRITY"}, Runs: 200, Events: 5, SimSeconds: 0.5, WallSeconds: 0.1, Hash: "0000000000000002",
			Story:      "a new worker starts in a dead one's PID",
			Violations: []Violation{{Invariant: "break", Message: "INTEGRITY did not break on any of 200 seeds, although the scenario declares that it does", Verdict: Missed}}},
	}, 4567*time.Millisecond)
}

// repaired is a suite under the repairs: what the document breaks stays whole.
func repaired() *Suite {
	s := calm()
	s.Scenarios[1].Expected, s.Scenarios[1].Breaks, s.Scenarios[1].Violations = "pass", nil, nil
	s.Scenarios[1].Holes = []string{"NO-FALSE-REAP"}
	return NewSuite("hardened", s.Scenarios, 1300*time.Millisecond)
}

// calm is a suite in which all went well.
func calm() *Suite {
	s := mixed()
	return NewSuite("document", s.Scenarios[:2], 1300*time.Millisecond)
}
