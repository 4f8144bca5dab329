package wire

import "vigil/core"

// Decode reads one message as a server sees it (without the identity) into r.
// What is wrong with it is said in r.Failure.
func (d *Decoder) Decode(frames *core.Frames, r *Request) { panic("wire: being written") }

// EncodeRequest appends the frames of r to f: UIDNumber, Type, payloads.
func EncodeRequest(f *core.Frames, r *Request) { panic("wire: being written") }

// EncodeReply appends the frames of a reply to a request of type t whose first
// two frames were uid and rawType.
func EncodeReply(f *core.Frames, uid, rawType []byte, t Type, reply *Reply) {
	panic("wire: being written")
}

// DecodeReply reads one message as a worker sees it into r.
func DecodeReply(f *core.Frames, r *Reply) core.Failure { panic("wire: being written") }

// Reset empties r and keeps its buffers.
func (r *Request) Reset() { panic("wire: being written") }

// Pool says where a request's handler runs.
type Pool uint8

// The pools (design document, section 3; PROTOCOL, section 3).
const (
	PoolNone     Pool = iota // no such request
	PoolSync                 // on the main loop
	PoolNormal               // in the NORMAL pool
	PoolAffinity             // in the lane of the request's connection
)

// PoolOf returns where requests of type t run.
func PoolOf(t Type) Pool { panic("wire: being written") }

// String is the request's name, as in PROTOCOL, section 2.
func (t Type) String() string { panic("wire: being written") }
