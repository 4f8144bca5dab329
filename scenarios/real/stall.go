package real

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"vigil/scenarios/monitor"
	"vigil/scenarios/run"
)

// Whether this machine let the processes run. The kernel counts for each
// thread how long it was ready and waited for a processor; a process that is
// slow for a reason of its own does not wait there. A virtual machine that
// stands still as a whole is seen by a sleep that lasts too long.

// StallBound is how long a thread may wait for a processor before a deadline
// that passed shows nothing about the server: a third of a heartbeat's reply
// deadline at a scale of 60.
const StallBound = 50 * time.Millisecond

// stallEvery is the time between two readings.
const stallEvery = 100 * time.Millisecond

// stalls follows the threads of a run's processes, and of this one.
type stalls struct {
	waited map[int]uint64 // by thread: nanoseconds up to the last reading
	worst  time.Duration
}

func (s *stalls) read(pids []int) {
	if s.waited == nil {
		s.waited = map[int]uint64{}
	}
	for _, pid := range pids {
		folder := "/proc/" + strconv.Itoa(pid) + "/task/"
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue
		}
		for _, e := range entries {
			tid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			text, err := os.ReadFile(folder + e.Name() + "/schedstat")
			if err != nil {
				continue
			}
			fields := bytes.Fields(text)
			if len(fields) < 2 {
				continue
			}
			now, err := strconv.ParseUint(string(fields[1]), 10, 64)
			if err != nil {
				continue
			}
			// What a thread waited before it was first read was its start.
			if before, known := s.waited[tid]; known && now > before {
				s.worst = max(s.worst, time.Duration(now-before))
			}
			s.waited[tid] = now
		}
	}
}

// timing reports whether a violation may be the machine's: something came too
// late, or too often because something else came too late. What must hold
// whatever the host's scheduler does is never excused.
func timing(v *run.Violation) bool {
	switch v.Invariant {
	case "CONVERGE", "RECLAIM", "ISOLATE", "TERMINAL", "VISIBLE", "step", "break":
		return true
	case "NO-FALSE-REAP":
		// That a live worker ran undisturbed and so must have been heard is what a
		// host that kept it waiting refutes. A signal that came in time and was
		// ignored is the server's own.
		return strings.Contains(v.Message, monitor.Undisturbed)
	}
	return strings.HasPrefix(v.Invariant, "expect ") && !strings.Contains(v.Message, "blocks-wrong")
}

// excusable reports whether all that went wrong may be the machine's.
func excusable(o *Outcome) bool {
	wrong := 0
	for i := range o.Violations {
		if v := &o.Violations[i]; !v.Declared {
			if wrong++; !timing(v) {
				return false
			}
		}
	}
	return wrong > 0
}

// hurry asks for the processors before other programs, where this user may:
// the story's deadlines are short, and other work on the host is none of it.
func hurry() {
	// Where the kernel shares the processors out by session, that is what counts.
	if f, err := os.OpenFile("/proc/self/autogroup", os.O_WRONLY, 0); err == nil {
		f.WriteString(strconv.Itoa(urgent))
		f.Close()
	}
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			syscall.Setpriority(syscall.PRIO_PROCESS, tid, urgent)
		}
	}
}

// urgent is the nice value of a run's threads.
const urgent = -10

// calmWait bounds how long a run that is to be played again waits for a host
// that has time for it.
const calmWait = 30 * time.Second

// calm waits until this host lets a sleeping program wake in time, half a
// second long.
func calm(ctx context.Context) {
	for began := time.Now(); time.Since(began) < calmWait && ctx.Err() == nil; {
		overslept := watchSleep()
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
		if overslept() < StallBound/5 {
			return
		}
	}
}

// watchSleep measures how much longer than asked for this program sleeps; the
// function that it returns ends that and says the longest.
func watchSleep() func() time.Duration {
	const step = 5 * time.Millisecond
	stop, done := make(chan struct{}), make(chan time.Duration)
	go func() {
		var worst time.Duration
		for {
			at := time.Now()
			select {
			case <-stop:
				done <- worst
				return
			case <-time.After(step):
				worst = max(worst, time.Since(at)-step)
			}
		}
	}()
	return func() time.Duration { close(stop); return <-done }
}
