// Command mutation gives the scenario suite a score: it makes every small
// mistake of some kinds in the core, one at a time, and counts how many of them
// the suite notices (issue of the search: "a score for the checkers"). The suite
// is the only judge: simrun run, under both designs, and nothing else.
//
// A mistake that nobody notices is listed. It is then either killed by a new
// scenario or argued for in argued.txt, with the reason why it changes nothing
// that a scenario could see.
//
// Exit codes: 0 the score is at least what -least asks; 1 it is less, or the
// tool could not run, or argued.txt argues for a mutant that there is not or
// that the suite kills.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"
)

func main() {
	o := options{}
	flag.IntVar(&o.jobs, "j", runtime.NumCPU(), "how many mutants are judged at once")
	flag.StringVar(&o.only, "only", "", "only mutants whose key contains this, such as reaper.go")
	flag.BoolVar(&o.list, "list", false, "list the mutants and stop")
	flag.Float64Var(&o.least, "least", 90, "the score, in percent, that is asked for")
	flag.DurationVar(&o.limit, "limit", 15*time.Second, "the most time of a processor that one run of simrun may take; a mutant that takes more hangs, and is noticed")
	flag.IntVar(&o.seeds, "seeds", 20, "seeds of each scenario in the last round")
	flag.StringVar(&o.out, "o", "", "write the survivors to this file too")
	flag.BoolVar(&o.verbose, "v", false, "say at once what is not noticed")
	flag.StringVar(&o.from, "from", "", "only mutants that this file of survivors (-o) names")
	flag.StringVar(&o.copy, "copy", "", "the folder for the instrumented copy, which is kept there and used again")
	flag.Usage = usage
	flag.Parse()
	o.suite = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		if errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "mutation: interrupted")
			os.Exit(130)
		}
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprint(os.Stderr, `Usage: go run ./scripts/mutation [flags] [SCENARIO...]

Makes every small mistake in core/server and core/worker, one at a time, and
counts those that the scenario suite notices. SCENARIO names or files take the
suite's place: so a new story is tried in seconds.

  go run ./scripts/mutation -o survivors.txt
  go run ./scripts/mutation -only lookup.go -v
  go run ./scripts/mutation -copy /tmp/mutants -from survivors.txt -only lookup.go my-story.yaml

`)
	flag.PrintDefaults()
}

type options struct {
	jobs, seeds           int
	only, out, from, copy string
	list                  bool
	verbose               bool
	least                 float64
	limit                 time.Duration
	suite                 []string // what takes the suite's place
}

// folders are the packages that are scored.
var folders = []string{"core/server", "core/worker"}

func run(ctx context.Context, o options) error {
	began := time.Now()
	copied := o.copy
	if copied == "" {
		var err error
		if copied, err = os.MkdirTemp("", "vigil-mutation-"); err != nil {
			return err
		}
		defer os.RemoveAll(copied)
	}
	all, err := prepare(copied)
	if err != nil {
		return err
	}
	named, err := survivorsIn(o.from)
	if err != nil {
		return err
	}
	arguments, err := readArguments()
	if err != nil {
		return err
	}
	chosen := all[:0:0]
	for _, m := range all {
		if strings.Contains(m.key(), o.only) && !arguments.outside(m.File) && (named == nil || named[m.key()]) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant is left; -list shows those that -only and -from choose")
	}
	if o.list {
		for _, m := range chosen {
			fmt.Printf("%d\t%s\n", m.Number, m.key())
		}
		return nil
	}
	j := &judge{tree: copied, options: o}
	if err := j.sound(ctx); err != nil {
		return err
	}
	verdicts, err := j.all(ctx, chosen)
	if err != nil {
		return err
	}
	s := sum(chosen, verdicts, arguments)
	s.write(os.Stdout)
	fmt.Printf("in %s with -j %d\n", time.Since(began).Round(time.Second), o.jobs)
	if o.out != "" {
		if err := s.writeSurvivors(o.out); err != nil {
			return err
		}
	}
	if o.only == "" && o.from == "" && len(o.suite) == 0 {
		if err := s.stale(all); err != nil {
			return err
		}
	}
	if s.score() < o.least {
		return fmt.Errorf("the suite notices %.1f%% of the mistakes, less than %.1f%%", s.score(), o.least)
	}
	return nil
}
