package monitor

import "vigil/core"

// Which processes live, run and are connected decides what anybody owes: this
// file follows them for all monitors.

// worker is one worker's process, by its number; a restart keeps the number.
type worker struct {
	pingSent core.Time
	instance int32 // place of its present instance, -1 before it is known
	reported uint16

	alive, paused bool
	cut           bool // its link is cut, either way
	disconnected  bool // its last connection closed
	registered    bool // the engine was told that it registered
	leave         bool // asked to shut down, or shutting down
	left          bool // sent its unregister
	pending       bool // a register waits for its reply
	skewHandled   bool // a ping of another version was taken in
	skewRefused   bool // and refused by the payload count
	connections   int32

	calm         core.Time // alive, running, linked and connected since then
	registeredAt core.Time
	registerSent core.Time
	registerLate core.Time    // when a register ended that was under way before a context was owed
	lastFailure  core.Failure // of the last register
}

// worker returns the process of a worker number, nil where there is none.
func (m *Set) worker(n int64) *worker {
	if n < 0 || n >= int64(len(m.workers)) {
		return nil
	}
	return &m.workers[n]
}

// numbered turns "worker number + 1" of a record into the number; -1 is the server.
func numbered(a uint64) int64 {
	if a > 1<<32 {
		return 1 << 32 // no such worker
	}
	return int64(a) - 1
}

// calmly reports whether worker k has been undisturbed.
func (k *worker) calmly() bool { return k.alive && !k.paused && !k.cut && !k.disconnected }

// before judges what worker n owes so far, just before something changes it.
func (m *Set) before(n int64, at core.Time) {
	m.convergeCheck(int32(n), at)
	m.terminalCheck(int32(n), at)
}

// judgeAll judges everything owed so far, just before the server goes away.
func (m *Set) judgeAll(at core.Time) {
	if !m.up {
		return
	}
	for w := range m.workers {
		m.before(int64(w), at)
	}
	m.reclaimAll(at)
	for _, i := range m.closing {
		m.visibleRelease(&m.mappings.items[i], at)
	}
}

func (m *Set) processStarted(r *core.Record) {
	m.saw.processes = true
	n := numbered(r.A)
	if n < 0 {
		m.up, m.paused, m.stopping, m.upSince = true, false, false, r.At
		return
	}
	if k := m.worker(n); k != nil {
		m.born(k, r.At)
		if r.Instance != 0 {
			m.bind(int32(n), r.Instance)
		}
	}
}

// born starts a life of a worker number; a life before it has ended.
func (m *Set) born(k *worker, at core.Time) {
	if k.alive && k.instance >= 0 {
		in := &m.instances.items[k.instance]
		if in.owners--; k.left {
			in.leftOwners--
		}
		if in.owners == 0 {
			in.deadAt = at
			m.forgetRequests(in)
		}
	}
	*k = worker{
		instance: -1, reported: k.reported, alive: true, cut: k.cut, connections: k.connections,
		calm: at, pingSent: never, registeredAt: never, registerSent: never, registerLate: never,
		skewHandled: k.skewHandled, skewRefused: k.skewRefused,
	}
}

func (m *Set) workerStarted(r *core.Record) {
	n := int64(r.Actor) - int64(core.FirstWorker)
	k := m.worker(n)
	if k == nil {
		return
	}
	if !k.alive { // a log without the truth about processes
		m.born(k, r.At)
	}
	if r.Instance != 0 {
		m.bind(int32(n), r.Instance)
	}
}

// bind says that worker n owns the id from now on.
func (m *Set) bind(n int32, id core.InstanceID) {
	k := &m.workers[n]
	i := m.instance(id)
	if i < 0 || k.instance == i {
		return
	}
	if k.instance >= 0 {
		m.instances.items[k.instance].owners--
	}
	k.instance = i
	in := &m.instances.items[i]
	in.aliased = in.aliased || in.worker >= 0 && (in.worker != n || in.deadAt != never)
	in.worker, in.deadAt = n, never
	in.owners++
}

func (m *Set) processEnded(r *core.Record) {
	m.saw.processes = true
	n := numbered(r.A)
	if n < 0 {
		m.judgeAll(r.At)
		m.up, m.paused, m.stopping = false, false, false
		m.serverGone(r.At)
		return
	}
	k := m.worker(n)
	if k == nil || !k.alive {
		return
	}
	m.before(n, r.At)
	m.isolateRegister(int32(n), r.At, true)
	if k.instance >= 0 {
		in := &m.instances.items[k.instance]
		if r.Kind == core.ProcessExited {
			m.terminalExit(int32(n), in, r.At)
		}
		if in.owners--; k.left {
			in.leftOwners--
		}
		if in.owners == 0 {
			in.deadAt = r.At
			m.forgetRequests(in)
		}
	}
	k.alive, k.paused, k.pending, k.registered = false, false, false, false
}

func (m *Set) processPaused(r *core.Record) {
	n := numbered(r.A)
	if n < 0 {
		m.judgeAll(r.At)
		m.up, m.paused = false, true
		return
	}
	if k := m.worker(n); k != nil {
		m.before(n, r.At)
		k.paused = true
	}
}

func (m *Set) processResumed(r *core.Record) {
	n := numbered(r.A)
	if n < 0 {
		if m.paused {
			m.paused, m.up, m.upSince = false, !m.stopping, r.At
		}
		return
	}
	if k := m.worker(n); k != nil {
		k.paused, k.calm = false, r.At
	}
}

func (m *Set) serverStopping(r *core.Record) {
	m.judgeAll(r.At)
	m.up, m.stopping = false, true
}

func (m *Set) connectionOpened(r *core.Record) {
	n := numbered(r.B)
	k := m.worker(n)
	if k == nil {
		return
	}
	if m.skewed && r.A != 0 {
		if i := m.peers.get(r.A); i >= 0 {
			m.peers.items[i] = int32(n)
		} else if i := m.peers.add(r.A, core.MaxInstances); i >= 0 {
			m.peers.items[i] = int32(n)
		}
	}
	if k.connections++; k.connections == 1 {
		k.disconnected, k.calm = false, r.At
	}
}

func (m *Set) connectionClosed(r *core.Record) {
	n := numbered(r.B)
	k := m.worker(n)
	if k == nil {
		return
	}
	m.before(n, r.At)
	k.connections = max(0, k.connections-1)
	k.disconnected = k.connections == 0
}

func (m *Set) linkCut(r *core.Record) {
	if n := numbered(r.A); m.worker(n) != nil {
		m.before(n, r.At)
		m.workers[n].cut = true
	}
}

func (m *Set) linkHealed(r *core.Record) {
	if k := m.worker(numbered(r.A)); k != nil {
		k.cut, k.calm = false, r.At
	}
}

func (m *Set) engineRegistered(r *core.Record) {
	m.saw.engines = true
	n := numbered(r.A) // the world says whose engine; a log may not
	if i := m.instances.get(uint64(r.Instance)); n < 0 && i >= 0 {
		n = int64(m.instances.items[i].worker)
	}
	k := m.worker(n)
	if k != nil && r.Flag && !k.registered {
		k.registered, k.registeredAt = true, r.At
	}
}

// leaving says that worker n no longer wants to serve.
func (m *Set) leaving(n int64, at core.Time) {
	if k := m.worker(n); k != nil && !k.leave {
		m.convergeCheck(int32(n), at)
		k.leave = true
	}
}
