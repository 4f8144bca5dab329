package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vigil/core"
	"vigil/reports"
	"vigil/scenarios/run"
)

// protectionFlags are the flags of simrun protections.
type protectionFlags struct {
	seeds    string
	offSeeds int
	only     []string
	jobs     int
	json     string
	pairings bool
}

// matrixSeeds is how many seeds each scenario runs over where no flag says.
const matrixSeeds = 20

func newProtections(s *streams, common *commonFlags) *cobra.Command {
	f := &protectionFlags{}
	cmd := &cobra.Command{
		Use:   "protections [NAME|FILE|DIR]...",
		Short: "The matrix of protections against scenarios",
		Long: `Show what each protection of the hardened design is needed for. Each row runs the
scenarios with one protection off: a red cell breaks without it. The last row
has all of them on. A scenario's variants share a column.

With --pairings, show what old and new peers give together instead: a document's
server with hardened workers and the reverse. No pairing may crash, hang or
corrupt where the document alone does not, and a hardened server may never
corrupt. What a pairing breaks beside that is told.

Exit code: 0 each protection is needed and all pass with all on; 15 no scenario
misses some protection; else as for simrun run.`,
		Example: `  simrun protections                        every protection against every scenario
  simrun protections --seeds 500            more seeds with all of them on
  simrun protections --only boot-token B4   one row, one story
  simrun protections --pairings             old and new peers together`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, s, common, args)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.seeds, "seeds", fmt.Sprint(matrixSeeds), "the seeds of each scenario with all protections on: `N|A..B|commit` as for simrun run")
	flags.IntVar(&f.offSeeds, "off-seeds", matrixSeeds, "at most so many of them, `N`, in the cells with one protection off; a cell ends at its first run that breaks")
	flags.StringSliceVar(&f.only, "only", nil, "the rows of the protections `NAME[,NAME]` alone")
	flags.BoolVar(&f.pairings, "pairings", false, "what old and new servers and workers give together")
	flags.IntVarP(&f.jobs, "jobs", "j", runtime.GOMAXPROCS(0), "how many runs at once, `N`; results do not depend on it")
	flags.StringVar(&f.json, "json", "", "write the result as JSON to `FILE`, - for standard output")
	return cmd
}

func (f *protectionFlags) run(cmd *cobra.Command, s *streams, common *commonFlags, args []string) error {
	switch {
	case f.jobs < 1 || f.jobs > maxJobs:
		return &usageError{fmt.Sprintf("-j %d: it must be from 1 to %d", f.jobs, maxJobs)}
	case f.offSeeds < 1:
		return &usageError{fmt.Sprintf("--off-seeds %d: it must be at least 1", f.offSeeds)}
	case f.pairings && len(f.only) > 0:
		return &usageError{"--pairings has all protections on or all off: --only says nothing there"}
	}
	for i, name := range f.only {
		f.only[i] = strings.TrimSpace(name)
		if _, _, ok := core.DescribeProtection(f.only[i]); !ok {
			return unknownName("--only", f.only[i], core.ProtectionNames())
		}
	}
	seeds, err := parseSeeds(f.seeds)
	if err != nil {
		return err
	}
	list, err := choose(cmd, args)
	if err != nil {
		return err
	}
	progress := reports.NewProgress(s.err, reports.Look(s.err, common.noColour))
	w := s.people(common, f.json == "-")
	var result any
	var verdict reports.Verdict
	if f.pairings {
		p := f.pair(cmd.Context(), list, seeds, progress)
		progress.Close()
		result, verdict = p, p.Verdict
		err = reports.WritePairings(w, p, w.Width, w.Colour)
	} else {
		m, failed := f.matrix(cmd.Context(), list, seeds, progress)
		progress.Close()
		if failed != nil {
			return failed
		}
		result, verdict = m, m.Verdict
		err = reports.WriteMatrix(w, m, w.Width, w.Colour)
	}
	if err != nil {
		return err
	}
	if f.json != "" {
		if err := s.write(f.json, func(w io.Writer) error { return reports.WriteJSON(w, result) }); err != nil {
			return err
		}
	}
	if cmd.Context().Err() != nil {
		return &ending{exitInterrupted}
	}
	return endWith(verdict)
}

const stoppedEarly = "Interrupted: this is what came until then."

// matrix plays the rows and then all of the protections on.
func (f *protectionFlags) matrix(ctx context.Context, list []selected, seeds seedRange, progress *reports.Progress) (*reports.Matrix, error) {
	began := time.Now()
	tell := func(p run.Progress) { progress.Update(p.Scenario, p.Done, p.Total) }
	off := min(seeds.Count, f.offSeeds)
	rows := run.Matrix(ctx, plain(list), run.MatrixOptions{
		Protections: f.only, From: seeds.First, Count: off, Jobs: f.jobs, Progress: tell,
	})
	on, err := run.Suite(ctx, plain(list), run.Options{
		Design: "hardened", Protections: core.Hardened(), From: seeds.First, Count: seeds.Count, Jobs: f.jobs, Progress: tell,
	})
	if err != nil {
		return nil, err
	}
	m := &reports.Matrix{Version: 1, Design: "hardened", Verdict: reports.Pass, Seeds: seeds.Count, OffSeeds: off, Wall: time.Since(began).Seconds()}
	for _, s := range list {
		m.Scenarios = append(m.Scenarios, s.ID)
	}
	for i := range rows {
		hole, scenario, _ := core.DescribeProtection(rows[i].Protection)
		row := reports.MatrixRow{Name: rows[i].Protection, Hole: hole, ShownBy: scenario, NeededBy: []reports.MatrixNeed{}}
		less := core.Hardened()
		less.Set(row.Name, false)
		tokens := newPlayer(choice{"hardened", less})
		for k := range rows[i].Needs {
			v := rows[i].Needs[k].Broke
			if v == nil {
				continue
			}
			row.NeededBy = append(row.NeededBy, reports.MatrixNeed{
				Scenario: list[k].ID, Invariant: v.Invariant, AtSeconds: float64(v.At) / 1e9, Message: v.Message, Seed: v.Seed,
				Token: newToken(list[k], v.Seed, tokens.design, tokens.hash(list[k], v.Seed, nil)).String(),
			})
		}
		m.Rows = append(m.Rows, row)
	}
	for i := range on {
		v := reports.Verdict(on[i].Verdict)
		m.AllOn = append(m.AllOn, reports.MatrixVerdict{Scenario: on[i].ID, Verdict: v, Runs: on[i].Runs, Hash: on[i].HashText()})
		m.Verdict = reports.Gravest(m.Verdict, v)
	}
	switch {
	case ctx.Err() != nil:
		m.Stopped = stoppedEarly
		m.Verdict = reports.Gravest(m.Verdict, reports.Unknown)
	case len(m.Unneeded()) > 0:
		m.Verdict = reports.Gravest(m.Verdict, reports.Missed)
	}
	return m, nil
}

// pair plays the pairings of old and new.
func (f *protectionFlags) pair(ctx context.Context, list []selected, seeds seedRange, progress *reports.Progress) *reports.Pairings {
	began := time.Now()
	paired := run.Pair(ctx, plain(list), run.MatrixOptions{
		From: seeds.First, Count: seeds.Count, Jobs: f.jobs,
		Progress: func(p run.Progress) { progress.Update(p.Scenario, p.Done, p.Total) },
	})
	out := &reports.Pairings{Version: 1, Verdict: reports.Pass, Seeds: seeds.Count, Rows: []reports.PairingRow{}}
	for _, p := range run.Pairings {
		out.Pairings = append(out.Pairings, p.String())
	}
	for i, s := range list {
		row := reports.PairingRow{Scenario: s.ID}
		for k := range paired {
			p := &paired[k][i]
			cell := reports.PairingCell{Broke: map[string]int{}}
			for _, b := range p.Broke {
				cell.Broke[b.Invariant] = b.Runs
				cell.Order = append(cell.Order, b.Invariant)
			}
			if p.Worse != nil {
				cell.Worse = pairingWords(p.Worse)
				out.Verdict = reports.Gravest(out.Verdict, reports.Verdict(p.Worse.Verdict))
			}
			if p.Beside != nil {
				cell.Beside = pairingWords(p.Beside)
			}
			row.Cells = append(row.Cells, cell)
		}
		out.Rows = append(out.Rows, row)
	}
	if out.Wall = time.Since(began).Seconds(); ctx.Err() != nil {
		out.Stopped = stoppedEarly
		out.Verdict = reports.Gravest(out.Verdict, reports.Unknown)
	}
	return out
}

func pairingWords(v *run.Violation) string {
	return fmt.Sprintf("%s, seed %d: %s", v.Invariant, v.Seed, v.Message)
}
