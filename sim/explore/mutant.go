package explore

import (
	"math/bits"

	"vigil/sim"
)

// mutant is a tape in the making: some streams of a parent, changed, and where a
// stream ends, fresh decisions. It is the source of the run that it is made for.
type mutant struct {
	streams []mutantStream
	index   []int32      // of each purpose of each actor: its stream, plus one
	rest    *sim.Choices // decides where a stream is over
}

type mutantStream struct {
	sim.Stream      // Values is the mutant's own copy
	plain      bool // where it is over, it is the plainest that is decided on
	at         int
}

// MaxStream bounds the decisions of one stream that a tape of the corpus keeps:
// beyond it, fresh ones are as good.
const MaxStream = 1 << 14

func (m *mutant) copy(parent *sim.Tape) {
	m.streams = m.streams[:0]
	for i := range parent.Streams {
		s := &parent.Streams[i]
		n := len(m.streams)
		if n < cap(m.streams) {
			m.streams = m.streams[:n+1]
		} else {
			m.streams = append(m.streams, mutantStream{})
		}
		to := &m.streams[n]
		to.Purpose, to.Actor, to.plain, to.at = s.Purpose, s.Actor, false, 0
		to.Values = append(to.Values[:0], s.Values[:min(len(s.Values), MaxStream)]...)
	}
}

// rewind has the tape read from its start.
func (m *mutant) rewind() {
	clear(m.index)
	for i := range m.streams {
		s := &m.streams[i]
		s.at = 0
		at := place(s.Purpose, s.Actor)
		for at >= len(m.index) {
			m.index = append(m.index, 0)
		}
		m.index[at] = int32(i) + 1
	}
}

func place(purpose sim.Purpose, actor int) int { return actor<<4 | int(purpose) }

// Draw reads the next decision of a stream.
func (m *mutant) Draw(purpose sim.Purpose, actor int, n uint64) uint64 {
	if at := place(purpose, actor); at < len(m.index) && m.index[at] > 0 {
		s := &m.streams[m.index[at]-1]
		if s.at < len(s.Values) {
			s.at++
			return s.Values[s.at-1]
		}
		if s.plain {
			return 0
		}
	}
	return m.rest.Below(purpose, actor, n)
}

// mutate changes the tape in one to eight places. other is a tape to take
// streams from.
func (m *mutant) mutate(d *dice, other *sim.Tape) {
	for range 1 << d.below(4) {
		if len(m.streams) == 0 {
			return
		}
		s := &m.streams[d.below(uint64(len(m.streams)))]
		if d.below(4) == 0 {
			s = m.story(d, s) // what is drawn about the world weighs more than a latency
		}
		m.change(d, s, other)
	}
}

// story is a stream of the story's, where there is one: when steps strike and
// what a drawn world is.
func (m *mutant) story(d *dice, fallback *mutantStream) *mutantStream {
	n := uint64(0)
	for i := range m.streams {
		if m.streams[i].Purpose == sim.ForStory {
			n++
		}
	}
	if n == 0 {
		return fallback
	}
	pick := d.below(n)
	for i := range m.streams {
		if m.streams[i].Purpose != sim.ForStory {
			continue
		}
		if pick == 0 {
			return &m.streams[i]
		}
		pick--
	}
	return fallback
}

// change changes one stream.
func (m *mutant) change(d *dice, s *mutantStream, other *sim.Tape) {
	if len(s.Values) == 0 || s.Purpose == sim.ForEntropy { // ids that are plain are each other's
		return
	}
	at := int(d.below(uint64(len(s.Values))))
	switch d.below(7) {
	case 0: // another decision
		s.Values[at] = d.next() >> 1
	case 1: // the plainest
		s.Values[at] = 0
	case 2: // a neighbour
		s.Values[at] += d.below(3) - 1
	case 3: // nothing but plain decisions from here on
		s.Values, s.plain = s.Values[:at], true
	case 4: // fresh decisions from here on
		s.Values = s.Values[:at]
	case 5: // the decisions in between fall out: all later ones come earlier
		end := at + 1 + int(d.below(uint64(bits.Len(uint(len(s.Values))))))
		s.Values = append(s.Values[:at], s.Values[min(end, len(s.Values)):]...)
	case 6: // the other tape's from here on
		for i := range other.Streams {
			if o := &other.Streams[i]; o.Purpose == s.Purpose && o.Actor == s.Actor && len(o.Values) > at {
				s.Values = append(s.Values[:at], o.Values[at:min(len(o.Values), MaxStream)]...)
				return
			}
		}
	}
}
