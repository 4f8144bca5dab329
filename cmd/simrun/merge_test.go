package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"vigil/reports"
)

func read[T any](t *testing.T, path string) *T {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	v := new(T)
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Three machines run a third of the seeds each; what they bring together is what
// one machine would have said, breaks that came in one shard only included.
func TestShardsMergeToTheWhole(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	suite := strings.Fields("run A1 A16 B13 --design document --seeds 40 -q -j 2")
	if _, complaints, code := call(t, append(suite, "--json", at("whole.json"))...); code != 0 {
		t.Fatalf("%d: %s", code, complaints)
	}
	for i := 1; i <= 3; i++ {
		args := append(suite, "--shard", fmt.Sprintf("%d/3", i), "-o", at(fmt.Sprint("part", i)))
		if _, complaints, code := call(t, args...); code != 0 {
			t.Fatalf("%d: %s", code, complaints)
		}
	}
	if _, complaints, code := call(t, "merge", at("part2"), at("part3"), at("part1/latest/result.json"), "-q", "--json", at("merged.json")); code != 0 {
		t.Fatalf("%d: %s", code, complaints)
	}
	whole, merged := read[reports.Suite](t, at("whole.json")), read[reports.Suite](t, at("merged.json"))
	if merged.Verdict != whole.Verdict || merged.Totals.Runs != whole.Totals.Runs || merged.Totals.Events != whole.Totals.Events {
		t.Errorf("merged %+v, whole %+v", merged.Totals, whole.Totals)
	}
	for i := range whole.Scenarios {
		a, b := whole.Scenarios[i], merged.Scenarios[i]
		if a.ID != b.ID || a.Hash != b.Hash || a.Verdict != b.Verdict || a.Expected != b.Expected || a.Runs != b.Runs ||
			a.FailedRuns != b.FailedRuns || !reflect.DeepEqual(a.Violations, b.Violations) || !reflect.DeepEqual(a.Coverage.States, b.Coverage.States) {
			t.Errorf("whole  %+v\nmerged %+v", a, b)
		}
	}
}

// The same of a search: its counts, its features and what it says about causes.
func TestShardsOfASearchMergeToTheWhole(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, strategy := range []string{"random", "swarm", "pct"} {
		search := strings.Fields("explore --design document --runs 90 -q --strategy " + strategy)
		call(t, append(search, "--until-found=false", "--json", at("whole.json"), "-o", at("found"))...)
		for i := 1; i <= 2; i++ {
			call(t, append(search, "--shard", fmt.Sprintf("%d/2", i), "--json", at(fmt.Sprint("part", i)), "-o", at("found"))...)
		}
		if _, complaints, code := call(t, "merge", at("part2"), at("part1"), "-q", "--json", at("merged.json")); code != 10 {
			t.Fatalf("%s: %d: %s", strategy, code, complaints)
		}
		a, b := read[reports.Exploration](t, at("whole.json")).Campaigns[0], read[reports.Exploration](t, at("merged.json")).Campaigns[0]
		if a.Hash != b.Hash || a.Runs != b.Runs || a.Found != b.Found || a.Features != b.Features || a.FirstRun != b.FirstRun ||
			!reflect.DeepEqual(a.Broke, b.Broke) || !reflect.DeepEqual(a.Blame, b.Blame) || !reflect.DeepEqual(a.Coverage.Faults, b.Coverage.Faults) {
			t.Errorf("%s: whole  %+v\nmerged %+v", strategy, a, b)
		}
	}
}

// What is no result, or not a part of the same whole, is one line.
func TestWhatDoesNotMergeSaysSo(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"no.json": "{", "old.json": `{"version":0}`, "other.json": `{"version":1}`} {
		if err := os.WriteFile(at(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	call(t, "run", "A1", "--seeds", "4", "-q", "--json", at("whole.json"))
	call(t, "run", "A1", "--seeds", "4", "-q", "--shard", "1/2", "--json", at("one.json"))
	call(t, "explore", "A1", "--runs", "4", "-q", "--shard", "2/2", "--json", at("two.json"))
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "merge needs the results of shards"},
		{[]string{at("nosuch")}, "there is no folder and no file"},
		{[]string{dir}, "holds no result.json"},
		{[]string{at("no.json")}, "is no result of simrun"},
		{[]string{at("old.json")}, "version 0"},
		{[]string{at("other.json")}, "neither simrun run nor simrun explore"},
		{[]string{at("whole.json")}, "is no shard"},
		{[]string{at("one.json")}, "shard 2/2 is missing"},
		{[]string{at("one.json"), at("one.json")}, "are both shard 1/2"},
		{[]string{at("one.json"), at("two.json")}, "the other of simrun explore"},
	} {
		_, complaint, code := call(t, append([]string{"merge"}, c.args...)...)
		if code != 1 || !strings.Contains(complaint, c.says) || strings.Count(complaint, "\n") != 1 {
			t.Errorf("merge %v: exit %d, %s", c.args, code, complaint)
		}
	}
}
