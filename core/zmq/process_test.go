package zmq

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets a test run this program as another process: a client that says
// one thing and stays.
func TestMain(m *testing.M) {
	if to := os.Getenv("VIGIL_TEST_CLIENT"); to != "" {
		d, err := Dial(Options{Connect: to}, new(ear))
		if err != nil {
			panic(err)
		}
		d.Send(0, message("here"))
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func pidOf(t *testing.T, f *os.File) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		pid := 0
		if n, _ := fmt.Sscanf(line, "Pid: %d", &pid); n == 1 {
			return pid
		}
	}
	return 0
}

// A client over ipc comes with a descriptor of its process, which tells of its
// end; one over TCP does not, nor does anyone who did not ask.
func TestTheProcessBehindAConnection(t *testing.T) {
	ipc := func() string { return "ipc://" + filepath.Join(t.TempDir(), "socket") }
	for _, c := range []struct {
		name, bind string
		asked      bool
	}{{"ipc", ipc(), true}, {"tcp", loopback, true}, {"not asked", ipc(), false}} {
		t.Run(c.name, func(t *testing.T) {
			server := new(ear)
			r := listen(t, Options{Bind: []string{c.bind}, Processes: c.asked}, server)
			client := exec.Command(os.Args[0])
			client.Env = append(os.Environ(), "VIGIL_TEST_CLIENT="+r.Endpoints()[0])
			if err := client.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { client.Process.Kill(); client.Wait() }()
			p := server.wait(t, 1)[0].origin.Process
			if want := c.name == "ipc"; p != nil != want {
				t.Fatalf("a descriptor: %v, want %v", p != nil, want)
			}
			if n := r.Stats().NoProcess; n != 0 {
				t.Errorf("%d without a descriptor", n)
			}
			if p == nil {
				return
			}
			defer p.Close()
			if got := pidOf(t, p); got != client.Process.Pid {
				t.Errorf("it is of process %d, not %d", got, client.Process.Pid)
			}
			if readable(p) {
				t.Error("a process that lives reads as dead")
			}
			client.Process.Signal(syscall.SIGSTOP)
			time.Sleep(20 * time.Millisecond)
			if readable(p) {
				t.Error("a process that is stopped reads as dead")
			}
			client.Process.Kill()
			eventually(t, "the end of the process", func() bool { return readable(p) })
		})
	}
}

func readable(f *os.File) bool {
	w := waiter{fds: []pollFD{{fd: -1}, {fd: int32(f.Fd()), events: pollIn}}}
	w.wait(0)
	return w.ready(1)
}

// The way of older kernels: the same process, and none once the other end may
// have been closed by its end.
func TestTheProcessByItsNumber(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	far, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	file, err := near.(*net.UnixConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	near.Close()
	p := processByNumber(int(file.Fd()))
	if p == nil {
		t.Fatal("no descriptor")
	}
	if got := pidOf(t, p); got != os.Getpid() {
		t.Errorf("it is of process %d", got)
	}
	p.Close()
	far.Close()
	if p := processByNumber(int(file.Fd())); p != nil {
		t.Error("the other end is closed, so the number may be another's")
	}
	if startOf(os.Getpid()) == "" || startOf(1<<30) != "" {
		t.Error("the start time")
	}
}
