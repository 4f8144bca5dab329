package core

// TimerKey names a pending timer of one state machine. Arming a key that is
// armed moves it; a machine never has two timers of one key.
type TimerKey struct {
	Kind TimerKind
	Slot uint32 // which of the machine's numbered things it is for; small
}

// TimerKind says what a timer is for. A timer armed at the current time is how
// a machine says "and then, as a separate step": the world decides what comes
// between, which keeps the gaps between a real system's threads visible.
type TimerKind uint8

// The timers of both machines. Slot is 0 unless a comment says otherwise.
const (
	TimerNone TimerKind = iota

	// Server.
	TimerScan       // the next reaper scan is due
	TimerReaperStep // the reaper's next step (pop, close begin, fan-out)
	TimerMainStep   // the main loop's next step (open ended, insert)
	TimerJob        // Slot: job number; a waiting job's own deadline
	TimerRelease    // Slot: release number; a release's bound on time
	TimerDrain      // the bound on the time of a shutdown

	// Worker.
	TimerHeartbeat     // the heartbeat thread wakes to ping
	TimerPingReply     // the heartbeat thread gives up waiting for a ping's reply
	TimerHeartbeatStep // the heartbeat thread's next step (callback, publish)
	TimerRecovery      // the recovery's register got no reply in time
	TimerRegister      // the engine's own register got no reply in time
	TimerRequest       // Slot: pending number; a request's deadline
	TimerUnregister    // the shutdown's unregister got no reply in time
	TimerJoin          // the bound on joining the heartbeat thread at shutdown

	TimerKinds // how many kinds there are; not a kind
)

var timerKindNames = [TimerKinds]string{
	"none", "scan", "reaper-step", "main-step", "job", "release", "drain",
	"heartbeat", "ping-reply", "heartbeat-step", "recovery", "register", "request", "unregister", "join",
}

// String is the timer's name in stories.
func (k TimerKind) String() string { return nameOf(timerKindNames[:], int(k)) }

// Heartbeat reports whether the worker's heartbeat thread waits on timers of
// this kind, and so whether starving that thread alone holds them back.
func (k TimerKind) Heartbeat() bool {
	switch k {
	case TimerHeartbeat, TimerPingReply, TimerHeartbeatStep, TimerRecovery:
		return true
	}
	return false
}
