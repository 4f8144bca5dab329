package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"vigil/realgpu/watch"
)

// Why this file: the story that a device has to bear out: two workers and a
// server, bytes verified, a worker killed, its memory back by the device's own
// word, registered again.

// teller is a process of the story, with the lines that it says.
type teller struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	mu   sync.Mutex
	list []map[string]any
	last string
	done chan struct{}
}

func (c *checkConfig) tell(args ...string) (*teller, error) {
	cmd := exec.Command(c.self, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	t := &teller{cmd: cmd, done: make(chan struct{})}
	var err error
	if t.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var readers sync.WaitGroup
	for _, from := range []io.Reader{out, errs} {
		readers.Go(func() {
			for lines := bufio.NewScanner(from); lines.Scan(); {
				var l map[string]any
				json.Unmarshal(lines.Bytes(), &l)
				t.mu.Lock()
				t.last = lines.Text()
				if l != nil {
					t.list = append(t.list, l)
				}
				t.mu.Unlock()
			}
		})
	}
	go func() { readers.Wait(); cmd.Wait(); close(t.done) }()
	return t, nil
}

// stepWait bounds each wait of the story.
const stepWait = 20 * time.Second

// await waits until so many lines are as wanted and returns them all.
func (t *teller) await(n int, what string, want func(map[string]any) bool) ([]map[string]any, error) {
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		t.mu.Lock()
		var found []map[string]any
		for _, l := range t.list {
			if want(l) {
				found = append(found, l)
			}
		}
		last := t.last
		t.mu.Unlock()
		if len(found) >= n {
			return found, nil
		}
		select {
		case <-t.done:
			return nil, fmt.Errorf("it ended before: %s; its last line: %s", what, last)
		default:
		}
		if time.Since(began) > stepWait {
			return nil, fmt.Errorf("%s: %d of %d within %s; its last line: %s", what, len(found), n, stepWait, last)
		}
	}
}

func (t *teller) events(n int, kind string) ([]map[string]any, error) {
	return t.await(n, kind, func(l map[string]any) bool { return l["event"] == kind })
}

// since is events from now on.
func (t *teller) since(n int, kind string) ([]map[string]any, error) {
	t.mu.Lock()
	before := 0
	for _, l := range t.list {
		if l["event"] == kind {
			before++
		}
	}
	t.mu.Unlock()
	list, err := t.events(before+n, kind)
	if err != nil {
		return nil, err
	}
	return list[before:], nil
}

func (t *teller) end(s syscall.Signal) (code int, err error) {
	syscall.Kill(-t.cmd.Process.Pid, s)
	select {
	case <-t.done:
		return t.cmd.ProcessState.ExitCode(), nil
	case <-time.After(stepWait):
		syscall.Kill(-t.cmd.Process.Pid, syscall.SIGKILL)
		return -1, fmt.Errorf("it has not ended in %s", stepWait)
	}
}

// storyPlan is how large the story is.
type storyPlan struct {
	scale, blocks, blockBytes, layers int
}

func (c *checkConfig) storyPlan() storyPlan {
	if c.reduced {
		return storyPlan{scale: 60, blocks: 128, blockBytes: 4096, layers: 2}
	}
	// A chunk of 256 tokens is 16 blocks of 64 KiB in each of 32 layers, 32 MiB;
	// the memory 2 GiB.
	return storyPlan{scale: 30, blocks: 1024, blockBytes: 64 << 10, layers: 32}
}

func (p storyPlan) bytes() uint64 { return uint64(p.blocks) * uint64(p.blockBytes) * uint64(p.layers) }

// The window of the story's server, in its own time.
const checkWindow = 120 * time.Second

// backSlack is what may be more in use after a worker's end than before it
// came: a real driver takes memory for a server's own threads when they come.
// It is a small part of what the worker had, or nothing could be told.
func (c *checkConfig) backSlack() uint64 {
	if c.reduced {
		return 0
	}
	return 64 << 20
}

// story plays it; each part that fails is a step that is not OK, and the rest
// is left out.
func (c *checkConfig) story(r *deviceReport, say func(string, ...any)) {
	var all []*teller
	defer func() {
		for _, t := range all {
			select {
			case <-t.done:
			default:
				t.end(syscall.SIGKILL)
			}
		}
	}()
	began := time.Now()
	step := func(name string, f func() (string, error)) bool {
		at := time.Now()
		detail, err := f()
		if err != nil {
			detail = oneLine(err.Error())
		}
		r.Steps = append(r.Steps, checkStep{name, err == nil, detail, seconds(time.Since(at))})
		say("%s: %s %s", name, map[bool]string{true: "ok", false: "NOT OK"}[err == nil], detail)
		return err == nil
	}
	dir, err := checkFolder()
	if err != nil {
		r.Steps = append(r.Steps, checkStep{Name: "a folder", Detail: err.Error()})
		return
	}
	defer os.RemoveAll(dir)
	p := c.storyPlan()
	uuid := r.Devices[c.memory.device].UUID
	w, err := watch.Open(watch.Options{Library: c.nvml, Every: 20 * time.Millisecond})
	r.Watch = "on"
	if err != nil {
		r.Watch = "off: " + err.Error()
	} else {
		defer w.Close()
	}
	// used is by the watching library; without it nothing about memory can be
	// checked here, and that is a failure.
	used := func() (uint64, error) {
		if w == nil {
			return 0, fmt.Errorf("the device's memory cannot be read: %s", r.Watch)
		}
		list, _ := w.Read()
		for i := range list {
			if strings.EqualFold(list[i].UUID, uuid) {
				return list[i].Used, nil
			}
		}
		return 0, fmt.Errorf("the watching library does not show %s", uuid)
	}
	settled := func() (uint64, error) { time.Sleep(150 * time.Millisecond); return used() }
	socket := "ipc://" + filepath.Join(dir, "s", "socket")
	var tcp string
	var server, one, two *teller
	start := func(name string, to **teller, args ...string) (err error) {
		if *to, err = c.tell(args...); err == nil {
			all = append(all, *to)
		}
		return err
	}
	library := c.libraryArgs()
	worker := func(connect, model string) []string {
		return append([]string{
			"worker", "--connect", connect, "--backend", "cuda", "--device", fmt.Sprint(c.memory.device), "--model", model, "--time-scale", fmt.Sprint(p.scale),
			"--blocks", fmt.Sprint(p.blocks), "--block-bytes", fmt.Sprint(p.blockBytes), "--layers", fmt.Sprint(p.layers),
			"--prompts", "4", "--prompt-chunks", "2", "--every", "2s",
		}, library...)
	}
	var before, idle, with uint64
	ok := step("a server over CUDA IPC", func() (detail string, err error) {
		if before, err = settled(); err != nil {
			return "", err
		}
		args := append([]string{
			"run", "--bind", socket + ",tcp://127.0.0.1:0", "--http", "127.0.0.1:0", "--backend", "cuda", "--time-scale", fmt.Sprint(p.scale),
			"--worker-reap-timeout-seconds", fmt.Sprint(checkWindow.Seconds()), "--pool-bytes", "0", "--l1-bytes", "2GiB", "--log-format", "json",
		}, library...)
		if c.nvml != "" {
			args = append(args, "--nvml-library", c.nvml)
		}
		if err := start("server", &server, args...); err != nil {
			return "", err
		}
		lines, err := server.await(1, "the server serves", func(l map[string]any) bool { return l["msg"] == "serving" })
		if err != nil {
			return "", err
		}
		if list, _ := lines[0]["bind"].([]any); len(list) > 0 {
			for _, b := range list {
				if text := fmt.Sprint(b); strings.HasPrefix(text, "tcp://") {
					tcp = text
				}
			}
		}
		now, err := settled()
		return fmt.Sprintf("its contexts take %s", size(now-min(now, before))), err
	})
	ok = ok && step("a worker stores and retrieves, every byte verified", func() (string, error) {
		if err := start("two", &two, worker(socket, "m")...); err != nil {
			return "", err
		}
		return c.verified(two, r, p)
	})
	ok = ok && step("a second one, over tcp, whose death only the window tells", func() (detail string, err error) {
		if idle, err = settled(); err != nil {
			return "", err
		}
		if err := start("one", &one, worker(tcp, "m")...); err != nil {
			return "", err
		}
		if detail, err = c.verified(one, r, p); err != nil {
			return "", err
		}
		with, err = settled()
		if err == nil && with < idle+p.bytes() {
			err = fmt.Errorf("the device has given out %s before it came and %s with it; its memory has %s", size(idle), size(with), size(p.bytes()))
		}
		return fmt.Sprintf("%s; %s more are in use, of which its memory is %s", detail, size(with-idle), size(p.bytes())), err
	})
	back := func(t *teller, bound time.Duration) (string, error) {
		killed := time.Now()
		t.end(syscall.SIGKILL)
		held := uint64(0)
		for {
			now, err := used()
			if err != nil {
				return "", err
			}
			took := time.Since(killed)
			if took > 300*time.Millisecond && held == 0 {
				held = now // the process itself has gone, its memory may not have
			}
			if now <= idle+c.backSlack() {
				return fmt.Sprintf("after %s; %s more than before it came, %s while only the server held it", took.Round(time.Millisecond), size(now-min(now, idle)), size(held-min(held, idle))), nil
			}
			if took > bound {
				return "", fmt.Errorf("%s are still in use %s after the kill, %s before it came", size(now), took.Round(time.Millisecond), size(idle))
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	ok = ok && step("killed, its memory is back within window + window/4 + 1 s", func() (string, error) {
		return back(one, (checkWindow+checkWindow/4)/time.Duration(p.scale)+time.Second)
	})
	ok = ok && step("the other one was not disturbed", func() (string, error) {
		list, err := two.since(2, "retrieved")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d more retrieved", len(list)), nil
	})
	ok = ok && step("a successor over ipc, killed, is proven dead: its memory is back at once", func() (detail string, err error) {
		if err := start("one", &one, worker(socket, "m")...); err != nil {
			return "", err
		}
		if detail, err = c.verified(one, r, p); err != nil {
			return "", err
		}
		text, err := back(one, 5*time.Second)
		return detail + "; " + text, err
	})
	ok = ok && step("the same memory registered again while it is open", func() (string, error) { return c.again(socket, p, library, &all) })
	ok = ok && step("everybody leaves in order, and the device is as it was", func() (string, error) {
		if code, err := two.end(syscall.SIGTERM); err != nil || code != 0 {
			return "", fmt.Errorf("the worker ends with %d, %v", code, err)
		}
		if code, err := server.end(syscall.SIGTERM); err != nil || code != 0 {
			return "", fmt.Errorf("the server ends with %d, %v: %s", code, err, server.last)
		}
		after, err := settled()
		if err == nil && after > before+c.backSlack() {
			err = fmt.Errorf("%s are in use, %s before it all", size(after), size(before))
		}
		return fmt.Sprintf("%s more than before it all", size(after-min(after, before))), err
	})
	if !ok {
		r.Left = append(r.Left, "what comes after the step that is not OK")
	}
	say("the story took %s", time.Since(began).Round(time.Millisecond))
}

func (c *checkConfig) libraryArgs() []string {
	if c.memory.library == "" {
		return nil
	}
	return []string{"--cuda-library", c.memory.library}
}

// verified waits until a worker has stored and retrieved, and keeps its rates:
// bytes of a request over its time, the median, which includes the messages.
func (c *checkConfig) verified(t *teller, r *deviceReport, p storyPlan) (string, error) {
	stored, err := t.events(3, "stored")
	if err != nil {
		return "", err
	}
	retrieved, err := t.events(3, "retrieved")
	if err != nil {
		return "", err
	}
	for _, l := range retrieved {
		if l["verified"] != true {
			return "", fmt.Errorf("a retrieve is not verified: %v", l)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.list {
		if l["event"] == "wrong" || l["event"] == "failed" {
			return "", fmt.Errorf("a request went wrong: %v", l)
		}
	}
	median := func(list []map[string]any) float64 {
		var rates []float64
		for _, l := range list {
			bytes, _ := l["bytes"].(float64)
			took, _ := l["took_ms"].(float64)
			if took > 0 {
				rates = append(rates, bytes/took*1e3)
			}
		}
		slices.Sort(rates)
		return rates[len(rates)/2]
	}
	x := rate{Level: "server", Block: p.blockBytes, Store: median(stored), Retrieve: median(retrieved)}
	r.Rates = append(r.Rates, x)
	return fmt.Sprintf("%d stored, %d retrieved and verified; %s/s and %s/s of one request, messages included", len(stored), len(retrieved), size(uint64(x.Store)), size(uint64(x.Retrieve))), nil
}

// again registers the same memory a second time while it is open, and stores
// and retrieves after it.
func (c *checkConfig) again(socket string, p storyPlan, library []string, all *[]*teller) (string, error) {
	t, err := c.tell(append([]string{
		"worker", "control", "--connect", socket, "--backend", "cuda", "--device", fmt.Sprint(c.memory.device), "--time-scale", fmt.Sprint(p.scale), "--model", "again",
		"--blocks", "64", "--block-bytes", fmt.Sprint(p.blockBytes),
	}, library...)...)
	if err != nil {
		return "", err
	}
	*all = append(*all, t)
	ctx, cancel := context.WithTimeout(context.Background(), stepWait)
	defer cancel()
	for n := 1; n <= 3; n++ {
		fmt.Fprintln(t.in, "register")
		list, err := t.events(n, "registered")
		if err != nil {
			return "", err
		}
		if list[n-1]["ok"] != true {
			return "", fmt.Errorf("registration %d: %v", n, list[n-1]["reason"])
		}
		fmt.Fprintf(t.in, "store %d 3 256\n", 2*n)
		if _, err := t.events(2*n-1, "told"); err != nil {
			return "", err
		}
		fmt.Fprintf(t.in, "retrieve %d 3 256\n", 2*n+1)
		if _, err := t.events(n, "blocks-right"); err != nil {
			return "", err
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	fmt.Fprintln(t.in, "shutdown")
	select {
	case <-t.done:
	case <-ctx.Done():
		return "", fmt.Errorf("it does not leave")
	}
	return "three times, with bytes that are right after each", nil
}
