package endurance_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vigil/cmd/server/servertest"
)

// Why this file: the built program as a process, and what can be seen of it
// from outside.

// full is whether the full counts are asked for.
var full = os.Getenv("VIGIL_FULL") == "1"

// of picks a count.
func of[T any](reduced, whole T) T {
	if full {
		return whole
	}
	return reduced
}

// slack is how many times worse than promised a figure may be in the reduced
// run: there other packages' tests run at the same time on two cores, and a
// figure says little. It then guards against collapse only; the promise itself
// is judged by the full run.
var slack = of(25.0, 1.0)

// echoPlease makes the test binary the bare echo loop instead (echo_test.go).
const echoPlease = "VIGIL_TEST_BARE_ECHO"

func TestMain(m *testing.M) {
	if endpoint := os.Getenv(echoPlease); endpoint != "" {
		bareEcho(endpoint)
		return
	}
	code := m.Run()
	servertest.Clean()
	os.Exit(code)
}

// said is a line of a worker's output or of a server's log.
type said struct {
	Event   string `json:"event"`
	Msg     string `json:"msg"`
	HTTP    string `json:"http"`
	Segment string `json:"segment"`
	Bind    any    `json:"bind"`
}

// process is a child under way. It keeps the counts of what it said, and the
// last lines for a test that fails: what a load says in an hour is too much to
// keep.
type process struct {
	*servertest.Process
	t testing.TB

	mu     sync.Mutex
	counts map[string]int
	first  map[string]said
	last   []string
	races  []string
	racing bool
}

// begin starts a child.
func begin(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, counts: map[string]int{}, first: map[string]said{}}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.races) > 0 {
			t.Errorf("%s: a data race:\n%s", p, strings.Join(p.races, "\n"))
		}
		if t.Failed() && len(p.last) > 0 {
			t.Logf("%s said last:\n%s", p.Call(), strings.Join(p.last, "\n"))
		}
	})
	p.Process = servertest.Begin(t, cmd, p.take)
	return p
}

// keptLines is how many of a child's last lines are shown where a test fails.
const keptLines = 12

func (p *process) take(line []byte) {
	text := string(line)
	var l said
	json.Unmarshal(line, &l)
	name := l.Event
	if name == "" {
		name = l.Msg
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts[name]++; p.counts[name] == 1 {
		p.first[name] = l
	}
	if len(p.last) == keptLines {
		p.last = append(p.last[:0], p.last[1:]...)
	}
	p.last = append(p.last, text)
	p.racing = p.racing || strings.Contains(text, "WARNING: DATA RACE")
	if p.racing && len(p.races) < 60 {
		p.races = append(p.races, text)
	}
}

// count is how many lines of a kind there were.
func (p *process) count(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[name]
}

// await waits for the n-th line of a kind and returns the first one.
func (p *process) await(name string, n int) said {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("%s says %q %d times", p, name, n), 60*time.Second, func() bool {
		if p.count(name) >= n {
			return true
		}
		if !p.Alive() && p.count(name) < n {
			p.t.Fatalf("%s ended with code %d before it said %q %d times", p, p.Code(), name, n)
		}
		return false
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first[name]
}

// leave asks it to go and returns the exit code.
func (p *process) leave() int {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	return p.ended()
}

// ended waits for the end of who was asked to go, and returns the exit code.
func (p *process) ended() int {
	p.t.Helper()
	return p.Ended(40 * time.Second)
}

func program(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return servertest.Program(t, args...)
}

// server is a running server; bind is its first endpoint.
type server struct {
	*process
	bind, http string
}

// serve starts one. Where the arguments bind to nothing it binds to a socket
// file in a folder of its own.
func serve(t testing.TB, args ...string) *server {
	t.Helper()
	if !slices.Contains(args, "--bind") {
		args = append(args, "--bind", "ipc://"+filepath.Join(t.TempDir(), "socket"))
	}
	p := begin(t, program(t, append([]string{"run", "--backend", "hostshm", "--http", "127.0.0.1:0", "--pprof"}, args...)...))
	return p.serving()
}

// serving waits until the server has said where it is reached.
func (p *process) serving() *server {
	l := p.await("serving", 1)
	list, _ := l.Bind.([]any)
	if len(list) == 0 {
		p.t.Fatal("the server names no endpoint")
	}
	bind, _ := list[0].(string)
	return &server{p, bind, l.HTTP}
}

// worker starts one.
func (s *server) worker(args ...string) *process {
	s.t.Helper()
	return begin(s.t, program(s.t, append([]string{"worker", "--backend", "hostshm", "--connect", s.bind}, args...)...))
}

// browser keeps no connection, whose goroutines would be counted.
var browser = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}

func (s *server) get(path string) string {
	s.t.Helper()
	answer, err := browser.Get("http://" + s.http + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s %v %s", path, answer.Status, err, body)
	}
	return string(body)
}

// page is what is read of /status.
type page struct {
	Memory struct {
		Mapped   uint64 `json:"mapped_bytes"`
		Mappings int    `json:"mappings"`
		Opening  int    `json:"opening"`
		Closing  int    `json:"closing"`
		Copying  int    `json:"copying"`
		Failed   uint64 `json:"failed_operations"`
	} `json:"memory"`
	Releases struct {
		InProgress int `json:"in_progress"`
		Stuck      int `json:"stuck"`
	} `json:"releases"`
	Liveness struct {
		Reaps map[string]uint64 `json:"reaps"`
	} `json:"liveness"`
	Refusals  map[string]uint64 `json:"refusals"`
	Dropped   map[string]uint64 `json:"messages_dropped"`
	Transport struct {
		Peers            int64  `json:"peers"`
		Received         uint64 `json:"received"`
		HandshakesFailed uint64 `json:"handshakes_failed"`
	} `json:"transport"`
	ServerDriven struct {
		Total int `json:"total"`
	} `json:"server_driven"`
	EngineDriven struct {
		Total int `json:"total"`
	} `json:"engine_driven"`
}

func (s *server) status() (p page) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.get("/status?limit=1")), &p); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// holdings is what a process holds, as the system and its runtime say it.
type holdings struct{ mappings, descriptors, goroutines int }

func (h holdings) String() string {
	return fmt.Sprintf("%d mappings of segments, %d descriptors, %d goroutines", h.mappings, h.descriptors, h.goroutines)
}

func (s *server) holdings() (h holdings) {
	s.t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.PID))
	if err != nil {
		s.t.Fatal(err)
	}
	h.mappings = strings.Count(string(maps), "/dev/shm/vigil-kv")
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID))
	if err != nil {
		s.t.Fatal(err)
	}
	h.descriptors = len(list)
	head, _, _ := strings.Cut(s.get("/debug/pprof/goroutine?debug=1"), "\n")
	if _, err := fmt.Sscanf(head, "goroutine profile: total %d", &h.goroutines); err != nil {
		s.t.Fatalf("%q: %v", head, err)
	}
	return h
}

// cpu is the processor time that it has used, user and system together.
func (p *process) cpu() time.Duration {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	ticks := 0
	for _, i := range []int{11, 12} { // utime and stime; the fields after the name
		n, err := strconv.Atoi(f[i])
		if err != nil {
			p.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100) // USER_HZ
}

// heapOf is the live heap after a collection.
func (s *server) heap() uint64 {
	s.t.Helper()
	text := s.get("/debug/pprof/heap?gc=1&debug=1")
	_, rest, _ := strings.Cut(text, "# HeapAlloc = ")
	n, err := strconv.ParseUint(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]), 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func eventually(t testing.TB, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for begun := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

// profile writes what a server does for so long into the folder that
// VIGIL_PROFILE names, where it names one: a processor profile and a trace.
func (s *server) profile(name string, length time.Duration) (wait func()) {
	dir := os.Getenv("VIGIL_PROFILE")
	if dir == "" {
		return func() {}
	}
	var group sync.WaitGroup
	for _, what := range []string{"profile", "trace"} {
		group.Go(func() {
			text := s.get(fmt.Sprintf("/debug/pprof/%s?seconds=%d", what, max(1, int(length.Seconds()))))
			if err := os.WriteFile(filepath.Join(dir, name+"."+what), []byte(text), 0o644); err != nil {
				s.t.Error(err)
			}
		})
	}
	return group.Wait
}
