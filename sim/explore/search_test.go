package explore

import (
	"context"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"vigil/core"
	"vigil/sim"
)

// maze is a world of doors: each decision of one stream must be the right one of
// sixteen to come to the next. What a run met is how far it came.
const doors = 6

func maze(choices *sim.Choices) (depth int, hash core.Digest) {
	for ; depth < doors; depth++ {
		v := choices.Below(sim.ForTraffic, 1, 16)
		hash.Uint(v)
		if v != uint64(7*depth+3)%16 {
			break
		}
	}
	return depth, hash
}

func mazeTrial(slow bool) func() Trial[int] {
	return func() Trial[int] {
		return func(run uint64, tape *sim.Choices, o *Outcome, more *int) {
			if slow && rand.Intn(8) == 0 { // jobs overtake each other
				time.Sleep(time.Duration(rand.Intn(60)) * time.Microsecond)
			}
			depth, hash := maze(tape)
			for d := 0; d <= depth; d++ {
				o.Features.Add(uint32(d))
			}
			o.Hash, o.Found, *more = hash, depth == doors, depth
		}
	}
}

func fresh(name string) Strategy {
	switch name {
	case "swarm":
		return &Swarm{Seed: 5}
	case "pct":
		return &PCT{Seed: 5, Depth: 3, Steps: doors}
	case "coverage":
		return &Coverage{Seed: 5}
	}
	return &Random{First: 5}
}

var all = []string{"random", "swarm", "pct", "coverage"}

// What comes does not depend on how many jobs play it, nor on which is slow.
func TestASearchIsTheSameAtAnyNumberOfJobs(t *testing.T) {
	for _, name := range all {
		for _, stop := range []bool{false, true} {
			var first Report
			var firstSeen []string
			for _, jobs := range []int{1, 2, 7} {
				var seen []string
				r := Search(context.Background(), fresh(name), Options{Runs: 1500, Jobs: jobs, Stop: stop}, mazeTrial(jobs > 1),
					func(run uint64, o *Outcome, depth *int) { seen = append(seen, fmt.Sprint(run, *depth, o.Found)) })
				if jobs == 1 {
					first, firstSeen = r, seen
					continue
				}
				if r != first || !slices.Equal(seen, firstSeen) {
					t.Errorf("%s, stop %v: one job gave %+v, %d jobs %+v", name, stop, first, jobs, r)
				}
			}
			if stop && first.Found > 1 {
				t.Errorf("%s stopped at its first finding and counts %d", name, first.Found)
			}
		}
	}
}

// A search that is guided by what it met opens doors that chance does not: one
// door in sixteen, six in a row, is one run in 16 million.
func TestCoverageComesFurtherThanChance(t *testing.T) {
	deepest := func(s Strategy) (most int) {
		Search(context.Background(), s, Options{Runs: 20_000, Jobs: 2, Stop: true}, mazeTrial(false),
			func(_ uint64, _ *Outcome, depth *int) { most = max(most, *depth) })
		return most
	}
	if by := deepest(fresh("random")); by >= doors {
		t.Fatalf("chance opened all %d doors: the maze shows nothing", by)
	}
	c := &Coverage{Seed: 5}
	if by := deepest(c); by != doors {
		t.Errorf("coverage opened %d of %d doors in 20,000 runs", by, doors)
	}
	if n := len(c.Corpus()); n < doors {
		t.Errorf("it kept %d tapes, want one for each door", n)
	}

	// The tapes that it kept are as far as they came, for the next search.
	next := &Coverage{Seed: 6}
	next.Start(c.Corpus())
	most := 0
	Search(context.Background(), next, Options{Runs: uint64(len(c.Corpus())), Jobs: 1}, mazeTrial(false),
		func(_ uint64, _ *Outcome, depth *int) { most = max(most, *depth) })
	if most != doors {
		t.Errorf("the corpus of a search that opened every door opens %d", most)
	}
}

// Shards play every run once, and their hashes add up to the whole.
func TestShardsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"random", "swarm", "pct"}).Draw(t, "strategy")
		runs := rapid.Uint64Range(1, 90).Draw(t, "runs")
		shards := rapid.Uint64Range(1, 7).Draw(t, "shards")
		count := map[uint64]int{}
		whole := Search(context.Background(), fresh(name), Options{Runs: runs, Jobs: 2}, mazeTrial(false), func(uint64, *Outcome, *int) {})
		var sum, played uint64
		for shard := range shards {
			r := Search(context.Background(), fresh(name), Options{Runs: runs, Jobs: 2, Shard: shard, Shards: shards}, mazeTrial(false),
				func(run uint64, _ *Outcome, _ *int) { count[run]++ })
			sum += r.Hash
			played += r.Runs
		}
		if sum != whole.Hash || played != runs || len(count) != int(runs) {
			t.Fatalf("%d shards of %d runs: %d played, %d distinct, hash %x, want %x", shards, runs, played, len(count), sum, whole.Hash)
		}
	})
}

// A search that is interrupted, or whose time is up, ends soon and says that it
// is not whole.
func TestASearchEndsWhenItIsTold(t *testing.T) {
	for _, name := range all {
		ctx, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
		began := time.Now()
		r := Search(ctx, fresh(name), Options{Runs: 1 << 40, Jobs: 3}, mazeTrial(true), func(uint64, *Outcome, *int) {})
		stop()
		if r.Whole || time.Since(began) > 5*time.Second {
			t.Errorf("%s: interrupted after %d runs in %v, whole: %v", name, r.Runs, time.Since(began), r.Whole)
		}
		r = Search(context.Background(), fresh(name), Options{For: 20 * time.Millisecond, Jobs: 3}, mazeTrial(true), func(uint64, *Outcome, *int) {})
		if !r.Whole || r.Runs == 0 {
			t.Errorf("%s for 20 ms: %+v", name, r)
		}
	}
}

// The promise of a search by priorities, on a defect of depth 2 among three
// processes: the last of them must come first, and fall behind in the middle.
func TestPCTKeepsItsPromise(t *testing.T) {
	const steps, runs = 12, 4000
	late := func(n uint64) bool { return n >= 900 }
	trial := func() Trial[int] {
		return func(_ uint64, tape *sim.Choices, o *Outcome, _ *int) {
			early, lateAfter := true, false
			for i := range steps / 3 {
				var took [3]uint64
				for p := range took {
					took[p] = tape.Below(sim.ForLatency, p, 1000)
				}
				if first := took[2] < took[0] && took[2] < took[1]; i < 2 {
					early = early && first
				} else if i == steps/3-1 {
					lateAfter = late(took[2])
				}
			}
			o.Found = early && lateAfter
		}
	}
	p := &PCT{Seed: 1, Depth: 2, Steps: steps}
	r := Search(context.Background(), p, Options{Runs: runs, Jobs: 2}, trial, func(uint64, *Outcome, *int) {})
	want := p.Chance(3)
	if got := float64(r.Found) / runs; got < want {
		t.Errorf("met in %.4f of the runs, promised is %.4f", got, want)
	}
	if want != 1.0/(3*steps) {
		t.Errorf("the stated chance is %v", want)
	}
	depth1 := Search(context.Background(), &PCT{Seed: 1, Depth: 1, Steps: steps}, Options{Runs: runs, Jobs: 2}, trial, func(uint64, *Outcome, *int) {})
	if depth1.Found > r.Found/4 {
		t.Errorf("a defect of depth 2 was met %d times by schedules of depth 1, %d times by those of depth 2", depth1.Found, r.Found)
	}
}

// A run of a swarm has few kinds of faults, and all runs together have all.
func TestASwarmSwitchesFaultsOff(t *testing.T) {
	const kinds = 24
	j := (&Swarm{Seed: 3}).Job()
	ever, most := map[uint64]bool{}, 0.0
	for run := range uint64(200) {
		c := j.Decide(run)
		here := map[uint64]bool{}
		for range 200 {
			v := c.Named("what", sim.ForStory, 63, kinds)
			here[v], ever[v] = true, true
		}
		most += float64(len(here)) / 200
	}
	if len(ever) != kinds || most > kinds/2 {
		t.Errorf("200 runs drew %d of %d kinds, %.1f in a run", len(ever), kinds, most)
	}
}

// The fault that was planted is named first, one that comes along with it after
// it, one that prevents it as a suppressor, and one that has nothing to do with
// it not at all.
func TestThePlantedCauseIsNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		names := []string{"idle", "culprit", "comes along", "prevents"}
		f := make([]Factor, len(names))
		for i := range f {
			f[i].Name = names[i]
		}
		for range 4000 {
			has := [4]bool{r.Intn(2) == 0, r.Intn(3) == 0, false, r.Intn(3) == 0}
			has[2] = has[1] && r.Intn(3) > 0 || r.Intn(4) == 0
			failed := has[1] && !has[3] && r.Intn(5) == 0 || r.Intn(500) == 0
			for i := range f {
				switch {
				case has[i] && failed:
					f[i].With, f[i].WithFailed = f[i].With+1, f[i].WithFailed+1
				case has[i]:
					f[i].With++
				case failed:
					f[i].Without, f[i].WithoutFails = f[i].Without+1, f[i].WithoutFails+1
				default:
					f[i].Without++
				}
			}
		}
		causes, suppressors := Rank(f)
		if len(causes) == 0 || causes[0].Name != "culprit" || len(suppressors) == 0 || suppressors[0].Name != "prevents" {
			t.Fatalf("causes %+v, suppressors %+v", causes, suppressors)
		}
		if c := causes[0]; !(c.Low < c.Lift && c.Lift < c.High) || math.IsNaN(c.Lift) {
			t.Fatalf("%+v is no interval", c)
		}
	})
}

// What cannot be said is not said: too few runs with a factor, or without.
func TestFewRunsSayNothing(t *testing.T) {
	causes, suppressors := Rank([]Factor{
		{Name: "once", With: FewRuns - 1, WithFailed: FewRuns - 1, Without: 1000},
		{Name: "always", With: 1000, WithFailed: 500},
		{Name: "never failed", With: 500, Without: 500},
	})
	if len(causes)+len(suppressors) != 0 {
		t.Errorf("causes %+v, suppressors %+v", causes, suppressors)
	}
}
