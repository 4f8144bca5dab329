package reports

import (
	"os"

	"golang.org/x/term"
)

// Terminal is what is known of where a report goes.
type Terminal struct {
	Is     bool // a person's terminal, not a pipe or a file
	Width  int  // columns; 0 where lines may be of any length
	Colour bool
	Live   bool // a line may be rewritten in place: progress
}

// Look inspects a file that a report goes to. NO_COLOR (whatever it is set to,
// unless empty) and TERM=dumb switch colour off; CI switches off colour and
// progress, because a log keeps every rewritten line. noColour is the flag.
func Look(f *os.File, noColour bool) Terminal {
	t := Terminal{Is: term.IsTerminal(int(f.Fd()))}
	if !t.Is {
		return t
	}
	t.Width = 80
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		t.Width = w
	}
	dumb := os.Getenv("TERM") == "dumb"
	ci := os.Getenv("CI") != "" && os.Getenv("CI") != "false"
	t.Colour = !noColour && os.Getenv("NO_COLOR") == "" && !dumb && !ci
	t.Live = !dumb && !ci
	return t
}

// ink colours words, or leaves them alone.
type ink bool

const (
	red    = "31"
	green  = "32"
	yellow = "33"
	dim    = "2"
	bold   = "1"
)

func (on ink) paint(style, words string) string {
	if !on || words == "" {
		return words
	}
	return "\x1b[" + style + "m" + words + "\x1b[0m"
}

// verdict colours a verdict's word by how grave it is.
func (on ink) verdict(v Verdict, words string) string {
	switch v {
	case Pass:
		return on.paint(green, words)
	case Missed, Unknown:
		return on.paint(yellow, words)
	}
	return on.paint(red, words)
}
