package server

import (
	"vigil/core"
	"vigil/core/wire"
)

// ownBounds are the server's own bounds on what outside input makes it keep;
// package core says what happens beyond each.
var ownBounds = core.Bounds{
	core.BoundJobs:      core.MaxJobs,
	core.BoundHeldBytes: 256 << 20,
	core.BoundInstances: core.MaxInstances,
	core.BoundParked:    1024,
	core.BoundSessions:  core.MaxSessions,
	core.BoundLocks:     1 << 22,
	core.BoundChunks:    1 << 22,
	core.BoundSlots:     wire.MaxSlotsInReply, // so the slots of one request fit one reply
}

// bounded returns the bounds that a server keeps of what its configuration asks.
func bounded(asked core.Bounds) core.Bounds {
	for i, own := range ownBounds {
		if asked[i] == 0 || asked[i] > own {
			asked[i] = own
		}
	}
	return asked
}

// most is the present bound on one thing.
func (s *Server) most(of core.Bound) int { return int(s.cfg.Bounds[of]) }

// Other bounds, which a scenario cannot lower.
const (
	// maxPeers bounds the connections that are bound to a lane for good; one
	// beyond it gets the lane that its number points at.
	maxPeers = 1 << 20
	// maxReapCounts bounds the ids whose reaps are counted; the id that was
	// first reaped longest ago is forgotten.
	maxReapCounts = 1 << 16
	// maxTP bounds the ranks of one look-up; beyond it the look-up is refused.
	maxTP = 1 << 16
	// maxChunkBytes bounds one chunk; a registration beyond it gets no transfer.
	maxChunkBytes = 1 << 40
	// maxLooks bounds how often in a row a stalled server may put a reap off, so
	// that the guard cannot hold the reaper shut for good.
	maxLooks = 8
	// keptBuffer is the largest buffer that a free place keeps for its next use.
	keptBuffer = 64 << 10
)
