package main

// How soon a search finds each break: the same broken copies, searched with
// simrun explore by each of its strategies instead of being run through the
// suite. What the sound tree shows in the same search is no hit.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"vigil/scripts/sources"
)

// hunt is one world to search under one design.
type hunt struct{ scenario, design string }

func (h hunt) String() string { return h.scenario + " " + h.design }

// hunts are where a break is looked for, in this order, until it is found: all
// faults on first, then the story that it was made against. What the document's
// design alone has a hole for is looked for in its story under document.
var hunts = map[string][]hunt{
	"noop-register-keeps-old-stamp":          {{"A11", "document"}, {"A5", "document"}, {"B9", "document"}},
	"traffic-latches":                        {{"A4", "document"}},
	"stale-at-the-edge":                      {{"A1/at-the-edge", "hardened"}, {"A1/at-the-edge", "document"}},
	"health-before-the-callback":             {{"A6", "document"}},
	"close-clears-before-the-reaper-stopped": {{"A17", "document"}},
	"ping-after-the-stop":                    {{"A10", "document"}},
	"payload-count-unchecked":                {{"A9", "document"}},
	"strategy-survives-the-reap":             {{"A19", "document"}},
	"layout-holders-counted":                 {{"A5", "document"}},
	"blend-state-of-the-living-dropped":      {{"A18", "document"}},
	"grace-forgotten":                        {{"A2", "document"}},
	"ping-does-not-latch":                    {{"A1", "document"}},
	"transfer-does-not-refresh":              {{"A4", "document"}},
	"blend-state-of-the-dead-kept":           {{"A18", "document"}},
	"layout-share-kept":                      {{"A1", "document"}},
	"straggler-recovers":                     {{"A11", "document"}},
	"eager-heartbeat":                        {{"A2", "document"}},
	"dropped-retrieve-forgotten":             {{"A13", "document"}},
	"lost-ping-ignored-while-busy":           {{"A6", "document"}, {"A13", "document"}},
}

// everywhere is where every break is looked for first.
var everywhere = hunt{"random", "hardened"}

// searches are the strategies of the table. An exhaustive search takes a world
// that is small enough for it.
var searches = []string{"random", "swarm", "pct", "coverage"}

// smallWorld is the world of the exhaustive column.
var smallWorld = []hunt{{"A16x", "hardened"}, {"A16x", "document"}}

// first is the run in which a search first broke each invariant, from 1.
type first map[string]uint64

// search runs one search and returns what it found.
func (h *harness) explore(ctx context.Context, program string, at hunt, strategy string, runs int) (first, error) {
	dir, err := os.MkdirTemp("", "vigil-search-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	result := filepath.Join(dir, "result.json")
	args := []string{"explore", at.scenario, "--design", at.design, "--strategy", strategy, "--until-found=false", "-q", "--json", result, "-o", dir}
	if strategy == "exhaustive" {
		args = append(args, "--for", h.limit.String())
	} else {
		args = append(args, "--runs", strconv.Itoa(runs))
	}
	ctx, cancel := context.WithTimeout(ctx, 2*h.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("simrun %s did not end within %s", strings.Join(args, " "), 2*h.limit)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	text, err := os.ReadFile(result)
	if err != nil {
		return nil, fmt.Errorf("simrun %s left no result:\n%s", strings.Join(args, " "), tail(out, 20))
	}
	var explored struct {
		Campaigns []struct {
			Runs  uint64            `json:"runs"`
			First map[string]uint64 `json:"first_runs"`
		} `json:"campaigns"`
	}
	if err := json.Unmarshal(text, &explored); err != nil {
		return nil, fmt.Errorf("simrun's result: %w", err)
	}
	found, before := first{}, uint64(0)
	for _, c := range explored.Campaigns { // variants are searched one after the other
		for invariant, run := range c.First {
			if have, ok := found[invariant]; !ok || before+run < have {
				found[invariant] = before + run
			}
		}
		before += c.Runs
	}
	return found, nil
}

// hit is the first run that broke what the sound tree does not.
func hit(broken, sound first) (run uint64, by string) {
	names := make([]string, 0, len(broken))
	for name := range broken {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if _, known := sound[name]; !known && (run == 0 || broken[name] < run) {
			run, by = broken[name], name
		}
	}
	return run, by
}

// build makes a copy of the tree with a break in it and returns its simrun.
func (h *harness) build(ctx context.Context, b breakage) (program string, clean func(), err error) {
	tree, err := os.MkdirTemp("", "vigil-break-")
	if err != nil {
		return "", nil, err
	}
	clean = func() { os.RemoveAll(tree) }
	if err := sources.Copy(".", tree); err != nil {
		return "", clean, err
	}
	if err := b.apply(tree); err != nil {
		return "", clean, err
	}
	program = filepath.Join(tree, "simrun.out")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/simrun")
	cmd.Dir, cmd.Env = tree, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", clean, fmt.Errorf("does not compile, so it breaks nothing: %w\n%s", err, out)
	}
	return program, clean, nil
}

// searchAll prints the table of runs to the first hit. It returns how many of
// the breaks no search found.
func (h *harness) searchAll(chosen []breakage, runs int, small bool) (missed int, err error) {
	ctx := context.Background()
	sound, clean, err := h.build(ctx, breakage{name: "none"})
	if clean != nil {
		defer clean()
	}
	if err != nil {
		return 0, err
	}
	known := map[string]first{}
	soundly := func(at hunt, strategy string) (first, error) {
		key := at.String() + strategy
		if f, ok := known[key]; ok {
			return f, nil
		}
		f, err := h.explore(ctx, sound, at, strategy, runs)
		known[key] = f
		return f, err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "BREAK\tWORLD\tRANDOM\tSWARM\tPCT\tCOVERAGE\tEXHAUSTIVE\tBY")
	for _, b := range chosen {
		if b.command != nil {
			fmt.Fprintf(table, "%s\t\t\t\t\t\t\tsimrun %s, not a search\n", b.name, strings.Join(b.command, " "))
			continue
		}
		program, clean, err := h.build(ctx, b)
		if err == nil {
			err = h.searchOne(ctx, table, b, program, runs, small, soundly, &missed)
		}
		if clean != nil {
			clean()
		}
		if err != nil {
			fmt.Fprintf(table, "%s\tdid not run\t\t\t\t\t\t%v\n", b.name, err)
			missed++
		}
	}
	return missed, table.Flush()
}

// searchOne writes the rows of one break: of the first world in which a search
// finds it.
func (h *harness) searchOne(ctx context.Context, table *tabwriter.Writer, b breakage, program string, runs int, small bool,
	soundly func(hunt, string) (first, error), missed *int) error {
	exhaustive, by := "", map[string]bool{}
	ask := func(at hunt, strategy string) (uint64, error) {
		want, err := soundly(at, strategy)
		if err != nil {
			return 0, err
		}
		got, err := h.explore(ctx, program, at, strategy, runs)
		if err != nil {
			return 0, err
		}
		run, name := hit(got, want)
		if run > 0 {
			by[name] = true
		}
		return run, nil
	}
	if small {
		exhaustive = "-"
		for _, at := range smallWorld {
			if run, err := ask(at, "exhaustive"); err != nil {
				return err
			} else if run > 0 {
				exhaustive = "found in " + at.String()
				break
			}
		}
	}
	where, cells := everywhere, []string(nil)
	for _, at := range append([]hunt{everywhere}, hunts[b.name]...) {
		cells, where = nil, at
		any := false
		for _, strategy := range searches {
			run, err := ask(at, strategy)
			if err != nil {
				return err
			}
			any = any || run > 0
			cells = append(cells, times(run, runs))
		}
		if any {
			break
		}
		where = hunt{"none", ""}
	}
	names := make([]string, 0, len(by))
	for name := range by {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		*missed++
	}
	row := fmt.Sprintf("%s\t%s\t%s\t%s\t%s", b.name, where, strings.Join(cells, "\t"), exhaustive, strings.Join(names, ", "))
	fmt.Fprintln(table, row)
	fmt.Fprintf(os.Stderr, "%s\n", strings.ReplaceAll(row, "\t", "  "))
	return nil
}

// times is a number of runs, or that they were not enough.
func times(run uint64, runs int) string {
	if run == 0 {
		return fmt.Sprintf(">%d", runs)
	}
	return strconv.FormatUint(run, 10)
}
