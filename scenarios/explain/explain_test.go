package explain_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/capsule"
	"vigil/scenarios/explain"
)

func explained(t *testing.T, name, variant string, o explain.Options) *explain.Explanation {
	t.Helper()
	list, err := scenarios.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(s *scenarios.Scenario) bool { return s.ID == variant })
	if i < 0 {
		t.Fatalf("%s has no %s", name, variant)
	}
	c, err := capsule.OfSeed(list[i], "document", core.Document(), 0)
	if err != nil {
		t.Fatal(err)
	}
	x, err := explain.Explain(context.Background(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// B1: a worker is paused past its window. It is the pause that it takes, not the
// retrieve that only shows it; the moment of doom is the pause; and the one
// protection against it is named.
func TestThePauseIsToBlame(t *testing.T) {
	x := explained(t, "B1", "B1/resumed", explain.Options{Forks: 20})
	for _, s := range x.Steps {
		if want := strings.HasPrefix(s.Words, "pause"); s.Needed != want {
			t.Errorf("step %q: needed is %v, want %v", s.Words, s.Needed, want)
		}
	}
	if !slices.Equal(x.Mends, []string{"registration-aware-ping"}) {
		t.Errorf("mended by %v, want registration-aware-ping alone", x.Mends)
	}
	if x.Doom.Line == nil || !strings.Contains(x.Doom.Line.Words, "pause w1") {
		t.Errorf("the moment of doom is %+v, want the pause", x.Doom.Line)
	}
	if !slices.Equal(x.Cast, []int{0}) {
		t.Errorf("the cast is %v, want w1 alone", x.Cast)
	}
	for _, s := range x.Scenes {
		if s.At > x.Violation.At {
			t.Errorf("a scene at %v comes after the violation at %v", s.At, x.Violation.At)
		}
		if s.Lane > 1 {
			t.Errorf("%q stands in the column of a worker that does not matter", s.Words)
		}
	}
}

// B5: two steps are needed together, the cut and its end.
func TestBothEndsOfTheCutAreToBlame(t *testing.T) {
	x := explained(t, "B5", "B5", explain.Options{Forks: 20})
	var needed []string
	for _, s := range x.Steps {
		if s.Needed {
			needed = append(needed, s.Words)
		}
	}
	if want := []string{"cut w1", "heal w1"}; !slices.Equal(needed, want) {
		t.Errorf("it takes %v, want %v", needed, want)
	}
	if !slices.Contains(x.Mends, "open-after-release") {
		t.Errorf("mended by %v, without open-after-release", x.Mends)
	}
}

// B1/around-the-scan breaks by luck: from the start some futures fail and some do
// not, and at the violation's own time no luck is left.
func TestLuckRunsOut(t *testing.T) {
	list, err := scenarios.Find("B1")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(s *scenarios.Scenario) bool { return s.ID == "B1/around-the-scan" })
	for seed := uint64(0); seed < 50; seed++ {
		c, err := capsule.OfSeed(list[i], "document", core.Document(), seed)
		if err != nil {
			t.Fatal(err)
		}
		if c.Invariant == "" {
			continue
		}
		const forks = 40
		x, err := explain.Explain(context.Background(), c, explain.Options{Forks: forks})
		if err != nil {
			t.Fatal(err)
		}
		first, last := x.Doom.Points[0].Failed, x.Doom.Points[len(x.Doom.Points)-1].Failed
		if first == 0 || first == forks {
			t.Errorf("seed %d: %d of %d futures fail from the start, want some", seed, first, forks)
		}
		if last != forks {
			t.Errorf("seed %d: %d of %d futures fail from the end, want all", seed, last, forks)
		}
		return
	}
	t.Fatal("no seed breaks anything")
}

// The same capsule gives the same explanation.
func TestAnExplanationIsTheSameAgain(t *testing.T) {
	a := explained(t, "B1", "B1/resumed", explain.Options{Forks: 5})
	b := explained(t, "B1", "B1/resumed", explain.Options{Forks: 5})
	a.Story, b.Story = nil, nil
	if !reflect.DeepEqual(a, b) {
		t.Error("two explanations of one capsule differ")
	}
}

// Where nothing breaks there is nothing to explain, and the error says what to
// do instead.
func TestAPassHasNoExplanation(t *testing.T) {
	list, err := scenarios.Find("A1")
	if err != nil {
		t.Fatal(err)
	}
	c, err := capsule.OfSeed(list[0], "hardened", core.Hardened(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := explain.Explain(context.Background(), c, explain.Options{}); err == nil || !strings.Contains(err.Error(), "simrun replay") {
		t.Errorf("the error is %v", err)
	}
}

// Whatever a random world breaks, its explanation names somebody and ends.
func TestRandomWorldsAreExplained(t *testing.T) {
	if testing.Short() {
		t.Skip("plays some thousand runs")
	}
	list, err := scenarios.Find("random")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for seed := uint64(0); found < 5; seed++ {
		c, err := capsule.OfSeed(list[0], "document", core.Document(), seed)
		if err != nil {
			t.Fatal(err)
		}
		if c.Invariant == "" {
			continue
		}
		found++
		x, err := explain.Explain(context.Background(), c, explain.Options{Forks: 10})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(x.Scenes) == 0 || len(x.Cast) == 0 || len(x.Doom.Points) == 0 {
			t.Errorf("seed %d: %d scenes, cast %v, %d points", seed, len(x.Scenes), x.Cast, len(x.Doom.Points))
		}
	}
}
