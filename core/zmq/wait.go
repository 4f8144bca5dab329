package zmq

import (
	"encoding/binary"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// Why this file: the goroutine of a socket waits for two kinds of news in one
// system call, the socket's and other goroutines'. libzmq's descriptors tell of
// the first, an eventfd of the second. (zmq4's Poller sees sockets only, and
// allocates on each call.)

const (
	pollIn      = 0x1
	eventfdOpts = 0x800 | 0x80000 // EFD_NONBLOCK | EFD_CLOEXEC
)

type pollFD struct {
	fd      int32
	events  int16
	revents int16
}

// waiter waits on a few descriptors, of which the first is the wake-up.
type waiter struct {
	fds []pollFD
}

func newWaiter() (*waiter, error) {
	fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, eventfdOpts, 0)
	if errno != 0 {
		return nil, errno
	}
	w := new(waiter)
	w.add(int(fd))
	return w, nil
}

// add watches one more descriptor and returns its place.
func (w *waiter) add(fd int) int {
	w.fds = append(w.fds, pollFD{fd: int32(fd), events: pollIn})
	return len(w.fds) - 1
}

// wait returns when a descriptor can be read or the time is over.
func (w *waiter) wait(limit time.Duration) {
	ts := syscall.NsecToTimespec(int64(max(limit, 0)))
	for i := range w.fds {
		w.fds[i].revents = 0
	}
	_, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&w.fds[0])), uintptr(len(w.fds)),
		uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	runtime.KeepAlive(w)
	if errno != 0 {
		for i := range w.fds {
			w.fds[i].revents = pollIn // interrupted: look everywhere
		}
	}
	if w.fds[0].revents != 0 {
		var b [8]byte
		syscall.Read(int(w.fds[0].fd), b[:])
	}
}

// ready reports whether the last wait saw something at a place.
func (w *waiter) ready(place int) bool { return w.fds[place].revents != 0 }

// wake makes a wait return; from any goroutine.
func (w *waiter) wake() {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], 1)
	syscall.Write(int(w.fds[0].fd), b[:])
}

func (w *waiter) close() { syscall.Close(int(w.fds[0].fd)) }
