package scenarios

import (
	"fmt"
	"math"
	"strings"
	"time"

	"vigil/core"
	"vigil/faults"
)

// The small words of a written file, each the counterpart of one that the
// checker reads.

// word writes a name; one that YAML would read as something else in quotes.
func word(s string) string {
	switch strings.ToLower(s) {
	case "", "null", "true", "false", "yes", "no", "on", "off", "nan", "inf", "y", "n":
		return quoted(s)
	}
	for i := range len(s) {
		if c := s[i]; !(letter(c) || digit(c) && i > 0 || i > 0 && (c == '-' || c == '.')) {
			return quoted(s)
		}
	}
	return s
}

// quoted writes a text; a plain sentence without quotes.
func quoted(s string) string {
	plain := s != "" && letter(s[0]) && !strings.Contains(s, ": ") && !strings.Contains(s, " #") &&
		!strings.ContainsAny(s, "\n\r\t\"\\{}[]&*!|>%@`") && !strings.HasSuffix(s, ":")
	for _, c := range s {
		plain = plain && c >= ' ' && c != 0x7f && c < 0x80
	}
	switch {
	case plain && strings.ContainsAny(s, " "):
		return s
	case plain && len(s) > 5: // longer than what YAML has words for
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s) + `"`
}

// timeText writes a time exactly, in the largest unit that keeps it short.
func timeText(d time.Duration) string {
	switch {
	case d == 0 || d >= time.Second:
		return Seconds(d)
	case d%time.Millisecond == 0:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	case d%time.Microsecond == 0:
		return fmt.Sprintf("%dus", d/time.Microsecond)
	}
	return fmt.Sprintf("%dns", int64(d))
}

func spanText(s faults.Span) string {
	if s.Low == s.High {
		return timeText(s.Low)
	}
	return timeText(s.Low) + ".." + timeText(s.High)
}

// window writes a window by the configuration's own names where its ends are
// exactly those.
func (w *writer) window(v *Window) string {
	left, right := "[", "]"
	if v.OpenLow {
		left = "("
	}
	if v.OpenHigh {
		right = ")"
	}
	return `"` + left + w.named(v.Low) + ", " + w.named(v.High) + right + `"`
}

func (w *writer) named(d time.Duration) string {
	c := &w.s.Plan.Server
	if c.Reap == 0 || d == 0 {
		return timeText(d)
	}
	switch d {
	case c.Reap:
		return "reap"
	case c.Reap + c.Scan():
		return "reap + scan"
	case c.Grace:
		return "grace"
	case c.Grace + c.Scan():
		return "grace + scan"
	case w.s.Plan.Until:
		return "until"
	}
	return timeText(d)
}

// bytesText writes bytes exactly, in the largest binary unit that fits.
func bytesText(v uint64) string {
	for _, u := range []string{"TiB", "GiB", "MiB", "KiB"} {
		for _, unit := range byteUnits {
			if unit.name == u && v > 0 && v%unit.unit == 0 {
				return fmt.Sprintf("%d%s", v/unit.unit, u)
			}
		}
	}
	return fmt.Sprint(v)
}

func countText(c Count, one func(uint64) string) string {
	switch {
	case c.Low == c.High:
		return one(c.Low)
	case c.High == math.MaxUint64:
		return one(c.Low) + ".."
	}
	return one(c.Low) + ".." + one(c.High)
}

func decimal(v uint64) string { return fmt.Sprint(v) }

func (w *writer) worker(i int) string {
	if i == faults.Everyone {
		return everyone
	}
	return word(w.s.WorkerName(i))
}

func (w *writer) who(v Who) string {
	if v.Life == 0 {
		return w.worker(v.Worker)
	}
	return fmt.Sprintf("%q", fmt.Sprintf("%s#%d", w.s.WorkerName(v.Worker), v.Life))
}

// match writes what picks a record.
func (w *writer) match(m *Match) pairs {
	p := pairs{{"record", m.Record.String()}}
	p.addIf(m.Who != Who{Worker: faults.Everyone}, "worker", w.who(m.Who))
	p.addIf(m.Nth != 0, "nth", fmt.Sprint(m.Nth))
	if m.Context != core.NoContext {
		p.add("context", contextWords[m.Context])
	}
	p.addIf(m.HasFlag, "flag", fmt.Sprint(m.Flag))
	if m.HasFailure {
		p.add("failure", word(m.Failure.String()))
	}
	switch m.Record {
	case core.ContextRemoved:
		if m.HasA {
			p.add("cause", removalWords[m.A])
		}
		p.addIf(m.HasB, "reaps", fmt.Sprint(m.B))
	case core.Stamped:
		if m.HasB {
			p.add("cause", stampWords[m.B])
		}
	case core.RopeDropped:
		if m.HasA {
			p.add("cause", dropWords[m.A])
		}
	case core.EngineTold, core.FinishedReported:
		if m.HasB {
			p.add("outcome", core.Outcome(m.B).String())
		}
	}
	return p
}
