// Package capsule keeps one run in one small text file that outlives the code.
//
// Contract. A capsule holds the whole run by value: the scenario's text, also
// of a built-in or a random one, the design by the names of its protections,
// the seed, every decision of the tape, and what the run came to: verdict,
// invariant, actors, time, hash. So it replays after the built-in scenarios,
// the presets and the random worlds have changed, and where it does not, Play
// says which part differs. Reading is strict and bounded: a damaged, edited or
// truncated capsule is one error with its file and line, never a panic and
// never another run.
package capsule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/run"
	"vigil/sim"
)

// The bounds of a capsule. A run that passes one is not written, a file that
// passes one is not read; both say so.
const (
	MaxBytes     = 32 << 20 // of one file
	MaxDecisions = 8 << 20  // on one tape
	MaxStreams   = 1 << 20  // of one tape
	MaxActors    = 1000     // workers that one violation names
	MaxGreen     = 64       // designs under which the same tape is green
	maxMessage   = 2000     // bytes of a message; the rest is cut
	maxTrail     = 8192     // bytes of the trail
)

// Capsule is one run and what it came to.
type Capsule struct {
	// Scenario is the story, concrete: a random world is written down as the
	// world that was drawn. It is nil where Text no longer loads.
	Scenario *scenarios.Scenario
	Text     []byte // the scenario in the files' format
	Origin   string // where the run comes from, in words: "random-worlds, seed 17"
	Seed     uint64 // the seed that filled the tape; for the report only

	Design      string // the preset that expectations and breaks are chosen by
	Protections core.Protections
	Tape        *sim.Tape // every decision, whole streams

	// What the run came to. Verdict is "pass" and Invariant empty where nothing
	// broke.
	Verdict, Invariant string
	Actors             []string
	At                 core.Time // when it broke; when the run ended where nothing did
	Message            string
	Hash               core.Digest
	Version            string // of the code that wrote it

	// Green are protections under which the same tape breaks nothing: what
	// mends it. Check plays them too.
	Green []core.Protections

	records uint64
	tapeIs  int // the version of the meaning of a tape that it was recorded under
	trail   trail
	unknown error // why the scenario or a name no longer loads
}

// Of makes the capsule of a run that tape gave under these protections; seed
// is for the report. It plays the run once more from the capsule, so that what
// is written is known to replay. What it is about is the gravest of what broke,
// the earliest of equals; About chooses another.
func Of(s *scenarios.Scenario, design string, p core.Protections, seed uint64, tape *sim.Tape, r run.Run) (*Capsule, error) {
	if r.Panic != "" && len(r.Violations) == 0 {
		return nil, errors.New("the run ended in a panic that no violation tells of")
	}
	c := &Capsule{
		Origin: fmt.Sprintf("%s, seed %d", s.Name, seed), Seed: seed, Design: design, Protections: p,
		Hash: r.Hash, Version: codeVersion(), records: r.Records, tapeIs: sim.TapeVersion,
	}
	if s.Random != "" {
		unfired := func(step int) bool { return slices.Contains(r.Unfired, step) }
		plan := run.DrawPlan(s, sim.ChoicesFrom(fresh(tape)))
		s = run.Concrete(fmt.Sprintf("%s-%d", s.ID, seed), fmt.Sprintf("%s-%d", s.Name, seed),
			fmt.Sprintf("the world that seed %d drew", seed), plan, unfired)
	}
	var err error
	if c.Tape, err = tidy(tape); err != nil {
		return nil, err
	}
	c.Text = scenarios.Write(s)
	list, err := scenarios.Parse("the capsule's scenario", c.Text)
	if err != nil {
		return nil, fmt.Errorf("the scenario cannot be written down: %w", err)
	}
	c.Scenario = list[0]
	c.About(worst(&r))
	again, trail := c.follow()
	if again.Hash != r.Hash || again.Records != r.Records {
		return nil, fmt.Errorf("the run is another when it is played from its capsule: %d records with hash %016x, then %d with %016x",
			r.Records, uint64(r.Hash), again.Records, uint64(again.Hash))
	}
	c.trail = trail
	if n := len(c.Encode()); n > MaxBytes {
		return nil, fmt.Errorf("the capsule would have %d bytes; %d is the limit", n, MaxBytes)
	}
	return c, nil
}

// OfSeed plays one seed and makes its capsule.
func OfSeed(s *scenarios.Scenario, design string, p core.Protections, seed uint64) (*Capsule, error) {
	r, tape := run.NewPlayer(design, p).Record(s, seed)
	return Of(s, design, p, seed, tape, r)
}

// About says which of several things that broke the capsule is kept for.
func (c *Capsule) About(v run.Violation) {
	c.Verdict, c.Invariant, c.Actors, c.At, c.Message = string(v.Verdict), v.Invariant, v.Actors, v.At, v.Message
	if len(c.Actors) > MaxActors {
		c.Actors = c.Actors[:MaxActors]
	}
	if len(c.Message) > maxMessage {
		c.Message = strings.ToValidUTF8(c.Message[:maxMessage], "") + "..."
	}
}

// worst is what a run is about: the gravest of what is not declared, else of
// what is; a pass where nothing broke.
func worst(r *run.Run) run.Violation {
	pass := run.Violation{Seed: r.Seed, Verdict: run.Pass, At: r.End}
	if len(r.Violations) == 0 {
		return pass
	}
	return slices.MinFunc(r.Violations, func(a, b run.Violation) int {
		switch {
		case a.Declared != b.Declared && a.Declared:
			return 1
		case a.Declared != b.Declared:
			return -1
		case a.Verdict != b.Verdict && run.Gravest(a.Verdict, b.Verdict) == a.Verdict:
			return -1
		case a.Verdict != b.Verdict:
			return 1
		}
		return cmp.Compare(a.At, b.At)
	})
}

// DesignText is the design and what was switched beside it, as a command line
// spells it: "document+boot-token", "hardened~boot-token".
func (c *Capsule) DesignText() string {
	base := core.Document()
	if c.Design == "hardened" {
		base = core.Hardened()
	}
	text := c.Design
	for _, name := range core.ProtectionNames() {
		switch on, was := isOn(c.Protections, name), isOn(base, name); {
		case on && !was:
			text += "+" + name
		case !on && was:
			text += "~" + name
		}
	}
	return text
}
