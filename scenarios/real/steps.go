package real

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"vigil/core"
	"vigil/core/wire"
	"vigil/faults"
	"vigil/sim"
)

var errInterrupted = errors.New("interrupted")

// maxMemory bounds what the workers of one run take of the host.
const maxMemory = 1 << 30

// cannot says why real processes cannot play a plan; empty where they can.
func cannot(plan *sim.Plan) string {
	var memory uint64
	if plan.PlainServer {
		return "its server is of another design than the one that is played"
	}
	for i := range plan.Workers {
		switch w := &plan.Workers[i]; {
		case w.Plain:
			return "one of its workers is of another design than the one that is played"
		case w.Memory != nil:
			return "memory of several groups is played in the simulator only"
		}
		memory += uint64(or(plan.Workers[i].Blocks, 512)) * uint64(or(plan.Workers[i].BlockBytes, 4096))
	}
	if memory > maxMemory {
		return fmt.Sprintf("its workers have %d MiB of memory together, and real memory is taken; %d MiB are the most", memory>>20, maxMemory>>20)
	}
	if plan.Server.Bounds != (core.Bounds{}) {
		return "a real server's bounds are its own"
	}
	for i := range plan.Steps {
		do := &plan.Steps[i].Do
		if do.Part != nil {
			return "a part of a prompt is asked for in the simulator only"
		}
		if do.Kind == sim.ActAsk {
			return "raw clients ask in the simulator only"
		}
		if do.Kind != sim.ActFault {
			continue
		}
		switch f := &do.Fault; {
		case f.Worker != faults.Server && throughProxy(f) && anyWatched(plan, f.Worker):
			return "a worker whose death the host is to prove connects to the server itself, without a proxy that " + f.Kind.String() + " needs"
		case f.Kind == faults.HostSuspend:
			return "host-suspend stops the clocks of a whole host"
		case f.Kind >= faults.Kinds:
			return "nobody here knows what this fault means for processes"
		case f.Kind == faults.Restart && f.Same && !plan.Workers[max(f.Worker, 0)].PIDIdentity:
			return "same-pid needs a PID namespace of its own, and only ids that are PIDs show it"
		}
	}
	return ""
}

// throughProxy reports whether a fault is the proxy's to play.
func throughProxy(f *faults.Fault) bool {
	return f.Kind == faults.Cut || f.Kind == faults.Heal || f.Kind == faults.Delay || f.Silent
}

// anyWatched reports whether a fault's target has a worker without a proxy.
func anyWatched(plan *sim.Plan, target int) bool {
	for i := range plan.Workers {
		if (target == i || target == faults.Everyone) && watched(plan, i) {
			return true
		}
	}
	return false
}

// strike plays a step.
func (p *play) strike(step int) {
	do := &p.plan.Steps[step].Do
	hold := false
	if do.Kind == sim.ActFault {
		hold = p.fault(step, &do.Fault)
		if !do.Fault.For.Zero() && (hold || latent(do.Fault.Kind)) && do.Fault.Kind != faults.ServerRestart {
			p.in(p.span(do.Fault.For), func() { p.undo(step) })
		}
	} else {
		p.each(do.Worker, func(w *worker) {
			if p.act(w, do) {
				hold = true
			}
		})
	}
	p.struck[step] = p.struck[step] || hold
	p.say(core.Record{Kind: core.FaultStruck, A: uint64(step), Flag: hold})
	for i := range p.plan.Steps {
		if p.plan.Steps[i].After == step+1 {
			p.in(p.span(p.plan.Steps[i].At), func() { p.strike(i) })
		}
	}
}

func (p *play) each(target int, f func(*worker)) {
	for i, w := range p.workers {
		if target == faults.Everyone || target == i {
			f(w)
		}
	}
}

// act has an engine do something. It reports whether it did.
func (p *play) act(w *worker, do *sim.Action) bool {
	switch do.Kind {
	case sim.ActLookup:
		return w.running() && p.lookup(w, do.Prompt)
	case sim.ActUnregister:
		return p.unregister(w)
	}
	if !w.running() {
		return false
	}
	switch do.Kind {
	case sim.ActRegister:
		return !w.stuck && w.register(w.lives)
	case sim.ActReallocate:
		return !w.leaving && w.child.say("reallocate")
	case sim.ActStore:
		return w.submit(true, do.Prompt)
	case sim.ActRetrieve:
		return w.submit(false, do.Prompt)
	case sim.ActShutdown:
		if w.leaving {
			return false
		}
		w.leaving = true
		return w.child.say("shutdown")
	case sim.ActTraffic:
		w.traffic = do.On
		w.schedule(w.lives)
		return true
	}
	return false
}

// latent reports whether a fault lies in wait for an operation.
func latent(k faults.Kind) bool {
	switch k {
	case faults.SlowOpen, faults.HangOpen, faults.FailOpen, faults.SlowClose, faults.HangClose, faults.FailClose,
		faults.SlowCopy, faults.HangCopy, faults.FailCopy, faults.DeviceOutOfMemory:
		return true
	}
	return false
}

// fault carries a fault out. It reports whether it took hold at once.
func (p *play) fault(step int, f *faults.Fault) bool {
	hold := false
	switch f.Kind {
	case faults.ServerRestart:
		if !p.killServer() {
			return false
		}
		down := f.For
		if down.Zero() {
			down = p.plan.ServerStart
		}
		p.in(p.span(down), p.restartServer)
		return true
	case faults.ServerFreeze:
		return p.pauseServer()
	case faults.ServerStop:
		if p.server.ended || p.server.leaving {
			return false
		}
		p.server.leaving = true
		return p.server.child.signal(syscall.SIGTERM)
	case faults.BusyPool:
		return p.busy(step, f)
	case faults.DeviceOutOfMemory:
		if err := p.hook(http.MethodPut, "/test/hooks/room", map[string]uint64{"bytes": f.Bytes}, nil); err != nil {
			p.fail("test hooks: %v", err)
		}
		return false
	case faults.OldClient, faults.OldServer, faults.PIDIdentity:
		return true
	}
	if latent(f.Kind) {
		p.lies(step, f)
		return false
	}
	if f.Worker == faults.Server {
		switch f.Kind {
		case faults.Kill:
			return p.killServer()
		case faults.Pause:
			return p.pauseServer()
		case faults.Resume:
			return p.resumeServer()
		}
		return false
	}
	p.each(f.Worker, func(w *worker) {
		if p.strikeWorker(f, w) {
			hold = true
		}
	})
	return hold
}

func (p *play) strikeWorker(f *faults.Fault, w *worker) bool {
	switch f.Kind {
	case faults.Kill:
		return w.kill(f.Silent)
	case faults.Pause:
		return w.pause()
	case faults.Resume:
		return w.resume()
	case faults.Restart:
		w.kill(f.Silent)
		if f.Same {
			w.pid--
		}
		gap := f.Amount
		if gap.Zero() {
			gap = faults.Span{Low: 500 * time.Millisecond, High: 5 * time.Second}
		}
		p.in(p.span(gap), w.start)
		return true
	case faults.Cut:
		if w.child == nil || !w.child.alive() {
			return false
		}
		w.proxy.cut(f.Ways, f.Reset)
		return true
	case faults.Heal:
		return w.proxy.heal()
	case faults.Delay:
		w.proxy.slow(f.Amount)
		return true
	case faults.StarveHeartbeat:
		return w.child != nil && w.child.say("starve on")
	case faults.StickEngine:
		w.stuck = w.child != nil && w.child.say("stick on")
		return w.stuck
	}
	return false
}

// undo ends the fault of a step.
func (p *play) undo(step int) {
	f := &p.plan.Steps[step].Do.Fault
	switch {
	case f.Kind == faults.ServerFreeze || f.Worker == faults.Server && f.Kind == faults.Pause:
		p.resumeServer()
		return
	case f.Kind == faults.DeviceOutOfMemory:
		p.hook(http.MethodPut, "/test/hooks/room", map[string]uint64{"bytes": p.plan.DeviceBytes}, nil)
		return
	case latent(f.Kind):
		p.endRule(step)
		return
	}
	p.each(f.Worker, func(w *worker) {
		switch f.Kind {
		case faults.Pause:
			w.resume()
		case faults.Cut:
			w.proxy.heal()
		case faults.Delay:
			w.proxy.slow(faults.Span{})
		case faults.StarveHeartbeat:
			if w.child != nil {
				w.child.say("starve off")
			}
		case faults.StickEngine:
			if w.child != nil {
				w.child.say("stick off")
			}
			w.stuck = false
			w.schedule(w.lives)
		}
	})
}

// restartServer starts the server again; the story goes on meanwhile.
func (p *play) restartServer() {
	s, err := p.launchServer()
	if err != nil {
		p.fail("%v", err)
		return
	}
	go func() {
		err := p.await(s)
		p.post(func() {
			if err != nil {
				p.fail("%v", err)
				return
			}
			p.say(core.Record{Kind: core.ProcessStarted, B: uint64(len(p.servers))})
			if err := p.rulesOfThePlan(); err != nil {
				p.fail("test hooks: %v", err)
			}
			for _, t := range p.troubles {
				if t.to == core.Never && t.fault.Worker == faults.Everyone {
					p.rule(t, 0)
				}
			}
			for _, w := range p.workers {
				if w.instance != 0 {
					p.troubled(w)
				}
			}
		})
	}()
}

// The hooks of the server's memory (cmd/server, hooks.go).

// rule is one that stands; step -1 is the plan's own.
type rule struct{ step, number int }

func (p *play) hook(method, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(method, "http://"+p.server.http+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 2 * time.Second}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	out, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, bytes.TrimSpace(out))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(out, answer)
}

func (p *play) addRule(step int, operation string, instance core.InstanceID, delay time.Duration, hang bool, fail core.Failure, count int) error {
	body := map[string]any{
		"operation": operation, "instance": strconv.FormatUint(uint64(instance), 10),
		"delay_seconds": delay.Seconds(), "hang": hang, "count": count,
	}
	if fail != core.NoFailure {
		body["fail"] = fail.String()
	}
	var answer struct {
		Rule int `json:"rule"`
	}
	if err := p.hook(http.MethodPost, "/test/hooks", body, &answer); err != nil {
		return err
	}
	p.rules = append(p.rules, rule{step, answer.Rule})
	return nil
}

// trouble is a latent fault that stands: its rules are made again for each new
// process that it is about.
type trouble struct {
	step  int
	fault *faults.Fault
	delay time.Duration
	from  core.Time
	to    core.Time
}

// lies lets a latent fault lie in wait.
func (p *play) lies(step int, f *faults.Fault) {
	t := &trouble{step: step, fault: f, delay: p.span(f.Amount), from: p.now(), to: core.Never}
	p.troubles = append(p.troubles, t)
	if f.Worker == faults.Everyone {
		p.rule(t, 0)
		return
	}
	p.each(f.Worker, func(w *worker) {
		if w.instance != 0 { // else it is met later
			p.rule(t, w.instance)
		}
	})
}

// troubled makes the rules that stand for a process that is new.
func (p *play) troubled(w *worker) {
	for _, t := range p.troubles {
		if t.to == core.Never && t.fault.Worker == w.index {
			p.rule(t, w.instance)
		}
	}
}

// rule makes one rule stand; instance 0 is everybody.
func (p *play) rule(t *trouble, instance core.InstanceID) {
	f := t.fault
	operation := "copy"
	switch f.Kind {
	case faults.SlowOpen, faults.HangOpen, faults.FailOpen:
		operation = "open"
	case faults.SlowClose, faults.HangClose, faults.FailClose:
		operation = "close"
	}
	var delay time.Duration
	hang := false
	fail := core.NoFailure
	switch f.Kind {
	case faults.SlowOpen, faults.SlowClose, faults.SlowCopy:
		delay = t.delay
	case faults.HangOpen, faults.HangClose, faults.HangCopy:
		hang = true
	case faults.FailOpen:
		fail = core.FailOpen
	case faults.FailClose:
		fail = core.FailClose
	case faults.FailCopy:
		fail = core.FailCopy
	}
	if err := p.addRule(t.step, operation, instance, delay, hang, fail, f.Count); err != nil && !p.server.ended && !p.server.leaving {
		p.fail("test hooks: %v", err)
	}
}

// begins is the record with which an operation of a latent fault begins.
func begins(k faults.Kind) core.RecordKind {
	switch k {
	case faults.SlowOpen, faults.HangOpen, faults.FailOpen:
		return core.OpenBegan
	case faults.SlowClose, faults.HangClose, faults.FailClose:
		return core.CloseBegan
	}
	return core.CopyBegan
}

// met reports whether an operation that a trouble lay in wait for began, by
// the servers' records: a server that has gone cannot be asked any more.
func (p *play) met(t *trouble) bool {
	kind := begins(t.fault.Kind)
	for _, s := range p.servers {
		for i := range s.records {
			if r := &s.records[i]; r.Kind == kind && r.At >= t.from && r.At <= t.to && p.about(r, t.fault.Worker) {
				return true
			}
		}
	}
	return false
}

// rulesOfThePlan makes operations as slow as the world of the story has them,
// where that is more than noise.
func (p *play) rulesOfThePlan() error {
	noise := time.Duration(p.options.Scale) * time.Millisecond
	for _, o := range []struct {
		name string
		span faults.Span
	}{{"open", p.plan.OpenTime}, {"close", p.plan.CloseTime}, {"copy", p.plan.CopyTime}} {
		if o.span.High > noise {
			if err := p.addRule(-1, o.name, 0, p.span(o.span), false, core.NoFailure, 0); err != nil {
				return err
			}
		}
	}
	if p.plan.DeviceBytes > 0 {
		return p.hook(http.MethodPut, "/test/hooks/room", map[string]uint64{"bytes": p.plan.DeviceBytes}, nil)
	}
	return nil
}

// endRule ends the rules of a step, and learns whether they struck.
func (p *play) endRule(step int) {
	for _, t := range p.troubles {
		if t.step == step && t.to == core.Never {
			t.to = p.now()
		}
	}
	kept := p.rules[:0]
	for _, r := range p.rules {
		if r.step != step {
			kept = append(kept, r)
			continue
		}
		var answer struct {
			Struck int `json:"struck"`
		}
		if err := p.hook(http.MethodDelete, "/test/hooks/"+strconv.Itoa(r.number), nil, &answer); err == nil && answer.Struck > 0 {
			p.struck[step] = true
		}
	}
	p.rules = kept
}

// endRules learns at the end which latent faults struck.
func (p *play) endRules() {
	for i := range p.plan.Steps {
		if do := &p.plan.Steps[i].Do; do.Kind == sim.ActFault && latent(do.Fault.Kind) {
			p.endRule(i)
		}
	}
	p.poll()
	for _, t := range p.troubles {
		if t.fault.Kind != faults.DeviceOutOfMemory && p.met(t) {
			p.struck[t.step] = true
		}
	}
}

// The raw client.

func (p *play) ask(r *wire.Request) bool {
	for range 2 { // the server may have come back since the first try
		if p.tryAsk(r) {
			return true
		}
	}
	return false
}

func (p *play) tryAsk(r *wire.Request) bool {
	if p.client == nil {
		c, err := dialRaw(p.serverSocket())
		if err != nil {
			return false
		}
		p.client = c
	}
	p.asked++
	r.UIDNumber = p.asked
	var f core.Frames
	wire.EncodeRequest(&f, r)
	if p.client.send(&f) != nil {
		p.client.close()
		p.client = nil
		return false
	}
	return true
}

// busy fills the NORMAL pool: each slot waits for a prefetch that nobody began.
func (p *play) busy(step int, f *faults.Fault) bool {
	lasts := p.span(f.For)
	for i := range p.plan.Server.NormalSlots {
		if !p.ask(&wire.Request{Type: wire.WaitPrefetchStatus, RequestID: fmt.Appendf(nil, "nobody-%d", step*1000+i), Timeout: lasts}) {
			return false
		}
	}
	return true
}

// unregister takes a worker's registration away in its name.
func (p *play) unregister(w *worker) bool {
	if w.instance == 0 {
		return false
	}
	r := wire.Request{Type: wire.UnregisterKVCache, Instance: w.instance}
	if w.plan.Config.Mode == core.ModeEngineDriven {
		r.Type = wire.UnregisterEngineDriven
	}
	return p.ask(&r)
}

func (p *play) lookup(w *worker, prompt int) bool {
	c := &w.plan.Config
	prompts := or(p.plan.Prompts, 32)
	if prompt < 0 {
		prompt = p.dice.IntN(prompts)
	}
	n := p.tokens(w, prompt%prompts)
	tokens := make([]uint32, n)
	for i := range tokens {
		tokens[i] = uint32(i)
	}
	p.requests++
	return p.ask(&wire.Request{Type: wire.Lookup, TPSize: int64(c.WorldSize), Key: wire.Key{
		Model: []byte(c.Model), WorldSize: int64(c.WorldSize), Worker: -1, Salt: []byte(c.Salt),
		Tokens: tokens, End: int64(n), RequestID: strconv.AppendUint(nil, p.requests, 10),
	}})
}
