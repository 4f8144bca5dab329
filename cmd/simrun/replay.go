package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"vigil/reports"
	"vigil/scenarios"
	"vigil/scenarios/run"
	"vigil/sim"
)

func newReplay(s *streams, common *commonFlags) *cobra.Command {
	var verbose, quiet bool
	var scenario, html string
	cmd := &cobra.Command{
		Use:   "replay CAPSULE | TOKEN [FILE] | DIR|SEGMENT",
		Short: "Replay one run, or the recording of a real server",
		Long: `Replay the one run that a capsule holds or a token names, and print what happened
in it: who did what when, what broke, and the verdict. Everyday things are
counted; -v tells every record. --html writes it as a page: a space-time diagram
with a slider through virtual time, in one file that needs no network.

A CAPSULE (a file, or the name of one of the corpus that comes with simrun) holds
the whole run: it replays on other code than it was recorded with. Where the run
is another now, replay says what differs: the verdict, the first record that is
not as it was with its time and actor, the decision that is missing.

The token of a scenario from a file holds the file's path as it was given then;
give FILE where it lies elsewhere now. The exit code is that of the run's
verdict. Where the run is no longer the one that the token names, replay says
whether the scenario or the code has changed.

A DIR that server run --record wrote, or one SEGMENT of it, is fed to the core
as it is here: the same inputs must give the same outputs. The first difference
is named (exit code 12). With --scenario its outline - who was there, who fell
silent, who left - becomes a scenario file.`,
		Example: `  simrun replay out/latest/B1-resumed-0-CONVERGE.capsule
  simrun replay v1.A8/pid.0.document.3fa29b3e77a1c4d5
  simrun replay TOKEN my-story.yaml
  simrun replay TOKEN -v | less
  simrun replay TOKEN --html run.html
  simrun replay recording/
  simrun replay recording/ --scenario incident.yaml && simrun run incident.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return &usageError{"replay needs a capsule, or the token of a run, as the last lines of a failing run give it"}
			case len(args) > 2:
				return &usageError{"replay takes one token, and the scenario's file where that has moved"}
			}
			if isRecording(args[0]) && !isCapsule(args[0]) && len(args) == 1 {
				return replayRecording(s, common, args[0], scenario, quiet, verbose)
			}
			if scenario != "" {
				return &usageError{"--scenario is for a recording: give its folder or one of its segments"}
			}
			t, err := taleOf(args[0], args[1:])
			if err != nil {
				return err
			}
			if html != "" {
				if err := s.write(html, drawn(t.scenario, t.seed, t.design, t.play).Write); err != nil {
					return err
				}
			}
			return t.tell(s.people(common, html == "-"), quiet, verbose)
		},
	}
	cmd.Flags().StringVar(&scenario, "scenario", "", "with a recording: write its outline as a scenario to `FILE`, - for standard output")
	cmd.Flags().StringVar(&html, "html", "", "write the run's timeline as a page to `FILE`, - for standard output")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print the verdict only")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "tell every record")
	return cmd
}

// find returns the scenario that the token names.
func (t token) find() (selected, error) {
	var all []selected
	if t.file == "" {
		builtin, err := scenarios.All()
		if err != nil {
			return selected{}, err
		}
		all = asBuiltin(nil, builtin)
	} else {
		var err error
		if all, err = loadPath(t.file); err != nil {
			return selected{}, fmt.Errorf("the token's scenario %s: %w (simrun replay TOKEN FILE names another place)", t.scenario, err)
		}
	}
	var ids []string
	for _, s := range all {
		if s.ID == t.scenario {
			return s, nil
		}
		ids = append(ids, s.ID)
	}
	if t.file != "" {
		return selected{}, fmt.Errorf("%s holds no scenario of the token's id %s; it has %s", t.file, t.scenario, ids)
	}
	return selected{}, unknownName("the token's scenario", t.scenario, ids)
}

// calledOf is a scenario's id and name, once where they are the same.
func calledOf(s *scenarios.Scenario) string {
	if s.ID == s.Name {
		return s.ID
	}
	return s.ID + " " + s.Name
}

// tale is a run to tell: how it is played, and what it was named by.
type tale struct {
	scenario selected
	design   choice
	seed     uint64
	play     func(o sim.Observer) run.Run
	drawn    func() string                          // the world in words, where the run drew it
	name     func(r *run.Run, v *reports.Violation) // says by what a violation is replayed
	compare  func(r *run.Run) string                // how the run is not the one that was named; "" where it is
}

// tale is the run that the token names.
func (t token) tale(sc selected) tale {
	p := newPlayer(t.design)
	return tale{
		scenario: sc, design: t.design, seed: t.seed,
		play:  func(o sim.Observer) run.Run { return p.inner.Play(sc.Scenario, t.seed, o) },
		drawn: func() string { return p.inner.Drawn(sc.Scenario) },
		name: func(r *run.Run, v *reports.Violation) {
			v.Token = newToken(sc, t.seed, t.design, r.Hash).String()
			v.Replay = replayCommand(v.Token)
		},
		compare: func(r *run.Run) string {
			switch again := newToken(sc, t.seed, t.design, r.Hash); {
			case again.world != t.world:
				return "This is not the run that the token names: the scenario's file has changed since."
			case again.hash != t.hash:
				return "This is not the run that the token names: the scenario is the same, the code or the meaning of the tape has changed since."
			}
			return ""
		},
	}
}

// tell plays a run, prints its story and ends with its verdict.
func (t *tale) tell(w human, quiet, verbose bool) error {
	story := run.NewStory(t.scenario.Scenario, true)
	r := t.play(story)
	timeline := &reports.Timeline{Everything: verbose}
	for i := range story.Lines {
		l := &story.Lines[i]
		timeline.Add(&l.Record, l.Actor, l.Words)
	}

	sc := t.scenario
	row := reports.Scenario{
		Name: sc.Name, ID: sc.ID, Expected: run.Expected(sc.Scenario, t.design.preset), Verdict: reports.Pass,
		Runs: 1, Events: r.Events, SimSeconds: float64(r.End) / 1e9, Hash: fmt.Sprintf("%016x", uint64(r.Hash)),
	}
	for _, v := range r.Violations {
		of := violationOf(&v)
		t.name(&r, &of)
		timeline.Broke(&of)
		if !of.Declared {
			row.Verdict = reports.Gravest(row.Verdict, of.Verdict)
		}
		row.Violations = append(row.Violations, of)
	}
	suite := reports.NewSuite(t.design.String(), []reports.Scenario{row}, 0)

	if !quiet {
		fmt.Fprintf(w, "%s: %s\ndesign %s, seed %d\n", calledOf(sc.Scenario), sc.Title, t.design, t.seed)
		fmt.Fprintf(w, "Each worker is in a pod (PID namespace) of its own, unless its file says `pod`.\n\n")
		if drawn := t.drawn(); drawn != "" {
			fmt.Fprintf(w, "%s\n\n", drawn)
		}
		if err := timeline.Write(w, w.Width, w.Colour); err != nil {
			return err
		}
		if story.Left > 0 {
			fmt.Fprintf(w, "(%d more records)\n", story.Left)
		}
		fmt.Fprintf(w, "\n%d events, %d records, hash %016x\n", r.Events, r.Records, uint64(r.Hash))
	}
	if differs := t.compare(&r); differs != "" {
		if err := reports.Paragraph(w, differs, w.Width); err != nil {
			return err
		}
	}
	if suite.Verdict == reports.Pass {
		fmt.Fprintln(w, reports.VerdictLine(&suite.Scenarios[0], w.Colour))
		return nil
	}
	if err := reports.FailureReport(w, suite, w.Width, w.Colour); err != nil {
		return err
	}
	return endWith(suite.Verdict)
}
