package exhaustive

import "vigil/core"

// states is the set of states that were met, each by its fingerprint, with the
// events that slept at every visit. A table of our own: a map of ten million
// entries costs twice the memory and three times the time.
type states struct {
	prints []core.Digest // 0 is free; a power of two long
	masks  []uint64
	used   int
}

func (s *states) reset() {
	*s = states{prints: make([]core.Digest, 1<<12), masks: make([]uint64, 1<<12)}
}

// find returns the place of a print and whether it is there.
func (s *states) find(print core.Digest) (at int, ok bool) {
	if print == 0 {
		print = 1
	}
	mask := len(s.prints) - 1
	for i := int(uint64(print)*0x9e3779b97f4a7c15>>20) & mask; ; i = (i + 1) & mask {
		switch s.prints[i] {
		case print:
			return i, true
		case 0:
			return i, false
		}
	}
}

// put adds a print that is not there.
func (s *states) put(print core.Digest, asleep uint64) {
	if 3*(s.used+1) > 2*len(s.prints) {
		s.grow()
	}
	at, _ := s.find(print)
	s.prints[at], s.masks[at] = max(print, 1), asleep
	s.used++
}

func (s *states) grow() {
	old := *s
	*s = states{prints: make([]core.Digest, 2*len(old.prints)), masks: make([]uint64, 2*len(old.masks)), used: old.used}
	for i, print := range old.prints {
		if print != 0 {
			at, _ := s.find(print)
			s.prints[at], s.masks[at] = print, old.masks[i]
		}
	}
}
