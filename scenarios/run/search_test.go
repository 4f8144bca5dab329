package run

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"vigil/core"
	"vigil/faults"
	"vigil/scenarios"
	"vigil/sim"
)

// The search through random worlds finds the document's holes by itself. A hole
// counts as found only when switching one protection of its own on turns the
// same tape green: whatever else is wrong in that world is not it.

// hole is one of the document's holes and what mends it.
type hole struct {
	story string
	by    []string
	// restarts tells two holes apart that one protection mends.
	restarts, noRestarts bool
	// rare holes are looked for only where many runs are asked for.
	rare bool
}

var holes = []hole{
	{story: "B1", by: []string{"registration-aware-ping"}, noRestarts: true},
	{story: "B3", by: []string{"look-before-reap"}},
	{story: "B4", by: []string{"boot-token", "registration-aware-ping"}, restarts: true},
	{story: "B5", by: []string{"open-after-release", "mirror-with-context"}, rare: true},
	{story: "B7", by: []string{"terminal-answers", "request-deadlines"}},
	{story: "B8", by: []string{"register-deadline", "register-aside"}, rare: true},
}

// searchRuns is how many runs the search has; VIGIL_SEARCH_RUNS asks for more.
func searchRuns(t *testing.T) (runs int, many bool) {
	text := os.Getenv("VIGIL_SEARCH_RUNS")
	if text == "" {
		return 800, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("VIGIL_SEARCH_RUNS=%q is not a number of runs", text)
	}
	return n, true
}

func TestTheSearchFindsTheDocumentsHoles(t *testing.T) {
	if testing.Short() {
		t.Skip("plays some thousand runs")
	}
	list, err := scenarios.Find("random")
	if err != nil {
		t.Fatal(err)
	}
	random := list[0]
	document := NewPlayer("document", core.Document())
	mended := map[string]*Player{}
	for _, h := range holes {
		for _, name := range h.by {
			p := core.Document()
			p.Set(name, true)
			mended[name] = NewPlayer("document", p)
		}
	}
	runs, many := searchRuns(t)
	hits := make([][]int, len(holes))
	for seed := 0; seed < runs; seed++ {
		r := document.Play(random, uint64(seed), nil)
		if r.Panic != "" {
			t.Fatalf("seed %d: %s", seed, r.Panic)
		}
		if len(r.Violations) == 0 {
			continue
		}
		restarts := slices.ContainsFunc(document.stages[random].plan.Steps, func(s sim.Step) bool {
			return s.Do.Kind == sim.ActFault && s.Do.Fault.Kind == faults.ServerRestart
		})
		green := map[string]bool{}
		for name, p := range mended {
			green[name] = len(p.Play(random, uint64(seed), nil).Violations) == 0
		}
		ghost := slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Invariant == "QUIET" })
		for i, h := range holes {
			if h.restarts && !restarts || h.noRestarts && restarts || h.story == "B8" && !ghost {
				continue
			}
			if slices.ContainsFunc(h.by, func(name string) bool { return green[name] }) {
				hits[i] = append(hits[i], seed)
			}
		}
	}
	for i, h := range holes {
		switch {
		case len(hits[i]) > 0:
			t.Logf("%s: %d of %d runs, %d runs to the first hit (median)", h.story, len(hits[i]), runs, median(hits[i], runs))
		case !h.rare || many:
			t.Errorf("%s was not found in %d runs", h.story, runs)
		}
	}
}

// median is how many runs it takes to the first hit, from a hundred starts.
func median(hits []int, runs int) int {
	var took []int
	for i := range 100 {
		start := i * runs / 100
		at, _ := slices.BinarySearch(hits, start)
		if at == len(hits) {
			took = append(took, hits[0]+runs-start+1) // once around
			continue
		}
		took = append(took, hits[at]-start+1)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// Under hardened the search finds nothing.
func TestTheSearchFindsNothingUnderHardened(t *testing.T) {
	list, err := scenarios.Find("random")
	if err != nil {
		t.Fatal(err)
	}
	p := NewPlayer("hardened", core.Hardened())
	runs, _ := searchRuns(t)
	for seed := 0; seed < runs; seed++ {
		for _, v := range p.Play(list[0], uint64(seed), nil).Violations {
			t.Errorf("seed %d at %v: %s: %s\n%s", seed, v.At, v.Invariant, v.Message, p.Drawn(list[0]))
		}
	}
}
