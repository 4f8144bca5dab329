package real

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"vigil/core"
	"vigil/faults"
	"vigil/sim"
)

// The workers: processes of `server worker control`, whose engines do what the
// story says when it says so (docs/real.md has the lines).

// start begins a life.
func (w *worker) start() {
	p := w.play
	if w.child != nil && w.child.alive() {
		return
	}
	w.lives++
	w.pid++
	c := &w.plan.Config
	log := filepath.Join(p.dir, fmt.Sprintf("w%d-%d.jsonl", w.index+1, w.lives))
	args := []string{"worker", "control",
		"--connect", "ipc://" + w.connectsTo(), "--time-scale", strconv.Itoa(p.options.Scale), "--event-log", log,
		"--model", c.Model, "--salt", c.Salt, "--world-size", strconv.Itoa(c.WorldSize), "--rank", strconv.Itoa(c.Rank),
		"--chunk-tokens", strconv.Itoa(c.ChunkTokens), "--block-tokens", strconv.Itoa(or(p.plan.BlockTokens, 16)),
		"--blocks", strconv.Itoa(p.blocks(w)), "--block-bytes", strconv.Itoa(or(w.plan.BlockBytes, 4096)),
		"--interval", c.Interval.String(), "--timeout", c.Timeout.String(),
		"--blend=" + strconv.FormatBool(c.Blend), "--prober=" + strconv.FormatBool(c.Prober), "--legacy=" + strconv.FormatBool(c.Legacy),
	}
	args = append(args, p.options.memoryArgs()...)
	if c.Mode == core.ModeEngineDriven {
		args = append(args, "--mode", "engine-driven")
	}
	if w.plan.PIDIdentity {
		args = append(args, "--instance", strconv.Itoa(w.pid))
	}
	args = append(args, p.options.designArgs()...)
	life := w.lives
	child, err := spawn(p.environment(), func(line []byte) { p.engineSaid(w, life, line) }, nil, p.options.Server, args...)
	if err != nil {
		p.fail("%s: %v", w.plan.Name, err)
		return
	}
	p.children = append(p.children, child)
	w.child, w.instance, w.registered, w.leaving, w.failed, w.paused, w.ticking, w.stuck = child, 0, false, false, false, false, false, false
	w.traffic = !w.plan.Traffic.Every.Zero()
	l := &workerLog{killed: core.Never}
	l.tail = &tail{path: log, toScenario: p.toScenario, adjust: func(r *core.Record) {
		r.Actor = core.FirstWorker + core.Actor(w.index)
		if r.Kind == core.WorkerStarted {
			r.A = uint64(w.pid)
		}
	}}
	w.logs = append(w.logs, l)
	p.say(core.Record{Kind: core.ProcessStarted, A: uint64(w.index) + 1, B: uint64(w.pid)})
	go func() {
		<-child.done
		p.post(func() { p.workerEnded(w, child, life) })
	}()
	if !w.plan.Idle && !c.Prober {
		p.in(p.span(w.plan.Warmup), func() { w.register(life) })
	}
}

// connectsTo is where a life of the worker connects: the proxy, unless its
// death is to be proven by the process behind the connection, which is the
// worker's own only without a proxy between.
func (w *worker) connectsTo() string {
	if watched(w.play.plan, w.index) {
		return w.play.serverSocket()
	}
	return w.proxy.path
}

// watched reports whether the server's host must see this worker's process
// itself: where the story has the proof of death and this worker dies. Nobody
// sees its messages on their way then; the others keep their proxies.
func watched(plan *sim.Plan, worker int) bool {
	if !plan.Proof {
		return false
	}
	for i := range plan.Steps {
		do := &plan.Steps[i].Do
		f := &do.Fault
		if do.Kind == sim.ActFault && (f.Kind == faults.Kill || f.Kind == faults.Restart) && (f.Worker == worker || f.Worker == faults.Everyone) {
			return true
		}
	}
	return false
}

func or(v, fallback int) int {
	if v == 0 {
		return fallback
	}
	return v
}

// register has the engine announce its memory.
func (w *worker) register(life int) bool {
	return life == w.lives && !w.leaving && w.child != nil && w.child.say("register")
}

// running reports whether its process lives and is not stopped.
func (w *worker) running() bool { return w.child != nil && w.child.alive() && !w.paused }

// post hands something to the loop, from any goroutine.
func (p *play) post(do func()) {
	p.mu.Lock()
	p.posted = append(p.posted, do)
	p.mu.Unlock()
	p.ring()
}

// workerEnded takes a worker's end in that nobody brought about here.
func (p *play) workerEnded(w *worker, c *child, life int) {
	if c.asked() {
		return
	}
	p.say(core.Record{Kind: core.ProcessExited, A: uint64(w.index) + 1, Instance: w.makers[c.pid]})
	if !w.leaving && !w.failed {
		p.fail("%s's process ended by itself (%s): %s", w.plan.Name, c.ending(), lastLine(c.tail.String()))
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// engineEvent is one line of an engine (cmd/server, control.go).
type engineEvent struct {
	Event    string `json:"event"`
	At       int64  `json:"at"`
	Instance string `json:"instance"`
	Request  uint64 `json:"request"`
	Store    bool   `json:"store"`
	OK       bool   `json:"ok"`
	Outcome  string `json:"outcome"`
	Blocks   uint64 `json:"blocks"`
	Block    uint64 `json:"block"`
	Reason   string `json:"reason"`
}

var outcomes = func() map[string]core.Outcome {
	m := map[string]core.Outcome{}
	for o := core.OutcomeNone; o.String() != "unknown"; o++ {
		m[o.String()] = o
	}
	return m
}()

// engineSaid takes a line of an engine in; it runs on the goroutine that reads
// the lines.
func (p *play) engineSaid(w *worker, life int, line []byte) {
	var e engineEvent
	if json.Unmarshal(line, &e) != nil || e.Event == "" {
		return // what is no line of ours is the server's own business
	}
	n, _ := strconv.ParseUint(e.Instance, 10, 63)
	id := core.InstanceID(n)
	at, number := p.toScenario(e.At), uint64(w.index)+1
	switch e.Event {
	case "started":
		p.post(func() { w.meet(life, id) })
	case "registered":
		p.sayAt(at, core.Record{Kind: core.EngineRegistered, Instance: id, A: number, Flag: e.OK})
		p.post(func() {
			if life == w.lives {
				w.registered, w.failed = e.OK, !e.OK
				w.schedule(life)
			}
		})
	case "submitted":
		p.sayAt(at, core.Record{Kind: core.EngineSubmitted, Instance: id, A: e.Request, B: number, Flag: e.Store})
	case "told":
		p.sayAt(at, core.Record{Kind: core.EngineTold, Instance: id, A: e.Request, B: uint64(outcomes[e.Outcome]), Flag: e.Store})
	case "blocks-right":
		p.sayAt(at, core.Record{Kind: core.BlocksRight, Instance: id, A: e.Request, B: e.Blocks})
	case "blocks-wrong":
		p.sayAt(at, core.Record{Kind: core.BlocksWrong, Instance: id, A: e.Request, B: e.Block})
	case "leaving":
		p.sayAt(at, core.Record{Kind: core.EngineLeaving, Instance: id, A: number})
	case "error":
		p.fail("%s's engine: %s", w.plan.Name, e.Reason)
	}
}

// meet learns who a worker's process is.
func (w *worker) meet(life int, id core.InstanceID) {
	if life == w.lives {
		w.instance = id
		w.makers[w.child.pid] = id
		w.play.troubled(w)
	}
}

// schedule plans the next request of the engine's own traffic.
func (w *worker) schedule(life int) {
	p, t := w.play, &w.plan.Traffic
	if w.ticking || !w.traffic || !w.registered || t.Every.Zero() {
		return
	}
	w.ticking = true
	at := p.now().Add(p.span(t.Every))
	if from := core.Time(t.From); p.now() < from {
		at = from.Add(p.span(faults.Span{Low: time.Millisecond, High: 20 * time.Millisecond}))
	}
	p.at(at, func() {
		if life != w.lives {
			return
		}
		w.ticking = false
		if !w.traffic || w.leaving || t.To != 0 && p.now() >= core.Time(t.To) {
			return
		}
		stores, all := t.Stores, t.Stores+t.Retrieve
		if all == 0 {
			stores, all = 1, 2
		}
		if w.running() && !w.stuck {
			w.submit(p.dice.IntN(all) < stores, -1)
		}
		w.schedule(life)
	})
}

// submit has the engine ask for one transfer; prompt -1 lets the dice choose.
func (w *worker) submit(store bool, prompt int) bool {
	p := w.play
	if !w.registered || w.leaving || w.stuck {
		return false
	}
	prompts := or(p.plan.Prompts, 32)
	if prompt < 0 {
		prompt = p.dice.IntN(prompts)
	}
	prompt %= prompts
	p.requests++
	verb := "retrieve"
	if store {
		verb = "store"
	}
	return w.child.say("%s %d %d %d", verb, p.requests, prompt, p.tokens(w, prompt))
}

// tokens is how long a prompt is: whole chunks between the plan's bounds, by
// the prompt alone, and no longer than the worker's memory.
func (p *play) tokens(w *worker, prompt int) int {
	chunk := w.plan.Config.ChunkTokens
	low, high := or(p.plan.PromptLow, chunk), or(p.plan.PromptHigh, 4*chunk)
	n := low
	if high > low {
		n += int(uint64(prompt+1) * 0x9e3779b97f4a7c15 >> 20 % uint64(high-low+1))
	}
	room := p.blocks(w) * or(p.plan.BlockTokens, 16)
	return max(min(n, room)/chunk*chunk, chunk)
}

// blocks is how many KV blocks a worker has: enough for several requests, as
// in the simulator. With few, an engine uses blocks again while a request that
// it was told to have failed is still under way (docs/real.md).
func (p *play) blocks(w *worker) int {
	most := or(p.plan.PromptHigh, 4*w.plan.Config.ChunkTokens) / or(p.plan.BlockTokens, 16)
	return or(w.plan.Blocks, max(64, 8*most))
}

// The server.

func (o *Options) environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "VIGIL_") {
			env = append(env, v)
		}
	}
	return env
}

// designArgs are the flags that give a process the protections under test.
func (o *Options) designArgs() []string {
	base := core.Document()
	if o.Design == "hardened" {
		base = core.Hardened()
	}
	args := []string{"--design", o.Design}
	var on, off []string
	for _, name := range core.ProtectionNames() {
		with, was := o.Protections, base
		with.Set(name, true)
		was.Set(name, true)
		switch has, had := with == o.Protections, was == base; {
		case has && !had:
			on = append(on, name)
		case !has && had:
			off = append(off, name)
		}
	}
	if len(on) > 0 {
		args = append(args, "--protect", strings.Join(on, ","))
	}
	if len(off) > 0 {
		args = append(args, "--unprotect", strings.Join(off, ","))
	}
	return args
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

// launchServer starts a life of the server.
func (p *play) launchServer() (*serverLife, error) {
	c := &p.plan.Server
	log := filepath.Join(p.dir, fmt.Sprintf("server-%d.jsonl", len(p.servers)+1))
	args := []string{"run",
		"--bind", "ipc://" + p.serverSocket(), "--http", "127.0.0.1:0", "--event-log", log, "--log-format", "json",
		"--time-scale", strconv.Itoa(p.options.Scale), "--test-hooks",
		"--worker-reap-timeout-seconds", seconds(c.Reap), "--worker-registration-grace-seconds", seconds(c.Grace),
		"--chunk-tokens", strconv.Itoa(c.ChunkTokens), "--normal-slots", strconv.Itoa(c.NormalSlots), "--affinity-lanes", strconv.Itoa(c.AffinityLanes),
		"--l1-bytes", strconv.FormatUint(min(c.L1Bytes, 256<<20), 10),
	}
	args = append(append(args, p.options.memoryArgs()...), p.options.watchArgs()...)
	switch {
	case !c.EngineDriven:
		args = append(args, "--transfer-mode", "server-driven")
	case !c.ServerDriven:
		args = append(args, "--transfer-mode", "engine-driven")
	}
	if c.EngineDriven {
		args = append(args, "--pool-bytes", p.poolBytes())
	}
	if c.Legacy {
		args = append(args, "--legacy")
	}
	if p.options.Record != "" {
		args = append(args, "--record", filepath.Join(p.options.Record, strings.ReplaceAll(p.scenario.ID, "/", "-")))
	}
	options := *p.options // deaths are the window's unless the story's host can watch the workers
	options.Protections.ProofOfDeath = options.Protections.ProofOfDeath && p.plan.Proof
	args = append(args, options.designArgs()...)
	s := &serverLife{ready: make(chan struct{}), killed: core.Never}
	s.tail = &tail{path: log, toScenario: p.toScenario, adjust: func(r *core.Record) { r.At = max(r.At, 0) }}
	child, err := spawn(p.environment(), nil, s.logged, p.options.Server, args...)
	if err != nil {
		return nil, err
	}
	s.child = child
	p.children = append(p.children, child)
	p.servers, p.server = append(p.servers, s), s
	go func() {
		<-child.done
		p.post(func() { p.serverEnded(s) })
	}()
	return s, nil
}

// await waits until a server serves.
func (p *play) await(s *serverLife) error {
	child := s.child
	timer := time.NewTimer(readyWait)
	defer timer.Stop()
	select {
	case <-s.ready:
		return nil
	case <-child.done:
		return fmt.Errorf("the server did not start (%s): %s", child.ending(), lastLine(child.tail.String()))
	case <-timer.C:
		return fmt.Errorf("the server did not serve within %s: %s", readyWait, lastLine(child.tail.String()))
	case <-p.stop:
		return errInterrupted
	}
}

// poolBytes is a pool that holds what the engine-driven workers of a story
// need; none where there are none.
func (p *play) poolBytes() string {
	for i := range p.plan.Workers {
		if p.plan.Workers[i].Config.Mode == core.ModeEngineDriven {
			return strconv.Itoa(32 << 20)
		}
	}
	return "0"
}

// logged takes a line of the server's log: the one that says that it serves
// says where its hooks are.
func (s *serverLife) logged(line []byte) {
	var l struct {
		Msg  string `json:"msg"`
		HTTP string `json:"http"`
	}
	if json.Unmarshal(line, &l) != nil || l.Msg != "serving" {
		return
	}
	s.once.Do(func() {
		s.http = l.HTTP
		close(s.ready)
	})
}

// serverEnded takes the server's end in.
func (p *play) serverEnded(s *serverLife) {
	if s.ended {
		return
	}
	s.ended = true
	if s.child.asked() {
		return
	}
	p.say(core.Record{Kind: core.ProcessExited})
	if !s.leaving {
		p.fail("the server's process ended by itself (%s): %s", s.child.ending(), lastLine(s.child.tail.String()))
	}
}

// kill kills a worker's process.
func (w *worker) kill(silent bool) bool {
	p := w.play
	if w.child == nil || !w.child.alive() {
		return false
	}
	if silent {
		w.proxy.lose()
	}
	at := p.now()
	w.child.ask()
	if !w.child.signal(syscall.SIGKILL) {
		return false
	}
	p.sayAt(at, core.Record{Kind: core.ProcessKilled, A: uint64(w.index) + 1, Instance: w.makers[w.child.pid]})
	w.logs[len(w.logs)-1].killed = at
	w.registered, w.ticking, w.paused = false, false, false
	return true
}

// killServer kills the server's process.
func (p *play) killServer() bool {
	s := p.server
	if s == nil || !s.child.alive() {
		return false
	}
	at := p.now()
	s.child.ask()
	if !s.child.signal(syscall.SIGKILL) {
		return false
	}
	s.ended, s.killed = true, at
	p.sayAt(at, core.Record{Kind: core.ProcessKilled})
	return true
}

func (w *worker) pause() bool {
	if !w.running() || !w.child.signal(syscall.SIGSTOP) {
		return false
	}
	w.paused = true
	w.play.say(core.Record{Kind: core.ProcessPaused, A: uint64(w.index) + 1})
	return true
}

func (w *worker) resume() bool {
	if w.child == nil || !w.paused {
		return false
	}
	w.play.say(core.Record{Kind: core.ProcessResumed, A: uint64(w.index) + 1})
	w.paused = false
	return w.child.signal(syscall.SIGCONT)
}

func (p *play) pauseServer() bool {
	s := p.server
	if s == nil || s.ended || s.paused || !s.child.signal(syscall.SIGSTOP) {
		return false
	}
	s.paused = true
	p.say(core.Record{Kind: core.ProcessPaused})
	return true
}

func (p *play) resumeServer() bool {
	s := p.server
	if s == nil || !s.paused {
		return false
	}
	p.say(core.Record{Kind: core.ProcessResumed})
	s.paused = false
	return s.child.signal(syscall.SIGCONT)
}
