package wire

// Why this file: one table says of every request what it is called, how many
// payload frames it has, where its handler runs and what its result looks
// like, so that decoding, replies, refusals and the protocol page cannot
// disagree.

// Pool says where a request's handler runs.
type Pool uint8

// The pools (design document, section 3; PROTOCOL, section 3).
const (
	PoolNone     Pool = iota // no such request, or none that is served
	PoolSync                 // on the main loop
	PoolNormal               // in the NORMAL pool
	PoolAffinity             // in the lane of the request's connection
	poolEnd
)

var poolNames = [poolEnd]string{"none", "sync", "normal", "affinity"}

// String is the pool's name in reports.
func (p Pool) String() string {
	if p >= poolEnd {
		return "unknown"
	}
	return poolNames[p]
}

// result is the form of a request's result frame.
type result uint8

const (
	resultUnknown         result = iota // no request of ours
	resultNone                          // never a frame
	resultBool                          // bool, coerced when read
	resultStored                        // (bytes, bool)
	resultMaybe                         // int or nil
	resultInt                           // int, coerced when read
	resultText                          // str
	resultList                          // list of str
	resultContext                       // map shm_name, pool_size
	resultPrepareStore                  // map context
	resultPrepareRetrieve               // map success, data, context
	resultInts                          // list of int
)

type entry struct {
	name     string
	payloads []string // what each payload frame is
	pool     Pool
	result   result
}

// lastType is the highest number that any dialect used; later operations are
// named.
const lastType = 40

// typeTable is indexed by number. An entry without a pool is known, so that a
// refusal can name it, and not served.
var typeTable = [lastType + 2]entry{
	RegisterKVCache:         {"REGISTER_KV_CACHE", []string{"instance id", "exports", "model name", "world size", "engine", "layout hints", "groups"}, PoolSync, resultNone},
	UnregisterKVCache:       {"UNREGISTER_KV_CACHE", []string{"instance id"}, PoolSync, resultNone},
	RegisterQCache:          {"REGISTER_Q_CACHE", []string{"instance id", "exports", "model name", "world size", "engine", "layout hints", "groups"}, PoolSync, resultNone},
	UnregisterQCache:        {"UNREGISTER_Q_CACHE", []string{"instance id"}, PoolSync, resultNone},
	StoreQ:                  {"STORE_Q", []string{"key", "instance id", "blocks", "event"}, PoolAffinity, resultStored},
	Store:                   {"STORE", []string{"key", "instance id", "blocks", "event"}, PoolAffinity, resultStored},
	Retrieve:                {"RETRIEVE", []string{"key", "instance id", "blocks", "event", "skip"}, PoolAffinity, resultStored},
	Lookup:                  {"LOOKUP", []string{"key", "tp size"}, PoolNormal, resultNone},
	QueryPrefetchStatus:     {"QUERY_PREFETCH_STATUS", []string{"request id"}, PoolNormal, resultMaybe},
	WaitPrefetchStatus:      {"WAIT_PREFETCH_STATUS", []string{"request id", "timeout"}, PoolNormal, resultMaybe},
	QueryPrefetchLookupHits: {"QUERY_PREFETCH_LOOKUP_HITS", []string{"request id"}, PoolNormal, resultMaybe},
	FreeLookupLocks:         {"FREE_LOOKUP_LOCKS", []string{"key", "tp size"}, PoolNormal, resultNone},
	EndSession:              {"END_SESSION", []string{"request id"}, PoolNormal, resultNone},
	RegisterEngineDriven:    {"REGISTER_KV_CACHE_ENGINE_DRIVEN_CONTEXT", []string{"context"}, PoolSync, resultContext},
	UnregisterEngineDriven:  {"UNREGISTER_KV_CACHE_ENGINE_DRIVEN_CONTEXT", []string{"instance id"}, PoolSync, resultNone},
	PrepareStore:            {"PREPARE_STORE", []string{"key", "instance id"}, PoolAffinity, resultPrepareStore},
	CommitStore:             {"COMMIT_STORE", []string{"key", "instance id", "data"}, PoolAffinity, resultBool},
	PrepareRetrieve:         {"PREPARE_RETRIEVE", []string{"key", "instance id"}, PoolAffinity, resultPrepareRetrieve},
	CommitRetrieve:          {"COMMIT_RETRIEVE", []string{"key", "instance id"}, PoolAffinity, resultBool},
	Clear:                   {"CLEAR", nil, PoolNormal, resultNone},
	GetChunkSize:            {"GET_CHUNK_SIZE", nil, PoolSync, resultInt},
	Ping:                    {"PING", []string{"instance id"}, PoolNormal, resultBool},
	ReportBlockAllocation:   {"REPORT_BLOCK_ALLOCATION", []string{"instance id", "model name", "records"}, PoolNormal, resultNone},
	Noop:                    {"NOOP", nil, PoolSync, resultText},
	25:                      {name: "request 25"},
	26:                      {name: "request 26"},
	27:                      {name: "request 27"},
	28:                      {name: "request 28"},
	29:                      {name: "request 29"},
	30:                      {name: "request 30"},
	31:                      {name: "request 31"},
	32:                      {name: "request 32"},
	RegisterRope:            {"CB_REGISTER_ROPE", []string{"instance id", "exports", "head size", "is neox", "ints", "int lists"}, PoolSync, resultNone},
	UnregisterRope:          {"CB_UNREGISTER_ROPE", []string{"instance id"}, PoolSync, resultNone},
	35:                      {name: "request 35"},
	36:                      {name: "request 36"},
	37:                      {name: "request 37"},
	38:                      {name: "request 38"},
	39:                      {name: "request 39"},
	GetExperimental:         {"GET_EXPERIMENTAL", nil, PoolSync, resultList},
	settlePlace:             {settleName, []string{"instance id", "uid"}, PoolSync, resultInts},
}

// settleName is the name that Settle has on the wire: the only operation of
// our own that the core serves, so there is no table of names. Its entry lies
// behind the numbers, for it has none.
const (
	settleName  = "vigil.settle"
	settlePlace = lastType + 1
)

func entryOf(t Type) *entry {
	switch {
	case t == Settle:
		return &typeTable[settlePlace]
	case t > lastType:
		return &typeTable[NoType]
	}
	return &typeTable[t]
}

// PoolOf returns where requests of type t run; PoolNone for Named and for
// every number that is not served.
func PoolOf(t Type) Pool { return entryOf(t).pool }

// PayloadsOf returns how many payload frames a request of type t has; false
// where t is not served.
func PayloadsOf(t Type) (int, bool) {
	e := entryOf(t)
	return len(e.payloads), e.pool != PoolNone
}

// String is the request's name, as in PROTOCOL, section 2. The numbers that
// two dialects use differently are called by their number.
func (t Type) String() string {
	if t == Named {
		return "named operation"
	}
	if name := entryOf(t).name; name != "" {
		return name
	}
	return "unknown request"
}

// firstDisputed is the first number whose meaning differs between dialects.
const firstDisputed = 25

// normalize turns a number from firstDisputed on, with its count of payload
// frames, into the request that we serve under it (PROTOCOL, section 0). The
// counts tell the dialects apart; old reports that the number was the other
// dialect's.
func normalize(number uint64, payloads int) (t Type, old, served bool) {
	switch {
	case number == 33 && payloads == 6:
		return RegisterRope, false, true
	case number == 25 && payloads == 6:
		return RegisterRope, true, true
	case number == 34 && payloads == 1:
		return UnregisterRope, false, true
	case number == 26 && payloads == 1:
		return UnregisterRope, true, true
	case number == 40 && payloads == 0:
		return GetExperimental, false, true
	case number == 32 && payloads == 0:
		return GetExperimental, true, true
	}
	return Type(number), false, false
}

// otherNumber is the number of t in the dialect that normalize calls old.
func otherNumber(t Type) Type {
	switch t {
	case RegisterRope:
		return 25
	case UnregisterRope:
		return 26
	case GetExperimental:
		return 32
	}
	return t
}

// named is the request that a name stands for.
func named(name []byte) Type {
	if string(name) == settleName {
		return Settle
	}
	return Named
}

// replied is the request that a reply echoes under a number; a reply has no
// payload count, and a client only gets numbers that it sent.
func replied(number uint64) Type {
	switch number {
	case 25:
		return RegisterRope
	case 26:
		return UnregisterRope
	case 32:
		return GetExperimental
	}
	if number > lastType {
		return NoType
	}
	return Type(number)
}
