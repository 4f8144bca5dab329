package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vigil/core"
	"vigil/reports"
	"vigil/scenarios/capsule"
	"vigil/scenarios/explain"
	"vigil/scenarios/monitor"
)

func newExplain(s *streams, common *commonFlags) *cobra.Command {
	var forks int
	var quiet bool
	cmd := &cobra.Command{
		Use:   "explain CAPSULE | TOKEN [FILE]",
		Short: "Say why a run broke",
		Long: `Say why a run broke: which promise, for whom, when and by what reason; what of its
story matters to that, as a space-time diagram (a column for each process, time
downwards, arrows for messages); which steps of the scenario it takes; from which
moment on nearly every future fails (the moment of doom); and which protections
would have kept it whole. Nothing is guessed: each of these is played.

The exit code is that of the run's verdict, as with simrun replay; where the run
no longer breaks what the capsule says, it is 1.`,
		Example: `  simrun explain out/latest/A8-pid-0-INTEGRITY.capsule
  simrun explain v1.A8/pid.0.document.3fa29b3e77a1c4d5
  simrun explain TOKEN my-story.yaml --forks 200`,
		Args: cobra.RangeArgs(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return &usageError{"explain needs a capsule, or the token of a run"}
			case forks < 0 || forks > explain.MaxForks:
				return &usageError{fmt.Sprintf("--forks %d: it must be from 0 to %d", forks, explain.MaxForks)}
			}
			c, _, err := capsuleOf(args)
			if err == nil && c.Invariant == "" {
				err = errors.New("nothing breaks in this run, so there is nothing to explain; simrun replay tells its story")
			}
			if err != nil {
				return err
			}
			w := s.people(common, false)
			progress := reports.NewProgress(s.err, reports.Look(s.err, common.noColour))
			x, err := explain.Explain(cmd.Context(), c, explain.Options{Forks: forks, Progress: func(done, total int) {
				progress.Update("asking what if", done, total)
			}})
			progress.Close()
			if cmd.Context().Err() != nil {
				fmt.Fprintln(s.err, "interrupted: there is no explanation yet")
				return &ending{exitInterrupted}
			}
			if err != nil {
				return err
			}
			report := explanationOf(c, x, args)
			if err := report.Write(w, w.Width, w.Colour, quiet); err != nil {
				return err
			}
			if x.Violation.Declared {
				return nil
			}
			return endWith(reports.Verdict(x.Violation.Verdict))
		},
	}
	cmd.Flags().IntVar(&forks, "forks", 60, "how many new futures are played from each moment, `N`; 0 leaves the moment of doom out")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "leave the diagram out")
	return cmd
}

// explanationOf is the explanation as it is shown.
func explanationOf(c *capsule.Capsule, x *explain.Explanation, args []string) *reports.Explanation {
	s := c.Scenario
	r := &reports.Explanation{
		Title: calledOf(s) + ": " + s.Title, Design: c.DesignText(), Broke: violationOf(&x.Violation), Mends: x.Mends,
	}
	for _, d := range monitor.Describe() {
		if d.ID == x.Violation.Invariant {
			r.Statement = strings.TrimSuffix(d.Statement, ".")
		}
	}
	for i := range x.Others {
		r.Others = append(r.Others, violationOf(&x.Others[i]))
	}
	for _, name := range core.ProtectionNames() {
		on := c.Protections
		if on.Set(name, true); on != c.Protections {
			r.MendsOf++
		}
	}
	for _, n := range x.Steps {
		r.Steps = append(r.Steps, reports.ExplainedStep{Words: n.Words, Needed: n.Needed, Struck: n.Struck})
	}
	if d := x.Doom; d != nil {
		r.Doom = &reports.ExplainedDoom{Forks: d.Forks, Alone: d.Alone, Before: d.Before, After: d.After}
		for _, p := range d.Points {
			r.Doom.Points = append(r.Doom.Points, reports.ExplainedPoint{At: p.At, Failed: p.Failed})
		}
		if d.Line != nil {
			r.Doom.Words = strings.TrimPrefix(d.Line.Actor+" ", "world ") + d.Line.Words
		}
	}
	diagramOf(r, c, x)
	call := strings.Join(args, " ")
	r.Commands = []string{
		"the whole story   " + programName() + " replay " + call,
		"make it smaller   " + programName() + " shrink " + call,
	}
	return r
}

// diagramOf lays the scenes out in columns.
func diagramOf(r *reports.Explanation, c *capsule.Capsule, x *explain.Explanation) {
	lanes := map[int]int{explain.Server: 0, explain.World: -1}
	r.Diagram.Lanes = []string{"server"}
	r.Cast = []string{"server: the KV-cache server, with what it holds for each instance"}
	for _, w := range x.Cast {
		lanes[w+1] = len(r.Diagram.Lanes)
		name := c.Scenario.WorkerName(w)
		r.Diagram.Lanes = append(r.Diagram.Lanes, name)
		words := name + ": a worker"
		if slices.Contains(x.Violation.Actors, name) {
			words += ", to whom it happened"
		}
		if ids := idsOf(x, w); len(ids) > 0 {
			words += "; id " + strings.Join(ids, ", then ")
		}
		r.Cast = append(r.Cast, words)
	}
	for i := range c.Scenario.Plan.Workers {
		if !slices.Contains(x.Cast, i) {
			r.Left = append(r.Left, c.Scenario.WorkerName(i))
		}
	}
	for i := range x.Scenes {
		s := &x.Scenes[i]
		row := reports.DiagramRow{At: s.At, Lane: lane(lanes, s.Lane), To: -1, Lost: s.Lost, Label: s.Label, Words: s.Words, Becomes: becomes(&s.Record)}
		if s.To >= 0 {
			row.To = lane(lanes, s.To)
		}
		if row.To >= 0 && (s.Weight == explain.Everyday || s.Record.Kind == core.RegisterSent || s.Record.Kind == core.UnregisterSent || s.Record.Kind == core.RegisterEnded && s.Record.Failure == core.NoFailure) {
			row.Words = "" // the arrow says it
		}
		if len(s.Skipped) > 0 {
			var parts []string
			for what, n := range s.Skipped {
				parts = append(parts, fmt.Sprintf("%d %s", n, what))
			}
			slices.Sort(parts)
			row.Summary = strings.Join(parts, ", ")
		}
		r.Diagram.Rows = append(r.Diagram.Rows, row)
	}
	r.Diagram.Rows = append(r.Diagram.Rows, reports.DiagramRow{
		At: x.Violation.At, Lane: -1, To: -1, Broke: true, Words: x.Violation.Invariant + ": " + x.Violation.Message,
	})
}

func lane(lanes map[int]int, of int) int {
	if at, ok := lanes[of]; ok {
		return at
	}
	return -1
}

// becomes is how the line of a record's process goes on.
func becomes(r *core.Record) reports.LaneState {
	switch r.Kind {
	case core.WorkerStarted, core.ServerStarted, core.ProcessResumed, core.LinkHealed:
		return reports.LaneAlive
	case core.ProcessPaused:
		return reports.LaneStill
	case core.LinkCut:
		return reports.LaneCut
	case core.ProcessKilled, core.ProcessExited:
		return reports.LaneAbsent
	}
	return reports.LaneSame
}

// idsOf lists the ids that a worker's processes had.
func idsOf(x *explain.Explanation, worker int) (ids []string) {
	for i := range x.Story.Lines {
		if l := &x.Story.Lines[i]; l.Record.Kind == core.WorkerStarted && l.About == worker {
			ids = append(ids, fmt.Sprint(uint64(l.Record.Instance)))
		}
	}
	return ids
}
