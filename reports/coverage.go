package reports

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Coverage is what the runs of a scenario or a campaign met: fired-or-fail. A
// fault that never took hold, a protection that changed nothing, a state that no
// instance was in: a green verdict says nothing about those.
type Coverage struct {
	Runs int `json:"runs"`
	// Faults, States and Protections say of each that was met in how many runs;
	// Protections in how many of Probed runs, each played again without it.
	Faults      map[string]int `json:"faults"`
	States      map[string]int `json:"states"`
	Protections map[string]int `json:"protections"`
	Probed      int            `json:"probed"`
	// What could have come and did not: faults of the scenario's steps or of its
	// menu, protections that were on, states.
	NoFault      []string `json:"faults_not_met"`
	NoState      []string `json:"states_not_met"`
	NoProtection []string `json:"protections_not_met"`
}

// merge adds what other runs of the same met.
func (c *Coverage) merge(o *Coverage) {
	c.Runs += o.Runs
	c.Probed += o.Probed
	for _, x := range []struct {
		met   *map[string]int
		none  *[]string
		other map[string]int
		nones []string
	}{{&c.Faults, &c.NoFault, o.Faults, o.NoFault}, {&c.States, &c.NoState, o.States, o.NoState}, {&c.Protections, &c.NoProtection, o.Protections, o.NoProtection}} {
		if *x.met == nil {
			*x.met = map[string]int{}
		}
		for name, runs := range x.other {
			(*x.met)[name] += runs
		}
		*x.none = slices.DeleteFunc(union(*x.none, x.nones), func(name string) bool { return (*x.met)[name] > 0 })
		if *x.none == nil {
			*x.none = []string{}
		}
	}
}

// fewRuns is how many runs say what never comes.
const fewRuns = 25

// write writes the coverage of one scenario as labelled lines.
func (c *Coverage) write(b *bytes.Buffer, width int) {
	for _, x := range []struct {
		label string
		met   map[string]int
		none  []string
		verb  string
	}{{"faults", c.Faults, c.NoFault, "fired"}, {"states", c.States, c.NoState, "met"}, {"protection", c.Protections, c.NoProtection, "acted"}} {
		all := len(x.met) + len(x.none)
		if all == 0 || x.label == "protection" && c.Probed == 0 {
			continue
		}
		text := fmt.Sprintf("%d of %d %s", len(x.met), all, x.verb)
		switch {
		case len(x.met) > 0 && len(x.met) < len(x.none):
			text += ": " + strings.Join(slices.Sorted(maps.Keys(x.met)), ", ")
		case len(x.none) > 0 && c.Runs >= fewRuns: // a search that found something in its third run has met little
			text += "; never: " + strings.Join(x.none, ", ")
		}
		field(b, x.label, text, width)
	}
}

// foot is one line on what all the scenarios of a suite met together.
func (s *Suite) foot() string {
	all := Coverage{}
	for i := range s.Scenarios {
		if c := s.Scenarios[i].Coverage; c != nil {
			all.merge(c)
		}
	}
	if all.Runs == 0 {
		return ""
	}
	var parts []string
	if n := len(all.Faults) + len(all.NoFault); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d faults fired", len(all.Faults), n))
	}
	parts = append(parts, fmt.Sprintf("%d of %d states of an instance's life met", len(all.States), len(all.States)+len(all.NoState)))
	if n := len(all.Protections) + len(all.NoProtection); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d protections that were asked for acted", len(all.Protections), n))
	}
	return strings.Join(parts, ", ") + "."
}

// Known are the names of all that there is to meet.
type Known struct{ Faults, States, Protections []string }

// WriteCoverage writes what each fault, state and protection was met by, and
// what no scenario reaches.
func WriteCoverage(w io.Writer, s *Suite, known Known, width int, colour bool) error {
	on := ink(colour)
	var b bytes.Buffer
	for _, x := range []struct {
		head, none string
		known      []string
		of         func(c *Coverage) map[string]int
	}{
		{"FAULT", "fires in no scenario", known.Faults, func(c *Coverage) map[string]int { return c.Faults }},
		{"STATE OF A LIFE", "no scenario comes there", known.States, func(c *Coverage) map[string]int { return c.States }},
		{"PROTECTION", "acts in no scenario", known.Protections, func(c *Coverage) map[string]int { return c.Protections }},
	} {
		by := map[string][]string{}
		for i := range s.Scenarios {
			sc := &s.Scenarios[i]
			if sc.Coverage == nil {
				continue
			}
			for name := range x.of(sc.Coverage) {
				by[name] = append(by[name], sc.ID)
			}
		}
		if len(x.known) == 0 {
			continue
		}
		g := &grid{head: []string{x.head, "SCENARIOS", "WHICH"}, right: []bool{1: true}, give: []int{2}, floor: []int{12}, wraps: map[int]bool{2: true}}
		for _, name := range x.known {
			ids := by[name]
			which := strings.Join(storiesIn(ids), " ")
			if len(ids) == 0 {
				which = x.none
			}
			g.rows = append(g.rows, []string{name, fmt.Sprint(len(ids)), which})
			g.styles = append(g.styles, func(column int, text string) string {
				if len(ids) == 0 {
					return on.paint(yellow, text)
				}
				return text
			})
		}
		b.WriteByte('\n')
		g.write(&b, width, on)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// storiesIn names scenarios by their stories: A8 for A8/pid and A8/uuid.
func storiesIn(ids []string) []string {
	var out []string
	for _, id := range ids {
		story, _, _ := strings.Cut(id, "/")
		if len(out) == 0 || out[len(out)-1] != story {
			out = append(out, story)
		}
	}
	return out
}
