package realgpu

import (
	"sync"
	"time"

	"vigil/core"
)

// Why this file: scenarios B2, B6 and B13 need a close that hangs, a copy that
// is slow and a device that is small, in real processes. The hooks exist only
// where a backend's Options have them, which a program does on a test's flag and
// says loudly; everywhere else the pointer is nil and costs one comparison.

// Operation is what a rule strikes.
type Operation uint8

// The operations.
const (
	Open Operation = iota
	Close
	Copy
)

var operationNames = [...]string{"open", "close", "copy"}

// String is the operation's name in reports.
func (o Operation) String() string {
	if int(o) < len(operationNames) {
		return operationNames[o]
	}
	return "unknown"
}

// Rule is trouble for operations that begin while it stands (faults slow-,
// hang- and fail-open, -close and -copy).
type Rule struct {
	Operation Operation
	Owner     core.InstanceID // whose operations; 0 is everybody's
	Delay     time.Duration   // added before the operation
	Hang      bool            // the operation never ends; its memory stays charged
	Fail      core.Failure    // the operation ends with this, and has done nothing
	Count     int             // how many operations it strikes; 0 is every one
}

// MaxRules bounds the rules that stand at once.
const MaxRules = 1024

// Hooks make trouble on purpose. Safe for concurrent use.
type Hooks struct {
	mu    sync.Mutex
	rules []standing
	last  int
	room  uint64
}

type standing struct {
	Rule
	number int
	struck int
}

// Add makes a rule stand and returns its number, 0 where MaxRules stand.
func (h *Hooks) Add(r Rule) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.rules) >= MaxRules {
		return 0
	}
	h.last++
	h.rules = append(h.rules, standing{Rule: r, number: h.last})
	return h.last
}

// Remove ends a rule and returns how many operations it struck, so that a
// declared fault that never took place can be told. What hangs already hangs
// on.
func (h *Hooks) Remove(number int) (struck int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.rules {
		if h.rules[i].number == number {
			struck = h.rules[i].struck
			h.rules = append(h.rules[:i], h.rules[i+1:]...)
			break
		}
	}
	return struck
}

// SetRoom bounds the bytes that may be mapped at once; an open past it ends
// with core.FailOutOfMemory. 0 is boundless.
func (h *Hooks) SetRoom(bytes uint64) {
	h.mu.Lock()
	h.room = bytes
	h.mu.Unlock()
}

// RoomFor reports whether so many more bytes may be mapped. A nil Hooks has
// room for everything.
func (h *Hooks) RoomFor(charged, more uint64) bool {
	if h == nil {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.room == 0 || charged+more <= h.room
}

// Strike says what the standing rules do to one operation, all of them
// together as in the simulator, and counts it. A nil Hooks does nothing.
func (h *Hooks) Strike(what Operation, owner core.InstanceID) (r Rule) {
	if h == nil {
		return r
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.rules {
		s := &h.rules[i]
		if s.Operation != what || s.Owner != 0 && s.Owner != owner || s.Count > 0 && s.struck >= s.Count {
			continue
		}
		s.struck++
		r.Delay += s.Delay
		r.Hang = r.Hang || s.Hang
		if s.Fail != core.NoFailure {
			r.Fail = s.Fail
		}
	}
	return r
}

// Suffer carries trouble out. Stuck: the operation has no end but that of stop.
func (r *Rule) Suffer(stop <-chan struct{}) (fail core.Failure, stuck bool) {
	if r.Hang {
		<-stop
		return core.NoFailure, true
	}
	if r.Delay > 0 {
		wait := time.NewTimer(r.Delay)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-stop:
		}
	}
	return r.Fail, false
}

// Struck is how many operations a rule has struck so far.
func (h *Hooks) Struck(number int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.rules {
		if h.rules[i].number == number {
			return h.rules[i].struck
		}
	}
	return 0
}
