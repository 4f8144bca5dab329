// Package worker is the adapter that stands between one inference engine and
// the server: it registers the engine's memory, submits stores and retrieves
// and keeps the books on them, pings, recovers after an outage, and leaves in
// order (design document, section 6; PROTOCOL, section 5).
//
// Contract. A Worker is a core.Machine that belongs to one owner at a time.
// It talks to peer 0, the server, in real frames. What a real adapter does on
// its own threads - the engine's calls, the heartbeat - is here one state
// machine whose steps the world may interleave: where two threads of a real
// adapter could race, there is a timer armed at the current time between them.
// Nothing that arrives in a frame makes it panic, and nothing grows without a
// bound (core.MaxPending, core.MaxExports, core.MaxGroups). A ping, a store, a
// retrieve and each of their replies allocate nothing once the buffers have
// grown to the size of the traffic.
//
// Seams. The bytes are the shell's: an engine-driven worker's own copy between
// PREPARE and COMMIT counts as instantaneous here, and the slots of a PREPARE
// reply are looked at only for whether there are any. A device event travels
// as empty bytes.
package worker
