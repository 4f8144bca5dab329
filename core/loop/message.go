package loop

import (
	"sync"

	"vigil/core"
	"vigil/core/wire"
)

// message is one message on its way to the owner, with everything that its
// step needs. It is used again: whoever takes it in gives it back.
type message struct {
	frames  core.Frames
	request wire.Request // server: decoded from frames, and aliasing them
	arrived core.Time
	peer    core.Peer
	charge  int64   // bytes that count against the decoders' bound
	closed  bool    // not a message: its peer's connection closed
	exited  bool    // of closed: or the process behind it is dead
	parcel  *parcel // its inline data, until its step
}

// Messages that decode into large buffers are pooled apart, so that a thousand
// pings do not come to own a thousand prompts' buffers.
var shortMessages, longMessages = sync.Pool{New: newMessage}, sync.Pool{New: newMessage}

func newMessage() any { return new(message) }

// keptMessage is the most bytes that a pooled message may hold on to.
const keptMessage = 4 << 20

func takeMessage(bytes int) *message {
	if bytes > InlineDecodeBytes {
		return longMessages.Get().(*message)
	}
	return shortMessages.Get().(*message)
}

func giveMessage(m *message) {
	if m.parcel != nil { // it never came to its step
		m.parcel.release()
		m.parcel = nil
	}
	m.charge, m.closed, m.exited = 0, false, false
	switch n := cap(m.frames.Bytes); {
	case n > keptMessage:
	case n > 2*InlineDecodeBytes:
		longMessages.Put(m)
	default:
		shortMessages.Put(m)
	}
}
