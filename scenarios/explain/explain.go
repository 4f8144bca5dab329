package explain

import (
	"context"
	"fmt"
	"slices"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/capsule"
	"vigil/scenarios/run"
	"vigil/sim"
)

// Options of an explanation.
type Options struct {
	// Forks is how many fresh tapes are played from each moment; 0 plays none
	// and finds no moment of doom.
	Forks int
	// Progress, which may be nil, is told how many of how many runs are played.
	Progress func(done, total int)
}

// MaxForks bounds Options.Forks.
const MaxForks = 10_000

// Explanation is why a run broke.
type Explanation struct {
	Run       run.Run
	Violation run.Violation // what is explained
	Others    []run.Violation
	Story     *run.Story
	// Cast is who matters: numbers of workers, the ones it happened to first.
	Cast   []int
	Scenes []Scene
	Doom   *Doom
	Steps  []StepNeed // of each step that is a fault or an action
	Mends  []string   // protections of which each alone, switched on, keeps the same tape whole
}

// Explain explains what a capsule is kept for.
func Explain(ctx context.Context, c *capsule.Capsule, o Options) (*Explanation, error) {
	if c.Scenario == nil {
		_, d := c.Play(nil)
		return nil, fmt.Errorf("%s", d.Text)
	}
	x := &Explanation{}
	x.Story = run.NewStory(c.Scenario, true)
	x.Run, _ = c.Play(x.Story)
	i := slices.IndexFunc(x.Run.Violations, func(v run.Violation) bool { return v.Invariant == c.Invariant && alike(v, c.Actors) })
	if i < 0 {
		i = slices.IndexFunc(x.Run.Violations, func(v run.Violation) bool { return v.Invariant == c.Invariant })
	}
	if i < 0 {
		if c.Invariant == "" {
			return nil, fmt.Errorf("nothing broke in this run, so there is nothing to explain; simrun replay tells its story")
		}
		return nil, fmt.Errorf("%s does not break any more in this run (simrun replay says what is different)", c.Invariant)
	}
	x.Violation = x.Run.Violations[i]
	x.Others = slices.Delete(slices.Clone(x.Run.Violations), i, i+1)
	x.Cast = cast(c.Scenario, &x.Violation)
	x.Scenes = scenes(x.Story, x.Cast, &x.Violation)

	t := &trials{ctx: ctx, capsule: c, violation: &x.Violation, progress: o.Progress}
	moments := t.moments(x)
	t.total = len(c.Scenario.Plan.Steps) + len(core.ProtectionNames())
	if o.Forks > 0 {
		t.total += (len(moments) + 1 + refinements) * o.Forks
	}
	x.Steps = t.steps(x.Run.Unfired)
	x.mends(t)
	if o.Forks > 0 {
		x.Doom = t.doom(x, moments, o.Forks)
	}
	return x, ctx.Err()
}

// alike says whether a violation names the actors that the capsule names.
func alike(v run.Violation, actors []string) bool {
	return len(v.Actors) == 0 && len(actors) == 0 || len(actors) > 0 && len(v.Actors) > 0 && v.Actors[0] == actors[0]
}

// trials plays variations of the capsule's run.
type trials struct {
	ctx       context.Context
	capsule   *capsule.Capsule
	violation *run.Violation
	progress  func(done, total int)
	done      int
	total     int
}

func (t *trials) count() {
	t.done++
	if t.progress != nil {
		t.progress(min(t.done, t.total), t.total)
	}
}

// breaks plays a scenario and says whether the same invariant breaks.
func (t *trials) breaks(s *scenarios.Scenario, p core.Protections, tape *sim.Choices, o sim.Observer) bool {
	defer t.count()
	if t.ctx.Err() != nil {
		return false
	}
	r := run.NewPlayer(t.capsule.Design, p).PlayTape(s, t.capsule.Seed, tape, o)
	return slices.ContainsFunc(r.Violations, func(v run.Violation) bool { return v.Invariant == t.violation.Invariant })
}

// again is the capsule's tape from its start.
func (t *trials) again() *sim.Choices {
	return sim.ChoicesFrom(&sim.Tape{Streams: t.capsule.Tape.Streams})
}

// mends looks for the single protections that keep this tape whole, or, where
// the run has them all on, says nothing.
func (x *Explanation) mends(t *trials) {
	for _, name := range core.ProtectionNames() {
		p := t.capsule.Protections
		p.Set(name, true)
		if p == t.capsule.Protections {
			t.count()
			continue
		}
		if !t.breaks(t.capsule.Scenario, p, t.again(), nil) && t.ctx.Err() == nil {
			x.Mends = append(x.Mends, name)
		}
	}
}
