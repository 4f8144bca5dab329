package real

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/run"
)

var built struct {
	once sync.Once
	path string
	why  string
}

// server builds the program under test once; without a C compiler or libzmq
// there is none.
func server(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("real processes are not for -short")
	}
	built.once.Do(func() {
		dir, err := os.MkdirTemp("", "vigil-real-test-")
		if err != nil {
			built.why = err.Error()
			return
		}
		path := filepath.Join(dir, "server")
		out, err := exec.Command("go", "build", "-o", path, "vigil/cmd/server").CombinedOutput()
		if err != nil {
			built.why = string(out)
			return
		}
		built.path = path
	})
	if built.path == "" {
		t.Skipf("the server cannot be built here (scripts/deps gets what it needs): %s", built.why)
	}
	return built.path
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.path != "" {
		os.RemoveAll(filepath.Dir(built.path))
	}
	os.Exit(code)
}

func parse(t *testing.T, text string) []*scenarios.Scenario {
	t.Helper()
	list, err := scenarios.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// leftovers are processes of the program and segments of ours; both are of
// this test alone, for the program lies in its own folder.
func leftovers(t *testing.T, program string) (list []string) {
	t.Helper()
	entries, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, e := range entries {
		if target, err := os.Readlink(e); err == nil && strings.TrimSuffix(target, " (deleted)") == program {
			list = append(list, e)
		}
	}
	files, _ := os.ReadDir(segmentFolder)
	for _, f := range files {
		if pid, _, ok := segmentOwner(f.Name()); ok && strings.HasPrefix(f.Name(), "vigil-") {
			if exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); err == nil && strings.TrimSuffix(exe, " (deleted)") == program {
				list = append(list, f.Name())
			}
		}
	}
	return list
}

func playAll(t *testing.T, design string, list []*scenarios.Scenario) []Outcome {
	t.Helper()
	o := Options{Server: server(t), Scale: 60, Design: design, Protections: core.Document(), Jobs: 4}
	if design == "hardened" {
		o.Protections = core.Hardened()
	}
	outcomes, err := Suite(context.Background(), list, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range outcomes {
		if len(outcomes[i].Left) > 0 {
			t.Errorf("%s left %v", outcomes[i].Scenario.ID, outcomes[i].Left)
		}
	}
	if left := leftovers(t, o.Server); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return outcomes
}

func tell(t *testing.T, o *Outcome) {
	t.Helper()
	t.Logf("%s: %s, stalled %s, notes %q, undecided %v", o.Scenario.ID, o.Verdict, o.Stalled, o.Notes, o.Undecided)
	for _, v := range o.Violations {
		t.Logf("  %s at %s: %s", v.Invariant, v.At.Sub(0), v.Message)
	}
}

// A crash, a version skew and a partition, as the document has them.
func TestRealProcessesPlayTheDocument(t *testing.T) {
	server(t)
	list, err := scenarios.Find("A1/server-driven", "A5/stall", "A9/new-client-old-server", "A8/pid")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range playAll(t, "document", list) {
		if o.Verdict != run.Pass {
			tell(t, &o)
			t.Errorf("%s: %s", o.Scenario.ID, o.Verdict)
		}
		if len(o.Undecided) > 0 {
			t.Errorf("%s: undecided %v", o.Scenario.ID, o.Undecided)
		}
	}
}

// A checker that cannot fail proves nothing: each of these stories breaks
// something, and must be seen to.
func TestWhatIsBrokenIsSeen(t *testing.T) {
	list := parse(t, `
id: N
name: negative
title: stories that break
workers:
  w1: {traffic: {every: 5s, to: 90s}}
  w2: {traffic: 10s}
until: 330s
variants:
  paused-past-the-window:
    steps:
      - at: 96s
        pause: {worker: w1, for: 165s}
    until: 400s
  never-reaped:
    config: {reap: 0s}
    steps:
      - {at: 60s, kill: w1}
    expect:
      - reaped: {worker: w1, within: "[0s, 150s]"}
  release-that-hangs:
    steps:
      - {at: 50s, hang-close: w1}
      - {at: 60s, kill: w1}
    expect:
      - holds: {worker: w1, mappings: 0}
  a-step-that-strikes-nothing:
    steps:
      - {at: 60s, resume: w1}
  too-early:
    steps:
      - {at: 60s, kill: w1}
    expect:
      - reaped: {worker: w1, after: last-stamp, within: "[160s, 170s]"}
`)
	want := map[string]string{
		"N/paused-past-the-window":      "CONVERGE",
		"N/never-reaped":                "expect reaped",
		"N/release-that-hangs":          "expect holds",
		"N/a-step-that-strikes-nothing": "step",
		"N/too-early":                   "expect reaped",
	}
	for _, o := range playAll(t, "document", list) {
		seen := false
		for _, v := range o.Violations {
			seen = seen || v.Invariant == want[o.Scenario.ID]
		}
		if !seen || o.Verdict == run.Pass {
			tell(t, &o)
			t.Errorf("%s: %s does not show as broken", o.Scenario.ID, want[o.Scenario.ID])
		}
	}
}

// The server is killed and comes back; under the document nobody registers
// again by himself while pings succeed, so the story is told hardened.
func TestTheServerComesBack(t *testing.T) {
	list := parse(t, `
id: R
name: restart
title: the server's process is killed and started again
workers:
  w1: {traffic: 5s}
  w2: {traffic: 5s}
steps:
  - at: 60s
    server-restart: {for: 3s..6s}
  - at: 150s
    server-freeze: {for: 20s}
until: 300s
expect:
  - holds: {worker: everyone, contexts: 1, mappings: 1}
  - happened: {record: blocks-wrong, times: 0}
  - happened: {record: process-started, times: 4}
`)
	for _, o := range playAll(t, "hardened", list) {
		if o.Verdict != run.Pass {
			tell(t, &o)
			t.Errorf("%s: %s", o.Scenario.ID, o.Verdict)
		}
	}
}

// What real processes cannot do is skipped and is no pass.
func TestWhatCannotBeDoneIsSkipped(t *testing.T) {
	for name, story := range map[string]string{
		"the host sleeps":    "steps:\n  - at: 10s\n    host-suspend: {for: 10s}\n",
		"a raw client asks":  "steps:\n  - at: 10s\n    ask: {request: noop}\n",
		"bounds are lowered": "config: {bounds: {sessions: 3}}\n",
	} {
		list := parse(t, "id: S\nname: skipped\ntitle: "+name+"\nworkers: {w1: {}}\nuntil: 30s\n"+story)
		o := Play(context.Background(), list[0], Options{Server: "/nonexistent", Scale: 60, Design: "document"})
		if o.Skipped == "" || o.Verdict == run.Pass {
			t.Errorf("%s: skipped %q, verdict %s", name, o.Skipped, o.Verdict)
		}
	}
}

// An interrupt ends everything, and nothing stays.
func TestAnInterruptLeavesNothing(t *testing.T) {
	program := server(t)
	list, err := scenarios.Find("A15", "A1/engine-driven")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
	defer cancel()
	began := time.Now()
	outcomes, err := Suite(ctx, list, Options{Server: program, Scale: 60, Design: "document", Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i := range outcomes {
		if o := &outcomes[i]; o.Verdict == run.Pass || len(o.Left) > 0 {
			t.Errorf("%s: %s, left %v", o.Scenario.ID, o.Verdict, o.Left)
		}
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %s to end", took)
	}
	if left := leftovers(t, program); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A program that is no server is said to be none, in one line.
func TestAForeignProgramIsNamed(t *testing.T) {
	list := parse(t, "id: F\nname: f\ntitle: f\nworkers: {w1: {}}\nuntil: 30s\n")
	o := Play(context.Background(), list[0], Options{Server: "/bin/false", Scale: 60, Design: "document"})
	if o.Verdict != run.Unknown || len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "did not start") {
		t.Errorf("%s %q", o.Verdict, o.Notes)
	}
	if _, err := Suite(context.Background(), list, Options{Server: "/nonexistent", Scale: 60, Design: "document"}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}
