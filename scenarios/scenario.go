package scenarios

import (
	"time"

	"vigil/core"
	"vigil/faults"
	"vigil/sim"
)

// Scenario is one story, checked: what is in the world, what happens, what
// must come. It is data, read only.
type Scenario struct {
	// ID is the short name, with the variant: "A1", "A8/pid". Name is the long
	// one: "pid-reuse/pid". Both are unique in a suite.
	ID, Name string
	Title    string // one line
	Story    string // what happens and why it matters
	File     string
	// World says that the file describes a world to measure, not a story to
	// judge: it is no part of the suite.
	World bool
	// Random says that each run draws its world and its story from the tape, out
	// of the menu of that name: "gentle", "harsh", or empty for none. It is a
	// search, no part of the suite. The plan then holds the workers' names and
	// the length.
	Random string

	// Plan is the world with every protection off; scenarios/run switches them
	// on. Workers have their names in it.
	Plan *sim.Plan
	// Steps says where in the file each step of the plan stands.
	Steps  []StepNote
	Expect []Expectation
	Breaks []Break
	// Covers are what the file's runs, all together, must meet.
	Covers []Cover

	// Real is the story as real processes play it, where the file says so with
	// `real:`; nil where it is the same. RealSkip is why they cannot play it.
	Real     *Scenario
	RealSkip string
}

// StepNote is what a reader wants to know of one step.
type StepNote struct {
	Line  int
	Label string
	Verb  string
	// Maybe says that the step may find nothing to strike in a run; it must then
	// strike in at least one run of all.
	Maybe bool
	// Fault says that the step is a fault; else it is an action of an engine.
	Fault bool
}

// Break is an invariant that the story is known to break under one design.
type Break struct {
	Line      int
	Design    string // "document" or "hardened"
	Invariant string
	All       bool // in every run, else in at least one
	// Actors are the workers that it must name, by index; faults.Server for the
	// server. Empty: whoever.
	Actors []int
}

// Designs are the presets that a break or an expectation can be tied to.
var Designs = []string{"document", "hardened"}

// Menus are the menus that a random world can be drawn from.
var Menus = []string{"gentle", "harsh"}

// Invariants are the names that a break can have (DESIGN, Invariants).
var Invariants = []string{
	"ONE", "CONVERGE", "RECLAIM", "NO-FALSE-REAP", "ISOLATE", "TERMINAL",
	"NO-UAF", "FENCE", "ONCE", "QUIET", "INTEGRITY", "VISIBLE", "TRUE-LOG",
}

// ExpectKind says what kind of thing is expected.
type ExpectKind uint8

// The expectations. Which fields of an Expectation count is said at each.
const (
	ExpectReaped    ExpectKind = iota // Who, After, Within, Times: the reaper removed it so long after its anchor
	ExpectNotReaped                   // Who: it had a context and the reaper never removed one
	ExpectHolds                       // Who, Holds, At: how much of what it has in the server
	ExpectHealth                      // Who, Healthy, At: what its heartbeat has published
	ExpectHappened                    // Match, Since, During, Times: so many records
	ExpectOrder                       // Match, By, Times: before each Match came a By of its own
	ExpectTook                        // From, Match, Within, Times: each Match came so long after the latest From
	ExpectEnded                       // Who, Among, Within, During, Times: each request ended once
	ExpectAnswer                      // Step, Answer: what a raw client is answered; said in the step
	ExpectKinds                       // how many there are; not an expectation
)

// ExpectNames are the keys of the expectations in files.
var ExpectNames = []string{"reaped", "not-reaped", "holds", "health", "happened", "order", "took", "ended"}

// String is the key of the expectation in files.
func (k ExpectKind) String() string {
	if int(k) < len(ExpectNames) {
		return ExpectNames[k]
	}
	if k == ExpectAnswer {
		return "answer"
	}
	return "unknown"
}

// Who is one worker or every worker, in one of its lives or in all of them.
type Who struct {
	Worker int // index, or faults.Everyone
	Life   int // from 1; 0 is every life
}

// Match picks records. What is unset matches everything.
type Match struct {
	Record        core.RecordKind
	Who           Who
	Nth           int // the nth that matches, from 1; 0 is each of them, or the first where one is meant
	Context       core.ContextKind
	HasFlag, Flag bool
	HasFailure    bool
	Failure       core.Failure
	HasA, HasB    bool
	A, B          uint64 // as Record says
}

// Holding is a kind of thing that an instance has in the server.
type Holding uint8

// The holdings. Mappings and bytes are the world's truth, the others the
// server's own claims.
const (
	HeldContexts Holding = iota
	HeldMappings
	HeldBytes
	HeldShares
	HeldStrategies
	HeldRopes
	Holdings // how many there are
)

// HoldingNames are the keys of the holdings in files.
var HoldingNames = []string{"contexts", "mappings", "bytes", "shares", "strategies", "ropes"}

// Count is how often, both ends inside.
type Count struct{ Low, High uint64 }

// Contains reports whether n is one of the count's numbers.
func (c Count) Contains(n uint64) bool { return n >= c.Low && n <= c.High }

// Moment is when a state is judged: at the end, all through a range of times,
// or right after a record.
type Moment struct {
	End      bool
	From, To time.Duration
	When     *Match
}

// Anchor says from when a reap is measured.
type Anchor uint8

// The anchors of a reap.
const (
	SinceLastStamp Anchor = iota
	SinceRegister
	SinceDeath
)

// AnchorNames are the anchors in files.
var AnchorNames = []string{"last-stamp", "register", "death"}

// Expectation is one thing that must come.
type Expectation struct {
	Kind   ExpectKind
	Line   int
	Design string // the design it holds under; empty for both

	Who       Who
	Match     Match
	From, By  Match
	Since     *Match // happened: only what comes after this record
	After     Anchor
	HasWithin bool
	Within    Window
	HasDuring bool
	During    Window
	Times     Count
	At        Moment
	Holds     [Holdings]struct {
		Set   bool
		Count Count
	}
	Healthy bool
	Among   []core.Outcome // empty: any
	Step    int            // whose answer is meant
	Answer  string         // in words (AnswerFits), or Silence
}

// WorkerName is the name of the worker of that index, for reports.
func (s *Scenario) WorkerName(i int) string {
	switch {
	case i == faults.Everyone:
		return "everyone"
	case i >= 0 && i < len(s.Plan.Workers):
		return s.Plan.Workers[i].Name
	}
	return "server"
}
