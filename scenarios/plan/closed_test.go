package plan

import (
	"math"
	"testing"
	"time"
)

// The forecast against what can be written down in closed form.

func within(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	off := math.Abs(got-want) / want
	t.Logf("%s: %.6g, closed form %.6g, off by %.2f%%", what, got, want, 100*off)
	if !(off <= share) {
		t.Errorf("%s: got %.6g, the closed form gives %.6g: off by %.1f%%, more than %.0f%%", what, got, want, 100*off, 100*share)
	}
}

func one(t *testing.T, d *Deployment, window, interval time.Duration) Forecast {
	t.Helper()
	c, err := Compare(d, Sweep{Windows: []time.Duration{window}, Intervals: []time.Duration{interval}, Grace: time.Hour, Budget: 1})
	if err != nil {
		t.Fatal(err)
	}
	return c.Forecasts[0]
}

func clip(v float64) float64 { return min(1, max(0, v)) }

// Pings that are lost independently of each other: k in a row make a gap of
// (2k+1) intervals, and they come with the chance (1-p) p^k.
func TestIndependentPingLoss(t *testing.T) {
	for _, loss := range []float64{0.001, 0.05, 0.3} {
		for _, window := range []time.Duration{30, 60, 90, 120, 150} {
			const interval = 10.0
			w := float64(window)
			scan := w / 4
			mean := interval + 2*interval*loss/(1-loss)
			reaps := 0.0
			for k := 1; k < 2000; k++ {
				reaps += (1 - loss) * math.Pow(loss, float64(k)) * clip((float64(2*k+1)*interval-w)/scan)
			}
			f := one(t, &Deployment{Loss: loss}, window*time.Second, 10*time.Second)
			within(t, "lost pings", f.FalseReaps, year/mean*reaps, 0.05)
		}
	}
}

// Pauses of an exponential length: one that begins at age u of the stamp lasts
// past the age x with the chance exp(-(x-u)/mean).
func TestExponentialPauses(t *testing.T) {
	for _, mean := range []float64{10, 30, 120} {
		const perSecond, w, interval = 1e-5, 120.0, 10.0
		scan := w / 4
		perPause := mean / scan * (1 - math.Exp(-scan/mean)) * math.Exp(-w/mean) * mean / interval * (math.Exp(interval/mean) - 1)
		f := one(t, &Deployment{Pauses: []Cause{{PerSecond: perSecond, Lasts: exponential{mean}}}}, 120*time.Second, 10*time.Second)
		within(t, "exponential pauses", f.FalseReaps, year*perSecond*perPause, 0.05)
	}
}

// Pauses of one length: the gap is that length and the age of the stamp at the
// freeze, which is spread evenly over the interval.
func TestFixedPauses(t *testing.T) {
	const perSecond, w, interval, lasts = 1e-6, 120.0, 10.0, 130.0
	// The mean of (u+lasts-w)/scan over u in [0, interval).
	perPause := (lasts + interval/2 - w) / (w / 4)
	f := one(t, &Deployment{Pauses: []Cause{{PerSecond: perSecond, Lasts: fixed{lasts}}}}, 120*time.Second, 10*time.Second)
	within(t, "fixed pauses", f.FalseReaps, year*perSecond*perPause, 0.05)
	// One that is shorter than the window less an interval reaps nobody.
	f = one(t, &Deployment{Pauses: []Cause{{PerSecond: perSecond, Lasts: fixed{109}}}}, 120*time.Second, 10*time.Second)
	if f.FalseReaps > 1e-12 {
		t.Errorf("pauses of 109 s reap %g a worker-year through a window of 120 s", f.FalseReaps)
	}
}

// A death is noticed between window and window + window/4 after the last stamp,
// which is half an interval old on average.
func TestDetection(t *testing.T) {
	d := &Deployment{Crashes: 12 / year, ContextBytes: 40e9}
	f := one(t, d, 120*time.Second, 10*time.Second)
	within(t, "mean detection", f.Detection, 120+15-5, 0.01)
	within(t, "byte-hours", f.LeakedByteHours, 12*130.0/3600*40e9, 0.01)
	// The reap is uniform over 30 s, the age over 10 s: the 99th percentile
	// leaves a triangle of area 1/100 at the end of their sum.
	within(t, "99th percentile", f.Detection99, 150-math.Sqrt(2*0.01*30*10), 0.01)

	d.Early = 0.1
	f = one(t, d, 120*time.Second, 10*time.Second)
	within(t, "mean with deaths before the first ping", f.Detection, 0.9*130+0.1*(3600+15), 0.01)
	d.Early, d.Proven = 0, 0.75
	f = one(t, d, 120*time.Second, 10*time.Second)
	within(t, "mean with proof", f.Detection, 0.25*130+0.75*proofTime, 0.01)
}

// A stall of the document's server that is longer than the window reaps every
// worker; the hardened one survives all of them.
func TestStalls(t *testing.T) {
	const perSecond, mean, w, interval = 1e-6, 60.0, 120.0, 10.0
	d := &Deployment{Stalls: []Cause{{PerSecond: perSecond, Lasts: exponential{mean}}}}
	perStall := scanFirst * math.Exp(-w/mean) * mean / interval * (math.Exp(interval/mean) - 1) // a scan is due after any stall of 30 s or more
	within(t, "stalls", one(t, d, 120*time.Second, 10*time.Second).FalseReaps, year*perSecond*perStall, 0.05)
	d.Hardened = true
	if f := one(t, d, 120*time.Second, 10*time.Second); f.FalseReaps != 0 {
		t.Errorf("under hardened stalls reap %g a worker-year", f.FalseReaps)
	}
}

// A first request that comes after the grace.
func TestIdleFirst(t *testing.T) {
	const mean = 1800.0
	d := &Deployment{Crashes: 4 / year, FirstRequest: exponential{mean}}
	want := 4 * math.Exp(-3600/mean) * mean / 30 * (1 - math.Exp(-30/mean))
	within(t, "idle workers", one(t, d, 120*time.Second, 10*time.Second).IdleFirst, want, 0.05)
}

// Each distribution agrees with itself: Excess is the integral of Above.
func TestDistributionsAgreeWithThemselves(t *testing.T) {
	for _, d := range []Distribution{
		fixed{20}, uniform{5, 60}, exponential{20}, newLognormal(5, 90),
		&measured{sorted: []float64{1, 2, 2, 50}, after: []float64{55, 54, 52, 50}},
	} {
		for _, x := range []float64{0, 1, 7, 30, 59} {
			sum, step := 0.0, 0.001
			for at := x + step/2; at < 2000; at += step {
				sum += d.Above(at) * step
			}
			if got := d.Excess(x); math.Abs(got-sum) > 0.01+0.002*sum {
				t.Errorf("%s: Excess(%g) is %g, the integral of Above %g", d, x, got, sum)
			}
		}
	}
}
