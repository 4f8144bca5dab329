package hostshm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Why this file: a process that is killed leaves its segments behind, and only
// their names can say whose they were. A name therefore holds the owner's PID,
// the time that process started (a PID alone is used again) and its PID
// namespace (in a shared folder another container's PIDs mean nothing here).

var serial atomic.Uint64

// NewName makes a name that no other process makes and that Sweep can judge:
// /PREFIX_NAMESPACE_PID_START_N. The prefix must be sound for CheckName and
// hold no '_' at its end.
func NewName(prefix string) (string, error) {
	space, err := namespace()
	if err != nil {
		return "", err
	}
	start, alive := startOf(os.Getpid())
	if !alive {
		return "", errors.New("hostshm: /proc does not show this process; mount /proc")
	}
	name := fmt.Sprintf("/%s_%d_%d_%d_%d", prefix, space, os.Getpid(), start, serial.Add(1))
	return name, CheckName(name)
}

// Sweep unlinks what dead processes of this PID namespace left: the segments
// that NewName(prefix) named and whose process is gone, is a zombie, or has
// another start time. Segments of other namespaces are left alone. It returns
// the names that went. dir empty is DefaultDir.
func Sweep(dir, prefix string) (gone []string, err error) {
	if dir == "" {
		dir = DefaultDir
	}
	space, err := namespace()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("hostshm: %w", err)
	}
	var errs []error
	for _, e := range entries {
		pid, start, ok := ownerOf(e.Name(), prefix, space)
		if !ok || !e.Type().IsRegular() {
			continue
		}
		if began, alive := startOf(pid); alive && began == start {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err == nil {
			gone = append(gone, "/"+e.Name())
		} else if !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return gone, errors.Join(errs...)
}

// ownerOf reads a name that NewName made in this namespace.
func ownerOf(file, prefix string, space uint64) (pid int, start uint64, ok bool) {
	rest, found := strings.CutPrefix(file, prefix+"_")
	parts := strings.Split(rest, "_")
	if !found || len(parts) != 4 {
		return 0, 0, false
	}
	var n [4]uint64
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 10, 63)
		if err != nil {
			return 0, 0, false
		}
		n[i] = v
	}
	if n[0] != space || n[1] == 0 || n[1] > 1<<31 {
		return 0, 0, false
	}
	return int(n[1]), n[2], true
}

// namespace is the number of this process's PID namespace.
func namespace() (uint64, error) {
	var st syscall.Stat_t
	if err := syscall.Stat("/proc/self/ns/pid", &st); err != nil {
		return 0, fmt.Errorf("hostshm: /proc does not show this process's namespace: %w; mount /proc", err)
	}
	return st.Ino, nil
}

// startOf returns when a process started, in the kernel's ticks since boot;
// false where there is none or only its remains.
func startOf(pid int) (ticks uint64, alive bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// The name in parentheses may hold anything, also parentheses.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0, false
	}
	ticks, err = strconv.ParseUint(fields[19], 10, 64)
	return ticks, err == nil
}
