package capsule

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vigil/sim"
)

// The tape in a capsule. Each stream has a line: its purpose, its actor (0 the
// server, then the workers; of the story the number of the step), how many
// decisions it holds, and the decisions. A stream of few words is written in
// them, with runs of zeros as 0*N; a long one is packed: base64 of varints, a
// run of zeros as a zero and its length.

// tidy is a tape as capsules hold it: its own memory, in a fixed order, without
// the world's stream and without what is empty.
func tidy(t *sim.Tape) (*sim.Tape, error) {
	out := &sim.Tape{}
	total := 0
	for i := range t.Streams {
		s := &t.Streams[i]
		if len(s.Values) == 0 || isWorld(s) {
			continue
		}
		total += len(s.Values)
		out.Streams = append(out.Streams, sim.Stream{Purpose: s.Purpose, Actor: s.Actor, Values: slices.Clone(s.Values)})
	}
	switch {
	case total > MaxDecisions:
		return nil, fmt.Errorf("the tape has %d decisions; a capsule holds %d", total, MaxDecisions)
	case len(out.Streams) > MaxStreams:
		return nil, fmt.Errorf("the tape has %d streams; a capsule holds %d", len(out.Streams), MaxStreams)
	}
	slices.SortFunc(out.Streams, func(a, b sim.Stream) int {
		return cmp.Or(cmp.Compare(a.Purpose, b.Purpose), cmp.Compare(a.Actor, b.Actor))
	})
	return out, nil
}

// fresh reads a tape from its start and leaves the tape alone.
func fresh(t *sim.Tape) *sim.Tape { return &sim.Tape{Streams: slices.Clip(t.Streams)} }

const (
	shortStream = 160 // bytes of a stream that is written in words
	packedWidth = 96  // bytes of a line of a packed one
)

// writeStream writes one stream.
func writeStream(b *bytes.Buffer, s *sim.Stream) {
	fmt.Fprintf(b, "%s %d %d:", s.Purpose, s.Actor, len(s.Values))
	if words, ok := inWords(s.Values); ok {
		b.WriteString(words + "\n")
		return
	}
	b.WriteString(" packed\n")
	text := base64.StdEncoding.EncodeToString(pack(s.Values))
	for len(text) > 0 {
		n := min(len(text), packedWidth)
		b.WriteString("  " + text[:n] + "\n")
		text = text[n:]
	}
}

// inWords writes values as words; false where they are too many.
func inWords(values []uint64) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(values); {
		zeros := zerosAt(values[i:])
		switch {
		case zeros > 1:
			fmt.Fprintf(&b, " 0*%d", zeros)
			i += zeros
		default:
			fmt.Fprintf(&b, " %d", values[i])
			i++
		}
		if b.Len() > shortStream {
			return "", false
		}
	}
	return b.String(), true
}

func zerosAt(values []uint64) int {
	n := 0
	for n < len(values) && values[n] == 0 {
		n++
	}
	return n
}

func pack(values []uint64) []byte {
	var out []byte
	for i := 0; i < len(values); {
		if zeros := zerosAt(values[i:]); zeros > 0 {
			out = binary.AppendUvarint(append(out, 0), uint64(zeros))
			i += zeros
			continue
		}
		out = binary.AppendUvarint(out, values[i])
		i++
	}
	return out
}

var errValues = errors.New("its decisions are not those that were counted")

// readWords reads count values from words.
func readWords(text string, count int) ([]uint64, error) {
	values := make([]uint64, 0, min(count, len(text)+1))
	for word := range strings.FieldsSeq(text) {
		repeats := 1
		if n, ok := strings.CutPrefix(word, "0*"); ok {
			v, err := strconv.ParseUint(n, 10, 31)
			if err != nil || v > uint64(count) {
				return nil, fmt.Errorf("%q is no number of zeros", clip(word))
			}
			word, repeats = "0", int(v)
		}
		v, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no decision", clip(word))
		}
		if len(values)+repeats > count {
			return nil, errValues
		}
		for range repeats {
			values = append(values, v)
		}
	}
	if len(values) != count {
		return nil, errValues
	}
	return values, nil
}

// unpack reads count values from what pack wrote.
func unpack(data []byte, count int) ([]uint64, error) {
	var values []uint64
	next := func() (uint64, bool) {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			return 0, false
		}
		data = data[n:]
		return v, true
	}
	for len(data) > 0 {
		v, ok := next()
		if !ok {
			return nil, errValues
		}
		repeats := uint64(1)
		if v == 0 {
			if repeats, ok = next(); !ok || repeats == 0 {
				return nil, errValues
			}
		}
		if repeats > uint64(count-len(values)) {
			return nil, errValues
		}
		for range repeats {
			values = append(values, v)
		}
	}
	if len(values) != count {
		return nil, errValues
	}
	return values, nil
}
