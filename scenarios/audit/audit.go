package audit

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"vigil/core"
	"vigil/core/loop"
	"vigil/scenarios/monitor"
)

// State is what a log says about one invariant.
type State string

// The states.
const (
	Held        State = "held"
	Broken      State = "broken"
	Undecidable State = "undecidable"
)

// Finding is one invariant and what the log says about it.
type Finding struct {
	Invariant string
	Safety    bool
	State     State
	Why       string              // undecidable: what the log does not say
	Broken    []monitor.Violation // in the log's own time
}

// Report is what came of an audit.
type Report struct {
	Header   loop.EventHeader
	Records  int
	First    core.Time // of the first record
	Last     core.Time
	Started  bool   // the log begins with the server's start
	Stopped  bool   // and ends with its orderly stop
	Lost     uint64 // records that the log itself says are missing
	Torn     bool   // its last line is cut, as a kill leaves it
	Findings []Finding
}

// Verdict sums the findings up: the gravest first.
func (r *Report) Verdict() (safety, liveness, nothing bool) {
	nothing = true
	for i := range r.Findings {
		f := &r.Findings[i]
		nothing = nothing && f.State == Undecidable
		if f.State == Broken {
			safety, liveness = safety || f.Safety, liveness || !f.Safety
		}
	}
	return safety, liveness, nothing
}

// File audits the event log in a file.
func File(path string) (*Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Log(f)
}

// bounds of what an honest server may take, where the log does not say.
const (
	// copyBound is of one transfer's copy.
	copyBound = 60 * time.Second
	// noticeBound is how much later than by the settings a reap may come.
	noticeBound = 30 * time.Second
)

// auditor is one audit under way.
type auditor struct {
	report   Report
	monitors *monitor.Set // shown the server's words and what they claim of memory
	plain    *monitor.Set // shown the words alone: it says what they cannot decide
	own      ownWords
}

// Log audits an event log.
func Log(from io.Reader) (*Report, error) {
	a := &auditor{}
	torn, err := loop.ReadEvents(from, a.begin, a.event)
	if err != nil {
		return nil, err
	}
	if a.monitors == nil {
		return nil, fmt.Errorf("event log: it has no whole first line")
	}
	a.report.Torn = torn
	a.finish()
	return &a.report, nil
}

// protectionsOf reads the header's design: a preset, or names joined by +.
func protectionsOf(design string) (core.Protections, error) {
	switch design {
	case "document":
		return core.Document(), nil
	case "hardened":
		return core.Hardened(), nil
	}
	var p core.Protections
	for name := range strings.SplitSeq(design, "+") {
		if !p.Set(name, true) {
			return p, fmt.Errorf("event log: its design names %q, which is no protection that this program knows", name)
		}
	}
	return p, nil
}

func (a *auditor) begin(h loop.EventHeader) error {
	p, err := protectionsOf(h.Design)
	if err != nil {
		return err
	}
	a.report.Header = h
	config := core.ServerConfig{Reap: time.Duration(h.Reap), Grace: time.Duration(h.Grace)}
	setup := monitor.Setup{
		Reap: config.Reap, Grace: config.Grace, Scan: config.Scan(), Protections: p,
		OpenBound: core.ReleaseBound, ReleaseBound: core.ReleaseBound, CopyBound: copyBound, NetworkBound: time.Second,
		Real: true,
	}
	a.monitors, a.plain = monitor.New(setup), monitor.New(setup)
	a.own.begin(config, p)
	return nil
}

func (a *auditor) event(e *loop.Event) error {
	r := &a.report
	if e.Lost > 0 {
		r.Lost += e.Lost
		a.own.gap(e.Record.At)
		return nil
	}
	rec := &e.Record
	if r.Records == 0 {
		r.First, r.Started = rec.At, rec.Kind == core.ServerStarted
	}
	r.Records++
	r.Last = max(r.Last, rec.At)
	r.Stopped = rec.Kind == core.ServerStopped || r.Stopped
	if r.Lost > 0 {
		return nil // behind a gap the picture is not whole
	}
	for _, claimed := range a.own.memory(rec, true) {
		a.monitors.Observe(&claimed)
	}
	a.plain.Observe(rec)
	a.monitors.Observe(rec)
	for _, claimed := range a.own.memory(rec, false) {
		a.monitors.Observe(&claimed)
	}
	a.own.take(rec)
	return nil
}

// finish turns what was seen into findings.
func (a *auditor) finish() {
	r := &a.report
	a.plain.Finish(r.Last)
	a.monitors.Finish(r.Last)
	a.own.finish(r.Last)
	reasons := map[string]string{}
	for _, u := range a.plain.Undecided() {
		reasons[u.Invariant] = u.Reason
	}
	broken := append(a.monitors.Violations(), a.own.broken...)
	partial := ""
	switch {
	case r.Records == 0:
		partial = "the log has no records"
	case !r.Started:
		partial = "the log does not begin with the server's start, so what was there before is not known"
	case r.Lost > 0:
		partial = fmt.Sprintf("%d records are missing from the log, since the disk did not keep up; what is behind them is not judged", r.Lost)
	}
	for _, d := range monitor.Describe() {
		if d.Simulated() {
			continue
		}
		f := Finding{Invariant: d.ID, Safety: d.Safety, State: Held}
		for _, v := range broken {
			if v.Invariant == d.ID {
				f.Broken = append(f.Broken, v)
			}
		}
		switch why, undecided := reasons[d.ID]; {
		case len(f.Broken) > 0 && r.Started:
			f.State = Broken
		case partial != "":
			f.State, f.Why, f.Broken = Undecidable, partial, nil
		case undecided:
			f.State, f.Why = Undecidable, why+"; nothing that it says contradicts the invariant"
		}
		r.Findings = append(r.Findings, f)
	}
}
