package zmq

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"vigil/core"
)

// Why this file: a sink that remembers, and the proof that a test left nothing.

// heard is one message or closing, in the order in which it came.
type heard struct {
	peer    core.Peer
	arrived core.Time
	frames  core.Frames
	closed  bool
	origin  Origin
}

// ear is a sink that remembers what came. Do, where set, runs on the socket's
// goroutine after each message.
type ear struct {
	mu     sync.Mutex
	all    []heard
	origin map[core.Peer]Origin
	do     func(core.Peer, *core.Frames)
}

func (e *ear) Opened(p core.Peer, from Origin) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.origin == nil {
		e.origin = map[core.Peer]Origin{}
	}
	e.origin[p] = from
}

func (e *ear) Message(p core.Peer, at core.Time, f *core.Frames) {
	h := heard{peer: p, arrived: at}
	h.frames.CopyFrom(f)
	e.mu.Lock()
	h.origin = e.origin[p]
	e.all = append(e.all, h)
	e.mu.Unlock()
	if e.do != nil {
		e.do(p, f)
	}
}

func (e *ear) Closed(p core.Peer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, heard{peer: p, closed: true})
}

// wait returns everything once there are n of it.
func (e *ear) wait(t *testing.T, n int) []heard {
	t.Helper()
	eventually(t, fmt.Sprintf("%d messages and closings", n), func() bool { return e.count() >= n })
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]heard(nil), e.all...)
}

func (e *ear) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.all)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(15 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("not within 15 s: %s", what)
		}
	}
}

func message(parts ...string) *core.Frames {
	f := new(core.Frames)
	for _, p := range parts {
		f.Append([]byte(p))
	}
	return f
}

func text(f *core.Frames) string {
	s := ""
	for i := range f.Len() {
		s += "|" + string(f.Part(i))
	}
	return s
}

const loopback = "tcp://127.0.0.1:*"

// listen starts a server for the length of the test.
func listen(t *testing.T, o Options, s Sink) *Router {
	t.Helper()
	leavesNothing(t)
	if len(o.Bind) == 0 {
		o.Bind = []string{loopback}
	}
	r, err := Listen(o, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// dial starts a client for the length of the test.
func dial(t *testing.T, o Options, to string, s Sink) *Dealer {
	t.Helper()
	leavesNothing(t)
	o.Connect = to
	d, err := Dial(o, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// leavesNothing proves at the test's end that no goroutine, descriptor or
// thread of libzmq is left. It is called before what it checks is made; the
// first call of a test counts.
func leavesNothing(t *testing.T) {
	t.Helper()
	if _, again := checked.LoadOrStore(t, true); again {
		return
	}
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	t.Cleanup(func() {
		complaint := ""
		for range 200 {
			complaint = ""
			if n := descriptors(t); n > files {
				complaint = fmt.Sprintf("%d descriptors before, %d after", files, n)
			}
			if n := runtime.NumGoroutine(); n > goroutines {
				complaint += fmt.Sprintf(" %d goroutines before, %d after", goroutines, n)
			}
			if complaint == "" {
				return
			}
			runtime.GC() // net keeps pipes for splicing until then
			time.Sleep(10 * time.Millisecond)
		}
		t.Error(complaint)
	})
}

var checked sync.Map // by *testing.T

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
