package sim

import (
	"cmp"
	"math/bits"
	order "slices"

	"vigil/core"
)

// calendar is a ring of slices of time. It exists beside the heap because what
// is far off needs no order yet: putting an event into its slice costs the same
// for 16 workers and for 100,000, and so does sorting a slice that comes up,
// since its events are spread over buckets of time first.
//
// The events of a slice lie in chunks of one pool. A chunk that was emptied is
// the next to be filled, so that the queue writes where it has just read.
type calendar struct {
	shift   int     // a slice is 2^shift ns
	slots   []slot  // a power of two long
	waiting int     // events in all slots
	chunk   int     // log2 of a chunk's length
	pool    []event // chunk after chunk
	next    []int32 // of each chunk: the chunk behind it in its slice or in the free list, plus one
	free    int32   // chunk+1
	counts  [1 << maxBucketBits]int32
}

// slot is one slice: a chain of chunks, all but the last of them full.
type slot struct {
	head, tail int32 // chunk+1
	count      int32 // of its events
}

const (
	// Slices of 134 ms for 69 s ahead. In a crowd they are 17 ms long, so that
	// an engine's next step lies ahead of the present slice too.
	wideShift, wideSlots, wideChunk    = 27, 1 << 9, 3
	denseShift, denseSlots, denseChunk = 24, 1 << 12, 5

	// fewEvents are sorted by insertion alone.
	fewEvents     = 24
	maxBucketBits = 12
	// maxBucket is how many events of a bucket insertion may sort: where more
	// crowd together, the whole slice is sorted in the ordinary way, or 100,000
	// workers that start within a millisecond would cost their square.
	maxBucket = 64
)

func (c *calendar) reset(crowded bool) {
	slots := wideSlots
	c.shift, c.chunk = wideShift, wideChunk
	if crowded {
		c.shift, slots, c.chunk = denseShift, denseSlots, denseChunk
	}
	if c.waiting > 0 || len(c.slots) != slots {
		c.slots = resized(c.slots, slots)
	}
	c.waiting, c.free = 0, 0
	c.pool, c.next = c.pool[:0], c.next[:0]
}

func (c *calendar) width() core.Time { return 1 << c.shift }

// span is how far ahead of its beginning the calendar reaches.
func (c *calendar) span() core.Time { return core.Time(len(c.slots)) << c.shift }

func (c *calendar) slotOf(at core.Time) *slot { return &c.slots[int(at>>c.shift)&(len(c.slots)-1)] }

// put adds an event, which must lie within the span.
func (c *calendar) put(e event) {
	s := c.slotOf(e.at)
	in := int(s.count) & (1<<c.chunk - 1)
	if in == 0 {
		c.grow(s)
	}
	c.pool[int(s.tail-1)<<c.chunk+in] = e
	s.count++
	c.waiting++
}

// grow gives a slice one more chunk.
func (c *calendar) grow(s *slot) {
	at := c.free
	if at != 0 {
		c.free = c.next[at-1]
		c.next[at-1] = 0
	} else {
		c.next = append(c.next, 0)
		at = int32(len(c.next))
		c.pool = order.Grow(c.pool, 1<<c.chunk)[:int(at)<<c.chunk]
	}
	if s.tail != 0 {
		c.next[s.tail-1] = at
	} else {
		s.head = at
	}
	s.tail = at
}

// take empties the slice that begins at from and appends its events to run,
// sorted.
func (c *calendar) take(from core.Time, run []event) []event {
	s := c.slotOf(from)
	n, have := int(s.count), len(run)
	if n == 0 {
		return run
	}
	if n <= fewEvents {
		for chunk, left := s.head, n; chunk != 0; chunk = c.next[chunk-1] {
			events := c.events(chunk, left)
			run = append(run, events...)
			left -= len(events)
		}
		insertionSort(run[have:])
	} else {
		run = order.Grow(run, n)[:have+n]
		c.spread(s, run[have:])
	}
	c.next[s.tail-1] = c.free
	c.free = s.head
	c.waiting -= n
	*s = slot{}
	return run
}

// events returns those of a chunk, of which at most left are in use.
func (c *calendar) events(chunk int32, left int) []event {
	from := int(chunk-1) << c.chunk
	return c.pool[from : from+min(left, 1<<c.chunk)]
}

// spread sorts a slice of many events.
func (c *calendar) spread(s *slot, into []event) {
	n := len(into)
	width := min(bits.Len(uint(n)), maxBucketBits)
	shift, mask := c.shift-width, c.width()-1
	counts := c.counts[:1<<width]
	clear(counts)
	left := n
	for chunk := s.head; chunk != 0; chunk = c.next[chunk-1] {
		events := c.events(chunk, left)
		for i := range events {
			counts[int(events[i].at&mask)>>shift]++
		}
		left -= len(events)
	}
	at, most := int32(0), int32(0)
	for i, count := range counts {
		counts[i] = at
		at += count
		most = max(most, count)
	}
	left = n
	for chunk := s.head; chunk != 0; chunk = c.next[chunk-1] {
		events := c.events(chunk, left)
		for i := range events {
			b := int(events[i].at&mask) >> shift
			into[counts[b]] = events[i]
			counts[b]++
		}
		left -= len(events)
	}
	if most <= maxBucket {
		insertionSort(into)
		return
	}
	order.SortFunc(into, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
	})
}

// insertionSort costs what the events are away from their places.
func insertionSort(events []event) {
	for i := 1; i < len(events); i++ {
		if !events[i].before(&events[i-1]) {
			continue
		}
		e, j := events[i], i
		for ; j > 0 && e.before(&events[j-1]); j-- {
			events[j] = events[j-1]
		}
		events[j] = e
	}
}
