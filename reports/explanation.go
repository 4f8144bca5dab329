package reports

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"vigil/core"
)

// Explanation is why one run broke, for a person: simrun explain.
type Explanation struct {
	Title     string
	Design    string
	Statement string // of the invariant, empty for an expectation of the file
	Broke     Violation
	Others    []Violation
	Cast      []string // who is who, a line each
	Diagram   Diagram
	Left      []string // columns that are not shown, because they do not matter
	Steps     []ExplainedStep
	Doom      *ExplainedDoom
	Mends     []string // protections of which each alone keeps this tape whole
	MendsOf   int      // how many were tried
	Commands  []string // what to do next, "what: command"
}

// ExplainedStep is a step of the scenario and whether the failure takes it.
type ExplainedStep struct {
	Words  string
	Needed bool
	Struck bool
}

// ExplainedDoom is the share of failing futures against time.
type ExplainedDoom struct {
	Forks  int
	Alone  bool // without the steps that had not struck by then
	Points []ExplainedPoint
	// Words are what happened where the share rises most; empty where it does
	// not rise.
	Words         string
	Before, After int
}

// ExplainedPoint is a moment and how many futures from there on failed.
type ExplainedPoint struct {
	At     core.Time
	Failed int
}

// Write writes the explanation. quiet leaves the diagram out.
func (x *Explanation) Write(w io.Writer, width int, colour bool, quiet bool) error {
	on := ink(colour)
	var b bytes.Buffer
	para := func(indent int, text string) {
		limit := 0
		if width > 0 {
			limit = max(30, width-indent)
		}
		for _, l := range wrap(text, limit) {
			fmt.Fprintf(&b, "%*s%s\n", indent, "", l)
		}
	}
	title := func(text string) { fmt.Fprintf(&b, "\n%s\n", on.paint(bold, text)) }

	fmt.Fprintf(&b, "%s\ndesign %s\n", x.Title, x.Design)
	title("What broke")
	v := &x.Broke
	who := "the system"
	if len(v.Actors) > 0 {
		who = strings.Join(v.Actors, ", ")
	}
	para(2, on.paint(red, fmt.Sprintf("%s, for %s, at %.6f s.", v.Invariant, who, v.AtSeconds)))
	if x.Statement != "" {
		para(2, x.Broke.Invariant+" says: "+x.Statement+".")
	}
	para(2, "Here: "+v.Message)
	if n := len(x.Others); n > 0 {
		var names []string
		for i := range x.Others {
			if name := x.Others[i].Invariant; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		para(2, fmt.Sprintf("Beside it, %s in this run: %s.", plural(n, "other violation"), strings.Join(names, ", ")))
	}
	title("Who is who")
	for _, c := range x.Cast {
		para(2, c)
	}
	if !quiet {
		title("What happened (only what matters to it)")
		if err := x.Diagram.Write(&b, width, colour); err != nil {
			return err
		}
		b.WriteString(on.paint(dim, "  │ runs  ┊ stands still  ╎ its link is cut  ✖ its process ends\n  ─✗─ did not arrive, or had no answer in time\n"))
		if len(x.Left) > 0 {
			para(2, on.paint(dim, "Not shown: "+strings.Join(x.Left, ", ")+"."))
		}
	}
	if len(x.Steps) > 0 {
		title("Which steps it takes (each left out in turn, the rest of the tape the same)")
		for _, s := range x.Steps {
			word := on.paint(dim, "not needed")
			switch {
			case !s.Struck:
				word = on.paint(dim, "struck nothing")
			case s.Needed:
				word = on.paint(red, "NEEDED")
			}
			fmt.Fprintf(&b, "  %-14s  %s\n", word, s.Words)
		}
	}
	if x.Doom != nil {
		title("The moment of doom")
		x.doom(&b, on, para)
	}
	title("What mends it")
	switch {
	case x.MendsOf == 0:
		para(2, "Every protection that there is was on: this is a defect that none of them covers.")
	case len(x.Mends) == 0:
		para(2, fmt.Sprintf("None of the %d protections that were off mends this tape alone.", x.MendsOf))
	default:
		para(2, fmt.Sprintf("With any one of these on, the same tape is whole: %s (of %d that were off).", strings.Join(x.Mends, ", "), x.MendsOf))
	}
	if len(x.Commands) > 0 {
		title("Next")
		for _, c := range x.Commands {
			fmt.Fprintf(&b, "  %s\n", c)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// doomBar is how long the bar of a share of one is.
const doomBar = 30

func (x *Explanation) doom(b *bytes.Buffer, on ink, para func(int, string)) {
	d := x.Doom
	rest := ""
	if d.Alone {
		rest = " and without the steps that are still to come, because this story fails in nearly every future"
	}
	para(2, fmt.Sprintf("The run followed up to a moment, and %d new futures from there%s: how many of them break %s too.", d.Forks, rest, x.Broke.Invariant))
	for i, p := range d.Points {
		if i > 0 && i < len(d.Points)-1 && p.Failed == d.Points[i-1].Failed && p.Failed == d.Points[i+1].Failed {
			continue // the curve is flat here
		}
		n := p.Failed * doomBar / max(1, d.Forks)
		mark, style := "", ""
		if d.After > 0 && i == d.After {
			mark, style = "  ◄ doom lies before this", red
		}
		fmt.Fprintf(b, "  %11.3fs  %s%s %3d%%%s\n", float64(p.At)/1e9, on.paint(style, strings.Repeat("█", n)), strings.Repeat("·", doomBar-n), 100*p.Failed/max(1, d.Forks), mark)
	}
	share := func(i int) int { return 100 * d.Points[i].Failed / max(1, d.Forks) }
	switch {
	case d.After > 0:
		para(2, fmt.Sprintf("Between %.3f s and %.3f s the share rises from %d%% to %d%%: %s.", float64(d.Points[d.Before].At)/1e9, float64(d.Points[d.After].At)/1e9, share(d.Before), share(d.After), d.Words))
	case len(d.Points) > 0 && share(0) > 90:
		para(2, "Nearly every future fails, also without any of its steps: it is the design and the settings, not something that happens in this run.")
	default:
		para(2, "The share rises nowhere by more than chance: no single moment decides it.")
	}
}
