package monitor

import (
	"time"

	"vigil/core"
)

// Setup is what a run promises: who takes part, with which settings, and how
// long each thing may honestly take.
type Setup struct {
	Workers []Worker

	Reap, Grace, Scan time.Duration // the server's settings; Reap 0 reaps nothing
	Protections       core.Protections
	// IdleNeverReaped: the run's protections promise that a live worker is not
	// reaped for having been idle (NO-FALSE-REAP, second half).
	IdleNeverReaped bool
	// ServerLegacy is the server before liveness: it reaps nothing, and a PING
	// with an id is version skew (A9).
	ServerLegacy bool

	// The worst honest time of one operation, faults that merely slow it down
	// included: opening a worker's memory, closing a mapping, one transfer's
	// copy, one message one way.
	OpenBound, ReleaseBound, CopyBound, NetworkBound time.Duration

	// PoolFull: at times somebody fills the pool that pings wait in, so that a
	// ping without an answer is no sign of anything else (ISOLATE).
	PoolFull bool
	// ClockStands: at times the server's own clock stands still, so that its
	// stamps are not in the world's time.
	ClockStands bool
	// OpensHang: at times an open never returns, so that a register without an
	// answer is no sign of anything else either.
	OpensHang bool

	// Handover is what a message takes at most from its arrival at the server's
	// host, as it is recorded, into the server's process: nothing in the
	// simulator, where both are one event. A signal that came less than that
	// before the reaper decided may not have been there.
	Handover time.Duration

	// FaultsOver is when the last fault has ceased to act, 0 where never; a
	// record FaultsOver moves it to where it really came.
	FaultsOver, Until time.Duration

	// Real: the records come from real processes and some truth is missing.
	// What cannot be judged without it is listed by Undecided, never passed.
	Real bool
}

// Worker is one worker or other client of a run; its number is its place.
type Worker struct {
	Name    string
	Mode    core.TransferMode
	Blend   bool // registers rope state
	Prober  bool // registers nothing
	Legacy  bool // pings without an id (A9)
	Starved bool // its heartbeat or its engine is held back at times, so that it may be silent though it lives
	// Held is how long its engine's own thread is held back, all together: it
	// takes no answer meanwhile.
	Held     time.Duration
	Interval time.Duration
	Timeout  time.Duration
}

// stepSlack is what each liveness bound allows for steps that take no time by
// the settings: a thread woken a little late, an engine's next call.
const stepSlack = time.Second

// bounds are the liveness bounds of a setup; Describe states them as formulas.
type bounds struct {
	opens time.Duration // of all registrations that may stand in line before one
	park  time.Duration // of a release that hangs, until it is reported as stuck
}

// queue returns the longest line of n operations of d each, without overflow.
func queue(n int, d time.Duration) time.Duration {
	const longest = time.Duration(1) << 60
	if d <= 0 || n <= 0 {
		return 0
	}
	if time.Duration(n) > longest/d {
		return longest
	}
	return time.Duration(n) * d
}

// kinds of context that have liveness: index 0 and 1 of the monitors' arrays.
const (
	serverDriven = 0
	engineDriven = 1
	noKind       = -1
)

// kindOf returns the array index of a context kind.
func kindOf(k core.ContextKind) int {
	switch k {
	case core.ServerDriven:
		return serverDriven
	case core.EngineDriven:
		return engineDriven
	}
	return noKind
}

var kindNames = [2]string{core.ServerDriven.String(), core.EngineDriven.String()}

// kindOfMode returns which kind of context a worker of that mode holds.
func kindOfMode(m core.TransferMode) int {
	if m == core.ModeEngineDriven {
		return engineDriven
	}
	return serverDriven
}
