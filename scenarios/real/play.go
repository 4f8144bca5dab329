package real

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"vigil/core"
	"vigil/faults"
	"vigil/scenarios"
	"vigil/sim"
)

// play is one run of one scenario. Its loop is one goroutine, which alone
// decides what happens when; what proxies, processes and logs report comes to
// it through say and the tails.
type play struct {
	options  *Options
	scenario *scenarios.Scenario
	plan     *sim.Plan
	seed     uint64
	dice     *rand.Rand
	dir      string
	began    time.Time // the scenario's time 0
	started  bool

	server   *serverLife // the present life, or the last
	servers  []*serverLife
	stop     <-chan struct{}
	workers  []*worker
	children []*child
	client   *rawClient
	asked    uint64 // uids of the raw client

	due     []event // what is to happen, unsorted: there is little
	watches []watch
	struck  []bool
	rules   []rule
	// troubles are the latent faults so far.
	troubles []*trouble

	mu     sync.Mutex // guards what other goroutines add
	world  []core.Record
	posted []func() // for the loop
	seen   int      // of world: shown to the watches
	fails  []string
	wake   chan struct{}

	requests uint64
	looksAt  core.Time
	stalls   stalls
	stallsAt time.Time
}

// event is something that happens at a time.
type event struct {
	at core.Time
	do func()
}

// watch is a step that waits for a record.
type watch struct{ step, left int }

// worker is one worker of the plan, over all its lives.
type worker struct {
	play       *play
	index      int
	plan       *sim.WorkerPlan
	proxy      *proxy
	child      *child
	lives      int
	pid        int // in the scenario: 1 for the first process of a pod
	instance   core.InstanceID
	registered bool
	leaving    bool
	failed     bool // its register failed: it may exit
	traffic    bool
	ticking    bool
	stuck      bool
	paused     bool
	logs       []*workerLog
	makers     map[int]core.InstanceID
}

// workerLog is the event log of one life of a worker.
type workerLog struct {
	tail    *tail
	records []core.Record
	killed  core.Time // what it wrote later was written before; Never
}

// serverLife is one life of the server.
type serverLife struct {
	child   *child
	tail    *tail
	records []core.Record
	looks   []look
	http    string
	ready   chan struct{}
	once    sync.Once
	killed  core.Time // Never while it lives
	ended   bool
	leaving bool
	paused  bool
}

// The rhythm of the loop, in real time.
const (
	mapsEvery = 10 * time.Millisecond // between two looks at the server's mappings
	tailEvery = 2 * time.Millisecond  // of the logs while a step waits for a record
	idleEvery = 50 * time.Millisecond // of the logs otherwise
	settle    = 80 * time.Millisecond // for the logs to be written when the story ends
	readyWait = 20 * time.Second      // for a process to start
)

// now is the scenario's time.
func (p *play) now() core.Time {
	if !p.started {
		return 0
	}
	return core.Time(int64(time.Since(p.began)) * int64(p.options.Scale))
}

func (p *play) toScenario(unixNS int64) core.Time {
	return core.Time((unixNS - p.began.UnixNano()) * int64(p.options.Scale))
}

// scaled is how long a span of the scenario is in real time.
func (p *play) scaled(d time.Duration) time.Duration { return d / time.Duration(p.options.Scale) }

// say takes a record of the world in, from any goroutine.
func (p *play) say(r core.Record) {
	r.Actor = core.ActorWorld
	p.mu.Lock()
	r.At = p.now()
	p.world = append(p.world, r)
	p.mu.Unlock()
}

// sayAt is say of something that happened at a reading of the host's clock.
func (p *play) sayAt(at core.Time, r core.Record) {
	r.Actor, r.At = core.ActorWorld, max(at, 0)
	p.mu.Lock()
	p.world = append(p.world, r)
	p.mu.Unlock()
}

// fail notes that a process did what it must not.
func (p *play) fail(format string, args ...any) {
	p.mu.Lock()
	p.fails = append(p.fails, fmt.Sprintf(format, args...))
	p.mu.Unlock()
	p.ring()
}

func (p *play) ring() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *play) in(after time.Duration, do func()) { p.at(p.now().Add(after), do) }

func (p *play) at(t core.Time, do func()) { p.due = append(p.due, event{t, do}) }

func (p *play) span(s faults.Span) time.Duration {
	if s.High <= s.Low {
		return s.Low
	}
	return s.Low + time.Duration(p.dice.Int64N(int64(s.High-s.Low)+1))
}

// perform plays the story from its start to its end. The error is about the
// test itself: what the processes did is in the records.
func (p *play) perform(ctx context.Context) error {
	for i := range p.plan.Workers {
		w := &worker{play: p, index: i, plan: &p.plan.Workers[i], makers: map[int]core.InstanceID{}}
		var err error
		if w.proxy, err = newProxy(i, filepath.Join(p.dir, fmt.Sprintf("w%d.sock", i+1)), p.serverSocket(), p.say, p.scaled); err != nil {
			return err
		}
		if p.plan.Latency.High > time.Duration(p.options.Scale)*time.Millisecond {
			w.proxy.slow(p.plan.Latency)
		}
		p.workers = append(p.workers, w)
	}
	p.stop, p.began = ctx.Done(), time.Now()
	s, err := p.launchServer()
	if err == nil {
		err = p.await(s)
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.began, p.started = time.Now(), true
	p.mu.Unlock()
	p.say(core.Record{Kind: core.ProcessStarted, A: 0, B: 1})
	if err := p.rulesOfThePlan(); err != nil {
		return err
	}
	for _, w := range p.workers {
		p.in(p.span(w.plan.Start), w.start)
	}
	p.struck = make([]bool, len(p.plan.Steps))
	for i := range p.plan.Steps {
		switch st := &p.plan.Steps[i]; {
		case st.When != nil:
			p.watches = append(p.watches, watch{i, max(1, st.When.Nth)})
		case st.After == 0:
			p.at(core.Time(p.span(st.At)), func() { p.strike(i) })
		}
	}
	p.at(core.Time(p.plan.FaultsOver), func() { p.say(core.Record{Kind: core.FaultsOver}) })
	if err := p.loop(ctx); err != nil {
		return err
	}
	p.endRules()
	time.Sleep(settle)
	p.takePosted()
	p.poll()
	return nil
}

// loop lets the story happen until its end.
func (p *play) loop(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	end := core.Time(p.plan.Until)
	for {
		now := p.now()
		if now >= end {
			return nil
		}
		p.takePosted()
		for p.happen(now) {
		}
		if p.broken() {
			return nil // whatever came until then is judged
		}
		if now >= p.looksAt {
			p.look()
			p.looksAt = p.now().Add(mapsEvery * time.Duration(p.options.Scale))
		}
		if time.Since(p.stallsAt) >= stallEvery {
			p.stalls.read(p.pids())
			p.stallsAt = time.Now()
		}
		every := idleEvery
		if len(p.watches) > 0 {
			every = tailEvery
			p.poll()
		}
		next := min(end, p.looksAt, p.now().Add(every*time.Duration(p.options.Scale)))
		for i := range p.due {
			next = min(next, p.due[i].at)
		}
		timer.Reset(max(p.scaled(next.Sub(p.now())), 50*time.Microsecond))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.wake:
		case <-timer.C:
		}
	}
}

func (p *play) takePosted() {
	p.mu.Lock()
	posted := p.posted
	p.posted = nil
	p.mu.Unlock()
	for _, do := range posted {
		do()
	}
}

// happen lets the earliest thing that is due happen.
func (p *play) happen(now core.Time) bool {
	first := -1
	for i := range p.due {
		if p.due[i].at <= now && (first < 0 || p.due[i].at < p.due[first].at) {
			first = i
		}
	}
	if first < 0 {
		return false
	}
	do := p.due[first].do
	p.due = append(p.due[:first], p.due[first+1:]...)
	do()
	return true
}

func (p *play) broken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.fails) > 0
}

// poll reads what the logs have to say, and shows it to the waiting steps.
func (p *play) poll() {
	for _, s := range p.servers {
		s.tail.poll(func(r core.Record) {
			s.records = append(s.records, r)
			p.watch(&r)
		})
	}
	for _, w := range p.workers {
		for _, l := range w.logs {
			l.tail.poll(func(r core.Record) {
				l.records = append(l.records, r)
				p.watch(&r)
			})
		}
	}
	p.mu.Lock()
	news := append([]core.Record(nil), p.world[p.seen:]...)
	p.seen = len(p.world)
	p.mu.Unlock()
	for i := range news {
		p.watch(&news[i])
	}
}

// watch sees whether a record is one that a step waits for.
func (p *play) watch(r *core.Record) {
	for i := 0; i < len(p.watches); i++ {
		wt := &p.watches[i]
		when := p.plan.Steps[wt.step].When
		if r.Kind != when.Record || !p.about(r, when.Worker) {
			continue
		}
		if wt.left--; wt.left > 0 {
			continue
		}
		step := wt.step
		p.watches = append(p.watches[:i], p.watches[i+1:]...)
		i--
		// The step's time counts from the record, not from when it was read.
		p.at(r.At.Add(p.span(p.plan.Steps[step].At)), func() { p.strike(step) })
	}
}

// about reports whether a record concerns a worker (sim.Trigger).
func (p *play) about(r *core.Record, worker int) bool {
	switch {
	case worker == faults.Everyone:
		return true
	case worker == faults.Server:
		return r.Actor == core.ActorServer || r.Actor == core.ActorWorld
	case r.Actor == core.FirstWorker+core.Actor(worker):
		return true
	}
	if r.Instance != 0 {
		for _, id := range p.workers[worker].makers {
			if id == r.Instance {
				return true
			}
		}
		return false
	}
	switch r.Kind {
	case core.ProcessStarted, core.ProcessKilled, core.ProcessExited, core.ProcessPaused, core.ProcessResumed,
		core.LinkCut, core.LinkHealed:
		return r.A == uint64(worker)+1
	case core.ConnectionOpened, core.ConnectionClosed:
		return r.B == uint64(worker)+1
	}
	return false
}

// pids are the processes that take part now, this one among them.
func (p *play) pids() []int {
	list := []int{os.Getpid()}
	for _, c := range p.children {
		if c.alive() {
			list = append(list, c.pid)
		}
	}
	return list
}

// look reads the server's mappings.
func (p *play) look() {
	s := p.server
	if s == nil || s.ended {
		return
	}
	at := p.now()
	m, err := readMaps(s.child.pid)
	if err != nil || len(m) == 0 && !s.child.alive() {
		return
	}
	// Looks that show the same as the last two add nothing but a later time.
	l := look{at, p.now(), m}
	if n := len(s.looks); n >= 2 && same(s.looks[n-1].bytes, m) && same(s.looks[n-2].bytes, m) {
		s.looks[n-1] = l
		return
	}
	s.looks = append(s.looks, l)
}

func same(a, b map[int]uint64) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// clean takes everything away that the run made, whatever state it is in.
func (p *play) clean() (left []string) {
	if p.client != nil {
		p.client.close()
	}
	for _, c := range p.children {
		c.ask()
		c.signal(syscall.SIGKILL)
	}
	for _, c := range p.children {
		c.end()
		if c.alive() {
			left = append(left, fmt.Sprintf("process %d", c.pid))
		}
	}
	for _, w := range p.workers {
		if w.proxy != nil {
			w.proxy.close()
		}
		for _, l := range w.logs {
			l.tail.close()
		}
	}
	for _, s := range p.servers {
		s.tail.close()
	}
	left = append(left, sweep(p.children)...)
	if p.options.Keep == "" {
		os.RemoveAll(p.dir)
	}
	return left
}

func (p *play) serverSocket() string { return filepath.Join(p.dir, "server.sock") }
