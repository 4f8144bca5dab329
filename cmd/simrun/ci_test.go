package main

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"vigil/reports"
)

// The examples for CI services are copied by people who cannot try them here:
// their scripts are run, and what they are made of is read as the services
// read it.

// ciExamples is the folder, from this package.
const ciExamples = "../../examples/ci"

// script runs one of the examples with this program as simrun.
func script(t *testing.T, dir, name string, env []string, args ...string) (output string, code int) {
	t.Helper()
	at, err := filepath.Abs(filepath.Join(ciExamples, name))
	if err != nil {
		t.Fatal(err)
	}
	prepared := simrun(t)
	cmd := exec.Command("bash", append([]string{at}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(prepared.Env, "SIMRUN="+prepared.Path), env...)
	out, errs, code := finish(t, cmd)
	return out + errs, code
}

// A job that fails ends with simrun's code, and leaves what the service shows.
func TestTheScriptOfCIServices(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	stories, err := filepath.Abs("testdata/stories")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, code := script(t, dir, "simrun-check", []string{"SIMRUN_SEEDS=2", "SIMRUN_FLAGS=--design document"}, filepath.Join(stories, "idle.yaml"), "A1")
	if code != exitSafety {
		t.Fatalf("exit %d, want %d:\n%s", code, exitSafety, out)
	}
	var junit struct {
		Suites []struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Cases    []struct {
				Failure string `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(dir, "simrun-out", name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if err := xml.Unmarshal(read("junit.xml"), &junit); err != nil {
		t.Fatal(err)
	}
	if s := junit.Suites[0]; s.Tests != len(s.Cases) || s.Failures != 1 || s.Tests < 3 {
		t.Errorf("JUnit counts %d tests and %d failures in %d cases", s.Tests, s.Failures, len(s.Cases))
	}
	told := false
	for _, c := range junit.Suites[0].Cases {
		told = told || strings.Contains(c.Failure, "w1 was reaped") && strings.Contains(c.Failure, "before") && strings.Contains(c.Failure, "replay v1.")
	}
	if !told {
		t.Error("no failure in JUnit tells what broke, what led there and how to replay it")
	}
	var suite reports.Suite
	if err := json.Unmarshal(read("result.json"), &suite); err != nil || suite.Verdict != reports.Safety {
		t.Errorf("result.json: %v, verdict %s", err, suite.Verdict)
	}
	if page := string(read("index.html")); !strings.Contains(page, `id="run-0"`) {
		t.Error("the page has no timeline of the failure")
	}

	if out, code := script(t, t.TempDir(), "simrun-check", []string{"SIMRUN_SEEDS=2"}, "A1"); code != exitPass {
		t.Errorf("a suite that passes: exit %d:\n%s", code, out)
	}
}

// A commit that breaks a promise is stopped; one that touches nothing of the
// core is let through without a run.
func TestThePreCommitHook(t *testing.T) {
	for _, tool := range []string{"bash", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("no " + tool)
		}
	}
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	stage := func(file string) {
		t.Helper()
		path := filepath.Join(dir, file)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", file)
	}
	git("init", "-q")
	// In the place of simrun stands what notes that it was called, and fails.
	fake := filepath.Join(dir, "fake")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\necho \"$@\" >>called\nexit 10\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	hook := func() (string, int) { return script(t, dir, "pre-commit", []string{"SIMRUN=" + fake}) }
	called := func() string { text, _ := os.ReadFile(filepath.Join(dir, "called")); return string(text) }

	stage("docs/words.md")
	if out, code := hook(); code != 0 || called() != "" {
		t.Errorf("a commit of words: exit %d, called %q:\n%s", code, called(), out)
	}
	stage("core/server/reaper.go")
	if out, code := hook(); code != exitSafety || called() != "run --seeds 20 -q\n" || !strings.Contains(out, "--no-verify") {
		t.Errorf("a commit to the core: exit %d, called %q:\n%s", code, called(), out)
	}
}

// The services' files parse, and call a script that is there and may be run.
func TestTheFilesOfCIServicesParse(t *testing.T) {
	type job struct {
		Script    []string
		Artifacts struct {
			Reports struct{ Junit string }
		}
	}
	var github struct {
		On   map[string]any
		Jobs map[string]struct {
			Steps []struct{ Uses, Run string }
		}
	}
	var gitlab map[string]job
	for name, into := range map[string]any{"github.yml": &github, "gitlab.yml": &gitlab} {
		text, err := os.ReadFile(filepath.Join(ciExamples, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	runs := 0
	for _, s := range github.Jobs["scenarios"].Steps {
		if s.Run == "examples/ci/simrun-check" {
			runs++
		}
	}
	if runs != 1 || len(github.On) < 2 {
		t.Errorf("github.yml runs the script %d times, on %v", runs, github.On)
	}
	if j := gitlab["simrun"]; len(j.Script) != 1 || j.Script[0] != "examples/ci/simrun-check" || j.Artifacts.Reports.Junit != "simrun-out/junit.xml" {
		t.Errorf("gitlab.yml: %+v", j)
	}
	jenkins, err := os.ReadFile(filepath.Join(ciExamples, "Jenkinsfile"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(jenkins)
	if !strings.Contains(text, "sh 'examples/ci/simrun-check'") || strings.Count(text, "{") != strings.Count(text, "}") {
		t.Error("the Jenkinsfile does not call the script, or its braces do not match")
	}
	for _, s := range []string{"simrun-check", "pre-commit"} {
		info, err := os.Stat(filepath.Join(ciExamples, s))
		if err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s may not be run: %v", s, err)
		}
	}
}
