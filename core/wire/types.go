package wire

// Type is a request's number on the wire (PROTOCOL, section 2). 1 to 24 are
// frozen; from 25 on two dialects differ, see table.go.
type Type uint8

// The request types. The comments give the payload frames.
const (
	NoType                  Type = 0
	RegisterKVCache         Type = 1  // id, exports, model, world size, engine, hints, groups
	UnregisterKVCache       Type = 2  // id
	RegisterQCache          Type = 3  // as 1
	UnregisterQCache        Type = 4  // id
	StoreQ                  Type = 5  // key, id, blocks, event
	Store                   Type = 6  // key, id, blocks, event
	Retrieve                Type = 7  // key, id, blocks, event, skip
	Lookup                  Type = 8  // key, tp size
	QueryPrefetchStatus     Type = 9  // request id
	WaitPrefetchStatus      Type = 10 // request id, timeout
	QueryPrefetchLookupHits Type = 11 // request id
	FreeLookupLocks         Type = 12 // key, tp size
	EndSession              Type = 13 // request id
	RegisterEngineDriven    Type = 14 // one map
	UnregisterEngineDriven  Type = 15 // id
	PrepareStore            Type = 16 // key, id
	CommitStore             Type = 17 // key, id, data
	PrepareRetrieve         Type = 18 // key, id
	CommitRetrieve          Type = 19 // key, id
	Clear                   Type = 20 // nothing
	GetChunkSize            Type = 21 // nothing
	Ping                    Type = 22 // id or nil
	ReportBlockAllocation   Type = 23 // id, model, records
	Noop                    Type = 24 // nothing
	RegisterRope            Type = 33 // id, exports, head size, neox, ints, lists of ints
	UnregisterRope          Type = 34 // id
	GetExperimental         Type = 40 // nothing

	// Settle is our own operation vigil.settle, whose type frame is its name: a
	// worker wants nothing any more of what it sent before a uid, and asks what
	// of it is still written to its memory.
	Settle Type = 254 // id, uid

	// Named is a request whose type frame is any other msgpack string.
	Named Type = 255
)
