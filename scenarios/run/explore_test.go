package run

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"vigil/core"
	"vigil/scenarios"
	"vigil/sim"
	"vigil/sim/explore"
)

// theRandom is the scenario of drawn worlds.
func theRandom(t *testing.T) *scenarios.Scenario {
	t.Helper()
	list, err := scenarios.Find("random")
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

func searchFor(t *testing.T, s *scenarios.Scenario, o SearchOptions) *Campaign {
	t.Helper()
	c, err := Search(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A search by any strategy comes to the same with one job and with three, and
// each of its findings is a run that its tape gives again.
func TestASearchOfWorldsIsTheSameAtAnyNumberOfJobs(t *testing.T) {
	random := theRandom(t)
	strategies := map[string]func() explore.Strategy{
		"random":   func() explore.Strategy { return &explore.Random{First: 40} },
		"swarm":    func() explore.Strategy { return &explore.Swarm{Seed: 4} },
		"pct":      func() explore.Strategy { return &explore.PCT{Seed: 4, Depth: 3, Steps: 2000} },
		"coverage": func() explore.Strategy { return &explore.Coverage{Seed: 4} },
	}
	for name, fresh := range strategies {
		o := SearchOptions{Design: "document", Protections: core.Document(), Runs: 130, Jobs: 1, Strategy: fresh()}
		one := searchFor(t, random, o)
		o.Jobs, o.Strategy = 3, fresh()
		three := searchFor(t, random, o)
		if one.Report != three.Report || one.Tally != three.Tally || len(one.Findings) != len(three.Findings) || one.Verdict != three.Verdict {
			t.Errorf("%s: one job gave %d runs and %d findings, three %d and %d", name, one.Runs, len(one.Findings), three.Runs, len(three.Findings))
		}
		if one.Found == 0 || len(one.Findings) == 0 {
			t.Errorf("%s found nothing of the document's holes in %d runs", name, one.Runs)
		}
		p := NewPlayer(o.Design, o.Protections)
		for i := range three.Findings {
			f := &three.Findings[i]
			f.Tape.Rewind()
			if r := p.PlayTape(random, 0, sim.ChoicesFrom(f.Tape), nil); r.Hash != f.Hash {
				t.Errorf("%s: the tape of run %d gives another run", name, f.Run)
			}
		}
	}
}

// Which protections acted is the same whoever asks: one goroutine that takes them
// in their order, or four that take turns. What acts in the first run is not
// asked about again, and what never acts is asked about in every run.
func TestWhatActedIsTheSameAtAnyNumberOfJobs(t *testing.T) {
	const most = 6
	tapes := func() func(int) *sim.Choices {
		choices := sim.NewChoices(0)
		return func(i int) *sim.Choices {
			choices.Reseed(uint64(i))
			return choices
		}
	}
	ask := func(most, jobs int, names ...string) Acted {
		return NewProber(theRandom(t), "hardened", core.Hardened(), names, most).Probe(jobs, tapes)
	}
	one := ask(most, 1, core.ProtectionNames()...)
	for _, jobs := range []int{2, 4, 100} {
		if many := ask(most, jobs, core.ProtectionNames()...); !reflect.DeepEqual(one, many) {
			t.Errorf("one goroutine gave %v, %d gave %v", one, jobs, many)
		}
	}
	if acted := len(one.Names) - count(one.Runs, 0); one.Probed != most || acted < 5 || acted == len(one.Names) {
		t.Errorf("of %d protections %d acted in %d runs", len(one.Names), acted, one.Probed)
	}
	// By itself each protection comes to what it came to among the others, and no
	// run is looked at after the one in which it acted.
	for k, name := range one.Names {
		alone := ask(most, 2, name)
		if alone.Runs[0] != one.Runs[k] || alone.Runs[0] == 0 && alone.Probed != most {
			t.Errorf("%s: %v by itself, %d among all", name, alone, one.Runs[k])
		}
		if alone.Runs[0] == 1 && ask(alone.Probed-1, 2, name).Runs[0] != 0 {
			t.Errorf("%s acted before run %d, which is said to be the first", name, alone.Probed)
		}
	}
}

func count(list []int, v int) (n int) {
	for _, x := range list {
		if x == v {
			n++
		}
	}
	return n
}

// A protection that is off is a planted cause: without the second look before a
// reap, it is the freeze of the server, and nothing else, that false reaps come
// with.
func TestTheFaultThatDidItIsNamed(t *testing.T) {
	p := core.Hardened()
	p.LookBeforeReap = false
	runs := uint64(600)
	if testing.Short() {
		runs = 300
	}
	c := searchFor(t, theRandom(t), SearchOptions{Design: "hardened", Protections: p, Strategy: &explore.Random{}, Runs: runs})
	for _, b := range c.Counts.Blame() {
		if b.Invariant != "NO-FALSE-REAP" {
			continue
		}
		if len(b.Causes) == 0 || b.Causes[0].Name != "server-freeze for longer than the window" {
			t.Errorf("the first cause of %d false reaps is %+v", b.Failed, b.Causes)
		}
		return
	}
	t.Errorf("without the second look nobody was reaped in error: %v", c.Broke)
}

// The first runs are played twice. Where that gives another run, nothing else
// that the search says can be believed.
func TestASearchSaysWhenARunIsNotItself(t *testing.T) {
	list := story(t, quiet+"expect:\n  - not-reaped: w1\n")
	strategy := &unsteady{}
	c := searchFor(t, list[0], SearchOptions{Design: "hardened", Protections: core.Hardened(), Strategy: strategy, Runs: 10, Jobs: 1})
	if c.Verdict != Nondeterminism || c.Broke["determinism"] != 1 || len(c.Findings) == 0 {
		t.Errorf("verdict %s, %v", c.Verdict, c.Broke)
	}
}

// unsteady decides otherwise each time that it is asked about the same run.
type unsteady struct {
	explore.Random
	asked uint64
}

func (u *unsteady) Job() explore.Decider { return u }

func (u *unsteady) Decide(uint64) *sim.Choices {
	u.asked++
	return sim.NewChoices(u.asked)
}

// A search in which nobody is ever served breaks no promise, and is no pass.
func TestASearchThatMeetsNothingIsNoPass(t *testing.T) {
	text := quiet + "expect:\n  - happened: {record: ping-failed, times: 0}\ncovers: {states: [serving-pinged]}\n"
	for idle, want := range map[string]Verdict{"": Pass, "idle: true, ": Missed} {
		list := story(t, strings.Replace(text, "w1: {start: 0s, ", "w1: {"+idle+"start: 0s, ", 1))
		o := SearchOptions{Design: "hardened", Protections: core.Hardened(), Strategy: &explore.Random{}, Runs: enoughRuns}
		c := searchFor(t, list[0], o)
		if c.Verdict != want || (want == Missed) != (len(c.Missed) == 1) {
			t.Errorf("%q: verdict %s, %+v", idle, c.Verdict, c.Missed)
		}
		o.Runs = enoughRuns - 1
		if c = searchFor(t, list[0], o); c.Verdict != Pass {
			t.Errorf("%d runs are too few to tell, and it is %s", o.Runs, c.Verdict)
		}
	}
}

// What a file expects is owed where its story took place, and there alone. The
// expectations of B2 stand on a worker that dies after its eighth copy: by
// tapes in which no eighth copy begins it lives, and that is no finding. Where it
// did die, a core that does not free it is one.
func TestWhatAFileExpectsIsOwedWhereItsStoryTookPlace(t *testing.T) {
	list, err := scenarios.Find("B2/killed")
	if err != nil {
		t.Fatal(err)
	}
	o := SearchOptions{Design: "hardened", Protections: core.Hardened(), Strategy: &explore.Swarm{}, Runs: 120, Jobs: 1}
	c := searchFor(t, list[0], o)
	if c.Verdict != Pass || c.Told == 0 || c.Told == c.Runs {
		t.Errorf("verdict %s, %v; %d of %d runs told the story", c.Verdict, c.Broke, c.Told, c.Runs)
	}
	o.Protections.IndependentReleases = false
	sick := searchFor(t, list[0], o)
	if n := sick.Broke["expect holds"]; n == 0 || n > sick.Told {
		t.Errorf("%v in %d runs that told the story", sick.Broke, sick.Told)
	}
}

// A fault that waits for a record and comes when the file's faults should be
// over makes another story, and so does all that follows on it.
func TestAFaultAfterTheCalmMakesAnotherStory(t *testing.T) {
	text := quiet + `
steps:
  - when: {record: stamped, worker: w1, nth: 3}
    label: third
    pause: {worker: w1, for: 20s}
  - when: {step: third}
    after: 40s
    kill: w1
calm: %s
expect:
  - holds: {worker: w1, contexts: 1}
`
	for calm, owed := range map[string]bool{"30s": false, "200s": true} {
		list := story(t, fmt.Sprintf(text, calm))
		c := searchFor(t, list[0], SearchOptions{Design: "hardened", Protections: core.Hardened(), Strategy: &explore.Random{}, Runs: 20, Jobs: 1})
		if told, found := c.Told == c.Runs, c.Broke["expect holds"] == c.Runs; told != owed || found != owed {
			t.Errorf("calm at %s: %d of %d runs told the story, %v", calm, c.Told, c.Runs, c.Broke)
		}
	}
}

// A search that never told the file's story has looked at nothing of it.
func TestASearchThatNeverTellsTheStoryIsNoPass(t *testing.T) {
	text := quiet + "steps:\n  - {at: 60s, shutdown: w1}\n  - {at: 70s, store: w1MAYBE}\nexpect:\n  - happened: {record: ping-failed, times: 0}\n"
	for maybe, want := range map[string]Verdict{"": Missed, ", maybe: true": Pass} {
		list := story(t, strings.Replace(text, "MAYBE", maybe, 1))
		o := SearchOptions{Design: "hardened", Protections: core.Hardened(), Strategy: &explore.Random{}, Runs: enoughRuns}
		if c := searchFor(t, list[0], o); c.Verdict != want || (want == Missed) != (len(c.Missed) == 1) {
			t.Errorf("%q: verdict %s, %+v", maybe, c.Verdict, c.Missed)
		}
	}
}

// A search that stops at its first finding has looked no further, and one whose
// time is up has found what it has.
func TestASearchStops(t *testing.T) {
	o := SearchOptions{Design: "document", Protections: core.Document(), Strategy: &explore.Random{}, Runs: 500, Jobs: 2, Stop: true}
	c := searchFor(t, theRandom(t), o)
	if c.Found != 1 || len(c.Findings) != 1 || c.Findings[0].Run != c.Runs-1 {
		t.Errorf("%d found in %d runs, %d kept", c.Found, c.Runs, len(c.Findings))
	}
	o.Runs, o.For, o.Stop, o.Strategy = 0, 50*time.Millisecond, false, &explore.Random{}
	if c = searchFor(t, theRandom(t), o); c.Runs == 0 || !c.Whole {
		t.Errorf("%d runs in 50 ms", c.Runs)
	}
}
