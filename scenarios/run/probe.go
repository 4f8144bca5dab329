package run

import (
	"cmp"
	"slices"
	"sync"
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
	core.MappingClosedTwice: true, core.CopyTouchedRelease: true, core.CopyTouchedGone: true, core.CopyMisfit: true, core.ParcelLeft: true, core.TimerInVain: true, core.AnswerCame: true,
	core.EngineTold: true, core.BlocksRight: true, core.BlocksWrong: true, core.EngineRegistered: true, core.EngineWarned: true,
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

// Acted is in how many of some runs each protection acted. A protection is asked
// about until it acted in one.
type Acted struct {
	Names  []string // those that were on, in their fixed order
	Runs   []int    // of each: the runs in which it acted
	Probed int      // runs that were looked at
}

// Prober asks runs which protections acted in them. What it finds depends on
// the runs alone, not on how many goroutines look.
type Prober struct {
	scenario    *scenarios.Scenario
	design      string
	protections core.Protections
	on          []string // the protections in question, in their fixed order
	runs        []probedRun

	mu   sync.Mutex
	next int   // the first of on that nobody has taken
	hits []int // of each: the run in which it acted; -1 for none
}

// probedRun is what a run came to with all protections, which whoever asks about
// it first finds out.
type probedRun struct {
	once sync.Once
	with outcomes
}

// NewProber returns a prober of those among the names that are on. It looks at
// runs until each of them acted in one, or most were looked at.
func NewProber(s *scenarios.Scenario, design string, p core.Protections, names []string, most int) *Prober {
	b := &Prober{scenario: s, design: design, protections: p, runs: make([]probedRun, most)}
	for _, name := range names {
		if off := p; off.Set(name, false) && off != p {
			b.on = append(b.on, name)
		}
	}
	b.hits = make([]int, len(b.on))
	return b
}

// Probe looks, with so many goroutines. tapes makes for each of them what makes a
// run's decisions, the same each time that it is asked.
func (b *Prober) Probe(jobs int, tapes func() func(run int) *sim.Choices) Acted {
	var wait sync.WaitGroup
	for range min(max(1, jobs), len(b.on)) {
		wait.Go(func() { b.work(tapes()) })
	}
	wait.Wait()
	a := Acted{Names: b.on, Runs: make([]int, len(b.on))}
	for k, hit := range b.hits {
		if hit < 0 {
			a.Probed = len(b.runs)
			continue
		}
		a.Runs[k], a.Probed = 1, max(a.Probed, hit+1)
	}
	return a
}

// work asks about one protection after the other. A protection is asked about in
// one run after the other by one goroutine: most act in the first or second, and
// there are enough of them to go round.
func (b *Prober) work(tape func(run int) *sim.Choices) {
	with := NewPlayer(b.design, b.protections)
	var without outcomes
	for {
		b.mu.Lock()
		k := b.next
		b.next++
		b.mu.Unlock()
		if k >= len(b.on) {
			return
		}
		off := b.protections
		off.Set(b.on[k], false)
		player := NewPlayer(b.design, off)
		b.hits[k] = -1
		for i := range b.runs {
			r := &b.runs[i]
			r.once.Do(func() {
				with.PlayTape(b.scenario, 0, tape(i), &r.with)
				r.with.sort()
			})
			without.list = without.list[:0]
			came := player.PlayTape(b.scenario, 0, tape(i), &without)
			without.sort()
			if came.Panic != "" || !r.with.same(&without) {
				b.hits[k] = i
				break
			}
		}
	}
}
