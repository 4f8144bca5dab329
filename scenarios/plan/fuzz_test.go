package plan

import "testing"

// A cause that is read has a rate and a distribution that make sense; what is
// not read is one line.
func FuzzParseCause(f *testing.F) {
	for _, text := range []string{"6/day:exp(20s)", "1/week:fixed(0s)", "2/hour:lognormal(2s,p99=90s)", "1/day:uniform(5s,60s)", "x", "1e300/day:exp(1s)", "NaN/day:exp(1s)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCause(text)
		if err != nil {
			return
		}
		if !(c.PerSecond >= 0 && c.PerSecond <= MaxRate) {
			t.Fatalf("%q: %g a second", text, c.PerSecond)
		}
		for _, x := range []float64{0, 1, 100, 1e6} {
			if v := c.Lasts.Above(x); !(v >= 0 && v <= 1) {
				t.Fatalf("%q: Above(%g) is %g", text, x, v)
			}
			if v := c.Lasts.Excess(x); !(v >= 0) {
				t.Fatalf("%q: Excess(%g) is %g", text, x, v)
			}
		}
	})
}
