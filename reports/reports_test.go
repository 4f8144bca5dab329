package reports

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

func render(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A person reads the result on a narrow terminal, on a wide one, in colour,
// or in a file.
func TestTableReadsAtEveryWidth(t *testing.T) {
	for _, c := range []struct {
		name   string
		suite  *Suite
		width  int
		colour bool
	}{
		{"table-80.txt", mixed(), 80, false},
		{"table-200.txt", mixed(), 200, false},
		{"table-80-colour.txt", mixed(), 80, true},
		{"table-pipe.txt", mixed(), 0, false},
		{"table-calm-80.txt", calm(), 80, false},
		{"table-repaired-80.txt", repaired(), 80, false},
		{"table-repaired-200.txt", repaired(), 200, false},
	} {
		got := render(t, func(w io.Writer) error { return Table(w, c.suite, c.width, c.colour) })
		golden(t, c.name, got)
		if c.width == 0 || c.colour {
			continue
		}
		for line := range strings.Lines(string(got)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > c.width {
				t.Errorf("%s: a line of %d columns on a terminal of %d: %q", c.name, n, c.width, line)
			}
		}
	}
}

// Colour adds nothing but colour: without its codes the text is the same.
func TestColourChangesNoWord(t *testing.T) {
	plain := render(t, func(w io.Writer) error { return Table(w, mixed(), 80, false) })
	painted := render(t, func(w io.Writer) error { return Table(w, mixed(), 80, true) })
	stripped := string(painted)
	for _, style := range []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[1m", "\x1b[2m", "\x1b[0m"} {
		stripped = strings.ReplaceAll(stripped, style, "")
	}
	if stripped != string(plain) {
		t.Errorf("stripped of colour:\n%s\nplain:\n%s", stripped, plain)
	}
}

// Other people's CI reads the JSON: its keys are a contract, whatever went
// wrong, and an empty list is a list.
func TestJSONIsTheContract(t *testing.T) {
	golden(t, "suite.json", render(t, func(w io.Writer) error { return WriteJSON(w, mixed()) }))
	golden(t, "empty.json", render(t, func(w io.Writer) error { return WriteJSON(w, NewSuite("document", nil, 0)) }))

	raw := render(t, func(w io.Writer) error { return WriteJSON(w, mixed()) })
	var top map[string]any
	if err := json.Unmarshal(raw, &top); err != nil {
		t.Fatal(err)
	}
	keys(t, "totals", top["totals"], "runs", "events", "sim_seconds", "wall_seconds", "events_per_second", "sim_over_real")
	for _, sc := range top["scenarios"].([]any) {
		for _, v := range sc.(map[string]any)["violations"].([]any) {
			keys(t, "a violation", v, "invariant", "at_seconds", "actors", "message", "seed", "token", "capsule", "verdict", "declared")
		}
		keys(t, "a scenario", sc, "name", "id", "verdict", "expected", "runs", "failed_runs", "events", "sim_seconds", "wall_seconds", "hash", "violations")
	}
	keys(t, "the object", top, "version", "design", "verdict", "scenarios", "totals")
}

func keys(t *testing.T, what string, object any, want ...string) {
	t.Helper()
	m, ok := object.(map[string]any)
	if !ok {
		t.Fatalf("%s is no object: %v", what, object)
	}
	for _, k := range want {
		if v, ok := m[k]; !ok || v == nil {
			t.Errorf("%s lacks %q", what, k)
		}
		delete(m, k)
	}
	for k := range m {
		t.Errorf("%s has %q beside the contract", what, k)
	}
}

func TestJUnitIsReadBack(t *testing.T) {
	got := render(t, func(w io.Writer) error { return JUnit(w, mixed()) })
	golden(t, "junit.xml", got)
	var back junitSuites
	if err := xml.Unmarshal(got, &back); err != nil {
		t.Fatalf("the XML does not parse: %v", err)
	}
	if back.Tests != 5 || back.Failures != 3 {
		t.Errorf("%d tests and %d failures; want 5 and 3", back.Tests, back.Failures)
	}
}

// The last lines of a failing run are a bug report, and the gravest failure
// is the last of them.
func TestFailureReportEndsWithTheGravest(t *testing.T) {
	for name, width := range map[string]int{"failure-80.txt": 80, "failure-pipe.txt": 0} {
		got := render(t, func(w io.Writer) error { return FailureReport(w, mixed(), width, false) })
		golden(t, name, got)
		lines := strings.Split(strings.TrimSpace(string(got)), "\n")
		if last := strings.TrimSpace(lines[len(lines)-1]); last != "replay     simrun replay v1-A6-d-h" {
			t.Errorf("the last line is %q; want the command that replays the broken safety invariant", last)
		}
	}
	if got := render(t, func(w io.Writer) error { return FailureReport(w, calm(), 80, false) }); len(got) != 0 {
		t.Errorf("a suite that passed has a failure report: %s", got)
	}
}

func TestManyFailuresAreBounded(t *testing.T) {
	var scenarios []Scenario
	for range 30 {
		scenarios = append(scenarios, mixed().Scenarios[3])
	}
	got := string(render(t, func(w io.Writer) error { return FailureReport(w, NewSuite("document", scenarios, 0), 80, false) }))
	if n := strings.Count(got, "  replay  "); n != maxReported {
		t.Errorf("%d reports; want %d", n, maxReported)
	}
	if !strings.Contains(got, "22 scenarios more") {
		t.Errorf("what was left out is not said:\n%s", got)
	}
}

func TestGitHubIsTold(t *testing.T) {
	got := render(t, func(w io.Writer) error { return Annotations(w, mixed()) })
	golden(t, "annotations.txt", got)
	if n := bytes.Count(got, []byte("\n")); n != 3 {
		t.Errorf("%d lines for 3 failures: a message must stay on its line", n)
	}
	golden(t, "summary.md", render(t, func(w io.Writer) error { return StepSummary(w, mixed()) }))
}

func TestVerdictOfManyIsTheGravest(t *testing.T) {
	for _, c := range []struct {
		of   []Verdict
		want Verdict
	}{
		{nil, Pass},
		{[]Verdict{Pass, Unknown}, Unknown},
		{[]Verdict{Unknown, Missed}, Missed},
		{[]Verdict{Missed, Liveness}, Liveness},
		{[]Verdict{Liveness, Safety}, Safety},
		{[]Verdict{Safety, Panic}, Panic},
		{[]Verdict{Panic, Nondeterminism}, Nondeterminism},
		{[]Verdict{Pass, "bogus"}, Unknown},
	} {
		if got := Gravest(c.of...); got != c.want {
			t.Errorf("Gravest(%v) = %s; want %s", c.of, got, c.want)
		}
	}
}

// A report is there whole or not at all, and what was there stays.
func TestWriteFileIsWholeOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "report.json")
	write := func(text string, err error) error {
		return WriteFile(path, func(w io.Writer) error {
			io.WriteString(w, text)
			return err
		})
	}
	if err := write("first", nil); err != nil {
		t.Fatal(err)
	}
	if err := write("half", errors.New("the disk is full")); err == nil || !strings.Contains(err.Error(), "report.json") {
		t.Errorf("the error does not name the file: %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "first" {
		t.Errorf("the file holds %q; want what was there before", got)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("temporary files are left: %v", left)
	}
	if err := WriteFile(filepath.Join(path, "below-a-file"), func(io.Writer) error { return nil }); err == nil {
		t.Error("a report below a file was written")
	}
}

func TestLatestNamesTheNewest(t *testing.T) {
	dir := t.TempDir()
	for _, target := range []string{"one", "two"} {
		if err := LinkLatest(dir, target); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.Readlink(filepath.Join(dir, "latest")); got != target {
			t.Errorf("latest is %q; want %q", got, target)
		}
	}
	other := t.TempDir()
	os.WriteFile(filepath.Join(other, "latest"), []byte("mine"), 0o644)
	if err := LinkLatest(other, "one"); err == nil {
		t.Error("somebody's file called latest was replaced")
	}
}

func TestProgressIsOneLineWithRateAndTimeLeft(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	p := newProgress(&b, 60, func() time.Time { return now })
	now = now.Add(2 * time.Second)
	p.Update("A1 kill-after-serving", 500, 4000)
	p.Update("A1 kill-after-serving", 501, 4000) // too soon after the last drawing
	now = now.Add(time.Second)
	p.Update("A2 a-name-that-is-much-too-long-for-this-terminal", 4000, 4000)
	p.Close()
	p.Update("late", 1, 2)
	want := "\r\x1b[K 12%  500 of 4,000 runs, 250/s, 14s left  A1 kill-after-se…" +
		"\r\x1b[K100%  4,000 of 4,000 runs, 1,333/s  A2 a-name-that-is-much…" +
		"\r\x1b[K"
	if got := b.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if NewProgress(&b, Terminal{}) != nil {
		t.Error("there is progress in a pipe")
	}
	var none *Progress
	none.Update("x", 1, 2)
	none.Close()
}

func TestUnitsReadWell(t *testing.T) {
	for got, want := range map[string]string{
		grouped(0): "0", grouped(999): "999", grouped(1000): "1,000", grouped(1234567): "1,234,567",
		amount(999_999): "999,999", amount(1_234_567): "1.23M", amount(98_700_000): "98.7M", amount(2.5e9): "2.50G", amount(0): "0", amount(0.25): "0.25",
		span(0): "0us", span(0.25): "250ms", span(8.55 * 86400): "8.6d", span(59.96): "60.0s", span(600): "10.0min", span(86400): "24.0h", span(86400 * 400): "400d", span(86400 * 1000): "2.7y",
		clock(12 * time.Second): "12s", clock(185 * time.Second): "3m05s", clock(3725 * time.Second): "1h02m",
	} {
		if got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
}

func TestBenchTable(t *testing.T) {
	b := &Bench{Version: 1, Machine: "2 cores, go1.26", Cores: 2, Rows: []BenchRow{
		{Name: "events_per_second", What: "events per second, one day of 16 workers", Value: 2_345_678, Unit: "events/s", Cores: 1},
		{Name: "sim_over_real", What: "simulated over real time", Value: 104_321.7, Unit: "x", Cores: 1},
	}}
	golden(t, "bench-80.txt", render(t, func(w io.Writer) error { return BenchTable(w, b, 80, false) }))
	golden(t, "bench.json", render(t, func(w io.Writer) error { return WriteJSON(w, b) }))
}

// A suite that was stopped lists what ran, and counts what it did not reach.
func TestAStoppedSuiteListsWhatRan(t *testing.T) {
	s := NewSuite("document", []Scenario{
		{Name: "reached", ID: "A1", Verdict: Pass, Expected: "pass", Runs: 3},
		{Name: "half-way", ID: "A2", Verdict: Unknown, Expected: "pass", Runs: 1, Cut: true},
		{Name: "unreached", ID: "A3", Verdict: Unknown, Expected: "pass", Cut: true},
	}, time.Second)
	text := string(render(t, func(w io.Writer) error { return Table(w, s, 80, false) }))
	if strings.Contains(text, "unreached") || !strings.Contains(text, "half-way") || !strings.Contains(text, "1 cut short, 1 not reached") {
		t.Errorf("it reads:\n%s", text)
	}
}

// A result that goes into a pipe goes into it: a rename would put a file in its
// place, and for the null device that breaks the machine.
func TestWriteFileWritesIntoAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("no named pipes here:", err)
	}
	got := make(chan string, 1)
	go func() {
		text, _ := os.ReadFile(path)
		got <- string(text)
	}()
	err := WriteFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "result")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe has become %v, %v", info.Mode(), err)
	}
	if text := <-got; text != "result" {
		t.Errorf("the pipe got %q", text)
	}
}
