package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/loop"
)

// Two workers serve; one is killed. Its memory leaves the server's address
// space after the window and not before, the other never notices, and the
// server drains.
func TestAKilledWorkersMemoryComesBack(t *testing.T) {
	t.Parallel()
	for _, design := range []string{"document", "hardened"} {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			events := filepath.Join(dir, "events.jsonl")
			// Over TCP, where nothing proves a death (watch_test.go has the rest).
			r := serve(t, dir, "--design", design, "--event-log", events, "--bind", "tcp://127.0.0.1:0")
			r.bind, _ = r.logged("serving")["bind"].([]any)[0].(string)
			w1, w2 := r.worker("--design", design), r.worker("--design", design)
			segment, _ := w1.event("started", 1)["segment"].(string)
			id, _ := w1.event("started", 1)["instance"].(string)
			for _, w := range []*child{w1, w2} {
				w.event("registered", 1)
				if l := w.event("retrieved", 2); l["verified"] != true {
					t.Fatalf("retrieved and not verified: %v", l)
				}
			}
			if !r.maps(segment) {
				t.Fatalf("the server serves %s and has it not mapped", segment)
			}
			if p := r.status(); p.ServerDriven.Total != 2 || p.Memory.Mappings != 2 || len(p.ServerDriven.List) != 2 {
				t.Errorf("two workers: %+v", p.ServerDriven)
			}

			// A ping counts as a sign of life once the worker has transferred.
			for pinged := 0; pinged < 2; {
				pinged = 0
				for _, i := range r.status().ServerDriven.List {
					if i.Pinged {
						pinged++
					}
				}
			}

			w1.Kill()
			killed := time.Now()
			for r.maps(segment) {
				if time.Since(killed) > 20*time.Second {
					t.Fatal("the dead worker's memory stays mapped")
				}
				time.Sleep(5 * time.Millisecond)
			}
			took := time.Since(killed)
			// window + window/4, a second look where there is one, and a real
			// second for the machine.
			if most := (core.DefaultReap+core.DefaultReap/4+core.LookAgain)/scale + time.Second; took > most {
				t.Errorf("the memory was back after %s, later than %s", took, most)
			}
			reaped := r.logged("reaped")
			if reaped["instance"] != id || reaped["times"] != 1.0 || reaped["level"] != "WARN" {
				t.Errorf("the warning: %v", reaped)
			}
			before := w2.count("retrieved")
			w2.event("retrieved", before+1)
			p := r.status()
			if p.ServerDriven.Total != 1 || p.Liveness.Reaps["window"] != 1 || p.Memory.Mappings != 1 || p.Releases.Stuck != 0 {
				t.Errorf("after the reap: %+v %+v %+v", p.Liveness, p.Memory, p.Releases)
			}
			checkMetrics(t, r)

			w2.Signal(syscall.SIGTERM)
			if code := w2.ended(); code != 0 {
				t.Errorf("the worker left with code %d", code)
			}
			if n := w2.count("wrong") + w2.count("missed") + w2.count("failed"); n > 0 {
				t.Errorf("%d of the survivor's requests went wrong", n)
			}
			r.Signal(syscall.SIGTERM)
			if code := r.ended(); code != 0 {
				t.Errorf("the server drained with code %d", code)
			}
			clean(t, r.child, w1, w2)
			checkEvents(t, events, id)
		})
	}
}

func checkMetrics(t *testing.T, r *rig) {
	t.Helper()
	_, text := r.get("/metrics")
	for _, want := range []string{
		`vigil_reaps_total{reason="window"} 1`, `vigil_reaps_total{reason="grace"} 0`,
		`vigil_tracked_instances{context="server-driven"} 1`, `vigil_refusals_total{reason="not-registered"}`,
		"vigil_last_seen_age_seconds_max ", "vigil_releases_in_progress 0", "vigil_releases_stuck 0", "vigil_mapped_bytes 1.048576e+06",
		`vigil_pool_waiting{pool="normal"}`, `vigil_pool_busy{pool="affinity"}`,
		"vigil_ping_seconds_count ", `vigil_transfer_seconds_count{operation="store"}`, `vigil_transfer_seconds_count{operation="retrieve"}`,
		`vigil_messages_dropped_total{reason="peer-gone"}`, "vigil_up 1", "go_goroutines", "process_resident_memory_bytes",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
	for _, empty := range []string{"vigil_ping_seconds_count 0", `vigil_transfer_seconds_count{operation="store"} 0`} {
		if strings.Contains(text, empty) {
			t.Errorf("nothing was counted: %s", empty)
		}
	}
}

// checkEvents reads the log back: the reap came strictly later than a window
// after the last stamp, by the server's own clock.
func checkEvents(t *testing.T, path, id string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var last core.Time
	removed, opened, closed := core.Time(0), 0, 0
	torn, err := loop.ReadEvents(f, nil, func(e *loop.Event) error {
		r := &e.Record
		switch r.Kind {
		case core.OpenEnded:
			opened++
		case core.CloseEnded:
			closed++
		}
		if instanceText(r.Instance) != id {
			return nil
		}
		switch r.Kind {
		case core.Stamped:
			last = core.Time(r.A)
		case core.ContextRemoved:
			removed = r.At
		}
		return nil
	})
	if err != nil || torn {
		t.Fatalf("the event log: torn %v, %v", torn, err)
	}
	if silent := removed.Sub(last); silent <= core.DefaultReap || silent > core.DefaultReap*5/4+core.LookAgain+scale*time.Second {
		t.Errorf("reaped after a silence of %s by the server's clock", silent)
	}
	if opened == 0 || opened != closed {
		t.Errorf("%d opens and %d closes", opened, closed)
	}
}

// An engine-driven worker copies through the pool itself; what the server was
// told is recorded, and the recording replays.
func TestAnEngineDrivenWorkerAndARecording(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	recording := filepath.Join(dir, "recording")
	r := serve(t, dir, "--record", recording)
	w := r.worker("--mode", "engine-driven")
	if l := w.event("retrieved", 3); l["verified"] != true {
		t.Fatalf("retrieved and not verified: %v", l)
	}
	if p := r.status(); p.EngineDriven.Total != 1 || p.ServerDriven.Total != 0 || p.Memory.Mappings != 0 {
		t.Errorf("one engine-driven worker: %+v", p)
	}
	w.Signal(syscall.SIGTERM)
	if code := w.ended(); code != 0 || w.count("wrong") > 0 {
		t.Errorf("the worker left with code %d, %d wrong", code, w.count("wrong"))
	}
	r.Signal(syscall.SIGTERM)
	if code := r.ended(); code != 0 {
		t.Errorf("the server drained with code %d", code)
	}
	clean(t, r.child, w)
	report, err := loop.Replay(recording, nil)
	if err != nil || report.Difference != nil || len(report.Torn) > 0 || report.Inputs == 0 {
		t.Errorf("the recording: %v, %+v", err, report)
	}
}

// The server is killed in the middle of the traffic and comes back: the worker
// recovers, no byte is wrong, and what the dead server left is swept.
func TestTheServerIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := serve(t, dir)
	w := r.worker("--every", "0", "--in-flight", "2", "--interval", "3s", "--request-timeout", "20s")
	// Another model: a chunk that one kind of worker stored is not in the memory
	// that the other kind reads (docs/server.md).
	e := r.worker("--mode", "engine-driven", "--model", "other", "--interval", "3s", "--request-timeout", "20s")
	w.event("retrieved", 20)
	e.event("retrieved", 1)
	r.Kill()
	w.event("unhealthy", 1)
	again := serve(t, dir)
	for _, c := range []*child{w, e} {
		c.event("recovered", 1)
		before := c.count("retrieved")
		c.event("retrieved", before+1)
		c.Signal(syscall.SIGTERM)
		if code := c.ended(); code != 0 || c.count("wrong") > 0 {
			t.Errorf("the worker left with code %d, %d wrong", code, c.count("wrong"))
		}
	}
	again.Signal(syscall.SIGTERM)
	if code := again.ended(); code != 0 {
		t.Errorf("the server drained with code %d", code)
	}
	clean(t, r.child, again.child, w, e)
}

// A close that hangs does not hold the way out for ever: the server names what
// it held.
func TestAHungReleaseIsNamedAtTheEnd(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), "--test-hooks", "--drain-seconds", "5", "--stop-seconds", "120")
	w := r.worker("--idle")
	id, _ := w.event("registered", 1)["instance"].(string)
	r.hook(t, http.MethodPost, "/test/hooks", `{"operation":"close","hang":true}`, `{"rule":1}`)
	r.hook(t, http.MethodPost, "/test/hooks", `{"operation":"cloze"}`, "did you mean")
	r.Signal(syscall.SIGTERM)
	if code := r.ended(); code != exitHeld {
		t.Errorf("the server ended with code %d, not %d", code, exitHeld)
	}
	if held, _ := r.logged("stopped with something still held")["held"].(string); !strings.Contains(held, id) {
		t.Errorf("what was held is not named: %q", held)
	}
	w.Kill()
}

func (r *rig) hook(t *testing.T, method, path, body, want string) {
	t.Helper()
	q, _ := http.NewRequest(method, "http://"+r.http+path, strings.NewReader(body))
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var b bytes.Buffer
	b.ReadFrom(answer.Body)
	if !strings.Contains(b.String(), want) {
		t.Errorf("%s %s: %s", method, path, b.String())
	}
}

// A second signal ends at once what would take its time.
func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), "--test-hooks", "--drain-seconds", "3600", "--stop-seconds", "3600")
	w := r.worker("--every", "0")
	w.event("stored", 1)
	r.hook(t, http.MethodPost, "/test/hooks", `{"operation":"copy","hang":true}`, `{"rule":1}`)
	for r.status().Pools.Affinity.Busy == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	r.Signal(syscall.SIGTERM)
	r.logged("stopping")
	if code, _ := r.get("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("a server that drains says that it is ready: %d", code)
	}
	if code, _ := r.get("/healthz"); code != http.StatusOK {
		t.Errorf("a server that drains is alive: %d", code)
	}
	time.Sleep(2 * echo)
	begun := time.Now()
	r.Signal(syscall.SIGTERM)
	if code := r.ended(); code != exitHeld || time.Since(begun) > 5*time.Second {
		t.Errorf("the second signal: code %d after %s", code, time.Since(begun))
	}
	w.Kill()
}

// A worker whose server is gone does not wait for its goodbye's request timeout,
// and says what it could not give back.
func TestAWorkerLeavesWithoutItsServer(t *testing.T) {
	t.Parallel()
	for _, signals := range []int{1, 2} {
		stop := "1"
		if signals == 2 {
			stop = "3600"
		}
		r := serve(t, t.TempDir())
		w := r.worker("--idle", "--stop-seconds", stop)
		id, _ := w.event("registered", 1)["instance"].(string)
		r.Kill()
		begun := time.Now()
		w.Signal(syscall.SIGTERM)
		w.event("stopping", 1)
		if signals == 2 {
			time.Sleep(2 * echo)
			w.Signal(syscall.SIGTERM)
		}
		if code := w.ended(); code != exitHeld || time.Since(begun) > 20*time.Second {
			t.Errorf("%d signals: code %d after %s", signals, code, time.Since(begun))
		}
		held := w.event("held", 1)
		if text, _ := held["text"].(string); held["instance"] != id || !strings.Contains(text, "bytes, segment ") || strings.Contains(text, "second signal") != (signals == 2) {
			t.Errorf("what it may still hold is not named: %v", held)
		}
	}
}

// Keys: who has none gets nothing.
func TestKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serverKeys, workerKeys, strangerKeys := filepath.Join(dir, "server.key"), filepath.Join(dir, "worker.key"), filepath.Join(dir, "stranger.key")
	public := strings.TrimPrefix(strings.TrimSpace(call(t, "keygen", "-o", serverKeys).out), "public ")
	client := call(t, "keygen", "-o", workerKeys, "--server", public).out
	call(t, "keygen", "-o", strangerKeys, "--server", public)
	f, err := os.OpenFile(serverKeys, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, strings.Replace(strings.TrimSpace(client), "public", "client", 1))
	f.Close()
	r := serve(t, dir, "--curve-key-file", serverKeys)
	r.worker("--curve-key-file", workerKeys).event("retrieved", 1)
	for _, args := range [][]string{{}, {"--curve-key-file", strangerKeys}} {
		w := r.worker(append(args, "--request-timeout", "60s")...)
		if code := w.ended(); code != exitUnserved {
			t.Errorf("a worker with %v ended with code %d", args, code)
		}
	}
	if err := os.Chmod(serverKeys, 0o644); err != nil {
		t.Fatal(err)
	}
	if c := call(t, "run", "--curve-key-file", serverKeys); c.code != 1 || !strings.Contains(c.err, "chmod 600") {
		t.Errorf("a key file that others can read: %+v", c)
	}
}

// What LMCache's server answers, and ours beside it.
func TestPages(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), "--pprof")
	w := r.worker("--id", "42")
	w.event("retrieved", 1)
	if code, body := r.get("/api/healthcheck"); code != 200 || strings.TrimSpace(body) != `{"status":"healthy"}` {
		t.Errorf("healthcheck: %d %s", code, body)
	}
	_, body := r.get("/api/status")
	var s struct {
		Healthy bool   `json:"is_healthy"`
		Engine  string `json:"engine_type"`
		Chunk   int    `json:"chunk_size"`
		Live    struct {
			Enabled bool    `json:"enabled"`
			Reap    float64 `json:"reap_timeout_seconds"`
			Grace   float64 `json:"registration_grace_seconds"`
			Tracked int     `json:"tracked_instances"`
		} `json:"worker_liveness"`
		IDs  []uint64       `json:"registered_gpu_ids"`
		Meta map[string]any `json:"cache_context_meta"`
	}
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		t.Fatal(err)
	}
	if !s.Healthy || s.Engine != "MPCacheServer" || s.Chunk != 256 || !s.Live.Enabled || s.Live.Reap != 120 || s.Live.Grace != 3600 || s.Live.Tracked != 1 ||
		len(s.IDs) != 1 || s.IDs[0] != 42 || s.Meta["42"] == nil {
		t.Errorf("/api/status: %s", body)
	}
	for path, want := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/debug/pprof/": 200, "/status?limit=0": 400, "/status?nonsense=1": 400, "/status?server_driven=-1": 200,
		"/test/hooks": 404, "/nothing": 404,
	} {
		if code, body := r.get(path); code != want {
			t.Errorf("%s: %d, not %d: %s", path, code, want, body)
		}
	}
	if c := call(t, "status", "--http", r.http); c.code != 0 || !strings.Contains(c.out, "42") || !strings.Contains(c.out, "hardened design") {
		t.Errorf("status: %+v", c)
	}
	var p statusPage
	if c := call(t, "status", "--http", r.http, "--json"); json.Unmarshal([]byte(c.out), &p) != nil || p.ServerDriven.List[0].Instance != "42" {
		t.Errorf("status --json: %+v", c)
	}
	w.Signal(syscall.SIGTERM)
	w.ended()
	r.Signal(syscall.SIGTERM)
	r.ended()
	if c := call(t, "status", "--http", r.http); c.code != exitUnserved {
		t.Errorf("status of nobody: %+v", c)
	}
	clean(t, r.child, w)
}

// A load says how fast it was, and leaves nothing.
func TestALoad(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir())
	w := r.worker("--load", "8", "--in-flight", "2", "--for", "60s")
	l := w.await("the last figures", func(l map[string]any) bool {
		f, ok := l["load"].(map[string]any)
		return ok && f["last"] == true
	})["load"].(map[string]any)
	if code := w.ended(); code != 0 || l["wrong"] != 0.0 || l["stored"].(float64) < 10 || l["retrieved"].(float64) < 10 || l["ping_p99_ms"].(float64) <= 0 {
		t.Errorf("the load ended with code %d: %v", code, l)
	}
	if p := r.status(); p.ServerDriven.Total != 0 || p.Memory.Mappings != 0 {
		t.Errorf("left by the load: %+v", p.Memory)
	}
	clean(t, w)
}

// called is a call that is over.
type called struct {
	out, err string
	code     int
}

func call(t *testing.T, args ...string) called {
	t.Helper()
	return finish(t, program(t, args...))
}

func finish(t *testing.T, cmd *exec.Cmd) called {
	t.Helper()
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return called{out.String(), complaints.String(), cmd.ProcessState.ExitCode()}
}
