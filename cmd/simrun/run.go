package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vigil/core"
	"vigil/faults"
	"vigil/reports"
	"vigil/scenarios"
)

// runFlags are the flags of simrun run.
type runFlags struct {
	designFlags
	seed     uint64
	seeds    string
	lasts    time.Duration
	jobs     int
	failFast bool
	json     string
	junit    string
	html     string
	dir      string
	corpus   string
	quiet    bool
	verbose  bool
	shard    string
	coverage bool
	real     realFlags
}

// maxJobs bounds -j: more goroutines than this gain nothing anywhere.
const maxJobs = 4096

func newRun(s *streams, common *commonFlags) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run [NAME|FILE|DIR]...",
		Short: "Run scenarios, each over many seeds; by default the whole suite",
		Long: `Run scenarios in the simulated world, each over many seeds. A scenario is named
by its id (A1), its name, or a path to a file or a folder of files of your own.
Every run is judged by thirteen invariants and by what the scenario expects.

Where a scenario declares that a design breaks an invariant, the run checks that
the break comes and that nothing else breaks: it then passes as an expected
break.

Exit code: 0 all passed; 1 the call was wrong; 10 a safety invariant broke;
11 a liveness invariant broke; 12 the same decisions did not give the same run;
13 the code under test panicked; 14 a bound was reached before a verdict;
15 something declared never took place; 130 interrupted. With several failures
it is the first of 12, 13, 10, 11, 15, 14. A file of a folder that cannot be
read is reported, the rest is run, and a pass becomes 1. go run and make do not
hand exit codes on: go build -o bin/simrun ./cmd/simrun gives a program.

The suite begins with the corpus: runs that searches found, shrunk and kept. Each
must come to what it was recorded with, under its own design. With -o each
example of a failure (with -v also one of each expected break) is kept as a
capsule, which simrun replay, simrun shrink and --corpus take.

The design is hardened, as in server run: every protection is on. With --design
document it is the design document's, holes and all; what the files declare
that breaks under a design is what has to break there.`,
		Example: `  simrun run                                   the suite
  simrun run A1 A6 --seeds 1000                two scenarios, more seeds
  simrun run A3 --seed 17 -v                   one seed
  simrun run stories/ --for 60s                a folder of files, for a minute
  simrun run stories/ --corpus found/          and first the capsules of a folder
  simrun run -o out                            keep the results; out/latest names them
  simrun run --seeds commit --junit out.xml    in CI: new seeds for each commit
  simrun run --json - | jq .totals             for a program
  simrun run --html suite.html                 a page, with each failing run's timeline
  simrun run A3 --design document -v           the document's hole, and how to replay it
  simrun run --seeds 4000 --shard 1/4 -o out   a quarter; simrun merge adds them up
  simrun run --coverage -q                     what no scenario reaches
  simrun run A1 A6 --real bin/server           with real processes`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, s, common, args)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.seeds, "seeds", fmt.Sprint(defaultSeeds), "the seeds of each scenario: `N|A..B|commit` is 0 to N-1, A to B, or a range that is this commit's own")
	flags.Uint64Var(&f.seed, "seed", 0, "run the one seed `N`")
	flags.DurationVar(&f.lasts, "for", 0, "run ever more seeds, from --seed on, for a `TIME` such as 60s")
	f.designFlags.add(cmd)
	flags.IntVarP(&f.jobs, "jobs", "j", runtime.GOMAXPROCS(0), "how many runs at once, `N`; results do not depend on it")
	flags.BoolVar(&f.failFast, "fail-fast", false, "stop at the first run that fails")
	flags.StringVar(&f.shard, "shard", "", "run part `I/N` of the seeds, every N-th; simrun merge adds the parts up")
	flags.BoolVar(&f.coverage, "coverage", false, "say what each fault, state of a life and protection was met by, and what no scenario reaches")
	flags.StringVar(&f.json, "json", "", "write the result as JSON to `FILE`, - for standard output")
	flags.StringVar(&f.junit, "junit", "", "write the result as JUnit XML to `FILE`, - for standard output")
	flags.StringVar(&f.html, "html", "", "write the result as a page to `FILE`, with the timeline of each example of a failure; with --seed and one scenario, that run's timeline")
	flags.StringVarP(&f.dir, "output", "o", "", "write all results, and a capsule of each example, into a new folder below `DIR`; DIR/latest names it")
	flags.StringVar(&f.corpus, "corpus", "", "play the capsules of the folder `DIR` first; each must come to what it was recorded with")
	flags.StringVar(&f.real.server, "real", "", "play with real processes of the server program `PATH` instead of the simulator")
	flags.IntVar(&f.real.scale, "time-scale", realScale, "with --real: time runs `N` times as fast")
	flags.StringVar(&f.real.logs, "real-logs", "", "with --real: keep each run's event logs and its story below `DIR`")
	flags.StringVar(&f.real.record, "real-record", "", "with --real: record the inputs of each run's server below `DIR`, for simrun replay")
	flags.StringVar(&f.real.backend, "backend", "hostshm", "with --real: where the workers' memory is, `KIND` is hostshm or cuda")
	flags.StringVar(&f.real.library, "cuda-library", "", "with --backend cuda: the stand-in driver, `PATH` (scripts/standin builds it)")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no table: print failures only, with -v examples too")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print examples with the commands that replay them, one of each expected break too")
	return cmd
}

// request is a checked call of simrun run.
type request struct {
	seeds  seedRange
	lasts  time.Duration // 0: each seed once
	single bool          // one given seed: what some runs must show need not be in it
	design choice
	jobs   int
	list   []selected
	shard  part
	folder string   // of this call's results; empty where none was asked for
	corpus []kept   // capsules that are played first
	bad    []string // files of a folder that could not be read, and why
}

func (f *runFlags) check(cmd *cobra.Command, args []string) (*request, error) {
	given := cmd.Flags().Changed
	r := &request{lasts: f.lasts, jobs: f.jobs, single: given("seed") && !given("for")}
	var err error
	isReal := f.real.server != ""
	for _, name := range []string{"time-scale", "real-logs", "real-record", "backend", "cuda-library"} {
		if given(name) && !isReal {
			return nil, &usageError{"--" + name + " is about real processes: give --real PATH-OF-SERVER with it"}
		}
	}
	if isReal && !given("jobs") {
		r.jobs = realJobs
	}
	switch {
	case isReal && (f.shard != "" || f.coverage):
		return nil, &usageError{"--shard and --coverage are about runs in the simulator; leave --real out"}
	case f.shard != "" && (given("for") || given("seed")):
		return nil, &usageError{"--shard splits a range of seeds: give --seeds in the place of --seed and --for"}
	case isReal && given("for"):
		return nil, &usageError{"--for runs seeds in the simulator; with --real, --seeds N plays each scenario N times"}
	case given("seed") && given("seeds"):
		return nil, &usageError{"--seed runs one seed and --seeds a range: give one of them"}
	case given("for") && given("seeds"):
		return nil, &usageError{"--for runs seeds until the time is up and --seeds a given range: give one of them"}
	case given("for") && f.lasts <= 0:
		return nil, &usageError{fmt.Sprintf("--for %s: it must be longer than 0s, such as 60s", f.lasts)}
	case f.jobs < 1 || f.jobs > maxJobs:
		return nil, &usageError{fmt.Sprintf("-j %d: it must be from 1 to %d", f.jobs, maxJobs)}
	case f.several("-") > 1:
		return nil, &usageError{"--json, --junit and --html with - all want standard output: give all but one of them a file"}
	case given("for"):
		r.seeds = seedRange{First: f.seed, Count: 1}
	case given("seed"):
		r.seeds = seedRange{First: f.seed, Count: 1}
	case isReal && !given("seed") && !given("seeds"):
		r.seeds = seedRange{Count: 1}
	default:
		if r.seeds, err = parseSeeds(f.seeds); err != nil {
			return nil, err
		}
	}
	if r.shard, err = parseShard(f.shard); err != nil {
		return nil, err
	}
	if r.design, err = f.choose(); err != nil {
		return nil, err
	}
	if given("corpus") && isReal {
		return nil, &usageError{"--corpus replays runs in the simulator; it cannot go with --real"}
	}
	if !isReal {
		if r.corpus, err = corpora(len(args) == 0, f.corpus); err != nil {
			return nil, err
		}
	}
	r.list, err = choose(cmd, args)
	if some := (*badFiles)(nil); errors.As(err, &some) && len(r.list) > 0 {
		r.bad, err = some.lines, nil
	}
	return r, err
}

// several is how many results go to a file of this name.
func (f *runFlags) several(name string) int {
	n := 0
	for _, file := range []string{f.json, f.junit, f.html} {
		if file == name {
			n++
		}
	}
	return n
}

func (f *runFlags) run(cmd *cobra.Command, s *streams, common *commonFlags, args []string) error {
	r, err := f.check(cmd, args)
	if err != nil {
		return err
	}
	// A folder that cannot be written is said now, not after an hour of runs.
	folder, err := newFolder(f.dir)
	if err != nil {
		return err
	}
	r.folder = folder
	play := r.play
	if f.real.server != "" {
		play = r.playReal
	}
	for _, line := range r.bad {
		fmt.Fprintln(s.err, "simrun: "+oneLine(line)+" (not run; the others are)")
	}
	suite, err := play(cmd.Context(), f, reports.NewProgress(s.err, f.progress(s, common)))
	if err != nil {
		return err
	}
	if n := len(r.bad); n > 0 {
		suite.Note = strings.TrimSpace(suite.Note + fmt.Sprintf(" Not run, because the file could not be read: %s.", strings.Join(r.bad, "; ")))
	}
	f.lead(r, suite)
	if err := f.pages(r, suite, s, folder); err != nil {
		return err
	}
	if err := f.report(suite, s, common, folder); err != nil {
		return err
	}
	if cmd.Context().Err() != nil {
		return &ending{exitInterrupted}
	}
	if suite.Verdict == reports.Pass && len(r.bad) > 0 {
		return &ending{exitUsage} // not everything that was asked for was run
	}
	return endWith(suite.Verdict)
}

// progress is where the progress line may go: a live terminal, and one that
// the result does not go through as well.
func (f *runFlags) progress(s *streams, common *commonFlags) reports.Terminal {
	t := reports.Look(s.err, common.noColour)
	t.Live = t.Live && !f.quiet
	return t
}

// report writes a suite everywhere that the flags name.
func (f *runFlags) report(suite *reports.Suite, s *streams, common *commonFlags, folder string) error {
	w := s.people(common, f.several("-") > 0)
	if !f.quiet {
		if err := reports.Table(w, suite, w.Width, w.Colour); err != nil {
			return err
		}
	}
	if f.coverage {
		if err := reports.WriteCoverage(w, suite, f.known(), w.Width, w.Colour); err != nil {
			return err
		}
	}
	if f.verbose {
		if err := reports.Examples(w, suite, w.Width, w.Colour); err != nil {
			return err
		}
	}
	if err := writeResults(suite, s, f.json, f.junit, folder); err != nil {
		return err
	}
	if place := f.places(folder); place != "" && !f.quiet {
		fmt.Fprintln(w, reports.Wrapped("Written: "+place, w.Width))
	}
	if err := tellGitHub(suite, w); err != nil {
		return err
	}
	// Last: what is printed last is what is read first.
	return reports.FailureReport(w, suite, w.Width, w.Colour)
}

// known are the names of all that a suite may meet: of protections those that
// are on.
func (f *runFlags) known() reports.Known {
	k := reports.Known{Faults: faults.Names(), States: scenarios.LifeStateNames}
	if c, err := f.choose(); err == nil {
		for _, name := range core.ProtectionNames() {
			if off := c.protections; off.Set(name, false) && off != c.protections {
				k.Protections = append(k.Protections, name)
			}
		}
	}
	return k
}

func writeResults(suite *reports.Suite, s *streams, json, junit, folder string) error {
	asJSON := func(w io.Writer) error { return reports.WriteJSON(w, suite) }
	asJUnit := func(w io.Writer) error { return reports.JUnit(w, suite) }
	if json != "" {
		if err := s.write(json, asJSON); err != nil {
			return err
		}
	}
	if junit != "" {
		if err := s.write(junit, asJUnit); err != nil {
			return err
		}
	}
	if folder == "" {
		return nil
	}
	if err := reports.WriteFile(filepath.Join(folder, "result.json"), asJSON); err != nil {
		return err
	}
	if err := reports.WriteFile(filepath.Join(folder, "junit.xml"), asJUnit); err != nil {
		return err
	}
	err := reports.WriteFile(filepath.Join(folder, "report.txt"), func(w io.Writer) error {
		if err := reports.Table(w, suite, 0, false); err != nil {
			return err
		}
		if err := reports.Examples(w, suite, 0, false); err != nil {
			return err
		}
		return reports.FailureReport(w, suite, 0, false)
	})
	if err != nil {
		return err
	}
	return reports.LinkLatest(filepath.Dir(folder), filepath.Base(folder))
}

// tellGitHub annotates where the program runs in GitHub Actions.
func tellGitHub(suite *reports.Suite, w io.Writer) error {
	if os.Getenv("GITHUB_ACTIONS") != "true" {
		return nil
	}
	if err := reports.Annotations(w, suite); err != nil {
		return err
	}
	path := os.Getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	// The service's contract is to append: a step may have several writers.
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("cannot write the step summary: %w", err)
	}
	if err := reports.StepSummary(file, suite); err != nil {
		file.Close()
		return fmt.Errorf("cannot write the step summary: %w", err)
	}
	return file.Close()
}

// newFolder makes the folder of this call's results below dir, named by the
// time so that they sort.
func newFolder(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("-o %s: %w", dir, err)
	}
	name := filepath.Join(dir, time.Now().Format("20060102-150405"))
	for n := 1; n < 1000; n++ {
		path := name
		if n > 1 {
			path = fmt.Sprintf("%s-%d", name, n)
		}
		err := os.Mkdir(path, 0o755)
		if err == nil {
			return path, nil
		}
		if !os.IsExist(err) {
			return "", fmt.Errorf("-o %s: %w", dir, err)
		}
	}
	return "", fmt.Errorf("-o %s: it holds a thousand results of this second", dir)
}
