package scenarios

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"vigil/core"
	"vigil/faults"
)

// The checker's small words: each reads one kind of value, says what is wrong
// with it in one line, and goes on with a harmless one, so that the readers of
// larger things need no error handling. The first problem is the one told.

type decoder struct {
	file    string
	problem *Problem
	names   windows
	workers map[string]int
	order   []string // workers' names, for "did you mean"
	askers  []string // raw clients' names, by their numbers
}

func (d *decoder) fail(n *node, format string, args ...any) {
	d.failAt(n, 0, format, args...)
}

func (d *decoder) failAt(n *node, offset int, format string, args ...any) {
	if d.problem != nil {
		return
	}
	line, column := n.line, n.column
	if n.plain {
		column += offset
	}
	d.problem = &Problem{d.file, line, column, fmt.Sprintf(format, args...)}
}

func (d *decoder) bad() bool { return d.problem != nil }

// mapping checks that n is a mapping with none but the valid keys.
func (d *decoder) mapping(n *node, what string, valid ...string) bool {
	if d.bad() {
		return false
	}
	if n.kind != mapNode {
		d.fail(n, "%s must be a mapping, not %s", what, n.kind)
		return false
	}
	for _, k := range n.keys {
		if !contains(valid, k.text) {
			d.fail(k, "%s has no key %q%s", what, clip(k.text), didYouMean(k.text, valid))
			return false
		}
	}
	return true
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// need returns the value of a key that must be there.
func (d *decoder) need(n *node, what, key string) *node {
	v := n.get(key)
	if v == nil || v.kind == nullNode {
		d.fail(n, "%s needs %s", what, key)
		return &node{line: n.line, column: n.column, kind: scalarNode}
	}
	return v
}

func (d *decoder) list(n *node, what string, limit int) []*node {
	if d.bad() || n == nil || n.kind == nullNode {
		return nil
	}
	if n.kind != listNode {
		d.fail(n, "%s must be a list (each item after a dash), not %s", what, n.kind)
		return nil
	}
	if len(n.items) > limit {
		d.fail(n.items[limit], "%s has %d items; %d is the limit", what, len(n.items), limit)
		return nil
	}
	return n.items
}

func (d *decoder) text(n *node, what string, limit int) string {
	if d.bad() {
		return ""
	}
	switch {
	case n.kind != scalarNode:
		d.fail(n, "%s must be a single value, not %s", what, n.kind)
	case strings.TrimSpace(n.text) == "":
		d.fail(n, "%s is empty", what)
	case len(n.text) > limit:
		d.fail(n, "%s has %d bytes; %d is the limit", what, len(n.text), limit)
	}
	return strings.TrimSpace(n.text)
}

func (d *decoder) word(n *node, what string) string { return d.text(n, what, maxName) }

// choice reads one of the words and returns its index.
func (d *decoder) choice(n *node, what string, words []string) int {
	got := d.word(n, what)
	if d.bad() {
		return 0
	}
	for i, w := range words {
		if w == got {
			return i
		}
	}
	d.fail(n, "%s cannot be %q%s", what, clip(got), didYouMean(got, words))
	return 0
}

func (d *decoder) boolean(n *node, what string) bool {
	switch got := d.word(n, what); {
	case d.bad() || got == "false":
	case got == "true":
		return true
	default:
		d.fail(n, "%s must be true or false, not %q", what, clip(got))
	}
	return false
}

func (d *decoder) number(n *node, what string, low, high uint64) uint64 {
	got := d.word(n, what)
	if d.bad() {
		return low
	}
	v, err := strconv.ParseUint(got, 10, 64)
	if err != nil {
		d.fail(n, "%s must be a whole number from %d to %d, not %q", what, low, high, clip(got))
		return low
	}
	if v < low || v > high {
		d.fail(n, "%s must be from %d to %d; got %d", what, low, high, v)
		return low
	}
	return v
}

var byteUnits = []struct {
	name string
	unit uint64
}{
	{"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
}

func (d *decoder) bytes(n *node, what string) uint64 {
	got := d.word(n, what)
	if d.bad() {
		return 0
	}
	end := 0
	for end < len(got) && digit(got[end]) {
		end++
	}
	v, err := strconv.ParseUint(got[:end], 10, 64)
	if err != nil {
		d.fail(n, "%s must be bytes such as 4096 or 80GiB, not %q", what, clip(got))
		return 0
	}
	unit, name := uint64(1), strings.TrimSpace(got[end:])
	if name != "" {
		var names []string
		unit = 0
		for _, u := range byteUnits {
			if names = append(names, u.name); u.name == name {
				unit = u.unit
			}
		}
		if unit == 0 {
			d.failAt(n, end, "there is no unit %s%s", clip(name), didYouMean(name, names))
			return 0
		}
	}
	if v > maxBytes/unit {
		d.fail(n, "%s passes the limit of %d bytes", what, maxBytes)
		return 0
	}
	return v * unit
}

// count reads `3`, `2..5` or `1..` (no upper end).
func (d *decoder) count(n *node, what string, parse func(*node, string) uint64) Count {
	got := d.word(n, what)
	if d.bad() {
		return Count{}
	}
	low, high, isRange := strings.Cut(got, "..")
	one := func(text string) uint64 {
		part := *n
		part.text = strings.TrimSpace(text)
		return parse(&part, what)
	}
	c := Count{Low: one(low)}
	switch {
	case !isRange:
		c.High = c.Low
	case strings.TrimSpace(high) == "":
		c.High = ^uint64(0)
	default:
		if c.High = one(high); !d.bad() && c.High < c.Low {
			d.fail(n, "%s is an empty range: %s", what, clip(got))
		}
	}
	return c
}

func (d *decoder) times(n *node, what string) Count {
	return d.count(n, what, func(n *node, what string) uint64 { return d.number(n, what, 0, maxNumber) })
}

// arithmetic runs one reading of a time text.
func (d *decoder) arithmetic(n *node, what string, read func(*expression)) {
	text := d.text(n, what, MaxLine)
	if d.bad() {
		return
	}
	e := expression{text: text, names: &d.names}
	read(&e)
	if e.err != "" {
		d.failAt(n, e.errAt, "%s: %s", what, e.err)
	}
}

func (d *decoder) time(n *node, what string) (t time.Duration) {
	d.arithmetic(n, what, func(e *expression) { t = e.time(); e.end() })
	return t
}

func (d *decoder) span(n *node, what string) (s faults.Span) {
	d.arithmetic(n, what, func(e *expression) { s = e.span() })
	return s
}

func (d *decoder) window(n *node, what string) (w Window) {
	d.arithmetic(n, what, func(e *expression) { w = e.window() })
	return w
}

// positive reads a time that must be more than nothing.
func (d *decoder) positive(n *node, what string) time.Duration {
	t := d.time(n, what)
	if !d.bad() && t == 0 {
		d.fail(n, "%s must be more than 0s", what)
	}
	return t
}

const everyone = "everyone"

// worker reads a worker's name; all allows `everyone`.
func (d *decoder) worker(n *node, what string, all bool) int {
	got := d.word(n, what)
	if d.bad() {
		return 0
	}
	if all && got == everyone {
		return faults.Everyone
	}
	if i, ok := d.workers[got]; ok {
		return i
	}
	if got == everyone {
		d.fail(n, "%s must be one worker, not everyone", what)
		return 0
	}
	d.fail(n, "there is no worker %q%s", clip(got), didYouMean(got, d.order))
	return 0
}

// who reads `w1`, `w1#2` (its second process) or `everyone`.
func (d *decoder) who(n *node, what string) Who {
	got := d.word(n, what)
	if d.bad() {
		return Who{}
	}
	name, life, numbered := strings.Cut(got, "#")
	part := *n
	part.text = name
	w := Who{Worker: d.worker(&part, what, true)}
	if numbered && !d.bad() {
		part.text = life
		w.Life = int(d.number(&part, "the process number after #", 1, 1000))
	}
	return w
}

func recordNames() []string {
	names := make([]string, 0, core.RecordKinds)
	for k := core.RecordKind(1); k < core.RecordKinds; k++ {
		names = append(names, k.String())
	}
	return names
}

func (d *decoder) record(n *node) core.RecordKind {
	got := d.word(n, "record")
	if d.bad() {
		return 0
	}
	k, ok := core.RecordKindNamed(got)
	if !ok {
		d.fail(n, "there is no record %q%s", clip(got), didYouMean(got, recordNames()))
	}
	return k
}

func failureNames() []string {
	var names []string
	for f := core.NoFailure; f < 255; f++ {
		if f.String() == "unknown" {
			break
		}
		names = append(names, f.String())
	}
	return names
}

func outcomeNames() []string {
	var names []string
	for o := core.OutcomeNone; o < 255; o++ {
		if o.String() == "unknown" {
			break
		}
		names = append(names, o.String())
	}
	return names
}

var (
	removalWords = []string{"client", "reaper", "replace", "stop", "proof"} // core.RemovalCause
	stampWords   = []string{"register", "noop", "ping", "transfer"}         // core.StampCause
	dropWords    = []string{"client", "reaper"}                             // of RopeDropped
	contextWords = []string{"none", "server-driven", "engine-driven", "rope"}
)

var matchKeys = []string{"record", "worker", "nth", "context", "flag", "failure", "cause", "outcome", "reaps"}

// match reads what picks a record. more are further keys that the caller reads.
func (d *decoder) match(n *node, what string, more ...string) (m Match) {
	m.Who.Worker = faults.Everyone
	if !d.mapping(n, what, append(append([]string(nil), matchKeys...), more...)...) {
		return m
	}
	m.Record = d.record(d.need(n, what, "record"))
	if v := n.get("worker"); v != nil {
		m.Who = d.who(v, "worker")
	}
	if v := n.get("nth"); v != nil {
		m.Nth = int(d.number(v, "nth", 1, maxNumber))
	}
	if v := n.get("context"); v != nil {
		m.Context = core.ContextKind(d.choice(v, "context", contextWords))
	}
	if v := n.get("flag"); v != nil {
		m.HasFlag, m.Flag = true, d.boolean(v, "flag")
	}
	if v := n.get("failure"); v != nil {
		m.HasFailure, m.Failure = true, core.Failure(d.choice(v, "failure", failureNames()))
	}
	if v := n.get("cause"); v != nil {
		switch m.Record {
		case core.ContextRemoved:
			m.HasA, m.A = true, uint64(d.choice(v, "cause", removalWords))
		case core.Stamped:
			m.HasB, m.B = true, uint64(d.choice(v, "cause", stampWords))
		case core.RopeDropped:
			m.HasA, m.A = true, uint64(d.choice(v, "cause", dropWords))
		default:
			d.fail(v, "a record %s has no cause; context-removed, stamped and rope-dropped have", m.Record)
		}
	}
	if v := n.get("reaps"); v != nil {
		if m.Record != core.ContextRemoved {
			d.fail(v, "a record %s has no count of reaps; context-removed has", m.Record)
		}
		m.HasB, m.B = true, d.number(v, "reaps", 0, maxNumber)
	}
	if v := n.get("outcome"); v != nil {
		if m.Record != core.EngineTold && m.Record != core.FinishedReported {
			d.fail(v, "a record %s has no outcome; engine-told and finished-reported have", m.Record)
		}
		m.HasB, m.B = true, uint64(d.choice(v, "outcome", outcomeNames()))
	}
	return m
}
