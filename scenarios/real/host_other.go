//go:build !linux

package real

import "syscall"

// supported reports whether real processes can be played on this system: their
// truth is read from Linux' /proc, and none is had here.
const supported = false

func withParent(*syscall.SysProcAttr) {}

func hurryThread() {}
