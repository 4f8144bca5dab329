package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"vigil/core"
	"vigil/core/loop"
	"vigil/core/wire"
	"vigil/faults"
	"vigil/reports"
	"vigil/reports/spacetime"
	"vigil/scenarios"
	"vigil/scenarios/audit"
	"vigil/scenarios/run"
	"vigil/sim"
)

// diagram observes one run for the page that shows it.
type diagram struct {
	*spacetime.Diagram
	story *run.Story
}

// newDiagram begins the diagram of a run of a scenario.
func newDiagram(head spacetime.Head, s *scenarios.Scenario) *diagram {
	names := make([]string, len(s.Plan.Workers))
	for i := range names {
		names[i] = s.WorkerName(i)
	}
	d := &diagram{spacetime.New(head, names), run.NewStory(s, true)}
	d.TypeName = func(number uint64) string { return wire.Type(number).String() }
	for i := range s.Plan.Steps {
		d.Steps = append(d.Steps, stepOf(s, i))
	}
	return d
}

// Observe takes one record of the run.
func (d *diagram) Observe(r *core.Record) {
	d.Add(r, d.story.Say(r), reports.Told(r), reports.Alarming(r))
}

// stepOf is a step of a scenario as the diagram marks it.
func stepOf(s *scenarios.Scenario, i int) spacetime.Step {
	do := &s.Plan.Steps[i].Do
	step := spacetime.Step{Label: s.Words(i), Worker: spacetime.Everyone}
	switch {
	case do.Worker == faults.Server:
		step.Worker = spacetime.Server
	case do.Worker >= 0:
		step.Worker = do.Worker
	}
	switch f := &do.Fault; f.Kind {
	case faults.None, faults.Pause, faults.Cut, faults.ServerFreeze, faults.HostSuspend, faults.Kill, faults.Restart, faults.ServerRestart:
		// the records say how long it acts
	default:
		step.For = f.For.High
	}
	return step
}

// headOf is what a page says of a run of a scenario beside its records.
func headOf(sc selected, seed uint64, c choice) spacetime.Head {
	server := &sc.Plan.Server
	return spacetime.Head{
		ID: sc.ID, Name: sc.Name, Title: sc.Title, Story: sc.Story, Design: c.String(), Seed: seed,
		Reap: server.Reap, Grace: server.Grace, Scan: server.Scan(),
	}
}

// finish puts what the run came to into its diagram.
func (d *diagram) finish(r *run.Run, verdict reports.Verdict, replay string) {
	d.Head.Events, d.Head.Hash, d.Head.Verdict, d.Head.Replay = r.Events, fmt.Sprintf("%016x", uint64(r.Hash)), string(verdict), replay
	for i := range r.Violations {
		v := &r.Violations[i]
		d.Broke(spacetime.Violation{
			Invariant: v.Invariant, Promise: promise(v.Invariant), Verdict: string(v.Verdict), At: int64(v.At),
			Actors: v.Actors, Message: v.Message, Declared: v.Declared,
		})
	}
}

// draw plays one seed of a scenario once more and returns its diagram.
func (p *player) draw(sc selected, seed uint64) *spacetime.Diagram {
	return drawn(sc, seed, p.design, func(o sim.Observer) run.Run { return p.inner.Play(sc.Scenario, seed, o) })
}

// drawn is the diagram of a run that play plays before an observer.
func drawn(sc selected, seed uint64, c choice, play func(sim.Observer) run.Run) *spacetime.Diagram {
	d := newDiagram(headOf(sc, seed, c), sc.Scenario)
	r := play(d)
	verdict := reports.Pass
	for i := range r.Violations {
		if !r.Violations[i].Declared {
			verdict = reports.Gravest(verdict, reports.Verdict(r.Violations[i].Verdict))
		}
	}
	d.finish(&r, verdict, replayCommand(newToken(sc, seed, c, r.Hash).String()))
	return d.Diagram
}

var instanceNamed = regexp.MustCompile(`instance [0-9]+`)

// auditDiagram is the diagram of a real server's event log: a lane for each
// instance, and of what broke what the audit found.
func auditDiagram(path string, report *audit.Report) (*spacetime.Diagram, error) {
	h := &report.Header
	d := spacetime.New(spacetime.Head{
		Name: filepath.Base(path), Title: "what a real server's event log holds", Design: h.Design,
		Source: "event log of a real server, design " + h.Design, Verdict: string(auditVerdict(report)),
		Reap: time.Duration(h.Reap), Grace: time.Duration(h.Grace), Scan: time.Duration(h.Reap) / core.ScansPerWindow,
	}, nil)
	words := run.NewStory(&scenarios.Scenario{Plan: &sim.Plan{}}, true)
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lost := uint64(0)
	if _, err := loop.ReadEvents(file, nil, func(e *loop.Event) error {
		if e.Lost > 0 {
			lost += e.Lost
			return nil
		}
		r := &e.Record
		d.Add(r, words.WordsOf(r, -1), reports.Told(r), reports.Alarming(r))
		return nil
	}); err != nil {
		return nil, err
	}
	if lost > 0 {
		d.Head.Notes = append(d.Head.Notes, fmt.Sprintf("%d records are missing from the log.", lost))
	}
	if report.Torn {
		d.Head.Notes = append(d.Head.Notes, "The log's last line is cut off, as a kill leaves it.")
	}
	for i := range report.Findings {
		f := &report.Findings[i]
		verdict := reports.Liveness
		if f.Safety {
			verdict = reports.Safety
		}
		for k := range f.Broken {
			v := &f.Broken[k]
			d.Broke(spacetime.Violation{
				Invariant: f.Invariant, Promise: promise(f.Invariant), Verdict: string(verdict), At: int64(v.At),
				Actors: instanceNamed.FindAllString(v.Message, 1), Message: v.Message,
			})
		}
	}
	return d, nil
}
