package capsule

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"vigil/core"
	"vigil/sim"
)

// A capsule is replayed by code that has changed since. These tests stand for
// the change in-process, by a protection, a setting or an edited tape: what the
// replay says of it is what somebody will read in two years.

// A change that has nothing to do with it leaves the verdict, and is said to.
func TestAnUnrelatedChangeLeavesTheVerdict(t *testing.T) {
	c := reread(t, ofB1(t))
	c.Scenario.Plan.Server.Grace *= 2 // whoever pinged is not judged by it
	_, d := c.Play(nil)
	if !d.Reproduces() {
		t.Fatalf("the verdict went: %s", d.Text)
	}
	c = reread(t, ofB1(t))
	c.Protections.Set("boot-token", true) // answers to pings hold more, and B1 does not care
	_, d = c.Play(nil)
	if !d.Reproduces() {
		t.Fatalf("the verdict went: %s", d.Text)
	}
}

// A related change is named by what no longer breaks, and by the first record
// that is not as it was: its time and whose it is.
func TestARelatedChangeIsNamed(t *testing.T) {
	c := reread(t, ofB1(t))
	c.Protections.Set("registration-aware-ping", true)
	r, d := c.Play(nil)
	if d.Kind != OtherVerdict {
		t.Fatalf("it is %s: %s", d.Kind, d.Text)
	}
	t.Log(d.Text)
	for _, want := range []string{"Another verdict: in the recorded run " + c.Invariant + " broke for w1", "now nothing broke", "The first record that is not as it was comes at "} {
		if !strings.Contains(d.Text, want) {
			t.Errorf("it does not say %q:\n%s", want, d.Text)
		}
	}
	if d.Who != "w1" || d.At == 0 || d.At >= c.At || d.At >= r.End {
		t.Errorf("the difference is said to begin at %v with %s; w1 sleeps and hears then that it is not registered", d.At, d.Who)
	}
}

// A setting of the server that changes is told by the first record that does.
func TestAChangedConstantIsNamed(t *testing.T) {
	c := reread(t, ofB1(t))
	c.Scenario.Plan.Server.Reap = 10 * c.Scenario.Plan.Server.Reap
	_, d := c.Play(nil)
	if d.Kind != OtherVerdict || d.Who != "the server" {
		t.Fatalf("%s, by %s: %s", d.Kind, d.Who, d.Text)
	}
}

// Code that asks for one decision more than was recorded is told by which, of
// whom, and when; so is code that asks for one less.
func TestADecisionMoreOrLessIsNamed(t *testing.T) {
	c := reread(t, ofB1(t))
	s := longest(c.Tape, sim.ForLatency)
	s.Values = s.Values[:len(s.Values)-1]
	_, d := c.Play(nil)
	if d.Kind != OtherStream && d.Kind != OtherVerdict || !strings.Contains(d.Text, "`latency` of w") || !strings.Contains(d.Text, "one more was asked for") {
		t.Errorf("a decision less on the tape: %s: %s", d.Kind, d.Text)
	}
	c = reread(t, ofB1(t))
	s = longest(c.Tape, sim.ForLatency)
	s.Values = append(s.Values, 5)
	if _, d := c.Play(nil); !d.Same() {
		t.Errorf("what is left over at the end of a tape changes nothing: %s", d.Text)
	}
	c = reread(t, ofB1(t))
	s = longest(c.Tape, sim.ForLatency)
	s.Values[3] = 1 << 50
	if _, d := c.Play(nil); !strings.Contains(d.Text, "no longer fits its range") {
		t.Errorf("a decision out of range: %s: %s", d.Kind, d.Text)
	}
}

// A run that ends earlier than it did leaves decisions on the tape.
func TestDecisionsThatAreLeftAreNamed(t *testing.T) {
	c := reread(t, ofB1(t))
	c.Scenario.Plan.Until -= 20 * time.Second
	_, d := c.Play(nil)
	if !strings.Contains(d.Text, "Decisions are left on the tape: ") {
		t.Errorf("%s: %s", d.Kind, d.Text)
	}
}

func longest(t *sim.Tape, p sim.Purpose) *sim.Stream {
	var s *sim.Stream
	for i := range t.Streams {
		if c := &t.Streams[i]; c.Purpose == p && (s == nil || len(c.Values) > len(s.Values)) {
			s = c
		}
	}
	return s
}

// What this code no longer knows is no damage: the capsule is whole, and the
// name that went is told with its line.
func TestWhatIsNoLongerKnownIsNamed(t *testing.T) {
	c := ofB1(t)
	c.Protections.Set("boot-token", true)
	for _, edit := range []struct{ from, to, want string }{
		{"protections: boot-token", "protections: boot-tokens", `x.capsule:9: there is no protection "boot-tokens" here; did you mean "boot-token"?`},
		{"pause: {worker", "pausing: {worker", `there is no verb "pausing"`},
		{"latency 1 ", "latencies 1 ", `there are no decisions called "latencies" here; did you mean "latency"?`},
	} {
		text := c.Encode()
		if !bytes.Contains(text, []byte(edit.from)) {
			t.Fatalf("the capsule does not hold %q:\n%.1500s", edit.from, text)
		}
		old, err := Parse("x.capsule", sealed(bytes.Replace(text, []byte(edit.from), []byte(edit.to), 1)))
		if err != nil {
			t.Errorf("%s: %v", edit.to, err)
			continue
		}
		if _, d := old.Play(nil); d.Kind != NoLongerLoads || !strings.Contains(d.Text, edit.want) {
			t.Errorf("%s: %s: %s", edit.to, d.Kind, d.Text)
		}
	}
}

// A run in which nothing broke is worth a capsule too: it must stay so.
func TestAPassThatBreaksNowIsNamed(t *testing.T) {
	c, err := OfSeed(find(t, "B1/resumed"), "hardened", core.Hardened(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if c.Verdict != "pass" || c.Invariant != "" {
		t.Fatalf("hardened: %s %s", c.Verdict, c.Message)
	}
	c = reread(t, c)
	c.Protections.Set("registration-aware-ping", false)
	_, d := c.Play(nil)
	if d.Kind != OtherVerdict || !strings.Contains(d.Text, "nothing broke in the recorded run") {
		t.Fatalf("%s: %s", d.Kind, d.Text)
	}
}
