package wire

import (
	"fmt"

	"vigil/core"
)

// Explain says in one line what is wrong with a decoded request: which
// request, which frame, what. It is empty where nothing is. It allocates: it
// is for logs and errors, never for the hot path.
func Explain(r *Request) string {
	if r.Failure == core.NoFailure {
		return ""
	}
	name := r.Type.String()
	if r.Type == Named {
		name = fmt.Sprintf("operation %q", r.Name)
	}
	switch r.Failure {
	case core.FailShortMessage:
		return "message: fewer than 2 frames, where a request has a uid and a type at least"
	case core.FailPayloadCount:
		want, _ := PayloadsOf(r.Type)
		if r.Type == Ping && r.payloads == 1 {
			want = 0 // only a server of before liveness refuses this
		}
		return fmt.Sprintf("%s: %s where %d %s expected: client and server versions differ",
			name, frameCount(r.payloads), want, isAre(want))
	case core.FailUnsupported:
		return fmt.Sprintf("%s: not served with %s; 25 to 40 mean different requests in different versions, so the number and the count must both fit",
			name, frameCount(r.payloads))
	case core.FailUnknownType:
		return fmt.Sprintf("frame 1 (type, % x): %s", clip(r.RawType), r.why)
	}
	switch {
	case r.part == wholeMessage && r.Type == NoType:
		return "message: " + r.why
	case r.part == wholeMessage:
		return fmt.Sprintf("%s: the message %s", name, r.why)
	case r.part == 0:
		return "frame 0 (uid): " + r.why
	case r.part == 1:
		return "frame 1 (type): " + r.why
	}
	return fmt.Sprintf("%s: frame %d (%s): %s", name, r.part, payloadName(r.Type, r.part-firstPayload), r.why)
}

func frameCount(n int) string {
	if n == 1 {
		return "1 payload frame"
	}
	return fmt.Sprintf("%d payload frames", n)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// clip keeps a hostile frame from filling a log line.
func clip(b []byte) []byte {
	if len(b) > 16 {
		return b[:16]
	}
	return b
}

// payloadName says what payload i of a request is.
func payloadName(t Type, i int) string {
	names := entryOf(t).payloads
	if i < 0 || i >= len(names) {
		return "payload"
	}
	return names[i]
}
