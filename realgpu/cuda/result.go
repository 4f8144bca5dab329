package cuda

import (
	"errors"
	"fmt"
	"strconv"

	"vigil/core"
)

// Why this file: what the driver answers, by name. An operator reads the name,
// the call and the device; the code asks only three things of a result.

// Result is what a call of the driver returns (CUresult).
type Result int32

// The results that the code itself asks for.
const (
	Success           Result = 0
	OutOfMemory       Result = 2
	NotReady          Result = 600
	NoDevice          Result = 100
	InvalidDevice     Result = 101
	PeerUnsupported   Result = 217
	InvalidContext    Result = 201
	NotRegistered     Result = 713
	AlreadyRegistered Result = 712
)

var resultNames = map[Result]string{
	0: "CUDA_SUCCESS", 1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY", 3: "CUDA_ERROR_NOT_INITIALIZED", 4: "CUDA_ERROR_DEINITIALIZED",
	34: "CUDA_ERROR_STUB_LIBRARY", 36: "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", 46: "CUDA_ERROR_DEVICE_UNAVAILABLE",
	100: "CUDA_ERROR_NO_DEVICE", 101: "CUDA_ERROR_INVALID_DEVICE", 102: "CUDA_ERROR_DEVICE_NOT_LICENSED",
	201: "CUDA_ERROR_INVALID_CONTEXT", 205: "CUDA_ERROR_MAP_FAILED", 206: "CUDA_ERROR_UNMAP_FAILED", 208: "CUDA_ERROR_ALREADY_MAPPED",
	210: "CUDA_ERROR_ALREADY_ACQUIRED", 211: "CUDA_ERROR_NOT_MAPPED", 214: "CUDA_ERROR_ECC_UNCORRECTABLE", 215: "CUDA_ERROR_UNSUPPORTED_LIMIT",
	216: "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", 217: "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", 220: "CUDA_ERROR_NVLINK_UNCORRECTABLE", 226: "CUDA_ERROR_CONTAINED",
	304: "CUDA_ERROR_OPERATING_SYSTEM", 400: "CUDA_ERROR_INVALID_HANDLE", 401: "CUDA_ERROR_ILLEGAL_STATE", 500: "CUDA_ERROR_NOT_FOUND", 600: "CUDA_ERROR_NOT_READY",
	700: "CUDA_ERROR_ILLEGAL_ADDRESS", 701: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", 702: "CUDA_ERROR_LAUNCH_TIMEOUT",
	704: "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", 705: "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", 708: "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE",
	709: "CUDA_ERROR_CONTEXT_IS_DESTROYED", 710: "CUDA_ERROR_ASSERT", 711: "CUDA_ERROR_TOO_MANY_PEERS",
	712: "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", 713: "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", 714: "CUDA_ERROR_HARDWARE_STACK_ERROR",
	715: "CUDA_ERROR_ILLEGAL_INSTRUCTION", 716: "CUDA_ERROR_MISALIGNED_ADDRESS", 717: "CUDA_ERROR_INVALID_ADDRESS_SPACE", 718: "CUDA_ERROR_INVALID_PC",
	719: "CUDA_ERROR_LAUNCH_FAILED", 721: "CUDA_ERROR_TENSOR_MEMORY_LEAK",
	800: "CUDA_ERROR_NOT_PERMITTED", 801: "CUDA_ERROR_NOT_SUPPORTED", 802: "CUDA_ERROR_SYSTEM_NOT_READY", 803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
	804: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", 805: "CUDA_ERROR_MPS_CONNECTION_FAILED", 806: "CUDA_ERROR_MPS_RPC_FAILURE",
	807: "CUDA_ERROR_MPS_SERVER_NOT_READY", 808: "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", 809: "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED",
	810: "CUDA_ERROR_MPS_CLIENT_TERMINATED", 909: "CUDA_ERROR_TIMEOUT", 911: "CUDA_ERROR_EXTERNAL_DEVICE", 999: "CUDA_ERROR_UNKNOWN",
}

// String is the result's name with its number, or the number alone.
func (r Result) String() string {
	if name, ok := resultNames[r]; ok {
		return name + " (" + strconv.Itoa(int(r)) + ")"
	}
	return "CUresult " + strconv.Itoa(int(r))
}

// Sticky reports whether the context that gave this result answers nothing
// else from then on: its device is of no use to this process any more. Nothing
// is in here that a stranger's handle could bring about in an open.
func (r Result) Sticky() bool {
	switch r {
	case 4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 806, 810, 911:
		return true
	}
	return false
}

// Error is a call that failed.
type Error struct {
	Call   string // of the driver, without its version's suffix
	Device string // as people name it; empty where the call is about none
	Result Result
}

func (e *Error) Error() string {
	if e.Device == "" {
		return e.Call + ": " + e.Result.String()
	}
	return fmt.Sprintf("%s on %s: %s", e.Call, e.Device, e.Result)
}

// resultOf is the driver's result inside an error, Success where there is none.
func resultOf(err error) Result {
	var e *Error
	if errors.As(err, &e) {
		return e.Result
	}
	return Success
}

// failureOf is what the core is told of an error of an operation.
func failureOf(err error, otherwise core.Failure) core.Failure {
	switch {
	case err == nil:
		return core.NoFailure
	case resultOf(err) == OutOfMemory, errors.Is(err, errNoRoom):
		return core.FailOutOfMemory
	}
	return otherwise
}

var errNoRoom = errors.New("no room")
