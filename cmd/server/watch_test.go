package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/zmq"
)

// seen is how long a death may take to be seen and released, in real time.
const seen = time.Second

// serveInRealTime is a server whose window is two real minutes, so that what a
// test sees within seconds was not the window.
func serveInRealTime(t *testing.T, args ...string) *rig {
	return serve(t, t.TempDir(), append([]string{"--time-scale", "1"}, args...)...)
}

func (r *rig) workerInRealTime(args ...string) *child {
	return r.worker(append([]string{"--time-scale", "1", "--every", "50ms"}, args...)...)
}

// remain fails where an instance goes within a while.
func (r *rig) remain(t *testing.T, total int, why string) {
	t.Helper()
	for until := time.Now().Add(2 * seen); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if p := r.status(); p.ServerDriven.Total != total || p.Liveness.Reaps["proof"] != 0 {
			t.Fatalf("%s: %d instances, reaps %v", why, p.ServerDriven.Total, p.Liveness.Reaps)
		}
	}
}

// descriptors counts the server's process descriptors.
func (r *rig) descriptors(t *testing.T) (n int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", r.PID)
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if to, _ := os.Readlink(filepath.Join(dir, e.Name())); strings.Contains(to, "pidfd") {
			n++
		}
	}
	return n
}

// A worker is killed: its memory is back within a second of a window of two
// minutes. Its neighbours, of which one is stopped, lose nothing.
func TestADeathIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"server-driven", "engine-driven"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := serveInRealTime(t)
			if on := r.logged("serving")["proof_of_death"]; on != "on" {
				t.Errorf("the log says that it is %v", on)
			}
			dies, stopped, lives := r.workerInRealTime("--mode", mode), r.workerInRealTime(), r.workerInRealTime()
			for _, w := range []*child{dies, stopped, lives} {
				w.event("retrieved", 1)
			}
			total := func() int { p := r.status(); return p.ServerDriven.Total + p.EngineDriven.Total }
			if p := r.status().Liveness.Proof; total() != 3 || p.State != "on" || p.Watched < 3 || p.Unknown != 0 || p.Beyond != 0 {
				t.Fatalf("three workers: %+v", p)
			}
			segment, _ := dies.event("started", 1)["segment"].(string)
			stopped.Signal(syscall.SIGSTOP)
			dies.Kill()
			killed := time.Now()
			for total() != 2 || segment != "" && r.maps(segment) {
				if time.Since(killed) > seen {
					t.Fatalf("not released %s after the kill", seen)
				}
				time.Sleep(time.Millisecond)
			}
			t.Logf("released after %s", time.Since(killed))
			r.logged("reaped: proof of death, the instance's process has ended")
			if reaps := r.status().Liveness.Reaps; reaps["proof"] != 1 || reaps["window"]+reaps["grace"] != 0 {
				t.Errorf("reaps: %v", reaps)
			}
			_, text := r.get("/metrics")
			for _, want := range []string{`vigil_reaps_total{reason="proof"} 1`, "vigil_proof_of_death 1", `vigil_unwatched_connections_total{reason="no-descriptor"} 0`} {
				if !strings.Contains(text, want) {
					t.Errorf("the metrics have no %s", want)
				}
			}
			time.Sleep(seen)
			if total() != 2 {
				t.Error("a stopped worker was released")
			}
			stopped.Signal(syscall.SIGCONT)
			for _, w := range []*child{stopped, lives} {
				w.event("retrieved", w.count("retrieved")+1)
				w.Signal(syscall.SIGTERM)
				if code := w.ended(); code != 0 || w.count("recovered")+w.count("failed")+w.count("wrong") > 0 {
					t.Errorf("a neighbour left with code %d", code)
				}
			}
			// Those that left in order are not watched for longer.
			for until := time.Now().Add(5 * time.Second); r.descriptors(t) > 0 || r.status().Liveness.Proof.Watched > 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("%d descriptors of dead processes are held", r.descriptors(t))
				}
			}
			r.Signal(syscall.SIGTERM)
			if code := r.ended(); code != 0 {
				t.Errorf("the server drained with code %d", code)
			}
		})
	}
}

// A connection is cut, and whoever opened it lives: nothing is released, and
// the worker goes on over the next one.
func TestACutConnectionProvesNothing(t *testing.T) {
	t.Parallel()
	r := serveInRealTime(t)
	p := newCutter(t, strings.TrimPrefix(r.bind, "ipc://"))
	// What was on its way when the connection broke is lost, and waited for.
	w := r.workerInRealTime("--connect", "ipc://"+p.path, "--request-timeout", "3s")
	w.event("retrieved", 1)
	p.cut()
	r.remain(t, 1, "its connection was cut")
	w.event("retrieved", w.count("retrieved")+1)
	if n := w.count("recovered"); n != 0 {
		t.Errorf("the worker had to register again %d times", n)
	}
	w.Signal(syscall.SIGTERM)
	w.ended()
	clean(t, w)
}

// cutter is between a worker and the server, and can cut what is open.
type cutter struct {
	path string
	mu   sync.Mutex
	open []net.Conn
}

func newCutter(t *testing.T, to string) *cutter {
	p := &cutter{path: filepath.Join(t.TempDir(), "cutter")}
	l, err := net.Listen("unix", p.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); p.cut() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", to)
			if err != nil {
				near.Close()
				continue
			}
			p.mu.Lock()
			p.open = append(p.open, near, far)
			p.mu.Unlock()
			go func() { io.Copy(near, far); near.Close() }()
			go func() { io.Copy(far, near); far.Close() }()
		}
	}()
	return p
}

func (p *cutter) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		c.Close()
	}
	p.open = nil
}

// Where there is no ipc bind, or the protection is off, nobody watches; a
// killed worker is the window's.
func TestWithoutProofThereIsTheWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"tcp":         {[]string{"--bind", "tcp://127.0.0.1:0"}, "off: no ipc:// bind"},
		"unprotected": {[]string{"--unprotect", "proof-of-death"}, "off: the design is without"},
		// Both binds: it is on, and sees nothing of who came over TCP.
		"tcp of both": {[]string{"--bind", "tcp://127.0.0.1:0,ipc://SOCKET"}, "on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range c.args {
				c.args[i] = strings.Replace(c.args[i], "SOCKET", filepath.Join(t.TempDir(), "socket"), 1)
			}
			r := serveInRealTime(t, c.args...)
			r.bind, _ = r.logged("serving")["bind"].([]any)[0].(string)
			if says := r.status().Liveness.Proof.State; says != c.says {
				t.Errorf("the status says %q", says)
			}
			w := r.workerInRealTime()
			w.event("retrieved", 1)
			w.Kill()
			r.remain(t, 1, "killed unseen")
			if n := r.descriptors(t); n != 0 {
				t.Errorf("%d descriptors of processes", n)
			}
		})
	}
}

// A server in a PID namespace of its own, as in a container, sees the end of a
// process that it has no number for.
func TestADeathOutsideThePIDNamespace(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 || exec.Command("unshare", "--pid", "--fork", "--mount-proc", "true").Run() != nil {
		t.Skip("making a PID namespace is not allowed here")
	}
	if major, minor := kernel(t); major < 6 || major == 6 && minor < 5 {
		t.Skip("this kernel has no SO_PEERPIDFD")
	}
	dir := t.TempDir()
	bind := "ipc://" + filepath.Join(dir, "s", "socket")
	inside := program(t, "run", "--bind", bind, "--http", "127.0.0.1:0", "--pool-bytes", "0")
	inside.Args = append([]string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", inside.Path}, inside.Args[1:]...)
	path, err := exec.LookPath("unshare")
	if err != nil {
		t.Fatal(err)
	}
	inside.Path = path
	c := begin(t, inside)
	r := &rig{child: c, bind: bind, dir: dir}
	r.http, _ = c.logged("serving")["http"].(string)
	w := r.workerInRealTime()
	w.event("retrieved", 1)
	if p := r.status().Liveness.Proof; p.Watched == 0 || p.Unknown != 0 {
		t.Fatalf("from outside: %+v", p)
	}
	w.Kill()
	killed := time.Now()
	for r.status().ServerDriven.Total != 0 {
		if time.Since(killed) > seen {
			t.Fatalf("not released %s after the kill", seen)
		}
		time.Sleep(time.Millisecond)
	}
}

func kernel(t *testing.T) (major, minor int) {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Sscanf(string(text), "%d.%d", &major, &minor)
	return major, minor
}

// told is what a watcher said, in order.
type told struct {
	mu   sync.Mutex
	list []string
}

func (s *told) say(what string, peer core.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, fmt.Sprint(what, " ", peer))
}

func (s *told) Message(core.Peer, core.Time, *core.Frames) {}
func (s *told) Closed(peer core.Peer)                      { s.say("closed", peer) }
func (s *told) exited(peer core.Peer)                      { s.say("exited", peer) }

func (s *told) read() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

func (s *told) wait(t *testing.T, want ...string) {
	t.Helper()
	s.until(t, want, func(list []string) []string { return list })
}

// waitSorted is wait where the order is anybody's.
func (s *told) waitSorted(t *testing.T, want ...string) {
	t.Helper()
	s.until(t, want, func(list []string) []string { slices.Sort(list); return list })
}

func (s *told) until(t *testing.T, want []string, as func([]string) []string) {
	t.Helper()
	for until := time.Now().Add(5 * time.Second); !slices.Equal(as(s.read()), want); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("it said %q, not %q", s.read(), want)
		}
	}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// sleeper is a process with a descriptor of it.
func sleeper(t *testing.T) (kill func(), descriptor func() *os.File) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	kill = func() { once.Do(func() { cmd.Process.Kill(); cmd.Wait() }) }
	t.Cleanup(kill)
	return kill, func() *os.File {
		const pidfdOpen = 434
		fd, _, errno := syscall.Syscall(pidfdOpen, uintptr(cmd.Process.Pid), 0, 0)
		if errno != 0 {
			t.Fatal(errno)
		}
		return os.NewFile(fd, "process")
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range list {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.Contains(to, "pidfd") || strings.Contains(to, "event") {
			n++
		}
	}
	return n
}

// The watcher by itself, not in parallel: it counts descriptors.
func TestTheWatcher(t *testing.T) {
	start := func(t *testing.T) (*watcher, *told) {
		t.Helper()
		before := openDescriptors(t)
		s := &told{}
		w, err := newWatcher(s, s.exited, quiet())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			w.stop()
			w.stop()
			w.Closed(99)
			if n := openDescriptors(t); n > before {
				t.Errorf("%d descriptors, %d before", n, before)
			}
		})
		return w, s
	}
	t.Run("a death is told once, behind the closing", func(t *testing.T) {
		w, s := start(t)
		kill, descriptor := sleeper(t)
		w.Opened(1<<40, zmq.Origin{Process: descriptor()})
		kill()
		time.Sleep(afterDeath / 4)
		s.wait(t)
		w.Closed(1 << 40)
		w.Closed(1 << 40)
		s.wait(t, "closed 1099511627776", "exited 1099511627776", "closed 1099511627776")
		time.Sleep(2 * afterDeath)
		s.wait(t, "closed 1099511627776", "exited 1099511627776", "closed 1099511627776")
	})
	t.Run("a closing that never comes is not waited for", func(t *testing.T) {
		w, s := start(t)
		kill, descriptor := sleeper(t)
		w.Opened(1, zmq.Origin{Process: descriptor()})
		w.Opened(2, zmq.Origin{Process: descriptor()})
		kill()
		s.waitSorted(t, "exited 1", "exited 2")
	})
	t.Run("a death some time after the closing", func(t *testing.T) {
		w, s := start(t)
		kill, descriptor := sleeper(t)
		w.Opened(1, zmq.Origin{Process: descriptor()})
		w.Closed(1)
		time.Sleep(2 * afterDeath)
		kill()
		s.wait(t, "closed 1", "exited 1")
	})
	t.Run("a closing without a death", func(t *testing.T) {
		w, s := start(t)
		w.afterClose = 50 * time.Millisecond
		kill, descriptor := sleeper(t)
		w.Opened(1, zmq.Origin{Process: descriptor()})
		w.Closed(1)
		for until := time.Now().Add(5 * time.Second); len(w.peers()) > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatal("it is watched for ever")
			}
		}
		kill()
		time.Sleep(2 * afterDeath)
		s.wait(t, "closed 1")
	})
	t.Run("the bound", func(t *testing.T) {
		w, s := start(t)
		w.most = 2
		kill, descriptor := sleeper(t)
		for peer := range core.Peer(3) {
			w.Opened(peer+1, zmq.Origin{Process: descriptor()})
		}
		w.Opened(4, zmq.Origin{})
		if got := w.peers(); !slices.Equal(got, []core.Peer{1, 2}) || w.beyond.Load() != 1 {
			t.Errorf("watched %v, %d beyond", got, w.beyond.Load())
		}
		w.Closed(1) // makes room
		w.Opened(5, zmq.Origin{Process: descriptor()})
		if got := w.peers(); !slices.Equal(got, []core.Peer{2, 5}) || w.beyond.Load() != 1 {
			t.Errorf("watched %v, %d beyond", got, w.beyond.Load())
		}
		kill()
		s.waitSorted(t, "closed 1", "exited 2", "exited 5")
	})
	t.Run("many at once", func(t *testing.T) {
		w, s := start(t)
		kill, descriptor := sleeper(t)
		const n = 300
		for peer := range core.Peer(n) {
			w.Opened(peer+1, zmq.Origin{Process: descriptor()})
		}
		kill()
		for peer := range core.Peer(n) {
			w.Closed(peer + 1)
		}
		for until := time.Now().Add(5 * time.Second); len(s.read()) < 2*n; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%d of %d were told", len(s.read()), 2*n)
			}
		}
		time.Sleep(2 * afterDeath)
		if got := len(s.read()); got != 2*n || w.proven.Load() != n {
			t.Errorf("%d were told, %d proven", got, w.proven.Load())
		}
	})
	t.Run("stopped with something watched", func(t *testing.T) {
		w, s := start(t)
		kill, descriptor := sleeper(t)
		w.Opened(1, zmq.Origin{Process: descriptor()})
		w.stop()
		w.Opened(2, zmq.Origin{Process: descriptor()})
		kill()
		time.Sleep(2 * afterDeath)
		s.wait(t)
	})
}

// peers lists who is watched.
func (w *watcher) peers() (list []core.Peer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.watched {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}
