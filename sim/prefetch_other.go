//go:build !amd64 && !arm64

package sim

import "unsafe"

// prefetch does nothing where we have no instruction for it.
func prefetch(unsafe.Pointer, int) {}
