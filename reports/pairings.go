package reports

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Pairings is what old and new servers and workers give together.
type Pairings struct {
	Version  int          `json:"version"`
	Verdict  Verdict      `json:"verdict"`
	Seeds    int          `json:"seeds"`
	Pairings []string     `json:"pairings"` // in the order of each row's cells
	Rows     []PairingRow `json:"scenarios"`
	Wall     float64      `json:"wall_seconds"`
	Stopped  string       `json:"stopped,omitempty"`
}

// PairingRow is one scenario.
type PairingRow struct {
	Scenario string        `json:"scenario"`
	Cells    []PairingCell `json:"cells"`
}

// PairingCell is what one pairing came to in one scenario.
type PairingCell struct {
	Broke map[string]int `json:"broke"` // runs, by invariant
	Order []string       `json:"-"`     // of the invariants
	// Worse is what no pairing may do; Beside is what else the document alone
	// keeps there. Both with the seed that shows it.
	Worse  string `json:"worse,omitempty"`
	Beside string `json:"beside,omitempty"`
}

// WritePairings writes the table for a person: what broke, nothing where
// nothing did.
func WritePairings(w io.Writer, p *Pairings, width int, colour bool) error {
	on := ink(colour)
	g := &grid{head: append([]string{"SCENARIO"}, p.Pairings...), tight: true}
	for i := range g.head[1:] {
		g.give, g.floor = append(g.give, i+1), append(g.floor, 12)
	}
	var worse, beside []string
	for i := range p.Rows {
		r := &p.Rows[i]
		row := []string{r.Scenario}
		for k := range r.Cells {
			c := &r.Cells[k]
			text := strings.Join(c.Order, ", ")
			if text == "" {
				text = "-"
			}
			if c.Worse != "" {
				worse = append(worse, fmt.Sprintf("%s, %s: %s", r.Scenario, p.Pairings[k], c.Worse))
			}
			if c.Beside != "" {
				beside = append(beside, fmt.Sprintf("%s, %s: %s", r.Scenario, p.Pairings[k], c.Beside))
			}
			row = append(row, text)
		}
		g.rows = append(g.rows, row)
		g.styles = append(g.styles, func(column int, text string) string {
			switch {
			case column == 0:
			case r.Cells[column-1].Worse != "":
				return on.paint(red, text)
			case r.Cells[column-1].Beside != "":
				return on.paint(yellow, text)
			}
			return text
		})
	}
	var b bytes.Buffer
	g.write(&b, width, on)
	b.WriteByte('\n')
	for _, l := range beside {
		fmt.Fprintln(&b, on.paint(yellow, "BESIDE  "+l))
	}
	for _, l := range worse {
		fmt.Fprintln(&b, on.paint(red, "WORSE  "+l))
	}
	if p.Stopped != "" {
		fmt.Fprintln(&b, on.paint(yellow, p.Stopped))
	}
	if p.Verdict == Pass {
		for _, l := range wrap(fmt.Sprintf("PASS  no pairing crashes, none hangs or corrupts where the document alone does not, and a hardened server never corrupts; %s of %s, in %s",
			plural(p.Seeds, "seed"), plural(len(p.Rows), "scenario"), span(p.Wall)), width) {
			fmt.Fprintln(&b, on.paint(green, l))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
