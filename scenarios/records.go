package scenarios

import "vigil/core"

// RecordNote is one kind of record for people: what a file can wait for and
// expect by this name.
type RecordNote struct{ Name, By, Meaning string }

// Records lists every kind of record in the order of core's own list.
func Records() []RecordNote {
	var list []RecordNote
	by := "server"
	for k := core.RecordNone + 1; k < core.RecordKinds; k++ {
		switch k {
		case core.WorkerStarted:
			by = "worker"
		case core.FaultStruck:
			by = "world"
		}
		list = append(list, RecordNote{k.String(), by, recordMeanings[k]})
	}
	return list
}

// recordMeanings say what happened, and what a match's keys mean there.
var recordMeanings = [core.RecordKinds]string{
	core.ServerStarted:      "the server serves",
	core.ServerStopping:     "it is asked to stop",
	core.ServerStopped:      "it has stopped",
	core.RegisterArrived:    "its handler takes a register up",
	core.OpenBegan:          "it begins to open a worker's memory",
	core.OpenEnded:          "the open is over; failure says how",
	core.ContextInserted:    "a context serves from now on",
	core.RegisterNoop:       "a register found its id present and built nothing",
	core.StrategyAdded:      "an engine-driven context has its strategy",
	core.StrategyRemoved:    "the strategy is gone",
	core.RopeAdded:          "blend state of an instance is kept",
	core.RopeDropped:        "the blend state is gone",
	core.LayoutAcquired:     "a context takes a share of its layout",
	core.LayoutReleased:     "the share is given back",
	core.Stamped:            "a sign of life refreshed an entry",
	core.Latched:            "the first ping after which the reap timeout judges the instance",
	core.ScanBegan:          "the reaper begins a scan",
	core.ScanEnded:          "the scan is over",
	core.ReapDecided:        "the reaper found an entry silent for too long; flag: judged by the reap timeout, else by the grace",
	core.ContextRemoved:     "a context serves no longer; cause and reaps say why, and how often its id was reaped",
	core.CloseBegan:         "it begins to close a mapping",
	core.CloseEnded:         "the close is over; failure says how",
	core.ReleaseStuck:       "a close passed its bound and is set aside",
	core.DropFannedOut:      "every module was told to drop the instance's state",
	core.TransferBegan:      "a store (flag) or retrieve begins",
	core.CopyBegan:          "a copy begins; flag: of a store",
	core.CopyEnded:          "the copy is over; failure says how",
	core.TransferEnded:      "the transfer is over; failure says how",
	core.UnregisterCame:     "its handler takes an unregister up",
	core.Refused:            "a request is refused; flag: with an answer, else in silence",
	core.LockTaken:          "a chunk is locked for reading",
	core.LockReturned:       "the read lock is given back",
	core.ChunkReserved:      "room for a chunk is taken",
	core.ChunkReady:         "the chunk can be retrieved",
	core.ChunkDropped:       "the chunk is gone; flag: it could be retrieved until then",
	core.PoolFull:           "a pool had no room for a request",
	core.ServerWarned:       "what an operator should know; failure says what",
	core.WorkerStarted:      "a process has its id",
	core.RegisterSent:       "it sends a register; flag: as a recovery",
	core.RegisterEnded:      "its register is over; failure says how",
	core.HeartbeatStarted:   "it begins to ping",
	core.PingSent:           "a ping leaves",
	core.PingAnswered:       "the answer is in; flag: what the server said of it",
	core.PingFailed:         "no answer in time, or a refusal",
	core.RecoveryBegan:      "it begins to register again",
	core.RecoveryEnded:      "the recovery is over; flag: healthy now",
	core.HealthCleared:      "it is unhealthy: requests are dropped",
	core.HealthSet:          "it is healthy again",
	core.Submitted:          "its engine asks for a store (flag) or a retrieve",
	core.RequestSent:        "the request leaves",
	core.RequestResolved:    "the request has its answer; flag: what the server said",
	core.RequestDropped:     "the request is dropped unsent: unhealthy",
	core.FinishedReported:   "it tells its engine how the request ended; outcome says how",
	core.ShutdownBegan:      "it begins to leave in order",
	core.HeartbeatStopped:   "its heartbeat has ended; flag: waited for",
	core.UnregisterSent:     "it says goodbye",
	core.UnregisterEnded:    "its goodbye is over; failure says how",
	core.WorkerStopped:      "it has left",
	core.WorkerWarned:       "what an operator should know; failure says what",
	core.FaultStruck:        "a step of the scenario; flag: it took hold",
	core.ProcessStarted:     "a process starts",
	core.ProcessKilled:      "a process is killed",
	core.ProcessExited:      "a process leaves in order; flag: the server, and it gave up waiting or left something open",
	core.ProcessPaused:      "a process stands still",
	core.ProcessResumed:     "it goes on",
	core.ConnectionOpened:   "a connection to the server is there",
	core.ConnectionClosed:   "it is gone",
	core.LinkCut:            "messages of a worker no longer pass",
	core.LinkHealed:         "they pass again",
	core.MessageSent:        "a message leaves; flag: towards the server",
	core.MessageReached:     "a message is at the server's host",
	core.MessageLost:        "a message is lost; flag: towards the server",
	core.MessageHandled:     "the server's process takes the message in",
	core.MappingOpened:      "memory is mapped, its bytes charged to the server",
	core.MappingClosing:     "its close begins",
	core.MappingClosed:      "its bytes are given back",
	core.MappingHung:        "its close will not return",
	core.MappingReopened:    "WRONG: what is open is opened again",
	core.MappingClosedTwice: "WRONG: what is closed is closed again",
	core.MappingUnknown:     "WRONG: what was never opened is closed or copied",
	core.CopyTouchedRelease: "WRONG: a copy uses a mapping whose release has begun",
	core.CopyMisfit:         "WRONG: a copy goes beyond the exported blocks, or is of another size than its slot",
	core.CopyTouchedGone:    "WRONG: a copy uses memory that is no longer what was exported",
	core.AnswerCame:         "a raw client is answered; failure: refused",
	core.ParcelLeft:         "WRONG: data that came in a message is kept for nobody",
	core.TimerInVain:        "WRONG: a timer comes that nobody waits for, or is armed when its process leaves",
	core.EngineWarned:       "an engine is told what an operator should know; failure says what",
	core.EngineSubmitted:    "an engine submits a store (flag) or a retrieve",
	core.EngineTold:         "an engine is told how its request ended; outcome says how",
	core.BlocksRight:        "a retrieve delivered what was stored",
	core.BlocksWrong:        "WRONG: a retrieve delivered other bytes and its engine may use them; flag: it keeps away from others than it should",
	core.EngineRegistered:   "an engine is told of its register; flag: it succeeded, else failure says why",
	core.EngineLeaving:      "an engine asks its worker to leave",
	core.FaultsOver:         "no fault acts from here on: whatever is owed must come within its bound",
	core.WorldEnded:         "the run ends",
}
