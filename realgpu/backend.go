package realgpu

import (
	"context"
	"time"

	"vigil/core"
)

// Why this file: a server runs on one backend or another, and its status, its
// metrics and its shutdown ask both the same.

// Slots gives the bytes of the L1 store's slots.
type Slots interface {
	// Slot returns the bytes of a slot, as long as one chunk of the instance
	// that copies to or from it; nil where there is none. It is called inside
	// Memory.Copy, on the caller's goroutine; the bytes must stay where they
	// are until that copy's input came.
	Slot(core.Slot) []byte
}

// Backend is a core.Memory with what an operator may ask of it.
type Backend interface {
	core.Memory
	// Stats reads the counters.
	Stats() Stats
	// Held lists the mappings by number.
	Held() []Held
	// Shutdown ends the backend: nothing begins any more, what works is waited
	// for until ctx ends, and then every mapping is released. An error names
	// what is held still, which ends with the process.
	Shutdown(ctx context.Context) error
}

// Stats is a reading of the counters.
type Stats struct {
	Mappings int    // in the table: opening, open or closing
	Charged  uint64 // bytes mapped: whole pages, or whole allocations of a device

	Opening, Closing, Copying int64 // operations under way

	Opened, Closed, Copied uint64 // operations that ended well
	CopiedBytes            uint64
	Failed                 uint64 // operations that ended with a failure
	Faults                 uint64 // copies that met memory which was gone
	Overlaps               uint64 // copies refused because their mapping's release had begun
	Reopened               uint64 // allocations opened while open in another mapping
}

// Held is one mapping, for a status page.
type Held struct {
	Mapping     core.Mapping
	Owner       core.InstanceID
	Incarnation core.Incarnation
	Bytes       uint64
	State       string        // opening, open or closing
	For         time.Duration // in that state
}
