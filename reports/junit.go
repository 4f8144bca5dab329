package reports

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Time    string        `xml:"time,attr"`
	Skipped *junitSkipped `xml:"skipped"`
	Failure *junitFailure `xml:"failure"`
	Out     *junitText    `xml:"system-out"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",cdata"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

type junitText struct {
	Text string `xml:",cdata"`
}

// JUnit writes the suite as JUnit XML: one test case per scenario. A failure
// carries the bug report; a break that the scenario declares and that came is
// a pass whose output says so.
func JUnit(w io.Writer, s *Suite) error {
	out := junitSuite{Name: s.Design, Tests: len(s.Scenarios), Time: fmt.Sprintf("%.3f", s.Totals.WallSeconds)}
	for i := range s.Scenarios {
		sc := &s.Scenarios[i]
		c := junitCase{Class: "simrun." + s.Design, Name: sc.title(), File: sc.File, Time: fmt.Sprintf("%.3f", sc.WallSeconds)}
		switch {
		case sc.Verdict != Pass && !sc.failed():
			out.Skipped++
			c.Skipped = &junitSkipped{"cut short: " + plural(sc.Runs, "run") + " until then"}
			if sc.Skipped != "" {
				c.Skipped.Message = sc.Skipped
			}
		case sc.Verdict != Pass:
			out.Failures++
			message := sc.Verdict.words()
			if v := sc.worst(); v != nil && v.Message != "" {
				message = v.Message
				if v.Invariant != "" {
					message = v.Invariant + ": " + message
				}
			}
			c.Failure = &junitFailure{Message: message, Type: string(sc.Verdict), Text: xmlText(BugReport(sc, s.Design))}
		case sc.declaresBreak():
			c.Out = &junitText{fmt.Sprintf("broke as declared under design %s: %s\n", s.Design, sc.Expected)}
			if v := sc.declared(); v != nil {
				c.Out.Text += when(v) + ": " + v.Message + "\n"
				if v.Replay != "" {
					c.Out.Text += "replay: " + v.Replay + "\n"
				}
			}
			c.Out.Text = xmlText(c.Out.Text)
		}
		out.Cases = append(out.Cases, c)
	}
	all := junitSuites{Name: "simrun", Tests: out.Tests, Failures: out.Failures, Time: out.Time, Suites: []junitSuite{out}}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// xmlText replaces what XML 1.0 cannot carry, even in CDATA: a message may
// quote any bytes.
func xmlText(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000 {
			return r
		}
		return 0xfffd
	}, text)
}
