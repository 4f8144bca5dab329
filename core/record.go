package core

// Actor says who wrote a record.
type Actor uint32

// The actors. Workers and other clients are numbered from FirstWorker in the
// order in which their scenario names them; a restarted worker keeps its number.
const (
	ActorWorld  Actor = iota // the ground truth: memory, processes, network
	ActorServer              // the server's claim
	FirstWorker              // the first worker's claim
)

// Record is one thing that happened: the unit of the event log, of the running
// hash and of what the monitors judge. It is plain data of fixed size; the
// core never formats a log line. What A and B hold is said at each kind.
type Record struct {
	At          Time // the world's time in a simulation, the process's clock in production
	Instance    InstanceID
	Incarnation Incarnation
	A, B        uint64
	Actor       Actor
	Kind        RecordKind
	Context     ContextKind
	Failure     Failure
	Flag        bool
}

// RecordKind says what happened.
type RecordKind uint8

// The records of the server. "Context" means that Record.Context is set;
// Instance is set wherever one is concerned.
const (
	RecordNone RecordKind = iota

	ServerStarted   // A: reap window, B: grace, nanoseconds
	ServerStopping  //
	ServerStopped   // A: contexts still held, B: bytes still held
	RegisterArrived // Context; the handler begins. A: peer
	OpenBegan       // Context; A: mapping, B: op
	OpenEnded       // Context; A: mapping, B: bytes; Failure
	ContextInserted // Context, Incarnation; A: mapping (0 where none), B: bytes; serving from now on
	RegisterNoop    // Context, Incarnation; the id was present; refreshed
	StrategyAdded   // Incarnation; the engine-driven context's other half
	StrategyRemoved // Incarnation
	RopeAdded       // Incarnation: of the blend state itself
	RopeDropped     // Incarnation; A: 0 by the client, 1 by the reaper's fan-out, 2 by the shutdown
	LayoutAcquired  // Context, Incarnation: holder; A: layout hash, B: holders after
	LayoutReleased  // Context, Incarnation: holder; A: layout hash, B: holders after
	Stamped         // Context, Incarnation; last_seen refreshed. A: the stamp, on the server's clock, B: cause (StampCause)
	Latched         // Context, Incarnation; the liveness signal latched
	ScanBegan       // A: entries tracked
	ScanEnded       // A: entries reaped
	ReapDecided     // Context, Incarnation; A: last stamp, B: window; Flag: latched
	ContextRemoved  // Context, Incarnation; A: cause (RemovalCause), B: times this id was reaped so far; not serving from now on
	CloseBegan      // Context, Incarnation; A: mapping, B: op
	CloseEnded      // Context, Incarnation; A: mapping, B: bytes given back; Failure
	ReleaseStuck    // Context, Incarnation; A: mapping, B: bytes; a close passed its bound and is parked
	DropFannedOut   // drop_instance_state for Instance ran on every target
	TransferBegan   // Context, Incarnation; A: job, B: chunks; Flag: store
	CopyBegan       // Context, Incarnation; A: mapping, B: op; Flag: store
	CopyEnded       // Context, Incarnation; A: mapping, B: op; Flag: store; Failure
	TransferEnded   // Context, Incarnation; A: job, B: chunks; Flag: store; Failure
	UnregisterCame  // Context; the handler begins
	Refused         // A: request type, B: peer; Failure; Flag: a terminal answer was sent, else silence
	LockTaken       // A: slot, B: readers after
	LockReturned    // A: slot, B: readers after
	ChunkReserved   // Incarnation; A: slot, B: low half of the chunk's hash
	ChunkReady      // Incarnation; A: slot, B: low half of the chunk's hash
	ChunkDropped    // A: slot, B: low half of the chunk's hash; Flag: it was ready (evicted or cleared)
	PoolFull        // A: request type; Failure
	ServerWarned    // Failure; what an operator should know

	// The records of a worker.

	WorkerStarted    // A: pid in its namespace; Instance is its id
	RegisterSent     // A: request uid; Flag: by the recovery callback
	RegisterEnded    // A: request uid; Failure; Flag: by the recovery callback
	HeartbeatStarted //
	PingSent         // A: request uid
	PingAnswered     // A: request uid; Flag: the verdict
	PingFailed       // A: request uid; Failure
	RecoveryBegan    // the callback runs, health is not set yet
	RecoveryEnded    // Flag: healthy
	HealthCleared    //
	HealthSet        //
	Submitted        // A: engine request, B: chunks; Flag: store
	RequestSent      // A: engine request, B: request uid; Flag: store
	RequestResolved  // A: engine request, B: request uid; Flag: the reply's verdict; Failure
	RequestDropped   // A: engine request; Flag: store; unhealthy, never sent
	FinishedReported // A: engine request, B: Outcome; Flag: store
	ShutdownBegan    //
	HeartbeatStopped // Flag: joined, else the bound on the join passed
	UnregisterSent   // A: request uid; Context
	UnregisterEnded  // A: request uid; Failure
	WorkerStopped    //
	WorkerWarned     // Failure; A and B as the failure says (window: 3 x interval, and the floor or, with Flag, the server's window, by which it pings from now on)

	// The ground truth, written by the world.

	FaultStruck        // A: number of the scenario's step; Flag: it took hold
	ProcessStarted     // Instance if known; A: worker number + 1, 0 the server; B: pid in its namespace
	ProcessKilled      // A: worker number + 1, 0 the server; Instance: who it was
	ProcessExited      // A: worker number + 1, 0 the server; left in order
	ProcessPaused      // A: worker number + 1, 0 the server
	ProcessResumed     // A: worker number + 1, 0 the server
	ConnectionOpened   // A: peer, B: worker number + 1
	ConnectionClosed   // A: peer, B: worker number + 1
	LinkCut            // A: worker number + 1, B: CutWays
	LinkHealed         // A: worker number + 1
	MessageSent        // A: worker number + 1, B: bytes; Flag: to the server
	MessageReached     // A: peer, B: request type or 0; at the server's host; Instance: the id it carries, 0 for none
	MessageLost        // A: worker number + 1, B: bytes; Flag: to the server
	MessageHandled     // A: peer, B: request type; the server's process took it in
	MappingOpened      // Instance, Incarnation; A: mapping, B: bytes; charged to the server
	MappingClosing     // Instance, Incarnation; A: mapping, B: bytes
	MappingClosed      // Instance, Incarnation; A: mapping, B: bytes; given back
	MappingHung        // Instance, Incarnation; A: mapping, B: bytes; the close will not return
	MappingReopened    // Instance, Incarnation; A: mapping, B: allocation; opened what is open in this process
	MappingClosedTwice // Instance, Incarnation; A: mapping
	MappingUnknown     // Instance, Incarnation; A: mapping; closed or copied what was never opened
	CopyTouchedRelease // Instance, Incarnation; A: mapping, B: op; a copy was under way on a mapping whose release began
	CopyTouchedGone    // Instance, Incarnation; A: mapping; a copy's source or target is no longer what was exported
	EngineSubmitted    // A: engine request; Flag: store; Instance
	EngineTold         // A: engine request, B: Outcome; Flag: store; Instance
	BlocksRight        // A: engine request, B: blocks; delivered and equal to what a finished writer stored
	BlocksWrong        // A: engine request, B: first wrong block; the engine was told it may use them, or with Flag to keep away from others than it should
	EngineRegistered   // Instance; Flag: it succeeded; Failure
	EngineLeaving      // Instance; the engine asked for an orderly shutdown
	FaultsOver         // no fault acts from here on: liveness is owed
	WorldEnded         //
	AnswerCame         // A: number of the scenario's step, B: fold of the answer in words; Failure: refused; a raw client was answered
	CopyMisfit         // Instance, Incarnation; A: mapping, B: block or slot; a copy beyond the exported blocks, or of another size than its slot
	ParcelLeft         // A: number, B: bytes; data that came in a message is kept for nobody when the run ends
	TimerInVain        // A: worker number + 1, 0 the server, B: its kind; a timer fired for nothing, or was armed when its process left
	EngineWarned       // Instance; A: worker number + 1; Failure; an engine was told what an operator should know
	RecordKinds        // how many kinds there are; not a record
)

// StampCause says what refreshed an entry (design document, section 5.1).
type StampCause uint8

// The causes of a stamp.
const (
	StampRegister StampCause = iota
	StampNoop
	StampPing
	StampTransfer
)

// RemovalCause says why a context stopped serving.
type RemovalCause uint8

// The causes of a removal.
const (
	RemovedByClient RemovalCause = iota
	RemovedByReaper
	RemovedByReplace
	RemovedByStop
	RemovedByProof // its process is proven dead
)

// CutWays says which directions of a link are cut.
type CutWays uint8

// The ways of a cut.
const (
	CutBoth CutWays = iota
	CutToServer
	CutToWorker
)

var recordKindNames = [RecordKinds]string{
	ServerStarted: "server-started", ServerStopping: "server-stopping", ServerStopped: "server-stopped",
	RegisterArrived: "register-arrived", OpenBegan: "open-began", OpenEnded: "open-ended",
	ContextInserted: "context-inserted", RegisterNoop: "register-noop",
	StrategyAdded: "strategy-added", StrategyRemoved: "strategy-removed",
	RopeAdded: "rope-added", RopeDropped: "rope-dropped",
	LayoutAcquired: "layout-acquired", LayoutReleased: "layout-released",
	Stamped: "stamped", Latched: "latched", ScanBegan: "scan-began", ScanEnded: "scan-ended",
	ReapDecided: "reap-decided", ContextRemoved: "context-removed",
	CloseBegan: "close-began", CloseEnded: "close-ended", ReleaseStuck: "release-stuck",
	DropFannedOut: "drop-fanned-out", TransferBegan: "transfer-began",
	CopyBegan: "copy-began", CopyEnded: "copy-ended", TransferEnded: "transfer-ended",
	UnregisterCame: "unregister-came", Refused: "refused",
	LockTaken: "lock-taken", LockReturned: "lock-returned",
	ChunkReserved: "chunk-reserved", ChunkReady: "chunk-ready", ChunkDropped: "chunk-dropped",
	PoolFull: "pool-full", ServerWarned: "server-warned",

	WorkerStarted: "worker-started", RegisterSent: "register-sent", RegisterEnded: "register-ended",
	HeartbeatStarted: "heartbeat-started", PingSent: "ping-sent", PingAnswered: "ping-answered",
	PingFailed: "ping-failed", RecoveryBegan: "recovery-began", RecoveryEnded: "recovery-ended",
	HealthCleared: "health-cleared", HealthSet: "health-set",
	Submitted: "submitted", RequestSent: "request-sent", RequestResolved: "request-resolved",
	RequestDropped: "request-dropped", FinishedReported: "finished-reported",
	ShutdownBegan: "shutdown-began", HeartbeatStopped: "heartbeat-stopped",
	UnregisterSent: "unregister-sent", UnregisterEnded: "unregister-ended",
	WorkerStopped: "worker-stopped", WorkerWarned: "worker-warned",

	FaultStruck: "fault-struck", ProcessStarted: "process-started", ProcessKilled: "process-killed",
	ProcessExited: "process-exited", ProcessPaused: "process-paused", ProcessResumed: "process-resumed",
	ConnectionOpened: "connection-opened", ConnectionClosed: "connection-closed",
	LinkCut: "link-cut", LinkHealed: "link-healed", MessageSent: "message-sent",
	MessageReached: "message-reached", MessageLost: "message-lost", MessageHandled: "message-handled",
	MappingOpened: "mapping-opened", MappingClosing: "mapping-closing", MappingClosed: "mapping-closed",
	MappingHung: "mapping-hung", MappingReopened: "mapping-reopened",
	MappingClosedTwice: "mapping-closed-twice", MappingUnknown: "mapping-unknown",
	CopyTouchedRelease: "copy-touched-release", CopyTouchedGone: "copy-touched-gone",
	EngineSubmitted: "engine-submitted", EngineTold: "engine-told",
	BlocksRight: "blocks-right", BlocksWrong: "blocks-wrong",
	EngineRegistered: "engine-registered", EngineLeaving: "engine-leaving",
	FaultsOver: "faults-over", WorldEnded: "world-ended",
	AnswerCame: "answer-came", CopyMisfit: "copy-misfit", ParcelLeft: "parcel-left", TimerInVain: "timer-in-vain", EngineWarned: "engine-warned",
}

// String is the kind's name in stories and event logs.
func (k RecordKind) String() string { return nameOf(recordKindNames[:], int(k)) }

// RecordKindNamed returns the kind of that name; false where there is none.
func RecordKindNamed(name string) (RecordKind, bool) {
	for k, n := range recordKindNames {
		if n == name && n != "" {
			return RecordKind(k), true
		}
	}
	return RecordNone, false
}
