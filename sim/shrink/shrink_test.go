package shrink

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"vigil/core"
	"vigil/faults"
	"vigil/sim"
)

// The trials here need no world: they look at the plan and ask the tape, as a
// world would, so that what must be left in the end is known beforehand.

func seconds(n int) faults.Span { return faults.Fixed(time.Duration(n) * time.Second) }

// storyOf is a plan of so many workers and a step for each.
func storyOf(workers int) *sim.Plan {
	p := &sim.Plan{Server: core.DefaultServerConfig(), Until: time.Hour}
	for i := range workers {
		p.Workers = append(p.Workers, sim.WorkerPlan{
			Name: fmt.Sprintf("w%d", i+1), Config: core.DefaultWorkerConfig(), Pod: i,
			Traffic: sim.Traffic{Every: faults.Span{Low: 7 * time.Second, High: 13 * time.Second}},
		})
		p.Steps = append(p.Steps, sim.Step{
			At: faults.Span{Low: time.Duration(61+i) * time.Second, High: time.Duration(90+i) * time.Second},
			Do: sim.Action{Kind: sim.ActFault, Worker: i, Fault: faults.Fault{Kind: faults.Pause, Worker: i, For: seconds(137)}},
		})
	}
	return p
}

// tapeOf is a tape on which every decision of a world of so many workers is
// its own number.
func tapeOf(workers, steps, each int) *sim.Tape {
	t := &sim.Tape{}
	add := func(p sim.Purpose, actor int) {
		s := sim.Stream{Purpose: p, Actor: actor}
		for i := range each {
			s.Values = append(s.Values, uint64(100*actor+i+1))
		}
		t.Streams = append(t.Streams, s)
	}
	for w := range workers + 1 {
		add(sim.ForLatency, w)
		add(sim.ForEntropy, w)
	}
	for s := range steps {
		add(sim.ForStory, s)
	}
	return t
}

// asks draws as a world of the plan would: of each step its time, of each
// worker some latencies.
func asks(plan *sim.Plan, tape sim.Source, each int, hash *core.Digest) (latencies [][]uint64) {
	for i := range plan.Steps {
		if at := plan.Steps[i].At; at.High > at.Low {
			hash.Uint(tape.Draw(sim.ForStory, i, uint64(at.High-at.Low)+1))
		}
	}
	for w := range len(plan.Workers) + 1 {
		var some []uint64
		for range each {
			v := tape.Draw(sim.ForLatency, w, 1<<40)
			hash.Uint(v)
			some = append(some, v)
			hash.Uint(tape.Draw(sim.ForEntropy, w, 256))
		}
		latencies = append(latencies, some)
	}
	return latencies
}

func has(plan *sim.Plan, name string) int {
	for i := range plan.Workers {
		if plan.Workers[i].Name == name {
			return i
		}
	}
	return -1
}

// A failure that needs one worker, one pause of it that is long enough, and one
// late message is shrunk to just that; what it needs has followed the worker to
// its new number.
func TestWhatIsNotNeededGoes(t *testing.T) {
	const each = 20
	trial := func(plan *sim.Plan, tape sim.Source) (string, core.Digest) {
		var hash core.Digest
		latencies := asks(plan, tape, each, &hash)
		w := has(plan, "w4")
		if w < 0 || latencies[w+1][7] != 408 {
			return "", hash
		}
		for i := range plan.Steps {
			f := &plan.Steps[i].Do.Fault
			if f.Kind == faults.Pause && f.Worker == w && f.For.Low >= 100*time.Second {
				return "late", hash
			}
		}
		return "", hash
	}
	plan, tape := storyOf(6), tapeOf(6, 6, each)
	r, err := Shrink(context.Background(), plan, tape, trial, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Complete || len(r.Plan.Workers) != 1 || r.Plan.Workers[0].Name != "w4" || len(r.Plan.Steps) != 1 {
		t.Fatalf("what is left: %+v of workers %v", r.After, r.Workers)
	}
	if !reflect.DeepEqual(r.Workers, []int{3}) || !reflect.DeepEqual(r.Steps, []int{3}) {
		t.Errorf("what is left is said to be workers %v and steps %v", r.Workers, r.Steps)
	}
	if r.After.Decisions != 1 {
		t.Errorf("%d decisions are left, one is needed: %+v", r.After.Decisions, r.Tape.Streams)
	}
	st := &r.Plan.Steps[0]
	if st.At.Low != st.At.High || grade(st.At.Low) > 1 || st.Do.Fault.For != seconds(120) || st.Do.Fault.Worker != 0 {
		t.Errorf("the step is %+v", st)
	}
	if r.Plan.Workers[0].Traffic != (sim.Traffic{}) || r.Plan.Workers[0].Pod != 0 {
		t.Errorf("the worker is %+v", r.Plan.Workers[0])
	}
	if r.After.Lasts >= 10*time.Minute {
		t.Errorf("the run lasts %v", r.After.Lasts)
	}
	if len(plan.Workers) != 6 || plan.Steps[0].At.Low != 61*time.Second || !reflect.DeepEqual(tape, tapeOf(6, 6, each)) {
		t.Error("what was given was changed")
	}
}

// Steps that follow others go with them, and keep following whom they followed.
func TestStepsThatFollowEachOtherStayInOrder(t *testing.T) {
	plan := storyOf(3)
	plan.Steps = append(plan.Steps,
		sim.Step{After: 2, At: seconds(3), Do: sim.Action{Kind: sim.ActRetrieve, Worker: 1, Prompt: -1, On: true}},
		sim.Step{After: 4, At: seconds(3), Do: sim.Action{Kind: sim.ActStore, Worker: 2, Prompt: -1, On: true}},
	)
	trial := func(plan *sim.Plan, tape sim.Source) (string, core.Digest) {
		var hash core.Digest
		asks(plan, tape, 2, &hash)
		for i := range plan.Steps {
			st := &plan.Steps[i]
			if st.After > i || st.Do.Worker >= len(plan.Workers) || st.Do.Fault.Worker >= len(plan.Workers) {
				t.Fatalf("step %d follows %d and is about worker %d of %d", i, st.After, st.Do.Worker, len(plan.Workers))
			}
			if st.Do.Kind == sim.ActStore && st.After == i {
				return "follows", hash
			}
		}
		return "", hash
	}
	r, err := Shrink(context.Background(), plan, tapeOf(3, 5, 2), trial, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Steps, []int{1, 3, 4}) || !reflect.DeepEqual(r.Workers, []int{1, 2}) {
		t.Errorf("left: steps %v, workers %v", r.Steps, r.Workers)
	}
}

// Whatever a failure needs, the result fails alike, by its own tape alone, and
// is no larger; and the same input gives the same result.
func TestTheResultFailsAlikeAndIsNoLarger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 5).Draw(t, "workers")
		needed := rapid.IntRange(0, workers-1).Draw(t, "needed")
		late := rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 0, 3, rapid.ID).Draw(t, "late")
		trial := func(plan *sim.Plan, tape sim.Source) (string, core.Digest) {
			var hash core.Digest
			latencies := asks(plan, tape, 6, &hash)
			w := has(plan, fmt.Sprintf("w%d", needed+1))
			if w < 0 {
				return "", hash
			}
			for _, k := range late {
				if latencies[w+1][k] == 0 {
					return "", hash
				}
			}
			return "fails", hash
		}
		plan, tape := storyOf(workers), tapeOf(workers, workers, 6)
		r, err := Shrink(context.Background(), plan, tape, trial, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if key, hash := trial(r.Plan, fresh(r.Tape)); key != "fails" || hash != r.Hash {
			t.Fatalf("the result comes to %q with hash %016x, not %016x", key, uint64(hash), uint64(r.Hash))
		}
		if r.After.Workers > r.Before.Workers || r.After.Steps > r.Before.Steps || r.After.Decisions > r.Before.Decisions || r.After.Lasts > r.Before.Lasts {
			t.Fatalf("%+v became %+v", r.Before, r.After)
		}
		if r.After.Workers != 1 || r.After.Steps != 0 || r.After.Decisions != len(late) {
			t.Fatalf("one worker and %d decisions are needed; left is %+v", len(late), r.After)
		}
		again, err := Shrink(context.Background(), plan, tape, trial, Options{})
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("a second time: %+v, %v", again, err)
		}
	})
}

// Two runs of one input end the work: what comes of it could not be believed.
func TestNondeterminismEndsTheWork(t *testing.T) {
	runs := 0
	trial := func(plan *sim.Plan, tape sim.Source) (string, core.Digest) {
		var hash core.Digest
		asks(plan, tape, 2, &hash)
		if runs++; runs == 20 {
			hash.Uint(1)
		}
		return "fails", hash
	}
	_, err := Shrink(context.Background(), storyOf(4), tapeOf(4, 4, 2), trial, Options{})
	var n *Nondeterminism
	if !errors.As(err, &n) || n.Hash[0] == n.Hash[1] || n.Plan == nil {
		t.Fatalf("%v", err)
	}
}

// What fails by one tape's luck only is left alone where the story itself fails.
func TestAnEditMayNotMakeTheFailureRarer(t *testing.T) {
	trial := func(plan *sim.Plan, tape sim.Source) (string, core.Digest) {
		var hash core.Digest
		asks(plan, tape, 2, &hash)
		return "fails", hash
	}
	// Other tapes fail only while there is traffic. (Workers and steps are left
	// out before other tapes are asked.)
	score := func(plan *sim.Plan, tapes int) int {
		if plan.Workers[0].Traffic.Every.Zero() {
			return 0
		}
		return tapes
	}
	r, err := Shrink(context.Background(), storyOf(4), tapeOf(4, 4, 2), trial, Options{Score: score})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Plan.Workers) != 1 || r.Plan.Workers[0].Traffic.Every != seconds(10) && grade(r.Plan.Workers[0].Traffic.Every.Low) > 1 {
		t.Errorf("left: %+v", r.Plan.Workers)
	}
	if r.Plan.Workers[0].Traffic.Every.Zero() {
		t.Error("the traffic went, and with it every other tape")
	}
}

// Where other tapes fail only with another time, that time is taken.
func TestATimeOffTheEdgeIsTaken(t *testing.T) {
	trial := func(plan *sim.Plan, tape sim.Source) (string, core.Digest) {
		var hash core.Digest
		asks(plan, tape, 2, &hash)
		if len(plan.Steps) == 0 || plan.Steps[0].Do.Fault.For.Low < 100*time.Second {
			return "", hash
		}
		return "fails", hash
	}
	score := func(plan *sim.Plan, tapes int) int {
		if len(plan.Steps) > 0 && plan.Steps[0].Do.Fault.For.Low == 130*time.Second {
			return tapes
		}
		return 1
	}
	r, err := Shrink(context.Background(), storyOf(1), tapeOf(1, 1, 2), trial, Options{Score: score})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Plan.Steps) != 1 || r.Plan.Steps[0].Do.Fault.For != seconds(130) {
		t.Errorf("left: %+v", r.Plan.Steps)
	}
}

// Liveness is never owed while a fault acts, whatever is edited.
func TestLivenessIsNotOwedWhileAFaultActs(t *testing.T) {
	plan := storyOf(3)
	plan.FaultsOver = plan.Settled()
	trial := func(plan *sim.Plan, tape sim.Source) (string, core.Digest) {
		var hash core.Digest
		asks(plan, tape, 2, &hash)
		if plan.FaultsOver < plan.Settled() || plan.FaultsOver >= plan.Until {
			t.Fatalf("liveness is owed at %v, the last fault ends at %v, the run at %v", plan.FaultsOver, plan.Settled(), plan.Until)
		}
		if len(plan.Steps) == 0 {
			return "", hash
		}
		return "fails", hash
	}
	r, err := Shrink(context.Background(), plan, tapeOf(3, 3, 2), trial, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Plan.FaultsOver != r.Plan.Settled() {
		t.Errorf("liveness is owed at %v, the last fault ends at %v", r.Plan.FaultsOver, r.Plan.Settled())
	}
}

// Bounds and interruptions leave what is smallest by then.
func TestTheWorkIsBounded(t *testing.T) {
	trial := func(plan *sim.Plan, tape sim.Source) (string, core.Digest) {
		var hash core.Digest
		asks(plan, tape, 2, &hash)
		return "fails", hash
	}
	r, err := Shrink(context.Background(), storyOf(6), tapeOf(6, 6, 2), trial, Options{MaxTrials: 7})
	if err != nil || r.Complete || r.Trials > 9 {
		t.Fatalf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r, err = Shrink(ctx, storyOf(6), tapeOf(6, 6, 2), trial, Options{Progress: func(p Progress) {
		if p.Trials == 5 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || r.Complete || r.Plan == nil {
		t.Fatalf("%+v, %v", r, err)
	}
}

// A range becomes the time that the tape chose in it, to the nanosecond where
// it must be; the decision that chose it goes from the tape, and the next one
// keeps its meaning.
func TestARangeBecomesTheTimeThatWasChosen(t *testing.T) {
	plan := storyOf(1)
	plan.Steps[0].Do.Fault.For = faults.Span{Low: 10 * time.Second, High: 20 * time.Second}
	trial := func(plan *sim.Plan, tape sim.Source) (string, core.Digest) {
		var hash core.Digest
		if len(plan.Steps) == 0 {
			return "", hash
		}
		chosen := func(s faults.Span) time.Duration {
			if s.High > s.Low {
				v := tape.Draw(sim.ForStory, 0, uint64(s.High-s.Low)+1)
				hash.Uint(v)
				return s.Low + time.Duration(v)
			}
			return s.Low
		}
		at := chosen(plan.Steps[0].At)
		if lasts := chosen(plan.Steps[0].Do.Fault.For); at != 61*time.Second+7 || lasts != 10*time.Second+9 {
			return "", hash
		}
		if tape.Draw(sim.ForStory, 0, 10) != 5 {
			return "", hash
		}
		return "on the edge", hash
	}
	tape := &sim.Tape{Streams: []sim.Stream{{Purpose: sim.ForStory, Actor: 0, Values: []uint64{7, 9, 5}}}}
	r, err := Shrink(context.Background(), plan, tape, trial, Options{})
	if err != nil {
		t.Fatal(err)
	}
	st := &r.Plan.Steps[0]
	if st.At != faults.Fixed(61*time.Second+7) || st.Do.Fault.For != faults.Fixed(10*time.Second+9) || r.After.Decisions != 1 {
		t.Errorf("left: %+v, %+v", st, r.After)
	}
}

// Rounder times are rounder, the roundest first; shorter ones are shorter.
func TestTimesBecomeRounder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, int64(2*time.Hour)).Draw(t, "d"))
		if exact := rapid.Bool().Draw(t, "whole"); exact {
			d = d.Truncate(time.Second) + time.Second
		}
		seen := map[time.Duration]bool{}
		for i, r := range rounder(d) {
			if r <= 0 || grade(r) >= grade(d) || r-d > time.Minute || d-r > time.Minute || seen[r] {
				t.Fatalf("%v is no rounder time near %v, or comes twice", r, d)
			}
			if i == 0 && grade(r) != 0 {
				t.Fatalf("%v is the first, and not the roundest", r)
			}
			seen[r] = true
		}
		for _, r := range shorterThan(d) {
			if r >= d || grade(r) > grade(d) {
				t.Fatalf("%v is not shorter and as round as %v", r, d)
			}
		}
	})
}
