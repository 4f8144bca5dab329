package loop

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"vigil/core"
)

// The event log: one JSON object per line. The first line says what the log is
// of; every other line is a record, but for one that says how many are missing
// at its place. The names of the fields and of the kinds do not change; new
// ones may come, so a reader ignores a field that it does not know.
//
//	{"vigil":"events","version":1,"started_unix_ns":...,"reap_ns":...,"grace_ns":...,"design":"...","time_scale":1}
//	{"at_ns":1204,"kind":"stamped","actor":1,"context":"server-driven","instance":"81985529216486895","incarnation":3,"a":1204,"b":2}
//	{"at_ns":1300,"lost":12}
//
// at_ns counts from the start. An instance is a string because it has 63 bits;
// a and b have 64, and mean what core.RecordKind says of the kind. Fields that
// are zero are left out.

// EventLogRecords bounds the records that wait to be written; those that do not
// fit are counted, and their place is marked.
const EventLogRecords = 1 << 16

// MaxEventLine bounds a line that ReadEvents takes.
const MaxEventLine = 64 << 10

// EventHeader is the first line.
type EventHeader struct {
	Vigil     string `json:"vigil"` // "events"
	Version   int    `json:"version"`
	Started   int64  `json:"started_unix_ns"` // wall-clock time at which at_ns is 0
	Reap      int64  `json:"reap_ns"`
	Grace     int64  `json:"grace_ns"`
	Design    string `json:"design"` // document, hardened, or protections joined by +
	TimeScale int64  `json:"time_scale"`
}

// EventVersion is the version of the format that this program writes and reads.
const EventVersion = 1

// EventLog writes an event log. Its owner is a Server or a Worker.
type EventLog struct {
	mu      sync.Mutex
	waiting []core.Record
	lostAt  core.Time
	lost    uint64 // since the last that fitted
	allLost uint64
	header  []byte
	closed  bool
	wake    chan struct{}
	done    chan struct{}

	out io.WriteCloser
	err error // the writer's; read after done
}

// NewEventLog starts a log that is written to out, which it closes. A write
// that fails ends the log, not the server: Close returns why.
func NewEventLog(out io.WriteCloser) *EventLog {
	l := &EventLog{out: out, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go l.run()
	return l
}

// CreateEventLog starts a log in a file, which must not be there: a log is the
// story of one life.
func CreateEventLog(path string) (*EventLog, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("event log: %w; give it a file that is not there yet", err)
	}
	return NewEventLog(f), nil
}

// begin writes the first line.
func (l *EventLog) begin(reap, grace time.Duration, design string, p *pace) {
	line, err := json.Marshal(EventHeader{
		Vigil: "events", Version: EventVersion, Started: time.Now().Add(-time.Duration(int64(p.now()) / p.times)).UnixNano(),
		Reap: int64(reap), Grace: int64(grace), Design: design, TimeScale: p.times,
	})
	if err != nil {
		return // it has no field that could not be written
	}
	l.mu.Lock()
	l.header = append(line, '\n')
	l.mu.Unlock()
	l.ring()
}

// record takes a record in; it waits for nobody.
func (l *EventLog) record(r *core.Record) {
	l.mu.Lock()
	switch {
	case l.closed:
	case len(l.waiting) >= EventLogRecords || l.lost > 0 && len(l.waiting) > 0:
		// Once something is lost, the mark must come before what follows.
		l.lost++
		l.allLost++
		l.lostAt = r.At
	default:
		l.waiting = append(l.waiting, *r)
	}
	first := len(l.waiting) == 1 || l.lost == 1
	l.mu.Unlock()
	if first {
		l.ring()
	}
}

func (l *EventLog) ring() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Lost counts the records that are missing from the log.
func (l *EventLog) Lost() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.allLost
}

// Close writes what waits and closes the file. It may be called again.
func (l *EventLog) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.ring()
	<-l.done
	return l.err
}

func (l *EventLog) run() {
	defer close(l.done)
	var batch []core.Record
	var line []byte
	out := bufio.NewWriterSize(l.out, 64<<10)
	for {
		l.mu.Lock()
		batch, l.waiting = l.waiting, batch[:0]
		lost, at := l.lost, l.lostAt
		header, closed := l.header, l.closed
		l.lost, l.header = 0, nil
		l.mu.Unlock()
		if len(batch) == 0 && lost == 0 && len(header) == 0 {
			if closed {
				break
			}
			<-l.wake
			continue
		}
		if l.err != nil {
			continue // the disk is full, or the like: what comes goes nowhere
		}
		line = append(line[:0], header...)
		for i := range batch {
			line = AppendEvent(line, &batch[i])
			if len(line) > 32<<10 {
				out.Write(line)
				line = line[:0]
			}
		}
		if lost > 0 {
			line = appendLost(line, at, lost)
		}
		out.Write(line)
		l.err = out.Flush() // and the errors of the writes before it
	}
	l.err = errors.Join(l.err, l.out.Close())
}

func appendLost(b []byte, at core.Time, lost uint64) []byte {
	b = strconv.AppendInt(append(b, `{"at_ns":`...), int64(at), 10)
	b = strconv.AppendUint(append(b, `,"lost":`...), lost, 10)
	return append(b, "}\n"...)
}

// AppendEvent appends a record's line to b.
func AppendEvent(b []byte, r *core.Record) []byte {
	b = strconv.AppendInt(append(b, `{"at_ns":`...), int64(r.At), 10)
	b = append(append(b, `,"kind":"`...), r.Kind.String()...)
	b = strconv.AppendUint(append(b, `","actor":`...), uint64(r.Actor), 10)
	if r.Context != core.NoContext {
		b = append(append(append(b, `,"context":"`...), r.Context.String()...), '"')
	}
	if r.Instance != 0 {
		b = append(strconv.AppendUint(append(b, `,"instance":"`...), uint64(r.Instance), 10), '"')
	}
	if r.Incarnation != 0 {
		b = strconv.AppendUint(append(b, `,"incarnation":`...), uint64(r.Incarnation), 10)
	}
	if r.A != 0 {
		b = strconv.AppendUint(append(b, `,"a":`...), r.A, 10)
	}
	if r.B != 0 {
		b = strconv.AppendUint(append(b, `,"b":`...), r.B, 10)
	}
	if r.Failure != core.NoFailure {
		b = append(append(append(b, `,"failure":"`...), r.Failure.String()...), '"')
	}
	if r.Flag {
		b = append(b, `,"flag":true`...)
	}
	return append(b, "}\n"...)
}

// Event is one line of an event log as it is read: a record, or a mark that
// Lost records are missing here.
type Event struct {
	Record core.Record
	Lost   uint64
}

type eventLine struct {
	At          int64  `json:"at_ns"`
	Kind        string `json:"kind"`
	Actor       uint32 `json:"actor"`
	Context     string `json:"context"`
	Instance    string `json:"instance"`
	Incarnation uint64 `json:"incarnation"`
	A           uint64 `json:"a"`
	B           uint64 `json:"b"`
	Failure     string `json:"failure"`
	Flag        bool   `json:"flag"`
	Lost        uint64 `json:"lost"`
}

// ReadEvents reads a log from its first line on and gives each event to visit,
// until visit fails. A last line without its end, which a kill leaves, is no
// error: torn is true. Any other line that is not an event is an error that
// names it.
func ReadEvents(from io.Reader, header func(EventHeader) error, visit func(*Event) error) (torn bool, err error) {
	in := bufio.NewReaderSize(from, MaxEventLine)
	for number := 1; ; number++ {
		line, err := in.ReadSlice('\n')
		switch {
		case err == io.EOF && len(line) == 0 && number > 1:
			return false, nil
		case err == io.EOF:
			if number == 1 {
				return false, errors.New("event log: it has no whole line; is it an event log of a vigil server?")
			}
			return true, nil
		case errors.Is(err, bufio.ErrBufferFull):
			return false, fmt.Errorf("event log: line %d has more than %d bytes; is it an event log of a vigil server?", number, MaxEventLine)
		case err != nil:
			return false, fmt.Errorf("event log: line %d: %w", number, err)
		}
		if number == 1 {
			h, err := ParseEventHeader(line)
			if err != nil {
				return false, err
			}
			if header != nil {
				if err := header(h); err != nil {
					return false, err
				}
			}
			continue
		}
		var e Event
		if err := ParseEvent(line, &e); err != nil {
			return false, fmt.Errorf("event log: line %d: %w", number, err)
		}
		if err := visit(&e); err != nil {
			return false, err
		}
	}
}

// ParseEventHeader reads the first line of a log.
func ParseEventHeader(line []byte) (h EventHeader, err error) {
	if err := json.Unmarshal(line, &h); err != nil || h.Vigil != "events" {
		return h, errors.New("event log: its first line is not that of an event log; give the file that server run --event-log wrote")
	}
	if h.Version != EventVersion {
		return h, fmt.Errorf("event log: it is of version %d and this program reads version %d", h.Version, EventVersion)
	}
	return h, nil
}

// ParseEvent reads any other line of a log, for who follows one that is still
// being written.
func ParseEvent(line []byte, e *Event) error {
	var j eventLine
	if err := json.Unmarshal(line, &j); err != nil {
		return err
	}
	r := &e.Record
	r.At = core.Time(j.At)
	if e.Lost = j.Lost; j.Lost > 0 {
		return nil
	}
	kind, ok := core.RecordKindNamed(j.Kind)
	if !ok {
		return fmt.Errorf("%q is no kind of record that this program knows", j.Kind)
	}
	*r = core.Record{
		At: r.At, Incarnation: core.Incarnation(j.Incarnation), A: j.A, B: j.B,
		Actor: core.Actor(j.Actor), Kind: kind, Flag: j.Flag,
	}
	if r.Context, ok = contextNames[j.Context]; !ok {
		return fmt.Errorf("%q is no kind of context", j.Context)
	}
	if r.Failure, ok = failureNames[j.Failure]; !ok {
		return fmt.Errorf("%q is no failure that this program knows", j.Failure)
	}
	if j.Instance != "" {
		id, err := strconv.ParseUint(j.Instance, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is no instance", j.Instance)
		}
		r.Instance = core.InstanceID(id)
	}
	return nil
}

// contextNames and failureNames turn the words of a line back; the empty word
// is what was left out.
var contextNames, failureNames = namesOf(core.NoContext, core.ContextKind.String), namesOf(core.NoFailure, core.Failure.String)

func namesOf[E ~uint8](none E, name func(E) string) map[string]E {
	names := map[string]E{"": none}
	for e := none; name(e) != "unknown"; e++ {
		names[name(e)] = e
	}
	return names
}
