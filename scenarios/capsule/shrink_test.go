package capsule

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"vigil/core"
	"vigil/faults"
	"vigil/scenarios"
	"vigil/scenarios/run"
	"vigil/sim"
)

// wantedHole is a hole of the document that a search through worlds with every
// fault on finds by itself, and what mends it.
type wantedHole struct {
	story      string
	by         []string
	noRestarts bool // what B4 is too is not B1
	seed       uint64
}

// The seeds are where a search from 0 on finds each first; with VIGIL_FULL the
// test searches, else it begins just before.
var wantedHoles = []wantedHole{
	{story: "B1", by: []string{"registration-aware-ping"}, noRestarts: true, seed: 65},
	{story: "B3", by: []string{"look-before-reap"}, seed: 52},
	{story: "B5", by: []string{"open-after-release", "mirror-with-context"}, seed: 762},
}

// found searches for a hole as run's own search does: a run of the document
// that the hole's protection alone turns green.
func (h wantedHole) found(t *testing.T, from uint64) *Capsule {
	t.Helper()
	random := find(t, "random")
	document := run.NewPlayer("document", core.Document())
	var mended []*run.Player
	for _, name := range h.by {
		p := core.Document()
		p.Set(name, true)
		mended = append(mended, run.NewPlayer("document", p))
	}
	for seed := from; seed < from+10_000; seed++ {
		r, tape := document.Record(random, seed)
		if len(r.Violations) == 0 || !slices.ContainsFunc(mended, func(p *run.Player) bool {
			again := p.PlayTape(random, seed, sim.ChoicesFrom(fresh(tape)), nil)
			return run.Green(&again)
		}) {
			continue
		}
		c, err := Of(random, "document", core.Document(), seed, tape, r)
		if err != nil {
			t.Fatal(err)
		}
		if h.noRestarts && slices.ContainsFunc(c.Scenario.Plan.Steps, func(s sim.Step) bool { return s.Do.Fault.Kind == faults.ServerRestart }) {
			continue
		}
		return c
	}
	t.Fatalf("%s was not found", h.story)
	return nil
}

// What a search finds in a world of every fault becomes a story that a person
// reads at a glance, runs, and mends with the one protection.
func TestTheDocumentsHolesShrinkToSmallStories(t *testing.T) {
	for _, h := range wantedHoles {
		t.Run(h.story, func(t *testing.T) {
			from, each, clean := h.seed, 1, 0
			if os.Getenv("VIGIL_FULL") != "" {
				from, each = 0, 3
			}
			for range each {
				c := h.found(t, from)
				from = c.Seed + 1
				began := processorTime(t)
				s, err := c.Shrink(context.Background(), ShrinkOptions{MendedBy: h.by})
				if err != nil {
					t.Fatal(err)
				}
				took := processorTime(t) - began
				t.Logf("seed %d: %+v, then %+v, in %d trials and %v; %d of %d other tapes fail\n%s", c.Seed, s.Result.Before, s.Result.After, s.Result.Trials, took, s.Fails, FreshSeeds, s.File)
				if s.Result.After.Steps > 8 || s.Result.After.Workers > 2 || took > 20*time.Second || !s.Result.Complete {
					t.Errorf("%d steps, %d workers in %v (complete: %t)", s.Result.After.Steps, s.Result.After.Workers, took, s.Result.Complete)
				}
				if wrong, _ := reread(t, s.Capsule).Check(); len(wrong) > 0 {
					t.Errorf("the small capsule does not replay: %+v", wrong)
				}
				if s.MendedFails > 0 { // the file says so: a world of every fault may have two holes in one story
					t.Logf("with %s, %d seeds break something else", s.Mended[0], s.MendedFails)
					continue
				}
				clean++
				h.runFile(t, s)
			}
			if clean == 0 {
				t.Error("no story fails by this one hole alone")
			}
		})
	}
}

// processorTime is what this process has used of a processor: a shrinker uses
// one, and on an idle machine it is what a person waits. (The wall's clock would
// judge whatever else runs on the machine.)
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// runFile does what simrun run does with the file, without and with the one
// protection.
func (h wantedHole) runFile(t *testing.T, s *Shrunk) {
	path := filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(path, s.File, 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := scenarios.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	play := func(p core.Protections) *run.Outcome {
		out, err := run.Suite(context.Background(), list, run.Options{Design: "document", Protections: p, Count: FreshSeeds})
		if err != nil {
			t.Fatal(err)
		}
		return &out[0]
	}
	o := play(core.Document())
	if !slices.ContainsFunc(o.Violations, func(v run.Violation) bool { return v.Invariant == s.Invariant && !v.Declared }) {
		t.Errorf("%s does not break when the file is run: %s %+v", s.Invariant, o.Verdict, o.Violations)
	}
	p := core.Document()
	p.Set(s.Mended[0], true)
	if o := play(p); o.Verdict != run.Pass {
		t.Errorf("with %s the file comes to %s: %+v", s.Mended[0], o.Verdict, o.Violations)
	}
}

// The same capsule shrinks to the same bytes.
func TestShrinkingIsDeterministic(t *testing.T) {
	c := wantedHoles[1].found(t, wantedHoles[1].seed)
	var texts [2][]byte
	for i := range texts {
		s, err := reread(t, c).Shrink(context.Background(), ShrinkOptions{})
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = append(s.Encode(), s.File...)
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Errorf("two results:\n%s\n%s", texts[0], texts[1])
	}
}

// A story of the suite shrinks too, triggers, labels and all, and what it
// expects may be what is kept.
func TestAStoryOfTheSuiteShrinks(t *testing.T) {
	c, err := OfSeed(find(t, "B18"), "hardened", without("independent-releases"), 2)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Shrink(context.Background(), ShrinkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v, then %+v, off %v\n%s", s.Result.Before, s.Result.After, s.Off, s.File)
	if s.Result.After.Workers >= s.Result.Before.Workers || s.Result.After.Decisions >= s.Result.Before.Decisions {
		t.Errorf("it is no smaller: %+v, then %+v", s.Result.Before, s.Result.After)
	}
	if len(s.Off) == 0 || !slices.Contains(s.Mended, "independent-releases") {
		t.Errorf("off: %v; mended by %v", s.Off, s.Mended)
	}
	if wrong, _ := reread(t, s.Capsule).Check(); len(wrong) > 0 {
		t.Errorf("the small capsule does not replay: %+v", wrong)
	}
}

func without(name string) core.Protections {
	p := core.Hardened()
	p.Set(name, false)
	return p
}

// What cannot be shrunk is told in a line.
func TestWhatCannotBeShrunkIsTold(t *testing.T) {
	pass, err := OfSeed(find(t, "A1"), "hardened", core.Hardened(), 1)
	if err != nil {
		t.Fatal(err)
	}
	b1 := ofB1(t)
	for _, c := range []struct {
		c    *Capsule
		o    ShrinkOptions
		want string
	}{
		{pass, ShrinkOptions{}, "the run does not fail"},
		{b1, ShrinkOptions{Invariant: "ONE"}, "ONE does not break in this run; what does: "},
		{b1, ShrinkOptions{MendedBy: []string{"boot-tokn"}}, `there is no protection "boot-tokn"; did you mean "boot-token"?`},
		{b1, ShrinkOptions{MendedBy: []string{"boot-token"}}, "none of boot-token turns this run green"},
	} {
		if _, err := c.c.Shrink(context.Background(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}

// A wrong answer is what fails; the asks that it does not take go, and what is
// expected of the one that stays goes with it, whatever its number is by then.
func TestAWrongAnswerShrinks(t *testing.T) {
	list, err := scenarios.Parse("asked.yaml", []byte(`
id: X1
name: asked
title: a client is answered otherwise
workers: {w1: {}, w2: {}}
steps:
  - {at: 1s, ask: {request: noop, answer: OK}}
  - {at: 2s, ask: {client: other, request: ping, instance: 7, answer: yes; registered}}
  - {at: 30s, ask: {request: unregister-kv-cache, instance: w2, answer: nothing}}
until: 60s
`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := OfSeed(list[0], "hardened", core.Hardened(), 3)
	if err != nil {
		t.Fatal(err)
	}
	small, err := c.Shrink(context.Background(), ShrinkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := small.Capsule.Scenario
	if len(s.Plan.Steps) != 1 || len(s.Plan.Workers) != 1 || len(s.Expect) != 1 || s.Expect[0].Step != 0 || s.Expect[0].Answer != "yes; registered" {
		t.Errorf("it shrank to %d steps, %d workers and %+v:\n%s", len(s.Plan.Steps), len(s.Plan.Workers), s.Expect, small.Capsule.Text)
	}
}
