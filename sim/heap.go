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

// heap is the queue of what is going to happen, in order of time. What comes
// soon lies in a small 4-ary heap; what comes later is only sorted into slices
// of time, and what comes much later into a heap of its own. So the cost of an
// event does not grow with all the timers that 100,000 workers have pending:
// most of them lie untouched in their slice until it comes up.
type heap struct {
	soon    quad
	later   [slices][]event // a ring of slices of time, from horizon on
	much    quad            // from horizon + slices on
	horizon core.Time       // where the present slice ends: what is before it is in soon
	waiting int             // events in later
	seq     uint64
}

const (
	sliceShift = 27 // a slice is 2^27 ns, about 134 ms
	sliceWidth = core.Time(1) << sliceShift
	slices     = 512 // about 69 s ahead
)

func (h *heap) reset() {
	h.soon, h.much = h.soon[:0], h.much[:0]
	if h.waiting > 0 {
		for i := range h.later {
			h.later[i] = h.later[i][:0]
		}
	}
	h.horizon, h.waiting, h.seq = sliceWidth, 0, 0
}

func (h *heap) push(e event) {
	e.seq = h.seq
	h.seq++
	switch {
	case e.at < h.horizon:
		h.soon.insert(e)
	case e.at < h.horizon+slices*sliceWidth:
		h.put(e)
	default:
		h.much.insert(e)
	}
}

func (h *heap) put(e event) {
	at := &h.later[int(e.at>>sliceShift)%slices]
	*at = append(*at, e)
	h.waiting++
}

// peek returns the time of the next event; false where there is none.
func (h *heap) peek() (core.Time, bool) {
	for len(h.soon) == 0 {
		if h.waiting == 0 {
			if len(h.much) == 0 {
				return 0, false
			}
			// Nothing in between: go straight to where the next one is.
			h.horizon = h.much[0].at >> sliceShift << sliceShift
		}
		h.turn()
	}
	return h.soon[0].at, true
}

// turn makes the next slice of time the present one.
func (h *heap) turn() {
	at := &h.later[int(h.horizon>>sliceShift)%slices]
	h.horizon += sliceWidth
	h.waiting -= len(*at)
	for _, e := range *at {
		h.soon.insert(e)
	}
	*at = (*at)[:0]
	for len(h.much) > 0 && h.much[0].at < h.horizon+slices*sliceWidth {
		if e := h.much.pop(); e.at < h.horizon {
			h.soon.insert(e)
		} else {
			h.put(e)
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
	top := h.soon.pop()
	if len(h.soon) == 0 || h.soon[0].at != top.at {
		return top
	}
	var ties [maxTies]event
	ties[0] = top
	n := 1
	for n < maxTies && len(h.soon) > 0 && h.soon[0].at == top.at {
		ties[n] = h.soon.pop()
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
