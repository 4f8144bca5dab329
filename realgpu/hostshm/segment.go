package hostshm

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// Why this file: one mapped segment of a stranger. The descriptor stays open
// beside the mapping: it is the only way to ask later how long the segment
// still is, and it keeps the segment when its name is gone.

// DefaultDir is where the system keeps POSIX shared memory segments.
const DefaultDir = "/dev/shm"

type segment struct {
	fd       int
	data     []byte
	device   uint64
	inode    uint64
	required int64 // bytes that the exports need
}

var (
	errShort   = errors.New("the segment is shorter than its export says")
	errNoSpace = errors.New("no address space left for the mapping")
)

// openSegment opens the named segment and checks that it has the bytes that
// its exports need. It is not mapped yet.
func openSegment(dir, name string, required uint64) (s segment, err error) {
	if err := CheckName(name); err != nil {
		return s, err
	}
	if required == 0 || required > 1<<62 {
		return s, fmt.Errorf("%s: an export of %d bytes", name, required)
	}
	// No symbolic link: the name is the file. Not blocking: somebody may have
	// put a pipe there.
	fd, err := retryInt(func() (int, error) {
		return syscall.Open(dir+name, syscall.O_RDWR|syscall.O_CLOEXEC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	})
	if err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	var st syscall.Stat_t
	err = syscall.Fstat(fd, &st)
	switch {
	case err != nil:
	case st.Mode&syscall.S_IFMT != syscall.S_IFREG:
		err = errors.New("not a segment")
	case st.Size < int64(required):
		err = fmt.Errorf("%w: %d bytes of %d", errShort, st.Size, required)
	}
	if err != nil {
		syscall.Close(fd)
		return s, fmt.Errorf("%s: %w", name, err)
	}
	return segment{fd: fd, device: uint64(st.Dev), inode: st.Ino, required: int64(required)}, nil
}

// length is what the mapping will be charged: whole pages, as /proc shows it.
func (s *segment) length() uint64 {
	page := uint64(os.Getpagesize())
	return (uint64(s.required) + page - 1) / page * page
}

func (s *segment) attach() (err error) {
	s.data, err = syscall.Mmap(s.fd, 0, int(s.length()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if errors.Is(err, syscall.ENOMEM) {
		return errNoSpace
	}
	return err
}

// whole reports whether the segment still has the bytes of its exports.
func (s *segment) whole() bool {
	var st syscall.Stat_t
	return syscall.Fstat(s.fd, &st) == nil && st.Size >= s.required
}

func (s *segment) contains(address uintptr) bool {
	if len(s.data) == 0 {
		return false
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(s.data)))
	return address >= start && address-start < uintptr(len(s.data))
}

// release unmaps and closes. The descriptor goes only with the mapping, so a
// release that fails can be tried again.
func (s *segment) release() error {
	if s.data != nil {
		if err := syscall.Munmap(s.data); err != nil {
			return err
		}
		s.data = nil
	}
	if s.fd >= 0 {
		syscall.Close(s.fd) // whatever it says, the descriptor is gone
		s.fd = -1
	}
	return nil
}

// retryInt repeats a call that a signal interrupted.
func retryInt(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != syscall.EINTR {
			return n, err
		}
	}
}
