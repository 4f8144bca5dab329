package hostshm

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"vigil/core"
	"vigil/realgpu"
)

// Why this file: the worker's side. A worker of ours keeps its KV memory in a
// segment, fills it with a pattern, and checks every byte that comes back.

// Segment is shared memory that this process made. Not safe for concurrent use
// of the same bytes; Close may be called again.
type Segment struct {
	dir, name string
	mu        sync.Mutex
	data      []byte
}

// Create makes a segment of so many bytes that did not exist before, readable
// and writable by this user alone, and maps it. Its pages are taken at once:
// where the host has no room the error says so here, while without it a later
// write would end the process with SIGBUS. dir empty is DefaultDir.
func Create(dir, name string, bytes int64) (*Segment, error) {
	if dir == "" {
		dir = DefaultDir
	}
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if bytes <= 0 {
		return nil, fmt.Errorf("segment %s must have at least 1 byte; asked for %d", name, bytes)
	}
	fd, err := retryInt(func() (int, error) {
		return syscall.Open(dir+name, syscall.O_RDWR|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0o600)
	})
	if err != nil {
		return nil, fmt.Errorf("segment %s: %w", name, err)
	}
	defer syscall.Close(fd)
	s := &Segment{dir: dir, name: name}
	if _, err = retryInt(func() (int, error) { return 0, syscall.Fallocate(fd, 0, 0, bytes) }); err == nil {
		s.data, err = syscall.Mmap(fd, 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	if err != nil {
		syscall.Unlink(dir + name)
		if errors.Is(err, syscall.ENOSPC) {
			err = fmt.Errorf("%w: %s has no room for %d bytes; make it larger (in a container: its shm size)", err, dir, bytes)
		}
		return nil, fmt.Errorf("segment %s: %w", name, err)
	}
	return s, nil
}

// Name is what the other side opens it by.
func (s *Segment) Name() string { return s.name }

// Bytes is the memory; nil after Close.
func (s *Segment) Bytes() []byte { return s.data }

// Export names part of the segment as one tensor: kind, handle and device are
// filled in, the rest is the caller's.
func (s *Segment) Export(e core.Export) core.Export {
	e.Kind, e.Handle, e.Device = core.HostSHM, []byte(s.name), []byte("cpu")
	return e
}

// Unlink takes the name away. Who has it open keeps it.
func (s *Segment) Unlink() error {
	if err := syscall.Unlink(s.dir + s.name); err != nil && !errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("segment %s: %w", s.name, err)
	}
	return nil
}

// Close unlinks and unmaps.
func (s *Segment) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.Unlink()
	if s.data != nil {
		if e := syscall.Munmap(s.data); e != nil {
			return errors.Join(err, fmt.Errorf("segment %s: %w", s.name, e))
		}
		s.data = nil
	}
	return err
}

// Fill and Mismatch write and compare the pattern of realgpu.
func Fill(b []byte, seed uint64)         { realgpu.Fill(b, seed) }
func Mismatch(b []byte, seed uint64) int { return realgpu.Mismatch(b, seed) }
