package reports

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"vigil/reports/page"
	"vigil/reports/spacetime"
)

// The suite page: what the table says, what broke, what was covered, and the
// timeline of each example, in one file.

//go:embed suitepage.js
var suiteScript string

//go:embed suitepage.css
var suiteStyle string

// The bounds of a suite page. Examples beyond them are listed with the command
// that replays them.
const (
	maxTimelines     = 64
	maxTimelineBytes = 16 << 20
)

// SuitePage is a suite with the timelines of some of its runs.
type SuitePage struct {
	Suite *Suite

	runs  []suiteRun
	bytes int
	left  int
}

type suiteRun struct {
	Scenario int    `json:"scenario"`
	Seed     string `json:"seed"`
	Name     string `json:"name"` // in links
	data     []byte
}

// Full reports whether no more timelines fit.
func (p *SuitePage) Full() bool { return len(p.runs) >= maxTimelines || p.bytes >= maxTimelineBytes }

// Leave counts an example whose timeline does not fit.
func (p *SuitePage) Leave() { p.left++ }

// Add adds the timeline of one run of a scenario, by its place in the suite.
func (p *SuitePage) Add(scenario int, seed uint64, d *spacetime.Diagram) error {
	if p.Full() {
		p.Leave()
		return nil
	}
	data, err := d.Data()
	if err != nil {
		return err
	}
	p.bytes += len(data)
	p.runs = append(p.runs, suiteRun{scenario, fmt.Sprint(seed), fmt.Sprintf("%s.%d", p.Suite.Scenarios[scenario].ID, seed), data})
	return nil
}

// The page's own model: the suite as --json has it, and beside each scenario
// what only people read.
type pageModel struct {
	Suite *Suite     `json:"suite"`
	Rows  []pageRow  `json:"rows"`
	Runs  []suiteRun `json:"runs"`
	Left  int        `json:"left"`
	Stop  string     `json:"stopped,omitempty"`
}

type pageRow struct {
	Title    string        `json:"title"`
	Story    string        `json:"story"`
	Word     string        `json:"word"`
	Failed   bool          `json:"failed"`
	Breaks   []string      `json:"breaks"`
	Words    string        `json:"words"`           // the verdict in words
	Report   int           `json:"report"`          // the violation that its report shows, -1 for none
	Examples []pageExample `json:"examples"`        // beside suite.scenarios[i].violations
	File     string        `json:"file,omitempty"`  // empty where it is built in
	First    string        `json:"first,omitempty"` // the command that replays its first run
}

type pageExample struct {
	Seed     string  `json:"seed"`
	Verdict  Verdict `json:"verdict"`
	Declared bool    `json:"declared"`
	Replay   string  `json:"replay,omitempty"`
	Run      int     `json:"run"` // whose timeline shows it, -1 for none
}

func (p *SuitePage) model() *pageModel {
	m := &pageModel{Suite: p.Suite, Rows: []pageRow{}, Runs: p.runs, Left: p.left, Stop: p.Suite.Stopped}
	if m.Runs == nil {
		m.Runs = []suiteRun{}
	}
	for i := range p.Suite.Scenarios {
		sc := &p.Suite.Scenarios[i]
		row := pageRow{Title: sc.title(), Story: sc.Story, Word: sc.word(), Failed: sc.failed(), Breaks: sc.Breaks, Words: sc.Verdict.words(), Report: -1, Examples: []pageExample{}, File: sc.File, First: sc.Replay}
		if row.Breaks == nil {
			row.Breaks = []string{}
		}
		worst := sc.worst()
		for k := range sc.Violations {
			v := &sc.Violations[k]
			if v == worst {
				row.Report = k
			}
			e := pageExample{fmt.Sprint(v.Seed), v.Verdict, v.Declared, v.Replay, -1}
			for r := range p.runs {
				if p.runs[r].Scenario == i && p.runs[r].Seed == e.Seed && v.Token != "" {
					e.Run = r
				}
			}
			row.Examples = append(row.Examples, e)
		}
		m.Rows = append(m.Rows, row)
	}
	return m
}

// Write writes the page.
func (p *SuitePage) Write(w io.Writer) error {
	model, err := json.Marshal(p.model()) // it escapes < and >, so it cannot end its block
	if err != nil {
		return err
	}
	out := page.Page{
		Title:   fmt.Sprintf("simrun: %s, design %s", strings.ToUpper(string(p.Suite.Verdict)), p.Suite.Design),
		Styles:  append(spacetime.Styles(), suiteStyle),
		Scripts: append(spacetime.Scripts(), suiteScript),
		Keys:    spacetime.Keys(),
		Body: func(w io.Writer) error {
			if err := spacetime.Header(w, "a suite of scenarios"); err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "<main id=\"suite\"><noscript>This page needs JavaScript.</noscript></main>\n<main id=\"run\" hidden></main>\n<script type=\"application/json\" id=\"model\">%s</script>\n", model); err != nil {
				return err
			}
			for i := range p.runs {
				if err := spacetime.Block(w, fmt.Sprintf("run-%d", i), p.runs[i].data); err != nil {
					return err
				}
			}
			return nil
		},
	}
	return out.Write(w)
}
