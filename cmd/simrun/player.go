package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"vigil/core"
	"vigil/reports"
	"vigil/scenarios"
	"vigil/scenarios/monitor"
	"vigil/scenarios/run"
	"vigil/sim"
)

// player plays single runs under one design.
type player struct {
	design choice
	inner  *run.Player
}

func newPlayer(c choice) *player {
	return &player{c, run.NewPlayer(c.preset, c.protections)}
}

// hash plays one seed and returns the run's hash.
func (p *player) hash(s selected, seed uint64, o sim.Observer) core.Digest {
	return p.inner.Play(s.Scenario, seed, o).Hash
}

// examples is how many violations of a kind are kept per scenario: each costs
// a run more, for its token.
const examples = 4

// play runs the request and turns what came out into a report.
func (r *request) play(ctx context.Context, f *runFlags, progress *reports.Progress) (*reports.Suite, error) {
	began := time.Now()
	kept := r.playCorpora(progress)
	if suite := reports.NewSuite(r.design.String(), kept, time.Since(began)); f.failFast && suite.Verdict != reports.Pass {
		progress.Close()
		suite.Stopped = fmt.Sprintf("Stopped at the first failure: %d scenarios did not run.", len(r.list))
		return suite, nil
	}
	progress.Lasts(r.lasts)
	outcomes, err := run.Suite(ctx, plain(r.list), run.Options{
		Design: r.design.preset, Protections: r.design.protections,
		From: r.seeds.First, Count: r.seeds.Count, For: r.lasts,
		Jobs: r.jobs, FailFast: f.failFast,
		Partial: r.single, Keep: examples, Coverage: f.coverage, Shard: r.shard.at(), Shards: r.shard.of,
		Progress: func(p run.Progress) {
			what := p.Scenario
			if p.Failed > 0 {
				what += fmt.Sprintf(", %d failed", p.Failed)
			}
			progress.Update(what, p.Done, p.Total)
		},
	})
	progress.Close()
	if err != nil {
		return nil, err
	}
	wall := time.Since(began)
	tokens := newPlayer(r.design)
	keep := &capsules{folder: r.folder, declared: f.verbose}
	rows := make([]reports.Scenario, len(outcomes))
	notRun := 0
	for i := range outcomes {
		rows[i] = rowOf(r.list[i], &outcomes[i], tokens, keep, r.seeds.First+r.shard.at(), f.verbose)
		if r.shard.of > 0 {
			rows[i].World, rows[i].Owed = worldDigest(r.list[i].Scenario), owedOf(outcomes[i].Owed)
		}
		if outcomes[i].NotRun > 0 {
			notRun++
		}
	}
	suite := reports.NewSuite(r.design.String(), append(kept, rows...), wall)
	if r.shard.of > 0 {
		suite.Shard = &reports.Shard{Index: r.shard.index, Of: r.shard.of, First: r.seeds.First, Count: uint64(r.seeds.Count), Code: codeIdentity()}
		suite.Note = fmt.Sprintf("This is shard %s: what some run must show is judged by simrun merge, over all shards.", suite.Shard)
	}
	switch {
	case ctx.Err() != nil:
		suite.Stopped = "Interrupted: this is what came until then."
		suite.Verdict = reports.Gravest(suite.Verdict, reports.Unknown) // what was asked for was not done
	case notRun > 0:
		suite.Stopped = fmt.Sprintf("Stopped at the first failure: %d of %d scenarios did not run all their seeds.", notRun, len(rows))
	}
	return suite, nil
}

func plain(list []selected) []*scenarios.Scenario {
	out := make([]*scenarios.Scenario, len(list))
	for i := range list {
		out[i] = list[i].Scenario
	}
	return out
}

// rowOf turns an outcome into the row of a report. Each example gets a token,
// for which its run is played once more: a token carries the run's hash. With
// example, so does the first run, whatever it came to.
func rowOf(s selected, o *run.Outcome, tokens *player, keep *capsules, first uint64, example bool) reports.Scenario {
	row := reports.Scenario{
		Name: o.Name, ID: o.ID, Verdict: reports.Verdict(o.Verdict), Expected: o.Expected,
		Runs: o.Runs, FailedRuns: o.Violated, Events: o.Events, SimSeconds: o.SimSeconds, WallSeconds: o.WallSeconds,
		Hash: o.HashText(), Story: s.Title, Cut: o.NotRun > 0,
	}
	if !s.builtin {
		row.File = s.File
	}
	covered := coverageOf(&o.Coverage)
	row.Coverage = &covered
	for _, b := range o.Breaks {
		row.Breaks = append(row.Breaks, b.Invariant)
	}
	row.Holes = holesOf(s.Scenario, tokens.design.preset)
	if added := tokens.design.added(); len(added) > 0 && o.Runs > 0 && o.NotRun == 0 {
		// A repair at work is no mystery, and not what a bare "missed" says.
		verb := "closes"
		if len(added) > 1 {
			verb = "close"
		}
		for _, b := range o.Breaks {
			if b.Runs == 0 && (b.All || o.Runs >= run.BreakRuns) {
				row.Notes = append(row.Notes, fmt.Sprintf("the declared break of %s no longer comes: %s %s it", b.Invariant, strings.Join(added, ", "), verb))
			}
		}
	}
	known := map[uint64]string{}
	token := func(seed uint64) string {
		text, done := known[seed]
		if !done {
			text = newToken(s, seed, tokens.design, tokens.hash(s, seed, nil)).String()
			known[seed] = text
		}
		return text
	}
	if o.Runs > 0 && example {
		row.Replay = replayCommand(token(first))
	}
	shown := map[string]bool{}
	for _, v := range o.Violations {
		of := violationOf(&v)
		if v.Declared && shown[v.Invariant] {
			continue // one example is enough of what is expected
		}
		shown[v.Invariant] = shown[v.Invariant] || v.Declared
		// What no run showed is nobody's run in particular.
		if o.Runs > 0 && !(v.Verdict == run.Missed && v.At == 0) {
			of.Token = token(v.Seed)
			of.Replay = replayCommand(of.Token)
			if complaint := keep.keep(s, tokens.design, &v, &of); complaint != "" && !slices.Contains(row.Notes, complaint) {
				row.Notes = append(row.Notes, complaint)
			}
		}
		row.Violations = append(row.Violations, of)
	}
	return row
}

// holesOf are the invariants that a file declares for the design document, seen
// from a run under another design.
func holesOf(s *scenarios.Scenario, design string) []string {
	var holes []string
	for i := range s.Breaks {
		if b := &s.Breaks[i]; design != "document" && b.Design == "document" && !slices.Contains(holes, b.Invariant) {
			holes = append(holes, b.Invariant)
		}
	}
	return holes
}

func violationOf(v *run.Violation) reports.Violation {
	return reports.Violation{
		Invariant: v.Invariant, AtSeconds: float64(v.At) / 1e9, Actors: v.Actors, Message: v.Message, Seed: v.Seed,
		Verdict: reports.Verdict(v.Verdict), Declared: v.Declared, Promise: promise(v.Invariant),
	}
}

// promise is what an invariant promises, empty for what is none.
func promise(invariant string) string {
	for _, d := range monitor.Describe() {
		if d.ID == invariant {
			return d.Statement
		}
	}
	return ""
}
