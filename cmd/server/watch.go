package main

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"vigil/core"
	"vigil/core/zmq"
)

// Why this file: the host's proof of death. Of each connection over ipc there
// is a descriptor of the process that opened it (core/zmq/process.go), and a
// descriptor that can be read is a process that is dead: not silent, not
// stopped, not merely cut off. One goroutine waits for all of them. Whatever
// it does not watch is left to the window.

const (
	// mostWatched bounds the connections that are watched at once, which take a
	// descriptor each. A node has some tens of workers; what connects beyond
	// the bound is counted and left to the window.
	mostWatched = 4096
	// afterClose is how long a process is watched whose connection closed. One
	// that is killed is dead only after all of its descriptors are closed, and
	// a device's driver may take its time over one. One that lives has connected
	// anew by then, and is watched there.
	afterClose = 10 * time.Second
	// afterDeath is how long a death waits for the connection's closing, which
	// comes behind the last messages in it.
	afterDeath = 200 * time.Millisecond
)

// watching is one connection of a process.
type watching struct {
	process *os.File // nil once it is dead
	closed  bool     // the connection
}

// due is when something that waits on a connection is settled.
type due struct {
	peer core.Peer
	at   time.Time
}

// watcher is the server's sink with that proof: it passes on what comes, and
// calls exited once for each connection whose process it saw die.
type watcher struct {
	zmq.Sink
	exited     func(core.Peer)
	log        *slog.Logger
	most       int
	afterClose time.Duration

	epoll, wakeUp int
	running       sync.WaitGroup

	mu      sync.Mutex
	watched map[core.Peer]*watching
	dead    []due // their connections are open yet
	left    []due // their connections closed, the first to close first
	ended   bool

	beyond, proven atomic.Uint64
}

// newWatcher starts the goroutine, which stop ends.
func newWatcher(sink zmq.Sink, exited func(core.Peer), log *slog.Logger) (w *watcher, err error) {
	w = &watcher{Sink: sink, exited: exited, log: log, most: mostWatched, afterClose: afterClose, watched: map[core.Peer]*watching{}}
	if w.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("watching processes: %w; --unprotect proof-of-death does without", err)
	}
	wakeUp, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	w.wakeUp = int(wakeUp)
	if errno != 0 {
		syscall.Close(w.epoll)
		return nil, fmt.Errorf("watching processes: %w; --unprotect proof-of-death does without", errno)
	}
	if err = w.add(w.wakeUp, 0); err != nil {
		syscall.Close(w.epoll)
		syscall.Close(w.wakeUp)
		return nil, fmt.Errorf("watching processes: %w; --unprotect proof-of-death does without", err)
	}
	w.running.Go(w.run)
	return w, nil
}

// add has epoll tell of a descriptor under its peer's number; 0 is the wake-up,
// for peers count from 1.
func (w *watcher) add(fd int, peer core.Peer) error {
	e := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(uint32(peer)), Pad: int32(uint32(peer >> 32))}
	return syscall.EpollCtl(w.epoll, syscall.EPOLL_CTL_ADD, fd, &e)
}

func peerOf(e *syscall.EpollEvent) core.Peer {
	return core.Peer(uint32(e.Fd)) | core.Peer(uint32(e.Pad))<<32
}

// Opened implements zmq.Opener.
func (w *watcher) Opened(peer core.Peer, from zmq.Origin) {
	if from.Process == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.watched) >= w.most {
		w.forget()
	}
	if w.ended || len(w.watched) >= w.most {
		from.Process.Close()
		if w.beyond.Add(1) == 1 && !w.ended {
			w.log.Warn("more local connections than are watched: a death behind the others is seen by the window only", "watched", w.most)
		}
		return
	}
	if err := w.add(int(from.Process.Fd()), peer); err != nil {
		from.Process.Close()
		w.beyond.Add(1)
		w.log.Warn("a process cannot be watched: the window decides", "error", err)
		return
	}
	w.watched[peer] = &watching{process: from.Process}
}

// forget makes room: of the connections that closed, the first.
func (w *watcher) forget() {
	for len(w.left) > 0 {
		peer := w.left[0].peer
		w.left = w.left[1:]
		if x := w.watched[peer]; x != nil {
			w.drop(peer, x)
			return
		}
	}
}

// drop ends the watch of a connection.
func (w *watcher) drop(peer core.Peer, x *watching) {
	w.release(x)
	delete(w.watched, peer)
}

// release gives the descriptor back.
func (w *watcher) release(x *watching) {
	if x.process != nil {
		syscall.EpollCtl(w.epoll, syscall.EPOLL_CTL_DEL, int(x.process.Fd()), nil)
		x.process.Close()
		x.process = nil
	}
}

// Closed implements zmq.Sink.
func (w *watcher) Closed(peer core.Peer) {
	w.Sink.Closed(peer)
	w.mu.Lock()
	x := w.watched[peer]
	died := x != nil && x.process == nil
	switch {
	case died:
		delete(w.watched, peer)
	case x != nil:
		x.closed = true
		w.left = append(w.left, due{peer, time.Now().Add(w.afterClose)})
		if len(w.left) == 1 {
			w.wake() // else the goroutine has a time to wake at that is no later
		}
	}
	w.mu.Unlock()
	if died {
		w.tell(peer)
	}
}

func (w *watcher) tell(peer core.Peer) {
	w.proven.Add(1)
	w.exited(peer)
}

func (w *watcher) wake() {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], 1)
	syscall.Write(w.wakeUp, b[:])
}

func (w *watcher) run() {
	var events [64]syscall.EpollEvent
	var dead []core.Peer
	for wait := time.Duration(-1); ; {
		limit := -1
		if wait >= 0 {
			limit = int(wait/time.Millisecond) + 1
		}
		syscall.EpollWait(w.epoll, events[:], limit)
		now := time.Now()
		w.mu.Lock()
		if w.ended {
			w.mu.Unlock()
			return
		}
		// Every death is looked for after the time was read, so that nothing is
		// given up of which the descriptor already tells.
		dead = dead[:0]
		for n := len(events); n == len(events); {
			var err error
			if n, err = syscall.EpollWait(w.epoll, events[:], 0); err == syscall.EINTR {
				n = len(events)
				continue
			}
			for i := range max(n, 0) {
				dead = w.fired(&events[i], now, dead)
			}
		}
		dead, wait = w.settle(now, dead)
		w.mu.Unlock()
		for _, peer := range dead {
			w.tell(peer)
		}
	}
}

// fired takes one event.
func (w *watcher) fired(e *syscall.EpollEvent, now time.Time, dead []core.Peer) []core.Peer {
	peer := peerOf(e)
	if peer == 0 {
		var b [8]byte
		syscall.Read(w.wakeUp, b[:])
		return dead
	}
	x := w.watched[peer]
	if x == nil || x.process == nil {
		return dead
	}
	w.release(x)
	if x.closed {
		delete(w.watched, peer)
		return append(dead, peer)
	}
	w.dead = append(w.dead, due{peer, now.Add(afterDeath)})
	return dead
}

// settle ends what is due, and says how long nothing will be, below 0 for ever.
func (w *watcher) settle(now time.Time, dead []core.Peer) ([]core.Peer, time.Duration) {
	for len(w.dead) > 0 && !now.Before(w.dead[0].at) {
		peer := w.dead[0].peer
		w.dead = w.dead[1:]
		if w.watched[peer] != nil {
			delete(w.watched, peer)
			dead = append(dead, peer)
		}
	}
	for len(w.left) > 0 && !now.Before(w.left[0].at) {
		peer := w.left[0].peer
		w.left = w.left[1:]
		if x := w.watched[peer]; x != nil {
			w.drop(peer, x)
		}
	}
	wait := time.Duration(-1)
	for _, list := range [][]due{w.dead, w.left} {
		if len(list) > 0 && (wait < 0 || list[0].at.Sub(now) < wait) {
			wait = list[0].at.Sub(now)
		}
	}
	return dead, wait
}

// stop ends the goroutine and gives every descriptor back. Nobody is told any
// more; a connection that opens after it is not watched.
func (w *watcher) stop() {
	if w == nil {
		return
	}
	w.mu.Lock()
	over := w.ended
	w.ended = true
	w.mu.Unlock()
	if over {
		return
	}
	w.wake()
	w.running.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for peer, x := range w.watched {
		w.drop(peer, x)
	}
	w.dead, w.left = nil, nil
	syscall.Close(w.epoll)
	syscall.Close(w.wakeUp)
}

// proofStatus is what the status and the metrics say of it.
type proofStatus struct {
	State   string `json:"state"` // on, or off: and why
	Watched int    `json:"watched_connections"`
	Most    int    `json:"watched_connections_bound"`
	Proven  uint64 `json:"connections_proven_dead"`
	// Connections over ipc that only the window decides about.
	Beyond  uint64 `json:"connections_beyond_bound"`
	Unknown uint64 `json:"connections_without_descriptor"`
}

// write is for a person.
func (s *proofStatus) write() string {
	if s.State != proofOn {
		return s.State
	}
	text := fmt.Sprintf("on: %d connections watched", s.Watched)
	if n := s.Beyond + s.Unknown; n > 0 {
		text += fmt.Sprintf("; %d could not be", n)
	}
	return text
}

func (v *service) proof(t *zmq.Stats) proofStatus {
	s := proofStatus{State: v.config.proof()}
	if w := v.watcher; w != nil {
		w.mu.Lock()
		s.Watched, s.Most = len(w.watched), w.most
		w.mu.Unlock()
		s.Proven, s.Beyond, s.Unknown = w.proven.Load(), w.beyond.Load(), t.NoProcess
	}
	return s
}

// proofOn is what runConfig.proof says where processes are watched.
const proofOn = "on"

// proof says whether a death is seen at once, or why not.
func (c *runConfig) proof() string {
	switch {
	case c.legacy:
		return "off: legacy"
	case !c.core.Protections.ProofOfDeath:
		return "off: the design is without"
	}
	for _, b := range c.bind {
		if strings.HasPrefix(b, "ipc://") {
			return proofOn
		}
	}
	return "off: no ipc:// bind"
}
