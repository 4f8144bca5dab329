package audit

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/monitor"
)

// What a server's own words can contradict, beyond what the monitors judge:
// they want the truth about memory and network, and here there are claims
// only. A claim that breaks a rule by itself is broken whatever the truth.

// ownWords follows the claims.
type ownWords struct {
	config    core.ServerConfig
	keeps     bool // a transfer under way keeps its context
	contexts  map[core.Incarnation]*ownContext
	copies    map[uint64]ownCopy // by operation
	broken    []monitor.Violation
	stopping  bool
	gapped    bool
	gapAt     core.Time
	lastSlept core.Time // the server itself stood still until then
	at        core.Time
	out       [1]core.Record
}

type ownContext struct {
	instance  core.InstanceID
	stamp     core.Time // as the server says it
	latched   bool
	transfers int
}

type ownCopy struct {
	mapping     uint64
	instance    core.InstanceID
	incarnation core.Incarnation
}

// maxOwn bounds the contexts and copies followed at once; more are not judged.
const maxOwn = 1 << 20

// stillness is a gap between two records behind which the server may have
// stood still: it scans at least that often.
func (o *ownWords) stillness() core.Time { return core.Time(o.config.Scan() + noticeBound) }

func (o *ownWords) begin(c core.ServerConfig, p core.Protections) {
	o.config, o.keeps = c, p.TransferKeepsAlive
	o.contexts, o.copies = map[core.Incarnation]*ownContext{}, map[uint64]ownCopy{}
}

func (o *ownWords) gap(at core.Time) { o.gapped, o.gapAt = true, at }

// memory is what a record claims about memory, as the monitors know it: before
// the record itself for an open, after it for a close.
func (o *ownWords) memory(r *core.Record, before bool) []core.Record {
	kind := core.RecordNone
	switch {
	case before && r.Kind == core.OpenEnded && r.Failure == core.NoFailure:
		kind = core.MappingOpened
	case !before && r.Kind == core.CloseBegan:
		kind = core.MappingClosing
	case !before && r.Kind == core.CloseEnded && r.Failure == core.NoFailure:
		kind = core.MappingClosed
	default:
		return nil
	}
	o.out[0] = *r
	o.out[0].Kind, o.out[0].Actor = kind, core.ActorWorld
	return o.out[:]
}

func (o *ownWords) report(invariant string, safety bool, at core.Time, format string, args ...any) {
	if len(o.broken) < monitor.MaxViolations {
		o.broken = append(o.broken, monitor.Violation{Invariant: invariant, Safety: safety, At: at, Message: fmt.Sprintf(format, args...)})
	}
}

func (o *ownWords) window(c *ownContext) time.Duration {
	if c.latched {
		return o.config.Reap
	}
	return o.config.Grace
}

func spell(d time.Duration) string { return scenarios.Seconds(d.Round(time.Millisecond)) }

// take follows one record.
func (o *ownWords) take(r *core.Record) {
	if r.At-o.at > o.stillness() {
		o.lastSlept = r.At
	}
	o.at = r.At
	switch r.Kind {
	case core.ServerStopping:
		o.stopping = true
	case core.ContextInserted:
		if len(o.contexts) < maxOwn {
			o.contexts[r.Incarnation] = &ownContext{instance: r.Instance, stamp: r.At}
		}
	case core.Stamped:
		if c := o.contexts[r.Incarnation]; c != nil {
			c.stamp = core.Time(r.A)
		}
	case core.Latched:
		if c := o.contexts[r.Incarnation]; c != nil {
			c.latched = true
		}
	case core.TransferBegan:
		if c := o.contexts[r.Incarnation]; c != nil {
			c.transfers++
		}
	case core.TransferEnded:
		if c := o.contexts[r.Incarnation]; c != nil && c.transfers > 0 {
			c.transfers--
		}
	case core.ReapDecided:
		c := o.contexts[r.Incarnation]
		if c == nil {
			return
		}
		if o.config.Reap == 0 {
			o.report("NO-FALSE-REAP", true, r.At, "instance %d was found stale though this server reaps nothing", uint64(r.Instance))
		} else if silent := r.At.Sub(c.stamp); silent <= o.window(c) {
			o.report("NO-FALSE-REAP", true, r.At, "instance %d was found stale %s after its last stamp, within its window of %s",
				uint64(r.Instance), spell(silent), spell(o.window(c)))
		}
	case core.ContextRemoved:
		if c := o.contexts[r.Incarnation]; c != nil {
			o.overdue(c, r.Incarnation, r.At)
			delete(o.contexts, r.Incarnation)
		}
	case core.CopyBegan:
		if len(o.copies) < maxOwn {
			o.copies[r.B] = ownCopy{r.A, r.Instance, r.Incarnation}
		}
	case core.CopyEnded:
		delete(o.copies, r.B)
	case core.CloseBegan:
		for _, c := range o.copies {
			if c.mapping == r.A {
				o.report("NO-UAF", true, r.At, "the close of instance %d's mapping %d began while a copy that uses it had not ended", uint64(r.Instance), r.A)
				break
			}
		}
	}
}

// overdue judges a context that has been silent for longer than a scan can
// miss. While the server stood still, or stops, nothing is owed.
func (o *ownWords) overdue(c *ownContext, n core.Incarnation, at core.Time) {
	if o.config.Reap == 0 || o.stopping || o.gapped || c.transfers > 0 && o.keeps {
		return
	}
	due := max(c.stamp, o.lastSlept-core.Time(o.window(c))).Add(o.window(c) + o.config.Scan() + noticeBound)
	if at > due {
		o.report("RECLAIM", false, due, "instance %d (incarnation %d) was silent since %s and was still served at %s, later than its window of %s, a scan and %s after it",
			uint64(c.instance), uint64(n), spell(c.stamp.Sub(0)), spell(at.Sub(0)), spell(o.window(c)), spell(noticeBound))
	}
}

func (o *ownWords) finish(end core.Time) {
	// In the order of their birth, so that a report does not change by itself.
	for _, n := range slices.Sorted(maps.Keys(o.contexts)) {
		o.overdue(o.contexts[n], n, end)
	}
}
