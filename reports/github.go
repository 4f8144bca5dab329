package reports

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// annotationLimit is how many error annotations one step may have before the
// service drops the rest.
const annotationLimit = 10

// Annotations writes one workflow command of GitHub Actions per failing
// scenario, the gravest first, because the service shows the first few only.
func Annotations(w io.Writer, s *Suite) error {
	var b bytes.Buffer
	failed := s.Failed()
	for i := len(failed) - 1; i >= 0 && len(failed)-i <= annotationLimit; i-- {
		sc := failed[i]
		where := ""
		if sc.File != "" {
			where = "file=" + escapeProperty(sc.File) + ","
		}
		fmt.Fprintf(&b, "::error %stitle=%s::%s\n", where,
			escapeProperty(fmt.Sprintf("simrun: %s: %s", sc.title(), sc.Verdict)), escapeData(strings.TrimRight(BugReport(sc, s.Design), "\n")))
	}
	_, err := w.Write(b.Bytes())
	return err
}

var (
	dataEscapes     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func escapeData(s string) string     { return dataEscapes.Replace(s) }
func escapeProperty(s string) string { return propertyEscapes.Replace(s) }

// StepSummary writes the suite as Markdown for the page of a CI run.
func StepSummary(w io.Writer, s *Suite) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "### simrun: %s under design %s\n\n", s.Verdict, s.Design)
	b.WriteString("| id | scenario | verdict | expected | runs | events | simulated |\n|---|---|---|---|---:|---:|---:|\n")
	for i := range s.Scenarios {
		sc := &s.Scenarios[i]
		verdict := string(sc.Verdict)
		if sc.Verdict != Pass {
			verdict = "**" + verdict + "**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", markdown(sc.ID), markdown(sc.Name), verdict, markdown(sc.Expected),
			grouped(uint64(sc.Runs)), amount(float64(sc.Events)), span(sc.SimSeconds))
	}
	t := &s.Totals
	fmt.Fprintf(&b, "\n%s, %s events, %s simulated in %s, %sx real time\n", plural(t.Runs, "run"), amount(float64(t.Events)), span(t.SimSeconds), span(t.WallSeconds), amount(t.SimOverReal))
	if s.Stopped != "" {
		fmt.Fprintf(&b, "\n%s\n", markdown(s.Stopped))
	}
	for _, sc := range s.Failed() {
		// Indented code: a fence could be closed by the text itself.
		b.WriteString("\n")
		for line := range strings.Lines(BugReport(sc, s.Design)) {
			b.WriteString("    " + line)
		}
	}
	b.WriteString("\n")
	_, err := w.Write(b.Bytes())
	return err
}

var cellEscapes = strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "`", "'")

func markdown(s string) string { return cellEscapes.Replace(s) }
