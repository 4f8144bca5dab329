package capsule

import "vigil/core"

// Kind says what a replay did otherwise, the gravest first.
type Kind uint8

// The kinds of difference.
const (
	None        Kind = iota // the same run to the last record
	OtherHash               // the same verdict by another way: what changed does not matter to it
	OtherStream             // the run asked for other decisions than were recorded
	OtherVerdict
	NoLongerLoads // the scenario, or a name that the capsule uses, is not known to this code
)

// Difference is what a replay did otherwise than was recorded.
type Difference struct {
	Kind Kind
	At   core.Time // where the first difference was seen
	Who  string    // whose record or decision it was
	Text string    // one or more lines for a person
}

// Same reports whether the run is the recorded one to the last record.
func (d Difference) Same() bool { return d.Kind == None }
