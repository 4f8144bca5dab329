package sim

import (
	"math/bits"
	"time"

	"vigil/faults"
)

// Purpose says what a decision is for. Each purpose of each actor reads a
// stream of its own, so that one more decision here never moves the decisions
// there, and an edited tape stays meaningful.
type Purpose uint8

// The purposes of decisions. In all of them 0 is the plainest choice: the
// earliest, the shortest, the first in order, nothing lost.
const (
	ForStart     Purpose = iota // when a process starts, how long it warms up
	ForStory                    // when a step of the story strikes, how long it lasts
	ForLatency                  // how long a message travels
	ForOrder                    // which of several simultaneous events comes first
	ForGap                      // how long a thread takes to its next step
	ForLoss                     // what a broken connection loses or repeats
	ForReconnect                // how long a reconnect takes
	ForMemory                   // how long a memory operation takes
	ForTraffic                  // when an engine submits, what, how soon it polls
	ForEntropy                  // what the operating system's entropy gives
	ForGrain                    // how coarse time is (Ticks); no seed draws it
	purposes
)

// seeded is how many purposes a seed has streams for. It never grows: it is
// part of where each stream begins.
const seeded = int(ForGrain)

var purposeNames = [purposes]string{
	"start", "story", "latency", "order", "gap", "loss", "reconnect", "memory", "traffic", "entropy", "grain",
}

// TapeVersion is raised when the same tape comes to mean another run though no
// scenario and no core changed: when a decision is added, dropped, bounded
// otherwise or asked of another stream.
const TapeVersion = 1

// PurposeNames lists the purposes' names in capsules.
func PurposeNames() []string { return purposeNames[:] }

// PurposeNamed returns the purpose of that name; false where there is none.
func PurposeNamed(name string) (Purpose, bool) {
	for p, n := range purposeNames {
		if n == name {
			return Purpose(p), true
		}
	}
	return 0, false
}

// String is the purpose's name in a capsule.
func (p Purpose) String() string { return purposeNames[p] }

// Source decides in the place of a seed: a recorded tape, a shrinker, rapid or
// a fuzzer. Draw returns a number below n; a larger one is folded into range.
type Source interface {
	Draw(purpose Purpose, actor int, n uint64) uint64
}

// NamedSource is a Source that is told what a decision about a drawn world is
// about: "workers", "what", "for". A search that draws worlds of a kind needs to
// know it; a tape does not.
type NamedSource interface {
	Source
	DrawNamed(what string, purpose Purpose, actor int, n uint64) uint64
}

// OrderSource is a Source that chooses among simultaneous events by whose they
// are: the process that takes the step, 0 for the server and what is nobody's.
type OrderSource interface {
	Source
	DrawOrder(whose []int32) uint64
}

// Choices is the one source of every decision that the world makes: the tape.
// It belongs to one run at a time.
type Choices struct {
	seed    uint64
	source  Source
	tape    *Tape
	streams []uint64 // counter of each actor's each purpose
	grain   time.Duration
}

// NewChoices fills the tape at random from a seed.
func NewChoices(seed uint64) *Choices { return &Choices{seed: seed} }

// ChoicesFrom lets source decide, in ticks where it is a tape of such a run.
func ChoicesFrom(source Source) *Choices {
	c := &Choices{source: source}
	if g, ok := source.(Grained); ok {
		c.grain = g.Grain()
	}
	return c
}

// Reseed makes c a fresh tape of another seed, keeping its buffers.
func (c *Choices) Reseed(seed uint64) {
	c.seed, c.source, c.tape, c.grain = seed, nil, nil, 0
	clear(c.streams)
}

// Record makes c write what it decides onto tape.
func (c *Choices) Record(tape *Tape) {
	c.tape = tape
	if c.grain > 0 && tape != nil {
		tape.add(ForGrain, 0, uint64(c.grain))
	}
}

// Below decides on a number in [0, n); n must not be 0.
func (c *Choices) Below(purpose Purpose, actor int, n uint64) uint64 {
	var v uint64
	if c.source != nil {
		if v = c.source.Draw(purpose, actor, n); v >= n {
			v %= n
		}
	} else {
		v, _ = bits.Mul64(c.next(purpose, actor), n)
	}
	if c.tape != nil {
		c.tape.add(purpose, actor, v)
	}
	return v
}

// Named is Below for a source that wants to know what the decision is about.
func (c *Choices) Named(what string, purpose Purpose, actor int, n uint64) uint64 {
	source, ok := c.source.(NamedSource)
	if !ok {
		return c.Below(purpose, actor, n)
	}
	return c.keep(purpose, actor, n, source.DrawNamed(what, purpose, actor, n))
}

// order decides which of several simultaneous events comes first.
func (c *Choices) order(events []event) int {
	n := uint64(len(events))
	source, ok := c.source.(OrderSource)
	if !ok {
		return int(c.Below(ForOrder, 0, n))
	}
	var whose [maxTies]int32
	for i := range events {
		whose[i] = events[i].whose()
	}
	return int(c.keep(ForOrder, 0, n, source.DrawOrder(whose[:n])))
}

// keep folds what a source decided into range and records it.
func (c *Choices) keep(purpose Purpose, actor int, n, v uint64) uint64 {
	if v >= n {
		v %= n
	}
	if c.tape != nil {
		c.tape.add(purpose, actor, v)
	}
	return v
}

// next is the stream's next 64 bits: SplitMix64 over a counter, salted by seed,
// purpose and actor.
func (c *Choices) next(purpose Purpose, actor int) uint64 {
	i := actor*seeded + int(purpose)
	if i >= len(c.streams) {
		c.streams = append(c.streams, make([]uint64, i+seeded-len(c.streams))...)
	}
	if c.streams[i] == 0 {
		c.streams[i] = mix(c.seed^mix(uint64(i)+1)) | 1
	}
	c.streams[i] += 0x9e3779b97f4a7c15
	return mix(c.streams[i])
}

func mix(v uint64) uint64 {
	v ^= v >> 30
	v *= 0xbf58476d1ce4e5b9
	v ^= v >> 27
	v *= 0x94d049bb133111eb
	return v ^ v>>31
}

// Span decides on a time in span, or in fallback where span is unset.
func (c *Choices) Span(purpose Purpose, actor int, span, fallback faults.Span) time.Duration {
	if span.Zero() {
		span = fallback
	}
	if c.grain > 0 {
		return c.ticks(purpose, actor, span)
	}
	if span.High <= span.Low {
		return span.Low
	}
	return span.Low + time.Duration(c.Below(purpose, actor, uint64(span.High-span.Low)+1))
}

// Chance decides whether something of one chance in n happens; n of 0 is never.
// The plainest choice is that it does not.
func (c *Choices) Chance(purpose Purpose, actor int, n uint64) bool {
	return n != 0 && c.Below(purpose, actor, n) == n-1
}

// Tape is the recorded decisions of one run, stream by stream. It is a Source:
// past the end of a stream it decides for the plainest.
type Tape struct {
	Streams []Stream
	index   map[streamKey]int
	at      []int
}

// Stream is the decisions of one purpose of one actor, in order.
type Stream struct {
	Purpose Purpose
	Actor   int
	Values  []uint64
}

type streamKey struct {
	purpose Purpose
	actor   int
}

func (t *Tape) stream(purpose Purpose, actor int) int {
	if t.index == nil {
		t.index = make(map[streamKey]int)
		for i := range t.Streams {
			t.index[streamKey{t.Streams[i].Purpose, t.Streams[i].Actor}] = i
		}
	}
	key := streamKey{purpose, actor}
	i, ok := t.index[key]
	if !ok {
		i = len(t.Streams)
		t.index[key] = i
		t.Streams = append(t.Streams, Stream{Purpose: purpose, Actor: actor})
	}
	return i
}

// Add writes one decision down behind those of its stream.
func (t *Tape) Add(purpose Purpose, actor int, v uint64) { t.add(purpose, actor, v) }

func (t *Tape) add(purpose Purpose, actor int, v uint64) {
	s := &t.Streams[t.stream(purpose, actor)]
	s.Values = append(s.Values, v)
}

// Draw reads the next decision of a stream.
func (t *Tape) Draw(purpose Purpose, actor int, _ uint64) uint64 {
	i := t.stream(purpose, actor)
	for len(t.at) <= i {
		t.at = append(t.at, 0)
	}
	if t.at[i] >= len(t.Streams[i].Values) {
		return 0
	}
	t.at[i]++
	return t.Streams[i].Values[t.at[i]-1]
}

// Rewind makes the tape read from its start again.
func (t *Tape) Rewind() { clear(t.at) }

// BytesSource decides by the bytes of a fuzzer's input, eight to a decision;
// past their end it decides for the plainest.
type BytesSource struct{ Bytes []byte }

// Draw takes the next bytes.
func (s *BytesSource) Draw(_ Purpose, _ int, n uint64) uint64 {
	width := (bits.Len64(n-1) + 7) / 8
	var v uint64
	for i := 0; i < width && len(s.Bytes) > 0; i++ {
		v = v<<8 | uint64(s.Bytes[0])
		s.Bytes = s.Bytes[1:]
	}
	return v
}
