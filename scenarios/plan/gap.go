package plan

import "math"

// The time from one stamp of a worker to its next one, as a renewal process on
// a grid: the heart of the forecast.
//
// A worker waits an interval, pings, and the stamp is set when the ping arrives.
// A ping that is lost costs another interval (the reply's deadline), then the
// next wait begins. A pause stretches the wait that it falls into: the wait ends
// at its time, or when the worker is thawed if that is later.

// cells is how many cells of the grid an interval has.
const cells = 64

// gap is the distribution of the time between two stamps.
type gap struct {
	step   float64   // seconds in a cell
	at     []float64 // chance of a gap of i cells
	beyond float64   // chance of a longer one than the grid has
	mean   float64   // seconds
}

// newGap computes the gaps of a worker that pings each interval seconds, loses a
// ping with the chance loss and is paused by pauses. The grid reaches to horizon
// seconds at least.
func newGap(interval, loss float64, pauses []Cause, horizon float64) *gap {
	g := &gap{step: interval / cells}
	n := int(math.Ceil(horizon/g.step)) + 1
	wait, waitMean := oneWait(interval, pauses, n, g.step)
	// attempts[i] is how often a ping goes out i cells after the stamp, all
	// before it lost: after a first wait, or two waits after a lost one.
	lost := selfConvolved(wait)
	attempts := append([]float64(nil), wait...)
	for i := range lost {
		lost[i] *= loss
	}
	var spread []int
	for i, v := range lost {
		if v > 0 {
			spread = append(spread, i)
		}
	}
	for i := range attempts {
		for _, k := range spread {
			if k > i {
				break
			}
			attempts[i] += lost[k] * attempts[i-k]
		}
	}
	g.at = attempts
	sum := 0.0
	for i := range g.at {
		g.at[i] *= 1 - loss
		sum += g.at[i]
	}
	g.beyond = max(0, 1-sum)
	if g.beyond < 1e-15 {
		g.beyond = 0 // what rounding leaves
	}
	g.mean = waitMean * (1 + 2*loss/(1-loss))
	return g
}

// oneWait is how long a wait of an interval takes when pauses may fall into it,
// and its mean. active[j] is the chance that the worker runs at the start of
// cell j of the wait.
func oneWait(interval float64, pauses []Cause, n int, step float64) (at []float64, mean float64) {
	at = make([]float64, n)
	total := 0.0
	for _, c := range pauses {
		total += c.PerSecond
	}
	if total == 0 {
		at[cells] = 1
		return at, interval
	}
	// lasts[k] is the chance that a pause that begins in the middle of a cell
	// ends k cells further on, to the nearest edge of a cell.
	above := func(x float64) (v float64) {
		for _, c := range pauses {
			v += c.PerSecond / total * c.Lasts.Above(x)
		}
		return v
	}
	excess := func(x float64) (v float64) {
		for _, c := range pauses {
			v += c.PerSecond / total * c.Lasts.Excess(x)
		}
		return v
	}
	lasts := make([]float64, n)
	before := 1.0
	for k := 1; k < n; k++ {
		after := above(float64(k) * step)
		lasts[k] = before - after
		before = after
	}
	stays := math.Exp(-total * step)
	active := make([]float64, cells+1)
	active[0] = 1
	for j := range cells {
		struck := active[j] * (1 - stays)
		active[j+1] += active[j] * stays
		for k := 1; j+k < n; k++ {
			if j+k <= cells {
				active[j+k] += struck * lasts[k]
			} else {
				at[j+k] += struck * lasts[k]
			}
		}
		reach := float64(n-1-j) * step // what lasts longer leaves the grid
		mean += struck * (excess(reach) + (reach+float64(j)*step)*above(reach))
	}
	at[cells] += active[cells]
	for i, v := range at {
		mean += v * float64(i) * step
	}
	return at, mean
}

// selfConvolved is the distribution of the sum of two, within the grid.
func selfConvolved(at []float64) []float64 {
	sum := make([]float64, len(at))
	for i, v := range at {
		if v == 0 {
			continue
		}
		for k, w := range at[:len(at)-i] {
			sum[i+k] += v * w
		}
	}
	return sum
}

// expect is the mean of what f says of a gap; a gap beyond the grid counts most.
func (g *gap) expect(f func(seconds float64) float64, most float64) float64 {
	sum := g.beyond * most
	for i, v := range g.at {
		if v > 0 {
			sum += v * f(float64(i)*g.step)
		}
	}
	return sum
}

// age is how long ago a worker's last stamp was at a random moment: the chance
// of each cell, and of more than the grid has.
func (g *gap) age() (at []float64, beyond float64) {
	at = make([]float64, len(g.at))
	longer, sum := 1.0, 0.0
	for i := range at {
		longer -= g.at[i] / 2 // half of those that end in this cell
		at[i] = max(0, longer) * g.step / g.mean
		longer -= g.at[i] / 2
		sum += at[i]
	}
	return at, max(0, 1-sum)
}
