package monitor

import (
	"fmt"
	"slices"

	"vigil/core"
)

// TRUE-LOG: what the server and the workers write of themselves is what
// happened, in its order, and nothing that matters is left out. Whoever is
// called at night has only that log, and so has `simrun audit`: a log that is
// wrong, or that says that a close ended which never began, is worse than none.
//
// Log judges it beside the Set, not in it: it remembers names (uids, jobs,
// operations) that only the past needs, which would make every state of an
// exhaustive search another one.

// maxLogFindings bounds what one run's log is found to be wrong in.
const maxLogFindings = 8

// Log is the thirteenth monitor. Make it with NewLog; it belongs to one goroutine.
type Log struct {
	setup   Setup
	server  serverLog
	workers []workerLog
	// reporter is the worker that last wrote of an end to its engine.
	reporter int

	violations []Violation
}

// NewLog returns the monitor of the log for runs of one setup.
func NewLog(s Setup) *Log {
	l := &Log{setup: s, workers: make([]workerLog, len(s.Workers))}
	l.Reset()
	return l
}

// Reset forgets the run and keeps the buffers.
func (l *Log) Reset() {
	l.server.reset()
	for i := range l.workers {
		l.workers[i].reset()
	}
	l.violations, l.reporter = l.violations[:0], -1
}

// Violations returns what the log is wrong in, at most a few a run. The caller
// may keep it.
func (l *Log) Violations() []Violation { return slices.Clone(l.violations) }

// wrong notes that a record is not what happened; worker is nobody for the server.
func (l *Log) wrong(r *core.Record, worker int32, format string, args ...any) {
	if len(l.violations) >= maxLogFindings {
		return
	}
	who, actors := "the server", []int(nil)
	if worker >= 0 {
		who, actors = fmt.Sprintf("worker %d", worker), []int{int(worker)}
		if name := l.setup.Workers[worker].Name; name != "" {
			who = name
		}
	}
	l.violations = append(l.violations, Violation{
		Invariant: descriptions[trueLog].ID, Safety: true, At: r.At, Actors: actors,
		Message: fmt.Sprintf("%s wrote %s: %s", who, r.Kind, fmt.Sprintf(format, args...)),
	})
}

// Observe takes one record, in the order in which they were written.
func (l *Log) Observe(r *core.Record) {
	switch {
	case r.Actor == core.ActorServer:
		l.server.claim(l, r)
	case r.Actor >= core.FirstWorker:
		if w := int(r.Actor - core.FirstWorker); w < len(l.workers) {
			l.workers[w].claim(l, int32(w), r)
			if r.Kind == core.FinishedReported {
				l.reporter = w
			}
		}
	default:
		l.truth(r)
	}
}

// truth takes what the world wrote.
func (l *Log) truth(r *core.Record) {
	s := &l.server
	switch r.Kind {
	case core.MessageHandled:
		s.handled(r)
	case core.MappingOpened, core.MappingClosing, core.MappingClosed:
		s.mapping(l, r)
	case core.AnswerCame:
		if r.Failure != core.NoFailure {
			if s.refusals--; s.refusals < 0 {
				l.wrong(r, nobody, "a client was refused, and the log holds no refusal that was sent")
			}
		}
	case core.ProcessStarted, core.ProcessKilled:
		if r.A == 0 {
			s.reset()
		} else if w := int(r.A) - 1; w < len(l.workers) {
			l.workers[w].reset()
		}
	case core.ProcessExited:
		if r.A == 0 {
			s.exited(l, r)
		} else if w := int(r.A) - 1; w < len(l.workers) {
			l.workers[w].exited(l, int32(w), r)
		}
	case core.EngineSubmitted:
		l.engine(r, int(r.B)-1)
	case core.EngineRegistered:
		l.engine(r, int(r.A)-1)
	case core.EngineTold: // at once behind what its worker wrote of it
		l.engine(r, l.reporter)
	}
}

// engine shows what an engine did or was told to its worker's log.
func (l *Log) engine(r *core.Record, w int) {
	if w >= 0 && w < len(l.workers) {
		l.workers[w].engine(l, int32(w), r)
	}
}
