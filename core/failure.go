package core

// Failure is why something was refused or went wrong, as one word that
// reports, metrics and refusals share.
type Failure uint8

// The failures. NoFailure is success.
const (
	NoFailure          Failure = iota
	FailPayloadCount           // a request had the wrong number of payload frames: version skew
	FailUndecodable            // a payload is not what its class says
	FailUnknownType            // the type frame names no request
	FailUnsupported            // a known request that this server does not serve
	FailShortMessage           // fewer frames than the protocol's three
	FailTooLarge               // a named bound on a frame, list or nesting passed
	FailNotRegistered          // no context for the instance
	FailQueueFull              // a bounded queue was full
	FailNoSpace                // the store has no room that may be evicted
	FailOpen                   // opening exported memory failed
	FailClose                  // closing a mapping failed
	FailCopy                   // a copy failed
	FailOutOfMemory            // the device has no room for the mapping
	FailDeadline               // a deadline passed
	FailUnhealthy              // the worker's heartbeat says the server is away
	FailStopping               // the machine shuts down
	FailBadBlocks              // block ids do not fit the range or the memory
	FailStale                  // the work was meant for an earlier incarnation
	FailUnknownVerdict         // the reply says no without a reason
	FailWindow                 // a heartbeat interval does not fit the window
	FailReleasing              // the instance's last mapping of the same memory is still in release
	FailLost                   // the server's life that it was sent to is over
	failureEnd                 // not a failure
)

var failureNames = [failureEnd]string{
	"none", "payload-count", "undecodable", "unknown-type", "unsupported", "short-message", "too-large",
	"not-registered", "queue-full", "no-space", "open-failed", "close-failed", "copy-failed", "out-of-memory",
	"deadline", "unhealthy", "stopping", "bad-blocks", "stale", "refused", "window", "releasing", "lost",
}

// FailureNamed returns the failure of that name; false where there is none.
func FailureNamed(name string) (Failure, bool) {
	for f, n := range failureNames {
		if n == name {
			return Failure(f), true
		}
	}
	return NoFailure, false
}

// String is the failure's name in reports and metrics.
func (f Failure) String() string { return nameOf(failureNames[:], int(f)) }
