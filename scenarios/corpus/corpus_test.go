package corpus

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vigil/core"
	"vigil/scenarios/run"
)

// What was found once stays found: each capsule breaks what it was recorded to
// break, and what mends it still does.
func TestTheCorpusIsAsItWasRecorded(t *testing.T) {
	all, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 5 {
		t.Fatalf("the corpus has %d capsules", len(all))
	}
	for _, e := range all {
		if e.Verdict == string(run.Pass) || len(e.Green) < 2 || e.Green[len(e.Green)-1] != core.Hardened() {
			t.Errorf("%s: verdict %s, green under %v: one of the corpus breaks something, and hardened mends it", e.Name, e.Verdict, e.Green)
		}
		if steps, workers := len(e.Scenario.Plan.Steps), len(e.Scenario.Plan.Workers); steps > 8 || workers > 2 {
			t.Errorf("%s has %d steps and %d workers: shrink it", e.Name, steps, workers)
		}
		wrong, _ := e.Check()
		for _, v := range wrong {
			t.Errorf("%s: %s", e.Name, v.Message)
		}
	}
}

// A folder of the user's own is read whole or not at all.
func TestAFolderIsReadWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "holds no capsule") {
		t.Errorf("an empty folder: %v", err)
	}
	all, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all[:2] {
		if err := e.Write(filepath.Join(dir, e.Name+".capsule")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	own, err := Load(dir)
	if err != nil || len(own) != 2 || own[0].Name != all[0].Name || own[0].Hash != all[0].Hash {
		t.Fatalf("%d capsules: %v", len(own), err)
	}
	bad := filepath.Join(dir, "bad.capsule")
	if err := os.WriteFile(bad, []byte("vigil capsule 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.HasPrefix(err.Error(), bad+":") {
		t.Errorf("a damaged one: %v", err)
	}
}
