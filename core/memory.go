package core

// MemoryKind says how an exported allocation is opened.
type MemoryKind uint8

// The kinds of exported memory (PROTOCOL, section 0).
const (
	NoMemory      MemoryKind = iota
	HostSHM                  // a POSIX shared memory segment, by name
	CUDA                     // 64 bytes of CUDA IPC handle
	memoryKindEnd            // not a kind
)

var memoryKindNames = [memoryKindEnd]string{"none", "hostshm", "cuda"}

// String is the kind's name on the wire and in reports.
func (k MemoryKind) String() string { return nameOf(memoryKindNames[:], int(k)) }

// Export is one tensor's allocation as its owner exported it.
// Handle and Device alias the message they were decoded from.
type Export struct {
	Kind       MemoryKind
	Handle     []byte // segment name, or IPC handle
	Device     []byte // device uuid, "cpu" for host memory
	Offset     uint64 // of the tensor in the allocation, bytes
	Bytes      uint64 // of the tensor
	Blocks     uint32 // KV blocks in the tensor
	BlockBytes uint32 // of one KV block in the tensor
	DType      []byte // for example "float16"
	Shape      []int64
}

// Equal reports whether both exports name the same memory with the same shape.
func (e *Export) Equal(o *Export) bool {
	if e.Kind != o.Kind || e.Offset != o.Offset || e.Bytes != o.Bytes ||
		e.Blocks != o.Blocks || e.BlockBytes != o.BlockBytes ||
		string(e.Handle) != string(o.Handle) || string(e.Device) != string(o.Device) ||
		string(e.DType) != string(o.DType) || len(e.Shape) != len(o.Shape) {
		return false
	}
	for i := range e.Shape {
		if e.Shape[i] != o.Shape[i] {
			return false
		}
	}
	return true
}

// Direction is which way a copy goes.
type Direction uint8

// The directions of a copy.
const (
	CopyOut Direction = iota // from the worker's memory into the store
	CopyIn                   // from the store into the worker's memory
)

// ChunkCopy is the part of a copy that concerns one chunk of one group.
type ChunkCopy struct {
	Slot  Slot
	Group uint16 // engine group the blocks belong to
	First uint32 // the chunk's blocks are Blocks[First:First+Count] of its order
	Count uint32
	Skip  uint32 // leading blocks of the chunk that a CopyIn leaves untouched
}

// OpenOrder asks the memory to open what an instance exported.
type OpenOrder struct {
	Op          Op
	Mapping     Mapping
	Owner       InstanceID
	Incarnation Incarnation
	Exports     []Export // valid until the effect is carried out
	// Groups says which tensors make up each engine group, and how many of
	// their blocks one block id means; empty is one group of all tensors. Valid
	// until the effect is carried out.
	Groups []Group
}

// CloseOrder asks the memory to close a mapping.
type CloseOrder struct {
	Op          Op
	Mapping     Mapping
	Owner       InstanceID
	Incarnation Incarnation
}

// CopyOrder asks the memory to copy chunks between a mapping and the store.
type CopyOrder struct {
	Op          Op
	Mapping     Mapping
	Owner       InstanceID
	Incarnation Incarnation
	Direction   Direction
	Chunks      []ChunkCopy // valid until the effect is carried out
	Blocks      []uint32    // valid until the effect is carried out
}
