// Package real plays a scenario with real processes: a server, its workers,
// real signals, a proxy in front of each worker's connection, time running
// faster by a scale that server and workers share.
//
// Contract. What happens is judged from outside by the same monitors and the
// same expectations as a simulated run. The truth comes from what this package
// did itself (signals, cuts), from the system (processes that end, the
// server's mappings in /proc, messages that the proxy put into the server's
// socket) and from what the engines say they were told; the claims come from
// the event logs of server and workers. All of it is merged by the host's one
// clock into one stream of records in the scenario's time.
//
// What cannot be done to real processes is said and skipped, and what could
// not be decided is listed as undecided; neither is a pass. A run never leaves
// a process, a socket or a shared memory segment behind, also when it is
// interrupted or panics; a kill -9 of the caller takes the processes along.
//
// The package needs Linux and no C library.
package real
