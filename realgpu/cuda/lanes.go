package cuda

import (
	"runtime"
	"sync"
	"time"
)

// Why this file: where calls of the driver run. A call may hang, and a context
// belongs to a thread; so each lane is a thread of its own that has taken the
// device's context once. A lane whose call hangs is parked: it is not idle, so
// nobody gets it, and the next one who comes gets another.

// The lanes of one device at once. What comes when all are busy waits in a
// queue, which the core bounds (core.MaxJobs).
const (
	maxOpenLanes  = 64
	maxCloseLanes = 512 // closes that hang are what they are for
	maxCopyLanes  = 64
)

// keepIdle is how many idle lanes of a kind stay; others end with their thread.
const keepIdle = 4

// lanes are the threads of one kind of work on one device.
type lanes struct {
	device  *device
	most    int
	streams bool // each has a stream of its own

	mu      sync.Mutex
	idle    []*lane
	queue   []func(*lane, error)
	total   int
	ended   bool
	settled chan struct{} // closed when the last lane has gone after end
}

// lane is one thread with what a copy needs.
type lane struct {
	device *device
	jobs   chan func(*lane, error)
	broken error // why its thread has no context
	stream uintptr
	stages [2]stage
}

func newLanes(v *device, most int, streams bool) *lanes {
	return &lanes{device: v, most: most, streams: streams, settled: make(chan struct{})}
}

// run has a lane do a job; it returns at once. The error that the job is told
// is why the lane has no context; then nothing may be called.
func (l *lanes) run(job func(*lane, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		go job(nil, errStopped)
		return
	}
	if n := len(l.idle); n > 0 {
		w := l.idle[n-1]
		l.idle = l.idle[:n-1]
		w.jobs <- job
		return
	}
	if l.total < l.most {
		l.total++
		w := &lane{device: l.device, jobs: make(chan func(*lane, error), 1)}
		w.jobs <- job
		go l.work(w)
		return
	}
	l.queue = append(l.queue, job)
}

// work is the life of a lane. Its goroutine never gives its thread back, so
// the thread ends with it, and the context's hold on it.
func (l *lanes) work(w *lane) {
	runtime.LockOSThread()
	v := l.device
	if r := v.driver.setCurrent.call(v.context); r != Success {
		w.broken = v.failed(&v.driver.setCurrent, r)
	} else if l.streams {
		w.broken = w.equip()
	}
	for job := range w.jobs {
		for job != nil {
			job(w, w.broken)
			job = l.next(w)
		}
	}
	w.strip()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total--; l.total == 0 && l.ended {
		close(l.settled)
	}
}

// next gives a lane that is done its next job, or makes it idle, or ends it.
func (l *lanes) next(w *lane) func(*lane, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 {
		job := l.queue[0]
		l.queue = l.queue[1:]
		return job
	}
	if l.ended || len(l.idle) >= keepIdle || w.broken != nil {
		close(w.jobs)
		return nil
	}
	l.idle = append(l.idle, w)
	return nil
}

// endWait bounds how long lanes may take to end; then they are parked.
const endWait = 2 * time.Second

// end has the idle lanes end and waits for them; false where one is parked.
// Nothing may run any more.
func (l *lanes) end() bool {
	l.mu.Lock()
	l.ended = true
	for _, w := range l.idle {
		close(w.jobs)
	}
	l.idle = nil
	none := l.total == 0
	l.mu.Unlock()
	if none {
		return true
	}
	select {
	case <-l.settled:
		return true
	case <-time.After(endWait):
		return false
	}
}

// call runs f on a lane and waits for it.
func (l *lanes) call(f func(*lane) error) error {
	done := make(chan error, 1)
	l.run(func(w *lane, err error) {
		if err == nil {
			err = f(w)
		}
		done <- err
	})
	return <-done
}
