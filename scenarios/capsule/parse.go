package capsule

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"vigil/core"
	"vigil/scenarios"
	"vigil/sim"
)

// Read reads a capsule's file.
func Read(path string) (*Capsule, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// IsCapsule reports whether a text begins as capsules do.
func IsCapsule(text []byte) bool { return bytes.HasPrefix(text, []byte(firstLine+" ")) }

// Parse reads a capsule; name is for errors, each one line with the place. A
// scenario or a protection that this code does not know is no error here: the
// capsule is whole, and Play says that it no longer loads.
func Parse(name string, text []byte) (*Capsule, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%s: it has more than %d bytes, the limit of a capsule", name, MaxBytes)
	}
	if !IsCapsule(text) {
		return nil, fmt.Errorf("%s:1: this is no capsule; one begins with %q", name, fmt.Sprintf("%s %d", firstLine, formatVersion))
	}
	r := &reader{name: name, rest: text}
	c := r.capsule()
	if r.err != nil {
		return nil, r.err
	}
	return c, nil
}

// reader reads line by line; its first problem stays.
type reader struct {
	name string
	rest []byte
	line int // of what was read last
	body int // bytes before the line that was read last, with \n for ends
	sum  []byte
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s:%d: %s", r.name, r.line, fmt.Sprintf(format, args...))
	}
}

// next reads one line. An editor's \r\n is no damage.
func (r *reader) next() string {
	if r.err != nil {
		return ""
	}
	r.line++
	if len(r.rest) == 0 {
		r.fail("it ends here, too early: the rest was lost")
		return ""
	}
	line, rest, ended := bytes.Cut(r.rest, []byte("\n"))
	if !ended {
		r.fail("it ends in the middle of this line: the rest was lost")
		return ""
	}
	r.rest = rest
	r.body = len(r.sum)
	r.sum = append(append(r.sum, bytes.TrimSuffix(line, []byte("\r"))...), '\n')
	return string(r.sum[r.body : len(r.sum)-1])
}

// field reads the line of a key.
func (r *reader) field(key string) string {
	line := r.next()
	if r.err != nil {
		return ""
	}
	got, value, ok := strings.Cut(line, ": ")
	if !ok || got != key {
		r.fail("here must stand `%s: ...`, not %q", key, clip(line))
		return ""
	}
	return value
}

func (r *reader) number(key string, bits int) uint64 {
	text := r.field(key)
	if r.err != nil {
		return 0
	}
	v, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		r.fail("%s must be a whole number, not %q", key, clip(text))
	}
	return v
}

func (r *reader) quoted(key string) string {
	text := r.field(key)
	if r.err != nil {
		return ""
	}
	v, err := strconv.Unquote(text)
	if err != nil || !strings.HasPrefix(text, `"`) || strconv.Quote(v) != text {
		r.fail("%s must be a text in quotes", key)
	}
	return v
}

func (r *reader) list(key string, limit int) []string {
	text := r.field(key)
	if r.err != nil || text == none {
		return nil
	}
	list := strings.Split(text, ", ")
	if len(list) > limit {
		r.fail("%s names %d; %d is the limit", key, len(list), limit)
		return nil
	}
	return list
}

// counted reads the number of a line such as `scenario: 12 lines`.
func (r *reader) counted(key, what string, limit int) int {
	text := r.field(key)
	if r.err != nil {
		return 0
	}
	number, rest, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > limit || rest != what {
		r.fail("%s must be a number of %s up to %d, not %q", key, what, limit, clip(text))
		return 0
	}
	return n
}

var verdicts = []string{"pass", "safety", "liveness", "panic", "nondeterminism", "missed", "unknown"}

func (r *reader) capsule() *Capsule {
	c := &Capsule{}
	if version := strings.TrimPrefix(r.next(), firstLine+" "); r.err == nil && version != fmt.Sprint(formatVersion) {
		r.fail("it is a capsule of version %q; this program reads version %d", clip(version), formatVersion)
		return nil
	}
	if line := r.next(); !strings.HasPrefix(line, "#") {
		r.fail("here must stand a comment, not %q", clip(line))
	}
	if c.Verdict = r.field("verdict"); r.err == nil && !slices.Contains(verdicts, c.Verdict) {
		r.fail("verdict cannot be %q%s", clip(c.Verdict), didYouMean(c.Verdict, verdicts))
	}
	if c.Invariant = r.field("invariant"); c.Invariant == none {
		c.Invariant = ""
	}
	c.Actors = r.list("actors", MaxActors)
	c.At = core.Time(r.seconds("time"))
	c.Message = r.quoted("message")
	if c.Design = r.field("design"); r.err == nil && !slices.Contains(scenarios.Designs, c.Design) {
		r.fail("design cannot be %q%s", clip(c.Design), didYouMean(c.Design, scenarios.Designs))
	}
	c.Protections = r.protections(c, r.list("protections", 1000))
	for _, text := range r.list("green", MaxGreen) {
		c.Green = append(c.Green, r.green(c, text))
	}
	c.Origin = r.quoted("origin")
	c.Seed = r.number("seed", 64)
	c.records = r.number("records", 64)
	hash := r.field("hash")
	v, err := strconv.ParseUint(hash, 16, 64)
	if r.err == nil && (err != nil || len(hash) != 16) {
		r.fail("hash must be 16 hex digits, not %q", clip(hash))
	}
	c.Hash = core.Digest(v)
	c.Version = r.quoted("code")
	c.tapeIs = int(r.number("tape-version", 31))
	scenarioAt := r.scenario(c)
	r.tape(c)
	r.trail(c)
	r.check()
	if r.err != nil {
		return nil
	}
	r.load(c, scenarioAt)
	return c
}

func (r *reader) seconds(key string) time.Duration {
	text := r.field(key)
	if r.err != nil {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || scenarios.Seconds(d) != text {
		r.fail("%s must be seconds such as 312.5s, not %q", key, clip(text))
	}
	return d
}

// protections reads names. One that this code does not know is kept as the
// reason why the capsule no longer loads.
func (r *reader) protections(c *Capsule, list []string) (p core.Protections) {
	for _, name := range list {
		if !p.Set(name, true) && c.unknown == nil {
			c.unknown = fmt.Errorf("%s:%d: there is no protection %q here%s", r.name, r.line, clip(name), didYouMean(name, core.ProtectionNames()))
		}
	}
	return p
}

func (r *reader) green(c *Capsule, text string) core.Protections {
	switch text {
	case "hardened":
		return core.Hardened()
	case "document":
		return core.Document()
	}
	return r.protections(c, strings.Split(text, "+"))
}

// scenario reads the text and returns the line that it begins in.
func (r *reader) scenario(c *Capsule) int {
	n := r.counted("scenario", "lines", MaxBytes)
	at := r.line + 1
	for i := 0; i < n && r.err == nil; i++ {
		line := r.next()
		text, indented := strings.CutPrefix(line, "  ")
		if !indented && line != "" {
			r.fail("a line of the scenario begins with two spaces, not %q", clip(line))
		}
		c.Text = append(append(c.Text, text...), '\n')
	}
	return at
}

func (r *reader) tape(c *Capsule) {
	c.Tape = &sim.Tape{}
	total := 0
	n := r.counted("tape", "streams", MaxStreams)
	for i := 0; i < n && r.err == nil; i++ {
		line := r.next()
		head, values, ok := strings.Cut(line, ":")
		words := strings.Fields(head)
		if !ok || len(words) != 3 {
			r.fail("a stream is `purpose actor count: decisions`, not %q", clip(line))
			return
		}
		purpose, known := sim.PurposeNamed(words[0])
		actor, err1 := strconv.ParseUint(words[1], 10, 31)
		count, err2 := strconv.ParseUint(words[2], 10, 31)
		total += int(count)
		switch {
		case !known:
			if c.unknown == nil {
				c.unknown = fmt.Errorf("%s:%d: there are no decisions called %q here%s", r.name, r.line, clip(words[0]), didYouMean(words[0], sim.PurposeNames()))
			}
		case err1 != nil || err2 != nil || count == 0:
			r.fail("a stream has an actor and a number of decisions, not %q", clip(head))
		case total > MaxDecisions:
			r.fail("the tape has more than %d decisions", MaxDecisions)
		}
		if r.err != nil {
			return
		}
		s := sim.Stream{Purpose: purpose, Actor: int(actor)}
		var err error
		if values == " packed" {
			s.Values, err = unpack(r.packed(2*11*int(count)), int(count))
		} else {
			s.Values, err = readWords(values, int(count))
		}
		if err != nil {
			r.fail("the stream %s: %v", clip(head), err)
		}
		if k := len(c.Tape.Streams); k > 0 && known && !before(&c.Tape.Streams[k-1], &s) {
			r.fail("the stream %s stands twice or in the wrong order", clip(head))
		}
		c.Tape.Streams = append(c.Tape.Streams, s)
	}
}

func before(a, b *sim.Stream) bool {
	return a.Purpose < b.Purpose || a.Purpose == b.Purpose && a.Actor < b.Actor
}

// packed reads the indented lines of base64 that follow.
func (r *reader) packed(limit int) []byte {
	var text []byte
	for r.err == nil && bytes.HasPrefix(r.rest, []byte("  ")) {
		text = append(text, strings.TrimPrefix(r.next(), "  ")...)
		if len(text) > 2*limit+packedWidth {
			r.fail("more is packed here than was counted")
		}
	}
	data, err := base64.StdEncoding.Strict().DecodeString(string(text))
	if err != nil {
		r.fail("what is packed here is damaged")
	}
	return data
}

func (r *reader) trail(c *Capsule) {
	text := r.field("trail")
	var n int
	if _, err := fmt.Sscanf(text, "%d bytes, one every %d records", &n, &c.trail.every); r.err == nil && (err != nil || n < 0 || n > maxTrail) {
		r.fail("trail must be a number of bytes up to %d, not %q", maxTrail, clip(text))
	}
	if c.trail.bytes = r.packed(maxTrail); r.err == nil && len(c.trail.bytes) != n {
		r.fail("the trail has %d bytes, not %d as was counted", len(c.trail.bytes), n)
	}
}

// check sees that nobody changed what was written.
func (r *reader) check() {
	want := check(r.sum)
	got := r.field("check")
	if r.err == nil && got != want {
		r.fail("something above was changed or lost since it was written: the check is %q and should be %s", clip(got), want)
	}
	if r.err == nil && len(bytes.TrimSpace(r.rest)) > 0 {
		r.line++
		r.fail("something follows after the check, which ends a capsule")
	}
}

// load reads the scenario. Its places are told as lines of the capsule.
func (r *reader) load(c *Capsule, at int) {
	padded := append(bytes.Repeat([]byte("\n"), at-1), c.Text...)
	if len(c.Text) > scenarios.MaxFileBytes-at {
		padded = c.Text // too large by itself or with its place; the loader says so
	}
	list, err := scenarios.Parse(r.name, padded)
	switch {
	case c.unknown != nil:
	case err != nil:
		c.unknown = err
	case len(list) != 1:
		c.unknown = fmt.Errorf("%s:%d: the scenario has %d variants; a capsule is of one", r.name, at, len(list))
	case list[0].Random != "":
		c.unknown = errors.New(r.name + ": the scenario draws its world; a capsule holds a world that was drawn")
	default:
		c.Scenario = list[0]
	}
}

func clip(s string) string {
	if len(s) > 48 {
		s = strings.ToValidUTF8(s[:48], "") + "..."
	}
	return s
}

func didYouMean(got string, valid []string) string {
	if near, ok := scenarios.Nearest(got, valid); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}
