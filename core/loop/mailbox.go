package loop

import (
	"sync"

	"vigil/core"
)

// MailboxMessages bounds the messages that wait for the owner; whoever brings
// one more waits until the owner has taken what is there. The ends of memory
// operations and questions come on top: the core bounds the former, and a
// question waits for its answer.
const MailboxMessages = 8192

// item is one thing for the owner: a message, an input that is all in its
// fields, or something to run.
type item struct {
	message  *message
	run      func()
	peer     core.Peer
	op       core.Op
	bytes    uint64
	instance core.InstanceID
	kind     core.InputKind
	failure  core.Failure
}

// mailbox hands items over a batch at a time: one lock and no wake-up per item
// while the owner is busy.
type mailbox struct {
	mu       sync.Mutex
	room     sync.Cond // for those who bring messages
	items    []item
	messages int
	asleep   bool // the owner waits for wake
	closed   bool
	wake     chan struct{}
}

func (b *mailbox) init() {
	b.room.L = &b.mu
	b.wake = make(chan struct{}, 1)
}

// message puts a message in, waiting for room; false once the owner is gone.
func (b *mailbox) message(m *message) bool {
	b.mu.Lock()
	for b.messages >= MailboxMessages && !b.closed {
		b.room.Wait()
	}
	if b.closed {
		b.mu.Unlock()
		return false
	}
	b.messages++
	b.items = append(b.items, item{message: m})
	b.ring()
	return true
}

// put puts anything else in; false once the owner is gone.
func (b *mailbox) put(i item) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	b.items = append(b.items, i)
	b.ring()
	return true
}

// ring unlocks and wakes the owner if it sleeps.
func (b *mailbox) ring() {
	asleep := b.asleep
	b.asleep = false
	b.mu.Unlock()
	if asleep {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
}

// take swaps the items for an empty list. Where there is nothing and sleep is
// set, the next item will ring.
func (b *mailbox) take(empty []item, sleep bool) []item {
	b.mu.Lock()
	if len(b.items) == 0 {
		b.asleep = sleep
		b.mu.Unlock()
		return empty
	}
	full := b.messages >= MailboxMessages
	items := b.items
	b.items, b.messages, b.asleep = empty, 0, false
	b.mu.Unlock()
	if full {
		b.room.Broadcast()
	}
	return items
}

// close refuses everything from now on and returns what nobody took.
func (b *mailbox) close() []item {
	b.mu.Lock()
	left := b.items
	b.items, b.closed = nil, true
	b.mu.Unlock()
	b.room.Broadcast()
	return left
}

func (b *mailbox) depth() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items)
}
