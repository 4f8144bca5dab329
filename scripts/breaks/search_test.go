package main

import "testing"

// A search has found a break only where it shows what the sound tree does not.
func TestWhatTheSoundTreeShowsIsNoHit(t *testing.T) {
	for _, c := range []struct {
		broken, sound first
		run           uint64
		by            string
	}{
		{first{}, first{}, 0, ""},
		{first{"ONE": 7}, first{}, 7, "ONE"},
		{first{"INTEGRITY": 3, "ONE": 7}, first{"INTEGRITY": 3}, 7, "ONE"},
		{first{"INTEGRITY": 3}, first{"INTEGRITY": 900}, 0, ""},
		{first{"QUIET": 5, "ONE": 9}, nil, 5, "QUIET"},
	} {
		if run, by := hit(c.broken, c.sound); run != c.run || by != c.by {
			t.Errorf("%v over %v: run %d by %q, want %d by %q", c.broken, c.sound, run, by, c.run, c.by)
		}
	}
}

// Every break that a search looks for in a story of its own is in the table.
func TestHuntsNameBreaks(t *testing.T) {
	known := map[string]bool{}
	for _, b := range breaks {
		known[b.name] = true
	}
	for name := range hunts {
		if !known[name] {
			t.Errorf("hunts has %q, which is no break", name)
		}
	}
}
