package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/monitor"
	"vigil/sim"
)

// tiny worlds, in which every path can be gone without saving anything.
const tinyHead = `
id: T1
name: tiny
title: a tiny world
config: {reap: 30s, grace: 40s, chunk-tokens: 16, prompt-tokens: 16..16, prompts: 1, block-tokens: 16}
`

var tinyWorlds = map[string]string{
	// The reap of an idle worker against its second register.
	"reap and register": tinyHead + `
workers:
  w1: {start: 500ms, warmup: 500ms, memory: {blocks: 4}}
until: 60s
steps:
  - {at: 45s, register: w1}
`,
	// A store under way while its worker leaves.
	"store and leave": tinyHead + `
workers:
  w1: {start: 500ms, warmup: 500ms, memory: {blocks: 4}}
until: 5s
steps:
  - {at: 3s, store: w1}
  - {at: 3s, shutdown: w1}
`,
	// A connection that breaks under a request, and is made again.
	"a broken connection": tinyHead + `
workers:
  w1: {start: 500ms, warmup: 500ms, memory: {blocks: 4}}
until: 6s
steps:
  - {at: 3s, store: w1}
  - {at: 3s, cut: {worker: w1, how: reset, for: 1s}}
`,
	// A worker that leaves while another arrives.
	"leave and arrive": tinyHead + `
workers:
  everyone: {memory: {blocks: 4}}
  w1: {start: 500ms, warmup: 500ms}
  w2: {start: 2500ms, warmup: 500ms}
until: 6s
steps:
  - {at: 3s, shutdown: w1}
`,
	// A worker that is frozen and thawed on the instant of its ping.
	"a frozen worker": tinyHead + `
workers:
  w1: {start: 500ms, warmup: 500ms, memory: {blocks: 4}}
until: 24s
steps:
  - {at: 1500ms, store: w1}
  - {at: 11500ms, pause: {worker: w1, for: 10s}}
`,
}

func parsed(t testing.TB, text string) *scenarios.Scenario {
	list, err := scenarios.Parse("tiny.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// endsOf is all that a search found out: the ends of the run and what broke
// on the way there.
func endsOf(t testing.TB, s *scenarios.Scenario, p core.Protections, everyOrder, everyPath bool) (map[string]bool, ExhaustReport) {
	ends := map[string]bool{}
	r, err := Exhaust(s, "document", p, ExhaustOptions{
		Deadline: 60 * time.Second, everyOrder: everyOrder, everyPath: everyPath,
		ended: func(end core.Digest, violations []Violation) {
			ends[fmt.Sprintf("%016x %s", uint64(end), kinds(violations))] = true
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Complete || len(ends) == 0 {
		t.Fatalf("%d ends; not complete: %s; %v", len(ends), r.Reason, r.Violations)
	}
	return ends, r
}

// kinds names what broke, without when.
func kinds(list []Violation) string {
	var words []string
	for i := range list {
		words = append(words, list[i].Invariant+" "+strings.Join(list[i].Actors, ","))
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), "; ")
}

// What the search saves, it saves soundly: with states met once and independent
// events in one order it reaches the same ends, and finds the same broken, as a
// search that goes every path.
func TestSavingLosesNothing(t *testing.T) {
	for name, text := range tinyWorlds {
		t.Run(name, func(t *testing.T) {
			s := parsed(t, text)
			for design, p := range map[string]core.Protections{"document": core.Document(), "hardened": core.Hardened()} {
				want, all := endsOf(t, s, p, true, true)
				for _, save := range []struct {
					name                  string
					everyOrder, everyPath bool
				}{{"states met once", true, false}, {"independent events in one order", false, true}, {"both", false, false}} {
					got, r := endsOf(t, s, p, save.everyOrder, save.everyPath)
					if !maps.Equal(got, want) {
						t.Errorf("%s, %s: %d ends instead of %d", design, save.name, len(got), len(want))
					}
					if a, b := kinds(r.Violations), kinds(all.Violations); a != b {
						t.Errorf("%s, %s: found %q instead of %q", design, save.name, a, b)
					}
					if r.Transitions > all.Transitions {
						t.Errorf("%s, %s: %d events were played, %d without saving", design, save.name, r.Transitions, all.Transitions)
					}
					t.Logf("%s, %s: %d states, %d of %d events, %d ends, found %q", design, save.name, r.States, r.Transitions, all.Transitions, len(got), kinds(r.Violations))
				}
			}
		})
	}
}

// the small world of A16, whose every order is tried.
func reapOrders(t testing.TB) *scenarios.Scenario {
	list, err := scenarios.Find("A16x")
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

func exhaust(t testing.TB, s *scenarios.Scenario, design string, p core.Protections) ExhaustReport {
	r, err := Exhaust(s, design, p, ExhaustOptions{Deadline: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Complete {
		t.Fatalf("%s: not complete: %s, after %d states in %v", design, r.Reason, r.States, r.Took)
	}
	t.Logf("%s: all of %d states, %d events, %d ends, %d events deep, in %v", design, r.States, r.Transitions, r.Schedules, r.Depth, r.Took.Round(time.Millisecond))
	return r
}

// A16: under hardened no order of reap, register, ping, unregister and transfer
// of one id breaks anything.
func TestExhaustiveA16(t *testing.T) {
	r := exhaust(t, reapOrders(t), "hardened", core.Hardened())
	for i := range r.Violations {
		t.Errorf("%v: %s: %s", r.Violations[i].At, r.Violations[i].Invariant, r.Violations[i].Message)
	}
	if r.Verdict() != Pass || r.Tape != nil {
		t.Errorf("verdict %s", r.Verdict())
	}
	// Saving events must not save states: each is met, by one order or another.
	every, err := Exhaust(reapOrders(t), "hardened", core.Hardened(), ExhaustOptions{everyOrder: true})
	if err != nil || every.States != r.States || every.Schedules != r.Schedules || every.Transitions <= r.Transitions {
		t.Errorf("with independent events in both orders: %d states, %d ends, %d events, %v", every.States, every.Schedules, every.Transitions, err)
	}
	if r.States < 10_000 || r.Schedules < 20 {
		t.Errorf("%d states and %d ends are no race of five things", r.States, r.Schedules)
	}
}

// Under the document the search finds B5's overlap, and B6's release under a
// copy, for a transfer waits in the link; and nothing else. Each is told by the
// protection that turns its very tape green.
func TestExhaustiveA16FindsTheDocumentsHoles(t *testing.T) {
	s := reapOrders(t)
	mends := map[string][]string{
		"ONCE":   {"open-after-release"},
		"FENCE":  {"mirror-with-context", "open-after-release"},
		"NO-UAF": {"release-after-copies"},
	}
	r := exhaust(t, s, "document", core.Document())
	var found []string
	for i := range r.Violations {
		v := &r.Violations[i]
		found = append(found, v.Invariant)
		again := NewPlayer("document", core.Document()).PlayTape(s, 0, sim.ChoicesFrom(r.Tapes[i]), nil)
		if !breaks(again, v.Invariant) {
			t.Errorf("%s does not come again when its tape is played", v.Invariant)
		}
		for _, name := range mends[v.Invariant] {
			p := core.Document()
			p.Set(name, true)
			if breaks(NewPlayer("document", p).PlayTape(s, 0, sim.ChoicesFrom(r.Tapes[i]), nil), v.Invariant) {
				t.Errorf("with %s the same tape breaks %s still", name, v.Invariant)
			}
		}
	}
	slices.Sort(found)
	if want := []string{"FENCE", "NO-UAF", "ONCE"}; !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}

	if testing.Short() {
		return
	}
	// With B6 mended there is B5's overlap and nothing else; with that mended
	// too, there is nothing.
	p := core.Document()
	p.ReleaseAfterCopies = true
	if r := exhaust(t, s, "document", p); kinds(r.Violations) != "FENCE w1; ONCE w1" {
		t.Errorf("with B6 mended: %q", kinds(r.Violations))
	}
	p.OpenAfterRelease, p.MirrorWithContext = true, true
	if r := exhaust(t, s, "document", p); len(r.Violations) > 0 {
		t.Errorf("with B5 and B6 mended: %q", kinds(r.Violations))
	}
}

func breaks(r Run, invariant string) bool {
	return slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Invariant == invariant })
}

// What chance meets, the search has met: the end of every run of a random tape
// is one of those that the search came to, savings and all.
func TestNoRunEndsWhereTheSearchDidNot(t *testing.T) {
	if testing.Short() {
		t.Skip("searches two worlds through and plays two thousand runs")
	}
	s := reapOrders(t)
	for design, p := range map[string]core.Protections{"document": core.Document(), "hardened": core.Hardened()} {
		ends := map[core.Digest]bool{}
		r, err := Exhaust(s, design, p, ExhaustOptions{ended: func(end core.Digest, _ []Violation) { ends[end] = true }})
		if err != nil || !r.Complete {
			t.Fatal(err, r.Reason)
		}
		met := map[core.Digest]bool{}
		plan := Compile(s, p)
		for seed := range uint64(1000) {
			w := &witness{monitors: monitor.New(SetupOf(plan)), judge: NewJudge(s, design, p)}
			world, dice := sim.NewWorld(), sim.NewChoices(seed)
			tape := sim.InTicks(DefaultTick, plainest{dice})
			world.Begin(plan, tape, w)
			for n := world.Ready(); n > 0; n = world.Ready() {
				if what := world.Step(int(dice.Below(sim.ForOrder, 0, uint64(n)))); what != "" {
					t.Fatal(what)
				}
			}
			w.Finish(world.End())
			d := world.Fingerprint(nil)
			d.Uint(uint64(w.Fingerprint(nil)))
			if met[d] = true; !ends[d] {
				t.Fatalf("%s: the random run %d ends in a state that the search did not meet", design, seed)
			}
		}
		t.Logf("%s: 1000 random runs met %d of the %d ends", design, len(met), len(ends))
	}
}

// plainest decides at random what the search tries, and for the plainest else.
type plainest struct{ dice *sim.Choices }

func (s plainest) Draw(purpose sim.Purpose, actor int, n uint64) uint64 {
	if purpose == sim.ForStory || purpose == sim.ForStart || purpose == sim.ForReconnect {
		return s.dice.Below(purpose, actor, n)
	}
	return 0
}

// An exhaustive search that is cut short says so, and is no pass.
func TestASearchThatIsCutShortIsUnknown(t *testing.T) {
	s := reapOrders(t)
	for name, o := range map[string]ExhaustOptions{
		"states": {MaxStates: 100}, "depth": {MaxDepth: 20}, "time": {Deadline: time.Nanosecond},
	} {
		r, err := Exhaust(s, "hardened", core.Hardened(), o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Complete || r.Reason == "" || r.Verdict() != Unknown || r.Verdict().ExitCode() != 14 {
			t.Errorf("%s: complete %v, %q, verdict %s", name, r.Complete, r.Reason, r.Verdict())
		}
		t.Logf("%s: %s", name, r.Reason)
	}
}

// How many distinct states a second the search goes through on one core, with
// all twelve monitors and the file's expectations.
func BenchmarkExhaustive(b *testing.B) {
	s := reapOrders(b)
	for _, d := range []struct {
		design string
		p      core.Protections
	}{{"hardened", core.Hardened()}, {"document", core.Document()}} {
		b.Run(d.design, func(b *testing.B) {
			b.ReportAllocs()
			var states uint64
			for b.Loop() {
				r, err := Exhaust(s, d.design, d.p, ExhaustOptions{})
				if err != nil || !r.Complete {
					b.Fatal(err, r.Reason)
				}
				states += r.States
			}
			b.ReportMetric(float64(states)/b.Elapsed().Seconds(), "states/s")
		})
	}
}

// A state that is met again leads where it led: the fingerprint leaves nothing
// out that matters within a step.
func TestAStateThatIsMetAgainLeadsToTheSame(t *testing.T) {
	worlds, most := []*scenarios.Scenario{reapOrders(t)}, uint64(25_000)
	if testing.Short() {
		most = 2000
	}
	for _, name := range slices.Sorted(maps.Keys(tinyWorlds)) {
		worlds = append(worlds, parsed(t, tinyWorlds[name]))
	}
	for i, s := range worlds {
		for design, p := range map[string]core.Protections{"hardened": core.Hardened(), "document": core.Document()} {
			doubts := 0
			r, err := Exhaust(s, design, p, ExhaustOptions{MaxStates: most, everyOrder: true, doubt: func(w *sim.World, event int, was, is core.Digest) {
				if doubts++; doubts < 4 {
					t.Errorf("world %d, %s: at %v event %d leads to %016x and led to %016x", i, design, w.Now(), event, uint64(is), uint64(was))
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("world %d, %s: %d states, %d met again, %d doubts", i, design, r.States, r.Merged, doubts)
		}
	}
}

// Workers that nothing tells apart may change places: what they hold and do then
// counts once, and nothing that breaks is lost.
func TestAlikeWorkersCountOnce(t *testing.T) {
	s := parsed(t, tinyHead+`
workers:
  everyone: {start: 500ms, warmup: 500ms, memory: {blocks: 4}}
  w1: {}
  w2: {}
  w3: {}
until: 60s
steps:
  - {at: 45s, register: w1}
`)
	for design, p := range map[string]core.Protections{"document": core.Document(), "hardened": core.Hardened()} {
		apart, err := Exhaust(s, design, p, ExhaustOptions{everyOrder: true, nobodyAlike: true, MaxStates: 2_000_000})
		if err != nil || !apart.Complete {
			t.Fatal(err, apart.Reason)
		}
		alike, err := Exhaust(s, design, p, ExhaustOptions{MaxStates: 2_000_000})
		if err != nil || !alike.Complete {
			t.Fatal(err, alike.Reason)
		}
		t.Logf("%s: %d states with w2 and w3 as one, %d apart; %d ends, %d apart; found %q", design, alike.States, apart.States, alike.Schedules, apart.Schedules, kinds(alike.Violations))
		if 10*alike.States > 7*apart.States {
			t.Errorf("%s: %d states instead of %d: two workers that change places should save near half", design, alike.States, apart.States)
		}
		// Which of the two a violation names is chance; that one is named is not.
		words := strings.NewReplacer("w2", "w2 or w3", "w3", "w2 or w3")
		if a, b := words.Replace(kinds(alike.Violations)), words.Replace(kinds(apart.Violations)); !sameKinds(a, b) {
			t.Errorf("%s: found %q instead of %q", design, a, b)
		}
	}
}

func sameKinds(a, b string) bool {
	set := func(text string) []string {
		words := strings.Split(text, "; ")
		slices.Sort(words)
		return slices.Compact(words)
	}
	return slices.Equal(set(a), set(b))
}
