package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"vigil/core"
	"vigil/reports"
)

var update = flag.Bool("update", false, "record the output of this code as the expected one")

// The test binary is simrun itself where this is set, so that the tests run
// the real program in processes of its own.
const actAsSimrun = "SIMRUN_TEST_ACTS_AS_SIMRUN"

func TestMain(m *testing.M) {
	if os.Getenv(actAsSimrun) != "" {
		main()
	}
	os.Exit(m.Run())
}

// simrun prepares a call of the program in an environment that says nothing.
func simrun(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "CI", "NO_COLOR", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GOMAXPROCS", "GOGC":
		default:
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, actAsSimrun+"=1")
	return cmd
}

// call runs the program and returns what it printed, and its exit code.
func call(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return finish(t, simrun(t, args...))
}

func finish(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), complaints.String(), cmd.ProcessState.ExitCode()
}

// steady replaces what differs from machine to machine, and what any change of
// the core moves: wall times, virtual times to the microsecond, hashes.
var steady = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(` +\d+\.\d{3}s  `), "  TIME  "}, // of what led to a failure
	{regexp.MustCompile(`with id \d{6,}`), "with id ID"},
	{regexp.MustCompile(`in [0-9.]+(us|ms|s|min): [0-9.,]+[MG]? events/s, [0-9.,]+[MG]?x real time`), "in TIME: N events/s, Nx real time"},
	{regexp.MustCompile(`in [0-9.]+(us|ms|s|min): [0-9.,]+ runs/s`), "in TIME: N runs/s"},
	{regexp.MustCompile(`[0-9,]+ of state, record and fault; run [0-9,]+ met`), "N of state, record and fault; run N met"},
	{regexp.MustCompile(`\.[0-9a-f]{16}\b`), ".CHECK"},
	{regexp.MustCompile(`hash [0-9a-f]{16}`), "hash HASH"},
	{regexp.MustCompile(`[0-9]+\.[0-9]{6}s`), "TIME"},
	// A speed's digits set the width of its column, and of the rule above it.
	{regexp.MustCompile(` +[0-9,.]+[MG]?x(  |\n)`), "  SPEED$1"},
	{regexp.MustCompile(` +SPEED(  |\n)`), "  SPEED$1"},
	{regexp.MustCompile(`─{10,}`), "──────────"},
	{regexp.MustCompile(`checks in [0-9.]+s`), "checks in TIME"},
	{regexp.MustCompile(`(seeds? each|scenarios?), in [0-9.]+(us|ms|s|min)`), "$1, in TIME"},
	{regexp.MustCompile(`request [0-9]+ loaded, and block [0-9]+`), "request N loaded, and block N"},
	{regexp.MustCompile(`\(default [0-9]+\)`), "(default N)"},
}

// Each file of testdata/script is a conversation: calls of the program, what
// it printed (standard error behind "! "), and its exit code. Record them anew
// with -update, and read the difference before committing it.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			script, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			for line := range strings.Lines(string(script)) {
				if strings.HasPrefix(line, "#") {
					got.WriteString(line)
				}
				args, isCall := strings.CutPrefix(line, "$ simrun")
				if !isCall {
					continue
				}
				stdout, stderr, code := call(t, strings.Fields(args)...)
				got.WriteString(line)
				got.WriteString(steadied(stdout))
				for l := range strings.Lines(steadied(stderr)) {
					got.WriteString("! " + l)
				}
				fmt.Fprintf(&got, "[exit %d]\n\n", code)
			}
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got.String() != string(script) {
				t.Errorf("%s differs from its record.\n--- got\n%s\n--- want\n%s", path, &got, script)
			}
		})
	}
}

func steadied(text string) string {
	for _, s := range steady {
		text = s.pattern.ReplaceAllString(text, s.by)
	}
	return text
}

// The hashes are the same whatever the jobs, the processors and the collector
// do, and in every process.
func TestHashesDoNotDependOnHowTheyAreRun(t *testing.T) {
	hashes := func(name string, env []string, args ...string) map[string]string {
		cmd := simrun(t, append([]string{"run", "A1", "A6", "A9", "--seeds", "20", "--json", "-"}, args...)...)
		cmd.Env = append(cmd.Env, env...)
		stdout, stderr, code := finish(t, cmd)
		if code != exitPass {
			t.Fatalf("%s: exit %d: %s", name, code, stderr)
		}
		var suite reports.Suite
		if err := json.Unmarshal([]byte(stdout), &suite); err != nil {
			t.Fatalf("%s: standard output is not JSON alone: %v\n%s", name, err, stdout)
		}
		found := map[string]string{}
		for _, s := range suite.Scenarios {
			found[s.ID] = s.Hash
			if len(s.Hash) != 16 || s.Runs != 20 {
				t.Errorf("%s: %s has hash %q over %d runs", name, s.ID, s.Hash, s.Runs)
			}
		}
		return found
	}
	want := hashes("-j 1", nil, "-j", "1")
	if len(want) < 6 {
		t.Fatalf("only %d scenarios", len(want))
	}
	for name, got := range map[string]map[string]string{
		"-j 2":         hashes("-j 2", nil, "-j", "2"),
		"-j 7":         hashes("-j 7", nil, "-j", "7"),
		"GOMAXPROCS=1": hashes("GOMAXPROCS=1", []string{"GOMAXPROCS=1"}),
		"GOGC=10":      hashes("GOGC=10", []string{"GOGC=10"}),
	} {
		for id, hash := range want {
			if got[id] != hash {
				t.Errorf("%s: %s hashes to %s, with -j 1 to %s", name, id, got[id], hash)
			}
		}
	}
}

// Whoever interrupts a long run gets 130, soon, and what was there until then.
func TestInterruptedRunWritesWhatItHas(t *testing.T) {
	dir := t.TempDir()
	cmd := simrun(t, "run", "--for", "60s", "-o", dir, "--junit", filepath.Join(dir, "junit.xml"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(700 * time.Millisecond)
	began := time.Now()
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s to stop", took)
	}
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit %d, want %d\n%s", code, exitInterrupted, &out)
	}
	if !strings.Contains(out.String(), "Interrupted") {
		t.Errorf("it does not say that it was interrupted:\n%s", &out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "latest", "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var suite reports.Suite
	if err := json.Unmarshal(data, &suite); err != nil {
		t.Fatal(err)
	}
	if suite.Totals.Runs == 0 || suite.Verdict == reports.Pass {
		t.Errorf("the result has %d runs and verdict %s; want what came until then, and no pass", suite.Totals.Runs, suite.Verdict)
	}
	if data, err = os.ReadFile(filepath.Join(dir, "junit.xml")); err != nil || xml.Unmarshal(data, new(struct{})) != nil {
		t.Errorf("the JUnit file: %v\n%s", err, data)
	}
}

// A person's results pile up in one folder; latest names the newest.
func TestOutputFolder(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if _, stderr, code := call(t, "run", "--design", "document", "testdata/stories/idle.yaml", "--seeds", "2", "-q", "-o", dir); code != exitSafety {
			t.Fatalf("exit %d: %s", code, stderr)
		}
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 3 {
		t.Errorf("%d entries; want two results and latest", len(entries))
	}
	for _, name := range []string{"result.json", "junit.xml", "report.txt"} {
		if data, err := os.ReadFile(filepath.Join(dir, "latest", name)); err != nil || !bytes.Contains(data, []byte("idle")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, stderr, code := call(t, "run", "A1", "--seeds", "1", "-o", filepath.Join(dir, "latest", "report.txt")); code != exitUsage || strings.Count(stderr, "\n") != 1 {
		t.Errorf("a folder that is a file: exit %d, %s", code, stderr)
	}
}

// The command that a failure ends with replays it: the same verdict, the same
// hash, twice the same words.
func TestTokenOfAFailureReplaysIt(t *testing.T) {
	stdout, _, code := call(t, "run", "--design", "document", "testdata/stories/idle.yaml", "--seeds", "3")
	if code != exitSafety {
		t.Fatalf("exit %d:\n%s", code, stdout)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	_, command, isReplay := strings.Cut(lines[len(lines)-1], "simrun replay ")
	if !isReplay {
		t.Fatalf("the last line is no command to replay: %q", lines[len(lines)-1])
	}
	replay := append([]string{"replay"}, strings.Fields(command)...)
	first, _, code := call(t, replay...)
	if code != exitSafety || !strings.Contains(first, "is reaped") || strings.Contains(first, "not the run") {
		t.Errorf("replay: exit %d\n%s", code, first)
	}
	if second, _, _ := call(t, replay...); second != first {
		t.Errorf("a second replay tells another story:\n%s\n%s", first, second)
	}

	// The file has moved: the token alone fails in one line, with the file it works.
	text, err := os.ReadFile("testdata/stories/idle.yaml")
	if err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "moved.yaml")
	os.WriteFile(moved, text, 0o644)
	if _, stderr, code := call(t, replay[0], replay[1], moved); code != exitSafety {
		t.Errorf("with the moved file: exit %d: %s", code, stderr)
	}
	// The file has changed: the replay says so.
	os.WriteFile(moved, bytes.Replace(text, []byte("grace: 300s"), []byte("grace: 310s"), 1), 0o644)
	if stdout, _, _ := call(t, replay[0], replay[1], moved); !strings.Contains(stdout, "file has changed") {
		t.Errorf("a changed file is not noticed:\n%s", stdout)
	}
}

// In GitHub Actions failures are annotations, and the run's page has a summary.
func TestGitHubActions(t *testing.T) {
	summary := filepath.Join(t.TempDir(), "summary.md")
	os.WriteFile(summary, []byte("before\n"), 0o644)
	cmd := simrun(t, "run", "--design", "document", "testdata/stories", "--seeds", "2", "--json", "-")
	cmd.Env = append(cmd.Env, "GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY="+summary, "CI=true")
	stdout, stderr, code := finish(t, cmd)
	if code != exitSafety {
		t.Errorf("exit %d", code)
	}
	if !json.Valid([]byte(stdout)) {
		t.Errorf("standard output is not JSON alone:\n%s", stdout)
	}
	if n := strings.Count(stderr, "::error "); n != 2 {
		t.Errorf("%d annotations, want 2:\n%s", n, stderr)
	}
	if data, _ := os.ReadFile(summary); !bytes.HasPrefix(data, []byte("before\n")) || !bytes.Contains(data, []byte("idle-worker")) {
		t.Errorf("the summary:\n%s", data)
	}
}

// With --fail-fast the suite stops at the first failure; what did not run is
// no failure of its own.
func TestFailFast(t *testing.T) {
	junit := filepath.Join(t.TempDir(), "junit.xml")
	stdout, _, code := call(t, "run", "--design", "document", "testdata/stories/idle.yaml", "A1", "A6", "--seeds", "500", "-j", "1", "--fail-fast", "--junit", junit)
	if code != exitSafety || !strings.Contains(stdout, "Stopped at the first failure") || !strings.Contains(stdout, "1 failed") {
		t.Errorf("exit %d:\n%s", code, stdout)
	}
	if data, _ := os.ReadFile(junit); bytes.Count(data, []byte("<failure")) != 1 {
		t.Errorf("the JUnit file:\n%s", data)
	}
}

func TestExitCodes(t *testing.T) {
	for verdict, want := range map[reports.Verdict]int{
		reports.Safety: 10, reports.Liveness: 11, reports.Nondeterminism: 12, reports.Panic: 13,
		reports.Unknown: 14, reports.Missed: 15, "bogus": 14,
	} {
		var ended *ending
		if err := endWith(verdict); !errors.As(err, &ended) || ended.code != want {
			t.Errorf("%s ends with %v, want %d", verdict, err, want)
		}
	}
	if endWith(reports.Pass) != nil {
		t.Error("a pass does not end with 0")
	}
}

// doctor finds a difference and names the first record of it. Here it is told
// that the first time came out otherwise.
func TestDoctorNamesTheFirstDifference(t *testing.T) {
	list, err := loadPath("testdata/stories/quiet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c := choice{preset: "document", protections: core.Document()}
	d := &doctor{ctx: t.Context(), list: list, design: c, seeds: seedRange{Count: 1}, player: newPlayer(c)}
	line := hashLine{list[0], 0, "0000000000000001"}
	d.ours = []hashLine{line}
	found, err := d.again()
	if err != nil || found == nil {
		t.Fatalf("a changed hash is not found: %v, %v", found, err)
	}
	other := d.records(newPlayer(c), line)
	other = bytes.Replace(other, []byte("ping-sent"), []byte("ping-lost"), 1)
	found.trace = func() (r io.Reader, done func(), err error) { return bytes.NewReader(other), func() {}, nil }
	var text bytes.Buffer
	if err := d.explain(&text, found); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "ping-lost") || !strings.Contains(text.String(), "is the first that differs") {
		t.Errorf("the first difference is not named:\n%s", &text)
	}
}
