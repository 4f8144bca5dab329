// Command breaks shows that the scenario suite can fail. It puts one known
// defect at a time into a copy of the tree, builds simrun there and runs it:
// each defect must turn the run red. A suite that stays green with a defect in
// the core would stay green with the reader's next mistake too.
//
// Exit codes: 0 every break was caught; 1 one was not, or did not apply, or
// the tree is red without any break.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"vigil/scripts/sources"
)

func main() {
	seeds := flag.Int("seeds", 20, "seeds for each scenario")
	only := flag.String("only", "", "break only what has one of these names, comma-separated")
	list := flag.Bool("list", false, "list the breaks and stop")
	keep := flag.Bool("keep", false, "keep the broken copies and say where they are")
	search := flag.Int("search", 0, "do not run the suite: search for each break with every strategy, so many runs each, and say which run was the first to find it")
	small := flag.Bool("exhaustive", false, "with -search: search the small world A16x exhaustively too, -limit each")
	limit := flag.Duration("limit", 3*time.Minute, "the longest that one run may take")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "breaks: unexpected argument %q; name breaks with -only\n", flag.Arg(0))
		os.Exit(1)
	}
	chosen, err := choose(breaks, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "breaks:", err)
		os.Exit(1)
	}
	if *list {
		for _, b := range chosen {
			fmt.Printf("%-32s %s\n", b.name, b.why)
		}
		return
	}
	h := &harness{seeds: *seeds, limit: *limit, keep: *keep}
	find := h.all
	if *search > 0 {
		find = func(chosen []breakage) (int, error) { return h.searchAll(chosen, *search, *small) }
	}
	missed, err := find(chosen)
	if err != nil {
		fmt.Fprintln(os.Stderr, "breaks:", err)
		os.Exit(1)
	}
	if missed > 0 {
		fmt.Fprintf(os.Stderr, "breaks: %d of %d were not caught\n", missed, len(chosen))
		os.Exit(1)
	}
	if *search == 0 {
		fmt.Printf("%d breaks, each caught\n", len(chosen))
	}
}

// choose returns the breaks with one of the names, all where names is empty.
func choose(all []breakage, names string) ([]breakage, error) {
	if names == "" {
		return all, nil
	}
	var chosen []breakage
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(b breakage) bool { return b.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no break is called %q; -list shows them", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

type harness struct {
	seeds int
	limit time.Duration
	keep  bool
}

// all runs the sound tree first, since red means nothing unless it was green
// before, and then each break. It returns how many were not caught.
func (h *harness) all(chosen []breakage) (missed int, err error) {
	sound, err := h.run(breakage{name: "none"})
	if err != nil {
		return 0, fmt.Errorf("the tree without any break: %w", err)
	}
	if sound.red {
		return 0, fmt.Errorf("the tree is red without any break (%s), so nothing can be learnt from breaking it", sound.where)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "BREAK\tCAUGHT\tEXIT\tBY")
	for _, b := range chosen {
		got, err := h.run(b)
		switch {
		case err != nil:
			fmt.Fprintf(table, "%s\tdid not run\t\t%v\n", b.name, err)
			missed++
		case !got.red:
			fmt.Fprintf(table, "%s\tNO\t%d\t\n", b.name, got.exit)
			missed++
		default:
			fmt.Fprintf(table, "%s\tyes\t%d\t%s\n", b.name, got.exit, got.where)
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", b.name, got.words(err))
	}
	return missed, table.Flush()
}

// run copies the tree, applies one break to it, builds simrun and runs it.
func (h *harness) run(b breakage) (outcome, error) {
	tree, err := os.MkdirTemp("", "vigil-break-")
	if err != nil {
		return outcome{}, err
	}
	if h.keep {
		fmt.Fprintf(os.Stderr, "%s: %s\n", b.name, tree)
	} else {
		defer os.RemoveAll(tree)
	}
	if err := sources.Copy(".", tree); err != nil {
		return outcome{}, err
	}
	if err := b.apply(tree); err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.limit)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-o", "simrun.out", "./cmd/simrun")
	build.Dir = tree
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return outcome{}, fmt.Errorf("does not compile, so it breaks nothing: %w\n%s", err, out)
	}
	arguments, result := b.arguments(h.seeds), filepath.Join(tree, "result.json")
	if arguments[0] == "run" {
		arguments = append(arguments, "--json", result)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(tree, "simrun.out"), arguments...)
	cmd.Dir = tree
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return outcome{}, fmt.Errorf("simrun %s did not end within %s", strings.Join(arguments, " "), h.limit)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return outcome{}, err
	}
	report, err := os.ReadFile(result)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return outcome{}, err
	}
	return judge(cmd.ProcessState.ExitCode(), report, out)
}

// arguments are what simrun is run with: the whole suite as the document has
// it, where the break does not say otherwise.
func (b breakage) arguments(seeds int) []string {
	if b.command != nil {
		return slices.Clone(b.command)
	}
	design := "document"
	if b.hardened {
		design = "hardened"
	}
	return append([]string{"run", "--design", design, "--seeds", strconv.Itoa(seeds), "--no-color", "-q"}, b.scenarios...)
}
