package spacetime

import "vigil/core"

// A bar is one context in the server, from the opening of its memory to the
// return of its bytes, with the times at which it was stamped: its lease.

type bar struct {
	Lane        int32     `json:"lane"`
	Kind        string    `json:"kind"`
	Incarnation uint64    `json:"incarnation"`
	Mapping     uint64    `json:"mapping,omitempty"`
	Bytes       uint64    `json:"bytes"`
	Open        core.Time `json:"open"` // it begins here
	// The moments below are -1 where they never came.
	Serving core.Time `json:"serving"`
	Latched core.Time `json:"latched"` // from here on its window is the reap timeout
	Decided core.Time `json:"decided"` // the reaper found it silent for too long
	Removed core.Time `json:"removed"` // it serves no more
	Closing core.Time `json:"closing"`
	Hung    core.Time `json:"hung"`
	Stuck   core.Time `json:"stuck"`
	Closed  core.Time `json:"closed"` // its bytes are back
	Why     string    `json:"why,omitempty"`
	Failed  bool      `json:"failed,omitempty"` // it never opened, or its close failed
	Rope    bool      `json:"rope,omitempty"`

	stamps []core.Time
}

type barKey struct {
	incarnation core.Incarnation
	rope        bool
}

func keyOf(r *core.Record) barKey { return barKey{r.Incarnation, r.Context == core.RopeState} }

type contexts struct {
	bars   []bar
	live   map[barKey]int
	byMap  map[uint64]int // by mapping
	stamps int
}

// maxBars bounds the bars of one diagram.
const maxBars = 100_000

var removedBy = []string{"unregistered", "reaped", "replaced", "the server stops", "proof of its process's death"}

func newBar(r *core.Record, lane int32) bar {
	return bar{Lane: lane, Kind: r.Context.String(), Incarnation: uint64(r.Incarnation), Rope: r.Context == core.RopeState,
		Open: r.At, Serving: -1, Latched: -1, Decided: -1, Removed: -1, Closing: -1, Hung: -1, Stuck: -1, Closed: -1}
}

// bar finds or begins the bar of a record's context; nil where it has none.
func (d *Diagram) bar(r *core.Record, lane int32, begin bool) *bar {
	c := &d.contexts
	if c.live == nil {
		c.live, c.byMap = map[barKey]int{}, map[uint64]int{}
	}
	if r.Incarnation == 0 || lane <= 0 {
		return nil
	}
	key := keyOf(r)
	if i, known := c.live[key]; known {
		return &c.bars[i]
	}
	if !begin || len(c.bars) >= maxBars {
		return nil
	}
	c.live[key] = len(c.bars)
	c.bars = append(c.bars, newBar(r, lane))
	return &c.bars[len(c.bars)-1]
}

// mapped finds the bar of a mapping; nil where there is none.
func (d *Diagram) mapped(mapping uint64) *bar {
	if i, known := d.contexts.byMap[mapping]; known && mapping != 0 {
		return &d.contexts.bars[i]
	}
	return nil
}

// hold keeps the bars.
func (d *Diagram) hold(r *core.Record, lane int32) {
	c := &d.contexts
	if b, at := d.bar(r, lane, false), r.At; b != nil {
		switch r.Kind {
		case core.Latched:
			b.Latched = at
		case core.Stamped:
			b.stamps = append(b.stamps, d.stampTime(r))
			c.stamps++
		case core.ReapDecided:
			b.Decided = at
		case core.ContextRemoved:
			b.Removed = at
			if r.A < uint64(len(removedBy)) {
				b.Why = removedBy[r.A]
			}
			if b.Mapping == 0 {
				b.Closed = at // there is nothing to close
			}
		}
	}
	switch r.Kind {
	case core.OpenBegan:
		if b := d.bar(r, lane, true); b != nil {
			b.Mapping = r.A
			c.byMap[r.A] = c.live[keyOf(r)]
		}
	case core.OpenEnded:
		if b := d.mapped(r.A); b != nil {
			if b.Bytes = r.B; r.Failure != core.NoFailure {
				b.Failed, b.Closed = true, r.At
			}
		}
	case core.ContextInserted:
		if b := d.bar(r, lane, true); b != nil {
			b.Serving, b.Kind = r.At, r.Context.String()
			b.Bytes = max(b.Bytes, r.B)
			b.stamps = append(b.stamps, r.At)
		}
	case core.RopeAdded:
		named := *r
		named.Context = core.RopeState
		if b := d.bar(&named, lane, true); b != nil {
			b.Serving = r.At
		}
	case core.RopeDropped:
		named := *r
		named.Context = core.RopeState
		if b := d.bar(&named, lane, false); b != nil {
			b.Removed, b.Closed = r.At, r.At
		}
	case core.CloseBegan, core.MappingClosing:
		if b := d.mapped(r.A); b != nil && b.Closing < 0 {
			b.Closing = r.At
		}
	case core.CloseEnded:
		if b := d.mapped(r.A); b != nil {
			if r.Failure != core.NoFailure {
				b.Failed = true
				return
			}
			b.Closed = r.At
		}
	case core.MappingClosed:
		if b := d.mapped(r.A); b != nil {
			b.Closed = r.At
		}
	case core.MappingHung:
		if b := d.mapped(r.A); b != nil {
			b.Hung = r.At
		}
	case core.ReleaseStuck:
		if b := d.mapped(r.A); b != nil {
			b.Stuck = r.At
		}
	case core.ProcessKilled, core.ProcessExited:
		if lane == 0 { // the server's own process: its mappings went with it
			for i := range c.bars {
				if c.bars[i].Closed < 0 {
					c.bars[i].Closed, c.bars[i].Why = r.At, "the server's process ended"
				}
			}
			clear(c.live)
			clear(c.byMap)
		}
	}
}

// stampTime is a stamp in the world's time. The record has it on the server's
// clock, which may have stood still; a stamp may be older than its record,
// where the request had waited. The smallest distance that was seen is the
// clock's.
func (d *Diagram) stampTime(r *core.Record) core.Time {
	off := r.At - core.Time(r.A)
	d.serverOff = min(d.serverOff, off)
	return min(core.Time(r.A)+d.serverOff, r.At)
}
