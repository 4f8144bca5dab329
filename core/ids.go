package core

import "encoding/binary"

// InstanceID names one life of one inference worker. It is 63 bits wide so
// that it stays safe in signed 64-bit integers (design document, section 4).
// It is never a PID: PIDs are reused, and an alias binds a new worker to a
// dead one's memory (scenario A8).
type InstanceID uint64

// MaxInstanceID is the largest id that the wire accepts.
const MaxInstanceID InstanceID = 1<<63 - 1

// InstanceIDFromEntropy folds 16 bytes of operating-system entropy into an id
// the way the design document does: a version 4 UUID read as an integer, its
// low 63 bits kept.
func InstanceIDFromEntropy(entropy [16]byte) InstanceID {
	entropy[8] = entropy[8]&0x3f | 0x80 // the variant bits of a version 4 UUID
	return InstanceID(binary.BigEndian.Uint64(entropy[8:])) & MaxInstanceID
}

// Incarnation numbers the contexts that one server ever inserted, from 1,
// never reused within a life of the server. Two contexts of one instance id
// differ in it, so late work can be told from current work. 0 means none.
type Incarnation uint64

// Peer names one connection as the server's host sees it. A worker that
// reconnects is a new Peer (PROTOCOL: ROUTER gives each connection its own
// identity). 0 is the server, as seen from a worker.
type Peer uint64

// Op names one asynchronous memory operation from its begin to its end.
// It is chosen by the core and is unique among the pending ones.
type Op uint64

// Mapping names one opened set of exported allocations in the server's
// address space; the core chooses it when it asks for the open.
type Mapping uint64

// Slot names one chunk's place in the L1 store. The shell, or the simulated
// memory, owns the bytes behind it.
type Slot uint32

// RequestID names one engine request at the worker's adapter; unique in the
// life of one engine.
type RequestID uint64

// ContextKind says which of the server's registries a record is about.
type ContextKind uint8

// The kinds of per-instance state.
const (
	NoContext      ContextKind = iota
	ServerDriven               // LMCache-driven: the server opens the worker's memory
	EngineDriven               // the worker moves bytes itself; context and strategy are a pair
	RopeState                  // blend state, mirrored beside a context
	contextKindEnd             // not a kind
)

var contextKindNames = [contextKindEnd]string{"none", "server-driven", "engine-driven", "rope"}

// String is the kind's name in reports and scenario files.
func (k ContextKind) String() string { return nameOf(contextKindNames[:], int(k)) }

// nameOf is the one place that turns an enumeration into its word, so that a
// value out of range reads as such instead of panicking in a report.
func nameOf(names []string, i int) string {
	if i < 0 || i >= len(names) || names[i] == "" {
		return "unknown"
	}
	return names[i]
}
