package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vigil/reports"
	"vigil/scenarios/capsule"
	"vigil/scenarios/run"
	"vigil/sim"
	"vigil/sim/explore"
)

// exploreFlags are the flags of simrun explore.
type exploreFlags struct {
	designFlags
	strategy string
	depth    int
	runs     uint64
	lasts    time.Duration
	seed     uint64
	until    bool
	jobs     int
	tick     time.Duration
	shard    string
	corpus   string
	dir      string
	json     string
	why      bool
	quiet    bool
}

// strategies are the names of --strategy.
var strategies = []string{"random", "swarm", "pct", "coverage", "exhaustive"}

const (
	defaultRuns  = 10_000
	defaultDepth = 3
	maxRuns      = 1_000_000_000
	// countRuns is how many runs a search by priorities plays first, to know how
	// many decisions about order a run has.
	countRuns = 16
)

func newExplore(s *streams, common *commonFlags) *cobra.Command {
	f := &exploreFlags{}
	cmd := &cobra.Command{
		Use:   "explore [NAME|FILE]",
		Short: "Search for a run that breaks what it must not",
		Long: `Search a scenario for a run that breaks an invariant or an expectation, by one
tape after another, until one is found, the budget is spent, or, with
--strategy exhaustive, all are seen. Without a name, the world and its faults are
drawn too (the scenario random).

  random      every decision at random: run N is the run of seed N
  swarm       each run draws which faults there are at all and how strong they
              are, and each kind of decision a part of its range
  pct         schedules by priorities (PCT): one process goes first, another is
              held back, and priorities change at --depth minus one moments; it
              says the chance per run of meeting a defect of that depth
  coverage    tapes that met something new are kept and changed; --corpus-dir
              keeps them for the next search
  exhaustive  all orders of what comes within one --tick in a small world, equal
              states met once: A16x is made for it

What is found is written as a capsule, and the last lines are the commands that
replay and shrink it. The end says what was covered: runs, distinct schedules,
features (state x record x fault), which faults fired, which states of an
instance's life were met, which protections acted. A search that goes on past
its first finding says which faults and settings failures come with (--why).
Results depend on the flags alone, not on -j, but for a bound on time.

Exit code: 0 nothing was found; 10, 11, 13, 15 as in simrun run for what was
found; 14 an exhaustive search was cut short; 1 the call was wrong; 130
interrupted.`,
		Example: `  simrun explore                                          10,000 random worlds
  simrun explore --strategy swarm --for 60s --design hardened
  simrun explore A16/register --strategy pct --depth 3
  simrun explore --runs 20000 --until-found=false --why   what do failures come with
  simrun explore A16x --strategy exhaustive               every order: all of them
  simrun explore my-story.yaml --strategy coverage --corpus-dir corpus
  simrun explore --runs 100000 --shard 1/4 --json shard1/result.json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &usageError{"explore searches one scenario or one file at a time; a file's variants are searched one after the other"}
			}
			return f.run(cmd, s, common, args)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.strategy, "strategy", "random", "how tapes are made: `random|swarm|pct|coverage|exhaustive`")
	flags.IntVar(&f.depth, "depth", defaultDepth, "pct: how many steps in one order the defect takes, `N`; exhaustive: how deep the search goes, 0 for all the way")
	flags.Uint64Var(&f.runs, "runs", defaultRuns, "at most `N` runs; exhaustive: at most N states")
	flags.DurationVar(&f.lasts, "for", 0, "no run begins after a `TIME` such as 60s")
	flags.Uint64Var(&f.seed, "seed", 0, "the search's seed `N`; random begins with the run of that seed")
	flags.BoolVar(&f.until, "until-found", true, "stop at the first finding; =false plays all runs")
	f.designFlags.add(cmd)
	flags.IntVarP(&f.jobs, "jobs", "j", runtime.GOMAXPROCS(0), "how many runs at once, `N`; results do not depend on it")
	flags.DurationVar(&f.tick, "tick", run.DefaultTick, "exhaustive: how coarse time is, a `TIME`; what falls on one tick comes in every order")
	flags.StringVar(&f.shard, "shard", "", "play part `I/N` of the runs; simrun merge adds the parts up")
	flags.StringVar(&f.corpus, "corpus-dir", "", "coverage: read tapes from the folder `DIR` and keep new ones there")
	flags.StringVarP(&f.dir, "output", "o", "", "write findings and results into a new folder below `DIR` (findings alone go below out/explore)")
	flags.StringVar(&f.json, "json", "", "write the result as JSON to `FILE`, - for standard output")
	flags.BoolVar(&f.why, "why", false, "say which faults and settings failures come with, also where the search stopped early")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print findings only")
	return cmd
}

// exploration is a checked call of simrun explore.
type exploration struct {
	*exploreFlags
	design choice
	list   []selected
	shard  part
	runs   uint64
	depth  int
}

func (f *exploreFlags) check(cmd *cobra.Command, args []string) (*exploration, error) {
	given := cmd.Flags().Changed
	e := &exploration{exploreFlags: f, runs: f.runs, depth: f.depth}
	switch {
	case !slices.Contains(strategies, f.strategy):
		return nil, unknownName("--strategy", f.strategy, strategies)
	case given("for") && f.lasts <= 0:
		return nil, &usageError{fmt.Sprintf("--for %s: it must be longer than 0s, such as 60s", f.lasts)}
	case f.runs == 0 || f.runs > maxRuns:
		return nil, &usageError{fmt.Sprintf("--runs %d: it must be from 1 to %d", f.runs, maxRuns)}
	case f.jobs < 1 || f.jobs > maxJobs:
		return nil, &usageError{fmt.Sprintf("-j %d: it must be from 1 to %d", f.jobs, maxJobs)}
	case given("depth") && f.strategy != "pct" && f.strategy != "exhaustive":
		return nil, &usageError{"--depth is for --strategy pct and exhaustive; " + f.strategy + " has none"}
	case f.strategy == "pct" && (f.depth < 1 || f.depth > explore.MaxDepth):
		return nil, &usageError{fmt.Sprintf("--depth %d: it must be from 1 to %d", f.depth, explore.MaxDepth)}
	case f.depth < 0:
		return nil, &usageError{fmt.Sprintf("--depth %d: it must be 0 or more", f.depth)}
	case given("tick") && f.strategy != "exhaustive":
		return nil, &usageError{"--tick is for --strategy exhaustive; " + f.strategy + " has no ticks"}
	case f.tick <= 0:
		return nil, &usageError{fmt.Sprintf("--tick %s: it must be longer than 0s, such as 500ms", f.tick)}
	case f.corpus != "" && f.strategy != "coverage":
		return nil, &usageError{"--corpus-dir is for --strategy coverage; " + f.strategy + " keeps no tapes"}
	case f.shard != "" && (f.strategy == "coverage" || f.strategy == "exhaustive"):
		return nil, &usageError{"--shard cannot split --strategy " + f.strategy + ": what it does next depends on all that it did; give each machine another --seed"}
	case f.shard != "" && given("for"):
		return nil, &usageError{"--shard splits a number of runs: give --runs N in the place of --for"}
	case f.shard != "" && given("until-found") && f.until:
		return nil, &usageError{"--shard plays all runs of its part: what stops at a first finding has no whole to be a part of"}
	}
	f.until = f.until && f.shard == ""
	if given("for") && !given("runs") {
		e.runs = 0
	}
	if f.strategy == "exhaustive" {
		if !given("depth") {
			e.depth = 0
		}
		if !given("runs") {
			e.runs = 0
		}
	}
	var err error
	if e.shard, err = parseShard(f.shard); err != nil {
		return nil, err
	}
	if e.design, err = f.choose(); err != nil {
		return nil, err
	}
	if len(args) == 0 {
		args = []string{"random"}
	}
	e.list, err = choose(cmd, args)
	if err == nil && f.strategy == "exhaustive" && e.list[0].Random != "" {
		return nil, &usageError{"--strategy exhaustive needs one world: name a scenario, such as A16x"}
	}
	return e, err
}

func (f *exploreFlags) run(cmd *cobra.Command, s *streams, common *commonFlags, args []string) error {
	e, err := f.check(cmd, args)
	if err != nil {
		return err
	}
	dir := f.dir
	folder, err := newFolder(dir)
	if err != nil {
		return err
	}
	terminal := reports.Look(s.err, common.noColour)
	terminal.Live = terminal.Live && !f.quiet
	result := &reports.Exploration{Version: reports.Version, Design: e.design.String(), Verdict: reports.Pass, Campaigns: []reports.Campaign{}}
	if e.shard.of > 0 {
		result.Shard = &reports.Shard{Index: e.shard.index, Of: e.shard.of, First: f.seed, Count: e.runs, Code: codeIdentity()}
	}
	for i := range e.list {
		progress := reports.NewProgress(s.err, terminal)
		c, err := e.search(cmd.Context(), e.list[i], progress, &folder)
		progress.Close()
		if err != nil {
			return err
		}
		result.Campaigns = append(result.Campaigns, *c)
		result.Verdict = reports.Gravest(result.Verdict, c.Verdict)
		if cmd.Context().Err() != nil {
			result.Stopped = "Interrupted: this is what came until then."
			break
		}
		if c.Found > 0 && f.until {
			if i+1 < len(e.list) {
				result.Stopped = fmt.Sprintf("Stopped at the first finding: %d of %d scenarios were not searched.", len(e.list)-i-1, len(e.list))
			}
			break
		}
	}
	if err := e.report(result, s, common, folder); err != nil {
		return err
	}
	if cmd.Context().Err() != nil {
		return &ending{exitInterrupted}
	}
	return endWith(result.Verdict)
}

// report writes what came everywhere that the flags name.
func (e *exploration) report(result *reports.Exploration, s *streams, common *commonFlags, folder string) error {
	asJSON := func(w io.Writer) error { return reports.WriteJSON(w, result) }
	if e.json != "" {
		if err := s.write(e.json, asJSON); err != nil {
			return err
		}
	}
	why := e.why || !e.until
	if folder != "" {
		if err := reports.WriteFile(filepath.Join(folder, "explore.json"), asJSON); err != nil {
			return err
		}
		if err := reports.WriteFile(filepath.Join(folder, "report.txt"), func(w io.Writer) error {
			return reports.ExploreReport(w, result, 0, false, true)
		}); err != nil {
			return err
		}
		if err := reports.LinkLatest(filepath.Dir(folder), filepath.Base(folder)); err != nil {
			return err
		}
	}
	w := s.people(common, e.json == "-")
	if err := tellGitHub(result.Suite(), w); err != nil {
		return err
	}
	if e.quiet {
		return reports.FailureReport(w, result.Suite(), w.Width, w.Colour)
	}
	return reports.ExploreReport(w, result, w.Width, w.Colour, why)
}

// search searches one scenario.
func (e *exploration) search(ctx context.Context, s selected, progress *reports.Progress, folder *string) (*reports.Campaign, error) {
	row := &reports.Campaign{
		Name: s.Name, ID: s.ID, World: worldDigest(s.Scenario), Strategy: e.strategy, Seed: e.seed, Wanted: e.runs, Title: s.Title,
		Broke: map[string]uint64{}, First: map[string]uint64{}, Violations: []reports.Violation{}, Blame: []reports.Blame{},
	}
	if !s.builtin {
		row.File = s.File
	}
	if e.strategy == "exhaustive" {
		return row, e.exhaust(ctx, s, row, progress, folder)
	}
	strategy, keeper, err := e.choose(s, row)
	if err != nil {
		return nil, err
	}
	progress.Lasts(e.lasts)
	c, err := run.Search(ctx, s.Scenario, run.SearchOptions{
		Design: e.design.preset, Protections: e.design.protections, Strategy: strategy,
		Runs: e.runs, For: e.lasts, Jobs: e.jobs, Stop: e.until, Shard: e.shard.at(), Shards: e.shard.of,
		Keep: examples,
		Progress: func(p explore.Progress) {
			what := fmt.Sprintf("%s, %d features", s.ID, p.Features)
			if p.Found > 0 {
				what += fmt.Sprintf(", %d found", p.Found)
			}
			progress.Update(what, int(p.Runs), int(p.Total))
		},
	})
	if err != nil {
		return nil, err
	}
	if keeper != nil {
		if keeper.err != nil {
			return nil, keeper.err
		}
		row.Corpus = len(keeper.strategy.Corpus())
	}
	e.fill(row, c)
	return row, e.findings(row, s, c, folder)
}

// choose makes the strategy. For one that is guided by coverage, it reads the
// corpus.
func (e *exploration) choose(s selected, row *reports.Campaign) (explore.Strategy, *keeper, error) {
	switch e.strategy {
	case "swarm":
		return &explore.Swarm{Seed: e.seed}, nil, nil
	case "pct":
		p := run.NewPlayer(e.design.preset, e.design.protections)
		steps, processes := explore.CountSteps(e.seed, countRuns, func(c *sim.Choices) { p.PlayTape(s.Scenario, 0, c, nil) })
		strategy := &explore.PCT{Seed: e.seed, Depth: e.depth, Steps: steps}
		row.PCT = &reports.PCT{Depth: e.depth, Processes: processes, Steps: steps, Chance: strategy.Chance(processes)}
		return strategy, nil, nil
	case "coverage":
		strategy := &explore.Coverage{Seed: e.seed}
		k := &keeper{dir: e.corpus, strategy: strategy}
		if e.corpus != "" {
			tapes, err := k.read()
			if err != nil {
				return nil, nil, err
			}
			strategy.Start(tapes)
			strategy.Keep = k.keep
		}
		return strategy, k, nil
	}
	return &explore.Random{First: e.seed}, nil, nil
}

// fill turns what a campaign came to into its report.
func (e *exploration) fill(row *reports.Campaign, c *run.Campaign) {
	row.Verdict = reports.Verdict(c.Verdict)
	row.Runs, row.Found, row.Told, row.Schedules, row.AtLeast = c.Runs, c.Found, c.Told, c.Schedules, c.Bounded
	row.Features, row.FreshAt = c.Features, c.FreshAt+1
	row.Events, row.SimSeconds, row.Wall = c.Events, float64(c.Sim)/1e9, c.Wall.Seconds()
	row.Hash, row.Whole = fmt.Sprintf("%016x", c.Hash), c.Whole
	row.Broke = c.Broke
	for invariant, run := range c.First {
		row.First[invariant] = run + 1
	}
	row.Coverage = coverageOf(&c.Coverage)
	if len(c.Findings) > 0 {
		row.FirstRun = c.Findings[0].Run + 1
	}
	for i := range c.Missed { // no single run shows it: it has no seed and no capsule
		row.Violations = append(row.Violations, violationOf(&c.Missed[i]))
	}
	row.Blame = blameOf(c.Counts)
	if e.shard.of > 0 {
		row.Parts = &reports.CampaignPart{FeatureSet: c.Set.Bytes(), Factors: c.Counts.Names, With: c.Counts.With}
		for _, k := range c.Counts.Kinds {
			row.Parts.Kinds = append(row.Parts.Kinds, reports.FactorsKind{Invariant: k.Invariant, Failed: k.Failed, With: k.With})
		}
	}
}

// blameOf ranks what was counted.
func blameOf(c *run.Counts) []reports.Blame {
	out := []reports.Blame{}
	for _, b := range c.Blame() {
		out = append(out, reports.Blame{
			Invariant: b.Invariant, Failed: b.Failed, Runs: b.Runs, Causes: causesOf(b.Causes), Suppressors: causesOf(b.Suppressors),
		})
	}
	return out
}

// rankFactors ranks what the shards of a search counted.
func rankFactors(row *reports.Campaign) []reports.Blame {
	c := &run.Counts{Names: row.Parts.Factors, Runs: row.Runs, With: row.Parts.With}
	for _, k := range row.Parts.Kinds {
		c.Kinds = append(c.Kinds, run.CountsKind{Invariant: k.Invariant, Failed: k.Failed, With: k.With})
	}
	return blameOf(c)
}

func coverageOf(c *run.Coverage) reports.Coverage {
	return reports.Coverage{
		Runs: c.Runs, Faults: c.Faults, States: c.States, Protections: c.Protections, Probed: c.Probed,
		NoFault: listed(c.NoFaults), NoState: listed(c.NoStates), NoProtection: listed(c.NoProtections),
	}
}

// listed is a list that JSON has as one, also where it is empty.
func listed(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

func causesOf(list []explore.Cause) []reports.Cause {
	out := []reports.Cause{}
	for _, c := range list {
		out = append(out, reports.Cause{
			Name: c.Name, With: c.With, WithFailed: c.WithFailed, Without: c.Without, WithoutFailed: c.WithoutFails,
			Lift: c.Lift, Low: c.Low, High: c.High,
		})
	}
	return out
}

// findings writes the findings as capsules and turns them into violations, each
// with what replays it.
func (e *exploration) findings(row *reports.Campaign, s selected, c *run.Campaign, folder *string) error {
	for i := range c.Findings {
		f := &c.Findings[i]
		if *folder == "" { // asked for or not: a finding that is lost is none
			made, err := newFolder(filepath.Join("out", "explore"))
			if err != nil {
				return err
			}
			*folder = made
		}
		token := ""
		if e.strategy == "random" {
			token = newToken(s, f.Result.Seed, e.design, f.Hash).String()
		}
		path, complaint := e.keep(s, f, *folder)
		if complaint != "" {
			row.Notes = append(row.Notes, complaint)
		}
		for k := range f.Violations {
			v := violationOf(&f.Violations[k])
			v.Token, v.Capsule = token, path
			if token == "" {
				v.Run = f.Run + 1
			}
			switch {
			case path != "":
				v.Replay, v.Shrink = replayCommand(path), programName()+" shrink "+path
			case token != "":
				v.Replay = replayCommand(token)
			}
			row.Violations = append(row.Violations, v)
		}
	}
	return nil
}

// keep writes a finding as a capsule and returns its path, or why there is none.
func (e *exploration) keep(s selected, f *run.Finding, folder string) (path, complaint string) {
	kept, err := capsule.Of(s.Scenario, e.design.preset, e.design.protections, f.Result.Seed, f.Tape, f.Result)
	if err == nil {
		name := strings.ReplaceAll(s.ID, "/", "-")
		path = filepath.Join(folder, fmt.Sprintf("%s-%s-%d.capsule", name, e.strategy, f.Run+1))
		err = kept.Write(path)
	}
	if err != nil {
		return "", fmt.Sprintf("run %d has no capsule: %s", f.Run+1, oneLine(err.Error()))
	}
	return path, ""
}

// part is one shard of several, from 1; zero is the whole.
type part struct{ index, of uint64 }

// at is the shard's place from 0.
func (p part) at() uint64 { return max(1, p.index) - 1 }

// maxShards bounds --shard: nobody has more machines.
const maxShards = 10_000

// parseShard reads I/N; empty is the whole.
func parseShard(text string) (part, error) {
	if text == "" {
		return part{}, nil
	}
	var p part
	rest := ""
	if n, err := fmt.Sscanf(text+" end", "%d/%d %s", &p.index, &p.of, &rest); n != 3 || err != nil || rest != "end" || strings.ContainsAny(text, " +-") {
		return part{}, &usageError{fmt.Sprintf("--shard %q is not understood: it is part/parts, such as 1/4", text)}
	}
	if p.of < 1 || p.of > maxShards || p.index < 1 || p.index > p.of {
		return part{}, &usageError{fmt.Sprintf("--shard %s: the first number is from 1 to the second, which is at most %d", text, maxShards)}
	}
	return p, nil
}
