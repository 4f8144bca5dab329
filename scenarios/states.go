package scenarios

// LifeState is where an instance is in its life, as the design document tells
// it. A scenario file may say with `covers:` which of them its runs must meet.
type LifeState uint8

// The states.
const (
	NeverRegistered    LifeState = iota // its process runs; no register of it came to the server
	WarmingUp                           // its register came; its context is being built
	ServingNeverPinged                  // it has a context, judged by the grace
	ServingPinged                       // it has a context, judged by the reap timeout
	SilentPastWindow                    // it has a context and was silent for longer than its window
	InRelease                           // its mapping is being closed
	Stuck                               // that close does not return
	Gone                                // it had a context and has none
	ReRegistered                        // it had a context before the one that it has
	LifeStates                          // how many there are; not a state
)

// LifeStateNames are the states in files and reports.
var LifeStateNames = []string{
	"never-registered", "warming-up", "serving-never-pinged", "serving-pinged", "silent-past-window",
	"in-release", "stuck", "gone", "re-registered",
}

// String is the state's name in files.
func (s LifeState) String() string {
	if int(s) < len(LifeStateNames) {
		return LifeStateNames[s]
	}
	return "no state"
}
