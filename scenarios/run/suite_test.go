package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vigil/core"
	"vigil/scenarios"
)

// seedsHere keeps the tests short; `make run` plays 200 of each story.
const seedsHere = 30

func playSuite(t *testing.T, list []*scenarios.Scenario, o Options) []Outcome {
	t.Helper()
	if o.Design == "" {
		o.Design, o.Protections = "document", core.Document()
	}
	out, err := Suite(context.Background(), list, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func story(t *testing.T, text string) []*scenarios.Scenario {
	t.Helper()
	list, err := scenarios.Parse("story.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Every story of the design document comes out as its file declares.
func TestTheSuiteUnderTheDocument(t *testing.T) {
	list, err := scenarios.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	seeds := BreakRuns // what is declared for some seeds is judged as well
	if testing.Short() {
		seeds = seedsHere
	}
	out := playSuite(t, list, Options{Count: seeds})
	for i := range out {
		o := &out[i]
		if o.Verdict == Pass {
			continue
		}
		t.Errorf("%s %s: %s (%d of %d runs), expected %s", o.ID, o.Name, o.Verdict, o.Violated, o.Runs, o.Expected)
		for k := range o.Violations {
			if v := &o.Violations[k]; !v.Declared {
				t.Logf("  seed %d at %s: %s %v: %s", v.Seed, scenarios.Seconds(v.At.Sub(0)), v.Invariant, v.Actors, v.Message)
			}
		}
	}
}

// The same seeds give the same outcome and hash whatever the jobs.
func TestJobsChangeNothing(t *testing.T) {
	list, err := scenarios.Find("A1", "A8", "A16", "A17")
	if err != nil {
		t.Fatal(err)
	}
	one := playSuite(t, list, Options{Count: 2*chunkRuns + 3, Jobs: 1})
	many := playSuite(t, list, Options{Count: 2*chunkRuns + 3, Jobs: 5})
	for i := range one {
		a, b := one[i], many[i]
		a.WallSeconds, b.WallSeconds = 0, 0
		if x, y := fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b); x != y {
			t.Errorf("%s with one job:\n%s\nwith five:\n%s", a.ID, x, y)
		}
		if one[i].Hash == 0 || one[i].Runs != 2*chunkRuns+3 {
			t.Errorf("%s: hash %s of %d runs", one[i].ID, one[i].HashText(), one[i].Runs)
		}
	}
	// Shards add up: the hash of a range is the sum of its parts'.
	left := playSuite(t, list, Options{Count: 10, Partial: true})
	right := playSuite(t, list, Options{From: 10, Count: 2*chunkRuns - 7, Partial: true})
	for i := range one {
		if left[i].Hash+right[i].Hash != one[i].Hash {
			t.Errorf("%s: the shards' hashes do not add up", one[i].ID)
		}
	}
}

// A1 over a thousand seeds: a dead worker goes after its window, within one
// scan more, and the tape reaches both ends.
func TestAReapTakesFromOneWindowToOneScanMore(t *testing.T) {
	list, err := scenarios.Find("A1/server-driven")
	if err != nil {
		t.Fatal(err)
	}
	o := playSuite(t, list, Options{Count: 1000})[0]
	if o.Verdict != Pass {
		t.Fatalf("%s: %+v", o.Verdict, o.Violations)
	}
	m := o.Measures[0]
	low, high := time.Duration(m.Min), time.Duration(m.Max)
	if m.Kind != "reaped" || m.Count != 1000 || low <= 120*time.Second || low > 122*time.Second || high > 150*time.Second || high < 148*time.Second {
		t.Errorf("%d reaps from %s to %s after the last stamp", m.Count, low, high)
	}
}

const quiet = `
id: X
name: x
title: a story
workers:
  w1: {start: 0s, traffic: {every: 5s..9s, to: 280s}}
until: 300s
`

// A scenario can fail, in each way that it can declare something.
func TestADeclarationThatDoesNotComeTrueFails(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		verdict Verdict
		says    string
	}{
		"nothing wrong": {"expect:\n  - not-reaped: w1\n", Pass, ""},
		"a break in all runs that does not come": {
			"expect:\n  - not-reaped: w1\nbreaks: {document: {invariant: ONE, seeds: all}}\n", Missed, "declared to break in every run"},
		"a break in some runs that comes in none": {
			"expect:\n  - not-reaped: w1\nbreaks: {document: {invariant: ONE, seeds: some}}\n", Missed, "declared to break in some run"},
		"a break in some runs that never names an actor": {
			"workers: {w1: {start: 0s, traffic: {every: 5s..9s, to: 280s}}, w2: {start: 0s}}\nsteps:\n  - {at: 60s, pause: {worker: w1, for: 170s}}\n" +
				"breaks: {document: {invariant: CONVERGE, seeds: some, actors: [w1, w2]}}\n", Missed, "broke, but never for w2 as declared"},
		"a break of the other design": {
			"expect:\n  - not-reaped: w1\nbreaks: {hardened: {invariant: ONE, seeds: all}}\n", Pass, ""},
		"a reap that does not come": {"expect:\n  - reaped: w1\n", Missed, "w1 was reaped 0 times, 1 are expected"},
		"a reap that is too late": {
			"steps:\n  - {at: 60s, kill: w1}\nexpect:\n  - reaped: {worker: w1, within: \"[0s, reap]\"}\n", Safety, "within [0s, 120s] is expected"},
		"a reap that must not come":         {"steps:\n  - {at: 60s, kill: w1}\nexpect:\n  - not-reaped: w1\n", Safety, "w1 was reaped"},
		"not reaped, for there was nothing": {"workers: {w1: {idle: true}}\nexpect:\n  - not-reaped: w1\n", Missed, "never had a context"},
		"a state that is not":               {"expect:\n  - holds: {worker: w1, contexts: 2, at: 100s}\n", Safety, "w1 has 1 contexts at 100s; 2 are expected"},
		"health that is not":                {"expect:\n  - health: {worker: w1, is: unhealthy}\n", Safety, "w1 is healthy at 300s"},
		"a record that comes too often":     {"expect:\n  - happened: {record: ping-sent, worker: w1, times: 0}\n", Safety, "ping-sent of w1 came 1 times, 0 are expected"},
		"a record that never comes":         {"expect:\n  - happened: {record: recovery-began, worker: w1}\n", Missed, "came 0 times"},
		"since a record that never comes":   {"expect:\n  - happened: {record: ping-sent, worker: w1, times: 0, since: {record: unregister-sent, worker: w1}}\n", Missed, "nothing was judged"},
		"an order that is not": {
			"expect:\n  - order: {each: {record: ping-answered, worker: w1}, by: {record: recovery-ended, worker: w1}}\n", Safety, "came without recovery-ended of w1 before it"},
		"a time that is too long": {
			"expect:\n  - took: {from: {record: ping-sent, worker: w1}, to: {record: ping-answered, worker: w1}, within: \"[0s, 10us]\"}\n", Safety, "within [0s, 0.00001s] is expected"},
		"requests that end otherwise": {"expect:\n  - ended: {worker: w1, among: [dropped]}\n", Safety, "which is not expected"},
		"a step that strikes nothing": {"steps:\n  - {at: 60s, resume: w1}\nexpect:\n  - not-reaped: w1\n", Missed, "resume w1 never took hold"},
		"a step that may strike nothing, and never does": {
			"steps:\n  - {at: 60s, resume: w1, maybe: true}\nexpect:\n  - not-reaped: w1\n", Missed, "never took hold in 30 runs"},
		"a state that is met":                          {"steps:\n  - {at: 60s, kill: w1}\ncovers: {faults: [kill], states: [silent-past-window, gone]}\n", Pass, ""},
		"a state that is never met":                    {"expect:\n  - not-reaped: w1\ncovers: {states: [serving-pinged, stuck]}\n", Missed, "the file covers the state stuck, and it never was met in 30 runs"},
		"a fault that never fires":                     {"steps:\n  - {at: 60s, resume: w1, maybe: true}\ncovers: {faults: [resume]}\n", Missed, "the file covers the fault resume, and it never took hold in 30 runs"},
		"what must be met under the other design only": {"expect:\n  - not-reaped: w1\ncovers: {hardened: {states: [stuck]}}\n", Pass, ""},
		"a protection that is off cannot act":          {"expect:\n  - not-reaped: w1\ncovers: {protections: [boot-token]}\n", Pass, ""},
	} {
		text := quiet
		if strings.HasPrefix(c.text, "workers:") {
			text = strings.Replace(text, "workers:\n  w1: {start: 0s, traffic: {every: 5s..9s, to: 280s}}\n", "", 1)
		}
		count := seedsHere
		if strings.Contains(c.text, "seeds: some") {
			count = BreakRuns
		}
		o := playSuite(t, story(t, text+c.text), Options{Count: count})[0]
		told := ""
		for _, v := range o.Violations {
			if !v.Declared {
				told += v.Message + "\n"
			}
		}
		if o.Verdict != c.verdict || !strings.Contains(told, c.says) || (c.says == "") != (told == "") {
			t.Errorf("%s: verdict %s, want %s; it says:\n%swant: %s", name, o.Verdict, c.verdict, told, c.says)
		}
	}
}

// A protection acted where the same tape without it comes to something else.
func TestAProtectionThatChangesNothingDidNotAct(t *testing.T) {
	o := Options{Design: "hardened", Protections: core.Hardened(), Count: seedsHere}
	frozen := "  - {at: 60s, pause: {worker: w1, for: 170s}}\n"
	for covers, c := range map[string]struct {
		steps string
		acts  bool
	}{
		"registration-aware-ping": {frozen, true}, // it is reaped meanwhile, and told so
		"boot-token":              {frozen, false},
		"request-deadlines":       {frozen, false},
	} {
		list := story(t, quiet+"steps:\n"+c.steps+"covers: {protections: ["+covers+"]}\n")
		got := playSuite(t, list, o)[0]
		if acted := got.Coverage.Protections[covers] > 0; acted != c.acts || acted != (got.Verdict == Pass) {
			t.Errorf("%s acted: %v, want %v; verdict %s, %+v", covers, acted, c.acts, got.Verdict, got.Violations)
		}
	}
}

// What another actor breaks is not what was declared.
func TestABreakMustNameItsActors(t *testing.T) {
	list, err := scenarios.Find("A3")
	if err != nil {
		t.Fatal(err)
	}
	s := *list[0]
	s.Breaks = append([]scenarios.Break(nil), s.Breaks...)
	s.Breaks[0].Actors = []int{1}
	o := playSuite(t, []*scenarios.Scenario{&s}, Options{Count: seedsHere})[0]
	if o.Verdict != Liveness || o.Expected != "breaks CONVERGE in all (w2)" {
		t.Errorf("verdict %s, expected %s", o.Verdict, o.Expected)
	}
}

// Few seeds say nothing of a break that comes in some runs: not one, and not so
// many that one in ten may well be missed.
func TestFewSeedsAreNoProofOfASomeBreak(t *testing.T) {
	list := story(t, quiet+"expect:\n  - not-reaped: w1\nbreaks: {document: {invariant: ONE, seeds: some}}\n")
	for _, count := range []int{1, SomeRuns, BreakRuns - 1} {
		if o := playSuite(t, list, Options{From: 3, Count: count})[0]; o.Verdict != Pass || o.Runs != count {
			t.Errorf("%s after %d runs", o.Verdict, o.Runs)
		}
	}
	if o := playSuite(t, list, Options{From: 3, Count: BreakRuns})[0]; o.Verdict != Missed {
		t.Errorf("%s after %d runs", o.Verdict, o.Runs)
	}
}

// What the built-in files declare comes often enough for any range of seeds to
// show it: each break, and for each actor, in one run of fifteen at least.
func TestWhatIsDeclaredIsNoRarity(t *testing.T) {
	if testing.Short() {
		t.Skip("plays some thousand runs")
	}
	list, err := scenarios.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	const runs, least = 300, 20
	for design, protections := range map[string]core.Protections{"document": core.Document(), "hardened": core.Hardened()} {
		p := NewPlayer(design, protections)
		for _, s := range list {
			if !slices.ContainsFunc(s.Breaks, func(b scenarios.Break) bool { return b.Design == design }) {
				continue
			}
			came := map[string]int{}
			for seed := range uint64(runs) {
				seen := map[string]bool{}
				for _, v := range p.Play(s, seed, nil).Violations {
					seen[v.Invariant] = true
					for _, name := range v.Actors {
						seen[v.Invariant+" of "+name] = true
					}
				}
				for what := range seen {
					came[what]++
				}
			}
			for i := range s.Breaks {
				b := &s.Breaks[i]
				if b.Design != design {
					continue
				}
				wanted := []string{b.Invariant}
				for _, name := range declaredNames(s, b) {
					wanted = append(wanted, b.Invariant+" of "+name)
				}
				for _, what := range wanted {
					if came[what] < least {
						t.Errorf("%s:%d: %s under %s breaks in %d of %d runs of %s: too seldom to be declared", s.File, b.Line, what, design, came[what], runs, s.ID)
					}
				}
			}
		}
	}
}

// An interrupted suite says that it is not whole.
func TestAnInterruptedSuiteIsUnknown(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	list := story(t, quiet+"expect:\n  - not-reaped: w1\n")
	out, err := Suite(ctx, list, Options{Design: "document", Count: 5})
	if err != nil || out[0].Verdict != Unknown || out[0].NotRun != 5 {
		t.Errorf("%v %+v", err, out)
	}
	if _, err := Suite(ctx, list, Options{Design: "documented", Count: 5}); err == nil {
		t.Error("an unknown design is accepted")
	}
}

// Seeds go on until the time is up.
func TestSeedsUntilTheTimeIsUp(t *testing.T) {
	list := story(t, quiet+"expect:\n  - not-reaped: w1\n")
	began := time.Now()
	o := playSuite(t, list, Options{Count: 1, For: 50 * time.Millisecond})[0]
	if o.Runs < 1 || o.Verdict != Pass || time.Since(began) > 20*time.Second {
		t.Errorf("%s after %d runs", o.Verdict, o.Runs)
	}
}

// A story reads as sentences, and names whom it is about.
func TestAStoryInWords(t *testing.T) {
	list, err := scenarios.Find("A6/stall")
	if err != nil {
		t.Fatal(err)
	}
	p := NewPlayer("document", core.Document())
	st, r := p.Tell(list[0], 7, false)
	if len(r.Violations) > 0 {
		t.Fatalf("%+v", r.Violations)
	}
	at := 0
	for _, want := range []string{
		"w1: starts its heartbeat", "world: STEP: cut w1", "w1: is UNHEALTHY: degraded mode",
		"server: WARNING: server-driven context", "world: the link of w1 is back",
		"w1: sees the server again and recovers", "server: serves w1 from now on",
		"w1: ends its recovery; healthy: true", "w1: is healthy again",
	} {
		for ; at < len(st.Lines); at++ {
			if strings.HasPrefix(st.Lines[at].Actor+": "+st.Lines[at].Words, want) {
				break
			}
		}
		if at == len(st.Lines) {
			t.Fatalf("the story has no %q after what came before it", want)
		}
	}
	whole, again := p.Tell(list[0], 7, true)
	if again.Hash != r.Hash || uint64(len(whole.Lines)) != again.Records {
		t.Errorf("everything is %d lines of %d records", len(whole.Lines), again.Records)
	}
}
