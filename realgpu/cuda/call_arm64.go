package cuda

import (
	"unsafe"

	"github.com/ebitengine/purego"
)

// openHandle calls cuIpcOpenMemHandle, which takes the handle's 64 bytes by
// value: on arm64 the caller makes a copy and passes where it is.
func openHandle(function, address uintptr, handle *[handleBytes]byte, flags uintptr) Result {
	own := *handle
	r, _, _ := purego.SyscallN(function, address, uintptr(unsafe.Pointer(&own)), flags)
	return Result(int32(r))
}
