package real

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/monitor"
	"vigil/scenarios/run"
)

// Options say how scenarios are played.
type Options struct {
	Server      string // path of the server's program
	Scale       int    // time runs so many times as fast
	Backend     string // where the workers' memory is: hostshm, or cuda; "" is hostshm
	Library     string // with cuda: the driver's library; the stand-in's (see below)
	Design      string // "document" or "hardened"
	Protections core.Protections
	Seed        uint64 // of what happens when within the story's ranges; a second round has the next one
	Rounds      int    // how often each scenario is played; 0 is once
	Jobs        int    // runs at once
	Keep        string // a folder in which logs and sockets of each run stay; "" keeps none
	Record      string // a folder in which each run's server is recorded; "" records none
	// Progress, where set, is called after each run, by one goroutine at a time.
	Progress func(done, total int, o *Outcome)
}

// MaxScale bounds the scale: above it, ordinary delays of a host are longer
// than the protocol's own deadlines.
const MaxScale = 600

// Outcome is what one scenario came to.
type Outcome struct {
	Scenario   *scenarios.Scenario
	Seed       uint64
	Attempts   int    // more than one where this machine stood still
	Skipped    string // why real processes cannot play it; then nothing else is set
	Verdict    run.Verdict
	Violations []run.Violation
	Undecided  []monitor.Undecided // invariants that could not be judged
	Notes      []string            // what else could not be
	Records    int
	End        core.Time     // of the story
	Wall       time.Duration // with the processes' starts and ends
	Left       []string      // what could not be cleaned up: a defect of this package
	Stalled    time.Duration // how long a thread of it was kept waiting by the host, at the longest
	Folder     string        // with Keep: where the run's logs are
}

// attempts is how often a run is played at most. A run in which something came
// too late while a thread of it waited for a processor for longer than
// StallBound shows nothing about the server; it is played again, and the
// outcome says so. A run that fails on a machine that let it run is never
// played again, nor is one that broke what no delay excuses.
const attempts = 6

// Suite plays scenarios, several at once, round after round, and returns an
// outcome for each run: those of the first round in the scenarios' order, then
// those of the second. It ends early when ctx ends: what was not played has
// the verdict unknown.
func Suite(ctx context.Context, list []*scenarios.Scenario, o Options) ([]Outcome, error) {
	if o.Scale < 1 || o.Scale > MaxScale {
		return nil, fmt.Errorf("--time-scale must be from 1 to %d; got %d", MaxScale, o.Scale)
	}
	if !supported {
		return nil, fmt.Errorf("--real %s: playing real processes needs Linux; the simulator runs here", o.Server)
	}
	path, err := filepath.Abs(o.Server)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(path); err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
			err = errors.New("it is not a program")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("--real %s: %w; build it with go build -o %s ./cmd/server", o.Server, err, o.Server)
	}
	o.Server = path
	if err := o.checkBackend(); err != nil {
		return nil, err
	}
	hurry()
	outcomes := make([]Outcome, len(list)*max(o.Rounds, 1))
	var mu sync.Mutex
	var group sync.WaitGroup
	next, done := 0, 0
	for range max(1, min(o.Jobs, len(outcomes))) {
		group.Go(func() {
			for {
				mu.Lock()
				n := next
				next++
				mu.Unlock()
				if n >= len(outcomes) {
					return
				}
				out := patient(ctx, list[n%len(list)], o, o.Seed+uint64(n/len(list)))
				mu.Lock()
				outcomes[n] = out
				done++
				if o.Progress != nil {
					o.Progress(done, len(outcomes), &outcomes[n])
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return outcomes, nil
}

// patient plays a scenario until this machine let it.
func patient(ctx context.Context, s *scenarios.Scenario, o Options, seed uint64) (out Outcome) {
	o.Seed = seed
	var notes []string
	for n := 1; ; n++ {
		out = Play(ctx, s, o)
		out.Attempts, out.Notes = n, append(notes, out.Notes...)
		if out.Skipped != "" || out.Verdict == run.Pass || out.Stalled <= StallBound || !excusable(&out) || ctx.Err() != nil || len(out.Left) > 0 {
			return out
		}
		note := fmt.Sprintf("the host kept a thread waiting for %s while %s was played: that run (%s) shows nothing", out.Stalled.Round(time.Millisecond), s.ID, out.Verdict)
		if n == attempts {
			out.Verdict = run.Unknown
			out.Notes = append(out.Notes, note+", and it was the last attempt")
			return out
		}
		notes = append(notes, note)
		calm(ctx)
	}
}

// Play plays one scenario. Whatever happens, nothing of it is left behind.
func Play(ctx context.Context, s *scenarios.Scenario, o Options) (out Outcome) {
	began := time.Now()
	out = Outcome{Scenario: s, Seed: o.Seed, Verdict: run.Unknown}
	told := s
	if s.Real != nil {
		told = s.Real
	}
	if out.Skipped = s.RealSkip; out.Skipped == "" {
		out.Skipped = cannot(told.Plan)
	}
	if out.Skipped != "" {
		return out
	}
	if ctx.Err() != nil {
		out.Notes = append(out.Notes, "interrupted before it began")
		return out
	}
	plan := run.Compile(told, o.Protections)
	h := fnv.New64a()
	h.Write([]byte(s.ID))
	p := &play{
		options: &o, scenario: told, plan: plan, seed: o.Seed,
		dice: rand.New(rand.NewPCG(o.Seed, h.Sum64())), wake: make(chan struct{}, 1),
	}
	var err error
	if p.dir, err = p.folder(); err != nil {
		out.Notes = append(out.Notes, err.Error())
		return out
	}
	out.Folder = p.dir
	overslept := watchSleep()
	defer func() {
		cause := recover()
		out.Left = p.clean()
		out.Stalled, out.Wall = max(p.stalls.worst, overslept()), time.Since(began)
		if cause != nil {
			out.Verdict = run.Panicked
			out.Violations = append(out.Violations, run.Violation{
				Seed: o.Seed, Invariant: "panic", Verdict: run.Panicked,
				Message: fmt.Sprintf("the player of real processes panicked: %v\n%s", cause, debug.Stack()),
			})
		}
		if len(out.Left) > 0 {
			out.Verdict = run.Gravest(out.Verdict, run.Panicked)
			out.Notes = append(out.Notes, "left behind: "+strings.Join(out.Left, ", "))
		}
	}()
	err = p.perform(ctx)
	end := min(p.now(), core.Time(plan.Until))
	out.End = end
	if err != nil {
		if ctx.Err() != nil {
			err = errInterrupted
		}
		out.Notes = append(out.Notes, err.Error())
		return out
	}
	for _, t := range p.tails() {
		if t.err != nil || t.lost > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("%s: the log is not whole (%d records lost, %v): nothing is judged", filepath.Base(t.path), t.lost, t.err))
			return out
		}
	}
	records := p.stream(end)
	v := p.judge(records, end)
	if o.Keep != "" {
		if err := p.tellStory(records, &v); err != nil {
			out.Notes = append(out.Notes, err.Error())
		}
	}
	out.Records = len(records)
	out.Violations, out.Undecided, out.Notes = v.violations, v.undecided, append(out.Notes, v.notes...)
	for _, text := range p.fails {
		out.Violations = append(out.Violations, run.Violation{Seed: o.Seed, Invariant: "panic", Verdict: run.Panicked, At: end, Message: text})
	}
	out.Verdict = run.Pass
	for i := range out.Violations {
		if x := &out.Violations[i]; !x.Declared {
			out.Verdict = run.Gravest(out.Verdict, x.Verdict)
		}
	}
	return out
}

// tails are all logs of the run.
func (p *play) tails() (list []*tail) {
	for _, s := range p.servers {
		list = append(list, s.tail)
	}
	for _, w := range p.workers {
		for _, l := range w.logs {
			list = append(list, l.tail)
		}
	}
	return list
}

// folder makes the folder of a run's sockets and logs, for this user alone. A
// socket's path must be short.
func (p *play) folder() (string, error) {
	if p.options.Keep == "" {
		return os.MkdirTemp("", "vigil-real-")
	}
	if err := os.MkdirAll(p.options.Keep, 0o755); err != nil {
		return "", err
	}
	return os.MkdirTemp(p.options.Keep, strings.ReplaceAll(p.scenario.ID, "/", "-")+"-")
}

// tellStory writes what happened, in words, beside the run's logs.
func (p *play) tellStory(records []core.Record, v *verdict) error {
	story := run.NewStory(p.scenario, true)
	for i := range records {
		story.Observe(&records[i])
	}
	var b strings.Builder
	for i := range story.Lines {
		l := &story.Lines[i]
		fmt.Fprintf(&b, "%14.6f  %-8s %s\n", float64(l.At)/1e9, l.Actor, l.Words)
	}
	for i := range v.violations {
		fmt.Fprintf(&b, "BROKEN %s at %.6f: %s\n", v.violations[i].Invariant, float64(v.violations[i].At)/1e9, v.violations[i].Message)
	}
	return os.WriteFile(filepath.Join(p.dir, "story.txt"), []byte(b.String()), 0o644)
}
