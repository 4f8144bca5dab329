package monitor

import (
	"vigil/core"
)

// Set is the twelve monitors of one run, over one picture of the world that
// they share. Make it with New.
type Set struct {
	setup  Setup
	bounds bounds
	skewed bool // some worker's version differs from the server's

	// The picture: processes by number, instances by id, and what the server's
	// present life holds.
	workers   []worker
	instances pool[instance]
	contexts  pool[context]     // by incarnation
	mappings  pool[mapping]     // by mapping number
	layouts   pool[layout]      // by layout hash
	reserved  pool[reservation] // by store slot + 1
	peers     pool[int32]       // worker by peer; followed under version skew only
	requests  []request
	spare     int32 // first free request, -1 for none
	closing   []int32
	lastSlow  slowRelease
	failed    uint64 // mapping whose close failed last, 0 for none
	locks     int64  // read locks held
	peak      int    // most mappings open at once

	// The server's process.
	up       bool      // running and not frozen
	paused   bool      // frozen
	stopping bool      // shuts down in order
	upSince  core.Time // since when it is up

	faultsOver core.Time // from here on liveness is owed; core.Never before
	order      uint64    // counts the records that order matters for
	saw        truth

	// unsettled holds instances whose parts changed in the step now being
	// recorded; they are judged when that step is over.
	unsettled   []int32
	unsettledAt core.Time

	violations []Violation
	dropped    int
	reported   uint16
}

// truth says which parts of the ground truth a log holds.
type truth struct{ processes, network, memory, engines bool }

// New returns the monitors for runs of one setup.
func New(s Setup) *Set {
	m := &Set{setup: s}
	n := len(s.Workers)
	line := n + 1
	if s.Protections.RegisterAside {
		line = (line + core.MaxOpens - 1) / core.MaxOpens
	}
	m.bounds = bounds{opens: queue(line, s.OpenBound)}
	if s.Protections.IndependentReleases {
		m.bounds.park = core.ReleaseBound
	}
	for i := range s.Workers {
		m.skewed = m.skewed || s.Workers[i].Legacy != s.ServerLegacy
	}
	m.workers = make([]worker, n)
	m.Reset()
	return m
}

// Reset forgets the run and keeps the buffers.
func (m *Set) Reset() {
	for i := range m.workers {
		m.workers[i] = worker{
			instance: -1, calm: never, pingSent: never,
			registeredAt: never, registerSent: never, registerLate: never,
		}
	}
	m.instances.reset()
	m.peers.reset()
	m.requests, m.spare = m.requests[:0], -1
	m.forgetServer()
	m.peak = 0
	m.up, m.paused, m.stopping, m.upSince = true, false, false, never
	m.faultsOver = core.Never
	if m.setup.FaultsOver > 0 {
		m.faultsOver = core.Time(m.setup.FaultsOver)
	}
	m.order, m.saw = 0, truth{}
	m.unsettled = m.unsettled[:0]
	m.violations, m.dropped, m.reported = m.violations[:0], 0, 0
}

// Observe takes one record. Records must come in the order in which they were
// written, their times never falling.
func (m *Set) Observe(r *core.Record) {
	if len(m.unsettled) > 0 && (r.At != m.unsettledAt || r.Actor >= core.FirstWorker || beginsStep[r.Kind]) {
		m.settle()
	}
	switch r.Kind {
	// The common ones.
	case core.MessageReached:
		m.messageReached(r)
	case core.Stamped:
		m.stamped(r)
	case core.PingSent:
		m.pingSent(r)
	case core.MessageHandled:
		if m.skewed {
			m.skewHandled(r)
		}

	// The server's claims.
	case core.ServerStopping:
		m.serverStopping(r)
	case core.ServerStopped:
		m.onceStopped(r)
	case core.RegisterArrived:
		m.registerArrived(r)
	case core.RegisterNoop:
		if r.Context == core.RopeState {
			m.ropeAdded(r) // kept for the registration that came just now
		}
	case core.ContextInserted:
		m.contextInserted(r)
	case core.ReapDecided:
		m.reapDecided(r)
	case core.ContextRemoved:
		m.contextRemoved(r)
	case core.StrategyAdded, core.StrategyRemoved:
		m.strategyChanged(r)
	case core.RopeAdded:
		m.ropeAdded(r)
	case core.RopeDropped:
		m.ropeDropped(r)
	case core.LayoutAcquired:
		m.layoutAcquired(r)
	case core.LayoutReleased:
		m.layoutReleased(r)
	case core.CopyBegan:
		m.copying(r, 1)
		if m.setup.Protections.TransferKeepsAlive {
			m.copyBegan(r)
		}
	case core.CopyEnded:
		m.copying(r, -1)
		if m.setup.Protections.TransferKeepsAlive {
			m.copyEnded(r)
		}
	case core.CloseBegan:
		m.closeBegan(r)
	case core.CloseEnded:
		m.closeEnded(r)
	case core.ReleaseStuck:
		m.releaseStuck(r)
	case core.UnregisterCame:
		m.unregisterCame(r)
	case core.ServerWarned:
		m.warned(r)
	case core.Refused:
		if m.skewed {
			m.skewRefused(r)
		}
	case core.ChunkReserved:
		m.chunkReserved(r)
	case core.ChunkReady:
		m.chunkReady(r)
	case core.ChunkDropped:
		m.chunkDropped(r)
	case core.LockTaken:
		m.locks++
	case core.LockReturned:
		m.lockReturned(r)

	// The workers' claims.
	case core.WorkerStarted:
		m.workerStarted(r)
	case core.PingFailed:
		m.pingFailed(r)
	case core.RegisterSent:
		m.registerSent(r)
	case core.RegisterEnded:
		m.registerEnded(r)
	case core.ShutdownBegan:
		m.leaving(int64(r.Actor)-int64(core.FirstWorker), r.At)
	case core.UnregisterSent:
		m.unregisterSent(r)

	// The truth.
	case core.ProcessStarted:
		m.processStarted(r)
	case core.ProcessKilled, core.ProcessExited:
		m.processEnded(r)
	case core.ProcessPaused:
		m.processPaused(r)
	case core.ProcessResumed:
		m.processResumed(r)
	case core.ConnectionOpened:
		m.connectionOpened(r)
	case core.ConnectionClosed:
		m.connectionClosed(r)
	case core.LinkCut:
		m.linkCut(r)
	case core.LinkHealed:
		m.linkHealed(r)
	case core.MappingOpened:
		m.mappingOpened(r)
	case core.MappingClosing:
		m.mappingClosing(r)
	case core.MappingClosed:
		m.mappingClosed(r)
	case core.MappingHung:
		m.mappingHung(r)
	case core.MappingReopened, core.MappingClosedTwice, core.MappingUnknown:
		m.onceMapping(r)
	case core.CopyTouchedRelease, core.CopyTouchedGone:
		m.copyTouched(r)
	case core.EngineSubmitted:
		m.engineSubmitted(r)
	case core.EngineTold:
		m.engineTold(r)
	case core.EngineRegistered:
		m.engineRegistered(r)
	case core.EngineLeaving:
		if i := m.instances.get(uint64(r.Instance)); i >= 0 {
			m.leaving(int64(m.instances.items[i].worker), r.At)
		}
	case core.BlocksWrong:
		m.blocksWrong(r)
	case core.CopyMisfit:
		m.copyMisfit(r)
	case core.TimerInVain:
		m.timerInVain(r)
	case core.ParcelLeft:
		m.parcelLeft(r)
	case core.FaultsOver:
		m.faultsOver = r.At
	}
}

// Finish judges what was still owed when the run ended.
func (m *Set) Finish(end core.Time) {
	m.settle()
	for w := range m.workers {
		m.convergeCheck(int32(w), end)
		m.terminalCheck(int32(w), end)
		m.isolateRegister(int32(w), end, true)
		m.skewFinish(int32(w), end)
	}
	for i := range m.instances.items {
		m.quietFinish(&m.instances.items[i], end)
	}
	m.reclaimAll(end)
	for _, i := range m.closing {
		m.visibleRelease(&m.mappings.items[i], end)
	}
	m.onceFinish(end)
	m.terminalLeftovers(end)
}

// beginsStep lists the records that can only be the first of another input, so
// that the step before them is over.
var beginsStep = [256]bool{
	core.MessageReached: true, core.MessageHandled: true,
	core.ProcessStarted: true, core.ProcessKilled: true, core.ProcessExited: true,
	core.ProcessPaused: true, core.ProcessResumed: true, core.FaultStruck: true,
	core.ConnectionOpened: true, core.ConnectionClosed: true,
	core.RegisterArrived: true, core.UnregisterCame: true, core.ScanBegan: true,
	core.ServerStopping: true, core.ServerStopped: true, core.WorldEnded: true,
}
