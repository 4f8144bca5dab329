package capsule

import (
	"fmt"
	"slices"
	"strings"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/run"
	"vigil/sim"
)

// Kind says what a replay did otherwise, the mildest first.
type Kind uint8

// The kinds of difference.
const (
	None          Kind = iota // the same run to the last record
	OtherHash                 // the same verdict by another way: what changed does not matter to it
	OtherStream               // the same, and the run asked for other decisions than were recorded
	OtherVerdict              // it no longer breaks what it broke, or breaks something else
	NoLongerLoads             // the scenario, or a name that the capsule uses, is not known to this code
)

var kindNames = [...]string{"none", "other-hash", "other-stream", "other-verdict", "no-longer-loads"}

// String is the kind in one word.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Difference is what a replay did otherwise than was recorded.
type Difference struct {
	Kind Kind
	At   core.Time // where the first difference was seen; 0 where none is known
	Who  string    // whose record or decision that was; empty where none is known
	Text string    // for a person: one or more lines, empty where nothing differs
}

// Same reports whether the run is the recorded one to the last record.
func (d Difference) Same() bool { return d.Kind == None }

// Reproduces reports whether the run came to what was recorded, by whatever way.
func (d Difference) Reproduces() bool { return d.Kind < OtherVerdict }

// differs compares what came with what was recorded.
func (c *Capsule) differs(r *run.Run, t *tracer, src *source) Difference {
	d := Difference{}
	verdict := c.otherVerdict(r)
	if verdict == "" && r.Hash == c.Hash && r.Records == c.records {
		return d
	}
	var lines []string
	switch {
	case verdict != "":
		d.Kind = OtherVerdict
		lines = append(lines, verdict)
	default:
		d.Kind = OtherHash
		lines = append(lines, "The verdict is the recorded one, the way there is not: what changed does not matter to it.")
	}
	where := c.firstRecord(r, t, &d)
	streams, at, who := c.firstDecision(src)
	if streams != "" && d.Kind == OtherHash {
		d.Kind = OtherStream
	}
	if where == "" {
		d.At, d.Who = at, who
	}
	for _, text := range []string{where, streams} {
		if text != "" {
			lines = append(lines, text)
		}
	}
	if c.tapeIs != sim.TapeVersion {
		lines = append(lines, fmt.Sprintf("The tape was recorded when decisions had the meaning %d; they have the meaning %d now.", c.tapeIs, sim.TapeVersion))
	}
	if now := codeVersion(); now != c.Version {
		lines = append(lines, fmt.Sprintf("It was recorded with %s; this is %s.", c.Version, now))
	}
	d.Text = strings.Join(lines, "\n")
	return d
}

// otherVerdict says how what came is not what was recorded; empty where it is.
func (c *Capsule) otherVerdict(r *run.Run) string {
	if c.Invariant == "" {
		if broken := Broken(r); len(broken) > 0 {
			return fmt.Sprintf("Another verdict: nothing broke in the recorded run; now %s.", broke(broken))
		}
		return ""
	}
	for i := range r.Violations {
		if v := &r.Violations[i]; v.Invariant == c.Invariant && string(v.Verdict) == c.Verdict && sameActors(v.Actors, c.Actors) {
			return ""
		}
	}
	came := "nothing broke"
	if len(r.Violations) > 0 {
		came = broke(r.Violations)
	}
	recorded := run.Violation{Invariant: c.Invariant, Actors: c.Actors, At: c.At}
	return fmt.Sprintf("Another verdict: in the recorded run %s; now %s.", broke([]run.Violation{recorded}), came)
}

func sameActors(a, b []string) bool {
	return slices.Equal(a[:min(len(a), MaxActors)], b)
}

// broke tells of violations in words, the first few.
func broke(list []run.Violation) string {
	var parts []string
	for i := range list {
		if i == 3 {
			parts = append(parts, fmt.Sprintf("%d more", len(list)-i))
			break
		}
		v := &list[i]
		text := v.Invariant + " broke"
		if strings.Contains(v.Invariant, " ") || v.Invariant == strings.ToLower(v.Invariant) {
			text = fmt.Sprintf("%q came", v.Invariant)
		}
		if len(v.Actors) > 0 {
			text += " for " + strings.Join(v.Actors, ", ")
		}
		parts = append(parts, fmt.Sprintf("%s at %s", text, scenarios.Seconds(v.At.Sub(0))))
	}
	return strings.Join(parts, ", ")
}

// firstRecord names the first record that is not as it was.
func (c *Capsule) firstRecord(r *run.Run, t *tracer, d *Difference) string {
	switch {
	case t.found && c.trail.every == 1:
		d.At, d.Who = t.last.At, c.actor(&t.last)
		return fmt.Sprintf("The first record that is not as it was comes at %s, record %d of the run: %s, now `%s`.",
			scenarios.Seconds(t.last.At.Sub(0)), c.recordAt(t), d.Who, t.last.Kind)
	case t.found:
		d.At, d.Who = t.first.At, c.actor(&t.first)
		return fmt.Sprintf("The first record that is not as it was comes between %s (%s, `%s`) and %s (%s, `%s`).",
			scenarios.Seconds(t.first.At.Sub(0)), d.Who, t.first.Kind, scenarios.Seconds(t.last.At.Sub(0)), c.actor(&t.last), t.last.Kind)
	case r.Records != c.records:
		d.At = t.now
		return fmt.Sprintf("The run has %d records, %d were recorded; they are the same as far as both go.", r.Records, c.records)
	case r.Hash != c.Hash:
		return "Every record is as it was; only what lies between the records, such as timers that come to nothing, is not."
	}
	return ""
}

// recordAt is the number of the record that differs.
func (c *Capsule) recordAt(t *tracer) uint64 { return t.sinceAt }

func (c *Capsule) actor(r *core.Record) string {
	switch {
	case r.Actor == core.ActorWorld:
		return "the world"
	case r.Actor == core.ActorServer:
		return "the server"
	}
	return c.worker(int(r.Actor - core.FirstWorker))
}

func (c *Capsule) worker(i int) string {
	if i < len(c.Scenario.Plan.Workers) {
		return c.Scenario.WorkerName(i)
	}
	return "the raw client"
}

// firstDecision names the first decision that the tape does not hold, or what
// it holds and nobody asked for.
func (c *Capsule) firstDecision(src *source) (text string, at core.Time, who string) {
	if src.missed {
		m := &src.first
		who = c.stream(m.purpose, m.actor)
		what := fmt.Sprintf("the tape holds %d, and one more was asked for", m.count)
		if m.large {
			what = "the recorded one no longer fits its range"
		}
		return fmt.Sprintf("The first decision that is not as it was comes after %s: `%s` of %s; %s.",
			scenarios.Seconds(m.at.Sub(0)), m.purpose, who, what), m.at, who
	}
	if s, left := src.unread(); s != nil {
		who = c.stream(s.Purpose, s.Actor)
		return fmt.Sprintf("Decisions are left on the tape: %d of the %d for `%s` of %s were not asked for.", left, len(s.Values), s.Purpose, who), 0, who
	}
	return "", 0, ""
}

// stream says whose decisions a stream holds.
func (c *Capsule) stream(p sim.Purpose, actor int) string {
	switch {
	case p == sim.ForStory && actor < len(c.Scenario.Steps):
		return fmt.Sprintf("step %d (%s)", actor+1, c.Scenario.Words(actor))
	case actor == 0:
		return "the server"
	}
	return c.worker(actor - 1)
}

// Check replays the capsule and every design under which it was recorded as
// green. It returns what is not as it was recorded, nothing where all is, and
// the runs that it played.
func (c *Capsule) Check() (wrong []run.Violation, played []run.Run) {
	r, d := c.Play(nil)
	if d.Kind != NoLongerLoads {
		played = append(played, r)
	}
	if !d.Reproduces() {
		what := c.Invariant
		if what == "" {
			what = "pass"
		}
		wrong = append(wrong, run.Violation{
			Seed: c.Seed, Invariant: what, Verdict: run.Missed, At: d.At, Actors: c.Actors, Message: strings.ReplaceAll(d.Text, "\n", " "),
		})
		if d.Kind == NoLongerLoads {
			return wrong, played
		}
	}
	for _, g := range c.Green {
		design := c.Design
		if g == core.Hardened() {
			design = "hardened"
		}
		r := c.PlayUnder(design, g, nil)
		played = append(played, r)
		r.Violations = Broken(&r)
		if v := worst(&r); len(r.Violations) > 0 {
			v.Declared = false
			v.Message = fmt.Sprintf("The same tape was green under %s; now %s. %s", greenText(g), broke(r.Violations), v.Message)
			wrong = append(wrong, v)
		}
	}
	return wrong, played
}
