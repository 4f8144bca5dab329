package spacetime

import "vigil/core"

// The groups are what a reader can show and hide.

// Group is a kind of records that are looked at together.
type Group uint8

// The groups.
const (
	GroupFaults   Group = iota // steps, processes, links
	GroupLease                 // contexts, stamps, the reaper
	GroupMemory                // mappings, copies, chunks
	GroupRegister              // registers and leaves
	GroupPings                 // pings and health
	GroupRequests              // what engines ask
	GroupMessages              // messages on the wire
	groups
)

var groupNames = [groups]string{"processes and faults", "contexts and reaper", "memory", "register and leave", "pings and health", "requests", "messages"}

// GroupOf is the group of a kind of records.
func GroupOf(k core.RecordKind) Group {
	switch k {
	case core.FaultStruck, core.ProcessStarted, core.ProcessKilled, core.ProcessExited, core.ProcessPaused, core.ProcessResumed,
		core.ConnectionOpened, core.ConnectionClosed, core.LinkCut, core.LinkHealed, core.FaultsOver, core.WorldEnded,
		core.ServerStarted, core.ServerStopping, core.ServerStopped, core.WorkerStarted, core.WorkerStopped,
		core.ServerWarned, core.WorkerWarned, core.EngineWarned, core.TimerInVain:
		return GroupFaults
	case core.ContextInserted, core.ContextRemoved, core.StrategyAdded, core.StrategyRemoved, core.RopeAdded, core.RopeDropped,
		core.LayoutAcquired, core.LayoutReleased, core.Stamped, core.Latched, core.ScanBegan, core.ScanEnded, core.ReapDecided,
		core.DropFannedOut:
		return GroupLease
	case core.OpenBegan, core.OpenEnded, core.CloseBegan, core.CloseEnded, core.ReleaseStuck, core.CopyBegan, core.CopyEnded,
		core.LockTaken, core.LockReturned, core.ChunkReserved, core.ChunkReady, core.ChunkDropped,
		core.MappingOpened, core.MappingClosing, core.MappingClosed, core.MappingHung, core.MappingReopened,
		core.MappingClosedTwice, core.MappingUnknown, core.CopyTouchedRelease, core.CopyTouchedGone, core.CopyMisfit, core.ParcelLeft:
		return GroupMemory
	case core.RegisterArrived, core.RegisterNoop, core.UnregisterCame, core.RegisterSent, core.RegisterEnded,
		core.UnregisterSent, core.UnregisterEnded, core.ShutdownBegan, core.EngineRegistered, core.EngineLeaving:
		return GroupRegister
	case core.HeartbeatStarted, core.HeartbeatStopped, core.PingSent, core.PingAnswered, core.PingFailed,
		core.RecoveryBegan, core.RecoveryEnded, core.HealthCleared, core.HealthSet:
		return GroupPings
	case core.MessageSent, core.MessageReached, core.MessageLost, core.MessageHandled:
		return GroupMessages
	}
	return GroupRequests
}
