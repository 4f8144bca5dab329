package plan

import (
	"fmt"
	"slices"
	"time"
)

// Sweep is which settings to compare, and what is asked of them.
type Sweep struct {
	Windows, Intervals []time.Duration
	Grace              time.Duration
	// Budget is how many false reaps a worker-year are acceptable.
	Budget float64
}

// MaxSettings bounds a sweep.
const MaxSettings = 400

// Comparison is a sweep's forecasts, by window and then by interval.
type Comparison struct {
	Forecasts []Forecast
	// Recommended is the forecast of the setting to take, -1 where none of them
	// is safe; Within says whether it keeps the budget.
	Recommended int
	Within      bool
}

// Compare forecasts every setting of a sweep.
func Compare(d *Deployment, s Sweep) (*Comparison, error) {
	if n := len(s.Windows) * len(s.Intervals); n == 0 || n > MaxSettings {
		return nil, fmt.Errorf("a sweep has 1 to %d settings; these windows and intervals make %d", MaxSettings, n)
	}
	windows := slices.Compact(slices.Sorted(slices.Values(s.Windows)))
	intervals := slices.Compact(slices.Sorted(slices.Values(s.Intervals)))
	if widest := windows[len(windows)-1]; widest > maxCells/cells*intervals[0] {
		return nil, fmt.Errorf("a window of %s is more than %d heartbeats of %s: such a window never depends on single pings, take a longer interval", widest, maxCells/cells, intervals[0])
	}
	c := &Comparison{Recommended: -1}
	shared := make(map[time.Duration]*gaps)
	for _, interval := range intervals {
		shared[interval] = newGaps(d, interval, windows[len(windows)-1])
	}
	for _, window := range windows {
		for _, interval := range intervals {
			c.Forecasts = append(c.Forecasts, forecast(d, Setting{Window: window, Grace: max(s.Grace, window), Interval: interval}, shared[interval]))
		}
	}
	c.recommend(s.Budget)
	return c, nil
}

// maxCells bounds the grid: the work grows with its square.
const maxCells = 200 * cells

// recommend takes the setting that notices a death soonest within the budget;
// where none keeps it, the one with the fewest false reaps. Of equals, the one
// with fewer pings.
func (c *Comparison) recommend(budget float64) {
	best := -1
	for i := range c.Forecasts {
		f := &c.Forecasts[i]
		if f.Unsafe != "" || f.Window == 0 {
			continue
		}
		if best < 0 || better(f, &c.Forecasts[best], budget) {
			best = i
		}
	}
	c.Recommended = best
	c.Within = best >= 0 && c.Forecasts[best].FalseReaps <= budget
}

func better(a, b *Forecast, budget float64) bool {
	aIn, bIn := a.FalseReaps <= budget, b.FalseReaps <= budget
	switch {
	case aIn != bIn:
		return aIn
	case !aIn:
		return a.FalseReaps < b.FalseReaps
	case near(a.Detection, b.Detection):
		return a.Interval > b.Interval
	}
	return a.Detection < b.Detection
}

// near says whether two detection times differ by so little that fewer pings
// count for more.
func near(a, b float64) bool { return a-b < 0.02*b && b-a < 0.02*a }

// Cause names what makes most of the false reaps.
func (f *Forecast) Cause() string {
	word, most := "", 0.0
	for _, part := range []struct {
		word string
		v    float64
	}{
		{"pauses of workers", f.Pauses},
		{"lost pings", f.Losses},
		{"pauses and lost pings together", f.Together},
		{"stalls of the server", f.Stalls},
		{"workers that wait for their first request", f.IdleFirst},
	} {
		if part.v > most {
			word, most = part.word, part.v
		}
	}
	return word
}
