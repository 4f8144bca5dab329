//go:build amd64 || arm64

package sim

import "unsafe"

// prefetch asks the processor to fetch so many cache lines from at on, and
// does not wait. It reads nothing and cannot fault, so no result depends on it.
//
//go:noescape
func prefetch(at unsafe.Pointer, lines int)
