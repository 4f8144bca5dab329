package browser

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// callBound is how long one call may take.
const callBound = 60 * time.Second

// programs are what a Chromium is called.
var programs = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless_shell"}

// Find returns the path of a Chromium: the one that VIGIL_CHROMIUM names, else
// the first in the path. It is empty where there is none.
func Find() string {
	if named := os.Getenv("VIGIL_CHROMIUM"); named != "" {
		return named
	}
	for _, p := range programs {
		if at, err := exec.LookPath(p); err == nil {
			return at
		}
	}
	return ""
}

// Wanted says what a test does that needs a browser: it runs (the path), or it
// is skipped for a reason, or it fails for it, where VIGIL_BROWSER is required.
func Wanted() (path, why string, fail bool) {
	if os.Getenv("VIGIL_BROWSER") == "off" {
		return "", "VIGIL_BROWSER is off", false
	}
	if at := Find(); at != "" {
		return at, "", false
	}
	return "", "no Chromium found (install it, or name it by VIGIL_CHROMIUM; VIGIL_BROWSER=required makes this a failure)", os.Getenv("VIGIL_BROWSER") == "required"
}

// Browser is one running browser.
type Browser struct {
	cmd     *exec.Cmd
	to      *os.File
	profile string

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
	pages   map[string]*Page // by session
	ended   error
}

type answer struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
	Session string `json:"sessionId"`
}

// Start starts the browser of a path.
func Start(path string) (*Browser, error) {
	profile, err := os.MkdirTemp("", "vigil-browser-")
	if err != nil {
		return nil, err
	}
	theirs, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// Without its sandbox it also starts as root and in a container; it only ever
	// opens pages of ours.
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
		"--disable-extensions", "--disable-background-networking", "--disable-dev-shm-usage", "--mute-audio",
		"--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{theirs, theirOut} // 3 and 4, as the flag has it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		for _, f := range []*os.File{theirs, to, from, theirOut} {
			f.Close()
		}
		os.RemoveAll(profile)
		return nil, fmt.Errorf("cannot start %s: %w", path, err)
	}
	theirs.Close()
	theirOut.Close()
	b := &Browser{cmd: cmd, to: to, profile: profile, waiting: map[int]chan answer{}, pages: map[string]*Page{}}
	go b.read(from)
	return b, nil
}

// Close ends the browser and every process that it started.
func (b *Browser) Close() {
	_ = b.call("", "Browser.close", nil, nil)
	done := make(chan struct{})
	go func() { b.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
	}
	syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL) // the group is this browser's own
	b.to.Close()
	for range 20 { // its last writers may still be at it
		if os.RemoveAll(b.profile) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// read takes the browser's messages: JSON, each with a zero byte behind it.
func (b *Browser) read(from io.ReadCloser) {
	defer from.Close()
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			b.ended = errors.New("the browser has ended")
			for id, c := range b.waiting {
				close(c)
				delete(b.waiting, id)
			}
			b.mu.Unlock()
			return
		}
		var a answer
		if json.Unmarshal(text[:len(text)-1], &a) != nil {
			continue
		}
		b.mu.Lock()
		if c := b.waiting[a.ID]; a.ID != 0 && c != nil {
			delete(b.waiting, a.ID)
			c <- a
		} else if p := b.pages[a.Session]; p != nil {
			p.event(a.Method, a.Params)
		}
		b.mu.Unlock()
	}
}

// call asks the browser, or the page of a session, and waits for the answer.
func (b *Browser) call(session, method string, params, result any) error {
	b.mu.Lock()
	if b.ended != nil {
		b.mu.Unlock()
		return b.ended
	}
	b.last++
	id, c := b.last, make(chan answer, 1)
	b.waiting[id] = c
	b.mu.Unlock()

	message := map[string]any{"id": id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if session != "" {
		message["sessionId"] = session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case a, ok := <-c:
		switch {
		case !ok:
			return fmt.Errorf("%s: the browser has ended", method)
		case a.Error != nil:
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		case result != nil:
			return json.Unmarshal(a.Result, result)
		}
		return nil
	case <-time.After(callBound):
		return fmt.Errorf("%s: no answer within %s", method, callBound)
	}
}

// fileURL is the address of a file, with a fragment that may follow a #.
func fileURL(path string) (string, error) {
	path, fragment, has := strings.Cut(path, "#")
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	url := "file://" + strings.NewReplacer("%", "%25", " ", "%20", "?", "%3F", "#", "%23").Replace(filepath.ToSlash(path))
	if has {
		url += "#" + fragment
	}
	return url, nil
}
