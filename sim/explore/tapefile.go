package explore

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"vigil/sim"
)

// A tape of a corpus as a text: a line that says what it is, a line for each
// stream, and a checksum. A corpus is disposable - what it holds can be found
// again - so a text that is damaged or of another version is refused and never
// guessed at.

// tapeHead begins every tape. The number after it is sim.TapeVersion: under
// another, the same decisions would be about other things.
const tapeHead = "vigil-tape 1 "

const (
	// MaxTapeBytes bounds one tape's text.
	MaxTapeBytes = 4 << 20
	// maxStreams bounds the streams of a tape, and the actors that they name.
	maxStreams = 1 << 12
	maxActor   = 1 << 20
)

// EncodeTape writes a tape as a text; equal tapes are equal texts. A stream that
// is longer than MaxStream is cut there.
func EncodeTape(t *sim.Tape) []byte {
	streams := slices.Clone(t.Streams)
	slices.SortFunc(streams, func(a, b sim.Stream) int {
		if a.Purpose != b.Purpose {
			return int(a.Purpose) - int(b.Purpose)
		}
		return a.Actor - b.Actor
	})
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%d\n", tapeHead, sim.TapeVersion)
	var packed []byte
	for i := range streams {
		s := &streams[i]
		if len(s.Values) == 0 {
			continue
		}
		packed = packed[:0]
		for _, v := range s.Values[:min(len(s.Values), MaxStream)] {
			packed = binary.AppendUvarint(packed, v)
		}
		fmt.Fprintf(&b, "%d %d %s\n", s.Purpose, s.Actor, base64.StdEncoding.EncodeToString(packed))
	}
	fmt.Fprintf(&b, "check %08x\n", crc32.ChecksumIEEE(b.Bytes()))
	return b.Bytes()
}

// DecodeTape reads what EncodeTape wrote. The error is one line that says which
// line of the text is wrong.
func DecodeTape(text []byte) (*sim.Tape, error) {
	if len(text) > MaxTapeBytes {
		return nil, fmt.Errorf("it has more than %d bytes", MaxTapeBytes)
	}
	head := fmt.Sprintf("%s%d\n", tapeHead, sim.TapeVersion)
	if !bytes.HasPrefix(text, []byte(head)) {
		if bytes.HasPrefix(text, []byte(tapeHead)) {
			return nil, fmt.Errorf("line 1: it is a tape of another version; delete it, a search finds it again")
		}
		return nil, fmt.Errorf("line 1: it is no tape that simrun explore kept")
	}
	end := bytes.LastIndex(text, []byte("\ncheck "))
	if end < 0 {
		return nil, fmt.Errorf("its end is missing")
	}
	body, check := text[:end+1], string(text[end+1:])
	if check != fmt.Sprintf("check %08x\n", crc32.ChecksumIEEE(body)) {
		return nil, fmt.Errorf("its checksum is not that of what it holds: it was cut or changed")
	}
	t := &sim.Tape{}
	for n, line := range strings.Split(strings.TrimSuffix(string(body[len(head):]), "\n"), "\n") {
		if line == "" {
			continue
		}
		s, err := decodeStream(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+2, err)
		}
		if k := len(t.Streams); k > 0 {
			if last := &t.Streams[k-1]; last.Purpose > s.Purpose || last.Purpose == s.Purpose && last.Actor >= s.Actor {
				return nil, fmt.Errorf("line %d: the streams are not in order", n+2)
			}
		}
		if t.Streams = append(t.Streams, s); len(t.Streams) > maxStreams {
			return nil, fmt.Errorf("it has more than %d streams", maxStreams)
		}
	}
	return t, nil
}

func decodeStream(line string) (s sim.Stream, err error) {
	fields := strings.Split(line, " ")
	if len(fields) != 3 {
		return s, fmt.Errorf("a stream is a purpose, an actor and its decisions")
	}
	purpose, err := strconv.ParseUint(fields[0], 10, 8)
	if err != nil || purpose > uint64(sim.ForEntropy) {
		return s, fmt.Errorf("%.20q is no purpose", fields[0])
	}
	actor, err := strconv.ParseUint(fields[1], 10, 31)
	if err != nil || actor > maxActor {
		return s, fmt.Errorf("%.20q is no actor", fields[1])
	}
	packed, err := base64.StdEncoding.Strict().DecodeString(fields[2])
	if err != nil {
		return s, fmt.Errorf("its decisions cannot be read")
	}
	s.Purpose, s.Actor = sim.Purpose(purpose), int(actor)
	for len(packed) > 0 {
		v, n := binary.Uvarint(packed)
		if n <= 0 || len(s.Values) >= MaxStream {
			return s, fmt.Errorf("its decisions cannot be read")
		}
		s.Values = append(s.Values, v)
		packed = packed[n:]
	}
	return s, nil
}
