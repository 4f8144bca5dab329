package reports

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Below storyWidth columns there is no room for what happens in a scenario; a
// name never shrinks below nameFloor. Columns are wideGap apart, one where that
// saves a cell from being cut.
const (
	wideGap    = 2
	storyWidth = 140
	storyFloor = 24
	nameFloor  = 10
)

// Table writes the suite for a person: a row per scenario and a line of
// totals. Width is in columns, 0 where lines may be of any length.
func Table(w io.Writer, s *Suite, width int, colour bool) error {
	var b bytes.Buffer
	if ran := s.ran(); len(ran.Scenarios) > 0 {
		suiteGrid(ran, width, ink(colour)).write(&b, width, ink(colour))
	}
	suiteTotals(&b, s, width, ink(colour))
	_, err := w.Write(b.Bytes())
	return err
}

// suiteGrid is the table of scenarios: the full one where it fits, else one
// that says the id alone where the id is enough.
func suiteGrid(s *Suite, width int, on ink) *grid {
	full := fullGrid(s, width, on)
	if width == 0 || total(full.widths(), wideGap) <= width || full.give[0] == storyColumn && width >= storyWidth {
		return full
	}
	return narrowGrid(s, on)
}

// ran is the suite without the scenarios that were not reached before it was
// stopped: there is nothing to say of them.
func (s *Suite) ran() *Suite {
	out := *s
	out.Scenarios = nil
	for i := range s.Scenarios {
		if sc := &s.Scenarios[i]; sc.Runs > 0 || !sc.Cut {
			out.Scenarios = append(out.Scenarios, *sc)
		}
	}
	return &out
}

const storyColumn = 8

func fullGrid(s *Suite, width int, on ink) *grid {
	g := &grid{
		head:  []string{"ID", "SCENARIO", "VERDICT", s.breaksHead(), "RUNS", "EVENTS", "SIM TIME", "SPEED"},
		right: []bool{4: true, 5: true, 6: true, 7: true},
		give:  []int{3, 1},
		floor: []int{14, nameFloor},
		tight: width < storyWidth,
	}
	story := width == 0 || width >= storyWidth
	for i := range s.Scenarios {
		story = story && s.Scenarios[i].Story != ""
	}
	if story {
		g.head = append(g.head, "WHAT HAPPENS")
		g.right = append(g.right, false)
		g.give = append([]int{storyColumn}, g.give...)
		g.floor = append([]int{storyFloor}, g.floor...)
	}
	holes := s.showsHoles()
	for i := range s.Scenarios {
		sc := &s.Scenarios[i]
		breaks := sc.shortBreak()
		if holes {
			breaks = sc.shortHoles()
		}
		row := []string{sc.ID, sc.Name, sc.word(), breaks,
			grouped(uint64(sc.Runs)), amount(float64(sc.Events)), span(sc.SimSeconds), speed(sc.SimSeconds, sc.WallSeconds)}
		if story {
			row = append(row, sc.Story)
		}
		g.rows = append(g.rows, row)
		g.styles = append(g.styles, styleOf(sc.Verdict, on, 2, 3, storyColumn))
	}
	return g
}

// narrowGrid has one column for what a scenario is called: the id, and the
// name beside it unless the id has a variant, which says more.
func narrowGrid(s *Suite, on ink) *grid {
	g := &grid{
		head:  []string{"SCENARIO", "VERDICT", s.breaksHead(), "RUNS", "EVENTS", "SIM TIME", "SPEED"},
		right: []bool{3: true, 4: true, 5: true, 6: true},
		give:  []int{0, 2},
		floor: []int{2 * nameFloor, 14},
		tight: true,
	}
	holes := s.showsHoles()
	for i := range s.Scenarios {
		sc := &s.Scenarios[i]
		name := sc.title()
		if strings.Contains(sc.ID, "/") {
			name = sc.ID
		}
		expected := sc.expectedBreak()
		if expected != "" && len(sc.Breaks) > 0 {
			expected = strings.Join(sc.Breaks, ", ")
		}
		if holes {
			expected = strings.Join(sc.Holes, ", ")
		}
		g.rows = append(g.rows, []string{name, sc.word(), expected,
			grouped(uint64(sc.Runs)), amount(float64(sc.Events)), span(sc.SimSeconds), speed(sc.SimSeconds, sc.WallSeconds)})
		g.styles = append(g.styles, styleOf(sc.Verdict, on, 1, 2, -1))
	}
	return g
}

// styleOf colours the cells of a row: its verdict, and dimly what is context.
func styleOf(v Verdict, on ink, verdict, dimOne, dimTwo int) func(int, string) string {
	return func(column int, text string) string {
		switch column {
		case verdict:
			return on.verdict(v, text)
		case dimOne, dimTwo:
			return on.paint(dim, text)
		}
		return text
	}
}

// suiteTotals writes the lines below the table.
func suiteTotals(w io.Writer, s *Suite, width int, on ink) {
	passed, declared, closed, failed, skipped, unreached := 0, 0, 0, 0, 0, 0
	for i := range s.Scenarios {
		sc := &s.Scenarios[i]
		if sc.Skipped != "" {
			skipped++
			continue
		}
		if sc.Cut && sc.Runs == 0 {
			unreached++
			continue
		}
		if sc.failed() {
			failed++
		}
		if sc.Verdict == Pass {
			passed++
			if sc.declaresBreak() {
				declared++
			} else if len(sc.Holes) > 0 {
				closed++
			}
		}
	}
	word := on.verdict(s.Verdict, strings.ToUpper(string(s.Verdict)))
	line := fmt.Sprintf("%s, design %s: %d passed", plural(len(s.Scenarios), "scenario"), s.Design, passed)
	if failed > 0 {
		line += ", " + on.verdict(s.Verdict, fmt.Sprintf("%d failed", failed))
	}
	if skipped > 0 {
		line += ", " + on.paint(yellow, fmt.Sprintf("%d skipped", skipped))
	}
	if cut := len(s.Scenarios) - passed - failed - skipped - unreached; cut > 0 {
		line += ", " + on.paint(yellow, fmt.Sprintf("%d cut short", cut))
	}
	if unreached > 0 {
		line += ", " + on.paint(yellow, fmt.Sprintf("%d not reached", unreached))
	}
	t := &s.Totals
	fmt.Fprintf(w, "\n%s  %s\n", word, line)
	for _, l := range wrap(fmt.Sprintf("%s, %s events, %s of simulated time in %s: %s events/s, %sx real time",
		plural(t.Runs, "run"), amount(float64(t.Events)), span(t.SimSeconds), span(t.WallSeconds), amount(t.EventsPerSecond), amount(t.SimOverReal)), width) {
		fmt.Fprintln(w, l)
	}
	if s.Note != "" {
		for _, l := range wrap(s.Note, width) {
			fmt.Fprintln(w, l)
		}
	}
	remarks(w, s, width, on)
	if foot := s.foot(); foot != "" {
		for _, l := range wrap(foot, width) {
			fmt.Fprintln(w, on.paint(dim, l))
		}
	}
	if declared > 0 {
		note := fmt.Sprintf("Expected breaks among the passes: %d. There, design %s is known to break that invariant; the run checks that it does, and that nothing else breaks.", declared, s.Design)
		for _, l := range wrap(note, width) {
			fmt.Fprintln(w, on.paint(dim, l))
		}
	}
	if closed > 0 && s.showsHoles() {
		note := fmt.Sprintf("DOCUMENT BREAKS names the invariants that the design document breaks in that story. Here they held, in %s; --design document shows them break.", plural(closed, "scenario"))
		for _, l := range wrap(note, width) {
			fmt.Fprintln(w, on.paint(dim, l))
		}
	}
	if s.Stopped != "" {
		for _, l := range wrap(s.Stopped, width) {
			fmt.Fprintln(w, on.paint(yellow, l))
		}
	}
}

// remarks writes what was not decided, and why.
func remarks(w io.Writer, s *Suite, width int, on ink) {
	for i := range s.Scenarios {
		sc := &s.Scenarios[i]
		var lines []string
		if sc.Skipped != "" {
			lines = append(lines, "skipped: "+sc.Skipped)
		}
		for _, u := range sc.Undecided {
			lines = append(lines, "undecided: "+u)
		}
		for _, line := range append(lines, sc.Notes...) {
			for _, l := range wrap(sc.ID+" "+line, width) {
				fmt.Fprintln(w, on.paint(dim, l))
			}
		}
	}
}

// grid is a table of plain cells that knows which of its columns may shrink.
type grid struct {
	head   []string
	rows   [][]string
	right  []bool       // right-aligned columns: numbers
	give   []int        // columns that may shrink, the first to shrink first
	floor  []int        // how far each of them may
	tight  bool         // its columns may stand one apart
	wraps  map[int]bool // the columns whose cells are wrapped instead of cut
	styles []func(column int, text string) string
}

// write renders the grid within width columns (0: any) where its floors allow.
func (g *grid) write(b *bytes.Buffer, width int, on ink) {
	gap := wideGap
	widths := g.widths()
	if width > 0 {
		over := func() int { return total(widths, gap) - width }
		if over() > 0 && g.tight {
			gap = 1
		}
		for i, column := range g.give {
			if cut := min(over(), widths[column]-max(g.floor[i], utf8.RuneCountInString(g.head[column]))); cut > 0 {
				widths[column] -= cut
			}
			if g.wraps[column] {
				widths[column] = g.wrapped(column, widths[column])
			}
		}
	}
	padding := make([]tw.Padding, len(g.head))
	align := make(tw.Alignment, len(g.head))
	for i := range g.head {
		padding[i] = tw.Padding{Right: strings.Repeat(" ", gap), Overwrite: true}
		if i == len(g.head)-1 {
			padding[i] = tw.PaddingNone
		}
		align[i] = tw.AlignLeft
		if i < len(g.right) && g.right[i] {
			align[i] = tw.AlignRight
		}
	}
	var raw bytes.Buffer
	t := tablewriter.NewTable(&raw,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Symbols: tw.NewSymbols(tw.StyleLight),
			Settings: tw.Settings{
				Separators: tw.Separators{BetweenColumns: tw.Off, BetweenRows: tw.Off, ShowHeader: tw.On},
				Lines:      tw.Lines{ShowHeaderLine: tw.On, ShowTop: tw.Off, ShowBottom: tw.Off, ShowFooterLine: tw.Off},
			},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone), // cells are cut to width here: wrapping would lose their colours
		tablewriter.WithTrimSpace(tw.Off),
		tablewriter.WithHeaderPaddingPerColumn(padding),
		tablewriter.WithRowPaddingPerColumn(padding),
		tablewriter.WithAlignment(align),
	)
	head := make([]string, len(g.head))
	for i, h := range g.head {
		head[i] = on.paint(bold, h)
	}
	t.Header(head)
	for r, row := range g.rows {
		cells := make([]string, len(row))
		for i, c := range row {
			if g.wraps[i] {
				cells[i] = strings.Join(wrap(c, widths[i]), "\n")
				continue
			}
			cells[i] = shorten(c, widths[i])
			if r < len(g.styles) && g.styles[r] != nil {
				cells[i] = g.styles[r](i, cells[i])
			}
		}
		t.Append(cells)
	}
	t.Render()
	for line := range strings.Lines(raw.String()) {
		b.WriteString(strings.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
}

// wrapped is how wide a column's longest line is once its cells are wrapped: a
// word that is longer than the width stays whole, and words rarely fill a line.
func (g *grid) wrapped(column, width int) int {
	longest := utf8.RuneCountInString(g.head[column])
	for _, row := range g.rows {
		for _, l := range wrap(row[column], width) {
			longest = max(longest, utf8.RuneCountInString(l))
		}
	}
	return longest
}

func (g *grid) widths() []int {
	widths := make([]int, len(g.head))
	for i, h := range g.head {
		widths[i] = utf8.RuneCountInString(h)
	}
	for _, row := range g.rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	return widths
}

func total(widths []int, gap int) int {
	sum := gap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// shorten cuts text to width columns and says so with an ellipsis.
func shorten(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	runes := []rune(text)
	return strings.TrimRight(string(runes[:max(width-1, 0)]), " ") + "…"
}

// Wrapped breaks text between words into lines of at most width columns, 0 for
// any.
func Wrapped(text string, width int) string { return strings.Join(wrap(text, width), "\n") }

// wrap breaks text between words into lines of at most width columns; a word
// that is longer stays whole. Width 0 breaks nothing.
func wrap(text string, width int) []string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
