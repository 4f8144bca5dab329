package loop

import (
	"context"
	"fmt"
	"strings"
	"time"

	"vigil/core"
	"vigil/core/server"
)

// The shutdown: new work is refused; what is under way ends, within a bound;
// then the core stops its reaper, releases every context, one bounded wait
// each, and leaves.

type drainStage uint8

const (
	drainNot  drainStage = iota
	drainWork            // new work is refused, what is under way goes on
	drainCore            // the core has been told to stop
)

// abortWait is how long an owner that was told to end at once may take.
const abortWait = 2 * time.Second

// maxHeldNamed bounds the contexts that an Ending names.
const maxHeldNamed = 100

// Ending is how a server ended.
type Ending struct {
	Code core.ExitCode
	// What was still held: the first maxHeldNamed of them, and all together.
	Held      []Held
	Contexts  int
	HeldBytes uint64
}

// Held is a context that a server had not released when it ended.
type Held struct {
	Instance core.InstanceID
	Mapping  core.Mapping
	Bytes    uint64
	State    string // serving, being opened, releasing, waiting for release
}

// String says what was held, for a log line.
func (e Ending) String() string {
	if e.Contexts == 0 {
		return "nothing was held"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d contexts with %d bytes were still held:", e.Contexts, e.HeldBytes)
	for _, h := range e.Held {
		fmt.Fprintf(&b, " instance %d (%s, mapping %d, %d bytes)", h.Instance, h.State, h.Mapping, h.Bytes)
	}
	if more := e.Contexts - len(e.Held); more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// Shutdown ends the server in order and returns how it ended. When ctx ends
// first, the server ends at once, and the error is the context's. A server
// that was not started has nothing to end.
func (s *Server) Shutdown(ctx context.Context) (Ending, error) {
	if !s.started.Swap(true) {
		s.closeLogs(false)
		close(s.done)
		return Ending{}, nil
	}
	s.stopping.Store(true)
	s.owner.box.put(item{run: s.drain})
	select {
	case <-s.done:
		return s.ending, nil
	case <-ctx.Done():
	}
	s.Abort()
	wait := time.NewTimer(abortWait)
	defer wait.Stop()
	select {
	case <-s.done:
		return s.ending, ctx.Err()
	case <-wait.C:
		return Ending{Code: core.ExitBounded}, fmt.Errorf("loop: the owner has not ended in %s; something that it called does not return: %w", abortWait, ctx.Err())
	}
}

// Abort ends the server at once; Done says when it has. What it held is left
// to the operating system.
func (s *Server) Abort() {
	s.stopping.Store(true)
	s.owner.box.put(item{run: func() {
		s.ending.Code = core.ExitBounded
		s.owner.gone = true
	}})
}

// drain begins the shutdown, on the owner's goroutine.
func (s *Server) drain() {
	if s.stage == drainNot {
		s.stage = drainWork
		s.owner.until = s.owner.now.Add(s.options.Drain)
	}
}

// settle is what the owner does between batches: it hands the recording over,
// and while the server drains it tells the core to stop once nothing is under way. Waits for a look-up
// that may come are not: it would be refused.
func (s *Server) settle() {
	if s.tape != nil {
		s.tape.flush()
	}
	if s.stage != drainWork {
		return
	}
	l := s.machine.Load()
	busy := l.MainHeld || l.Inbox > 0 || l.LanesBusy > 0 || l.LanesWait > 0 || s.decoders.queued.Load() > 0
	if busy && s.owner.now < s.owner.until {
		return
	}
	s.stage, s.owner.until = drainCore, core.Never
	s.owner.input = core.Input{Kind: core.InputStop}
	s.owner.feed()
}

// takeStock lists what is still held.
func (s *Server) takeStock() {
	e := &s.ending
	add := func(id core.InstanceID, mapping core.Mapping, bytes uint64, state string) {
		e.Contexts++
		e.HeldBytes += bytes
		if len(e.Held) < maxHeldNamed {
			e.Held = append(e.Held, Held{id, mapping, bytes, state})
		}
	}
	s.machine.Releases(func(v server.ReleaseView) bool {
		state := "waiting for release"
		if v.Closing {
			state = "releasing"
		}
		add(v.Instance, v.Mapping, v.Bytes, state)
		return true
	})
	s.machine.Contexts(core.ServerDriven, func(v server.ContextView) bool {
		add(v.Instance, v.Mapping, v.Bytes, "serving")
		return true
	})
	s.machine.Enrolling(func(id core.InstanceID, mapping core.Mapping) {
		add(id, mapping, 0, "being opened")
	})
	lost, bytes := s.machine.Lost()
	e.Contexts += lost
	e.HeldBytes += bytes
}
