package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vigil/core"
	"vigil/faults"
	"vigil/reports"
	"vigil/scenarios"
	"vigil/scenarios/monitor"
	"vigil/scenarios/run"
)

// listTopics are what there is to list, in the order in which all are listed.
var listTopics = []string{"scenarios", "faults", "invariants", "protections", "records"}

func newList(s *streams, common *commonFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "list [TOPIC | SCENARIO...]",
		Short: "What there is, one line each; of a scenario, all of it",
		Long: `List what there is, one line each; the topics are scenarios, faults, invariants,
protections and records. Of a scenario that is named, its story, its variants,
what each is known to break, and its file.`,
		Example: `  simrun list              everything
  simrun list scenarios    the built-in scenarios and what each breaks
  simrun list A8           one scenario: its story, its variants, its file
  simrun list faults       what a scenario file can do to a world
  simrun list records      what a scenario file can wait for and expect`,
		ValidArgs: listTopics,
		Args:      cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			w := s.people(common, false)
			switch {
			case len(args) == 0:
				return list(w, listTopics)
			case len(args) == 1 && slices.Contains(listTopics, args[0]):
				return list(w, args)
			case args[0] == "scenarios":
				return show(w, args[1:])
			case slices.Contains(listTopics, args[0]):
				return &usageError{"list takes one topic: " + strings.Join(listTopics, ", ")}
			}
			return show(w, args)
		},
	}
}

// show tells all of the scenarios of those names or files, a file's variants
// together.
func show(w human, args []string) error {
	var found []*scenarios.Scenario
	for _, arg := range args {
		some, err := scenarios.Find(arg)
		if err != nil {
			if near, ok := scenarios.Nearest(arg, listTopics); ok && len(arg) > 3 && !isPath(arg) {
				return fmt.Errorf("list: there is no topic and no scenario %q; did you mean %q?", arg, near)
			}
			if !isPath(arg) {
				return err
			}
			own, err := loadPath(arg)
			if err != nil {
				return err
			}
			some = plain(own)
		}
		found = append(found, some...)
	}
	for i, j := 0, 0; i < len(found); i = j {
		for j = i + 1; j < len(found) && found[j].File == found[i].File; j++ {
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := tell(w, found[i:j]); err != nil {
			return err
		}
	}
	return nil
}

// tell writes the scenarios of one file.
func tell(w human, variants []*scenarios.Scenario) error {
	s := variants[0]
	id, _, _ := strings.Cut(s.ID, "/")
	name, _, _ := strings.Cut(s.Name, "/")
	if id != name {
		name = id + " " + name
	}
	reports.Paragraph(w, name+": "+s.Title, w.Width)
	fmt.Fprintf(w, "%s\n\n", s.File)
	if s.Story != "" {
		reports.Paragraph(w, strings.Join(strings.Fields(s.Story), " "), w.Width)
		fmt.Fprintln(w)
	}
	l := &reports.Listing{Head: []string{"SCENARIO", "BREAKS UNDER DOCUMENT", "BREAKS UNDER HARDENED"}}
	for _, v := range variants {
		row := []string{v.ID}
		for _, design := range []string{"document", "hardened"} {
			breaks := strings.TrimPrefix(run.Expected(v, design), "breaks ")
			if breaks == string(reports.Pass) {
				breaks = "nothing"
			}
			row = append(row, breaks)
		}
		l.Rows = append(l.Rows, row)
	}
	return l.Write(w, w.Width, w.Colour)
}

func list(w human, topics []string) error {
	for i, topic := range topics {
		if len(topics) > 1 {
			if i > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintln(w, strings.ToUpper(topic[:1])+topic[1:]+"\n")
		}
		l, err := listing(topic, w.Width)
		if err != nil {
			return err
		}
		if err := l.Write(w, w.Width, w.Colour); err != nil {
			return err
		}
	}
	return nil
}

func listing(topic string, width int) (*reports.Listing, error) {
	switch topic {
	case "scenarios":
		return scenarioListing(width)
	case "faults":
		l := &reports.Listing{Head: []string{"FAULT", "STRIKES", "PARAMETERS", "WHAT IT IS"}}
		for _, name := range faults.Names() {
			d, _ := faults.Named(name)
			l.Rows = append(l.Rows, []string{d.Name, d.Target.String(), strings.Join(d.ParamNames(), ", "), d.Brief})
		}
		return l, nil
	case "records":
		l := &reports.Listing{Head: []string{"RECORD", "WRITTEN BY", "WHAT HAPPENED"}}
		for _, r := range scenarios.Records() {
			l.Rows = append(l.Rows, []string{r.Name, r.By, r.Meaning})
		}
		return l, nil
	case "invariants":
		l := &reports.Listing{Head: []string{"INVARIANT", "KIND", "STATEMENT"}}
		for _, d := range monitor.Describe() {
			kind := "liveness"
			if d.Safety {
				kind = "safety"
			}
			statement := d.Statement
			if d.Bound != "" {
				statement += " Bound: " + d.Bound + "."
			}
			l.Rows = append(l.Rows, []string{d.ID, kind, statement})
		}
		return l, nil
	}
	l := &reports.Listing{Head: []string{"PROTECTION", "SHOWN BY", "THE HOLE THAT IT CLOSES"}}
	for _, name := range core.ProtectionNames() {
		hole, scenario, _ := core.DescribeProtection(name)
		l.Rows = append(l.Rows, []string{name, scenario, hole})
	}
	return l, nil
}

// narrowList is the width below which a scenario has one column for what it is
// called and what it breaks is said without particulars.
const narrowList = 140

func scenarioListing(width int) (*reports.Listing, error) {
	all, err := scenarios.All()
	if err != nil {
		return nil, err
	}
	narrow := width > 0 && width < narrowList
	l := &reports.Listing{Head: []string{"ID", "NAME", "BREAKS UNDER DOCUMENT", "WHAT HAPPENS"}}
	if narrow {
		l.Head = []string{"SCENARIO", "BREAKS", "WHAT HAPPENS"}
	}
	for _, s := range all {
		breaks := strings.TrimPrefix(run.Expected(s, "document"), "breaks ")
		if narrow && breaks != string(reports.Pass) {
			var short []string
			for i := range s.Breaks {
				if s.Breaks[i].Design == "document" {
					short = append(short, s.Breaks[i].Invariant)
				}
			}
			breaks = strings.Join(short, ", ")
		}
		switch {
		case s.World:
			breaks = "(measured)"
		case s.Random != "":
			breaks = "(a search)"
		case breaks == string(reports.Pass):
			breaks = "-"
		}
		switch {
		case !narrow:
			l.Rows = append(l.Rows, []string{s.ID, s.Name, breaks, s.Title})
		case strings.Contains(s.ID, "/"):
			l.Rows = append(l.Rows, []string{s.ID, breaks, s.Title})
		default:
			l.Rows = append(l.Rows, []string{s.ID + " " + s.Name, breaks, s.Title})
		}
	}
	return l, nil
}
