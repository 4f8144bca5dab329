package spacetime

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"vigil/core"
)

// readBack reads Data as data.js does: what it says must be what was written.
type readBack struct {
	object
	at          []core.Time
	on          []int64
	kind, flags []uint64
	said        []string
	messages    []message
}

func read(data []byte) (*readBack, error) {
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(data)))
	if err != nil {
		return nil, err
	}
	rest, ok := bytes.CutPrefix(raw, []byte("VST1"))
	if !ok {
		return nil, fmt.Errorf("it begins with %q", raw[:4])
	}
	next := func() uint64 {
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			panic("the columns end too early")
		}
		rest = rest[n:]
		return v
	}
	signed := func() int64 { v := next(); return int64(v>>1) ^ -int64(v&1) }
	column := func(n int) []uint64 {
		list := make([]uint64, n)
		for i := range list {
			list[i] = next()
		}
		return list
	}
	b := &readBack{}
	length := next()
	text := rest[:length]
	rest = rest[length:]
	var few struct {
		Records, Args, Messages, Scans int
		Patterns                       []string
		Arity, Stamps, Flights         []int
	}
	if err := json.Unmarshal(text, &few); err != nil {
		return nil, err
	}
	now := core.Time(0)
	for range few.Records {
		now += core.Time(next())
		b.at = append(b.at, now)
	}
	for range few.Records {
		b.on = append(b.on, int64(next())-1)
	}
	b.kind, b.flags = column(few.Records), column(few.Records)
	patterns, args := column(few.Records), column(few.Args)
	for _, p := range patterns {
		var s strings.Builder
		for _, c := range []byte(few.Patterns[p]) {
			switch c {
			case plainNumber:
				fmt.Fprint(&s, args[0])
				args = args[1:]
			case paddedNumber:
				fmt.Fprintf(&s, "%0*d", int(args[1]), args[0])
				args = args[2:]
			default:
				s.WriteByte(c)
			}
		}
		b.said = append(b.said, s.String())
	}
	n := few.Messages
	lanes, classes, fates, names := column(n), column(n), column(n), column(n)
	record := int64(0)
	for i := range n {
		record += signed()
		b.messages = append(b.messages, message{lane: int32(lanes[i]), class: uint8(classes[i]), fate: uint8(fates[i]), name: int32(names[i]) - 1, record: int32(record)})
	}
	for _, moment := range []func(*message) *core.Time{
		func(m *message) *core.Time { return &m.sent }, func(m *message) *core.Time { return &m.reached },
		func(m *message) *core.Time { return &m.handled }, func(m *message) *core.Time { return &m.ended },
	} {
		for i := range b.messages {
			m := &b.messages[i]
			v := next()
			if v == 0 {
				*moment(m) = none
				continue
			}
			v--
			*moment(m) = b.at[m.record] + core.Time(int64(v>>1)^-int64(v&1))
		}
	}
	for _, k := range few.Stamps {
		for range k {
			signed()
		}
	}
	for _, k := range few.Flights {
		column(2 * k)
	}
	column(few.Scans)
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes are left over", len(rest))
	}
	return b, nil
}

// Whatever a run's records are, the page reads what they were: their times,
// their lanes, their words to the letter, and their messages.
func TestThePageReadsWhatWasRecorded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := []string{"w1", "w2", "w3"}[:rapid.IntRange(0, 3).Draw(t, "workers")]
		d := New(Head{Name: "any"}, workers)
		d.Steps = []Step{{Label: "kill", Worker: 2}, {Label: "all", Worker: Everyone, For: 5}, {Label: "server", Worker: Server}}
		d.TypeName = func(n uint64) string { return fmt.Sprint("type ", n) }
		small := rapid.Uint64Range(0, 6)
		var said []string
		now := core.Time(0)
		for range rapid.IntRange(0, 60).Draw(t, "records") {
			now += core.Time(rapid.Int64Range(0, 1e12).Draw(t, "later"))
			r := core.Record{
				At: now, Kind: core.RecordKind(rapid.IntRange(0, int(core.RecordKinds)-1).Draw(t, "kind")),
				Actor:    core.Actor(rapid.IntRange(0, 6).Draw(t, "actor")),
				Instance: core.InstanceID(small.Draw(t, "instance")), Incarnation: core.Incarnation(small.Draw(t, "incarnation")),
				A: small.Draw(t, "a"), B: rapid.Uint64().Draw(t, "b"), Flag: rapid.Bool().Draw(t, "flag"),
				Context: core.ContextKind(rapid.IntRange(0, 3).Draw(t, "context")), Failure: core.Failure(rapid.IntRange(0, 22).Draw(t, "failure")),
			}
			words := rapid.StringMatching(`[a-z0-9 .:#]{0,40}`).Draw(t, "words")
			said = append(said, words)
			d.Add(&r, words, rapid.Bool().Draw(t, "told"), false)
		}
		d.Broke(Violation{Invariant: "ONE", At: int64(now), Actors: []string{"w1", "nobody"}})
		data, err := d.Data()
		if err != nil {
			t.Fatal(err)
		}
		back, err := read(data)
		if err != nil {
			t.Fatal(err)
		}
		for i := range said {
			if back.said[i] != said[i] || back.at[i] != d.at[i] || back.on[i] != int64(d.on[i]) || back.kind[i] != uint64(d.kinds[i]) || back.flags[i] != uint64(d.about[i]) {
				t.Fatalf("record %d: %d %d %q, want %d %d %q", i, back.at[i], back.on[i], back.said[i], d.at[i], d.on[i], said[i])
			}
		}
		for i := range d.messages.all {
			if back.messages[i] != d.messages.all[i] {
				t.Fatalf("message %d: %+v, want %+v", i, back.messages[i], d.messages.all[i])
			}
		}
		again, err := d.Data()
		if err != nil || !bytes.Equal(data, again) {
			t.Fatalf("the same diagram gives other bytes (%v)", err)
		}
	})
}

// Words that differ in their numbers share a pattern: else a long run's page
// would carry each sentence a thousand times.
func TestWordsThatDifferInNumbersShareAPattern(t *testing.T) {
	var w words
	for i := range 1000 {
		w.add(fmt.Sprintf("w%d pings (request %d) at %d.%06d s", i%8, i, i, i*7))
	}
	if len(w.patterns) > 2 { // the fraction is padded, or it is not
		t.Errorf("%d patterns for one sentence: %q", len(w.patterns), w.patterns)
	}
}

// A page is opened from a mail: whatever a scenario or a message holds must not
// become markup, nor end the block that the data is in.
func TestAPageIsNotBrokenByItsData(t *testing.T) {
	d := New(Head{ID: "X", Name: `</script><script>alert(1)</script>`, Title: `<b>"&`}, []string{"</script>"})
	d.Add(&core.Record{Actor: core.FirstWorker, Kind: core.WorkerStarted, Instance: 1}, "</script><b>", true, false)
	d.Broke(Violation{Invariant: "</script>", Message: "</script>", Actors: []string{"</script>"}})
	var b bytes.Buffer
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "alert(1)"); n != 1 || !strings.Contains(b.String(), "&lt;/script&gt;&lt;script&gt;alert(1)") {
		t.Errorf("the name is in the page %d times, and not only as text", n)
	}
	if open, shut := strings.Count(b.String(), "<script"), strings.Count(b.String(), "</script>"); open != shut {
		t.Errorf("%d scripts begin and %d end", open, shut)
	}
}
