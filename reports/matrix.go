package reports

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Matrix is what each protection is needed for: a row per protection, a column
// per scenario, and a last row with all of them on.
type Matrix struct {
	Version   int             `json:"version"`
	Design    string          `json:"design"` // what all rows start from
	Verdict   Verdict         `json:"verdict"`
	Seeds     int             `json:"seeds"`     // of each scenario with all protections on
	OffSeeds  int             `json:"off_seeds"` // at most, of each cell with one of them off
	Scenarios []string        `json:"scenarios"`
	Rows      []MatrixRow     `json:"protections"`
	AllOn     []MatrixVerdict `json:"all_on"`
	Wall      float64         `json:"wall_seconds"`
	// Stopped, where not empty, says why it is not the whole matrix.
	Stopped string `json:"stopped,omitempty"`
}

// MatrixRow is one protection.
type MatrixRow struct {
	Name     string       `json:"name"`
	Hole     string       `json:"hole"`
	ShownBy  string       `json:"shown_by"` // the scenario that was written for it
	NeededBy []MatrixNeed `json:"needed_by"`
}

// MatrixNeed is a scenario that breaks without the protection, and how.
type MatrixNeed struct {
	Scenario  string  `json:"scenario"`
	Invariant string  `json:"invariant"` // or "expect ...", what the file expects
	AtSeconds float64 `json:"at_seconds"`
	Message   string  `json:"message"`
	Seed      uint64  `json:"seed"`
	Token     string  `json:"token"`
}

// MatrixVerdict is a scenario with every protection on.
type MatrixVerdict struct {
	Scenario string  `json:"scenario"`
	Verdict  Verdict `json:"verdict"`
	Runs     int     `json:"runs"`
	Hash     string  `json:"hash"`
}

// Unneeded lists the protections that no scenario misses.
func (m *Matrix) Unneeded() []string {
	var names []string
	for i := range m.Rows {
		if len(m.Rows[i].NeededBy) == 0 {
			names = append(names, m.Rows[i].Name)
		}
	}
	return names
}

// The cells: a scenario that breaks without the protection, one that does not,
// and in the last row one that passes and one that does not.
const (
	cellNeeded = "●"
	cellSame   = "·"
	cellPass   = "✓"
	cellFail   = "✗"
)

// allOn is what the last row is called.
const allOn = "all of them on"

// WriteMatrix writes the matrix for a person. Scenarios that are variants of
// one story share a column. Where the columns do not fit, the rest of them
// follow below.
func WriteMatrix(w io.Writer, m *Matrix, width int, colour bool) error {
	on := ink(colour)
	columns, of := storiesOf(m.Scenarios)
	label := utf8.RuneCountInString(allOn)
	for i := range m.Rows {
		label = max(label, utf8.RuneCountInString(m.Rows[i].Name))
	}
	cell := 0
	for _, c := range columns {
		cell = max(cell, utf8.RuneCountInString(c))
	}
	fits := len(columns)
	if width > 0 {
		fits = max(1, (width-label)/(cell+1))
	}
	cells := make([][]string, len(m.Rows)+1)
	for i := range m.Rows {
		cells[i] = make([]string, len(columns))
		for _, n := range m.Rows[i].NeededBy {
			cells[i][of[n.Scenario]] = cellNeeded
		}
	}
	last := make([]string, len(columns))
	for _, v := range m.AllOn {
		if at := of[v.Scenario]; v.Verdict != Pass {
			last[at] = cellFail
		} else if last[at] == "" {
			last[at] = cellPass
		}
	}
	cells[len(m.Rows)] = last

	var b bytes.Buffer
	for from := 0; from < len(columns); from += fits {
		to := min(from+fits, len(columns))
		if from > 0 {
			b.WriteByte('\n')
		}
		line := func(name, style string, text func(i int) (string, string)) {
			b.WriteString(on.paint(style, name))
			b.WriteString(strings.Repeat(" ", label-utf8.RuneCountInString(name)))
			for i := from; i < to; i++ {
				word, ink := text(i)
				pad := cell - utf8.RuneCountInString(word)
				b.WriteString(strings.Repeat(" ", 1+pad/2))
				b.WriteString(on.paint(ink, word))
				if i < to-1 {
					b.WriteString(strings.Repeat(" ", pad-pad/2))
				}
			}
			b.WriteByte('\n')
		}
		line("WITHOUT", bold, func(i int) (string, string) { return columns[i], bold })
		for r := range cells {
			name, style := allOn, bold
			if r < len(m.Rows) {
				name, style = m.Rows[r].Name, ""
				if len(m.Rows[r].NeededBy) == 0 {
					style = red
				}
			}
			line(name, style, func(i int) (string, string) {
				switch word := cells[r][i]; word {
				case cellNeeded, cellFail:
					return word, red
				case cellPass:
					return word, green
				case "":
					return cellSame, dim
				default:
					return word, ""
				}
			})
		}
	}
	fmt.Fprintf(&b, "\n%s breaks without it  %s no difference  %s passes with all of them on\n", cellNeeded, cellSame, cellPass)
	m.end(&b, on, width)
	_, err := w.Write(b.Bytes())
	return err
}

// end is the last lines: what failed, or that all is well.
func (m *Matrix) end(b *bytes.Buffer, on ink, width int) {
	say := func(style, text string) {
		for _, l := range wrap(text, width) {
			fmt.Fprintln(b, on.paint(style, l))
		}
	}
	for _, v := range m.AllOn {
		if v.Verdict != Pass {
			say(red, fmt.Sprintf("%s: %s with all protections on (simrun run %s --design hardened shows why)", strings.ToUpper(string(v.Verdict)), v.Scenario, v.Scenario))
		}
	}
	for _, name := range m.Unneeded() {
		say(red, fmt.Sprintf("MISSED: no scenario breaks without %s: a protection that no scenario needs is deleted, or gets the scenario that it was built for", name))
	}
	if m.Stopped != "" {
		say(yellow, m.Stopped)
	}
	if m.Verdict == Pass {
		say(green, fmt.Sprintf("PASS  each of %d protections is needed, and with all of them on %d scenarios pass at %s each, in %s",
			len(m.Rows), len(m.AllOn), plural(m.Seeds, "seed"), span(m.Wall)))
	}
}

// storiesOf gives each story one column, and says which of them a scenario is
// in: "B1/resumed" is in that of "B1".
func storiesOf(ids []string) (columns []string, of map[string]int) {
	of = map[string]int{}
	at := map[string]int{}
	for _, id := range ids {
		story, _, _ := strings.Cut(id, "/")
		if _, known := at[story]; !known {
			at[story] = len(columns)
			columns = append(columns, story)
		}
		of[id] = at[story]
	}
	return columns, of
}
