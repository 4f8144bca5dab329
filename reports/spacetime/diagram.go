package spacetime

import (
	"slices"
	"time"

	"vigil/core"
)

// MaxRecords bounds the records of one diagram; what comes after is counted
// only. It is a run of about half a million events.
const MaxRecords = 1 << 20

// Head is what a page says of the run beside its records.
type Head struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Title   string `json:"title"`           // one line: what happens
	Story   string `json:"story,omitempty"` // more lines of it
	Design  string `json:"design"`
	Seed    uint64 `json:"-"`
	SeedIs  string `json:"seed,omitempty"` // Seed as text: JSON's readers round
	Verdict string `json:"verdict"`
	Replay  string `json:"replay,omitempty"` // the command that replays it
	Hash    string `json:"hash,omitempty"`
	Source  string `json:"source,omitempty"` // where the records come from, where that is no simulation
	Events  uint64 `json:"events"`
	Notes   []string
	// Reap, Grace and Scan are the server's settings; Reap 0 reaps nothing.
	Reap  time.Duration `json:"reap"`
	Grace time.Duration `json:"grace"`
	Scan  time.Duration `json:"scan"`
}

// Step is one step of the run's scenario, by the number that FaultStruck has.
type Step struct {
	Label  string
	Worker int // its number; Everyone or Server
	// For is how long it acts, 0 where the records say when it ends, where it is
	// over at once, or where it acts to the end.
	For time.Duration
}

// The targets of a step that are not one worker.
const (
	Everyone = -1
	Server   = -2
)

// Violation is one thing that broke.
type Violation struct {
	Invariant string   `json:"invariant"`
	Promise   string   `json:"promise,omitempty"` // what the invariant promises
	Verdict   string   `json:"verdict"`           // safety, liveness, ...
	At        int64    `json:"at"`                // nanoseconds
	Actors    []string `json:"actors"`
	Message   string   `json:"message"`
	Declared  bool     `json:"declared"` // the scenario declares it under this design
	Lanes     []int    `json:"lanes"`    // of its actors, at its time
	Story     []int    `json:"story"`    // the records that led there, at most maxStory
}

// Diagram is the diagram of one run, while its records come in.
type Diagram struct {
	Head  Head
	Steps []Step
	// TypeName names a request type of the wire; nil names none.
	TypeName func(uint64) string
	// Left is how many records did not fit.
	Left int

	most       int // records it keeps
	workers    []string
	lanes      []lane
	current    []int32 // of each worker: its present lane, -1 before its first
	byInstance map[core.InstanceID]int32

	at    []core.Time
	on    []int32 // lane, -1 for none
	kinds []core.RecordKind
	about []uint8 // who wrote it and how it is told, see flags
	words words

	messages  messages
	contexts  contexts
	bands     []band
	open      map[bandKey]int // bands that have not ended
	marks     []mark
	broken    []Violation
	end       core.Time
	serverOff core.Time // smallest distance seen from the server's clock to the world's
	scans     []core.Time
}

// What about holds of a record.
const (
	fromWorld  = 0
	fromServer = 1
	fromWorker = 2
	told       = 4 // it is told one by one in the story of the run
	alarming   = 8 // something is wrong
)

// mark is a step of the scenario that struck, or did not.
type mark struct {
	At    core.Time `json:"at"`
	Lane  int32     `json:"lane"` // -1: none, or several
	Label string    `json:"label"`
	Hit   bool      `json:"hit"`
}

// New begins the diagram of a run with these workers, in the order of their
// numbers.
func New(head Head, workers []string) *Diagram {
	d := &Diagram{most: MaxRecords, Head: head, workers: workers, byInstance: map[core.InstanceID]int32{}, open: map[bandKey]int{}, serverOff: core.Never}
	d.lanes = append(d.lanes, lane{Name: "server", Worker: -1, Life: 1, Began: -1, Ended: -1})
	d.current = make([]int32, len(workers))
	for i := range d.current {
		d.current[i] = -1
	}
	d.messages.init()
	return d
}

// Add takes the next record of the run and its words. Told says that it is one
// of those that make the story of the run, wrong that it is an alarm.
func (d *Diagram) Add(r *core.Record, words string, isTold, wrong bool) {
	d.end = max(d.end, r.At)
	if len(d.at) >= d.most {
		d.Left++
		return
	}
	lane := d.follow(r)
	flags := uint8(fromWorld)
	switch {
	case r.Actor == core.ActorServer:
		flags = fromServer
	case r.Actor >= core.FirstWorker:
		flags = fromWorker
	}
	if isTold {
		flags |= told
	}
	if wrong {
		flags |= alarming
	}
	index := int32(len(d.at))
	d.at = append(d.at, r.At)
	d.on = append(d.on, lane)
	d.kinds = append(d.kinds, r.Kind)
	d.about = append(d.about, flags)
	d.words.add(words)

	d.pair(r, lane, index)
	d.hold(r, lane)
	d.bend(r, lane)
}

// Broke adds what broke.
func (d *Diagram) Broke(v Violation) {
	if v.Actors == nil {
		v.Actors = []string{}
	}
	d.end = max(d.end, core.Time(v.At))
	d.broken = append(d.broken, v)
}

// Records is how many records the diagram keeps.
func (d *Diagram) Records() int { return len(d.at) }

// Broken is what broke, in the order in which it was added.
func (d *Diagram) Broken() []Violation { return d.broken }

// Moment is one record of a story.
type Moment struct {
	At    float64 // seconds of virtual time
	Who   string
	Words string
}

// Led is what led to the n-th violation.
func (d *Diagram) Led(n int) []Moment {
	v := d.broken[n]
	d.trace(&v)
	var list []Moment
	for _, i := range v.Story {
		list = append(list, Moment{float64(d.at[i]) / 1e9, d.who(i), d.words.text(i)})
	}
	return list
}

func (d *Diagram) who(i int) string {
	switch {
	case d.about[i]&3 == fromServer:
		return "server"
	case d.about[i]&3 == fromWorld:
		return "world"
	case d.on[i] >= 0:
		return d.lanes[d.on[i]].Name
	}
	return "somebody"
}

// maxStory bounds the records that a page shows as what led to a violation.
const maxStory = 9

// trace finds the lanes of a violation's actors and the told records that led
// to it: what concerns the actors and what struck anybody, the last ones.
func (d *Diagram) trace(v *Violation) {
	concerned := map[int32]bool{}
	v.Lanes = []int{}
	for _, name := range v.Actors {
		if at := d.laneAt(name, core.Time(v.At)); at >= 0 {
			concerned[at] = true
			v.Lanes = append(v.Lanes, int(at))
		}
	}
	v.Story = []int{}
	var list []int
	for i, at := range d.at {
		if at > core.Time(v.At) {
			break
		}
		if d.about[i]&told == 0 {
			continue
		}
		if lane := d.on[i]; lane > 0 && len(concerned) > 0 && !concerned[lane] {
			continue
		}
		at := len(list)
		if at > 0 && d.kinds[list[at-1]] == d.kinds[i] && d.words.pattern[list[at-1]] == d.words.pattern[i] && d.kinds[i] != core.FaultStruck {
			continue // the same again says no more of how it came
		}
		if d.kinds[i] == core.FaultStruck { // it is written when the step is done; a reader wants the cause first
			for at > 0 && d.at[list[at-1]] == d.at[i] && d.about[list[at-1]]&3 == fromWorld && d.kinds[list[at-1]] != core.FaultStruck {
				at--
			}
		}
		list = slices.Insert(list, at, i)
	}
	if len(list) > maxStory {
		list = list[len(list)-maxStory:]
	}
	v.Story = append(v.Story, list...)
}

// laneAt is the lane of an actor at a time: the life that had begun last.
func (d *Diagram) laneAt(name string, at core.Time) int32 {
	found := int32(-1)
	for i := range d.lanes {
		if d.lanes[i].base() == name && (d.lanes[i].Began <= at || found < 0) {
			found = int32(i)
		}
	}
	return found
}
