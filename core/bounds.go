package core

// Bound names one of the bounds on what outside input may make a server keep.
type Bound uint8

// What is bounded, and what happens at the bound: what does not fit is refused
// and counted, or makes what is oldest go, and what is served already is
// served on.
const (
	BoundJobs      Bound = iota // requests queued or running in all pools; beyond it they are refused with FailQueueFull
	BoundHeldBytes              // bytes that all queued messages hold together; as BoundJobs
	BoundInstances              // contexts of one kind; beyond it a register is refused with FailQueueFull
	BoundParked                 // registers that wait for something of their own instance; beyond it they are refused with FailQueueFull
	BoundSessions               // look-up sessions; the oldest ends
	BoundLocks                  // read locks of all sessions; a look-up finds fewer chunks
	BoundChunks                 // chunks of the store; one is evicted, as when bytes run out
	BoundSlots                  // what one engine-driven instance has prepared and not committed; a store gets no slot, a retrieve a miss
	Bounded                     // how many there are
)

// BoundNames are the bounds' names in a scenario.
var BoundNames = [Bounded]string{
	"jobs", "held-bytes", "instances", "parked", "sessions", "locks", "chunks", "slots",
}

// Bounds are the bounds of a server; 0, and what is more than the server's own
// bound, stand for that. Only a scenario lowers them, so that a story of ten
// steps meets a bound that takes a real server's day.
type Bounds [Bounded]uint64
