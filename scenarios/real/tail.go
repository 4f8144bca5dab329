package real

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"vigil/core"
	"vigil/core/loop"
)

// tail reads an event log while it is being written. Its records come out in
// the scenario's time: the log says at which moment of the host's clock its
// own time began.
type tail struct {
	path   string
	file   *os.File
	rest   []byte
	origin core.Time // the scenario's time at which the log's is 0
	header bool
	lost   uint64
	err    error

	// adjust completes a record: whose it is.
	adjust func(*core.Record)
	// toScenario turns a reading of the host's clock into the scenario's time.
	toScenario func(unixNS int64) core.Time
}

// poll gives every record that has come since the last poll to take.
func (t *tail) poll(take func(core.Record)) {
	if t.err != nil {
		return
	}
	if t.file == nil {
		f, err := os.Open(t.path)
		if err != nil {
			return // not there yet
		}
		t.file = f
	}
	var buffer [64 << 10]byte
	for t.err == nil {
		n, err := t.file.Read(buffer[:])
		t.rest = append(t.rest, buffer[:n]...)
		t.lines(take)
		if err != nil && err != io.EOF {
			t.err = err
		}
		if n == 0 {
			return
		}
	}
}

func (t *tail) lines(take func(core.Record)) {
	b := t.rest
	for t.err == nil {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			break
		}
		line := b[:i+1]
		b = b[i+1:]
		if !t.header {
			h, err := loop.ParseEventHeader(line)
			if err != nil {
				t.err = fmt.Errorf("%s: %w", t.path, err)
				return
			}
			t.header, t.origin = true, t.toScenario(h.Started)
			continue
		}
		var e loop.Event
		if err := loop.ParseEvent(line, &e); err != nil {
			t.err = fmt.Errorf("%s: %w", t.path, err)
			return
		}
		if e.Lost > 0 {
			t.lost += e.Lost
			continue
		}
		e.Record.At += t.origin
		if t.adjust != nil {
			t.adjust(&e.Record)
		}
		take(e.Record)
	}
	t.rest = append(t.rest[:0], b...)
}

func (t *tail) close() {
	if t.file != nil {
		t.file.Close()
		t.file = nil
	}
}
