package reports

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"vigil/reports/spacetime"
)

// maxReported bounds how many failing scenarios are spelled out on a terminal;
// the JSON has all of them.
const maxReported = 8

// FailureReport writes what went wrong, one paragraph per failing scenario,
// the gravest last, so that the last lines of a failing run are a bug report
// by themselves. It writes nothing where nothing failed.
func FailureReport(w io.Writer, s *Suite, width int, colour bool) error {
	failed := s.Failed()
	if len(failed) == 0 {
		return nil
	}
	var b bytes.Buffer
	if over := len(failed) - maxReported; over > 0 {
		fmt.Fprintf(&b, "\n(%s more than the %d below failed; the table and --json have all)\n", plural(over, "scenario"), maxReported)
		failed = failed[over:]
	}
	for i, sc := range failed {
		b.WriteByte('\n')
		failure(&b, sc, s.Design, width, ink(colour), i == len(failed)-1)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// VerdictLine is the one line about a scenario that passed.
func VerdictLine(sc *Scenario, colour bool) string {
	on := ink(colour)
	line := on.verdict(sc.Verdict, strings.ToUpper(string(sc.Verdict))) + "  " + sc.title()
	if v := sc.declared(); v != nil {
		line += fmt.Sprintf(": %s broke, as the scenario declares", v.Invariant)
	}
	return line
}

// BugReport is the same paragraph as plain text, for one scenario.
func BugReport(sc *Scenario, design string) string {
	var b bytes.Buffer
	failure(&b, sc, design, 0, false, true)
	return b.String()
}

// inWords says what a design is: "design document" alone reads like a paper.
func inWords(design string) string {
	switch design {
	case "document":
		return `"document" (as the design document has it)`
	case "hardened":
		return `"hardened" (every protection on)`
	}
	return fmt.Sprintf("%q", design)
}

// failure writes one paragraph; led says that what led there is told too.
func failure(b *bytes.Buffer, sc *Scenario, design string, width int, on ink, led bool) {
	head := fmt.Sprintf("%s  %s, design %s", strings.ToUpper(string(sc.Verdict)), sc.title(), inWords(design))
	for i, l := range wrap(head, width) {
		if i == 0 { // the first line holds the verdict, and the name where it fits
			word, rest, _ := strings.Cut(l, " ")
			rest = strings.TrimLeft(rest, " ")
			if name, of := strings.CutPrefix(rest, sc.title()); of {
				rest = on.paint(bold, sc.title()) + name
			}
			l = on.verdict(sc.Verdict, word) + "  " + rest
		}
		fmt.Fprintln(b, l)
	}
	v := sc.worst()
	if v == nil {
		field(b, "verdict", string(sc.Verdict)+": "+sc.Verdict.words(), width)
		field(b, "expected", sc.Expected, width)
		return
	}
	// What a scenario expects beside the invariants is reported like one.
	if kind, own := strings.CutPrefix(v.Invariant, "expect "); own {
		field(b, "verdict", string(sc.Verdict)+": what the scenario expects did not come", width)
		field(b, "expects", kind, width)
	} else {
		field(b, "verdict", string(sc.Verdict)+": "+sc.Verdict.words(), width)
		field(b, "invariant", v.Invariant, width)
	}
	if v.Promise != "" {
		field(b, "promises", v.Promise, width)
	}
	if v.Token != "" || v.Capsule != "" { // without one it is about all runs, not about one
		field(b, "when", when(v), width)
	}
	if len(v.Actors) > 0 {
		field(b, "who", strings.Join(v.Actors, ", "), width)
	}
	field(b, "reason", v.Message, width)
	if led && len(v.Led) > 0 {
		before(b, v.Led, width)
	}
	if sc.declaresBreak() {
		field(b, "expected", sc.Expected, width)
	}
	for _, n := range sc.Notes {
		field(b, "note", n, width)
	}
	if sc.FailedRuns > 0 && sc.Runs > 1 {
		field(b, "failed", fmt.Sprintf("in %s of %s runs", grouped(uint64(sc.FailedRuns)), grouped(uint64(sc.Runs))), width)
	}
	if others := sc.undeclared() - 1; others > 0 {
		text := plural(others, "more example") + " in --json"
		if sc.FailedRuns > others {
			text += ", the lowest seeds of each invariant"
		}
		field(b, "also", text, width)
	}
	if v.Capsule != "" {
		field(b, "capsule", v.Capsule, width)
	}
	if v.Replay != "" {
		// Never wrapped: it is there to be copied.
		field(b, "replay", on.paint(bold, v.Replay), 0)
	}
	if v.Shrink != "" {
		field(b, "shrink", on.paint(bold, v.Shrink), 0)
	}
}

// when says where in which run.
func when(v *Violation) string {
	if v.Run > 0 {
		return fmt.Sprintf("at %.6fs of virtual time, run %d", v.AtSeconds, v.Run)
	}
	return fmt.Sprintf("at %.6fs of virtual time, seed %d", v.AtSeconds, v.Seed)
}

// field writes one labelled line; what does not fit goes on below its start.
func field(b *bytes.Buffer, label, text string, width int) {
	const indent = 13
	if width > 0 {
		width = max(width-indent, 30)
	}
	var lines []string
	for part := range strings.Lines(text) {
		lines = append(lines, wrap(strings.TrimRight(part, "\n"), width)...)
	}
	for i, l := range lines {
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(b, "  %-*s%s\n", indent-2, label, l)
	}
}

// before writes what led to a violation: time, actor, words, which go on below
// their own start.
func before(b *bytes.Buffer, led []spacetime.Moment, width int) {
	names := 0
	for i := range led {
		names = max(names, len(led[i].Who))
	}
	indent := 13 + 10 + 2 + names + 2
	room := 0
	if width > 0 {
		room = max(width-indent, 24)
	}
	label := "before"
	for i := range led {
		for k, l := range wrap(led[i].Words, room) {
			if k > 0 {
				fmt.Fprintf(b, "%*s%s\n", indent, "", l)
				continue
			}
			fmt.Fprintf(b, "  %-11s%9.3fs  %-*s  %s\n", label, led[i].At, names, led[i].Who, l)
			label = ""
		}
	}
}

// worst is the example that the report shows: the gravest that the scenario
// does not declare, the earliest of those.
func (s *Scenario) worst() *Violation {
	var found *Violation
	for i := range s.Violations {
		v := &s.Violations[i]
		if v.Declared {
			continue
		}
		if found == nil || v.Verdict.rank() < found.Verdict.rank() {
			found = v
		}
	}
	return found
}

// Reported is the example that the report of a failing scenario shows, nil
// where there is none.
func (s *Scenario) Reported() *Violation { return s.worst() }

func (s *Scenario) undeclared() int {
	n := 0
	for i := range s.Violations {
		if !s.Violations[i].Declared {
			n++
		}
	}
	return n
}

// declared is the example of the break that the scenario declares, nil where
// there is none.
func (s *Scenario) declared() *Violation {
	for i := range s.Violations {
		if s.Violations[i].Declared {
			return &s.Violations[i]
		}
	}
	return nil
}

// Examples writes the command that replays the first run of each scenario, and
// every example of a break that the suite kept, those of expected breaks first.
func Examples(w io.Writer, s *Suite, width int, colour bool) error {
	var b bytes.Buffer
	on := ink(colour)
	l := &Listing{Head: []string{"SCENARIO", "ITS FIRST RUN AGAIN"}}
	for i := range s.Scenarios {
		if sc := &s.Scenarios[i]; sc.Replay != "" {
			l.Rows = append(l.Rows, []string{sc.title(), sc.Replay})
		}
	}
	if len(l.Rows) > 0 {
		b.WriteByte('\n')
		l.Write(&b, 0, colour) // never cut: commands are there to be copied
	}
	for _, declared := range []bool{true, false} {
		for i := range s.Scenarios {
			sc := &s.Scenarios[i]
			for j := range sc.Violations {
				v := &sc.Violations[j]
				if v.Declared != declared {
					continue
				}
				word := on.verdict(v.Verdict, string(v.Verdict))
				if declared {
					word = on.paint(dim, "expected break")
				}
				fmt.Fprintf(&b, "\n%s: %s %s\n", sc.title(), word, v.Invariant)
				if v.Token != "" {
					field(&b, "when", when(v), width)
				}
				if len(v.Actors) > 0 {
					field(&b, "who", strings.Join(v.Actors, ", "), width)
				}
				field(&b, "reason", v.Message, width)
				if v.Replay != "" {
					field(&b, "replay", v.Replay, 0)
				}
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
