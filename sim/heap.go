package sim

import "vigil/core"

// eventKind says what an event of the heap is.
type eventKind uint8

const (
	evTimer      eventKind = iota // who: process, what: timer key
	evReach                       // who: link, what: message; it reaches the server's host
	evHandle                      // who: link, what: message; the server's process takes it in
	evReply                       // who: link, what: message; it reaches the worker's host
	evTake                        // who: link, what: message; the worker's process takes it in
	evMemory                      // what: operation; it ends
	evStep                        // what: step; it strikes
	evUndo                        // what: step; its fault ceases
	evStart                       // who: process, what: life; it starts
	evRegister                    // who: process, what: life; the engine registers its memory
	evTraffic                     // who: process, what: life; the engine submits
	evPoll                        // who: process, what: life; the engine asks get_finished
	evConnect                     // who: link, what: epoch; a connection comes up
	evPeerClosed                  // who: link, what: peer; the server's host sees it close
	evExited                      // who: link, what: peer; the server's host proves its process dead
	evFaultsOver                  // no fault acts from here on
	eventKinds
)

// event is one thing that is going to happen.
type event struct {
	at   core.Time
	seq  uint64 // order of asking: equal times keep a canonical order
	what uint64
	who  int32
	kind eventKind
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// whose is the process that takes the step: a link's far end is its worker's,
// and what is nobody's is the server's.
func (e *event) whose() int32 {
	switch e.kind {
	case evTimer, evStart, evRegister, evTraffic, evPoll:
		return e.who
	case evReach, evReply, evTake, evConnect:
		return e.who + 1
	}
	return 0
}

// heap is the queue of what is going to happen, in order of time. What is far
// is only dropped into slices of time, and what is farther still into a heap of
// its own. A slice that comes up is sorted, and what happens while it plays and
// is due within it goes to a small 4-ary heap beside it. So the cost of an
// event does not grow with all the timers that 100,000 workers have pending:
// they lie untouched until their slice comes up, and are then in one piece that
// can be looked at ahead of time.
type heap struct {
	run     []event // slices that came up, sorted; before played it has happened
	played  int     // in run
	soon    quad    // what is before horizon and came after its slice
	later   calendar
	much    quad      // from the calendar's end on
	horizon core.Time // where the last slice in run ends, and the calendar begins
	seq     uint64
	known   int         // how many events to come should lie in run, where there are as many
	fetched [stages]int // in run: what each stage of fetching ahead has done
}

// earlySlices bounds how far ahead of the present slices come up early.
const earlySlices = 4

// reset empties the queue. In a crowd it is laid out for more events.
func (h *heap) reset(crowded bool) {
	h.run, h.played, h.fetched, h.known = h.run[:0], 0, [stages]int{}, 0
	if crowded {
		h.known = foresight
	}
	h.soon, h.much = h.soon[:0], h.much[:0]
	h.later.reset(crowded)
	h.horizon, h.seq = h.later.width(), 0
}

func (h *heap) push(e event) {
	e.seq = h.seq
	h.seq++
	switch {
	case e.at < h.horizon:
		h.soon.insert(e)
	case e.at < h.horizon+h.later.span():
		h.later.put(e)
	default:
		h.much.insert(e)
	}
}

// peek returns the time of the next event; false where there is none.
func (h *heap) peek() (core.Time, bool) {
	for {
		switch {
		case h.played < len(h.run) && len(h.soon) > 0:
			return min(h.run[h.played].at, h.soon[0].at), true
		case h.played < len(h.run):
			return h.run[h.played].at, true
		case len(h.soon) > 0:
			return h.soon[0].at, true
		}
		if h.later.waiting == 0 {
			if len(h.much) == 0 {
				return 0, false
			}
			// Nothing in between: go straight to where the next one is.
			h.horizon = h.much[0].at &^ (h.later.width() - 1)
		}
		h.turn()
	}
}

// take takes out the first event, of which there must be one before horizon.
func (h *heap) take() event {
	if h.played < len(h.run) {
		if e := &h.run[h.played]; len(h.soon) == 0 || e.before(&h.soon[0]) {
			h.played++
			return *e
		}
	}
	return h.soon.pop()
}

// due reports whether an event of exactly this time, than which none is
// earlier, is next.
func (h *heap) due(at core.Time) bool {
	return h.played < len(h.run) && h.run[h.played].at == at || len(h.soon) > 0 && h.soon[0].at == at
}

// lookAhead has slices come up early while less than known events to come lie
// in run.
func (h *heap) lookAhead(now core.Time) {
	for len(h.run)-h.played < h.known && h.later.waiting > 0 && h.horizon < now+earlySlices*h.later.width() {
		h.turn()
	}
}

// turn makes the next slice of time come up.
func (h *heap) turn() {
	if h.played > 0 { // what is left is short: it moves to the front
		h.run = h.run[:copy(h.run, h.run[h.played:])]
		for i := range h.fetched {
			h.fetched[i] = max(0, h.fetched[i]-h.played)
		}
		h.played = 0
	}
	h.run = h.later.take(h.horizon, h.run)
	h.horizon += h.later.width()
	for len(h.much) > 0 && h.much[0].at < h.horizon+h.later.span() {
		if e := h.much.pop(); e.at < h.horizon {
			h.soon.insert(e)
		} else {
			h.later.put(e)
		}
	}
}

// quad is a 4-ary heap: shallower than a binary one, and its children share a
// cache line or two.
type quad []event

// insert keeps the event's own seq, so that an event that was taken out and
// not chosen goes back to where it stood.
func (q *quad) insert(e event) {
	events := append(*q, e)
	*q = events
	i := len(events) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&events[parent]) {
			break
		}
		events[i] = events[parent]
		i = parent
	}
	events[i] = e
}

func (q *quad) pop() event {
	events := *q
	top := events[0]
	n := len(events) - 1
	last := events[n]
	events = events[:n]
	*q = events
	if n == 0 {
		return top
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= n {
			break
		}
		end := min(child+4, n)
		best := child
		for c := child + 1; c < end; c++ {
			if events[c].before(&events[best]) {
				best = c
			}
		}
		if !events[best].before(&last) {
			break
		}
		events[i] = events[best]
		i = best
	}
	events[i] = last
	return top
}

// maxTies bounds how many simultaneous events one choice of order looks at, so
// that 100,000 workers that start at once do not cost their square.
const maxTies = 8

// next takes out the next event, of which peek has said that there is one.
// Where several share its time, the tape decides which comes first.
func (h *heap) next(c *Choices) event {
	top := h.take()
	if !h.due(top.at) {
		return top
	}
	return h.tied(top, c)
}

// tied lets the tape choose between top and what shares its time.
func (h *heap) tied(top event, c *Choices) event {
	var ties [maxTies]event
	ties[0] = top
	n := 1
	for n < maxTies && h.due(top.at) {
		ties[n] = h.take()
		n++
	}
	chosen := c.order(ties[:n])
	for i := 0; i < n; i++ {
		if i != chosen {
			h.soon.insert(ties[i])
		}
	}
	return ties[chosen]
}
