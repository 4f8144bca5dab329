package main

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"vigil/core"
	"vigil/reports"
)

// Why this file: the core never formats a log line. What of its records an
// operator reads becomes lines here, away from the owner's goroutine, which
// must not wait for a slow terminal.

// newLog makes the log: text for people, JSON for everything else.
func newLog(to *os.File, format string, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "text" || format == "auto" && reports.Look(to, true).Is {
		return slog.New(slog.NewTextHandler(to, options))
	}
	return slog.New(slog.NewJSONHandler(to, options))
}

// logBacklog bounds the records that wait to become lines; more are counted
// and left out, and the next line says how many.
const logBacklog = 4096

// journal turns records into lines.
type journal struct {
	log     *slog.Logger
	backlog chan core.Record
	lost    atomic.Uint64
	done    chan struct{}
	// decided is what the reaper gave as its reason, until the context is
	// gone; the journal's goroutine alone uses it.
	decided map[core.InstanceID]core.Record
	reaped  func() // after a context was reaped
	recent  recent
}

func newJournal(log *slog.Logger, reaped func()) *journal {
	j := &journal{
		log: log, backlog: make(chan core.Record, logBacklog), done: make(chan struct{}),
		decided: map[core.InstanceID]core.Record{}, reaped: reaped,
	}
	go j.run()
	return j
}

// take is called on the owner's goroutine for every record.
func (j *journal) take(r *core.Record) {
	switch r.Kind {
	case core.ContextInserted, core.RegisterNoop, core.ReapDecided, core.ContextRemoved, core.ReleaseStuck, core.ServerWarned:
	case core.OpenEnded, core.CloseEnded, core.CopyEnded:
		if r.Failure == core.NoFailure {
			return
		}
	case core.Refused:
		if !j.log.Enabled(context.Background(), slog.LevelDebug) {
			return
		}
	default:
		return
	}
	select {
	case j.backlog <- *r:
	default:
		j.lost.Add(1)
	}
}

// close writes what waits. No record may come after.
func (j *journal) close() {
	close(j.backlog)
	<-j.done
}

func (j *journal) run() {
	defer close(j.done)
	for r := range j.backlog {
		if n := j.lost.Swap(0); n > 0 {
			j.log.Warn("log lines left out: too many at once", "records", n)
		}
		j.write(&r)
	}
}

var removalNames = [...]string{
	core.RemovedByClient: "unregister", core.RemovedByReaper: "reaper", core.RemovedByReplace: "replaced",
	core.RemovedByStop: "stop", core.RemovedByProof: "proof",
}

func removalName(cause uint64) string {
	if cause < uint64(len(removalNames)) {
		return removalNames[cause]
	}
	return "unknown"
}

func (j *journal) write(r *core.Record) {
	who := []any{"instance", instanceText(r.Instance), "context", r.Context.String(), "incarnation", uint64(r.Incarnation)}
	switch r.Kind {
	case core.ContextInserted:
		j.log.Info("registered", append(who, "bytes", r.B)...)
	case core.RegisterNoop:
		j.log.Info("registered again, nothing to do", who...)
	case core.ReapDecided:
		if len(j.decided) > logBacklog {
			clear(j.decided)
		}
		j.decided[r.Instance] = *r
	case core.ContextRemoved:
		switch core.RemovalCause(r.A) {
		case core.RemovedByReaper:
			d, ok := j.decided[r.Instance]
			if ok {
				j.recent.add(r, &d)
				delete(j.decided, r.Instance)
				who = append(who, "silent_seconds", d.At.Sub(core.Time(d.A)).Seconds(), "window_seconds", time.Duration(d.B).Seconds(), "had_pinged", d.Flag)
			} else {
				j.recent.add(r, nil)
			}
			j.log.Warn("reaped: the instance fell silent; repeated reaps of one id mean that the window is too small", append(who, "times", r.B)...)
			j.reaped()
		case core.RemovedByProof:
			j.recent.add(r, nil)
			j.log.Warn("reaped: proof of death, the instance's process has ended", append(who, "times", r.B)...)
			j.reaped()
		default:
			j.log.Info("context removed", append(who, "by", removalName(r.A))...)
		}
	case core.ReleaseStuck:
		j.log.Error("a release is stuck: its memory stays mapped", append(who, "mapping", r.A, "bytes", r.B)...)
	case core.OpenEnded:
		j.log.Warn("opening memory failed", append(who, "failure", r.Failure.String())...)
	case core.CloseEnded:
		j.log.Error("closing memory failed", append(who, "mapping", r.A, "failure", r.Failure.String())...)
	case core.CopyEnded:
		j.log.Warn("a copy failed", append(who, "mapping", r.A, "failure", r.Failure.String())...)
	case core.Refused:
		j.log.Debug("refused", "instance", instanceText(r.Instance), "type", r.A, "peer", r.B, "failure", r.Failure.String())
	case core.ServerWarned:
		j.log.Warn("warning of the core", append(who, "failure", r.Failure.String())...)
	}
}

// instanceText writes an id as text: it has 63 bits, and most readers of JSON
// keep 53.
func instanceText(id core.InstanceID) string { return strconv.FormatUint(uint64(id), 10) }
