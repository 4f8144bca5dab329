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

// Write renders the listing.
func (l *Listing) Write(w io.Writer, width int, colour bool) error {
	last := len(l.Head) - 1
	g := &grid{head: l.Head, rows: l.Rows, give: []int{last}, floor: []int{max(20, utf8.RuneCountInString(l.Head[last]))}, wrapAt: last + 1}
	var b bytes.Buffer
	g.write(&b, width, ink(colour))
	_, err := w.Write(b.Bytes())
	return err
}
