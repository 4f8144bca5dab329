package core

// Frames is one multipart message. All parts lie in one buffer, so that a
// pooled Frames carries messages of any shape without allocating.
// The zero value is an empty message.
type Frames struct {
	Bytes []byte
	Ends  []int // Ends[i] is where part i stops in Bytes
}

// Len returns the number of parts.
func (f *Frames) Len() int { return len(f.Ends) }

// Part returns part i; it aliases the message's buffer.
func (f *Frames) Part(i int) []byte {
	start := 0
	if i > 0 {
		start = f.Ends[i-1]
	}
	return f.Bytes[start:f.Ends[i]:f.Ends[i]]
}

// Append adds one part, copying it.
func (f *Frames) Append(part []byte) {
	f.Bytes = append(f.Bytes, part...)
	f.EndPart()
}

// EndPart closes the part made of what was appended to Bytes since the last
// EndPart. Encoders append straight to Bytes and then call it.
func (f *Frames) EndPart() { f.Ends = append(f.Ends, len(f.Bytes)) }

// Reset empties the message and keeps its buffers.
func (f *Frames) Reset() {
	f.Bytes = f.Bytes[:0]
	f.Ends = f.Ends[:0]
}

// CopyFrom makes f equal to g without sharing memory.
func (f *Frames) CopyFrom(g *Frames) {
	f.Bytes = append(f.Bytes[:0], g.Bytes...)
	f.Ends = append(f.Ends[:0], g.Ends...)
}
