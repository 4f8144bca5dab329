package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// check runs the prepared script the way that it runs on a machine with a
// device, small and over the stand-in.
func (d *device) check(args ...string) (*deviceReport, int, string) {
	d.t.Helper()
	path := filepath.Join(d.dir, "report.json")
	cmd := d.program(append([]string{"device-check", "--reduced", "--cuda-library", d.library, "--nvml-library", d.nvml, "--report", path}, args...)...)
	out, _ := cmd.CombinedOutput()
	text, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatalf("no report: %v\n%s", err, out)
	}
	r := new(deviceReport)
	if err := json.Unmarshal(text, r); err != nil {
		d.t.Fatal(err)
	}
	return r, cmd.ProcessState.ExitCode(), string(out)
}

// The check passes over the stand-in, names it, and answers every question.
func TestTheDeviceCheck(t *testing.T) {
	d := standIn(t)
	r, code, out := d.check()
	if code != 0 || r.Verdict != "pass" || !r.StandIn || r.Watch != "on" || len(r.Left) > 0 {
		t.Errorf("code %d, verdict %s, stand-in %t, watch %s, left out %v\n%s", code, r.Verdict, r.StandIn, r.Watch, r.Left, out)
	}
	if len(r.Steps) != 8 || len(r.Facts) != len(questions) || len(r.Rates) < 5 {
		t.Errorf("%d steps, %d facts, %d rates", len(r.Steps), len(r.Facts), len(r.Rates))
	}
	for _, f := range r.Facts {
		if f.Failed != "" || f.Answer == "" {
			t.Errorf("%s: %q, failed %q", f.Name, f.Answer, f.Failed)
		}
	}
	// What the stand-in does is known; the check must see it.
	want := map[string]string{
		"double-open": "same address: true", "own-handle": "CUDA_ERROR_INVALID_CONTEXT (201)", "no-handle": "CUDA_ERROR_INVALID_VALUE (1)",
		"owner-killed":     "its bytes are right; before the owner came, 3 MiB more in use while open, 1 MiB more in use when it was dead, 0 B less in use after the close",
		"open-after-death": "same address: true; when nothing is open any more: CUDA_ERROR_INVALID_VALUE (1)", "register-twice": "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED (712)",
	}
	for _, f := range r.Facts {
		if w := want[f.Name]; w != "" && !strings.Contains(f.Answer+f.Result, w) {
			t.Errorf("%s: %s, %s", f.Name, f.Result, f.Answer)
		}
	}
	for _, x := range r.Rates {
		if x.Store <= 0 || x.Retrieve <= 0 || x.Level == "backend" && (x.PlainIn <= 0 || x.StoreShare <= 0) {
			t.Errorf("%+v", x)
		}
	}
}

// The page has every question, in these words.
func TestThePageHasTheQuestions(t *testing.T) {
	page, err := os.ReadFile("../../docs/gpu.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range questions {
		if line := "| `" + q.name + "` | " + q.question; !strings.Contains(string(page), line) {
			t.Errorf("docs/gpu.md lacks %q", line)
		}
	}
}

// A device whose memory does not come back fails the check, at the step that
// says so, within its bound.
func TestTheDeviceCheckCanFail(t *testing.T) {
	d := standIn(t)
	d.faults("cuIpcCloseMemHandle hang")
	r, code, out := d.check("--limit", "1ms")
	last := r.Steps[len(r.Steps)-1]
	if code != exitCheck || r.Verdict != "fail" || last.OK || !strings.HasPrefix(last.Name, "killed, its memory is back") || !strings.Contains(last.Detail, "still in use") {
		t.Errorf("code %d, verdict %s, the last step %+v\n%s", code, r.Verdict, last, out)
	}
}

// Without a watching library nothing about memory can be said, and that is no
// pass; without a driver the check does not begin.
func TestTheDeviceCheckNeedsItsLibraries(t *testing.T) {
	d := standIn(t)
	d.nvml = "libnowhere.so"
	if r, code, _ := d.check("--limit", "1ms"); code != exitCheck || r.Verdict != "fail" || r.Steps[0].OK {
		t.Errorf("code %d, verdict %s", code, r.Verdict)
	}
	out, _ := program(t, "device-check", "--cuda-library", "libnowhere.so").CombinedOutput()
	if strings.TrimSpace(string(out)) != "server: device-check: libnowhere.so was not found" {
		t.Errorf("it says %q", out)
	}
}

// The script builds, carries and runs.
func TestTheDeviceCheckScript(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the server again")
	}
	out, err := exec.Command("../../scripts/device-check", "standin", "--report", "-", "--limit", "1ms").Output()
	r := new(deviceReport)
	if err != nil || json.Unmarshal(out, r) != nil || r.Verdict != "incomplete" || !r.StandIn || len(r.Steps) != 8 {
		t.Errorf("%v: %s", err, out)
	}
	if left, _ := filepath.Glob("/dev/shm/vigil-standin-check-*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
