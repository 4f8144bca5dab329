package main

import (
	"context"
	"fmt"
	"time"

	"vigil/reports"
	"vigil/scenarios/real"
	"vigil/scenarios/run"
)

// realFlags are those of simrun run that are about real processes.
type realFlags struct {
	server string
	scale  int
	logs   string
	record string

	backend, library string
}

// Defaults of real runs: they wait far more than they compute.
const (
	realScale = 60
	realJobs  = 4
)

// playReal plays the request with real processes.
func (r *request) playReal(ctx context.Context, f *runFlags, progress *reports.Progress) (*reports.Suite, error) {
	began := time.Now()
	outcomes, err := real.Suite(ctx, plain(r.list), real.Options{
		Server: f.real.server, Scale: f.real.scale, Backend: f.real.backend, Library: f.real.library,
		Design: r.design.preset, Protections: r.design.protections,
		Seed: r.seeds.First, Rounds: r.seeds.Count, Jobs: r.jobs,
		Keep: f.real.logs, Record: f.real.record,
		Progress: func(done, total int, o *real.Outcome) { progress.Update(o.Scenario.ID, done, total) },
	})
	progress.Close()
	if err != nil {
		return nil, err
	}
	rows := make([]reports.Scenario, len(r.list))
	for i, s := range r.list {
		row := &rows[i]
		*row = reports.Scenario{
			Name: s.Name, ID: s.ID, Verdict: reports.Pass, Expected: run.Expected(s.Scenario, r.design.preset), Story: s.Title,
		}
		if !s.builtin {
			row.File = s.File
		}
		for _, b := range s.Breaks {
			if b.Design == r.design.preset {
				row.Breaks = append(row.Breaks, b.Invariant)
			}
		}
		row.Holes = holesOf(s.Scenario, r.design.preset)
		for k := i; k < len(outcomes); k += len(r.list) {
			addReal(row, &outcomes[k], f)
		}
	}
	suite := reports.NewSuite(r.design.String(), rows, time.Since(began))
	memory := ""
	if f.real.library != "" {
		memory = ", memory on the stand-in driver's devices"
	}
	suite.Note = fmt.Sprintf("Real processes of %s%s, time %d times as fast; what is due may come %s later by the wall's clock (docs/real.md).", f.real.server, memory, f.real.scale, real.WindowSlack)
	if ctx.Err() != nil {
		suite.Stopped = "Interrupted: this is what came until then."
		suite.Verdict = reports.Gravest(suite.Verdict, reports.Unknown)
	}
	return suite, nil
}

// addReal adds one run to a scenario's row.
func addReal(row *reports.Scenario, o *real.Outcome, f *runFlags) {
	if o.Skipped != "" {
		row.Verdict, row.Skipped = reports.Unknown, o.Skipped
		return
	}
	row.Verdict = reports.Gravest(row.Verdict, reports.Verdict(o.Verdict))
	row.Runs++
	if o.Verdict != run.Pass {
		row.FailedRuns++
	}
	row.Events += uint64(o.Records)
	row.SimSeconds += float64(o.End) / 1e9
	row.WallSeconds += o.Wall.Seconds()
	for i := range o.Violations {
		v := violationOf(&o.Violations[i])
		if v.Declared && len(row.Violations) > 0 {
			continue
		}
		v.Seed = o.Seed
		memory := ""
		if f.real.library != "" {
			memory = fmt.Sprintf(" --backend %s --cuda-library %s", f.real.backend, f.real.library)
		}
		v.Replay = fmt.Sprintf("%s run %s --real %s%s --time-scale %d --seed %d --design %s   (the same story; real processes never repeat to the microsecond)",
			programName(), row.ID, f.real.server, memory, f.real.scale, o.Seed, f.design)
		row.Violations = append(row.Violations, v)
	}
	known := map[string]bool{}
	for _, have := range [][]string{row.Undecided, row.Notes} {
		for _, text := range have {
			known[text] = true
		}
	}
	add := func(list *[]string, text string) {
		if !known[text] {
			known[text] = true
			*list = append(*list, text)
		}
	}
	for _, u := range o.Undecided {
		add(&row.Undecided, u.Invariant+": "+u.Reason)
	}
	for _, n := range o.Notes {
		add(&row.Notes, n)
	}
	if f.real.logs != "" && o.Verdict != run.Pass {
		add(&row.Notes, "logs and story: "+o.Folder)
	}
}
