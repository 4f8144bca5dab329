package loop

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"

	"vigil/core"
	"vigil/core/server"
	"vigil/core/wire"
)

// Reading a recording, and feeding it to a fresh core: the same inputs must
// give the same outputs.

// Torn is where a segment stops being whole: the end that a kill leaves, or
// damage. Nothing behind it is read.
type Torn struct {
	Path   string
	Offset int64 // of the first record that is not whole
	Why    string
}

func (t *Torn) String() string {
	return fmt.Sprintf("%s: byte %d: %s; what is before it is good", t.Path, t.Offset, t.Why)
}

// Segment is one segment of a recording, read.
type Segment struct {
	Path     string
	Head     SegmentHead
	Snapshot []byte // of the core, for server.ReadSnapshot
	Torn     *Torn  // after the last input was read; nil where it is whole

	data    []byte
	at      int64
	request wire.Request
	end     core.Digest
	ended   bool
}

// Recorded is one input of a segment.
type Recorded struct {
	Number uint64 // in its life, from 0
	Offset int64  // of its record in the file
	Now    core.Time
	Input  core.Input // valid until the next one is read
	Before core.Digest
}

// ReadSegments opens every segment of a folder, or the one that path is, and
// gives them to visit in their order, until visit fails. A segment without a
// whole head and snapshot has nothing to replay: its Torn says so.
func ReadSegments(path string, visit func(*Segment) error) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	list := []segmentFile{{path: path}}
	if info.IsDir() {
		if list, err = segments(path); err != nil {
			return err
		}
		if len(list) == 0 {
			return fmt.Errorf("recording: no segment (%s) is in %s", segmentPattern, path)
		}
	}
	for _, f := range list {
		data, err := os.ReadFile(f.path)
		if err != nil {
			return fmt.Errorf("recording: %w", err)
		}
		s := &Segment{Path: f.path, data: data}
		if err := s.open(); err != nil {
			return err
		}
		if err := visit(s); err != nil {
			return err
		}
	}
	return nil
}

// open reads the head and the snapshot. A file of a foreign format is an error.
func (s *Segment) open() error {
	if len(s.data) < len(magic) && bytes.HasPrefix([]byte(magic), s.data) {
		s.torn("the file ends before its first record")
		return nil
	}
	if !bytes.HasPrefix(s.data, []byte(magic)) {
		return fmt.Errorf("recording: %s is not a segment of a recording, or of another version", s.Path)
	}
	s.at = int64(len(magic))
	kind, body := s.record()
	if s.Torn != nil {
		return nil
	}
	if kind != bodyHead || json.Unmarshal(body, &s.Head) != nil {
		return fmt.Errorf("recording: %s has no head", s.Path)
	}
	if kind, body = s.record(); s.Torn != nil {
		return nil
	}
	if kind != bodySnapshot {
		return fmt.Errorf("recording: %s has no snapshot behind its head", s.Path)
	}
	s.Snapshot = body
	return nil
}

func (s *Segment) torn(why string) {
	s.Torn = &Torn{s.Path, s.at, why}
}

// record reads the next record; kind is 0 at the end and where it is torn.
func (s *Segment) record() (kind byte, body []byte) {
	rest := s.data[s.at:]
	switch {
	case len(rest) == 0:
		return 0, nil
	case len(rest) < recordHead:
		s.torn("it ends in the middle of a record")
		return 0, nil
	}
	n := int64(binary.LittleEndian.Uint32(rest))
	sum := binary.LittleEndian.Uint32(rest[4:])
	switch {
	case n > int64(len(rest)-recordHead):
		s.torn("it ends in the middle of a record")
		return 0, nil
	case n == 0:
		s.torn("an empty record")
		return 0, nil
	}
	body = rest[recordHead : recordHead+n : recordHead+n]
	if crc32.Checksum(body, castagnoli) != sum {
		s.torn("a record whose sum does not fit")
		return 0, nil
	}
	s.at += recordHead + n
	return body[0], body[1:]
}

// Inputs gives each input to visit, until visit fails.
func (s *Segment) Inputs(visit func(*Recorded) error) error {
	if s.Snapshot == nil {
		return nil
	}
	in := Recorded{Number: s.Head.First}
	for ; ; in.Number++ {
		in.Offset = s.at
		kind, body := s.record()
		switch {
		case kind == 0 || s.ended:
			return nil
		case kind == bodyEnd && len(body) == 8:
			s.end, s.ended = core.Digest(binary.LittleEndian.Uint64(body)), true
			return nil
		case kind != bodyInput || len(body) < 8:
			return fmt.Errorf("recording: %s: byte %d: a record that does not belong there", s.Path, in.Offset)
		}
		in.Before = core.Digest(binary.LittleEndian.Uint64(body))
		s.request = wire.Request{}
		now, err := readInput(body[8:], &in.Input, &s.request)
		if err != nil {
			return fmt.Errorf("recording: %s: byte %d: %w", s.Path, in.Offset, err)
		}
		in.Now = now
		if err := visit(&in); err != nil {
			return err
		}
	}
}

// Difference is the first place at which a replay did something else than what
// was recorded: what the core asked for at input Number.
type Difference struct {
	Path     string
	Offset   int64
	Number   uint64
	Now      core.Time
	What     string // the input, in words
	Recorded core.Digest
	Replayed core.Digest
}

func (d *Difference) String() string {
	return fmt.Sprintf("%s: byte %d: input %d (%s) at %s gave other outputs than were recorded: %016x, recorded %016x",
		d.Path, d.Offset, d.Number, d.What, d.Now.Sub(0), uint64(d.Replayed), uint64(d.Recorded))
}

// ReplayReport is what came of a replay.
type ReplayReport struct {
	Segments int
	Inputs   uint64
	Hash     core.Digest // of all outputs
	Torn     []*Torn     // each segment that is not whole to its end
	// Difference is the first one, nil where there is none; the replay ends there.
	Difference *Difference
}

var errDiffers = errors.New("it differs")

// Replay feeds a recording to a fresh core, segment by segment, and compares
// its outputs with what was recorded. step, where it is not nil, sees each
// input after its step with what the core asked for; it must not change them.
func Replay(path string, step func(s *Segment, in *Recorded, out *core.Effects)) (*ReplayReport, error) {
	report := new(ReplayReport)
	var before *Segment
	machine := new(server.Server)
	err := ReadSegments(path, func(s *Segment) error {
		report.Segments++
		whole := before != nil && before.ended && before.Head.Life == s.Head.Life
		if whole && s.Head.Continues && s.Snapshot != nil && !bytes.Equal(machine.AppendSnapshot(nil), s.Snapshot) {
			report.Difference = &Difference{
				Path: s.Path, Number: s.Head.First, Now: core.Time(s.Head.At),
				What: "the state at the end of the segment before is not this segment's snapshot",
			}
			return errDiffers
		}
		if s.Snapshot != nil {
			if err := machine.ReadSnapshot(s.Snapshot); err != nil {
				return fmt.Errorf("recording: %s: %w", s.Path, err)
			}
		}
		err := replaySegment(s, machine, report, step)
		if s.Torn != nil {
			report.Torn = append(report.Torn, s.Torn)
		}
		before = s
		s.data = nil
		return err
	})
	if errors.Is(err, errDiffers) {
		err = nil
	}
	return report, err
}

func replaySegment(s *Segment, machine *server.Server, report *ReplayReport, step func(*Segment, *Recorded, *core.Effects)) error {
	var digest core.Digest
	var out core.Effects
	var last Difference // the input whose outputs digest has
	differs := func(recorded core.Digest) bool {
		if recorded == digest {
			return false
		}
		last.Recorded, last.Replayed = recorded, digest
		report.Difference = &last
		return true
	}
	last.What, last.Path = "no input yet", s.Path
	err := s.Inputs(func(in *Recorded) error {
		if differs(in.Before) {
			return errDiffers
		}
		out.Reset()
		machine.Step(in.Now, &in.Input, &out)
		foldEffects(&digest, &out)
		report.Inputs++
		last.Offset, last.Number, last.Now = in.Offset, in.Number, in.Now
		last.What = DescribeInput(&in.Input)
		if step != nil {
			step(s, in, &out)
		}
		return nil
	})
	if err == nil && s.ended && differs(s.end) {
		err = errDiffers
	}
	report.Hash.Uint(uint64(digest))
	return err
}

// DescribeInput says an input in a few words.
func DescribeInput(in *core.Input) string {
	switch in.Kind {
	case core.InputFrames:
		r, ok := in.Decoded.(*wire.Request)
		if !ok || r == nil {
			return fmt.Sprintf("a message of peer %d", in.Peer)
		}
		if r.Failure != core.NoFailure {
			return fmt.Sprintf("a message of peer %d, refused: %s", in.Peer, r.Failure)
		}
		return fmt.Sprintf("request %d of peer %d, instance %d", r.Type, in.Peer, r.Instance)
	case core.InputTimer:
		return fmt.Sprintf("timer %d", in.Timer.Kind)
	case core.InputOpened, core.InputReleased, core.InputCopied:
		return fmt.Sprintf("%s, operation %d, failure %s", in.Kind, in.Op, in.Failure)
	case core.InputClosed:
		return fmt.Sprintf("the connection of peer %d closed", in.Peer)
	case core.InputExited:
		return fmt.Sprintf("the process behind peer %d ended", in.Peer)
	}
	return in.Kind.String()
}
