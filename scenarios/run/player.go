package run

import (
	"fmt"
	"runtime/debug"
	"strings"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/monitor"
	"vigil/sim"
	"vigil/sim/explore"
)

// Run is what one run came to.
type Run struct {
	Seed       uint64
	Hash       core.Digest
	Events     uint64
	Records    uint64
	End        core.Time
	Panic      string // the code under test panicked: with what, and where
	Violations []Violation
	Unfired    []int // the steps that struck nothing
	Met        Met   // what the run met
}

// Player plays runs, one at a time, and judges them. It belongs to one
// goroutine and is reused, so that a run costs no fresh world.
type Player struct {
	design      string
	protections core.Protections
	workers     core.Protections // theirs, which are the server's but in a Pairing
	world       *sim.World
	choices     *sim.Choices
	stages      map[*scenarios.Scenario]*stage
	states      states
	features    *explore.Features // of the search that the player plays for; nil for none
}

// stage is what the runs of one scenario share.
type stage struct {
	plan     *sim.Plan
	monitors *monitor.Set
	log      *monitor.Log
	judge    *Judge
	states   *states
	extra    sim.Observer
}

// Observe shows a record to everybody who judges.
func (st *stage) Observe(r *core.Record) {
	st.monitors.Observe(r)
	st.log.Observe(r)
	st.judge.Observe(r)
	st.states.Observe(r)
	if st.extra != nil {
		st.extra.Observe(r)
	}
}

// StepOver ends an event for everybody who cares, where time goes in ticks.
func (st *stage) StepOver() {
	st.monitors.StepOver()
	if extra, ok := st.extra.(sim.StepObserver); ok {
		extra.StepOver()
	}
}

// NewPlayer returns a player. The design is the preset by which declared breaks
// and expectations are chosen; the protections are those that act.
func NewPlayer(design string, p core.Protections) *Player {
	return &Player{
		design: design, protections: p, workers: p,
		world: sim.NewWorld(), choices: sim.NewChoices(0),
		stages: make(map[*scenarios.Scenario]*stage),
	}
}

func (p *Player) stage(s *scenarios.Scenario) *stage {
	st := p.stages[s]
	if st == nil {
		plan := compile(s, p.protections, p.workers)
		setup := SetupOf(plan)
		st = &stage{plan: plan, monitors: monitor.New(setup), log: monitor.NewLog(setup), judge: NewJudge(s, p.design, p.protections), states: &p.states}
		st.judge.answers = p.answer
		p.stages[s] = st
	}
	return st
}

// answer is what a raw client was answered in the run that is being played.
func (p *Player) answer(step int) string { return p.world.Answer(step) }

// Play plays one seed of a scenario. extra, which may be nil, sees every record.
func (p *Player) Play(s *scenarios.Scenario, seed uint64, extra sim.Observer) Run {
	p.choices.Reseed(seed)
	return p.PlayTape(s, seed, p.choices, extra)
}

// PlayTape plays a scenario by a tape of the caller's; seed is for the report.
func (p *Player) PlayTape(s *scenarios.Scenario, seed uint64, tape *sim.Choices, extra sim.Observer) (out Run) {
	st := p.stage(s)
	if s.Random != "" {
		p.draw(s, st, tape)
	}
	st.monitors.Reset()
	st.log.Reset()
	st.judge.Reset()
	st.states.begin(st.plan, p.features)
	st.extra = extra
	r := p.world.Run(st.plan, tape, st)
	out = Run{Seed: seed, Hash: r.Hash, Events: r.Events, Records: r.Records, End: r.End, Panic: r.Panic, Unfired: r.Unfired}
	if out.Panic == "" {
		out.Panic = guarded(func() {
			st.monitors.Finish(r.End)
			st.judge.Finish(r.End)
		})
	}
	if out.Panic != "" {
		// The world and the judges are in the middle of something: begin afresh.
		p.world = sim.NewWorld()
		delete(p.stages, s)
		out.Violations = []Violation{{Seed: seed, Invariant: "panic", Verdict: Panicked, At: r.End, Message: out.Panic}}
		return out
	}
	p.collect(s, st, &out)
	out.Met = metBy(st.plan, out.Unfired, p.states.met)
	return out
}

// guarded runs what judges and says how it panicked, if it did.
func guarded(f func()) (text string) {
	defer func() {
		if cause := recover(); cause != nil {
			text = fmt.Sprintf("%v while the run was judged, at %s", cause, place(string(debug.Stack())))
		}
	}()
	f()
	return ""
}

// place is the first frame of the project below the panic.
func place(stack string) string {
	_, stack, _ = strings.Cut(stack, "panic(")
	for _, line := range strings.Split(stack, "\n") {
		if i := strings.Index(line, "vigil/"); i >= 0 && !strings.HasPrefix(line, "\t") {
			return strings.TrimSpace(line[i:])
		}
	}
	return "an unknown place"
}

// collect turns what the judges found into violations.
func (p *Player) collect(s *scenarios.Scenario, st *stage, out *Run) {
	out.Violations = Found(s, p.design, out.Seed, append(st.monitors.Violations(), st.log.Violations()...), st.judge, out.Unfired, out.End)
}

// Found is what one run came to: what its monitors and its judge found, and
// the steps that struck nothing, as violations of the scenario under a design.
func Found(s *scenarios.Scenario, design string, seed uint64, broken []monitor.Violation, judge *Judge, unfired []int, end core.Time) []Violation {
	var list []Violation
	for _, v := range broken {
		verdict := Liveness
		if v.Safety {
			verdict = Safety
		}
		list = append(list, Violation{
			Seed: seed, Invariant: v.Invariant, Verdict: verdict, At: v.At,
			Actors: names(s, v.Actors), Message: v.Message, Declared: declared(s, design, v.Invariant, v.Actors),
		})
	}
	for i := range judge.findings {
		f := &judge.findings[i]
		verdict := Safety
		if f.missed {
			verdict = Missed
		}
		list = append(list, Violation{
			Seed: seed, Invariant: "expect " + f.kind.String(), Verdict: verdict, At: f.at,
			Actors: names(s, f.actors), Message: fmt.Sprintf("%s:%d: %s", s.File, f.line, f.text),
		})
	}
	for _, step := range unfired {
		if step >= len(s.Steps) || s.Steps[step].Maybe {
			continue
		}
		list = append(list, Violation{
			Seed: seed, Invariant: "step", Verdict: Missed, At: end,
			Message: fmt.Sprintf("%s:%d: %s never took hold", s.File, s.Steps[step].Line, s.Words(step)),
		})
	}
	return list
}

// declared reports whether the file declares this break under a design: the
// invariant, and no actor beside the declared ones.
func declared(s *scenarios.Scenario, design, invariant string, actors []int) bool {
	for i := range s.Breaks {
		b := &s.Breaks[i]
		if b.Design != design || b.Invariant != invariant {
			continue
		}
		for _, a := range actors {
			if len(b.Actors) > 0 && !has(b.Actors, a) {
				return false
			}
		}
		return true
	}
	return false
}

func has(list []int, v int) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

func names(s *scenarios.Scenario, actors []int) []string {
	var out []string
	for _, a := range actors {
		out = append(out, s.WorkerName(a))
	}
	return out
}
