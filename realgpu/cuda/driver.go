package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Why this file: the driver's library and its functions. Only what is called
// from here is looked up, under the names of the version whose meaning we mean.

// Library is what the driver's library is called where nothing else is said.
const Library = "libcuda.so.1"

// handleBytes is the length of an IPC handle.
const handleBytes = 64

// initWait bounds the driver's own start: one that hangs must not keep a
// program that can do without it.
const initWait = 30 * time.Second

// The flags that are passed.
const (
	streamNonBlocking = 1
	eventBlocking     = 1
	eventNoTiming     = 2
	hostPortable      = 1
	lazyPeerAccess    = 1
)

// function is one of the driver's.
type function struct {
	name string // as errors say it
	at   uintptr
}

// Driver is an opened driver. Its methods are safe for concurrent use; those
// that need a context are called on a lane.
type Driver struct {
	Path    string
	Version int // 1000 times the major and 10 times the minor

	getVersion, getCount, get, getName, getUUID, totalMem   function
	retain, release, setCurrent                             function
	memInfo, alloc, free, addressRange, hostAlloc, hostFree function
	register, unregister                                    function
	getHandle, openHandle, closeHandle                      function
	toHost, toDevice, fill                                  function
	streamCreate, streamDestroy, streamWait                 function
	eventCreate, eventDestroy, eventRecord                  function
	eventQuery, eventWait                                   function
}

// errNotFound is a library that is not there at all.
var errNotFound = errors.New("was not found")

// Load opens a driver's library, "" is Library, and starts it. The error is one
// line that says why there is no driver to use.
func Load(path string) (*Driver, error) {
	if path == "" {
		path = Library
	}
	// The reason why a library cannot be opened is kept for each thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	library, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		if strings.Contains(err.Error(), "No such file") {
			return nil, fmt.Errorf("%s %w", path, errNotFound)
		}
		return nil, fmt.Errorf("%s cannot be loaded: %s", path, strings.TrimPrefix(err.Error(), path+": "))
	}
	d := &Driver{Path: path}
	var start function
	for _, f := range []struct {
		to     *function
		symbol string
	}{
		{&start, "cuInit"}, {&d.getVersion, "cuDriverGetVersion"},
		{&d.getCount, "cuDeviceGetCount"}, {&d.get, "cuDeviceGet"}, {&d.getName, "cuDeviceGetName"}, {&d.getUUID, "cuDeviceGetUuid_v2"}, {&d.totalMem, "cuDeviceTotalMem_v2"},
		{&d.retain, "cuDevicePrimaryCtxRetain"}, {&d.release, "cuDevicePrimaryCtxRelease_v2"}, {&d.setCurrent, "cuCtxSetCurrent"},
		{&d.memInfo, "cuMemGetInfo_v2"}, {&d.alloc, "cuMemAlloc_v2"}, {&d.free, "cuMemFree_v2"}, {&d.addressRange, "cuMemGetAddressRange_v2"},
		{&d.hostAlloc, "cuMemHostAlloc"}, {&d.hostFree, "cuMemFreeHost"}, {&d.register, "cuMemHostRegister_v2"}, {&d.unregister, "cuMemHostUnregister"},
		{&d.getHandle, "cuIpcGetMemHandle"}, {&d.openHandle, "cuIpcOpenMemHandle_v2"}, {&d.closeHandle, "cuIpcCloseMemHandle"},
		{&d.toHost, "cuMemcpyDtoHAsync_v2"}, {&d.toDevice, "cuMemcpyHtoDAsync_v2"}, {&d.fill, "cuMemsetD32Async"},
		{&d.streamCreate, "cuStreamCreate"}, {&d.streamDestroy, "cuStreamDestroy_v2"}, {&d.streamWait, "cuStreamSynchronize"},
		{&d.eventCreate, "cuEventCreate"}, {&d.eventDestroy, "cuEventDestroy_v2"}, {&d.eventRecord, "cuEventRecord"},
		{&d.eventQuery, "cuEventQuery"}, {&d.eventWait, "cuEventSynchronize"},
	} {
		f.to.name = strings.TrimSuffix(f.symbol, "_v2")
		if f.to.at, err = purego.Dlsym(library, f.symbol); err != nil {
			return nil, fmt.Errorf("%s has no %s: it is too old, or no driver", path, f.symbol)
		}
	}
	started := make(chan Result, 1)
	go func() { started <- start.call(0) }()
	select {
	case r := <-started:
		if r != Success {
			return nil, fmt.Errorf("%s: %w", path, &Error{Call: start.name, Result: r})
		}
	case <-time.After(initWait):
		return nil, fmt.Errorf("%s: %s has not returned in %s", path, start.name, initWait)
	}
	var version int32
	if r := d.getVersion.call(pointer(&version)); r != Success {
		return nil, fmt.Errorf("%s: %w", path, &Error{Call: d.getVersion.name, Result: r})
	}
	d.Version = int(version)
	return d, nil
}

// call calls the driver. Pointers among the arguments are of memory that the
// caller keeps alive until it returns.
func (f *function) call(arguments ...uintptr) Result {
	r, _, _ := purego.SyscallN(f.at, arguments...)
	return Result(int32(r))
}

// pointer is the address of a result, for the length of one call. The caller
// reads what is there after the call, so it is alive until then.
func pointer[T any](to *T) uintptr { return uintptr(unsafe.Pointer(escaped(to))) }

// escaped has the compiler put what to points to on the heap: the driver must
// not write into a stack that has moved.
func escaped[T any](to *T) *T {
	escape(unsafe.Pointer(to))
	return to
}

// escape is a variable, so that the compiler does not see what it does.
var escape = func(unsafe.Pointer) {}

var loads struct {
	sync.Mutex
	drivers map[string]*Driver
}

// Shared is Load with one driver for each path in a process.
func Shared(path string) (*Driver, error) {
	loads.Lock()
	defer loads.Unlock()
	if d := loads.drivers[path]; d != nil {
		return d, nil
	}
	d, err := Load(path)
	if err == nil {
		if loads.drivers == nil {
			loads.drivers = map[string]*Driver{}
		}
		loads.drivers[path] = d
	}
	return d, err
}
