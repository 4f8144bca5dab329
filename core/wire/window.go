package wire

import (
	"bytes"
	"strconv"
	"time"

	"vigil/core"
)

// Why this file: a worker pings by its own interval and is judged by the
// server's window, and nothing on the wire says either. The answer to a register
// says the window, in one frame behind the result, which an old client ignores
// as it ignores the reason of a refusal.

// windowMark begins the frame's text; the window in milliseconds follows it.
const windowMark = "vigil.window:"

// appendWindow writes the frame behind the result of a register; behind a
// result that has no frame comes a nil for it, as in a refusal.
func appendWindow(f *core.Frames, window time.Duration, bare bool) {
	if bare {
		f.Bytes = append(f.Bytes, codeNil)
		f.EndPart()
	}
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], int64(window/time.Millisecond), 10)
	b := appendTextHead(f.Bytes, len(windowMark)+len(text))
	b = append(b, windowMark...)
	f.Bytes = append(b, text...)
	f.EndPart()
}

// windowIn reads the frame behind a result: the server's window, 0 where the
// frame is anything else, or a window that no server may have.
func windowIn(frame []byte) time.Duration {
	c := cursor{b: frame}
	s := c.text(MaxText)
	if c.end(); c.fail != core.NoFailure {
		return 0
	}
	digits, marked := bytes.CutPrefix(s, []byte(windowMark))
	if !marked || len(digits) == 0 || len(digits) > maxWindowDigits {
		return 0
	}
	var n time.Duration
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0
		}
		n = 10*n + time.Duration(d-'0')
	}
	window := n * time.Millisecond
	if window < core.ReapFloor || window > MaxTimeout {
		return 0
	}
	return window
}

// maxWindowDigits keeps the number from overflowing.
const maxWindowDigits = 12

// registers reports whether a reply of type t may say the window.
func registers(t Type) bool { return t == RegisterKVCache || t == RegisterEngineDriven }
