package server

import "vigil/core/wire"

// The bounds on what outside input makes the server keep, beside those in
// package core. Each says what happens beyond it.
const (
	// maxHeldBytes bounds what all queued messages hold together; a message
	// that does not fit is dropped like one beyond core.MaxJobs.
	maxHeldBytes = 256 << 20
	// maxPeers bounds the connections that are bound to a lane for good; one
	// beyond it gets the lane that its number points at.
	maxPeers = 1 << 20
	// maxReapCounts bounds the ids whose reaps are counted; the id that was
	// first reaped longest ago is forgotten.
	maxReapCounts = 1 << 16
	// maxChunks bounds the chunks of the store; beyond it a chunk is evicted,
	// as when bytes run out.
	maxChunks = 1 << 22
	// maxPendingSlots bounds what one engine-driven instance may have prepared
	// and not committed; beyond it a store gets no slot and a retrieve a miss.
	// So the slots of one request fit one reply.
	maxPendingSlots = wire.MaxSlotsInReply
	// maxLocks bounds the read locks of all sessions; beyond it a look-up finds
	// fewer chunks.
	maxLocks = 1 << 22
	// maxTP bounds the ranks of one look-up; beyond it the look-up is refused.
	maxTP = 1 << 16
	// maxChunkBytes bounds one chunk; a registration beyond it gets no transfer.
	maxChunkBytes = 1 << 40
	// maxParked bounds the registers that wait for something of their own
	// instance; one beyond it is refused.
	maxParked = 1024
	// maxLooks bounds how often in a row a stalled server may put a reap off, so
	// that the guard cannot hold the reaper shut for good.
	maxLooks = 8
	// keptBuffer is the largest buffer that a free place keeps for its next use.
	keptBuffer = 64 << 10
)
