package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"vigil/reports"
	"vigil/scenarios/run"
)

func newMerge(s *streams, common *commonFlags) *cobra.Command {
	f := &runFlags{}
	why := false
	cmd := &cobra.Command{
		Use:   "merge DIR...",
		Short: "Add the results of shards up",
		Long: `Add the results up that simrun run or simrun explore made with --shard, one call
for each part. A DIR is a folder that -o wrote, or the one above it (its latest
is meant), or a file that --json wrote; their order does not matter.

The hashes are those of one call without --shard. What some run must show - a
break that a file declares for some seeds, a step that may strike nothing, what
a file covers - is judged here, over all parts together. A part that is missing,
that is there twice, or that is of other seeds, another design, other files or
another program is an error.

The exit code is that of the whole.`,
		Example: `  simrun run --seeds 4000 --shard 1/2 -o one     on one machine
  simrun run --seeds 4000 --shard 2/2 -o two     on another
  simrun merge one two                           anywhere
  simrun merge out/*/result.json --json -`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{"merge needs the results of shards: the folders that -o wrote, or files of --json"}
			}
			if f.json == "-" && f.junit == "-" {
				return &usageError{"--json - and --junit - both want standard output: give one of them a file"}
			}
			names, results, err := readResults(args)
			if err != nil {
				return err
			}
			if results[0].explored() {
				return mergeExplorations(s, common, f, why, names, results)
			}
			return mergeSuites(s, common, f, names, results)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.json, "json", "", "write the result as JSON to `FILE`, - for standard output")
	flags.StringVar(&f.junit, "junit", "", "write the result as JUnit XML to `FILE`, - for standard output")
	flags.StringVarP(&f.dir, "output", "o", "", "write all results into a new folder below `DIR`; DIR/latest names it")
	flags.BoolVar(&why, "why", false, "of searches: say which faults and settings failures come with")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no table: print failures only, with -v examples too")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print examples with the commands that replay them")
	return cmd
}

// partResult is a result of either command.
type partResult struct {
	reports.Suite
	Campaigns []reports.Campaign `json:"campaigns"`
}

func (p *partResult) explored() bool { return p.Campaigns != nil }

// maxResult bounds what is read as a result.
const maxResult = 256 << 20

// readResults reads what the arguments name.
func readResults(args []string) (names []string, results []*partResult, err error) {
	for _, arg := range args {
		path, err := resultIn(arg)
		if err != nil {
			return nil, nil, err
		}
		if info, err := os.Stat(path); err == nil && info.Size() > maxResult {
			return nil, nil, fmt.Errorf("%s: it has more than %d bytes", path, maxResult)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		p := &partResult{}
		if err := json.Unmarshal(text, p); err != nil {
			return nil, nil, fmt.Errorf("%s is no result of simrun: %w", path, err)
		}
		switch {
		case p.Version != reports.Version:
			return nil, nil, fmt.Errorf("%s is a result of version %d; this simrun reads %d", path, p.Version, reports.Version)
		case p.Campaigns == nil && p.Scenarios == nil:
			return nil, nil, fmt.Errorf("%s is a result of neither simrun run nor simrun explore", path)
		}
		if len(results) > 0 && p.explored() != results[0].explored() {
			return nil, nil, fmt.Errorf("one of %s and %s is of simrun run, the other of simrun explore", names[0], path)
		}
		names, results = append(names, path), append(results, p)
	}
	return names, results, nil
}

// resultIn finds the result that an argument names.
func resultIn(arg string) (string, error) {
	info, err := os.Stat(arg)
	if err != nil {
		return "", fmt.Errorf("there is no folder and no file %s", arg)
	}
	if !info.IsDir() {
		return arg, nil
	}
	for _, name := range []string{"result.json", "explore.json", "latest/result.json", "latest/explore.json"} {
		path := filepath.Join(arg, filepath.FromSlash(name))
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s holds no result.json and no explore.json: was it written by -o?", arg)
}

func mergeSuites(s *streams, common *commonFlags, f *runFlags, names []string, results []*partResult) error {
	parts := make([]*reports.Suite, len(results))
	for i := range results {
		parts[i] = &results[i].Suite
	}
	suite, err := reports.MergeSuites(names, parts, func(sc *reports.Scenario) []reports.Violation {
		var list []reports.Violation
		for _, v := range run.Missing(fromOwed(sc.Owed), sc.Runs, parts[0].Shard.First) {
			list = append(list, violationOf(&v))
		}
		return list
	})
	if err != nil {
		return err
	}
	for i := range suite.Scenarios {
		for k := range suite.Scenarios[i].Violations {
			if v := &suite.Scenarios[i].Violations[k]; v.Token != "" {
				v.Replay = replayCommand(v.Token)
			}
		}
	}
	folder, err := newFolder(f.dir)
	if err != nil {
		return err
	}
	if err := f.report(suite, s, common, folder); err != nil {
		return err
	}
	return endWith(suite.Verdict)
}

func mergeExplorations(s *streams, common *commonFlags, f *runFlags, why bool, names []string, results []*partResult) error {
	parts := make([]*reports.Exploration, len(results))
	for i, r := range results {
		parts[i] = &reports.Exploration{Version: r.Version, Design: r.Design, Verdict: r.Verdict, Campaigns: r.Campaigns, Shard: r.Shard}
	}
	e, err := reports.MergeExplorations(names, parts, rankFactors)
	if err != nil {
		return err
	}
	for i := range e.Campaigns {
		for k := range e.Campaigns[i].Violations {
			if v := &e.Campaigns[i].Violations[k]; v.Capsule != "" {
				v.Replay, v.Shrink = replayCommand(v.Capsule), programName()+" shrink "+v.Capsule
			} else if v.Token != "" {
				v.Replay = replayCommand(v.Token)
			}
		}
	}
	folder, err := newFolder(f.dir)
	if err != nil {
		return err
	}
	if f.junit != "" {
		if err := s.write(f.junit, func(w io.Writer) error { return reports.JUnit(w, e.Suite()) }); err != nil {
			return err
		}
	}
	x := &exploration{exploreFlags: &exploreFlags{json: f.json, quiet: f.quiet, why: why, until: true}}
	if err := x.report(e, s, common, folder); err != nil {
		return err
	}
	return endWith(e.Verdict)
}

func owedOf(list []run.Owed) []reports.Owed {
	out := make([]reports.Owed, len(list))
	for i, o := range list {
		out[i] = reports.Owed{Kind: o.Kind, Runs: o.Runs, Never: o.Never, Wanted: o.Wanted, Seen: o.Seen, NeverFor: o.NeverFor}
	}
	return out
}

func fromOwed(list []reports.Owed) []run.Owed {
	out := make([]run.Owed, len(list))
	for i, o := range list {
		out[i] = run.Owed{Kind: o.Kind, Runs: o.Runs, Never: o.Never, Wanted: o.Wanted, Seen: o.Seen, NeverFor: o.NeverFor}
	}
	return out
}
