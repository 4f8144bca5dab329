package cuda

import (
	"encoding/binary"

	"github.com/ebitengine/purego"
)

// openHandle calls cuIpcOpenMemHandle, which takes the handle's 64 bytes by
// value: on amd64 such a value lies on the stack, behind the arguments that
// registers hold. So the six integer registers are filled first, the last four
// of them with nothing.
func openHandle(function, address uintptr, handle *[handleBytes]byte, flags uintptr) Result {
	var w [handleBytes / 8]uintptr
	for i := range w {
		w[i] = uintptr(binary.LittleEndian.Uint64(handle[8*i:]))
	}
	r, _, _ := purego.SyscallN(function, address, flags, 0, 0, 0, 0, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7])
	return Result(int32(r))
}
