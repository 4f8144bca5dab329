// Package hostshm is device memory without a device: the memory of a worker is
// a POSIX shared memory segment, which the server opens by its name, maps,
// copies chunks out of and into, and unmaps. It is the embedded default where
// there is no GPU, and it behaves like one where it matters: what the server
// has mapped stays charged to the server after the worker's death, visible in
// /proc/PID/maps, until the server closes it.
//
// Contract. Memory implements core.Memory. Each call returns at once; its end
// comes as one core.Input through Options.Done, from another goroutine, or
// never. Each operation has a goroutine of its own, so any number of closes
// that hang hold back no copy and no other close; how many there are at once
// is the core's to bound (core.MaxJobs). A copy and the close of its mapping
// never overlap in memory: a close waits for the copies that began before it,
// a copy that comes after it fails, and both are counted.
//
// Nothing that a worker says is believed: a name is checked before it touches
// the file system (name.go), sizes are compared with the real segment at open
// and again before each copy, and a segment that shrinks in mid-copy ends that
// copy with an error, not this process with SIGBUS (fault.go).
//
// Where the bytes of a block lie is realgpu's to say.
package hostshm
