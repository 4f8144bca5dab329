package shrink

import (
	"vigil/core"
	"vigil/faults"
	"vigil/sim"
)

// The edits of the world: workers and steps that go, with what the tape and
// the other steps say of them.

// clonePlan is a plan that may be edited.
func clonePlan(p *sim.Plan) *sim.Plan {
	c := *p
	c.Workers = append([]sim.WorkerPlan(nil), p.Workers...)
	c.Steps = append([]sim.Step(nil), p.Steps...)
	for i := range c.Steps {
		if w := c.Steps[i].When; w != nil {
			copied := *w
			c.Steps[i].When = &copied
		}
	}
	return &c
}

// edited is the present run with another plan; nil where the plan cannot be.
func (s *shrinker) edited(edit func(p *sim.Plan)) *state {
	next := *s.now
	next.plan = clonePlan(s.now.plan)
	edit(next.plan)
	for len(next.steps) < len(next.plan.Steps) { // one that the first plan had not
		next.steps = append(next.steps[:len(next.steps):len(next.steps)], -1)
	}
	return settle(&next)
}

// settle sees that liveness is not owed before the last fault is over, and that
// the story fits into its run.
func settle(st *state) *state {
	p := st.plan
	if over := p.Settled(); over > 0 && p.FaultsOver > 0 && over > p.FaultsOver {
		p.FaultsOver = over
	}
	if p.FaultsOver >= p.Until {
		return nil
	}
	for i := range p.Steps {
		if p.Steps[i].At.High > p.Until {
			return nil
		}
	}
	return st
}

// keep returns the present run with those workers and steps only. A step goes
// with the worker that it is about and with the step that it follows.
func (s *shrinker) keep(worker, step []bool) *state {
	old := s.now.plan
	next := &state{plan: clonePlan(old), tape: &sim.Tape{}}
	next.plan.Workers, next.plan.Steps = nil, nil
	workerAt, stepAt := make([]int, len(old.Workers)), make([]int, len(old.Steps))
	for i := range old.Workers {
		workerAt[i] = -1
		if !worker[i] {
			continue
		}
		workerAt[i] = len(next.plan.Workers)
		w := old.Workers[i]
		if w.Pod == i {
			w.Pod = workerAt[i]
		}
		next.plan.Workers = append(next.plan.Workers, w)
		next.workers = append(next.workers, s.now.workers[i])
	}
	moved := func(who int) (int, bool) {
		if who < 0 || who >= len(workerAt) { // everyone, or the server
			return who, true
		}
		return workerAt[who], workerAt[who] >= 0
	}
	for i := range old.Steps {
		stepAt[i] = -1
		st := old.Steps[i]
		ok := step[i]
		if st.After > 0 {
			if ok = ok && st.After <= i && stepAt[st.After-1] >= 0; ok {
				st.After = stepAt[st.After-1] + 1
			}
		}
		var there bool
		if st.Do.Worker, there = moved(st.Do.Worker); !there {
			ok = false
		}
		if st.Do.Kind == sim.ActFault {
			if st.Do.Fault.Worker, there = moved(st.Do.Fault.Worker); !there {
				ok = false
			}
		}
		if a := st.Do.Ask; a != nil && a.Of > 0 {
			ask := *a
			if ask.Of, there = moved(a.Of - 1); !there {
				ok = false
			}
			ask.Of++
			st.Do.Ask = &ask
		}
		if st.When != nil {
			when := *st.When
			if when.Worker, there = moved(when.Worker); !there {
				ok = false
			}
			st.When = &when
		}
		if !ok {
			continue
		}
		stepAt[i] = len(next.plan.Steps)
		next.plan.Steps = append(next.plan.Steps, st)
		next.steps = append(next.steps, s.now.steps[i])
	}
	for i := range s.now.tape.Streams {
		st := s.now.tape.Streams[i]
		switch {
		case st.Purpose == sim.ForStory && st.Actor < len(stepAt):
			st.Actor = stepAt[st.Actor]
		case st.Purpose == sim.ForStory || st.Actor == 0:
		case st.Actor-1 < len(workerAt):
			st.Actor = workerAt[st.Actor-1] + 1
			if st.Actor == 0 {
				continue
			}
		default: // the raw client, beyond the last worker
			st.Actor -= len(workerAt) - len(next.plan.Workers)
		}
		if st.Actor >= 0 {
			next.tape.Streams = append(next.tape.Streams, st)
		}
	}
	if len(next.plan.Workers) == 0 {
		return nil
	}
	return settle(next)
}

func all(n int) []bool {
	kept := make([]bool, n)
	for i := range kept {
		kept[i] = true
	}
	return kept
}

// dropWorkers tries to do with fewer workers.
func (s *shrinker) dropWorkers() {
	s.doing = "workers"
	s.drop(func() int { return len(s.now.plan.Workers) }, func(gone []bool) *state {
		return s.keep(gone, all(len(s.now.plan.Steps)))
	})
}

// dropSteps tries to do with fewer steps.
func (s *shrinker) dropSteps() {
	s.doing = "steps"
	s.drop(func() int { return len(s.now.plan.Steps) }, func(kept []bool) *state {
		return s.keep(all(len(s.now.plan.Workers)), kept)
	})
}

// drop tries to leave out stretches of a list, halves first, single ones last,
// the later ones before the earlier ones.
func (s *shrinker) drop(count func() int, without func(kept []bool) *state) {
	for size := count(); size > 0; size /= 2 {
		for high := count(); high > 0; {
			low := max(0, high-size)
			kept := all(count())
			for i := low; i < high; i++ {
				kept[i] = false
			}
			s.try(without(kept), true)
			high = min(low, count())
		}
	}
}

// plainPlan tries the plainest settings of the world, its workers and faults.
func (s *shrinker) plainPlan() {
	s.doing = "settings"
	for _, e := range []struct {
		set  func(p *sim.Plan) bool // whether there is something to make plain
		edit func(p *sim.Plan)
	}{
		{func(p *sim.Plan) bool { return p.DeviceBytes != 0 }, func(p *sim.Plan) { p.DeviceBytes = 0 }},
		{func(p *sim.Plan) bool { return p.Prompts != 0 }, func(p *sim.Plan) { p.Prompts = 0 }},
		{func(p *sim.Plan) bool { return p.PromptLow != 0 }, func(p *sim.Plan) { p.PromptLow, p.PromptHigh = 0, 0 }},
		{func(p *sim.Plan) bool { return p.Server.ChunkTokens != core.DefaultChunkTokens }, func(p *sim.Plan) {
			p.Server.ChunkTokens, p.PromptLow, p.PromptHigh = core.DefaultChunkTokens, 0, 0
			for i := range p.Workers {
				p.Workers[i].Config.ChunkTokens = core.DefaultChunkTokens
			}
		}},
		{func(p *sim.Plan) bool { return p.Proof }, func(p *sim.Plan) { p.Proof = false }},
		{func(p *sim.Plan) bool { return !p.Latency.Zero() }, func(p *sim.Plan) { p.Latency = faults.Span{} }},
		{func(p *sim.Plan) bool { return !p.OpenTime.Zero() }, func(p *sim.Plan) { p.OpenTime = faults.Span{} }},
		{func(p *sim.Plan) bool { return !p.CloseTime.Zero() }, func(p *sim.Plan) { p.CloseTime = faults.Span{} }},
		{func(p *sim.Plan) bool { return !p.CopyTime.Zero() }, func(p *sim.Plan) { p.CopyTime = faults.Span{} }},
	} {
		if e.set(s.now.plan) {
			s.try(s.edited(e.edit), true)
		}
	}
	for i := range s.now.plan.Workers {
		for _, edit := range workerEdits {
			plain := s.now.plan.Workers[i]
			if edit(&plain, i); plain != s.now.plan.Workers[i] {
				s.try(s.edited(func(p *sim.Plan) { p.Workers[i] = plain }), true)
			}
		}
	}
	for i := range s.now.plan.Steps {
		if s.now.plan.Steps[i].Do.Kind != sim.ActFault {
			continue
		}
		for _, edit := range faultEdits {
			plain := s.now.plan.Steps[i].Do.Fault
			if edit(&plain); plain != s.now.plan.Steps[i].Do.Fault {
				s.try(s.edited(func(p *sim.Plan) { p.Steps[i].Do.Fault = plain }), true)
			}
		}
	}
}

var workerEdits = []func(w *sim.WorkerPlan, i int){
	func(w *sim.WorkerPlan, _ int) { w.Traffic = sim.Traffic{} },
	func(w *sim.WorkerPlan, _ int) { w.Config.Blend = false },
	func(w *sim.WorkerPlan, _ int) { w.Config.Mode = 0 },
	func(w *sim.WorkerPlan, _ int) { w.Config.Model = "model" },
	func(w *sim.WorkerPlan, _ int) { w.Config.Salt = "" },
	func(w *sim.WorkerPlan, _ int) { w.Config.Legacy = false },
	func(w *sim.WorkerPlan, i int) { w.PIDIdentity, w.Pod = false, i },
	func(w *sim.WorkerPlan, _ int) { w.Start = faults.Span{} },
	func(w *sim.WorkerPlan, _ int) { w.Warmup = faults.Span{} },
	func(w *sim.WorkerPlan, _ int) { w.Blocks, w.BlockBytes = 0, 0 },
	func(w *sim.WorkerPlan, _ int) { w.Traffic.From = 0 },
	func(w *sim.WorkerPlan, _ int) { w.Traffic.To = 0 },
	func(w *sim.WorkerPlan, _ int) { w.Traffic.Stores, w.Traffic.Retrieve = 0, 0 },
}

var faultEdits = []func(f *faults.Fault){
	func(f *faults.Fault) { f.Count = 0 },
	func(f *faults.Fault) {
		if f.Count > 1 {
			f.Count = 1
		}
	},
	func(f *faults.Fault) { f.Silent = false },
	func(f *faults.Fault) { f.Same = false },
	func(f *faults.Fault) { f.Reset = false },
	func(f *faults.Fault) { f.Ways = 0 },
}
