package reports

import (
	"bytes"
	"fmt"
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
