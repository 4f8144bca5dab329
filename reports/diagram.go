package reports

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"vigil/core"
)

// Diagram is a space-time diagram as text: a column for each process, time
// downwards, arrows for messages.
type Diagram struct {
	Lanes []string // what each column is called
	Rows  []DiagramRow
}

// LaneState is how a process's line is drawn from a row on.
type LaneState uint8

// The states of a line.
const (
	LaneSame   LaneState = iota
	LaneAlive            // │
	LaneStill            // ┊ paused or frozen
	LaneCut              // ╎ it runs, and its link is cut
	LaneAbsent           // nothing: no process
	laneStates           // how many
)

var laneMarks = [laneStates]rune{LaneAlive: '│', LaneStill: '┊', LaneCut: '╎', LaneAbsent: ' '}

// DiagramRow is one thing that happened.
type DiagramRow struct {
	At   core.Time
	Lane int // whose column; below 0 it is the world's, across all
	// To is the column that a message goes to, below 0 where it is none; Lost
	// says that it does not arrive.
	To      int
	Lost    bool
	Label   string // on the arrow
	Words   string // beside the mark
	Becomes LaneState
	Summary string // what came before it and is only counted
	Broke   bool   // the violation
}

const (
	diagramTime   = 12 // columns of the time
	diagramNarrow = 80
)

// Write writes the diagram.
func (d *Diagram) Write(w io.Writer, width int, colour bool) error {
	if width == 0 {
		width = 120
	}
	width = max(width, diagramNarrow)
	on := ink(colour)
	each := max(8, min(46, (width-diagramTime-1)/max(1, len(d.Lanes))))
	place := func(lane int) int { return lane * each }
	state := make([]LaneState, len(d.Lanes))
	for i := range state {
		state[i] = LaneAbsent
	}
	var b bytes.Buffer
	blank := strings.Repeat(" ", diagramTime+1)

	head := []rune(strings.Repeat(" ", each*len(d.Lanes)))
	for i, name := range d.Lanes {
		copy(head[place(i):], []rune(shorten(name, each-2)))
	}
	fmt.Fprintf(&b, "%s%s\n", blank, on.paint(bold, strings.TrimRight(string(head), " ")))

	lines := func() []rune {
		line := []rune(strings.Repeat(" ", each*len(d.Lanes)))
		for i := range d.Lanes {
			line[place(i)] = laneMarks[state[i]]
		}
		return line
	}
	put := func(time string, line []rune, style string) {
		fmt.Fprintf(&b, "%s %s\n", time, on.paint(style, strings.TrimRight(string(line), " ")))
	}
	across := func(time, mark, text, style string) {
		for i, part := range wrap(text, width-diagramTime-6) {
			if i > 0 {
				time, mark = strings.Repeat(" ", diagramTime), strings.Repeat(" ", utf8.RuneCountInString(mark))
			}
			fmt.Fprintf(&b, "%s %s\n", time, on.paint(style, mark+" "+part))
		}
	}
	for i := range d.Rows {
		r := &d.Rows[i]
		time := fmt.Sprintf("%11.3fs", float64(r.At)/1e9)
		if r.Summary != "" {
			across(fmt.Sprintf("%12s", "..."), " ", r.Summary, dim)
		}
		switch {
		case r.Broke:
			across(time, "▲▲", r.Words, red)
			continue
		case r.Lane < 0 || r.Lane >= len(d.Lanes):
			across(time, "══", r.Words, bold)
			continue
		}
		if r.Becomes != LaneSame && r.Becomes != LaneAbsent {
			state[r.Lane] = r.Becomes
		}
		style := ""
		if r.Lost {
			style = yellow
		}
		if r.To >= 0 && r.To < len(d.Lanes) && r.To != r.Lane {
			line := lines()
			arrow(line, place(r.Lane), place(r.To), r.Label, r.Lost)
			put(time, line, style)
			if r.Words == "" {
				continue
			}
			time = strings.Repeat(" ", diagramTime)
		}
		// The words stand beside their own line, up to the next one.
		room := each - 3
		if r.Lane == len(d.Lanes)-1 {
			room = max(room, width-diagramTime-1-place(r.Lane)-3)
		}
		for k, part := range wrap(r.Words, room) {
			line := lines()
			from := place(r.Lane)
			if k == 0 {
				line[from] = '●'
				if r.Becomes == LaneAbsent {
					line[from] = '✖'
				}
			} else if r.Becomes == LaneAbsent {
				line[from] = ' '
			}
			text := []rune(part)
			for len(line) < from+2+len(text) {
				line = append(line, ' ')
			}
			copy(line[from+2:], text)
			put(time, line, "")
			time = strings.Repeat(" ", diagramTime)
		}
		if r.Becomes == LaneAbsent {
			state[r.Lane] = LaneAbsent
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// arrow draws a message from one line to another, its label in the middle.
func arrow(line []rune, from, to int, label string, lost bool) {
	low, high := min(from, to), max(from, to)
	for i := low + 1; i < high; i++ {
		if line[i] == ' ' {
			line[i] = '─'
		} else {
			line[i] = '┼'
		}
	}
	head := '▶'
	if to < from {
		head = '◀'
	}
	switch {
	case !lost && to > from:
		line[high-1] = head
	case !lost:
		line[low+1] = head
	default:
		line[(low+high)/2+3+utf8.RuneCountInString(label)/2] = '✗'
	}
	text := []rune(" " + label + " ")
	if len(text) < high-low-4 {
		copy(line[low+(high-low-len(text))/2:], text)
	}
}
