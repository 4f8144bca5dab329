package real

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// child is one process that a run started, in a process group of its own.
type child struct {
	cmd   *exec.Cmd
	pid   int
	began uint64 // in the kernel's ticks: a PID alone is used again
	stdin io.WriteCloser
	tail  tailBuffer // the end of its standard error

	mu      sync.Mutex
	dead    bool
	state   *os.ProcessState
	done    chan struct{}
	planned bool // its end was brought about here
}

// ask notes that its end is brought about here; asked reports it.
func (c *child) ask() {
	c.mu.Lock()
	c.planned = true
	c.mu.Unlock()
}

func (c *child) asked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.planned
}

// maxTail bounds what is kept of a process's standard error.
const maxTail = 4 << 10

type tailBuffer struct {
	mu   sync.Mutex
	b    []byte
	line []byte
	take func([]byte) // sees each line, where set
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := p; t.take != nil && len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte{'\n'})
		if t.line = append(t.line, line...); whole {
			t.take(t.line)
			t.line = t.line[:0]
		} else if len(t.line) > maxLine {
			t.line = t.line[:0]
		}
		rest = after
	}
	t.b = append(t.b, p...)
	if extra := len(t.b) - maxTail; extra > 0 {
		t.b = append(t.b[:0], t.b[extra:]...)
	}
	return len(p), nil
}

func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.b))
}

// A process that is to die with its parent is told so by the kernel when the
// thread that started it ends. So one thread, which never ends, starts all.
var launcher struct {
	once sync.Once
	jobs chan func()
}

func launch(f func()) {
	launcher.once.Do(func() {
		launcher.jobs = make(chan func())
		go func() {
			runtime.LockOSThread()
			hurryThread() // what it starts inherits it
			for job := range launcher.jobs {
				job()
			}
		}()
	})
	done := make(chan struct{})
	launcher.jobs <- func() { defer close(done); f() }
	<-done
}

// spawn starts a process. Each line of its standard output goes to line, and
// of its standard error to report, in order, each from one goroutine.
func spawn(env []string, line, report func([]byte), name string, args ...string) (*child, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	withParent(cmd.SysProcAttr)
	c := &child{cmd: cmd, done: make(chan struct{})}
	c.tail.take = report
	cmd.Stderr = &c.tail
	// Whoever holds standard error open must not hold the end back.
	cmd.WaitDelay = time.Second
	var err error
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	launch(func() { err = cmd.Start() })
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	c.pid = cmd.Process.Pid
	c.began, _ = startTicks(c.pid)
	go func() {
		readLines(out, line)
		cmd.Wait()
		c.mu.Lock()
		c.dead, c.state = true, cmd.ProcessState
		c.mu.Unlock()
		close(c.done)
	}()
	return c, nil
}

// maxLine bounds one line of a worker's standard output.
const maxLine = 1 << 20

// readLines gives each whole line to take; a longer one than maxLine is dropped.
func readLines(from io.Reader, take func([]byte)) {
	var line []byte
	buffer := make([]byte, 32<<10)
	long := false
	for {
		n, err := from.Read(buffer)
		for b := buffer[:n]; len(b) > 0; {
			i := bytes.IndexByte(b, '\n')
			if i < 0 {
				if long = long || len(line)+len(b) > maxLine; !long {
					line = append(line, b...)
				}
				break
			}
			if line = append(line, b[:i]...); !long && take != nil {
				take(line)
			}
			line, long, b = line[:0], false, b[i+1:]
		}
		if err != nil {
			return
		}
	}
}

// alive reports whether it has not ended.
func (c *child) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead
}

// signal sends a signal to its process group while it lives.
func (c *child) signal(s syscall.Signal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead && syscall.Kill(-c.pid, s) == nil
}

// end kills it and waits until it is gone.
func (c *child) end() {
	c.signal(syscall.SIGKILL)
	select {
	case <-c.done:
	case <-time.After(5 * time.Second): // in the kernel's hands
	}
	c.stdin.Close()
}

// say sends one line to its standard input.
func (c *child) say(format string, args ...any) bool {
	if !c.alive() {
		return false
	}
	_, err := fmt.Fprintf(c.stdin, format+"\n", args...)
	return err == nil
}

// ending says how it ended: "exit status 3", "signal: killed".
func (c *child) ending() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == nil {
		return "still runs"
	}
	return c.state.String()
}

// startTicks is when a process started, in the kernel's ticks since boot.
func startTicks(pid int) (uint64, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return 0, false
	}
	ticks, err := strconv.ParseUint(fields[19], 10, 64)
	return ticks, err == nil
}

// segmentFolder is where the host keeps POSIX shared memory.
const segmentFolder = "/dev/shm"

// segmentOwner reads whose a segment of ours is: its name ends in
// _NAMESPACE_PID_START_N (realgpu/hostshm).
func segmentOwner(file string) (pid int, start uint64, ok bool) {
	parts := strings.Split(file, "_")
	if len(parts) < 5 {
		return 0, 0, false
	}
	parts = parts[len(parts)-4:]
	var n [4]uint64
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 10, 63)
		if err != nil {
			return 0, 0, false
		}
		n[i] = v
	}
	return int(n[1]), n[2], n[1] > 0 && n[1] < 1<<31
}

// sweep removes the segments that these processes, which are dead, left.
func sweep(children []*child) (left []string) {
	entries, err := os.ReadDir(segmentFolder)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, start, ok := segmentOwner(e.Name())
		if !ok {
			continue
		}
		for _, c := range children {
			if c.pid == pid && c.began == start && !c.alive() {
				if err := os.Remove(filepath.Join(segmentFolder, e.Name())); err != nil && !os.IsNotExist(err) {
					left = append(left, e.Name())
				}
				break
			}
		}
	}
	return left
}
