package reports

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// Listing is a table of names and what they mean, one line each. On a terminal
// that is too narrow the last column goes on below itself; in a pipe a line is
// always one thing.
type Listing struct {
	Head []string
	Rows [][]string
}

// phraseWidth is how narrow a column in the middle may become.
const phraseWidth = 18

// Write renders the listing.
func (l *Listing) Write(w io.Writer, width int, colour bool) error {
	last := len(l.Head) - 1
	g := &grid{head: l.Head, rows: l.Rows, wraps: map[int]bool{last: true}}
	// The columns before it give first where one of them is longer than a phrase:
	// a list of names goes on below itself as well as a sentence does.
	for column := last - 1; column > 0; column-- {
		g.give, g.floor = append(g.give, column), append(g.floor, phraseWidth)
		g.wraps[column] = true
	}
	g.give, g.floor = append(g.give, last), append(g.floor, max(20, utf8.RuneCountInString(l.Head[last])))
	var b bytes.Buffer
	g.write(&b, width, ink(colour))
	_, err := w.Write(b.Bytes())
	return err
}

// Paragraph writes a text, broken between words where there is a width.
func Paragraph(w io.Writer, text string, width int) error {
	for _, l := range wrap(text, width) {
		if _, err := io.WriteString(w, l+"\n"); err != nil {
			return err
		}
	}
	return nil
}
