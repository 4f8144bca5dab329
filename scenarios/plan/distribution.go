package plan

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"vigil/scenarios"
)

// How long something lasts, as a distribution: what an operator measured or
// assumes about pauses, stalls and the wait for a first request.

// Distribution is of a time that is not negative, in seconds.
type Distribution interface {
	// Above is the chance of more than x seconds.
	Above(x float64) float64
	// Excess is the mean of what exceeds x seconds; Excess(0) is the mean.
	Excess(x float64) float64
	// String is the distribution as ParseDistribution reads it.
	String() string
}

// MaxMeasured bounds the durations of one file of measurements, and
// MaxDuration each of them and each parameter.
const (
	MaxMeasured = 1_000_000
	MaxDuration = 365 * 24 * time.Hour
)

type fixed struct{ at float64 }

func (d fixed) Above(x float64) float64 {
	if x < d.at {
		return 1
	}
	return 0
}
func (d fixed) Excess(x float64) float64 { return max(0, d.at-x) }
func (d fixed) String() string           { return "fixed(" + inSeconds(d.at) + ")" }

type uniform struct{ low, high float64 }

func (d uniform) Above(x float64) float64 {
	return min(1, max(0, (d.high-x)/(d.high-d.low)))
}

func (d uniform) Excess(x float64) float64 {
	switch {
	case x >= d.high:
		return 0
	case x <= d.low:
		return (d.low+d.high)/2 - x
	}
	return (d.high - x) * (d.high - x) / (2 * (d.high - d.low))
}
func (d uniform) String() string {
	return "uniform(" + inSeconds(d.low) + "," + inSeconds(d.high) + ")"
}

type exponential struct{ mean float64 }

func (d exponential) Above(x float64) float64  { return math.Exp(-max(0, x) / d.mean) }
func (d exponential) Excess(x float64) float64 { return d.mean * d.Above(x) }
func (d exponential) String() string           { return "exp(" + inSeconds(d.mean) + ")" }

// lognormal is the usual shape of measured pauses: most are short, a few are
// very long.
type lognormal struct{ median, p99, mu, sigma float64 }

// z99 is the 99th percentile of the standard normal distribution.
const z99 = 2.3263478740408408

func newLognormal(median, p99 float64) lognormal {
	return lognormal{median, p99, math.Log(median), math.Log(p99/median) / z99}
}

func (d lognormal) Above(x float64) float64 {
	if x <= 0 {
		return 1
	}
	return normalAbove((math.Log(x) - d.mu) / d.sigma)
}

func (d lognormal) Excess(x float64) float64 {
	mean := math.Exp(d.mu + d.sigma*d.sigma/2)
	if x <= 0 {
		return mean - x
	}
	z := (math.Log(x) - d.mu) / d.sigma
	return max(0, mean*normalAbove(z-d.sigma)-x*normalAbove(z))
}

func (d lognormal) String() string {
	return "lognormal(" + inSeconds(d.median) + ",p99=" + inSeconds(d.p99) + ")"
}

func normalAbove(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// measured is what a file holds, each duration as likely as the next.
type measured struct {
	name   string
	sorted []float64
	after  []float64 // sum of sorted[i:]
}

func (d *measured) Above(x float64) float64 {
	i, _ := slices.BinarySearchFunc(d.sorted, x, func(v, x float64) int {
		if v <= x {
			return -1
		}
		return 1
	})
	return float64(len(d.sorted)-i) / float64(len(d.sorted))
}

func (d *measured) Excess(x float64) float64 {
	x = max(0, x)
	i, _ := slices.BinarySearch(d.sorted, x)
	if i == len(d.sorted) {
		return 0
	}
	return (d.after[i] - x*float64(len(d.sorted)-i)) / float64(len(d.sorted))
}
func (d *measured) String() string { return "file(" + d.name + ")" }

var distributionForms = []string{"fixed", "uniform", "exp", "lognormal", "file"}

// ParseDistribution reads fixed(20s), uniform(5s,60s), exp(20s),
// lognormal(2s,p99=90s) - its median and its 99th percentile - or file(PATH), a
// file with one measured duration a line.
func ParseDistribution(text string) (Distribution, error) {
	name, rest, ok := strings.Cut(strings.TrimSpace(text), "(")
	inner, closed := strings.CutSuffix(rest, ")")
	if !ok || !closed {
		return nil, fmt.Errorf("%q is no distribution: write one as exp(20s), fixed(20s), uniform(5s,60s), lognormal(2s,p99=90s) or file(pauses.txt)", text)
	}
	if name == "file" {
		return readMeasured(inner)
	}
	args := strings.Split(inner, ",")
	wants := map[string]int{"fixed": 1, "uniform": 2, "exp": 1, "lognormal": 2}[name]
	if wants == 0 {
		if near, ok := scenarios.Nearest(name, distributionForms); ok {
			return nil, fmt.Errorf("%q: there is no distribution %q; did you mean %q?", text, name, near)
		}
		return nil, fmt.Errorf("%q: there is no distribution %q; there are %s", text, name, strings.Join(distributionForms, ", "))
	}
	if len(args) != wants {
		return nil, fmt.Errorf("%q: %s takes %d times, got %d", text, name, wants, len(args))
	}
	var values [2]float64
	for i, arg := range args {
		arg = strings.TrimSpace(arg)
		if name == "lognormal" && i == 1 {
			if arg, ok = strings.CutPrefix(arg, "p99="); !ok {
				return nil, fmt.Errorf("%q: the second of lognormal is its 99th percentile, as p99=90s", text)
			}
		}
		v, err := duration(arg)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		values[i] = v
	}
	switch name {
	case "fixed":
		return fixed{values[0]}, nil
	case "exp":
		if values[0] <= 0 {
			return nil, fmt.Errorf("%q: the mean must be above 0s", text)
		}
		return exponential{values[0]}, nil
	case "uniform":
		if values[1] <= values[0] {
			return nil, fmt.Errorf("%q: the second time must be above the first", text)
		}
		return uniform{values[0], values[1]}, nil
	}
	if values[0] <= 0 || values[1] <= values[0] {
		return nil, fmt.Errorf("%q: the median must be above 0s and below the 99th percentile", text)
	}
	return newLognormal(values[0], values[1]), nil
}

func duration(text string) (float64, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no time such as 20s, 1.5m or 2h", text)
	}
	if d < 0 || d > MaxDuration {
		return 0, fmt.Errorf("%s is not between 0s and %dh", text, int(MaxDuration.Hours()))
	}
	return d.Seconds(), nil
}

// readMeasured reads a file of durations: one a line, as 1.5s or as seconds
// without a unit; empty lines and lines that begin with # are passed over.
func readMeasured(path string) (Distribution, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := &measured{name: path}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		if len(d.sorted) == MaxMeasured {
			return nil, fmt.Errorf("%s:%d: more than %d durations", path, n, MaxMeasured)
		}
		if last := text[len(text)-1]; last >= '0' && last <= '9' {
			text += "s"
		}
		v, err := duration(text)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		d.sorted = append(d.sorted, v)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(d.sorted) == 0 {
		return nil, fmt.Errorf("%s: it holds no duration", path)
	}
	slices.Sort(d.sorted)
	d.after = make([]float64, len(d.sorted))
	sum := 0.0
	for i := len(d.sorted) - 1; i >= 0; i-- {
		sum += d.sorted[i]
		d.after[i] = sum
	}
	return d, nil
}

// inSeconds writes seconds as a duration.
func inSeconds(v float64) string {
	return time.Duration(math.Round(v * float64(time.Second))).String()
}

// Cause is something that happens at a rate and lasts: pauses of a worker, or
// stalls of the server.
type Cause struct {
	PerSecond float64
	Lasts     Distribution
	text      string
}

// String is the cause as it was given.
func (c Cause) String() string { return c.text }

var perUnit = map[string]float64{"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400, "month": year / 12, "year": year}

// year is the seconds of a year.
const year = 365.25 * 86400

// ParseCause reads RATE:DISTRIBUTION, such as 6/day:exp(20s).
func ParseCause(text string) (Cause, error) {
	rate, rest, ok := strings.Cut(text, ":")
	if !ok {
		return Cause{}, fmt.Errorf("%q: write how often and how long, as 6/day:exp(20s)", text)
	}
	perSecond, err := ParseRate(rate)
	if err != nil {
		return Cause{}, err
	}
	d, err := ParseDistribution(rest)
	if err != nil {
		return Cause{}, err
	}
	return Cause{PerSecond: perSecond, Lasts: d, text: text}, nil
}

// ParseRate reads how often something happens, such as 6/day, per second.
func ParseRate(text string) (float64, error) {
	count, unit, ok := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(count, 64)
	if !ok || err != nil || !(n >= 0) || math.IsInf(n, 0) {
		return 0, fmt.Errorf("%q: a rate is a number and its unit, as 6/day", text)
	}
	seconds, ok := perUnit[unit]
	if !ok {
		names := []string{"second", "minute", "hour", "day", "week", "month", "year"}
		if near, ok := scenarios.Nearest(unit, names); ok {
			return 0, fmt.Errorf("%q: there is no unit %q; did you mean %q?", text, unit, near)
		}
		return 0, fmt.Errorf("%q: there is no unit %q; there are %s", text, unit, strings.Join(names, ", "))
	}
	if n/seconds > MaxRate {
		return 0, fmt.Errorf("%q: more than %g a second", text, MaxRate)
	}
	return n / seconds, nil
}

// MaxRate bounds how often a cause strikes, a second.
const MaxRate = 1.0
