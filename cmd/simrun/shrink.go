package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vigil/reports"
	"vigil/scenarios/capsule"
	"vigil/sim/shrink"
)

// shrinkFlags are the flags of simrun shrink.
type shrinkFlags struct {
	out, scenario, invariant string
	mendedBy                 []string
	trials                   int
	quiet                    bool
}

func newShrink(s *streams, common *commonFlags) *cobra.Command {
	f := &shrinkFlags{}
	cmd := &cobra.Command{
		Use:   "shrink CAPSULE|TOKEN [FILE]",
		Short: "Make a failing run small: fewer faults and workers, rounder times",
		Long: `Make a failing run small. Workers, steps, settings, times and the tape's decisions
go, or become plainer, as long as the failure stays the one that it was: what
broke, the parts of its actors, and what mends it (a protection that alone turns
the same tape green). Each smaller run that is kept is played three times; the
same call gives the same result.

It writes a capsule, which replays that run, and a scenario file in the format of
simrun run, which tells the story to any tape. Both are named with the commands
that run them. Where no name is given they stand beside the capsule that was
shrunk, under a name that is free.

Exit code: 0 it was made small; 1 the run does not fail, or the call was wrong;
12 the same run came to two ends; 130 interrupted, with what was smallest by then
written.`,
		Example: `  simrun shrink out/latest/random-65-TERMINAL.capsule
  simrun shrink v1.random.65.document.3fa29b3e77a1c4d5 -o b1.capsule --scenario b1.yaml
  simrun shrink b1.capsule --mended-by registration-aware-ping
  simrun shrink b1.capsule --invariant CONVERGE`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return &usageError{"shrink needs a capsule or a token"}
			case len(args) > 2:
				return &usageError{"shrink takes one capsule or token, and the scenario's file where that has moved"}
			case f.trials < 0:
				return &usageError{fmt.Sprintf("--trials %d: it must be more than 0", f.trials)}
			}
			return f.run(cmd, s, common, args)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.out, "output", "o", "", "write the capsule to `FILE`")
	flags.StringVar(&f.scenario, "scenario", "", "write the scenario to `FILE`, - for standard output")
	flags.StringSliceVar(&f.mendedBy, "mended-by", nil, "keep what one of the protections `NAME[,NAME]` alone mends (by default whatever does)")
	flags.StringVar(&f.invariant, "invariant", "", "keep that `NAME` breaks, where several things broke (by default what the capsule is about)")
	flags.IntVar(&f.trials, "trials", shrink.DefaultTrials, "play at most `N` runs")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no comparison, only where the results are")
	return cmd
}

func (f *shrinkFlags) run(cmd *cobra.Command, s *streams, common *commonFlags, args []string) error {
	c, path, err := capsuleOf(args)
	if err != nil {
		return err
	}
	w := s.people(common, f.scenario == "-")
	look := reports.Look(s.err, common.noColour)
	look.Live = look.Live && !f.quiet
	progress := reports.NewProgress(s.err, look)
	began := time.Now()
	small, err := c.Shrink(cmd.Context(), capsule.ShrinkOptions{
		Invariant: f.invariant, MendedBy: f.mendedBy, MaxTrials: f.trials, Name: nameOf(f.out),
		Progress: func(p shrink.Progress) {
			progress.Update(fmt.Sprintf("%s: %d steps, %d workers, %d decisions", p.Doing, p.Now.Steps, p.Now.Workers, p.Now.Decisions), p.Trials, 0)
		},
	})
	progress.Close()
	var two *shrink.Nondeterminism
	switch {
	case errors.As(err, &two):
		fmt.Fprintf(w, "NONDETERMINISM  %s\n", two)
		return &ending{exitNondeterminism}
	case err != nil && small == nil && cmd.Context().Err() != nil:
		return &ending{exitInterrupted}
	case err != nil && small == nil:
		return err
	}
	out, file := f.names(path)
	if err := small.Write(out); err != nil {
		return err
	}
	if err := s.write(file, func(w io.Writer) error { _, err := w.Write(small.File); return err }); err != nil {
		return err
	}
	if !f.quiet {
		compare(w, small, time.Since(began))
	}
	results(w, small, out, file)
	if cmd.Context().Err() != nil {
		return &ending{exitInterrupted}
	}
	return nil
}

// names are where the results go: what was asked for, else beside what was
// shrunk, under a name that is free. A capsule of the corpus lies nowhere, so
// that its results go to the working folder.
func (f *shrinkFlags) names(path string) (out, scenario string) {
	base := strings.TrimSuffix(path, capsuleEnding)
	if _, err := os.Stat(path); err != nil {
		base = filepath.Base(base)
	}
	base = strings.TrimSuffix(base, "-shrunk") + "-shrunk"
	if f.out != "" {
		base = strings.TrimSuffix(f.out, capsuleEnding)
	}
	out, scenario = f.out, f.scenario
	free := func(path string) bool { _, err := os.Stat(path); return os.IsNotExist(err) }
	for n := 1; out == "" || scenario == ""; n++ {
		name := base
		if n > 1 {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		if (f.out != "" || free(name+capsuleEnding)) && (f.scenario != "" || free(name+".yaml")) || n > 1000 {
			if out == "" {
				out = name + capsuleEnding
			}
			if scenario == "" {
				scenario = name + ".yaml"
			}
		}
	}
	return out, scenario
}

// nameOf is the id of a scenario that goes to a file: the file's, as far as it
// can be one.
func nameOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), capsuleEnding)
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && (c >= '0' && c <= '9' || c == '-' || c == '_')) {
			return ""
		}
	}
	if path == "" || len(name) > 50 {
		return ""
	}
	return name
}

// compare says how large the run was and how large it is.
func compare(w human, s *capsule.Shrunk, took time.Duration) {
	before, after := s.Result.Before, s.Result.After
	who := ""
	if len(s.Actors) > 0 {
		who = " for " + strings.Join(s.Actors, ", ")
	}
	fmt.Fprintf(w, "%s breaks%s under %s at %.6fs of virtual time.\n", s.Invariant, who, s.DesignText(), float64(s.At)/1e9)
	_ = reports.Paragraph(w, s.Message, w.Width)
	fmt.Fprintf(w, "\n%-24s %10s %10s\n", "", "before", "after")
	row := func(what string, from, to any) { fmt.Fprintf(w, "%-24s %10v %10v\n", what, from, to) }
	row("steps", before.Steps, after.Steps)
	row("workers", before.Workers, after.Workers)
	row("decisions that are not 0", before.Decisions, after.Decisions)
	row("seconds", before.Lasts.Seconds(), after.Lasts.Seconds())
	if len(s.Off) > 0 {
		fmt.Fprintf(w, "%d protections that were on do not matter and are off.\n", len(s.Off))
	}
	fmt.Fprintf(w, "\n%d trials in %.1fs", s.Result.Trials, took.Seconds())
	if !s.Result.Complete {
		fmt.Fprint(w, "; it may become smaller yet, since they were cut short")
	}
	fmt.Fprintf(w, ".\nWith other tapes the story fails in %d of %d runs", s.Fails, capsule.FreshSeeds)
	if len(s.Mended) > 0 {
		fmt.Fprintf(w, "; with %s in %d", s.Mended[0], s.MendedFails)
	}
	fmt.Fprintln(w, ".")
	switch n := len(s.Mended); n {
	case 0:
		fmt.Fprintln(w, "No protection alone mends it.")
	default:
		fmt.Fprintf(w, "Mended by %s.\n", strings.Join(s.Mended, ", or by "))
	}
	fmt.Fprintln(w)
}

// results says where the results are and how to run them.
func results(w human, s *capsule.Shrunk, out, file string) {
	design := choice{s.Design, s.Protections}.flags()
	line := func(label, text string) { fmt.Fprintf(w, "  %-10s %s\n", label, text) }
	line("capsule", out)
	if file != "-" {
		line("scenario", file)
	}
	line("replay", replayCommand(out))
	if file == "-" {
		return
	}
	line("run", fmt.Sprintf("%s run %s %s", programName(), file, design))
	if len(s.Mended) > 0 {
		with := choice{s.Design, s.Protections}
		with.protections.Set(s.Mended[0], true)
		line("mended", fmt.Sprintf("%s run %s %s", programName(), file, with.flags()))
	}
}
