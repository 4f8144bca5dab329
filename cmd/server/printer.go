package main

import (
	"encoding/json"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// Why this file: what a worker says, a JSON object a line. Names do not
// change; new ones may come. Ids are text, because they have 63 bits.

type line struct {
	At       string `json:"at"`
	Event    string `json:"event"`
	Instance string `json:"instance,omitempty"`

	// started
	PID         int     `json:"pid,omitempty"`
	Connect     string  `json:"connect,omitempty"`
	Mode        string  `json:"mode,omitempty"`
	Model       string  `json:"model,omitempty"`
	Rank        *int    `json:"rank,omitempty"`
	World       int     `json:"world,omitempty"`
	ChunkTokens int     `json:"chunk_tokens,omitempty"`
	Segment     string  `json:"segment,omitempty"` // or the device
	Backend     string  `json:"backend,omitempty"`
	Design      string  `json:"design,omitempty"`
	TimeScale   int     `json:"time_scale,omitempty"`
	Took        float64 `json:"took_ms,omitempty"`

	// stored, retrieved, missed, failed, dropped, wrong
	Request   uint64 `json:"request,omitempty"`
	Operation string `json:"operation,omitempty"`
	Prompt    *int   `json:"prompt,omitempty"`
	Blocks    int    `json:"blocks,omitempty"`
	Bytes     uint64 `json:"bytes,omitempty"`
	Verified  bool   `json:"verified,omitempty"`
	Failure   string `json:"failure,omitempty"`
	Block     *int   `json:"block,omitempty"`
	Layer     *int   `json:"layer,omitempty"`
	Byte      *int   `json:"byte,omitempty"`
	Text      string `json:"text,omitempty"`

	Totals *totals  `json:"totals,omitempty"` // stopped
	Load   *figures `json:"load,omitempty"`   // load
}

type totals struct {
	Stored    uint64 `json:"stored"`
	Retrieved uint64 `json:"retrieved"`
	Missed    uint64 `json:"missed"`
	Failed    uint64 `json:"failed"`
	Dropped   uint64 `json:"dropped"`
	Wrong     uint64 `json:"wrong"`
	Bytes     uint64 `json:"bytes"` // stored and retrieved
}

// printerLines bounds the lines that wait for a slow reader; more are left out
// and counted, for a worker must not stop to ping because nobody reads.
const printerLines = 1 << 14

type printer struct {
	lines chan line
	lost  atomic.Uint64
	done  chan struct{}
}

func newPrinter(w io.Writer) *printer {
	p := &printer{lines: make(chan line, printerLines), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		for l := range p.lines {
			if n := p.lost.Swap(0); n > 0 {
				e.Encode(line{At: now(), Event: "lines-lost", Blocks: int(n)})
			}
			e.Encode(l)
		}
	}()
	return p
}

func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") }

func (p *printer) print(l line) {
	l.At = now()
	select {
	case p.lines <- l:
	default:
		p.lost.Add(1)
	}
}

// close writes what waits; nothing may be printed after.
func (p *printer) close() {
	close(p.lines)
	select {
	case <-p.done:
	case <-time.After(time.Second): // nobody reads
	}
}

func pid() int { return os.Getpid() }

func at(n int) *int { return &n }
