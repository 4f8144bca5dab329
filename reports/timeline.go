package reports

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"

	"vigil/core"
)

// Timeline writes the story of one run for a person. Most of what happens in a
// run is pings, stores and retrieves that end well: they are counted, and told
// in one line between what is told one by one. Everything tells all records.
type Timeline struct {
	Everything bool

	lines   []timeLine
	quiet   map[string]int    // counted since the last line
	repeats map[repeatKey]int // how often each such thing was told
}

type timeLine struct {
	at      core.Time
	who     string
	text    string
	style   string
	summary bool
}

type repeatKey struct {
	kind core.RecordKind
	who  string
	// about is whom the world's records are about: each is told of by itself.
	about core.InstanceID
}

// tellRepeats is how often a thing that tends to repeat is told of one actor
// before it is counted only.
const tellRepeats = 3

// Add takes the next record of the run, its words and who it is filed under.
func (t *Timeline) Add(r *core.Record, who, words string) {
	if !t.Everything {
		how, name := manner(r)
		if how == repeating {
			if t.repeats == nil {
				t.repeats = map[repeatKey]int{}
			}
			key, most := repeatKey{r.Kind, who, 0}, tellRepeats
			if r.Kind == core.BlocksWrong {
				// The first of each worker is what its broken promise follows from; the
				// others say nothing more.
				key.about, most = r.Instance, 1
			}
			if t.repeats[key]++; t.repeats[key] > most {
				how = everyday
			}
		}
		switch how {
		case detail:
			return
		case everyday:
			if t.quiet == nil {
				t.quiet = map[string]int{}
			}
			t.quiet[name]++
			return
		}
	}
	t.flush(r.At)
	line := timeLine{at: r.At, who: who, text: words, style: style(r)}
	at := len(t.lines)
	if r.Kind == core.FaultStruck {
		// It is written when the step is done; a reader wants the cause first.
		for at > 0 && t.lines[at-1].at == r.At && t.lines[at-1].who == who && t.lines[at-1].style != bold {
			at--
		}
	}
	t.lines = slices.Insert(t.lines, at, line)
}

// flush tells what was counted since the last line.
func (t *Timeline) flush(at core.Time) {
	if len(t.quiet) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(t.quiet))
	parts := make([]string, len(names))
	for i, what := range names {
		parts[i] = counted(t.quiet[what], what)
	}
	clear(t.quiet)
	t.lines = append(t.lines, timeLine{at: at, text: strings.Join(parts, ", "), style: dim, summary: true})
}

// Broke puts a violation into the timeline, after what happened at its time.
func (t *Timeline) Broke(v *Violation) {
	at := core.Time(v.AtSeconds*1e9 + 0.5)
	i := sort.Search(len(t.lines), func(i int) bool { return t.lines[i].at > at })
	text := fmt.Sprintf("%s: %s: %s", strings.ToUpper(string(v.Verdict)), v.Invariant, v.Message)
	if v.Declared {
		text += " (declared by the scenario)"
	}
	t.lines = slices.Insert(t.lines, i, timeLine{at: at, who: strings.Join(v.Actors, ", "), text: text, style: red})
}

// Write writes the timeline.
func (t *Timeline) Write(w io.Writer, width int, colour bool) error {
	on := ink(colour)
	names := 0
	for _, l := range t.lines {
		names = max(names, min(len(l.who), 16))
	}
	indent := 14 + names + 2
	limit := 0
	if width > 0 {
		limit = max(width-indent, 30)
	}
	var b bytes.Buffer
	for _, l := range t.lines {
		for i, part := range wrap(l.text, limit) {
			switch {
			case i > 0:
				fmt.Fprintf(&b, "%*s", indent, "")
			case l.summary:
				fmt.Fprintf(&b, "%12s  %-*s  ", "...", names, "")
			default:
				fmt.Fprintf(&b, "%11.6fs  %-*s  ", float64(l.at)/1e9, names, shorten(l.who, names))
			}
			b.WriteString(on.paint(l.style, part))
			b.WriteByte('\n')
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// telling is how a record is told.
type telling uint8

const (
	oneByOne  telling = iota
	everyday          // counted
	repeating         // one by one at first, then counted
	detail            // not at all, unless everything is
)

// manner says how a record is told, and under which name it is counted.
func manner(r *core.Record) (telling, string) {
	switch r.Kind {
	case core.PingAnswered:
		return everyday, "ping answered"
	case core.PingFailed:
		return repeating, "ping failed"
	case core.MessageLost:
		return everyday, "message lost"
	case core.EngineTold:
		request := "retrieve"
		if r.Flag {
			request = "store"
		}
		switch outcome := core.Outcome(min(r.B, 255)); outcome {
		case core.OutcomeStored:
			return everyday, "store done"
		case core.OutcomeLoaded, core.OutcomeMissed:
			return everyday, request + " " + outcome.String()
		default:
			return repeating, request + " " + outcome.String()
		}
	case core.RequestDropped, core.RequestResolved:
		return detail, "" // its engine is told of it
	case core.BlocksWrong:
		return repeating, "retrieve with wrong bytes"
	case core.Refused:
		return repeating, "request refused"
	case core.PoolFull:
		return repeating, "request turned away"
	case core.MappingReopened, core.MappingClosedTwice, core.MappingUnknown, core.CopyTouchedRelease, core.CopyTouchedGone:
		return repeating, "more misuse of memory"
	case core.OpenEnded, core.CopyEnded, core.TransferEnded:
		if r.Failure != core.NoFailure {
			return repeating, "operation failed"
		}
		return detail, ""
	case core.ProcessStarted:
		return detail, "" // the process says so itself
	case core.EngineRegistered:
		if r.Flag {
			return detail, ""
		}
		return oneByOne, ""
	case core.RegisterArrived, core.OpenBegan, core.StrategyAdded, core.StrategyRemoved, core.LayoutAcquired, core.LayoutReleased,
		core.Stamped, core.ScanBegan, core.ScanEnded, core.CloseBegan, core.DropFannedOut, core.TransferBegan, core.CopyBegan,
		core.UnregisterCame, core.LockTaken, core.LockReturned, core.ChunkReserved, core.ChunkReady, core.ChunkDropped,
		core.RegisterEnded, core.PingSent, core.Submitted, core.RequestSent, core.FinishedReported,
		core.HeartbeatStopped, core.UnregisterEnded, core.ConnectionOpened, core.MessageSent, core.MessageReached, core.MessageHandled,
		core.MappingOpened, core.MappingClosing, core.MappingClosed, core.EngineSubmitted, core.BlocksRight:
		if r.Failure != core.NoFailure {
			return repeating, "operation failed"
		}
		return detail, ""
	}
	return oneByOne, ""
}

// Told reports whether a record is one that makes the story of a run: told one
// by one, not counted or left out.
func Told(r *core.Record) bool {
	how, _ := manner(r)
	return how == oneByOne || how == repeating && r.Kind != core.PingFailed
}

// Alarming reports whether a record says by itself that something is wrong.
func Alarming(r *core.Record) bool { return style(r) == red }

func style(r *core.Record) string {
	switch r.Kind {
	case core.FaultStruck:
		return bold
	case core.ProcessKilled, core.ProcessPaused, core.LinkCut, core.HealthCleared:
		return yellow
	case core.MappingReopened, core.MappingClosedTwice, core.MappingUnknown, core.CopyTouchedRelease, core.CopyTouchedGone, core.BlocksWrong, core.ReleaseStuck:
		return red
	}
	return ""
}

// counted writes so many of an everyday thing, its noun in the plural.
func counted(n int, what string) string {
	noun, rest, _ := strings.Cut(what, " ")
	if n == 1 || noun == "more" {
		return fmt.Sprintf("%s %s", grouped(uint64(n)), what)
	}
	return fmt.Sprintf("%s %ss %s", grouped(uint64(n)), noun, rest)
}
