package wire

// Why this file: what a ping's answer says beyond yes or no. An old client
// judges the answer as Python's bool() does, so any integer but 0 is as good
// as true to it; the protections put what they have to say into one whose
// lowest bit is always set.

// The layout of a ping's answer. It fits 63 bits, so that a reader of signed
// integers takes it.
const (
	pingYes        = 1 << 0 // always: the integer is never false
	pingAware      = 1 << 1 // the next bit means something
	pingRegistered = 1 << 2
	pingBoot       = 3 // from this bit on: the server's boot token
)

// MaxBoot is the largest boot token that fits a ping's answer, 60 bits. A
// larger one is cut to its low bits; 0 means none.
const MaxBoot = 1<<60 - 1

// PingVerdict is what the answer to a ping says beyond "true". The zero value
// says nothing: so does every server without the protections.
type PingVerdict struct {
	Aware      bool   // Registered means something
	Registered bool   // the id that pinged has a context
	Boot       uint64 // names the server's life; 0 where it is not said
}

// append writes a positive answer to a ping: plain true where there is nothing
// to say, as an old server does.
func (v *PingVerdict) append(b []byte) []byte {
	boot := v.Boot & MaxBoot
	if !v.Aware && boot == 0 {
		return append(b, codeTrue)
	}
	answer := boot<<pingBoot | pingYes
	if v.Aware {
		answer |= pingAware
		if v.Registered {
			answer |= pingRegistered
		}
	}
	return appendUint(b, answer)
}

// read takes the verdict out of an answer, which is left for the cursor's own
// caller to judge. An answer that is no integer of this layout says nothing.
func (v *PingVerdict) read(c cursor) {
	answer, negative, ok := c.integer()
	if !ok || negative || answer&pingYes == 0 || answer >= 1<<63 {
		return
	}
	v.Boot = answer >> pingBoot
	if v.Aware = answer&pingAware != 0; v.Aware {
		v.Registered = answer&pingRegistered != 0
	}
}
