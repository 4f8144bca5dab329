package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryBreakStillApplies keeps the table from rotting: the core moves on,
// and a break whose text is gone would be noticed only in the next long run.
func TestEveryBreakStillApplies(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range breaks {
		t.Run(b.name, func(t *testing.T) {
			if seen[b.name] {
				t.Fatal("two breaks have this name")
			}
			seen[b.name] = true
			if len(b.edits) == 0 || b.why == "" {
				t.Fatal("a break needs an edit and a reason")
			}
			tree := t.TempDir()
			for _, e := range b.edits {
				text, err := os.ReadFile(filepath.Join("..", "..", e.file))
				if err != nil {
					t.Fatal(err)
				}
				to := filepath.Join(tree, e.file)
				if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(to, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.apply(tree); err != nil {
				t.Fatal(err)
			}
			for _, e := range b.edits {
				if _, err := parser.ParseFile(token.NewFileSet(), filepath.Join(tree, e.file), nil, 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestABreakWhoseTextIsGoneSaysSo(t *testing.T) {
	tree := t.TempDir()
	if err := os.WriteFile(filepath.Join(tree, "a.go"), []byte("x x y"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, complaint string }{
		{"gone", "0 times"}, {"x", "2 times"}, {"y", ""},
	} {
		err := breakage{edits: []edit{{"a.go", c.old, "z"}}}.apply(tree)
		if got := err != nil && strings.Contains(err.Error(), c.complaint); got != (c.complaint != "") {
			t.Errorf("replacing %q: %v, want a complaint with %q", c.old, err, c.complaint)
		}
	}
}

func TestOnlyAFindingCountsAsCaught(t *testing.T) {
	report := []byte(`{"scenarios":[{"name":"crash","id":"A1","verdict":"liveness","expected":"breaks ONE (all seeds)",
		"violations":[{"invariant":"ONE"},{"invariant":"RECLAIM"}]},{"name":"other","id":"A2","verdict":"pass"}]}`)
	for _, c := range []struct {
		story  string
		exit   int
		report []byte
		red    bool
		where  string
		fails  bool
	}{
		{"green", 0, nil, false, "", false},
		{"a liveness invariant broke", 11, report, true, "A1 RECLAIM", false},
		{"no report was written", 12, nil, true, "non-determinism", false},
		{"a usage error is no finding", 1, nil, false, "", true},
		{"a crash of simrun is no finding", 2, nil, false, "", true},
		{"red, but no scenario is", 10, []byte(`{"scenarios":[{"verdict":"pass"}]}`), false, "", true},
	} {
		got, err := judge(c.exit, c.report, nil)
		if got.red != c.red || got.where != c.where || (err != nil) != c.fails {
			t.Errorf("%s: got %+v, %v", c.story, got, err)
		}
	}
}
