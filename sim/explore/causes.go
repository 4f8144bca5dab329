package explore

import (
	"math"
	"sort"
)

// Which fault did it: what was in the runs that failed and not in those that
// passed. It is statistics over a campaign, not proof: two faults that come
// together are told apart only by runs that have one of them.

// Factor is something that a run has or has not - a fault that struck, a
// setting - and how many runs failed with it and without.
type Factor struct {
	Name                  string
	With, WithFailed      uint64
	Without, WithoutFails uint64
}

// Cause is a factor and what it does to the rate of failures.
type Cause struct {
	Factor
	// Lift is the rate of failures with the factor over the rate without, and Low
	// and High its 99% interval: 99, because dozens of factors are looked at.
	Lift, Low, High float64
}

// z99 is the normal quantile of a two-sided 99% interval.
const z99 = 2.5758

// FewRuns is how many runs with and without a factor it takes to say anything.
const FewRuns = 5

// Rank sorts factors: causes, whose whole interval is above 1, the surest first,
// and suppressors, whose whole interval is below 1. Factors that nothing can be
// said of are in neither.
func Rank(factors []Factor) (causes, suppressors []Cause) {
	for _, f := range factors {
		if f.With < FewRuns || f.Without < FewRuns || f.WithFailed+f.WithoutFails == 0 {
			continue
		}
		c := lift(f)
		switch {
		case c.Low > 1:
			causes = append(causes, c)
		case c.High < 1:
			suppressors = append(suppressors, c)
		}
	}
	sort.SliceStable(causes, func(i, k int) bool { return causes[i].Low > causes[k].Low })
	sort.SliceStable(suppressors, func(i, k int) bool { return suppressors[i].High < suppressors[k].High })
	return causes, suppressors
}

// lift is the ratio of the two rates with Katz's interval on its logarithm; half
// a run is added to each cell, so that a factor without which nothing ever
// failed has a lift too.
func lift(f Factor) Cause {
	a, c := float64(f.WithFailed)+0.5, float64(f.WithoutFails)+0.5
	n, m := float64(f.With)+1, float64(f.Without)+1
	ratio := (a / n) / (c / m)
	wide := z99 * math.Sqrt(1/a-1/n+1/c-1/m)
	return Cause{f, ratio, ratio * math.Exp(-wide), ratio * math.Exp(wide)}
}
