package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vigil/core"
	"vigil/reports"
	"vigil/scenarios/capsule"
	"vigil/scenarios/corpus"
)

// results reads the result of a call with -o.
func written(t *testing.T, dir string) reports.Suite {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "latest", "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var suite reports.Suite
	if err := json.Unmarshal(text, &suite); err != nil {
		t.Fatal(err)
	}
	return suite
}

// From a failure in a search to a story in two calls, as the last lines of each
// say it.
func TestAFailureIsKeptReplayedShrunkAndRun(t *testing.T) {
	dir := t.TempDir()
	out, _, code := call(t, "run", "random", "--seed", "52", "--design", "document", "-o", dir)
	if code != exitSafety && code != exitLiveness {
		t.Fatalf("exit %d:\n%s", code, out)
	}
	var kept string
	for _, v := range written(t, dir).Scenarios[0].Violations {
		if v.Capsule == "" {
			t.Errorf("%s has no capsule", v.Invariant)
		}
		if v.Invariant == "NO-FALSE-REAP" {
			kept = v.Capsule
		}
	}
	if !strings.Contains(out, "shrink ") || !strings.Contains(out, kept[:strings.LastIndex(kept, "-NO-")]) {
		t.Errorf("the report names no capsule and no shrink:\n%s", out)
	}

	replayed, _, again := call(t, "replay", kept)
	if again != code || !strings.Contains(replayed, "NO-FALSE-REAP") || strings.Contains(replayed, "not the recorded run") {
		t.Errorf("exit %d, and %d when replayed:\n%s", code, again, replayed)
	}

	small, story := filepath.Join(dir, "small.capsule"), filepath.Join(dir, "small.yaml")
	shrunk, _, ended := call(t, "shrink", kept, "-o", small, "--scenario", story)
	if ended != exitPass || !strings.Contains(shrunk, "Mended by look-before-reap.") {
		t.Fatalf("exit %d:\n%s", ended, shrunk)
	}
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"replay", small, "-q"}, exitSafety},
		{[]string{"run", story, "--design", "document", "-q"}, exitSafety},
		{[]string{"run", story, "--design", "document", "--protect", "look-before-reap", "-q"}, exitPass},
		{[]string{"run", story, "--design", "hardened", "-q"}, exitPass},
	} {
		if said, _, got := call(t, c.args...); got != c.want {
			t.Errorf("%v: exit %d, want %d:\n%s", c.args, got, c.want, said)
		}
	}
	for _, line := range strings.Split(shrunk, "\n") {
		if label, command, _ := strings.Cut(strings.TrimSpace(line), " "); label == "mended" && !strings.Contains(command, story+" --design document --protect look-before-reap") {
			t.Errorf("the command that mends is %q", command)
		}
	}

	// A second call beside the same capsule finds another free name.
	for _, want := range []string{"-shrunk.capsule", "-shrunk-2.capsule"} {
		if said, _, _ := call(t, "shrink", kept, "-q"); !strings.Contains(said, strings.TrimSuffix(kept, ".capsule")+want) {
			t.Errorf("the result is not at ...%s:\n%s", want, said)
		}
	}
}

// What a scenario declares to break is kept where examples are asked for.
func TestExpectedBreaksAreKeptWithVerbose(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		dir := t.TempDir()
		args := []string{"run", "B1/resumed", "--seeds", "3", "--design", "document", "-o", dir}
		if verbose {
			args = append(args, "-v")
		}
		if _, _, code := call(t, args...); code != exitPass {
			t.Fatalf("exit %d", code)
		}
		kept := map[string]bool{}
		for _, v := range written(t, dir).Scenarios[0].Violations {
			kept[v.Invariant] = v.Capsule != ""
		}
		if kept["CONVERGE"] != verbose || kept["TERMINAL"] != verbose {
			t.Errorf("verbose %t: %v", verbose, kept)
		}
	}
}

// The corpus is played first in the suite, and one that is not as it was
// recorded fails it: a hole that opened, or one that went.
func TestTheCorpusIsPlayedFirst(t *testing.T) {
	dir := t.TempDir()
	all, err := corpus.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	good := all[0]
	if err := good.Write(filepath.Join(dir, "good.capsule")); err != nil {
		t.Fatal(err)
	}
	run := func() (*reports.Scenario, int) {
		t.Helper()
		out, _, code := call(t, "run", "A1/server-driven", "--seeds", "1", "--corpus", dir, "--json", "-", "-q")
		var suite reports.Suite
		if err := json.Unmarshal([]byte(out), &suite); err != nil {
			t.Fatal(err)
		}
		if len(suite.Scenarios) != 2 || suite.Scenarios[0].ID != "corpus" || suite.Scenarios[0].Name != dir {
			t.Fatalf("the rows: %+v", suite.Scenarios)
		}
		return &suite.Scenarios[0], code
	}
	if row, code := run(); code != exitPass || row.Runs != 1+len(good.Green) {
		t.Fatalf("exit %d: %+v", code, row)
	}

	gone := *good.Capsule
	gone.Protections = core.Hardened()
	gone.Green = nil
	if err := gone.Write(filepath.Join(dir, "gone.capsule")); err != nil {
		t.Fatal(err)
	}
	row, code := run()
	if code != exitMissed || len(row.Violations) != 1 || !strings.HasPrefix(row.Violations[0].Message, "gone: Another verdict: in the recorded run ") {
		t.Fatalf("a hole that went: exit %d: %+v", code, row)
	}
	if err := os.Remove(filepath.Join(dir, "gone.capsule")); err != nil {
		t.Fatal(err)
	}

	opened := *good.Capsule
	opened.Green = []core.Protections{core.Document()}
	if err := opened.Write(filepath.Join(dir, "opened.capsule")); err != nil {
		t.Fatal(err)
	}
	row, code = run()
	if code != exitLiveness || len(row.Violations) != 1 || !strings.Contains(row.Violations[0].Message, "opened: The same tape was green under document; now ") {
		t.Fatalf("a hole that opened: exit %d: %+v", code, row)
	}
	if _, err := os.Stat(row.Violations[0].Capsule); err != nil {
		t.Errorf("what replays it: %v", err)
	}
}

// Shards share the corpus out; their hashes add up to the whole's.
func TestShardsShareTheCorpusOut(t *testing.T) {
	all, err := corpora(true, "")
	if err != nil {
		t.Fatal(err)
	}
	whole := all[0].play(part{}, nil)
	runs := 0
	for i := uint64(1); i <= 3; i++ {
		one := all[0].play(part{index: i, of: 3}, nil)
		runs += one.Runs
	}
	if runs != whole.Runs {
		t.Errorf("%d runs in shards, %d in all", runs, whole.Runs)
	}
}

// A capsule of other code says what differs, and its verdict is the run's.
func TestAReplayThatDiffersSaysSo(t *testing.T) {
	c, ok := corpus.Named("b3-server-wakes")
	if !ok {
		t.Fatal("the corpus has no b3-server-wakes")
	}
	changed := *c
	changed.Protections.Set("look-before-reap", true)
	path := filepath.Join(t.TempDir(), "changed.capsule")
	if err := changed.Write(path); err != nil {
		t.Fatal(err)
	}
	out, _, code := call(t, "replay", "-q", path)
	if code != exitPass || !strings.Contains(out, "This is not the recorded run. Another verdict: in the recorded run NO-FALSE-REAP broke for w1") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if !strings.Contains(strings.Join(strings.Fields(out), " "), "The first record that is not as it was comes at ") {
		t.Errorf("it does not say where:\n%s", out)
	}
	if _, err := capsule.Read(path); err != nil {
		t.Error(err)
	}
}
