package exhaustive

import (
	"fmt"
	"math/bits"
	"time"

	"vigil/core"
	"vigil/sim"
)

// Witness judges a path. What it remembers is part of the state.
type Witness interface {
	sim.StepObserver
	CopyFrom(Witness)
	// Fingerprint folds what it remembers; naming lets workers change places.
	Fingerprint(naming *sim.Naming) core.Digest
	// Finish judges the end of the run.
	Finish(sim.Result)
	// Panicked takes the panic of the code under test as the end of the path.
	Panicked(at core.Time, what string)
	// Found is how many violations there are on the path so far.
	Found() int
}

// Search is one search.
type Search struct {
	Plan    *sim.Plan
	Grain   time.Duration // of time; more than 0
	Witness func() Witness

	// Alike are groups of workers that may change places. Nothing in the plan or
	// in what a witness expects may name one of them. Where there are such groups,
	// independent events are tried in both orders.
	Alike [][]int
	// EveryOrder tries both orders of independent events, and EveryPath goes into
	// a state each time that it is met: for the tests of the savings.
	EveryOrder, EveryPath bool

	MaxStates uint64        // 0 is no bound
	MaxDepth  int           // events of one path; 0 is no bound
	MaxValues int           // values tried of one decision that has more; 0 is 16
	Deadline  time.Duration // 0 is none

	// Report is called at each path on which something new was found; tape makes
	// the decisions that lead there. It says whether to stop.
	Report func(w Witness, tape func() *sim.Tape) (stop bool)
	// Doubt, where set, is told of a state that was met again and led elsewhere: a
	// fingerprint that leaves out what matters. It makes the search several times
	// as long.
	Doubt func(world *sim.World, event int, was, is core.Digest)
	// Ended, where set, sees each end of a run that is met for the first time.
	Ended func(end core.Digest, w Witness)
	// Progress, where set, is called every half second.
	Progress func(Cover)

	c       Cover
	seen    states
	led     map[step]core.Digest // where each event led, for Doubt
	levels  []*level
	namings []*sim.Naming
	began   time.Time
	next    time.Time
	stop    string // why the search ended before it was through
}

// Cover is what a search covered.
type Cover struct {
	States      uint64 // distinct states
	Transitions uint64 // events played
	Schedules   uint64 // paths to an end that was not met before
	Merged      uint64 // paths to a state that was met before
	Skipped     uint64 // events left out because an equal order was tried
	Depth       int    // events of the longest path
	Narrowed    uint64 // decisions with more values than were tried
	Complete    bool   // all of them
	Reason      string // where it is not: why
	Took        time.Duration
}

// sleeper is an event that need not be tried: an equal order was.
type sleeper struct{ id, touches uint64 }

// level is one state on the path.
type level struct {
	world   *sim.World
	witness Witness
	choices *sim.Choices
	found   int // on the path so far

	// How the path came here: the event's place among those that could come, and
	// the decisions within.
	order, of int
	script    script
	print     core.Digest

	ids     []uint64 // of the events that can come next
	touches []uint64
	byRank  []int // places of the events, in an order that does not depend on the path
	asleep  []sleeper
}

// Run searches.
func (x *Search) Run() Cover {
	x.began = time.Now()
	x.next = x.began.Add(progressEvery)
	x.c, x.stop = Cover{}, ""
	x.seen.reset()
	if x.MaxValues == 0 {
		x.MaxValues = defaultValues
	}
	x.namings = sim.Namings(len(x.Plan.Workers), x.Alike)
	root := x.level(0)
	for {
		root.script.rewind()
		root.witness = x.Witness()
		root.world.Begin(x.Plan, root.choices, root.witness)
		root.found, root.of, root.asleep = 0, 0, root.asleep[:0]
		x.arrive(0)
		if x.stop != "" || !root.script.turn() {
			break
		}
	}
	x.c.Took = time.Since(x.began)
	x.c.Complete, x.c.Reason = x.stop == "", x.stop
	if x.c.Complete && x.c.Narrowed > 0 {
		x.c.Complete = false
		x.c.Reason = fmt.Sprintf("%d decisions had more values than the %d that were tried", x.c.Narrowed, x.MaxValues)
	}
	return x.c
}

const (
	progressEvery = 500 * time.Millisecond
	defaultValues = 16
	// maxLevels bounds the depth of any search: each level holds a world.
	maxLevels = 20_000
)

// level returns the level of a depth.
func (x *Search) level(depth int) *level {
	for len(x.levels) <= depth {
		l := &level{world: sim.NewWorld(), witness: x.Witness(), script: script{values: x.MaxValues}}
		l.choices = sim.InTicks(x.Grain, &l.script)
		x.levels = append(x.levels, l)
	}
	return x.levels[depth]
}

// arrive goes into the state of a level, and all that follows from it.
func (x *Search) arrive(depth int) {
	l := x.levels[depth]
	x.c.Depth = max(x.c.Depth, depth)
	x.c.Narrowed += l.script.narrow
	l.script.narrow = 0
	n := l.world.Ready()
	x.found(depth)
	if x.stop != "" {
		return
	}
	ended := n == 0
	var end sim.Result
	if ended {
		end = l.world.End()
		l.witness.Finish(end)
		x.found(depth)
	}
	print := x.fingerprint(l)
	l.look(n)
	if x.Doubt != nil && depth > 0 && l.of > 0 {
		x.follow(depth, print)
	}
	l.print = print
	awake := l.awake()
	at, known := x.seen.find(print)
	if known && !x.EveryPath {
		// What slept at every visit so far and is awake now is still to be tried.
		before := x.seen.masks[at]
		now := l.mask()
		x.seen.masks[at] = before & now
		awake &= before &^ now
		if x.Doubt != nil {
			x.verify(depth, print)
		}
		if awake == 0 {
			x.c.Merged++
			return
		}
	} else {
		if !known {
			x.seen.put(print, l.mask())
			x.c.States++
		}
		if ended {
			x.c.Schedules++
			if x.Ended != nil {
				x.Ended(print, l.witness)
			}
			return
		}
	}
	if x.bounded(depth) {
		return
	}
	x.c.Skipped += uint64(n - bits.OnesCount64(awake))
	for rank := 0; rank < n && x.stop == ""; rank++ {
		if rank < maxMask && awake&(1<<rank) == 0 {
			continue
		}
		i := l.byRank[rank]
		last := rank == n-1 || rank+1 < maxMask && n <= maxMask && awake>>(rank+1) == 0
		x.try(depth, i, last)
		l = x.levels[depth]
		if !x.EveryOrder && len(x.namings) == 0 {
			l.asleep = append(l.asleep, sleeper{l.ids[i], l.touches[i]})
		}
	}
}

// try has event i come, once for each of the decisions within it. last: the
// state is not needed any more afterwards.
func (x *Search) try(depth, i int, last bool) {
	l, next := x.levels[depth], x.level(depth+1)
	next.script.restart()
	for moved := false; ; {
		// A world that nobody needs any more need not be copied, unless the event
		// may have a second script.
		if moved = last && !l.world.Decides(i); moved {
			l.world, next.world = next.world, l.world
			l.witness, next.witness = next.witness, l.witness
		} else {
			next.world.CopyFrom(l.world)
			next.witness.CopyFrom(l.witness)
		}
		next.world.Watch(next.choices, next.witness)
		next.script.rewind()
		next.order, next.of, next.found = i, len(l.ids), l.found
		next.asleep = next.asleep[:0]
		for _, s := range l.asleep {
			if s.touches&l.touches[i] == 0 {
				next.asleep = append(next.asleep, s)
			}
		}
		if x.c.Transitions++; x.c.Transitions&1023 == 0 {
			x.clock()
		}
		if what := next.world.Step(i); what != "" {
			next.witness.Panicked(next.world.Now(), what)
			x.found(depth + 1)
			// The world is in the middle of something, and its buffers with it.
			next.world, next.witness = sim.NewWorld(), x.Witness()
		} else {
			x.arrive(depth + 1)
		}
		if x.stop != "" || !next.script.turn() {
			return
		}
		if moved {
			panic("exhaustive: an event had a decision that its world did not announce")
		}
	}
}

// step names an event of a state with the decisions within it.
type step struct {
	from core.Digest
	id   uint64
}

func (x *Search) stepTo(depth int) step {
	l, before := x.levels[depth], x.levels[depth-1]
	d := core.Digest(before.ids[l.order])
	for i := range l.script.draws {
		d.Uint(l.script.draws[i].value)
	}
	return step{before.print, uint64(d)}
}

// follow remembers where an event of a state leads, the first time.
func (x *Search) follow(depth int, print core.Digest) {
	if x.led == nil {
		x.led = map[step]core.Digest{}
	}
	s := x.stepTo(depth)
	if was, ok := x.led[s]; !ok {
		x.led[s] = print
	} else if was != print {
		x.Doubt(x.levels[depth].world, x.levels[depth].order, was, print)
	}
}

// verify has each event of a state that was met before come once more, and
// looks whether it leads where it led then.
func (x *Search) verify(depth int, print core.Digest) {
	l, next := x.levels[depth], x.level(depth+1)
	l.print = print
	for i := range l.ids {
		next.script.restart()
		next.world.CopyFrom(l.world)
		next.witness.CopyFrom(l.witness)
		next.world.Watch(next.choices, next.witness)
		next.order, next.of = i, len(l.ids)
		if next.world.Step(i) != "" {
			next.world, next.witness = sim.NewWorld(), x.Witness()
			continue
		}
		if next.world.Ready() == 0 {
			next.witness.Finish(next.world.End())
		}
		s := x.stepTo(depth + 1)
		if was, ok := x.led[s]; ok {
			if is := x.fingerprint(next); is != was {
				x.Doubt(next.world, i, was, is)
			}
		}
	}
}

// found reports what is new on the path.
func (x *Search) found(depth int) {
	l := x.levels[depth]
	n := l.witness.Found()
	if n <= l.found {
		return
	}
	l.found = n
	if x.Report != nil && x.Report(l.witness, func() *sim.Tape { return x.tape(depth) }) {
		x.stop = "stopped at the first violation"
	}
}

// tape writes the decisions of the path down.
func (x *Search) tape(depth int) *sim.Tape {
	t := new(sim.Tape)
	t.Add(sim.ForGrain, 0, uint64(x.Grain))
	for _, l := range x.levels[:depth+1] {
		if l.of > 1 {
			t.Add(sim.ForOrder, 0, uint64(l.order))
		}
		for i := range l.script.draws {
			d := &l.script.draws[i]
			t.Add(d.purpose, d.actor, d.value)
		}
	}
	return t
}

// bounded reports whether a bound ends the search or the path.
func (x *Search) bounded(depth int) bool {
	switch {
	case x.MaxStates > 0 && x.c.States >= x.MaxStates:
		x.stop = fmt.Sprintf("the bound of %d states is reached", x.MaxStates)
	case x.MaxDepth > 0 && depth >= x.MaxDepth, depth >= maxLevels:
		x.stop = fmt.Sprintf("a path has more than %d events", depth)
	}
	return x.stop != ""
}

// clock looks at the time.
func (x *Search) clock() {
	now := time.Now()
	if x.Deadline > 0 && now.Sub(x.began) > x.Deadline {
		x.stop = fmt.Sprintf("the time of %v is over", x.Deadline)
	}
	if x.Progress != nil && now.After(x.next) {
		x.next = now.Add(progressEvery)
		c := x.c
		c.Took = now.Sub(x.began)
		x.Progress(c)
	}
}

// fingerprint folds the state of a level; where workers may change places, the
// least fold of all their orders.
func (x *Search) fingerprint(l *level) core.Digest {
	if len(x.namings) == 0 {
		return l.fold(nil)
	}
	least := ^core.Digest(0)
	for _, naming := range x.namings {
		naming.Of(l.world)
		least = min(least, l.fold(naming))
	}
	return least
}

func (l *level) fold(naming *sim.Naming) core.Digest {
	d := l.world.Fingerprint(naming)
	d.Uint(uint64(l.witness.Fingerprint(naming)))
	return d
}

// maxMask is how many events of a state can sleep; the others are tried.
const maxMask = 32

// look notes what can come next, in an order that does not depend on the path.
func (l *level) look(n int) {
	l.ids, l.touches, l.byRank = l.ids[:0], l.touches[:0], l.byRank[:0]
	for i := range n {
		id := l.world.Identity(i)
		l.ids, l.touches = append(l.ids, id), append(l.touches, l.world.Touches(i))
		l.byRank = append(l.byRank, i)
		for k := i; k > 0 && l.ids[l.byRank[k]] < l.ids[l.byRank[k-1]]; k-- {
			l.byRank[k], l.byRank[k-1] = l.byRank[k-1], l.byRank[k]
		}
	}
}

// mask is the events that sleep, by rank.
func (l *level) mask() uint64 {
	var m uint64
	for rank, i := range l.byRank {
		if rank >= maxMask {
			break
		}
		for _, s := range l.asleep {
			if s.id == l.ids[i] {
				m |= 1 << rank
			}
		}
	}
	return m
}

// awake is the events that do not, by rank.
func (l *level) awake() uint64 {
	n := min(len(l.ids), maxMask)
	return (1<<n - 1) &^ l.mask()
}
