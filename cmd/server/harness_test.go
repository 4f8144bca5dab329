package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The tests run the built program in processes of its own: real sockets, real
// shared memory, real signals, and a clock that runs faster.

// scale is how many times as fast. The settings keep their real values: a
// window of 120 s passes in 2 s.
const scale = 60

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "vigil-server-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "server")
	args := []string{"build", "-o", path}
	if raceOn {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := built(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// program prepares a call in an environment that says nothing of ours.
func program(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "VIGIL_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// child is a process under way.
type child struct {
	t     testing.TB
	cmd   *exec.Cmd
	pid   int
	mu    sync.Mutex
	lines []map[string]any // JSON, of standard output and standard error
	raw   strings.Builder
	news  chan struct{}
	done  chan struct{}
	code  int
}

func begin(t testing.TB, cmd *exec.Cmd) *child {
	t.Helper()
	c := &child{t: t, cmd: cmd, news: make(chan struct{}, 1), done: make(chan struct{})}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.pid = cmd.Process.Pid
	var readers sync.WaitGroup
	for _, r := range []io.Reader{out, errs} {
		readers.Go(func() { c.read(r) })
	}
	go func() {
		readers.Wait()
		cmd.Wait()
		c.code = cmd.ProcessState.ExitCode()
		close(c.done)
	}()
	t.Cleanup(func() {
		c.kill()
		for _, path := range segmentsOf(c) { // of whoever had to be killed
			os.Remove(path)
		}
		if t.Failed() {
			c.mu.Lock()
			defer c.mu.Unlock()
			text := c.raw.String()
			t.Logf("%s said:\n%s", strings.Join(cmd.Args[1:], " "), text[max(0, len(text)-6000):])
		}
	})
	return c
}

func (c *child) read(from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l map[string]any
		json.Unmarshal(lines.Bytes(), &l)
		c.mu.Lock()
		c.raw.WriteString(lines.Text() + "\n")
		if l != nil {
			c.lines = append(c.lines, l)
		}
		c.mu.Unlock()
		select {
		case c.news <- struct{}{}:
		default:
		}
	}
}

// await waits for a line of which want holds, from the first on, and returns it.
func (c *child) await(what string, want func(map[string]any) bool) map[string]any {
	c.t.Helper()
	limit := time.After(20 * time.Second)
	for seen := 0; ; {
		c.mu.Lock()
		lines := c.lines[seen:]
		seen = len(c.lines)
		c.mu.Unlock()
		for _, l := range lines {
			if want(l) {
				return l
			}
		}
		select {
		case <-c.news:
		case <-c.done:
			c.mu.Lock()
			left := len(c.lines) - seen
			c.mu.Unlock()
			if left == 0 {
				c.t.Fatalf("it ended with code %d before: %s", c.code, what)
			}
		case <-limit:
			c.t.Fatalf("it never came: %s", what)
		}
	}
}

// event waits for a worker's n-th line of a kind.
func (c *child) event(kind string, n int) map[string]any {
	c.t.Helper()
	return c.await(fmt.Sprintf("%d times %q", n, kind), func(l map[string]any) bool {
		if l["event"] == kind {
			n--
		}
		return n == 0
	})
}

// logged waits for a line of the server's log.
func (c *child) logged(message string) map[string]any {
	c.t.Helper()
	return c.await("the log line "+message, func(l map[string]any) bool {
		text, _ := l["msg"].(string)
		return strings.HasPrefix(text, message)
	})
}

func (c *child) count(kind string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		if l["event"] == kind {
			n++
		}
	}
	return n
}

func (c *child) signal(s syscall.Signal) { syscall.Kill(c.pid, s) }

func (c *child) kill() {
	select {
	case <-c.done:
	default:
		c.signal(syscall.SIGKILL)
		<-c.done
	}
}

// ended waits for the end and returns the exit code.
func (c *child) ended() int {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(20 * time.Second):
		c.t.Fatal("it does not end")
	}
	return c.code
}

// rig is a running server.
type rig struct {
	*child
	bind, http, dir string
}

func serve(t testing.TB, dir string, args ...string) *rig {
	t.Helper()
	bind := "ipc://" + filepath.Join(dir, "s", "socket")
	c := begin(t, program(t, append([]string{
		"run", "--bind", bind, "--http", "127.0.0.1:0", "--time-scale", strconv.Itoa(scale), "--pool-bytes", "16MiB", "--l1-bytes", "64MiB",
	}, args...)...))
	r := &rig{child: c, bind: bind, dir: dir}
	r.http, _ = c.logged("serving")["http"].(string)
	return r
}

// worker starts a worker that is quick to say something.
func (r *rig) worker(args ...string) *child {
	r.t.Helper()
	return begin(r.t, program(r.t, append([]string{
		"worker", "--connect", r.bind, "--time-scale", strconv.Itoa(scale), "--every", "3s", "--blocks", "128",
	}, args...)...))
}

// get asks over http.
func (r *rig) get(path string) (int, string) {
	r.t.Helper()
	answer, err := http.Get("http://" + r.http + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func (r *rig) status() *statusPage {
	r.t.Helper()
	code, body := r.get("/status")
	p := new(statusPage)
	if err := json.Unmarshal([]byte(body), p); err != nil || code != http.StatusOK {
		r.t.Fatalf("status %d: %v: %s", code, err, body)
	}
	return p
}

// maps reports whether the server has a worker's segment mapped.
func (r *rig) maps(segment string) bool {
	r.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", r.pid))
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Contains(string(text), segment)
}

// segmentsOf lists the segments that a process of these tests made.
func segmentsOf(c *child) []string {
	list, _ := filepath.Glob(fmt.Sprintf("/dev/shm/vigil-*_%d_*", c.pid))
	return list
}

// clean fails a test that leaves segments of these processes behind.
func clean(t testing.TB, children ...*child) {
	t.Helper()
	for _, c := range children {
		for _, path := range segmentsOf(c) {
			t.Errorf("left behind in shared memory: %s", path)
		}
	}
}
