package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const auditData = "../../scenarios/audit/testdata/"

// The exit code of an audit is what CI goes by.
func TestAuditExitCodes(t *testing.T) {
	crash, err := os.ReadFile(auditData + "crash.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	header, _, _ := strings.Cut(string(crash), "\n")
	empty := filepath.Join(t.TempDir(), "empty.jsonl")
	if err := os.WriteFile(empty, []byte(header+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file string
		code int
		says string
	}{
		{auditData + "crash.jsonl", exitPass, "UNDECIDABLE"},
		{auditData + "close-under-a-copy.jsonl", exitSafety, "BROKEN  NO-UAF"},
		{empty, exitUnknown, "decides nothing"},
		{auditData + "crash.golden", exitUsage, "first line"},
		{"/nonexistent", exitUsage, "no such file"},
	} {
		out, said, code := call(t, "audit", c.file)
		if code != c.code || !strings.Contains(out+said, c.says) {
			t.Errorf("audit %s: exit code %d, want %d; it says\n%s%s", c.file, code, c.code, out, said)
		}
	}
	out, _, _ := call(t, "audit", auditData+"crash.jsonl", "--json", "-")
	var got struct {
		Verdict  string
		Findings []struct{ Invariant, State, Why string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Findings) != 12 || got.Verdict != "pass" {
		t.Errorf("%v: %s", err, out)
	}
	for _, f := range got.Findings {
		if f.State == "undecidable" && f.Why == "" {
			t.Errorf("%s is undecidable without a reason", f.Invariant)
		}
	}
}

// A call for real processes that cannot be made is one line and exit code 1.
func TestBadCallsForRealProcesses(t *testing.T) {
	for _, args := range [][]string{
		{"run", "A1", "--real", "/nonexistent"},
		{"run", "A1", "--real", "/bin/true", "--time-scale", "0"},
		{"run", "A1", "--time-scale", "60"},
		{"run", "A1", "--real", "/bin/true", "--for", "1s"},
		{"replay", "/nonexistent.vigil"},
		{"replay", t.TempDir()},
		{"audit"},
	} {
		out, said, code := call(t, args...)
		if code != exitUsage || out != "" || strings.Count(said, "\n") != 1 {
			t.Errorf("%v: exit code %d, it prints %q and says %q", args, code, out, said)
		}
	}
}
