package zmq

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"
)

// Why this file: a descriptor of the process behind an ipc connection, which
// tells of that process's end and, unlike a number, never comes to mean
// another one.
//
// The kernel keeps who connected. From 6.5 on it gives the descriptor itself,
// also across PID namespaces. Before, there is the number, of which nothing
// follows by itself: the process may be gone and the number another's. But a
// process gives up its number only after its descriptors, so a connection
// whose other end is open once the number was opened proves that the number
// was still its own. (Unless somebody else holds that end too; then the start
// time must at least not have changed under our hands.) In both ways the
// connection's own descriptor may meanwhile have become another connection's;
// that is asked last, of the monitor, which is told before it is closed.

const (
	soPeerPIDFD = 77     // SO_PEERPIDFD
	pidfdOpen   = 434    // pidfd_open(2), the same number everywhere
	pollHup     = 0x10   // the other end is closed
	pollRdHup   = 0x2000 // or closed for sending
)

// processBehind returns a descriptor of the process that opened the ipc
// connection at fd, nil where it cannot be had or the process cannot be sure.
// Other transports have none.
func processBehind(fd int) *os.File {
	if p, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, soPeerPIDFD); err == nil {
		return os.NewFile(uintptr(p), "process")
	} else if err != syscall.ENOPROTOOPT {
		return nil
	}
	return processByNumber(fd)
}

// processByNumber is processBehind for kernels that keep only the number.
func processByNumber(fd int) *os.File {
	who, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil || who.Pid <= 0 {
		return nil // no ipc, or not in this PID namespace
	}
	before := startOf(int(who.Pid))
	p, _, errno := syscall.Syscall(pidfdOpen, uintptr(who.Pid), 0, 0)
	if errno != 0 {
		return nil
	}
	f := os.NewFile(p, "process")
	if hungUp(fd) || before == "" || startOf(int(who.Pid)) != before {
		f.Close()
		return nil
	}
	return f
}

// hungUp reports whether the other end of a connection is closed.
func hungUp(fd int) bool {
	p := pollFD{fd: int32(fd), events: pollRdHup}
	var now syscall.Timespec
	n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return errno != 0 || n != 0 && p.revents&^pollIn != 0
}

// startOf is when a process started, in the kernel's own text, "" where there
// is none of that number.
func startOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name may have blanks and brackets; the start is the 20th behind it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// process is the descriptor that goes with a new peer.
func (r *Router) process(at int32) *os.File {
	fd := r.peers.entries[at].fd
	if !r.options.Processes || fd == unknownFD {
		return nil
	}
	domain, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_DOMAIN)
	if err != nil || domain != syscall.AF_UNIX {
		return nil
	}
	p := processBehind(fd)
	if r.look(); p != nil && r.peers.entries[at].leaving { // the connection's descriptor may be another's
		p.Close()
		p = nil
	}
	if p == nil {
		r.noProcess.Add(1)
	}
	return p
}
