package main

// The suite as the judge of one mutant.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"vigil/scripts/sources"
)

// verdict is what became of a mutant.
type verdict uint8

const (
	survived  verdict = iota // some run went otherwise than without it, and nobody minded
	alike                    // every run went as without it
	unreached                // no run came to where it is
	noticed                  // a scenario went red
	hung                     // simrun did not come to an end
	verdicts                 // how many there are
)

func (v verdict) String() string {
	return [...]string{survived: "survived", alike: "alike", unreached: "unreached", noticed: "noticed", hung: "hung"}[v]
}

type judge struct {
	options
	tree  string
	plain []string // of each round: the hashes of its runs without a mutant
}

// prepare copies the project into a folder, puts all mutants into the copy and
// builds simrun there. What it left there earlier is used as it is.
func prepare(copied string) ([]mutant, error) {
	list := filepath.Join(copied, "mutants.json")
	if text, err := os.ReadFile(list); err == nil {
		var all []mutant
		if err := json.Unmarshal(text, &all); err != nil {
			return nil, fmt.Errorf("%s: %w; remove the folder to have the copy made anew", list, err)
		}
		return all, nil
	}
	if err := sources.Copy(".", copied); err != nil {
		return nil, err
	}
	all, err := instrument(copied, folders)
	if err != nil {
		return nil, err
	}
	build := exec.Command("go", "build", "-o", "simrun.mutants", "./cmd/simrun")
	build.Dir = copied
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the instrumented copy does not build: %w\n%s", err, out)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return all, os.WriteFile(list, text, 0o644) // last: a folder without it is not whole
}

// rounds are what a mutant must survive, the quick ones first.
func (j *judge) rounds() [][]string {
	seeds := func(n int) string { return strconv.Itoa(n) }
	return [][]string{
		{"run", "--design", "hardened", "--seeds", "2"},
		{"run", "--design", "document", "--seeds", seeds(j.seeds)},
		{"run", "--design", "hardened", "--seeds", seeds(j.seeds)},
	}
}

// mostMemory bounds the address space of one run: a mistake in a loop's end may
// ask for ever more, and several at once would take the machine with them.
const mostMemory = 6 << 30

// patience is how many times as long as its bound on the processor's time a
// run may take by the clock: it may wait for something that never comes.
const patience = 10

// play runs simrun with one mutant on and returns its exit code, -1 where it did
// not come to an end.
func (j *judge) play(ctx context.Context, number int, arguments []string, environment ...string) (code int, output string, err error) {
	limited, cancel := context.WithTimeout(ctx, patience*j.limit)
	defer cancel()
	// The bound is on the processor's time: on a busy machine the clock says
	// nothing about a mutant.
	bounded := fmt.Sprintf(`ulimit -t %d; ulimit -v %d; exec "$0" "$@"`, int(j.limit.Seconds()), mostMemory>>10)
	call := append([]string{"-c", bounded, filepath.Join(j.tree, "simrun.mutants")}, arguments...)
	cmd := exec.CommandContext(limited, "sh", append(append(call, j.scenarios()...), "-q", "-j", "1", "--fail-fast", "--json", "-")...)
	cmd.Dir = j.tree
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), append(environment, onVariable+"="+strconv.Itoa(number), "GOMAXPROCS=1", "GOMEMLIMIT=2GiB")...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, "", ctx.Err()
	case limited.Err() != nil:
		return -1, "", nil
	case errors.As(err, &exit) && exit.ExitCode() == -1: // a signal: the bound on its time
		return -1, "", nil
	case errors.As(err, &exit):
		return exit.ExitCode(), string(out), nil
	}
	return 0, string(out), err
}

// scenarios are the suite's substitutes, as the copy's folder finds them.
func (j *judge) scenarios() []string {
	out := make([]string, len(j.suite))
	for i, name := range j.suite {
		if out[i] = name; strings.HasSuffix(name, ".yaml") {
			if whole, err := filepath.Abs(name); err == nil {
				out[i] = whole
			}
		}
	}
	return out
}

// hashes are those of a report in JSON: what its runs were, event by event.
func hashes(report string) string {
	var b strings.Builder
	for line := range strings.Lines(report) {
		if strings.HasPrefix(strings.TrimSpace(line), `"hash":`) {
			b.WriteString(strings.TrimSpace(line))
		}
	}
	return b.String()
}

// sound makes sure that the suite passes while no mutant is on: only then does
// red mean something.
func (j *judge) sound(ctx context.Context) error {
	for _, round := range j.rounds() {
		code, output, err := j.play(ctx, 0, round)
		if err != nil {
			return err
		}
		if code != 0 {
			return fmt.Errorf("with no mutant on, simrun %s exits %d:\n%s", strings.Join(round, " "), code, output)
		}
		j.plain = append(j.plain, hashes(output))
	}
	return nil
}

// reached lists the mutants that the suite passes at all.
func (j *judge) reached(ctx context.Context) (map[int]bool, error) {
	notes := filepath.Join(j.tree, "reached")
	for _, round := range j.rounds() {
		if _, _, err := j.play(ctx, 0, round, reachedVariable+"="+notes); err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(notes)
	if err != nil {
		return nil, err
	}
	set := map[int]bool{}
	for _, line := range strings.Fields(string(text)) {
		n, err := strconv.Atoi(line)
		if err != nil {
			return nil, err
		}
		set[n] = true
	}
	return set, nil
}

// all judges the mutants, several at once.
func (j *judge) all(ctx context.Context, chosen []mutant) ([]verdict, error) {
	reached, err := j.reached(ctx)
	if err != nil {
		return nil, err
	}
	verdicts := make([]verdict, len(chosen))
	var next, done atomic.Int64
	var wait sync.WaitGroup
	failures := make([]error, j.jobs)
	began := time.Now()
	for w := range j.jobs {
		wait.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(chosen) || ctx.Err() != nil {
					return
				}
				m := &chosen[i]
				verdicts[i] = unreached
				if reached[m.Number] {
					v, err := j.one(ctx, m.Number)
					if err != nil {
						failures[w] = err
						return
					}
					verdicts[i] = v
				}
				if j.verbose && verdicts[i] <= unreached {
					fmt.Fprintf(os.Stderr, "mutation: %s: %s\n", verdicts[i], m.key())
				}
				n := done.Add(1)
				if n%50 == 0 {
					left := time.Duration(float64(time.Since(began)) / float64(n) * float64(int64(len(chosen))-n))
					fmt.Fprintf(os.Stderr, "mutation: %d of %d, about %s left\n", n, len(chosen), left.Round(time.Second))
				}
			}
		})
	}
	wait.Wait()
	return verdicts, errors.Join(append(failures, ctx.Err())...)
}

// one judges one mutant.
func (j *judge) one(ctx context.Context, number int) (verdict, error) {
	v := alike
	for i, round := range j.rounds() {
		code, output, err := j.play(ctx, number, round)
		switch {
		case err != nil:
			return survived, err
		case code == -1:
			return hung, nil
		case code == 1:
			return survived, fmt.Errorf("mutant %d: simrun exits 1, which says nothing about the core:\n%s", number, output)
		case code != 0: // 2 is a crash of all of simrun: out of memory, a stack without end
			return noticed, nil
		case hashes(output) != j.plain[i]:
			v = survived
		}
	}
	return v, nil
}
