package scenarios

import "testing"

// What is expected of an answer is what must be in it; more may be, unless it
// says that something is wrong, or the story says that there is nothing more.
func TestAnAnswerSaysWhatIsExpected(t *testing.T) {
	for _, c := range []struct {
		expected, got string
		fits          bool
	}{
		{"yes", "yes", true},
		{"yes", "no", false},
		{"yes", "yes; registered", true},
		{"yes; registered", "yes", false},
		{"yes; registered", "yes; not registered", false},
		{"yes; nothing more", "yes", true},
		{"yes; nothing more", "yes; registered", false},
		{"yes; registered; nothing more", "yes; registered", true},
		{"yes; registered; nothing more", "yes; registered; window 2m0s", false},
		{"yes", "yes; block 3 holds other bytes", false},
		{"yes; block 3 holds other bytes", "yes; block 3 holds other bytes", true},
		{"yes", "yes; another event", false},
	} {
		if AnswerFits(c.expected, c.got) != c.fits {
			t.Errorf("%q expected, %q answered: fits is not %v", c.expected, c.got, c.fits)
		}
	}
}
