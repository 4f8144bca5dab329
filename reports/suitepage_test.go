package reports

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"vigil/core"
	"vigil/reports/spacetime"
)

func tinyRun() *spacetime.Diagram {
	d := spacetime.New(spacetime.Head{Name: "tiny"}, []string{"w1"})
	d.Add(&core.Record{Kind: core.WorkerStarted, Actor: core.FirstWorker, Instance: 1}, "starts", true, false)
	return d
}

// modelOf reads back what a page tells its script.
func modelOf(t *testing.T, p *SuitePage) (model pageModel, text string) {
	t.Helper()
	text = string(render(t, func(w io.Writer) error { return p.Write(w) }))
	m := regexp.MustCompile(`(?s)id="model">(.*?)</script>`).FindStringSubmatch(text)
	if m == nil {
		t.Fatal("the page has no model")
	}
	if err := json.Unmarshal([]byte(m[1]), &model); err != nil {
		t.Fatal(err)
	}
	return model, text
}

// A failure leads to its run: by its scenario and its seed, not by its place.
func TestTheSuitePageLinksEachExampleToItsRun(t *testing.T) {
	p := &SuitePage{Suite: mixed()}
	for _, run := range []struct {
		scenario int
		seed     uint64
	}{{2, 18}, {2, 17}, {3, 2}} {
		if err := p.Add(run.scenario, run.seed, tinyRun()); err != nil {
			t.Fatal(err)
		}
	}
	m, text := modelOf(t, p)
	if n := strings.Count(text, `id="run-`); n != 3 {
		t.Errorf("%d runs are in the page, want 3", n)
	}
	seen := map[string]int{}
	for i, row := range m.Rows {
		for k, e := range row.Examples {
			seen[fmt.Sprint(i, ".", k)] = e.Run
		}
	}
	for example, run := range map[string]int{"2.0": 1, "2.1": 0, "3.0": 2, "1.0": -1, "4.0": -1} {
		if got, there := seen[example]; !there || got != run {
			t.Errorf("example %s has the run %d, want %d", example, got, run)
		}
	}
	if r := m.Rows[2]; !r.Failed || r.Report != 0 || m.Rows[1].Failed || m.Rows[1].Report != -1 {
		t.Errorf("the page takes the wrong scenarios for failures, or shows the wrong example: %+v, %+v", r, m.Rows[1])
	}
}

// A suite in which everything fails has a page that can be opened: what does
// not fit is counted.
func TestTheSuitePageIsBounded(t *testing.T) {
	p := &SuitePage{Suite: mixed()}
	for seed := range uint64(maxTimelines + 5) {
		if err := p.Add(2, seed, tinyRun()); err != nil {
			t.Fatal(err)
		}
	}
	m, _ := modelOf(t, p)
	if len(m.Runs) != maxTimelines || m.Left != 5 {
		t.Errorf("%d runs and %d left, want %d and 5", len(m.Runs), m.Left, maxTimelines)
	}
}

// Messages quote anything.
func TestTheSuitePageIsNotBrokenByMessages(t *testing.T) {
	s := mixed()
	s.Scenarios[2].Violations[0].Message = "</script><script>alert(1)</script>"
	s.Scenarios[2].Story = "<img onerror=alert(1)>"
	_, text := modelOf(t, &SuitePage{Suite: s})
	if strings.Contains(text, "<script>alert") || strings.Contains(text, "<img") {
		t.Error("a message becomes markup")
	}
	if empty, _ := modelOf(t, &SuitePage{Suite: NewSuite("document", nil, 0)}); len(empty.Rows) != 0 {
		t.Error("a suite of nothing has rows")
	}
}

// What led to a break is told where there is room for it: once on a terminal,
// at the end, where it is read; of each failure in JUnit, where each is read by
// itself.
func TestAFailureTellsWhatLedThere(t *testing.T) {
	s := mixed()
	led := []spacetime.Moment{
		{At: 97.073, Who: "world", Words: "w1 stands still"},
		{At: 240.00004, Who: "server", Words: "finds the server-driven context (incarnation 1) of w1 silent for more than 120s, and takes it away"},
	}
	for _, i := range []int{2, 3} {
		s.Scenarios[i].Violations[0].Led = led
		s.Scenarios[i].Violations[0].Promise = "An instance id has at most one serving context of a kind."
	}
	golden(t, "failure-led-80.txt", render(t, func(w io.Writer) error { return FailureReport(w, s, 80, false) }))
	text := string(render(t, func(w io.Writer) error { return FailureReport(w, s, 80, false) }))
	for line := range strings.Lines(text) {
		if n := len(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("a line of %d columns on a terminal of 80: %q", n, line)
		}
	}
	if n := strings.Count(text, "w1 stands still"); n != 1 || !strings.Contains(text[strings.LastIndex(text, "SAFETY"):], "w1 stands still") {
		t.Errorf("it is told %d times, want once, of the last failure:\n%s", n, text)
	}
	junit := string(render(t, func(w io.Writer) error { return JUnit(w, s) }))
	if n := strings.Count(junit, "w1 stands still"); n != 2 {
		t.Errorf("JUnit tells of %d failures what led there, want 2", n)
	}
}

// A scenario that was not run is skipped, for the reason that it has.
func TestJUnitSaysWhyAScenarioIsSkipped(t *testing.T) {
	s := mixed()
	s.Scenarios[0].Verdict, s.Scenarios[0].Skipped, s.Scenarios[0].Runs = Unknown, "a signal is too slow for it", 0
	if junit := string(render(t, func(w io.Writer) error { return JUnit(w, s) })); !strings.Contains(junit, `<skipped message="a signal is too slow for it">`) {
		t.Errorf("JUnit does not say why:\n%s", junit)
	}
}
