package exhaustive

import "vigil/sim"

// A script is the decisions within one event, turned like an odometer: the
// search plays the event once for each of them. It exists apart from the order
// of events because how many decisions an event has is known only once it was
// played.

// draw is one decision within an event.
type draw struct {
	purpose sim.Purpose
	actor   int
	n       uint64
	value   uint64
	option  int // which of its options value is
}

// script is the decisions within one event, as a search turns them: the last
// that has another option goes on to it.
type script struct {
	draws   []draw
	at      int
	values  int // of one decision at most
	branchy bool
	narrow  uint64
}

// Draw decides by the script, and beyond its end for the first option.
func (s *script) Draw(purpose sim.Purpose, actor int, n uint64) uint64 {
	if s.at == len(s.draws) {
		s.draws = append(s.draws, draw{purpose: purpose, actor: actor, n: n})
		k := s.options(purpose, n)
		s.branchy = s.branchy || k > 1
		if uint64(k) < n && k > 2 {
			s.narrow++
		}
	}
	d := &s.draws[s.at]
	s.at++
	d.value = s.option(purpose, n, d.option)
	return d.value
}

// options is how many values of a decision are tried.
func (s *script) options(purpose sim.Purpose, n uint64) int {
	switch purpose {
	case sim.ForStart, sim.ForStory, sim.ForLatency, sim.ForReconnect, sim.ForMemory:
		return int(min(n, uint64(s.values)))
	case sim.ForLoss:
		return int(min(n, 2)) // it happens or it does not
	}
	return 1
}

func (s *script) option(purpose sim.Purpose, n uint64, i int) uint64 {
	k := s.options(purpose, n)
	if k < 2 {
		return 0
	}
	return uint64(i) * (n - 1) / uint64(k-1) // both ends, and evenly between
}

// turn goes on to the next script; false where there is none.
func (s *script) turn() bool {
	for i := len(s.draws) - 1; i >= 0; i-- {
		d := &s.draws[i]
		if d.option+1 < s.options(d.purpose, d.n) {
			d.option++
			s.draws = s.draws[:i+1]
			return true
		}
	}
	return false
}

func (s *script) rewind()  { s.at = 0 }
func (s *script) restart() { s.draws, s.at, s.branchy = s.draws[:0], 0, false }
