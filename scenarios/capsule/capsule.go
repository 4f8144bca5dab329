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
	"errors"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/run"
	"vigil/sim"
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
}

var errNotYet = errors.New("capsules cannot be written yet")

// Of makes the capsule of a run that tape gave under these protections.
func Of(s *scenarios.Scenario, design string, p core.Protections, seed uint64, tape *sim.Tape, r run.Run) (*Capsule, error) {
	return nil, errNotYet
}

// Parse reads a capsule; name is for errors.
func Parse(name string, text []byte) (*Capsule, error) { return nil, errNotYet }

// Read reads a capsule's file.
func Read(path string) (*Capsule, error) { return nil, errNotYet }

// Encode is the capsule as its file holds it. Equal capsules are equal bytes.
func (c *Capsule) Encode() []byte { return nil }

// Write writes the capsule to a file, whole or not at all.
func (c *Capsule) Write(path string) error { return errNotYet }

// Play replays the run; extra, which may be nil, sees every record. The
// difference is the first of what is not as it was recorded.
func (c *Capsule) Play(extra sim.Observer) (run.Run, Difference) { return run.Run{}, Difference{} }
