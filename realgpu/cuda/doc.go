// Package cuda is real device memory: the memory of a worker is an allocation
// of its device, exported as a CUDA IPC handle, which the server opens, copies
// chunks out of and into, and closes. What the server has open stays charged to
// the device after the worker's death, until the server closes it.
//
// The driver's library is opened at run time, so that a program with this
// package in it runs with and without a device. Load says in one line why a
// driver cannot be used. Nothing here needs a C compiler; the calling
// conventions of amd64 and arm64 are written out (call_*.go).
//
// Contract. Memory implements realgpu.Backend. Each call returns at once; its
// end comes as one core.Input through Options.Done, from another goroutine, or
// never. An exported allocation is opened once in this process, however often,
// by how many registrations and under how many handles it is named; it is
// closed behind the last of them (imports.go).
//
// Every call that the driver may hold up runs on a lane: an OS thread of its
// own that has the device's primary context (lanes.go). Each device has lanes
// to open, to close and to copy, so that a close which hangs parks one thread
// and holds up nobody's copy. A copy and the close of its mapping never overlap
// in memory: a close waits for the copies that began before it, a copy that
// comes after it fails, and both are counted.
//
// Every result of the driver has a name, the call and the device in its error
// (result.go). A result after which a context answers nothing else isolates
// its device: operations on it fail at once, closes are tried still, and the
// other devices and the server go on (device.go).
//
// Nothing that a worker says is believed: a handle is opaque bytes that the
// driver judges, and what the exports say is compared with the size of the
// allocation that the driver tells.
package cuda
