package main

import (
	"fmt"
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
var listTopics = []string{"scenarios", "faults", "invariants", "protections"}

func newList(s *streams, common *commonFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "list [scenarios|faults|invariants|protections]",
		Short: "What there is, one line each",
		Example: `  simrun list              everything
  simrun list scenarios    the built-in scenarios and what each declares to break
  simrun list faults       what a scenario file can do to a world`,
		ValidArgs: listTopics,
		Args:      cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &usageError{"list takes one topic: " + strings.Join(listTopics, ", ")}
			}
			topics := listTopics
			if len(args) == 1 {
				topics = nil
				for _, t := range listTopics {
					if t == args[0] {
						topics = []string{t}
					}
				}
				if topics == nil {
					return unknownName("list", args[0], listTopics)
				}
			}
			return list(s.people(common, false), topics)
		},
	}
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
