package servertest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Why this file: one process of a test, from its start to its end, and nothing
// left behind whatever becomes of either.

// Process is a program under way.
type Process struct {
	PID  int
	Done <-chan struct{} // closed when it has ended and every line was handed on

	t    testing.TB
	cmd  *exec.Cmd
	code int
}

// maxLine bounds a line of what a process says; a longer one ends the reading.
const maxLine = 1 << 20

// Begin starts a process in a group of its own and kills it, at the latest, at
// the test's end. Each line of its standard output and standard error is given
// to line, which both readers call, so at the same time, and which must not
// keep the bytes. What the caller has to do at the test's end, once the process
// is gone, it registers with t.Cleanup before.
func Begin(t testing.TB, cmd *exec.Cmd, line func([]byte)) *Process {
	t.Helper()
	done := make(chan struct{})
	p := &Process{t: t, cmd: cmd, Done: done}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := start(cmd); err != nil {
		t.Fatal(err)
	}
	p.PID = cmd.Process.Pid
	var readers sync.WaitGroup
	for _, from := range []io.Reader{out, errs} {
		readers.Go(func() {
			lines := bufio.NewScanner(from)
			lines.Buffer(nil, maxLine)
			for lines.Scan() {
				line(lines.Bytes())
			}
			io.Copy(io.Discard, from) // a line that is too long must not hold the process
		})
	}
	go func() {
		readers.Wait()
		cmd.Wait()
		p.code = cmd.ProcessState.ExitCode()
		close(done)
	}()
	t.Cleanup(func() {
		p.Kill()
		for _, path := range Segments(p.PID) { // of whoever had to be killed
			os.Remove(path)
		}
	})
	return p
}

// The kernel tells a process that its parent is dead when the thread that
// started it ends, so one thread, which never ends, starts all of them.
var starting struct {
	once sync.Once
	jobs chan func()
}

func start(cmd *exec.Cmd) (err error) {
	starting.once.Do(func() {
		starting.jobs = make(chan func())
		go func() {
			runtime.LockOSThread()
			for job := range starting.jobs {
				job()
			}
		}()
	})
	done := make(chan struct{})
	starting.jobs <- func() { defer close(done); err = cmd.Start() }
	<-done
	return err
}

// String is what a test calls it: its command and its number.
func (p *Process) String() string {
	if len(p.cmd.Args) < 2 {
		return fmt.Sprint(p.PID)
	}
	return fmt.Sprintf("%s %d", p.cmd.Args[1], p.PID)
}

// Call is the command line after the program.
func (p *Process) Call() string { return strings.Join(p.cmd.Args[1:], " ") }

// Signal sends a signal to the process alone.
func (p *Process) Signal(s syscall.Signal) { syscall.Kill(p.PID, s) }

// Alive reports whether it has not ended.
func (p *Process) Alive() bool {
	select {
	case <-p.Done:
		return false
	default:
		return true
	}
}

// Kill kills it and waits until it has ended.
func (p *Process) Kill() {
	if p.Alive() {
		p.Signal(syscall.SIGKILL)
		<-p.Done
	}
}

// Code is the exit code of one that has ended; -1 where a signal ended it.
func (p *Process) Code() int {
	<-p.Done
	return p.code
}

// Ended waits for the end of one that was asked to go and returns its exit
// code; the test fails where it does not end within the limit.
func (p *Process) Ended(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.Done:
	case <-time.After(limit):
		p.t.Fatalf("%s does not end within %s", p, limit)
	}
	return p.code
}

// Segments lists what a process made in shared memory and has not removed.
func Segments(pid int) []string {
	list, _ := filepath.Glob(fmt.Sprintf("/dev/shm/vigil-*_%d_*", pid))
	return list
}
