package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"vigil/core"
	"vigil/core/loop"
	"vigil/reports"
	"vigil/scenarios"
	"vigil/scenarios/audit"
	"vigil/scenarios/run"
	"vigil/sim"
)

// isRecording reports whether an argument of replay is a path and not a token.
func isRecording(arg string) bool {
	_, err := os.Stat(arg)
	return err == nil || strings.HasSuffix(arg, ".vigil")
}

// replayRecording feeds a recording to the core and compares what it asks for.
func replayRecording(s *streams, common *commonFlags, path, scenario string, quiet, verbose bool) error {
	w := s.people(common, scenario == "-")
	outline := audit.NewOutline()
	words := run.NewStory(&scenarios.Scenario{Plan: &sim.Plan{}}, true)
	report, err := loop.Replay(path, func(seg *loop.Segment, in *loop.Recorded, out *core.Effects) {
		outline.Step(seg, in, out)
		if !verbose {
			return
		}
		fmt.Fprintf(w, "%14.6f  input %d: %s\n", float64(in.Now)/1e9, in.Number, loop.DescribeInput(&in.Input))
		for i := range out.Records {
			fmt.Fprintf(w, "%14s    server %s\n", "", words.WordsOf(&out.Records[i], -1))
		}
	})
	if err != nil {
		return err
	}
	if !quiet {
		fmt.Fprintf(w, "%s: %d segments, %d inputs, hash %016x\n", path, report.Segments, report.Inputs, uint64(report.Hash))
		for _, t := range report.Torn {
			fmt.Fprintf(w, "not whole: %s\n", t)
		}
	}
	switch {
	case report.Difference != nil:
		fmt.Fprintf(w, "NONDETERMINISM  %s\n", report.Difference)
		fmt.Fprintln(w, "The core under test is not the one that was recorded, or it is not deterministic.")
		return endWith(reports.Nondeterminism)
	case report.Inputs == 0:
		fmt.Fprintf(w, "UNKNOWN  %s holds no input to replay\n", path)
		return endWith(reports.Unknown)
	}
	if scenario != "" {
		text, err := outline.Scenario("REC", filepath.Base(filepath.Clean(path)))
		if err != nil {
			return err
		}
		if scenario == "-" {
			if _, err := s.out.Write(text); err != nil {
				return err
			}
		} else if err := os.WriteFile(scenario, text, 0o644); err != nil {
			return err
		}
		if !quiet {
			fmt.Fprintf(w, "its outline as a scenario: %s\n", scenario)
		}
	}
	fmt.Fprintln(w, "PASS  the same inputs gave the same outputs")
	return nil
}
