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
	flag.BoolVar(&o.keep, "keep", false, "keep the instrumented copy and say where it is")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "mutation: unexpected argument %q; choose mutants with -only\n", flag.Arg(0))
		os.Exit(1)
	}
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

type options struct {
	jobs, seeds int
	only, out   string
	list, keep  bool
	verbose     bool
	least       float64
	limit       time.Duration
}

// folders are the packages that are scored.
var folders = []string{"core/server", "core/worker"}

func run(ctx context.Context, o options) error {
	began := time.Now()
	copied, err := os.MkdirTemp("", "vigil-mutation-")
	if err != nil {
		return err
	}
	if o.keep {
		fmt.Fprintln(os.Stderr, "mutation: the copy is in", copied)
	} else {
		defer os.RemoveAll(copied)
	}
	all, err := prepare(copied)
	if err != nil {
		return err
	}
	arguments, err := readArguments()
	if err != nil {
		return err
	}
	chosen := all[:0:0]
	for _, m := range all {
		if strings.Contains(m.key(), o.only) && !arguments.outside(m.file) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant's key contains %q; -list shows them", o.only)
	}
	if o.list {
		for _, m := range chosen {
			fmt.Printf("%d\t%s\n", m.number, m.key())
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
	if o.only == "" {
		if err := s.stale(all); err != nil {
			return err
		}
	}
	if s.score() < o.least {
		return fmt.Errorf("the suite notices %.1f%% of the mistakes, less than %.1f%%", s.score(), o.least)
	}
	return nil
}
