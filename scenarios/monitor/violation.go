package monitor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"vigil/core"
)

// Violation is one broken invariant.
type Violation struct {
	Invariant string    // ONE, CONVERGE, ...
	Safety    bool      // false for a liveness invariant
	At        core.Time // when it broke; for liveness, the deadline that passed
	Actors    []int     // worker numbers, from 0; the one it happened to first
	Message   string    // the reason, in words
}

// MaxViolations bounds the list of one run; the rest is counted only.
const MaxViolations = 64

// invariant numbers the invariants in the order of DESIGN.md.
type invariant uint8

const (
	one invariant = iota
	converge
	reclaim
	noFalseReap
	isolate
	terminal
	noUAF
	fence
	once
	quiet
	integrity
	visible
	trueLog
	invariants // how many there are
)

// nobody stands for the worker of a violation that concerns none.
const nobody int32 = -1

// never is earlier than every time of a run: a thing that has not happened.
const never core.Time = -1 << 62

// first reports whether (inv, worker) is broken for the first time in this
// run. Callers ask before they compose a message, so that a thing that breaks
// a million times costs a message once.
func (m *Set) first(inv invariant, w int32) bool {
	seen := &m.reported
	if w >= 0 && int(w) < len(m.workers) {
		seen = &m.workers[w].reported
	}
	bit := uint16(1) << inv
	if *seen&bit != 0 {
		return false
	}
	*seen |= bit
	if len(m.violations) >= MaxViolations {
		m.dropped++
		return false
	}
	return true
}

// report adds one violation; the caller has asked first.
func (m *Set) report(inv invariant, at core.Time, message string, actors ...int32) {
	v := Violation{Invariant: descriptions[inv].ID, Safety: descriptions[inv].Safety, At: at, Message: message}
	for _, a := range actors {
		if a >= 0 && !slices.Contains(v.Actors, int(a)) {
			v.Actors = append(v.Actors, int(a))
		}
	}
	m.violations = append(m.violations, v)
}

// Violations returns what broke, in the order of finding, at most
// MaxViolations; one invariant is listed once per worker. The caller may keep it.
func (m *Set) Violations() []Violation { return slices.Clone(m.violations) }

// Dropped returns how many violations did not fit the list.
func (m *Set) Dropped() int { return m.dropped }

// name is what a message calls a worker.
func (m *Set) name(w int32) string {
	if w < 0 {
		return "an unknown worker"
	}
	if int(w) < len(m.setup.Workers) && m.setup.Workers[w].Name != "" {
		return m.setup.Workers[w].Name
	}
	return fmt.Sprintf("worker %d", w)
}

// whose names the worker of an instance, or the instance where none is known.
func (m *Set) whose(in *instance) string {
	if in.worker >= 0 {
		return m.name(in.worker)
	}
	return fmt.Sprintf("instance %d", uint64(in.id))
}

// seconds writes a moment or a span as messages do: "240 s", "0.25 s".
func seconds[T core.Time | time.Duration](t T) string {
	text := fmt.Sprintf("%.6f", float64(t)/1e9)
	text = strings.TrimRight(text, "0")
	return strings.TrimSuffix(text, ".") + " s"
}
