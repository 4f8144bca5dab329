package capsule

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/run"
	"vigil/sim"
)

func find(t testing.TB, name string) *scenarios.Scenario {
	t.Helper()
	list, err := scenarios.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// ofB1 is a capsule of the document's best-known hole.
func ofB1(t testing.TB) *Capsule {
	t.Helper()
	c, err := OfSeed(find(t, "B1/resumed"), "document", core.Document(), 3)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// reread is the capsule as somebody else reads it.
func reread(t testing.TB, c *Capsule) *Capsule {
	t.Helper()
	back, err := Parse("x.capsule", c.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// What is written is what is read, and plays to the last record as it did:
// stories of the suite and drawn worlds alike.
func TestACapsuleIsReadAndPlayedAsItWasWritten(t *testing.T) {
	for _, name := range []string{"B1/resumed", "A8", "B10", "A1", "A15", "random"} {
		for seed := uint64(0); seed < 4; seed++ {
			for _, p := range []core.Protections{core.Document(), core.Hardened()} {
				design := p.String()
				c, err := OfSeed(find(t, name), design, p, seed)
				if err != nil {
					t.Fatalf("%s seed %d: %v", name, seed, err)
				}
				text := c.Encode()
				back := reread(t, c)
				if again := back.Encode(); !bytes.Equal(text, again) {
					t.Fatalf("%s seed %d: written again it is another:\n%s\n%s", name, seed, text, again)
				}
				if !reflect.DeepEqual(c.Tape, back.Tape) {
					t.Fatalf("%s seed %d: the tape is another", name, seed)
				}
				if _, d := back.Play(nil); !d.Same() {
					t.Fatalf("%s seed %d: the replay differs: %s", name, seed, d.Text)
				}
			}
		}
	}
}

// A capsule says at its head what a reader wants to know first.
func TestTheHeadIsForPeople(t *testing.T) {
	head := string(ofB1(t).Encode())
	for _, want := range []string{
		"verdict: liveness\n", "invariant: ", "actors: w1\n", "design: document\n", "protections: none\n",
		"origin: \"pause-reap-resume/resumed, seed 3\"\n", "  id: B1\n", "variants:", "tape: ",
	} {
		if !strings.Contains(head, want) {
			t.Errorf("the capsule does not say %q:\n%.2000s", want, head)
		}
	}
}

// A capsule is kept for years and mailed about: no damage goes unseen, and
// each is one line that names the file and a line.
func TestDamageIsOneClearLine(t *testing.T) {
	text := ofB1(t).Encode()
	bad := func(t testing.TB, what string, damaged []byte) string {
		t.Helper()
		c, err := Parse("x.capsule", damaged)
		if err == nil {
			t.Fatalf("%s: it was read, as %s", what, c.Origin)
		}
		line := err.Error()
		if strings.Contains(line, "\n") || !strings.HasPrefix(line, "x.capsule:") || len(line) > 400 {
			t.Fatalf("%s: this is no clear line: %q", what, line)
		}
		return line
	}
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		damaged := bytes.Clone(text)
		if damaged[at] = rapid.Byte().Draw(t, "byte"); !bytes.Equal(damaged, text) {
			if _, err := Parse("x.capsule", damaged); err == nil {
				t.Fatalf("byte %d was changed unseen", at)
			}
		}
		if _, err := Parse("x.capsule", text[:at]); err == nil {
			t.Fatalf("it was cut at byte %d unseen", at)
		}
	})
	edit := func(from, to string) []byte {
		if !bytes.Contains(text, []byte(from)) {
			t.Fatalf("the capsule does not hold %q", from)
		}
		return bytes.Replace(text, []byte(from), []byte(to), 1)
	}
	for _, c := range []struct{ from, to, want string }{
		{"verdict: liveness", "verdict: livenes", `x.capsule:3: verdict cannot be "livenes"; did you mean "liveness"?`},
		{"design: document", "design: documant", `did you mean "document"?`},
		{"vigil capsule 1", "vigil capsule 7", `x.capsule:1: it is a capsule of version "7"; this program reads version 1`},
		{"vigil capsule 1", "id: B1", `x.capsule:1: this is no capsule`},
		{"seed: 3", "seed: three", `seed must be a whole number`},
		{"hash: ", "hasch: ", "here must stand `hash: ...`"},
		{"reap: 120s", "reap: 121s", "something above was changed or lost since it was written"},
		{"  id: B1\n", "id: B1\n", "a line of the scenario begins with two spaces"},
	} {
		if line := bad(t, c.to, edit(c.from, c.to)); !strings.Contains(line, c.want) {
			t.Errorf("%q for %q: %s", c.to, c.from, line)
		}
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if line := bad(t, "half", bytes.Join(lines[:len(lines)/2], nil)); !strings.Contains(line, "ends") {
		t.Errorf("a capsule cut in half: %s", line)
	}
	bad(t, "one line lost", bytes.Join(append(lines[:30:30], lines[31:]...), nil))
	bad(t, "something behind it", append(bytes.Clone(text), "hello\n"...))
	bad(t, "too large", append(bytes.Clone(text), make([]byte, MaxBytes)...))
}

// A mail program's line ends are no damage.
func TestLineEndsOfAnotherSystemAreNoDamage(t *testing.T) {
	text := ofB1(t).Encode()
	if _, err := Parse("x.capsule", bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))); err != nil {
		t.Fatal(err)
	}
}

// A file is written whole, and nothing is left beside it.
func TestACapsuleIsWrittenWhole(t *testing.T) {
	dir := t.TempDir()
	c := ofB1(t)
	path := filepath.Join(dir, "b1.capsule")
	if err := c.Write(path); err != nil {
		t.Fatal(err)
	}
	back, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if back.Hash != c.Hash {
		t.Error("another capsule came back")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("beside the capsule lies something: %v", entries)
	}
	if err := c.Write(filepath.Join(dir, "missing", "b1.capsule")); err == nil {
		t.Error("a folder that is not there is no error")
	}
}

// What the same tape breaks nothing under is kept with the capsule and checked
// with it.
func TestWhatMendsARunIsCheckedToo(t *testing.T) {
	c := ofB1(t)
	mended := core.Document()
	mended.Set("registration-aware-ping", true)
	c.Green = []core.Protections{core.Hardened(), mended}
	if wrong, _ := reread(t, c).Check(); len(wrong) > 0 {
		t.Fatalf("what was green no longer is: %+v", wrong)
	}
	other := core.Document()
	other.Set("boot-token", true)
	c.Green = append(c.Green, other)
	wrong, played := reread(t, c).Check()
	if len(played) != 4 || len(wrong) != 1 || wrong[0].Verdict != run.Liveness || !strings.Contains(wrong[0].Message, "The same tape was green under boot-token; now ") {
		t.Fatalf("what mends nothing was said to: %+v", wrong)
	}
}

// Streams of any decisions come back, in words or packed.
func TestStreamsOfAnyDecisionsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64(), rapid.Uint64Range(0, 3)), 1, 300).Draw(t, "values")
		if got, err := unpack(pack(values), len(values)); err != nil || !reflect.DeepEqual(got, values) {
			t.Fatalf("packed %v, unpacked %v: %v", values, got, err)
		}
		if words, short := inWords(values); short {
			if got, err := readWords(words, len(values)); err != nil || !reflect.DeepEqual(got, values) {
				t.Fatalf("written %q, read %v: %v", words, got, err)
			}
		}
		if _, err := unpack(pack(values), len(values)+1); err == nil {
			t.Fatal("a decision was lost unseen")
		}
	})
}

// A few bytes that stand for more decisions than were counted are refused
// before anything is made of them.
func TestAPackedStreamCannotGrow(t *testing.T) {
	bomb := binary.AppendUvarint([]byte{0}, 1<<60)
	if _, err := unpack(bomb, 5); err == nil {
		t.Error("packed zeros")
	}
	if _, err := readWords(" 0*2000000000", 5); err == nil {
		t.Error("zeros in words")
	}
}

// The trail of a long run is thinned, never long.
func TestTheTrailIsBounded(t *testing.T) {
	tr := &tracer{keep: true}
	for i := range 100_000 {
		tr.Observe(&core.Record{At: core.Time(i), A: uint64(i)})
	}
	if n := len(tr.made.bytes); n > maxTrail || n < maxTrail/2 {
		t.Fatalf("the trail of 100,000 records has %d bytes", n)
	}
	// And what it is thinned to is what a comparison reads.
	again := &tracer{with: &tr.made}
	for i := range 100_000 {
		r := core.Record{At: core.Time(i), A: uint64(i)}
		if i == 77_777 {
			r.A++
		}
		again.Observe(&r)
	}
	if !again.found || again.first.At > 77_777 || again.last.At < 77_777 || again.last.At-again.first.At > 64 {
		t.Fatalf("record 77,777 was changed; the difference was found: %t, from %d to %d", again.found, again.first.At, again.last.At)
	}
}

func FuzzParse(f *testing.F) {
	c := &Capsule{
		Text: []byte("id: X\nname: x\ntitle: a worker\nworkers: {w1: {}}\nuntil: 10s\n"), Origin: "x, seed 1", Design: "document",
		Verdict: "pass", Tape: &sim.Tape{Streams: []sim.Stream{{Purpose: sim.ForStart, Actor: 1, Values: []uint64{5, 0, 0}}}},
		trail: trail{1, []byte{1, 2, 3}}, tapeIs: 1,
	}
	f.Add(c.Encode())
	f.Add([]byte("vigil capsule 1\n# x\nverdict: pass\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("x", sealed(text))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("more than one line: %q", err)
			}
			return
		}
		if c.unknown != nil {
			return
		}
		// A fuzzer's world may be large; what is read must be written alike.
		if _, err := Parse("x", c.Encode()); err != nil {
			t.Fatalf("what was read cannot be written and read: %v", err)
		}
	})
}

// sealed puts the right check under a text, so that the fuzzer gets past it.
func sealed(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("\r"), nil)
	i := bytes.LastIndex(text, []byte("\ncheck: "))
	if i < 0 {
		return text
	}
	return append(append(bytes.Clone(text[:i+1]), "check: "+check(text[:i+1])...), '\n')
}
