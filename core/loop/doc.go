// Package loop is the production shell around the pure core: it gives a
// server or a worker machine real time, messages, memory and an owner, and
// carries out what the machine asks for.
//
// Contract. One goroutine, the owner, drives the machine through core.Driver
// and touches its state; it only ever does small steps and never waits for
// memory, for the network or for the disk. Whatever else there is to say
// reaches it through a mailbox: messages, ends of memory operations, closed
// connections, questions. A full mailbox holds back whoever brings messages,
// so nothing is lost between the transport and the core; the ends of memory
// operations always fit, for the core bounds how many there can be.
//
// Decoding happens away from the owner: a short message on the goroutine that
// brings it, a long one in a small pool, each connection's messages in their
// order. So a ping waits behind its own connection's long prompt and behind
// nobody else's. What one connection may have waiting there is bounded; beyond
// it a message enters at once as a refusal (core.FailQueueFull).
//
// The package knows neither sockets nor devices: a transport brings messages to
// Message and Closed and implements core.Transport, a memory backend implements
// core.Memory and gets its bytes through Slots.
//
// What a Server writes down. An event log has one JSON line per record
// (eventlog.go). A recording has every input with a snapshot of the core at
// the head of each segment (recording.go), and Replay feeds it to a fresh core
// and names the first difference. Neither ever makes the owner wait: a disk
// that cannot keep up costs lines or inputs, which are counted and whose place
// is marked.
package loop
