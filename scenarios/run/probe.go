package run

import (
	"cmp"
	"slices"
	"time"

	"vigil/core"
	"vigil/scenarios"
	"vigil/sim"
)

// Which protections acted. A protection acted in a run where the same tape
// without it comes to something else: something is served, refused, reaped,
// closed, told or lost that was not, or the same a moment too late. That is asked
// of the run itself and not of the protection, so it can neither be forgotten at
// a place in the core nor claimed where nothing came of it.

// moment is how much later something must come to be something else: times that
// differ by less are the scheduler's.
const moment = time.Second

// tellsOutcome are the records that somebody outside would notice. Pings, stamps
// and scans are how, not what.
var tellsOutcome = [256]bool{
	core.ServerStopped: true, core.ContextInserted: true, core.RegisterNoop: true, core.ContextRemoved: true, core.CloseBegan: true,
	core.CloseEnded: true, core.ReleaseStuck: true, core.StrategyAdded: true, core.StrategyRemoved: true,
	core.RopeAdded: true, core.RopeDropped: true, core.LayoutAcquired: true, core.LayoutReleased: true,
	core.ReapDecided: true, core.Refused: true, core.ChunkReady: true, core.ChunkDropped: true, core.LockReturned: true,
	core.ServerWarned: true, core.TransferEnded: true,
	core.RegisterEnded: true, core.PingFailed: true, core.RecoveryBegan: true, core.RecoveryEnded: true,
	core.HealthCleared: true, core.HealthSet: true, core.RequestResolved: true, core.FinishedReported: true,
	core.UnregisterEnded: true, core.WorkerWarned: true,
	core.MappingOpened: true, core.MappingClosed: true, core.MappingHung: true, core.MappingReopened: true,
	core.MappingClosedTwice: true, core.CopyTouchedRelease: true, core.CopyTouchedGone: true,
	core.EngineTold: true, core.BlocksRight: true, core.BlocksWrong: true, core.EngineRegistered: true,
	core.ProcessExited: true,
}

// outcomes are what of a run somebody outside would notice.
type outcomes struct{ list []noticed }

type noticed struct {
	what uint64
	at   core.Time
}

// Observe takes one record in.
func (o *outcomes) Observe(r *core.Record) {
	if !tellsOutcome[r.Kind] {
		return
	}
	var d core.Digest
	flag := uint64(0)
	if r.Flag {
		flag = 1
	}
	d.Uint(uint64(r.Kind)<<48 | uint64(r.Actor)<<24 | uint64(r.Context)<<16 | uint64(r.Failure)<<8 | flag)
	d.Uint(uint64(r.Instance))
	switch r.Kind {
	case core.ContextRemoved, core.RopeDropped: // the cause
		d.Uint(r.A)
	case core.EngineTold, core.FinishedReported: // the outcome
		d.Uint(r.B)
	}
	o.list = append(o.list, noticed{uint64(d), r.At})
}

func (o *outcomes) sort() {
	slices.SortFunc(o.list, func(a, b noticed) int {
		return cmp.Or(cmp.Compare(a.what, b.what), cmp.Compare(a.at, b.at))
	})
}

// same reports whether two runs came to the same.
func (o *outcomes) same(p *outcomes) bool {
	if len(o.list) != len(p.list) {
		return false
	}
	for i := range o.list {
		a, b := o.list[i], p.list[i]
		if a.what != b.what || a.at.Sub(b.at) >= moment || b.at.Sub(a.at) >= moment {
			return false
		}
	}
	return true
}

// Prober asks runs which protections acted in them. It belongs to one goroutine.
type Prober struct {
	design  string
	on      []string // the protections in question, in their fixed order
	with    *Player
	without map[string]*Player
	a, b    outcomes
}

// NewProber returns a prober of those among the names that are on.
func NewProber(design string, p core.Protections, names []string) *Prober {
	b := &Prober{design: design, with: NewPlayer(design, p), without: map[string]*Player{}}
	for _, name := range names {
		if off := p; off.Set(name, false) && off != p {
			b.on = append(b.on, name)
			b.without[name] = NewPlayer(design, off)
		}
	}
	return b
}

// On are the protections that are asked about.
func (b *Prober) On() []string { return b.on }

// Ask returns those of the protections that acted in one run; skip, where not
// nil, leaves some out. tape makes the run's decisions, the same each time.
func (b *Prober) Ask(s *scenarios.Scenario, tape func() *sim.Choices, skip func(name string) bool) (acted []string) {
	played := false
	for _, name := range b.on {
		if skip != nil && skip(name) {
			continue
		}
		if !played {
			b.a.list = b.a.list[:0]
			b.with.PlayTape(s, 0, tape(), &b.a)
			b.a.sort()
			played = true
		}
		b.b.list = b.b.list[:0]
		r := b.without[name].PlayTape(s, 0, tape(), &b.b)
		b.b.sort()
		if r.Panic != "" || !b.a.same(&b.b) {
			acted = append(acted, name)
		}
	}
	return acted
}

// Acted is in how many of some runs each protection acted.
type Acted struct {
	Names  []string // those that were on, in their fixed order
	Runs   []int    // of each: the runs in which it acted
	Probed int      // runs that were looked at
}

// Probe looks at runs until each protection acted in one, or most were looked at.
func (b *Prober) Probe(s *scenarios.Scenario, most int, tape func(i int) *sim.Choices) Acted {
	a := Acted{Names: b.on, Runs: make([]int, len(b.on))}
	for i := 0; i < most && slices.Contains(a.Runs, 0); i++ {
		a.Probed++
		for _, name := range b.Ask(s, func() *sim.Choices { return tape(i) }, func(name string) bool { return a.Runs[slices.Index(a.Names, name)] > 0 }) {
			a.Runs[slices.Index(a.Names, name)]++
		}
	}
	return a
}
