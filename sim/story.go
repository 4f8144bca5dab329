package sim

import (
	"time"

	"vigil/core"
	"vigil/faults"
)

// story is the plan's steps as they strike.
type story struct {
	world   *World
	struck  []bool // of each step: it took hold
	watches []watch
}

// watch is a step that waits for a record.
type watch struct {
	step int
	left int // records still to come
}

func (s *story) begin(w *World) {
	s.world = w
	s.struck = resized(s.struck, len(w.plan.Steps))
	s.watches = s.watches[:0]
	for i := range w.plan.Steps {
		st := &w.plan.Steps[i]
		switch {
		case st.When != nil:
			s.watches = append(s.watches, watch{i, max(1, st.When.Nth)})
		case st.After == 0:
			s.schedule(i)
		}
	}
}

// schedule has a step strike at its time from now.
func (s *story) schedule(step int) {
	w := s.world
	at := w.now.Add(w.choices.Span(ForStory, step, w.plan.Steps[step].At, faults.Span{}))
	w.push(evStep, 0, at, uint64(step))
}

// watch sees whether a record is one that a step waits for.
func (s *story) watch(r *core.Record) {
	for i := 0; i < len(s.watches); i++ {
		wt := &s.watches[i]
		when := s.world.plan.Steps[wt.step].When
		if r.Kind != when.Record || !s.about(r, when.Worker) {
			continue
		}
		if wt.left--; wt.left > 0 {
			continue
		}
		step := wt.step
		s.watches = append(s.watches[:i], s.watches[i+1:]...)
		i--
		s.schedule(step)
	}
}

// about reports whether a record concerns a worker.
func (s *story) about(r *core.Record, worker int) bool {
	switch {
	case worker == faults.Everyone:
		return true
	case worker == faults.Server:
		return r.Actor == core.ActorServer
	case r.Actor == core.FirstWorker+core.Actor(worker):
		return true
	}
	if r.Instance != 0 {
		return r.Instance == s.world.identities[worker]
	}
	switch r.Kind { // the world's records that name a worker by its number
	case core.ProcessStarted, core.ProcessKilled, core.ProcessExited, core.ProcessPaused, core.ProcessResumed,
		core.LinkCut, core.LinkHealed:
		return r.A == uint64(worker)+1
	case core.ConnectionOpened, core.ConnectionClosed:
		return r.B == uint64(worker)+1
	}
	return false
}

func (s *story) unfired(into []int) []int {
	for i, ok := range s.struck {
		if !ok {
			into = append(into, i)
		}
	}
	return into
}

// struck says that the fault of a step met what it was meant for.
func (w *World) struck(step int) { w.story.struck[step] = true }

// struckMemory says that a device-out-of-memory fault was met.
func (w *World) struckMemory() {
	for i := range w.plan.Steps {
		if w.plan.Steps[i].Do.Kind == ActFault && w.plan.Steps[i].Do.Fault.Kind == faults.DeviceOutOfMemory {
			w.struck(i)
		}
	}
}

// strike plays a step.
func (s *story) strike(step int) {
	w := s.world
	st := &w.plan.Steps[step]
	do := &st.Do
	hold := false
	if do.Kind == ActFault {
		hold = w.fault(step, &do.Fault)
		if !do.Fault.For.Zero() && hold || latent(do.Fault.Kind) && !do.Fault.For.Zero() {
			w.push(evUndo, 0, w.now.Add(w.choices.Span(ForStory, step, do.Fault.For, do.Fault.For)), uint64(step))
		}
	} else if do.Kind == ActAsk {
		hold = w.ask(step, do.Ask)
	} else {
		w.each(do.Worker, func(i int) {
			if w.act(i, do) {
				hold = true
			}
		})
	}
	if hold {
		w.struck(step)
	}
	r := w.truth(core.FaultStruck, nil)
	r.A, r.Flag = uint64(step), hold
	w.emit()
	for i := range w.plan.Steps {
		if w.plan.Steps[i].After == step+1 {
			s.schedule(i)
		}
	}
}

// latent reports whether a fault lies in wait: it takes hold only when an
// operation meets it.
func latent(k faults.Kind) bool {
	switch k {
	case faults.SlowOpen, faults.HangOpen, faults.FailOpen, faults.SlowClose, faults.HangClose, faults.FailClose,
		faults.SlowCopy, faults.HangCopy, faults.FailCopy, faults.DeviceOutOfMemory:
		return true
	}
	return false
}

// each calls f for every worker that a target names.
func (w *World) each(target int, f func(i int)) {
	if target >= 0 {
		f(target)
		return
	}
	for i := range w.engines {
		f(i)
	}
}

// act has an engine do something. It reports whether it did.
func (w *World) act(i int, do *Action) bool {
	p := &w.processes[i+1]
	e := &w.engines[i]
	if do.Kind == ActUnregister {
		return w.unregister(i)
	}
	if p.state != running {
		return false
	}
	switch do.Kind {
	case ActRegister: // a thread of its own may ask for this while another one leaves
		return !e.stuck && e.register()
	case ActReallocate:
		return !p.leaving && e.reallocate()
	case ActStore:
		return e.submit(true, do.Prompt, do.Part)
	case ActRetrieve:
		return e.submit(false, do.Prompt, do.Part)
	case ActLookup:
		return w.lookup(i, do.Prompt)
	case ActShutdown:
		if !p.leaving {
			p.leaving = true
			r := w.truth(core.EngineLeaving, p)
			r.A = p.number()
			w.emit()
		}
		w.call = core.Call{Kind: core.CallShutdown}
		e.call()
		return true
	case ActTraffic:
		e.traffic = do.On
		e.schedule()
		return true
	}
	return false
}

// fault carries a fault out. It reports whether it took hold at once.
func (w *World) fault(step int, f *faults.Fault) bool {
	srv := &w.processes[0]
	hold := false
	switch f.Kind {
	case faults.ServerRestart:
		if !w.kill(srv, false) {
			return false
		}
		down := f.For
		w.push(evStart, 0, w.now.Add(w.choices.Span(ForStory, step, down, orSpan(w.plan.ServerStart, bootTime))), srv.life)
		return true
	case faults.ServerFreeze:
		return srv.pause(false)
	case faults.ServerStop:
		if srv.state != running {
			return false
		}
		w.input = core.Input{Kind: core.InputStop}
		srv.feed(&w.input)
		return true
	case faults.BusyPool:
		return w.busy(step, f)
	case faults.DeviceOutOfMemory:
		w.memory.room = f.Bytes
		return w.memory.charged > f.Bytes
	case faults.OldClient, faults.OldServer, faults.PIDIdentity:
		return true // laid into the plan before the run; see scenarios
	}
	if latent(f.Kind) {
		w.memory.addTrouble(troubleOf(step, f))
		return false
	}
	if f.Worker == faults.Server || f.Kind == faults.HostSuspend && f.Worker == faults.Everyone {
		switch f.Kind {
		case faults.Kill:
			hold = w.kill(srv, f.Silent)
		case faults.Pause, faults.HostSuspend:
			hold = srv.pause(f.Kind == faults.HostSuspend)
		case faults.Resume:
			hold = srv.resume()
		}
	}
	if f.Worker == faults.Server {
		return hold
	}
	w.each(f.Worker, func(i int) {
		if w.strikeWorker(step, f, i) {
			hold = true
		}
	})
	return hold
}

func orSpan(s, fallback faults.Span) faults.Span {
	if s.Zero() {
		return fallback
	}
	return s
}

// strikeWorker carries a fault on one worker out.
func (w *World) strikeWorker(step int, f *faults.Fault, i int) bool {
	p := &w.processes[i+1]
	l := &w.net.links[i]
	switch f.Kind {
	case faults.Kill:
		return w.kill(p, f.Silent)
	case faults.Pause, faults.HostSuspend:
		return p.pause(f.Kind == faults.HostSuspend)
	case faults.Resume:
		return p.resume()
	case faults.Restart:
		pid := p.pid
		w.kill(p, f.Silent)
		if f.Same {
			p.pid = pid
		}
		w.push(evStart, p.actor(), w.now.Add(w.choices.Span(ForStory, step, f.Amount, respawnTime)), p.life)
		return true
	case faults.Cut:
		if p.state == absent {
			return false
		}
		w.net.cut(i, f.Ways, f.Reset)
		return true
	case faults.Heal:
		return w.net.heal(i)
	case faults.Delay:
		w.net.sockets[i].delay, l.slow = f.Amount, !f.Amount.Zero()
		return true
	case faults.StarveHeartbeat:
		if p.state == absent {
			return false // nothing would end what struck nobody
		}
		p.starve = true
		return true
	case faults.StickEngine:
		return w.engines[i].stick()
	}
	return false
}

var respawnTime = faults.Span{Low: 500 * time.Millisecond, High: 5 * time.Second}

// troubleOf is the memory fault of a step.
func troubleOf(step int, f *faults.Fault) trouble {
	t := trouble{worker: f.Worker, step: step, left: -1}
	if f.Count > 0 {
		t.left = f.Count
	}
	switch f.Kind {
	case faults.SlowOpen, faults.HangOpen, faults.FailOpen:
		t.kind = operationOpen
	case faults.SlowClose, faults.HangClose, faults.FailClose:
		t.kind = operationClose
	default:
		t.kind = operationCopy
	}
	switch f.Kind {
	case faults.SlowOpen, faults.SlowClose, faults.SlowCopy:
		t.slow = f.Amount
	case faults.HangOpen, faults.HangClose, faults.HangCopy:
		t.hang = true
	case faults.FailOpen:
		t.fail = core.FailOpen
	case faults.FailClose:
		t.fail = core.FailClose
	case faults.FailCopy:
		t.fail = core.FailCopy
	}
	return t
}

// undo ends the fault of a step.
func (s *story) undo(step int) {
	w := s.world
	f := &w.plan.Steps[step].Do.Fault
	srv := &w.processes[0]
	switch f.Kind {
	case faults.ServerFreeze:
		srv.resume()
		return
	case faults.DeviceOutOfMemory:
		w.memory.room = w.plan.DeviceBytes
		return
	}
	if latent(f.Kind) {
		w.memory.endTrouble(step)
		return
	}
	if f.Worker == faults.Server || f.Kind == faults.HostSuspend && f.Worker == faults.Everyone {
		if f.Kind == faults.Pause || f.Kind == faults.HostSuspend {
			srv.resume()
		}
	}
	if f.Worker == faults.Server {
		return
	}
	w.each(f.Worker, func(i int) {
		p := &w.processes[i+1]
		switch f.Kind {
		case faults.Pause, faults.HostSuspend:
			p.resume()
		case faults.Cut:
			w.net.heal(i)
		case faults.Delay:
			w.net.links[i].slow = false
		case faults.StickEngine:
			w.engines[i].unstick()
		case faults.StarveHeartbeat:
			p.starve = false
			if p.state == running {
				p.starved = p.release(p.starved)
			}
		}
	})
}
