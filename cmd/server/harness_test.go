package main

import (
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
	"testing"
	"time"

	"vigil/cmd/server/servertest"
)

// The tests run the built program in processes of its own: real sockets, real
// shared memory, real signals, and a clock that runs faster.

// scale is how many times as fast. The settings keep their real values: a
// window of 120 s passes in 2 s.
const scale = 60

func TestMain(m *testing.M) {
	code := m.Run()
	servertest.Clean()
	if standInFolder != "" {
		os.RemoveAll(standInFolder)
	}
	os.Exit(code)
}

func program(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return servertest.Program(t, args...)
}

// child is a process under way, with every line that it says: what the tests
// here wait for is in the lines' particulars.
type child struct {
	*servertest.Process
	t     testing.TB
	mu    sync.Mutex
	lines []map[string]any // JSON, of standard output and standard error
	raw   strings.Builder
	news  chan struct{}
}

func begin(t testing.TB, cmd *exec.Cmd) *child {
	t.Helper()
	c := &child{t: t, news: make(chan struct{}, 1)}
	t.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if text := c.raw.String(); t.Failed() && c.Process != nil {
			t.Logf("%s said:\n%s", c.Call(), text[max(0, len(text)-6000):])
		}
	})
	c.Process = servertest.Begin(t, cmd, c.take)
	return c
}

func (c *child) take(line []byte) {
	var l map[string]any
	json.Unmarshal(line, &l)
	c.mu.Lock()
	c.raw.Write(line)
	c.raw.WriteByte('\n')
	if l != nil {
		c.lines = append(c.lines, l)
	}
	c.mu.Unlock()
	select {
	case c.news <- struct{}{}:
	default:
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
		case <-c.Done:
			c.mu.Lock()
			left := len(c.lines) - seen
			c.mu.Unlock()
			if left == 0 {
				c.t.Fatalf("it ended with code %d before: %s", c.Code(), what)
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

// ended waits for the end and returns the exit code.
func (c *child) ended() int {
	c.t.Helper()
	return c.Ended(20 * time.Second)
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
		"run", "--bind", bind, "--http", "127.0.0.1:0", "--backend", "hostshm", "--time-scale", strconv.Itoa(scale), "--pool-bytes", "16MiB", "--l1-bytes", "64MiB",
	}, args...)...))
	r := &rig{child: c, bind: bind, dir: dir}
	r.http, _ = c.logged("serving")["http"].(string)
	return r
}

// worker starts a worker that is quick to say something.
func (r *rig) worker(args ...string) *child {
	r.t.Helper()
	return begin(r.t, program(r.t, append([]string{
		"worker", "--connect", r.bind, "--backend", "hostshm", "--time-scale", strconv.Itoa(scale), "--every", "3s", "--blocks", "128",
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
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", r.PID))
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Contains(string(text), segment)
}

// clean fails a test that leaves segments of these processes behind.
func clean(t testing.TB, children ...*child) {
	t.Helper()
	for _, c := range children {
		for _, path := range servertest.Segments(c.PID) {
			t.Errorf("left behind in shared memory: %s", path)
		}
	}
}
