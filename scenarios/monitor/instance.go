package monitor

import (
	"vigil/core"
	"vigil/core/wire"
)

// instance is what is known of one instance id: who owns it, what reached the
// host in its name, and what the server holds for it.
type instance struct {
	// Written by every message and stamp.
	lastReached core.Time    // its last message reached the server's host
	opened      core.Time    // memory of it was last opened
	stamped     core.Time    // the server last refreshed it for a message that had reached the host
	signal      [2]core.Time // the last message reached that refreshes the kind
	earlier     [2]core.Time // the last such at an earlier time than signal
	credit      int32        // messages reached that have refreshed nothing yet
	worker      int32        // its last owner, or nobody
	pingEver    bool         // a ping reached the host, which may put the id on the reap timeout
	asked       bool         // a transfer reached the host
	everPinged  bool         // a ping reached the host
	pinged      [2]bool      // such a ping since the context was inserted
	traffic     [2]bool      // a transfer of the kind was served

	has     [2]bool             // a context of the kind serves
	serving [2]core.Incarnation // that context
	left    [2]bool             // the server handled its unregister of the kind

	registerReached [2]core.Time // its last register of the kind reached the host
	registerRun     [2]core.Time // the server last began to run one

	id         core.InstanceID
	owners     int32 // processes alive that own the id
	leftOwners int32 // of these, how many sent their unregister
	aliased    bool  // more than one process has owned the id
	everLeft   bool  // an owner sent its unregister
	queued     bool  // in Set.unsettled

	rope         bool
	ropeOrder    uint64
	reapedOrder  uint64    // of its last removal by the reaper
	copies       int32     // of its mappings under way, as claimed, where they keep it alive
	copying      int32     // the same, wherever
	copyBegan    core.Time // the last one
	strategies   int32
	live         int32 // mappings open, their context not removed and no release begun
	requests     int32 // first of its requests + 1
	deadAt       core.Time
	emptySince   [2]core.Time // since when no context of the kind serves, never if none ever did
	removedCause [2]core.RemovalCause
}

// instance returns the place of an id, made where it is new; -1 where the
// bound on instances is reached.
func (m *Set) instance(id core.InstanceID) int32 {
	if i := m.instances.get(uint64(id)); i >= 0 {
		return i
	}
	i := m.instances.add(uint64(id), core.MaxInstances)
	if i >= 0 {
		in := &m.instances.items[i]
		in.id, in.worker = id, nobody
		in.lastReached, in.opened, in.stamped, in.deadAt = never, never, never, never
		for k := range in.signal {
			in.signal[k], in.earlier[k], in.emptySince[k] = never, never, never
			in.registerReached[k], in.registerRun[k] = never, never
		}
	}
	return i
}

// What a request type says about the life of its sender (PROTOCOL, section 2).
const (
	refreshesServerDriven = 1 << iota
	refreshesEngineDriven
	isPing
)

var roles = [256]uint8{
	wire.RegisterKVCache:      refreshesServerDriven,
	wire.Store:                refreshesServerDriven,
	wire.Retrieve:             refreshesServerDriven,
	wire.RegisterEngineDriven: refreshesEngineDriven,
	wire.PrepareStore:         refreshesEngineDriven,
	wire.CommitStore:          refreshesEngineDriven,
	wire.PrepareRetrieve:      refreshesEngineDriven,
	wire.CommitRetrieve:       refreshesEngineDriven,
	wire.Ping:                 refreshesServerDriven | refreshesEngineDriven | isPing,
}

// messageReached is the truth about a sign of life: it came to the server's
// host, whatever the server makes of it.
func (m *Set) messageReached(r *core.Record) {
	m.saw.network = true
	if r.Instance == 0 {
		return
	}
	i := m.instances.get(uint64(r.Instance))
	if i < 0 {
		if i = m.instance(r.Instance); i < 0 {
			return
		}
	}
	in := &m.instances.items[i]
	in.lastReached = r.At
	if r.B > 255 {
		return
	}
	role := roles[r.B]
	if role == 0 {
		return
	}
	switch wire.Type(r.B) {
	case wire.RegisterKVCache:
		in.registerReached[serverDriven] = r.At
	case wire.RegisterEngineDriven:
		in.registerReached[engineDriven] = r.At
	}
	in.credit++
	if role&refreshesServerDriven != 0 && in.signal[serverDriven] != r.At {
		in.earlier[serverDriven], in.signal[serverDriven] = in.signal[serverDriven], r.At
	}
	if role&refreshesEngineDriven != 0 && in.signal[engineDriven] != r.At {
		in.earlier[engineDriven], in.signal[engineDriven] = in.signal[engineDriven], r.At
	}
	switch {
	case role&isPing == 0:
		in.asked = in.asked || wire.Type(r.B) != wire.RegisterKVCache && wire.Type(r.B) != wire.RegisterEngineDriven
	case m.setup.Protections.LatchNeedsTraffic:
		// A ping puts on the reap timeout only what has transferred before.
		in.everPinged = true
		for kind, some := range in.traffic {
			in.pinged[kind] = in.pinged[kind] || some
		}
	default:
		in.pingEver, in.pinged = true, [2]bool{true, true}
	}
	if in.asked && in.everPinged { // which of them is served first is the server's affair
		in.pingEver = true
	}
}

// stamped follows the refreshes that a message at the host can account for: a
// queue may make them late, and a dead worker's window starts at the last one.
func (m *Set) stamped(r *core.Record) {
	if i := m.instances.get(uint64(r.Instance)); i >= 0 {
		in := &m.instances.items[i]
		if kind := kindOf(r.Context); core.StampCause(r.B) == core.StampTransfer && kind != noKind {
			in.traffic[kind] = true
		}
		if in.credit > 0 {
			in.credit--
			in.stamped = r.At
		}
	}
}

// registerArrived is the stamp of a context that is about to be built.
func (m *Set) registerArrived(r *core.Record) {
	if i := m.instances.get(uint64(r.Instance)); i >= 0 {
		in := &m.instances.items[i]
		if kind := kindOf(r.Context); kind != noKind {
			in.registerRun[kind] = r.At
		}
		if in.credit > 0 {
			in.stamped = r.At
		}
	}
}

// present reports whether a process that has not left owns the id.
func (in *instance) present() bool { return in.owners > in.leftOwners }

// dead reports whether the id had an owner and has none now.
func (in *instance) dead() bool { return in.owners == 0 && in.deadAt != never }

// serverGone forgets what the server's process held; it took all of it along.
func (m *Set) serverGone(at core.Time) {
	for i := range m.instances.items {
		in := &m.instances.items[i]
		for k := range in.has {
			if in.has[k] {
				in.has[k], in.emptySince[k], in.removedCause[k] = false, at, core.RemovedByStop
			}
		}
		in.serving, in.left, in.pinged, in.traffic = [2]core.Incarnation{}, [2]bool{}, [2]bool{}, [2]bool{}
		in.copies, in.copying = 0, 0
		in.rope, in.strategies, in.live, in.credit, in.queued = false, 0, 0, 0, false
	}
	m.unsettled = m.unsettled[:0]
	m.forgetServer()
}

func (m *Set) forgetServer() {
	m.contexts.reset()
	m.mappings.reset()
	m.layouts.reset()
	m.reserved.reset()
	m.closing = m.closing[:0]
	m.lastSlow = slowRelease{instance: -1}
	m.failed = 0
	m.locks = 0
}
