package zmq

import (
	"sync"
	"sync/atomic"

	"vigil/core"
)

// Why this file: how other goroutines hand messages to the one that owns the
// socket. Bounded in messages and bytes; the messages are pooled, so that a
// busy server allocates nothing for them.

// item is one message on its way out.
type item struct {
	peer   core.Peer
	frames *core.Frames
}

// queue is the messages handed over. The owner takes them all at once and
// gives the empties back at once, so that the lock is held shortly.
type queue struct {
	mu    sync.Mutex
	items []item         // handed over and not taken; at most most
	free  []*core.Frames // empties
	held  int            // messages handed over and not given back
	bytes int64          // theirs
	shut  bool

	most      int
	mostBytes int64

	// waiting is set while the owner waits or is about to: who hands over then
	// must wake it.
	waiting atomic.Bool
	wake    func()
}

// keepBytes is the largest empty that is kept: one big message must not hold
// its memory for ever.
const keepBytes = 64 << 10

// push hands a message over, copying it. False: there is no room, or the
// endpoint is closed.
func (q *queue) push(peer core.Peer, frames *core.Frames) bool {
	size := int64(len(frames.Bytes))
	q.mu.Lock()
	if q.shut || q.held >= q.most || q.bytes+size > q.mostBytes {
		q.mu.Unlock()
		return false
	}
	var f *core.Frames
	if n := len(q.free); n > 0 {
		f = q.free[n-1]
		q.free = q.free[:n-1]
	} else {
		f = new(core.Frames)
	}
	f.CopyFrom(frames)
	q.items = append(q.items, item{peer, f})
	q.held++
	q.bytes += size
	// Under the lock, since the owner's end closes what a wake-up writes to.
	if q.waiting.Load() && q.waiting.CompareAndSwap(true, false) {
		q.wake()
	}
	q.mu.Unlock()
	return true
}

// take swaps what was handed over for an empty list.
func (q *queue) take(empty []item) []item {
	q.mu.Lock()
	taken := q.items
	q.items = empty[:0]
	q.mu.Unlock()
	return taken
}

// done gives messages back that are sent or dropped.
func (q *queue) done(items []item) {
	q.mu.Lock()
	for i := range items {
		f := items[i].frames
		q.held--
		q.bytes -= int64(len(f.Bytes))
		if cap(f.Bytes) <= keepBytes && len(q.free) < q.most {
			f.Reset()
			q.free = append(q.free, f)
		}
		items[i].frames = nil
	}
	q.mu.Unlock()
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) == 0
}

// close refuses what comes from now on, and wakes the owner the first time.
func (q *queue) close() {
	q.mu.Lock()
	if !q.shut && q.wake != nil {
		q.wake()
	}
	q.shut = true
	q.mu.Unlock()
}
