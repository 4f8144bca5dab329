package real

import (
	"testing"

	"vigil/scenarios/run"
)

// A host that stands still excuses what came too late, and that somebody whom
// it kept waiting was not heard. It excuses nothing that was heard, held or
// delivered wrong, nor anything beside that.
func TestWhatAStallExcuses(t *testing.T) {
	late := run.Violation{Invariant: "CONVERGE", Message: "w1 has no context"}
	for _, c := range []struct {
		name   string
		broken []run.Violation
		want   bool
	}{
		{"nothing", nil, false},
		{"too late", []run.Violation{late}, true},
		{"not heard", []run.Violation{late, {Invariant: "NO-FALSE-REAP", Message: "w1 was reaped alive and idle: it ran undisturbed since 5 s"}}, true},
		{"heard and reaped", []run.Violation{late, {Invariant: "NO-FALSE-REAP", Message: "w1 was reaped alive: its last signal reached the host at 5 s"}}, false},
		{"two contexts", []run.Violation{late, {Invariant: "ONE", Message: "w1 has two"}}, false},
		{"a window", []run.Violation{{Invariant: "expect reaped", Message: "w1 was reaped 200s after"}}, true},
		{"wrong bytes", []run.Violation{{Invariant: "expect happened", Message: "blocks-wrong of w1 came once"}}, false},
		{"declared", []run.Violation{{Invariant: "ONE", Declared: true}, late}, true},
	} {
		if got := excusable(&Outcome{Violations: c.broken}); got != c.want {
			t.Errorf("%s: excused %t, want %t", c.name, got, c.want)
		}
	}
}
