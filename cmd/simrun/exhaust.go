package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"vigil/reports"
	"vigil/scenarios/run"
	"vigil/sim"
)

// exhaust searches every order of what can happen in one scenario.
func (e *exploration) exhaust(ctx context.Context, s selected, row *reports.Campaign, progress *reports.Progress, folder *string) error {
	progress.Lasts(e.lasts)
	o := run.ExhaustOptions{
		MaxStates: e.runs, MaxDepth: e.depth, Deadline: e.lasts, Tick: e.tick, FailFast: e.until,
		Progress: func(p run.ExhaustProgress) {
			progress.Update(fmt.Sprintf("%s, depth %d (states, not runs)", s.ID, p.Depth), int(p.States), 0)
		},
	}
	type result struct {
		report run.ExhaustReport
		err    error
	}
	done := make(chan result, 1)
	began := time.Now()
	go func() {
		report, err := run.Exhaust(s.Scenario, e.design.preset, e.design.protections, o)
		done <- result{report, err}
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done(): // the program ends: what the search holds ends with it
		row.Verdict = reports.Unknown
		row.Exhaustive = &reports.Exhaustive{Reason: "interrupted"}
		row.Wall = time.Since(began).Seconds()
		return nil
	}
	if r.err != nil {
		return r.err
	}
	x := &r.report
	row.Verdict, row.Wall, row.Whole = reports.Verdict(x.Verdict()), x.Took.Seconds(), x.Complete
	row.Exhaustive = &reports.Exhaustive{
		States: x.States, Transitions: x.Transitions, Schedules: x.Schedules, Depth: x.Depth,
		Merged: x.Merged, Skipped: x.Skipped, Complete: x.Complete, Reason: x.Reason, Scope: x.Scope,
	}
	row.Runs, row.Told = x.Schedules, x.Schedules
	c := &run.Campaign{}
	p := run.NewPlayer(e.design.preset, e.design.protections)
	for i := range x.Violations {
		v := &x.Violations[i]
		if v.Declared {
			if !slices.Contains(row.Exhaustive.Declared, v.Invariant) {
				row.Exhaustive.Declared = append(row.Exhaustive.Declared, v.Invariant)
			}
			continue
		}
		row.Found++
		if row.Broke[v.Invariant]++; row.Broke[v.Invariant] == 1 {
			row.First[v.Invariant] = 1
		}
		f := run.Finding{Run: uint64(i), Violations: []run.Violation{*v}, Result: run.Run{Seed: 0}}
		if i < len(x.Tapes) && x.Tapes[i] != nil {
			// The witness stopped where it broke: the whole run is what a capsule keeps.
			f.Tape = &sim.Tape{}
			choices := sim.ChoicesFrom(x.Tapes[i])
			choices.Record(f.Tape)
			f.Result = p.PlayTape(s.Scenario, 0, choices, nil)
			f.Hash = f.Result.Hash
		}
		c.Findings = append(c.Findings, f)
	}
	if row.Found > 0 {
		row.FirstRun = 1
	}
	return e.findings(row, s, c, folder)
}
