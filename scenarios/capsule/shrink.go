package capsule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/run"
	"vigil/sim"
	"vigil/sim/shrink"
)

// ShrinkOptions say how a capsule is made smaller.
type ShrinkOptions struct {
	// Invariant is what must go on breaking where several things broke; empty is
	// what the capsule is about.
	Invariant string
	// MendedBy names protections of which each alone may turn the tape green;
	// one of them must, to the end. Empty is each that does so at the beginning;
	// where none does, nothing is asked.
	MendedBy []string
	// Name is the id and name of the small scenario; empty is made of the id of
	// what is shrunk.
	Name      string
	MaxTrials int // bounds the trials; 0 is shrink.DefaultTrials
	Progress  func(shrink.Progress)
}

// FreshSeeds is how many seeds of its own a shrunk story is tried with in the
// end.
const FreshSeeds = 200

// Shrunk is what a capsule was made of.
type Shrunk struct {
	*Capsule
	File   []byte // the scenario in a file of its own, with what it is in front
	Result *shrink.Result
	Mended []string // protections of which each alone turns the tape green
	Off    []string // protections that were on and do not matter
	Fails  int      // of FreshSeeds other tapes, those that fail alike
	// MendedFails is how many of them break anything once the first of Mended is
	// on.
	MendedFails int
}

// Shrink makes the capsule's run smaller and keeps its failure: what broke, the
// parts of the actors, and what mends it. Where ctx ends, what is smallest by
// then comes with ctx's error. Other errors are those of shrink.Shrink, and that
// the run no longer fails as recorded.
func (c *Capsule) Shrink(ctx context.Context, o ShrinkOptions) (*Shrunk, error) {
	r, d := c.Play(nil)
	if d.Kind == NoLongerLoads {
		return nil, fmt.Errorf("%s", d.Text)
	}
	want, err := c.wanted(&r, o.Invariant)
	if err != nil {
		return nil, err
	}
	mends, err := c.mends(o.MendedBy)
	if err != nil {
		return nil, err
	}
	f := c.failure(want, c.Protections, mends)
	result, err := shrink.Shrink(ctx, c.Scenario.Plan, c.Tape, f.Trial, shrink.Options{
		MaxTrials: o.MaxTrials, Progress: o.Progress,
		Score: f.Score,
	})
	if result == nil || err != nil && ctx.Err() == nil {
		return nil, err
	}
	s := &Shrunk{Result: result}
	p := s.fewerProtections(c, want, mends)
	if err := s.write(c, o.Name, want, p, mends); err != nil {
		return nil, err
	}
	return s, err
}

// wanted is the violation that must stay.
func (c *Capsule) wanted(r *run.Run, invariant string) (run.Violation, error) {
	name := invariant
	if name == "" {
		name = c.Invariant
	}
	var came []string
	for _, v := range r.Violations {
		if v.Invariant == name && (invariant != "" || sameActors(v.Actors, c.Actors)) {
			return v, nil
		}
		if !slices.Contains(came, v.Invariant) {
			came = append(came, v.Invariant)
		}
	}
	switch {
	case len(came) == 0:
		return run.Violation{}, fmt.Errorf("%w: nothing breaks in this run", shrink.ErrNoFailure)
	case name == "":
		return run.Violation{}, fmt.Errorf("%w: it was recorded as a pass", shrink.ErrNoFailure)
	}
	return run.Violation{}, fmt.Errorf("%s does not break in this run; what does: %s", name, strings.Join(came, ", "))
}

// mends are the names of protections that may mend the run: those given, else
// those that do.
func (c *Capsule) mends(given []string) ([]string, error) {
	var found []string
	for _, name := range given {
		p := c.Protections
		if !p.Set(name, true) {
			return nil, fmt.Errorf("there is no protection %q%s", clip(name), didYouMean(name, core.ProtectionNames()))
		}
		if p == c.Protections {
			return nil, fmt.Errorf("%s is on in this run, so that it cannot be what mends it", name)
		}
	}
	names := given
	if len(names) == 0 {
		names = core.ProtectionNames()
	}
	for _, name := range names {
		p := c.Protections
		if p.Set(name, true); p == c.Protections {
			continue
		}
		if r := c.PlayUnder(c.Design, p, nil); run.Green(&r) {
			found = append(found, name)
		}
	}
	if len(given) > 0 && len(found) == 0 {
		return nil, fmt.Errorf("none of %s turns this run green", strings.Join(given, ", "))
	}
	return found, nil
}

// failure is the failure to keep, under some protections.
func (c *Capsule) failure(want run.Violation, p core.Protections, mends []string) *run.Failure {
	var mended []core.Protections
	for _, name := range mends {
		m := p
		m.Set(name, true)
		mended = append(mended, m)
	}
	return run.NewFailure(c.Scenario, c.Design, p, want, mended)
}

// fewerProtections switches those off that the failure does not need.
func (s *Shrunk) fewerProtections(c *Capsule, want run.Violation, mends []string) core.Protections {
	p := c.Protections
	for _, name := range core.ProtectionNames() {
		without := p
		if without.Set(name, false); without == p {
			continue
		}
		f := c.failure(want, without, mends)
		again, err := shrink.Shrink(context.Background(), s.Result.Plan, s.Result.Tape, f.Trial, shrink.Options{MaxTrials: 1})
		if err != nil || again.Key != s.Result.Key {
			continue
		}
		p, s.Off = without, append(s.Off, name)
		s.Result.Tape, s.Result.Hash = again.Tape, again.Hash
	}
	return p
}

// write makes the small capsule and its file.
func (s *Shrunk) write(c *Capsule, name string, want run.Violation, p core.Protections, mends []string) error {
	f := c.failure(want, p, mends)
	for _, i := range f.Mended(s.Result.Plan, s.Result.Tape) {
		s.Mended = append(s.Mended, mends[i])
	}
	sc, design := f.Scenario(s.Result.Plan), c.Design
	if len(sc.Expect) == 0 { // nothing in it depends on the preset: name the nearer one
		switch p {
		case core.Document():
			design = "document"
		case core.Hardened():
			design = "hardened"
		}
	}
	if name == "" {
		name = strings.ReplaceAll(c.Scenario.ID, "/", "-")
		if name = name[:min(len(name), 50)]; !strings.HasSuffix(name, "-shrunk") {
			name += "-shrunk"
		}
	}
	sc.ID, sc.Name = name, name
	sc.Title = fmt.Sprintf("%s breaks in a small world", want.Invariant)
	s.bestMendFirst(sc, design, p)
	tape := &sim.Tape{}
	player := run.NewPlayer(design, p)
	play := func() run.Run {
		choices := sim.ChoicesFrom(fresh(s.Result.Tape))
		tape = &sim.Tape{}
		choices.Record(tape)
		return player.PlayTape(sc, c.Seed, choices, nil)
	}
	first := play()
	misses := append(s.misses(sc, design, p), first.Unfired...)
	for i := range sc.Steps {
		sc.Steps[i].Maybe = slices.Contains(misses, i)
		follows := func(s sim.Step) bool { return s.After == i+1 }
		if from := s.Result.Steps[i]; from >= 0 && from < len(c.Scenario.Steps) && slices.ContainsFunc(sc.Plan.Steps, follows) {
			sc.Steps[i].Label = c.Scenario.Steps[from].Label
		}
	}
	r := play()
	about := run.Violation{}
	for _, v := range r.Violations {
		if v.Invariant == want.Invariant {
			about = v
			break
		}
	}
	small, err := Of(sc, design, p, c.Seed, tape, r)
	if err != nil {
		return err
	}
	small.About(about)
	small.Origin = "shrunk from " + strings.TrimPrefix(c.Origin, "shrunk from ")
	for _, mend := range s.Mended {
		m := p
		m.Set(mend, true)
		small.Green = append(small.Green, m)
	}
	if h := small.PlayUnder("hardened", core.Hardened(), nil); run.Green(&h) {
		small.Green = append(small.Green, core.Hardened())
	}
	s.Capsule = small
	s.tryFresh(f, small, p)
	s.File = scenarios.Write(small.Scenario, s.comment(small)...)
	return nil
}

// bestMendFirst orders what mends the tape by how well it mends the story with
// other tapes: the first is what people are told to try.
func (s *Shrunk) bestMendFirst(sc *scenarios.Scenario, design string, p core.Protections) {
	fails := make(map[string]int, len(s.Mended))
	for _, mend := range s.Mended {
		m := p
		m.Set(mend, true)
		player := run.NewPlayer(design, m)
		for seed := range uint64(FreshSeeds) {
			r := player.Play(sc, seed, nil)
			if len(Broken(&r)) > 0 {
				fails[mend]++
			}
		}
	}
	slices.SortStableFunc(s.Mended, func(a, b string) int { return cmp.Compare(fails[a], fails[b]) })
}

// misses are the steps that find nothing to strike in some run of the story,
// broken or mended.
func (s *Shrunk) misses(sc *scenarios.Scenario, design string, p core.Protections) (steps []int) {
	designs := []core.Protections{p}
	if len(s.Mended) > 0 {
		m := p
		m.Set(s.Mended[0], true)
		designs = append(designs, m)
	}
	for _, d := range designs {
		player := run.NewPlayer(design, d)
		for seed := range uint64(FreshSeeds) {
			steps = append(steps, player.Play(sc, seed, nil).Unfired...)
		}
	}
	return steps
}

// tryFresh plays the story with tapes that have nothing to do with it.
func (s *Shrunk) tryFresh(f *run.Failure, small *Capsule, p core.Protections) {
	broken := run.NewPlayer(small.Design, p)
	var mended *run.Player
	if len(s.Mended) > 0 {
		m := p
		m.Set(s.Mended[0], true)
		mended = run.NewPlayer(small.Design, m)
	}
	for seed := range uint64(FreshSeeds) {
		r := broken.Play(small.Scenario, seed, nil)
		if slices.ContainsFunc(r.Violations, func(v run.Violation) bool { return v.Invariant == small.Invariant }) {
			s.Fails++
		}
		if mended != nil {
			if r := mended.Play(small.Scenario, seed, nil); len(r.Violations) > 0 {
				s.MendedFails++
			}
		}
	}
}

// comment says in front of the file what it is.
func (s *Shrunk) comment(small *Capsule) []string {
	lines := []string{
		fmt.Sprintf("%s breaks under %s: %s.", small.Invariant, small.DesignText(), strings.TrimSuffix(small.Message, ".")),
		fmt.Sprintf("Shrunk from %s; it fails with %d of %d seeds.", strings.TrimPrefix(small.Origin, "shrunk from "), s.Fails, FreshSeeds),
	}
	if len(s.Mended) > 0 {
		lines = append(lines, "Mended by "+strings.Join(s.Mended, ", or by ")+".")
		if s.MendedFails > 0 {
			lines = append(lines, fmt.Sprintf("With %s, %d of the seeds break something else: there is another hole in this story.", s.Mended[0], s.MendedFails))
		}
	}
	return lines
}
