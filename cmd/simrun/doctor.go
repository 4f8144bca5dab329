package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vigil/reports"
	"vigil/scenarios/run"
)

// doctorSeeds is how many seeds of each scenario doctor runs where no flag says.
const doctorSeeds = 5

func newDoctor(s *streams, common *commonFlags) *cobra.Command {
	var design designFlags
	seeds := fmt.Sprint(doctorSeeds)
	cmd := &cobra.Command{
		Use:   "doctor [NAME|FILE|DIR]...",
		Short: "Prove determinism on this machine, or show the first difference",
		Long: `Run the same decisions again - in this process, in another process, with one
processor, with a collector that never rests, one run at a time and two - and
compare the hash of every run. The first difference is named, down to the
record.

Exit code: 0 all equal; 12 a difference.`,
		Example: `  simrun doctor                 every scenario
  simrun doctor A6 --seeds 100  one scenario, more seeds`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			d := &doctor{ctx: cmd.Context(), args: args, flags: design}
			var err error
			if d.list, err = choose(cmd, args); err != nil {
				return err
			}
			if d.design, err = design.choose(); err != nil {
				return err
			}
			if d.seeds, err = parseSeeds(seeds); err != nil {
				return err
			}
			d.player = newPlayer(d.design)
			return d.run(s.people(common, false), reports.NewProgress(s.err, reports.Look(s.err, common.noColour)))
		},
	}
	design.add(cmd)
	cmd.Flags().StringVar(&seeds, "seeds", seeds, "the seeds of each scenario: `N` is 0 to N-1, A..B both included")
	return cmd
}

// doctor compares runs that must be equal.
type doctor struct {
	ctx    context.Context
	args   []string
	flags  designFlags
	list   []selected
	design choice
	seeds  seedRange
	player *player
	ours   []hashLine
}

// hashLine is the hash of one run, as trace prints it.
type hashLine struct {
	scenario selected
	seed     uint64
	hash     string
}

// check is one way to run everything again.
type check struct {
	name string
	run  func() (*difference, error)
}

// difference is the first run that was not the same.
type difference struct {
	line  hashLine
	got   string
	trace func() (io.Reader, func(), error) // the other run's records; nil where there are none to compare
}

func (d *doctor) run(w human, progress *reports.Progress) error {
	began := time.Now()
	checks := []check{
		{"the same decisions again, in a fresh world", d.again},
		{"a second process, GOMAXPROCS=1", func() (*difference, error) { return d.elsewhere("GOMAXPROCS=1") }},
		{"a second process, GOGC=10", func() (*difference, error) { return d.elsewhere("GOGC=10") }},
		{"one run at a time and two (-j 1, -j 2)", d.sideBySide},
	}
	total := len(checks) + 1
	done := 0
	step := func(what string) { done++; progress.Update(what, done-1, total) }
	step("the first time")
	if err := d.first(); err != nil {
		progress.Close()
		return err
	}
	l := &reports.Listing{Head: []string{"CHECK", "RUNS", "RESULT"}}
	var found *difference
	for _, c := range checks {
		step(c.name)
		diff, err := c.run()
		if d.ctx.Err() != nil {
			progress.Close()
			fmt.Fprintln(w, "interrupted: nothing is proven")
			return &ending{exitInterrupted}
		}
		if err != nil {
			progress.Close()
			return err
		}
		result := "same"
		if diff != nil {
			result = "DIFFERENT: " + diff.line.scenario.ID + ", seed " + fmt.Sprint(diff.line.seed)
			if found == nil {
				found = diff
			}
		}
		l.Rows = append(l.Rows, []string{c.name, fmt.Sprint(len(d.ours)), result})
	}
	progress.Close()
	if err := l.Write(w, w.Width, w.Colour); err != nil {
		return err
	}
	if found == nil {
		fmt.Fprintf(w, "\nDeterministic here: %d of %d runs are the same (seeds %s, design %s, %d checks in %.1fs).\n", len(d.ours), len(d.ours), d.seeds, d.design, len(checks), time.Since(began).Seconds())
		return nil
	}
	fmt.Fprintf(w, "\nNONDETERMINISM  %s %s, design %s, seed %d\n", found.line.scenario.ID, found.line.scenario.Name, d.design, found.line.seed)
	fmt.Fprintf(w, "  hashes     %s the first time, %s then\n", found.line.hash, found.got)
	if err := d.explain(w, found); err != nil {
		return err
	}
	return endWith(reports.Nondeterminism)
}

// first runs everything for the first time.
func (d *doctor) first() error {
	for _, sc := range d.list {
		for i := range d.seeds.Count {
			if d.ctx.Err() != nil {
				return &ending{exitInterrupted}
			}
			seed := d.seeds.First + uint64(i)
			d.ours = append(d.ours, hashLine{sc, seed, fmt.Sprintf("%016x", uint64(d.player.hash(sc, seed, nil)))})
		}
	}
	return nil
}

// again runs everything in this process, each run in a world of its own.
func (d *doctor) again() (*difference, error) {
	for _, line := range d.ours {
		if d.ctx.Err() != nil {
			return nil, nil
		}
		if got := fmt.Sprintf("%016x", uint64(newPlayer(d.design).hash(line.scenario, line.seed, nil))); got != line.hash {
			return &difference{line, got, func() (io.Reader, func(), error) {
				return bytes.NewReader(d.records(newPlayer(d.design), line)), func() {}, nil
			}}, nil
		}
	}
	return nil, nil
}

// elsewhere runs everything in another process.
func (d *doctor) elsewhere(setting string) (*difference, error) {
	child, out, err := otherProcess(d.ctx, setting, append([]string{"--seeds", d.seedFlag(), "--design", d.design.preset}, append(d.switches(), d.args...)...)...)
	if err != nil {
		return nil, err
	}
	var found *difference
	lines := bufio.NewScanner(out)
	n := 0
	for ; lines.Scan(); n++ {
		if found != nil || n >= len(d.ours) {
			continue
		}
		line := d.ours[n]
		if want := fmt.Sprintf("%s %d %s", line.scenario.ID, line.seed, line.hash); lines.Text() != want {
			found = &difference{line, lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:], func() (io.Reader, func(), error) {
				return d.otherRecords(setting, line)
			}}
		}
	}
	if err := child.Wait(); err != nil && d.ctx.Err() == nil {
		return nil, fmt.Errorf("the second process (%s) failed: %w", setting, err)
	}
	if n != len(d.ours) && found == nil && d.ctx.Err() == nil {
		return nil, fmt.Errorf("the second process (%s) gave %d hashes, this one %d", setting, n, len(d.ours))
	}
	return found, nil
}

// sideBySide runs the suite with one and with two runs at once.
func (d *doctor) sideBySide() (*difference, error) {
	var outcomes [2][]run.Outcome
	for jobs := 1; jobs <= 2; jobs++ {
		out, err := run.Suite(d.ctx, plain(d.list), run.Options{
			Design: d.design.preset, Protections: d.design.protections,
			From: d.seeds.First, Count: d.seeds.Count, Jobs: jobs, Partial: true,
		})
		if err != nil || d.ctx.Err() != nil {
			return nil, err
		}
		outcomes[jobs-1] = out
	}
	for i := range d.list {
		one, two := outcomes[0][i].HashText(), outcomes[1][i].HashText()
		if one != two {
			return &difference{line: hashLine{d.list[i], d.seeds.First, one + " over all seeds"}, got: two}, nil
		}
	}
	return nil, nil
}

// seedFlag writes the seeds so that one seed stays one seed.
func (d *doctor) seedFlag() string {
	return fmt.Sprintf("%d..%d", d.seeds.First, d.seeds.First+uint64(d.seeds.Count)-1)
}

func (d *doctor) switches() []string {
	var args []string
	if len(d.flags.protect) > 0 {
		args = append(args, "--protect", strings.Join(d.flags.protect, ","))
	}
	if len(d.flags.unprotect) > 0 {
		args = append(args, "--unprotect", strings.Join(d.flags.unprotect, ","))
	}
	return args
}

func (d *doctor) records(p *player, line hashLine) []byte {
	var b bytes.Buffer
	p.hash(line.scenario, line.seed, recordLines{&b})
	return b.Bytes()
}

func (d *doctor) otherRecords(setting string, line hashLine) (io.Reader, func(), error) {
	name := line.scenario.ID
	if !line.scenario.builtin {
		name = line.scenario.File
	}
	args := append([]string{"--records", "--only", line.scenario.ID, "--seeds", fmt.Sprintf("%d..%d", line.seed, line.seed), "--design", d.design.preset}, append(d.switches(), name)...)
	child, out, err := otherProcess(d.ctx, setting, args...)
	if err != nil {
		return nil, nil, err
	}
	return out, func() {
		out.Close()
		child.Wait() // it ends by the closed pipe where we stopped reading; its code says nothing
	}, nil
}

// explainTries is how often the two runs are compared again until they differ:
// an order of a map, say, comes out the same every few times.
const explainTries = 20

// explain names the first record that differs.
func (d *doctor) explain(w io.Writer, found *difference) error {
	if found.trace == nil {
		return nil
	}
	for range explainTries {
		told, err := d.compare(w, found)
		if told || err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "  records    equal in %d more tries: the difference comes and goes, or lies in the order of events that leave no record\n", explainTries)
	return nil
}

// compare tells the first record that differs and reports whether one does.
func (d *doctor) compare(w io.Writer, found *difference) (told bool, err error) {
	other, done, err := found.trace()
	if err != nil {
		return false, err
	}
	defer done()
	ours := bufio.NewScanner(bytes.NewReader(d.records(d.player, found.line)))
	theirs := bufio.NewScanner(other)
	for n := 1; ; n++ {
		more, moreTheirs := ours.Scan(), theirs.Scan()
		if !more && !moreTheirs {
			return false, nil
		}
		if ours.Text() != theirs.Text() || more != moreTheirs {
			fmt.Fprintf(w, "  record     %d is the first that differs\n  here       %s\n  there      %s\n", n, orNone(more, ours.Text()), orNone(moreTheirs, theirs.Text()))
			return true, nil
		}
	}
}

func orNone(there bool, text string) string {
	if !there {
		return "(the run ended before)"
	}
	return text
}
