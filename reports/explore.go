package reports

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
)

// Exploration is the result of one call of simrun explore. It marshals to the
// JSON of its --json.
type Exploration struct {
	Version   int        `json:"version"`
	Design    string     `json:"design"`
	Verdict   Verdict    `json:"verdict"`
	Campaigns []Campaign `json:"campaigns"`
	Shard     *Shard     `json:"shard,omitempty"` // set where this is a part of a whole
	Stopped   string     `json:"-"`               // why not everything ran
}

// Campaign is the search of one scenario.
type Campaign struct {
	Name     string  `json:"name"`
	ID       string  `json:"id"`
	World    string  `json:"world"` // digest of what the tapes act on
	Verdict  Verdict `json:"verdict"`
	Strategy string  `json:"strategy"`
	Seed     uint64  `json:"seed"`
	Wanted   uint64  `json:"wanted"` // runs asked for, of all shards; 0 where time was the bound

	Runs      uint64 `json:"runs"`
	Found     uint64 `json:"found"`     // runs that broke something
	FirstRun  uint64 `json:"first_run"` // number of the first of them, from 1; 0 for none
	Told      uint64 `json:"told"`      // runs in which the file's story took place: what it expects was owed in these
	Schedules uint64 `json:"schedules"` // distinct runs
	AtLeast   bool   `json:"schedules_at_least,omitempty"`
	// OfParts says that Schedules is the sum of what is distinct within each shard.
	OfParts    bool    `json:"schedules_of_parts,omitempty"`
	Features   int     `json:"features"`
	FreshAt    uint64  `json:"last_new_feature_run"` // from 1
	Events     uint64  `json:"events"`
	SimSeconds float64 `json:"sim_seconds"`
	Wall       float64 `json:"wall_seconds"`
	Hash       string  `json:"hash"`
	Whole      bool    `json:"whole"`

	PCT        *PCT        `json:"pct,omitempty"`
	Exhaustive *Exhaustive `json:"exhaustive,omitempty"`
	Corpus     int         `json:"corpus,omitempty"` // tapes kept by a search that is guided by coverage

	Coverage   Coverage          `json:"coverage"`
	Broke      map[string]uint64 `json:"broke"`      // runs that broke each invariant
	First      map[string]uint64 `json:"first_runs"` // the first run that did, from 1
	Violations []Violation       `json:"violations"`
	Blame      []Blame           `json:"blame"`

	Notes []string `json:"notes,omitempty"`
	// Parts are what simrun merge needs beside: set in a shard only.
	Parts *CampaignPart `json:"parts,omitempty"`

	Title string `json:"-"`
	File  string `json:"-"`
}

// CampaignPart is what a part of a search has to say beside its sums.
type CampaignPart struct {
	FeatureSet []byte        `json:"feature_set"` // which features, not just how many
	Factors    []string      `json:"factors"`
	With       []uint64      `json:"with"` // of each factor: runs that had it
	Kinds      []FactorsKind `json:"kinds"`
}

// FactorsKind is one kind of failure.
type FactorsKind struct {
	Invariant string   `json:"invariant"`
	Failed    uint64   `json:"failed"`
	With      []uint64 `json:"with"` // of each factor: failed runs that had it
}

// PCT is what a search by priorities promises.
type PCT struct {
	Depth     int     `json:"depth"`
	Processes int     `json:"processes"`
	Steps     uint64  `json:"steps"`
	Chance    float64 `json:"chance_per_run"`
}

// Exhaustive is what an exhaustive search covered.
type Exhaustive struct {
	States      uint64   `json:"states"` // distinct ones
	Transitions uint64   `json:"transitions"`
	Schedules   uint64   `json:"schedules"`
	Depth       int      `json:"depth"`
	Merged      uint64   `json:"merged"`             // paths that met a state that was known
	Skipped     uint64   `json:"skipped"`            // events left out because an equal order was tried
	Declared    []string `json:"declared,omitempty"` // invariants that broke as the file declares
	Complete    bool     `json:"complete"`
	Reason      string   `json:"reason,omitempty"` // why it is not complete
	Scope       string   `json:"scope"`            // what was decided, and what was left at the plainest
}

// Blame is what a campaign says about one kind of failure: which faults and
// settings it came with, and which kept it away.
type Blame struct {
	Invariant   string  `json:"invariant"` // empty: any failure
	Failed      uint64  `json:"failed"`
	Runs        uint64  `json:"runs"`
	Causes      []Cause `json:"causes"`
	Suppressors []Cause `json:"suppressors"`
}

// Cause is a fault or a setting and what it does to the rate of failures.
type Cause struct {
	Name          string  `json:"name"`
	With          uint64  `json:"with"`
	WithFailed    uint64  `json:"with_failed"`
	Without       uint64  `json:"without"`
	WithoutFailed uint64  `json:"without_failed"`
	Lift          float64 `json:"lift"`
	Low           float64 `json:"lift_low"`  // of the 99% interval
	High          float64 `json:"lift_high"` // of the 99% interval
}

// ExploreReport writes an exploration for a person: what was covered, which
// fault did it, and last the bug report.
func ExploreReport(w io.Writer, e *Exploration, width int, colour, why bool) error {
	var b bytes.Buffer
	on := ink(colour)
	for i := range e.Campaigns {
		c := &e.Campaigns[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		c.covered(&b, e.Design, width, on)
		if why {
			c.why(&b, width, on)
		}
	}
	if e.Stopped != "" {
		fmt.Fprintf(&b, "\n%s\n", on.paint(yellow, e.Stopped))
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return err
	}
	return FailureReport(w, e.Suite(), width, colour)
}

// Suite is the exploration as a suite of scenarios, for what reports those.
func (e *Exploration) Suite() *Suite {
	var list []Scenario
	wall := 0.0
	for i := range e.Campaigns {
		c := &e.Campaigns[i]
		sc := Scenario{
			Name: c.Name, ID: c.ID, Verdict: c.Verdict, Runs: int(c.Runs), FailedRuns: int(c.Found), Events: c.Events,
			SimSeconds: c.SimSeconds, WallSeconds: c.Wall, Hash: c.Hash, Violations: c.Violations, File: c.File, Story: c.Title, Notes: c.Notes, Cut: !c.Whole,
		}
		wall += c.Wall
		list = append(list, sc)
	}
	return NewSuite(e.Design, list, time.Duration(wall*float64(time.Second)))
}

// covered says what was searched and what was met.
func (c *Campaign) covered(b *bytes.Buffer, design string, width int, on ink) {
	word := strings.ToUpper(string(c.Verdict))
	title := c.ID
	if c.Name != c.ID {
		title += " " + c.Name
	}
	fmt.Fprintf(b, "%s  %s, design %s\n", on.verdict(c.Verdict, word), on.paint(bold, title), design)
	strategy := fmt.Sprintf("%s, seed %d", c.Strategy, c.Seed)
	if p := c.PCT; p != nil {
		strategy += fmt.Sprintf(", depth %d", p.Depth)
	}
	field(b, "strategy", strategy, width)
	if x := c.Exhaustive; x != nil {
		all := "cut short: " + x.Reason
		if x.Complete {
			all = "all of them"
		}
		field(b, "covered", fmt.Sprintf("%s states, %s transitions, %s schedules to depth %s: %s",
			grouped(x.States), grouped(x.Transitions), grouped(x.Schedules), grouped(uint64(x.Depth)), all), width)
		if len(x.Declared) > 0 {
			field(b, "breaks", strings.Join(x.Declared, ", ")+", as the file declares", width)
		}
		field(b, "left out", fmt.Sprintf("%s paths that met a known state, %s events whose order makes no difference", grouped(x.Merged), grouped(x.Skipped)), width)
		field(b, "scope", x.Scope, width)
		field(b, "took", fmt.Sprintf("%s: %s states/s", span(c.Wall), amount(rate(float64(x.States), c.Wall))), width)
		return
	}
	runs := grouped(c.Runs)
	if c.Wanted > c.Runs {
		runs += " of " + grouped(c.Wanted)
	}
	atLeast := ""
	if c.AtLeast {
		atLeast = "at least "
	}
	within := ""
	if c.OfParts {
		within = " within their shards"
	}
	field(b, "runs", fmt.Sprintf("%s, %s%s distinct%s; %s found something", runs, atLeast, grouped(c.Schedules), within, grouped(c.Found)), width)
	if c.Told < c.Runs {
		field(b, "story", fmt.Sprintf("%s told it; in the others a step struck nothing, or a fault came after the calm: what the file expects is not owed there", share2(c.Told, c.Runs)), width)
	}
	field(b, "simulated", fmt.Sprintf("%s, %s events, in %s: %s runs/s", span(c.SimSeconds), amount(float64(c.Events)), span(c.Wall), amount(rate(float64(c.Runs), c.Wall))), width)
	features := fmt.Sprintf("%s of state, record and fault", grouped(uint64(c.Features)))
	if c.Runs > 0 {
		features += fmt.Sprintf("; run %s met the last new one", grouped(c.FreshAt))
	}
	if c.Corpus > 0 {
		features += fmt.Sprintf("; %s kept", plural(c.Corpus, "tape"))
	}
	field(b, "features", features, width)
	if p := c.PCT; p != nil {
		field(b, "chance", fmt.Sprintf("at least %.2g a run for a defect of depth %d: %d processes, %s decisions about order", p.Chance, p.Depth, p.Processes, grouped(p.Steps)), width)
	}
	c.Coverage.write(b, width)
}

// why writes the factors of each kind of failure.
func (c *Campaign) why(b *bytes.Buffer, width int, on ink) {
	for i := range c.Blame {
		v := &c.Blame[i]
		if i == 1 && len(c.Blame) == 2 && v.Failed == c.Blame[0].Failed {
			continue // the one invariant that broke is every failure
		}
		what := "anything"
		if v.Invariant != "" {
			what = v.Invariant
		}
		share := fmt.Sprintf("%s broke in %s of %s runs", what, grouped(v.Failed), grouped(v.Runs))
		if len(v.Causes)+len(v.Suppressors) == 0 {
			fmt.Fprintf(b, "\n%s: no fault and no setting stands out\n", share)
			continue
		}
		fmt.Fprintf(b, "\n%s\n", on.paint(bold, share))
		g := &grid{
			head:  []string{"WITH", "FAILED WITH IT", "FAILED WITHOUT", "LIFT", "99% INTERVAL"},
			right: []bool{1: true, 2: true, 3: true, 4: true},
			give:  []int{0}, floor: []int{12}, tight: true,
		}
		for _, list := range [][]Cause{v.Causes[:min(len(v.Causes), maxCauses)], v.Suppressors[:min(len(v.Suppressors), maxCauses)]} {
			for _, x := range list {
				name := x.Name
				if x.Lift < 1 {
					name += " (keeps it away)"
				}
				g.rows = append(g.rows, []string{name, share2(x.WithFailed, x.With), share2(x.WithoutFailed, x.Without),
					ratio(x.Lift), ratio(x.Low) + " to " + ratio(x.High)})
			}
		}
		g.write(b, width, on)
	}
}

// maxCauses bounds the causes, and the suppressors, that a table shows; the JSON
// has all.
const maxCauses = 6

// ratio writes a lift: two digits behind the point where they say something.
func ratio(v float64) string {
	if v >= 100 {
		return grouped(uint64(v + 0.5))
	}
	return fmt.Sprintf("%.2f", v)
}

// share2 is a part of a whole and what share it is.
func share2(part, whole uint64) string {
	return fmt.Sprintf("%s/%s %5.1f%%", grouped(part), grouped(whole), 100*rate(float64(part), float64(whole)))
}
