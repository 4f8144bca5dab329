package reports

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// rate is amount per second, 0 where no time passed: a result that says Inf
// is no JSON.
func rate(amount, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return amount / seconds
}

// round keeps the digits that mean something: scale 1e6 keeps microseconds.
func round(v, scale float64) float64 { return math.Round(v*scale) / scale }

// grouped writes a whole number with a comma between thousands.
func grouped(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// amount writes a number that may be large in at most seven columns: exact
// below a million, then three digits and a unit.
func amount(v float64) string {
	for _, u := range []struct {
		size float64
		unit string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}} {
		if v >= u.size {
			return strconv.FormatFloat(v/u.size, 'f', digitsAfterPoint(v/u.size), 64) + u.unit
		}
	}
	if v < 1 && v > 0 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	if v < 100 && v != math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return grouped(uint64(math.Round(v)))
}

func digitsAfterPoint(v float64) int {
	switch {
	case v < 10:
		return 2
	case v < 100:
		return 1
	}
	return 0
}

// span writes a length of time in the unit that a person would choose.
func span(seconds float64) string {
	switch {
	case seconds < 1e-3:
		return fmt.Sprintf("%.0fus", seconds*1e6)
	case seconds < 1:
		return fmt.Sprintf("%.0fms", seconds*1e3)
	case seconds < 120:
		return fmt.Sprintf("%.1fs", seconds)
	case seconds < 99.5*60:
		return fmt.Sprintf("%.1fmin", seconds/60)
	case seconds < 2*86400:
		return fmt.Sprintf("%.1fh", seconds/3600)
	case seconds < 10*86400:
		return fmt.Sprintf("%.1fd", seconds/86400)
	case seconds < 2*365*86400:
		return fmt.Sprintf("%.0fd", seconds/86400)
	}
	return fmt.Sprintf("%.1fy", seconds/(365*86400))
}

// clock writes a wait as a person reads one off: 1h02m, 3m05s, 12s.
func clock(d time.Duration) string {
	d = d.Round(time.Second)
	h, m, s := int(d/time.Hour), int(d/time.Minute)%60, int(d/time.Second)%60
	switch {
	case h > 0:
		return fmt.Sprintf("%dh%02dm", h, m)
	case m > 0:
		return fmt.Sprintf("%dm%02ds", m, s)
	}
	return fmt.Sprintf("%ds", s)
}

// plural writes a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(uint64(n)) + " " + noun + "s"
}

// speed writes how many times faster than real time a simulation went.
func speed(simulated, wall float64) string {
	if wall <= 0 {
		return "-"
	}
	return amount(simulated/wall) + "x"
}
