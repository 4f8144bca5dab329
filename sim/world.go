package sim

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"vigil/core"
	"vigil/core/server"
	"vigil/core/wire"
	"vigil/faults"
)

// World runs plans. Its buffers are reused from run to run, so a thousand runs
// a second cost no thousand worlds.
type World struct {
	plan     *Plan
	choices  *Choices
	observer Observer

	now       core.Time
	grain     core.Time // of time, where it goes in ticks; else 0
	heap      heap
	hash      core.Digest
	events    uint64
	records   uint64
	processes []process // 0 is the server
	asides    []aside   // of the processes
	engines   []engine
	machines  []machine // in one piece, so that what a machine touches can be fetched without being asked
	server    *server.Server
	net       network
	memory    memory
	exits     []exit // processes that asked to leave in this event

	identities []core.InstanceID // of each worker's present life
	models     []uint64          // of each worker: its model and salt, folded
	pids       []uint64          // of each pod: the last PID given
	requests   core.RequestID
	prompts    []prompt
	promptsOf  promptShape
	latency    faults.Span

	story   story
	ticks   ticks
	parcels parcels
	askers  []asker  // the raw clients
	answers []string // of each step: what a raw client was answered

	// Buffers of one event.
	driver    core.Driver
	input     core.Input
	call      core.Call
	scratch   core.Record
	current   core.Frames
	request   wire.Request
	decoder   wire.Decoder
	asking    wire.Request // of a raw client
	reply     wire.Reply   // to a raw client
	tensors   []core.Export
	outgoing  core.Frames
	name      []byte
	clientUID uint64
	handle    []byte
	blocks    []uint32
	exports   [1]core.Export
	groups    [1]core.Group
	layers    []int64
	shape     [2]int64

	blockTokens int
	crowd       int // from how many workers on the queue is laid out for a crowd
}

// Result is what one run came to.
type Result struct {
	Events  uint64 // events of the heap that did something
	Records uint64
	Hash    core.Digest // over every event and record, in order
	End     core.Time
	Panic   string // the code under test panicked: with what, and where
	Unfired []int  // steps of the story that never struck
}

// NewWorld returns a world without a plan.
func NewWorld() *World { return &World{crowd: crowd} }

// Run plays plan by the tape and shows every record to observer, which may be
// nil. It never panics: what the code under test does is in the result.
func (w *World) Run(plan *Plan, choices *Choices, observer Observer) (result Result) {
	defer func() {
		if cause := recover(); cause != nil {
			result = Result{
				Events: w.events, Records: w.records, Hash: w.hash, End: w.now,
				Panic: fmt.Sprintf("%v at %s", cause, panicPlace()),
			}
		}
	}()
	w.reset(plan, choices, observer)
	end := core.Time(plan.Until)
	w.play(end)
	w.parcels.left()
	w.truth(core.WorldEnded, nil)
	w.emit()
	return Result{Events: w.events, Records: w.records, Hash: w.hash, End: end, Unfired: w.story.unfired(nil)}
}

// play plays every event up to end, which then is the present.
func (w *World) play(end core.Time) {
	if w.grain > 0 {
		w.playTicks(end)
		return
	}
	for {
		if at, some := w.heap.peek(); !some || at > end {
			break
		}
		e := w.heap.next(w.choices)
		if w.heap.known > 0 {
			w.fetchAhead(e.at)
		}
		w.happen(e)
	}
	w.now = end
}

// happen plays one event.
func (w *World) happen(e event) {
	w.now = e.at
	if w.handleEvent(e) {
		w.events++
		w.hash.Uint(uint64(e.at))
		w.hash.Uint(uint64(e.kind)<<56 ^ uint64(uint32(e.who))<<24 ^ e.what)
	}
	for len(w.exits) > 0 {
		w.leave()
	}
}

// panicPlace names the frame of the project that panicked.
func panicPlace() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs)])
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "vigil/") {
			file := f.File
			if i := strings.LastIndex(file[:strings.LastIndex(file, "/")], "/"); i >= 0 {
				file = file[i+1:]
			}
			return fmt.Sprintf("%s (%s:%d)", f.Function, file, f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}

// reset lays out a fresh world for a plan.
func (w *World) reset(plan *Plan, choices *Choices, observer Observer) {
	w.plan, w.choices, w.observer = plan, choices, observer
	w.now, w.hash, w.events, w.records, w.requests, w.clientUID = 0, 0, 0, 0, 0, 0
	w.heap.reset(len(plan.Workers) >= w.crowd)
	w.ticks.begin(w, choices.grain)
	w.exits = w.exits[:0]
	w.latency = plan.Latency
	w.net.world, w.memory.world = w, w
	w.decoder = wire.Decoder{ChunkTokens: plan.Server.ChunkTokens, Legacy: plan.Server.Legacy}
	w.layPrompts()

	workers := len(plan.Workers)
	links := workers
	links += w.layAskers(plan)
	if cap(w.processes) < links+1 {
		w.processes = make([]process, links+1)
		w.asides = make([]aside, links+1)
	}
	if cap(w.engines) < workers {
		w.engines = make([]engine, workers)
	}
	w.processes, w.engines = w.processes[:links+1], w.engines[:workers]
	if len(w.machines) < workers { // made anew, not moved: a process of an earlier run may point at them
		w.machines = make([]machine, workers)
	}
	w.identities = resized(w.identities, workers)
	w.models = resized(w.models, workers)
	pods := 0
	for i := range plan.Workers {
		pods = max(pods, plan.Workers[i].Pod+1)
	}
	w.pids = resized(w.pids, pods)
	w.net.reset(links)
	w.memory.reset()
	w.parcels.begin(w)
	for i := range w.processes {
		p := &w.processes[i]
		*p = process{
			world: w, index: int32(i),
			machine: p.machine, aside: &w.asides[i],
		}
		p.timers = p.few[:0]
		*p.aside = aside{stopped: core.Never, held: p.held[:0], starved: p.starved[:0]}
		if i > workers { // a raw client, in whose place an earlier world may have had a worker
			p.state, p.machine = running, nil
			w.net.connect(i-1, w.choices.Span(ForReconnect, i, connectTime, connectTime))
			continue
		}
		w.push(evStart, i, w.startTime(i), p.life)
	}
	for i := range w.engines {
		wp := &plan.Workers[i]
		e := &w.engines[i]
		*e = engine{world: w, plan: wp, index: i, pending: e.pending[:0], blocks: w.blocksOf(wp), allocation: -1}
		w.models[i] = modelOf([]byte(wp.Config.Model), []byte(wp.Config.Salt))
	}
	if plan.FaultsOver > 0 {
		w.push(evFaultsOver, 0, core.Time(plan.FaultsOver), 0)
	}
	w.story.begin(w)
}

func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// startTime is when process i starts: the server first.
func (w *World) startTime(i int) core.Time {
	if i == 0 {
		return 0
	}
	return core.Time(w.choices.Span(ForStart, i, w.plan.Workers[i-1].Start, faults.Span{High: 2 * time.Second}))
}

// layPrompts makes the plan's prompts, once for all plans that want the same.
func (w *World) layPrompts() {
	plan := w.plan
	w.blockTokens = orElse(plan.BlockTokens, 16)
	chunk := plan.Server.ChunkTokens
	low := orElse(plan.PromptLow, chunk)
	shape := promptShape{
		count: orElse(plan.Prompts, 32), low: low, high: orElse(plan.PromptHigh, max(low, 4*chunk)),
		chunk: chunk, block: w.blockTokens,
	}
	if w.promptsOf != shape {
		w.prompts, w.promptsOf = makePrompts(shape), shape
	}
}

func orElse(v, fallback int) int {
	if v == 0 {
		return fallback
	}
	return v
}

// blocksOf is how many KV blocks a worker has: enough for several requests.
func (w *World) blocksOf(wp *WorkerPlan) int {
	if wp.Blocks != 0 {
		return wp.Blocks
	}
	most := 0
	for i := range w.prompts {
		most = max(most, w.prompts[i].blocks)
	}
	return max(64, 8*most)
}

func (w *World) blockBytes(wp *WorkerPlan) int { return orElse(wp.BlockBytes, 4096) }

func (w *World) push(kind eventKind, who int, at core.Time, what uint64) {
	w.heap.push(event{at: w.onTick(at), kind: kind, who: int32(who), what: what})
}

// truth starts a record of the ground truth; emit writes it.
func (w *World) truth(kind core.RecordKind, p *process) *core.Record {
	w.scratch = core.Record{Kind: kind}
	if p != nil && p.index > 0 {
		w.scratch.Instance = w.identities[p.index-1]
	}
	return &w.scratch
}

func (w *World) emit() { w.record(&w.scratch) }

// record takes one record into the event log.
func (w *World) record(r *core.Record) {
	r.At = w.now
	w.records++
	w.hash.Record(r)
	if w.observer != nil {
		w.observer.Observe(r)
	}
	if len(w.story.watches) > 0 {
		w.story.watch(r)
	}
}

// handleEvent plays one event and reports whether anything happened.
func (w *World) handleEvent(e event) bool {
	switch e.kind {
	case evTimer:
		return w.processes[e.who].timerUp(e)
	case evReach:
		return w.net.arrive(e, true)
	case evReply:
		return w.net.arrive(e, false)
	case evHandle, evTake:
		return w.net.handle(e)
	case evMemory:
		return w.memory.end(e)
	case evConnect:
		return w.net.connected(e)
	case evPeerClosed, evExited:
		return w.net.peerClosed(e)
	case evStep:
		w.story.strike(int(e.what))
		return true
	case evUndo:
		w.story.undo(int(e.what))
		return true
	case evFaultsOver:
		w.truth(core.FaultsOver, nil)
		w.emit()
		return true
	}
	p := &w.processes[e.who]
	if p.life != e.what {
		return false
	}
	if e.kind == evStart {
		w.start(p)
		return true
	}
	if p.state == paused {
		p.held = append(p.held, e)
		return false
	}
	if p.state == absent {
		return false
	}
	en := &w.engines[p.index-1]
	switch e.kind {
	case evRegister:
		return en.register()
	case evTraffic:
		return en.tick()
	case evPoll:
		return en.ask()
	}
	return false
}

// start begins a life of a process.
func (w *World) start(p *process) {
	if p.state != absent {
		return
	}
	p.state = running
	p.life++
	p.offset = w.clockOf(p)
	if p.index == 0 {
		w.startServer(p)
		return
	}
	wp := &w.plan.Workers[p.index-1]
	if p.pid == 0 {
		w.pids[wp.Pod]++
		p.pid = w.pids[wp.Pod]
	}
	config := wp.Config
	if wp.PIDIdentity {
		config.Instance = core.InstanceID(p.pid)
	}
	m := &w.machines[p.index-1].Worker
	m.Reset(config)
	p.machine = m
	w.identities[p.index-1] = 0
	r := w.truth(core.ProcessStarted, nil)
	r.A, r.B = p.number(), p.pid
	w.emit()
	w.engines[p.index-1].begin()
	w.net.connect(p.actor()-1, w.choices.Span(ForReconnect, p.actor(), connectTime, connectTime))
	w.feedStart(p)
	if !wp.Idle && !config.Prober {
		warm := w.choices.Span(ForStart, p.actor(), wp.Warmup, faults.Span{Low: 10 * time.Millisecond, High: time.Second})
		w.push(evRegister, p.actor(), w.now.Add(warm), p.life)
	}
}

// clockOf is the reading of a process's monotonic clock at the world's start.
// The server's is the world's own; no two workers agree.
func (w *World) clockOf(p *process) core.Time {
	return core.Time(p.index) * core.Time(1000*time.Second)
}

func (w *World) startServer(p *process) {
	if w.server == nil {
		w.server = server.New(w.plan.Server)
	} else {
		w.server.Reset(w.plan.Server)
	}
	p.machine = w.server
	r := w.truth(core.ProcessStarted, nil)
	r.A = 0
	w.emit()
	w.feedStart(p)
}

// feedStart gives a machine its first input, with entropy from the tape.
func (w *World) feedStart(p *process) {
	w.input = core.Input{Kind: core.InputStart}
	for i := range w.input.Entropy {
		if w.grain > 0 {
			w.input.Entropy[i] = byte(mix(uint64(p.actor())<<32^p.life<<8^uint64(i)) >> 8)
			continue
		}
		w.input.Entropy[i] = byte(w.choices.Below(ForEntropy, p.actor(), 256))
	}
	p.feed(&w.input)
}

// kill ends a process without a word. With silent its host is lost, so nobody
// is told that its connection closed.
func (w *World) kill(p *process, silent bool) bool {
	if p.state == absent {
		return false
	}
	r := w.truth(core.ProcessKilled, p)
	r.A, r.Flag = p.number(), silent
	w.emit()
	w.end(p, silent)
	return true
}

// end takes a process out of the world.
func (w *World) end(p *process, silent bool) {
	p.gone()
	if p.index == 0 {
		w.memory.serverGone()
		w.parcels.begin(w)
		for i := range w.net.links {
			w.net.disconnect(i, false, false)
			if w.processes[i+1].state != absent {
				w.net.connect(i, w.choices.Span(ForReconnect, i+1, backoffTime, backoffTime))
			}
		}
		return
	}
	l := &w.net.links[p.index-1]
	if w.plan.Proof && !silent && l.peer != 0 && w.processes[0].state != absent {
		at := w.now.Add(w.choices.Span(ForReconnect, p.actor(), noticeTime, noticeTime))
		w.push(evExited, p.actor()-1, at, uint64(l.peer))
	}
	w.net.disconnect(p.actor()-1, !silent, !silent && !l.up.cut)
	k := &w.net.sockets[p.actor()-1]
	for _, m := range k.waiting {
		w.net.lose(p.actor()-1, m, true)
	}
	k.waiting = k.waiting[:0]
	p.pid = 0
}

// exit is a process that leaves in order; bounded: it left something behind.
type exit struct {
	who     int
	bounded bool
	gaveUp  bool // an engine that could not start: its worker was not asked to leave
}

// leave is a process exiting in order.
func (w *World) leave() {
	x := w.exits[0]
	w.exits = w.exits[1:]
	p := &w.processes[x.who]
	if p.state == absent {
		return
	}
	for k := range p.timers {
		if t := &p.timers[k]; t.at != core.Never && p.index > 0 && !x.gaveUp { // a server may leave what hangs
			p.inVain(t.key)
		}
	}
	r := w.truth(core.ProcessExited, p)
	r.A, r.Flag = p.number(), x.bounded
	w.emit()
	w.end(p, false)
}
