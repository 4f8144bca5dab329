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

// heap is a 4-ary heap of events: shallower than a binary one, and its
// children share a cache line or two.
type heap struct {
	events []event
	seq    uint64
}

func (h *heap) reset() {
	h.events = h.events[:0]
	h.seq = 0
}

func (h *heap) push(e event) {
	e.seq = h.seq
	h.seq++
	h.insert(e)
}

// insert keeps the event's own seq, so that an event that was taken out and
// not chosen goes back to where it stood.
func (h *heap) insert(e event) {
	h.events = append(h.events, e)
	i := len(h.events) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&h.events[parent]) {
			break
		}
		h.events[i] = h.events[parent]
		i = parent
	}
	h.events[i] = e
}

func (h *heap) pop() event {
	top := h.events[0]
	n := len(h.events) - 1
	last := h.events[n]
	h.events = h.events[:n]
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
			if h.events[c].before(&h.events[best]) {
				best = c
			}
		}
		if !h.events[best].before(&last) {
			break
		}
		h.events[i] = h.events[best]
		i = best
	}
	h.events[i] = last
	return top
}

// maxTies bounds how many simultaneous events one choice of order looks at, so
// that 100,000 workers that start at once do not cost their square.
const maxTies = 8

// next takes out the next event. Where several share its time, the tape
// decides which comes first.
func (h *heap) next(c *Choices) event {
	top := h.pop()
	if len(h.events) == 0 || h.events[0].at != top.at {
		return top
	}
	var ties [maxTies]event
	ties[0] = top
	n := 1
	for n < maxTies && len(h.events) > 0 && h.events[0].at == top.at {
		ties[n] = h.pop()
		n++
	}
	chosen := int(c.Below(ForOrder, 0, uint64(n)))
	for i := 0; i < n; i++ {
		if i != chosen {
			h.insert(ties[i])
		}
	}
	return ties[chosen]
}
