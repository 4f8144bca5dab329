package plan

import (
	"math"
	"time"

	"vigil/core"
)

// Deployment is what an operator knows or assumes about the machines.
type Deployment struct {
	Hardened bool    // the design of server and workers; else the document's
	Workers  int     // how many, for the sums over all of them
	Loss     float64 // chance that a ping is lost for good, each by itself
	Pauses   []Cause // of one worker: SIGSTOP, a full collection, a swapped host
	Stalls   []Cause // of the server, all of whose workers they meet
	// Crashes is how often a worker dies without a word, a second. Proven is the
	// share of them whose death the server is shown at once by a pidfd, and Early
	// the share that dies before its first ping and is judged by the grace.
	Crashes       float64
	Proven, Early float64
	ContextBytes  float64 // of one worker
	// FirstRequest is how long a new worker waits for its first request. The
	// document pings from the first request on only (A3). nil is not at all.
	FirstRequest Distribution
}

// Setting is what there is to choose.
type Setting struct {
	Window, Grace, Interval time.Duration // the reply deadline is the interval
}

// Scan is the time between two scans of the reaper.
func (s Setting) Scan() time.Duration { return s.Window / core.ScansPerWindow }

// Forecast is what a setting comes to in a deployment.
type Forecast struct {
	Setting
	// FalseReaps is how often a live worker is reaped, a worker-year, and its
	// parts by what causes them. Lost pings and pauses together make more than
	// each alone: Losses and Pauses are each alone, Together is what comes on top.
	FalseReaps                                  float64
	Losses, Pauses, Together, Stalls, IdleFirst float64
	// Detection is the time from a worker's death to its reap.
	Detection, Detection99 float64 // seconds: mean, 99th percentile
	// LeakedByteHours is what dead workers hold, a worker-year.
	LeakedByteHours float64
	// Unsafe, where not empty, is the rule of the settings that this one breaks.
	Unsafe string
}

// proofTime is how long a proof of death takes to act, in seconds: a pidfd's
// readiness and the steps of a release, far below what any scan takes.
const proofTime = 0.05

// gaps are the gaps that forecasts of one interval share.
type gaps struct {
	all, losses, pauses *gap
	age                 []float64
	ageBeyond           float64
}

func newGaps(d *Deployment, interval time.Duration, widest time.Duration) *gaps {
	horizon := (widest + widest/core.ScansPerWindow).Seconds() + 2*interval.Seconds() + 2
	g := &gaps{
		losses: newGap(interval.Seconds(), d.Loss, nil, horizon),
		pauses: newGap(interval.Seconds(), 0, d.Pauses, horizon),
	}
	g.all = newGap(interval.Seconds(), d.Loss, d.Pauses, horizon)
	g.age, g.ageBeyond = g.all.age()
	return g
}

// look is how long after a scan that saw something stale the hardened reaper
// looks again before it decides (B3).
func look(d *Deployment, s Setting) float64 {
	if !d.Hardened {
		return 0
	}
	return min(core.LookAgain, s.Scan()/4).Seconds()
}

// forecast computes one setting.
func forecast(d *Deployment, s Setting, g *gaps) Forecast {
	f := Forecast{Setting: s, Unsafe: unsafe(s)}
	window, scan, again := s.Window.Seconds(), s.Scan().Seconds(), look(d, s)
	if s.Window == 0 {
		f.Detection, f.Detection99 = math.Inf(1), math.Inf(1)
		f.LeakedByteHours = math.Inf(1)
		return f
	}
	// A gap is seen by a scan where one falls into what it has beyond the window.
	caught := func(seconds float64) float64 { return min(1, max(0, (seconds-window-again)/scan)) }
	rate := func(g *gap) float64 { return year / g.mean * g.expect(caught, 1) }
	f.Losses, f.Pauses = rate(g.losses), rate(g.pauses)
	f.Together = max(0, rate(g.all)-f.Losses-f.Pauses)
	if !d.Hardened {
		f.Stalls = stalls(d, window, scan, g)
		f.IdleFirst = idleFirst(d, s)
	}
	f.FalseReaps = f.Losses + f.Pauses + f.Together + f.Stalls + f.IdleFirst
	f.detect(d, g, window, scan, again)
	return f
}

// scanFirst is the chance that a server that wakes from a stall runs the scan
// that is due before it reads the pings that wait (B3): the two are threads that
// race, and nothing favours one.
const scanFirst = 0.5

// stalls is how often a stall of the document's server reaps a worker: where on
// waking the scan comes first.
func stalls(d *Deployment, window, scan float64, g *gaps) float64 {
	sum := 0.0
	for _, c := range d.Stalls {
		// A stall of S finds a scan due on waking with the chance min(1, S/scan),
		// and the worker silent for its age and S. Over the distribution of S this
		// is the mean of a product: by parts, over S from what the age leaves.
		for i, p := range g.age {
			if p > 0 {
				sum += c.PerSecond * p * dueAbove(c.Lasts, max(0, window-float64(i)*g.all.step), scan)
			}
		}
	}
	return scanFirst * sum * year
}

// dueAbove is the mean of min(1, S/scan) over the S above x.
func dueAbove(lasts Distribution, x, scan float64) float64 {
	if x >= scan {
		return lasts.Above(x)
	}
	// x/scan for all above x, and what is beyond it up to scan.
	return x/scan*lasts.Above(x) + (lasts.Excess(x)-lasts.Excess(scan))/scan
}

// idleFirst is how often the document's server reaps a live worker that waits
// for its first request, a worker-year: once for each start that waits longer
// than the grace. A worker starts as often as one crashes.
func idleFirst(d *Deployment, s Setting) float64 {
	if d.FirstRequest == nil {
		return 0
	}
	grace, scan := s.Grace.Seconds(), s.Scan().Seconds()
	caught := (d.FirstRequest.Excess(grace) - d.FirstRequest.Excess(grace+scan)) / scan
	return d.Crashes * year * caught
}

// detect computes how long a death goes unnoticed. The age of the last stamp at
// the death has passed of the window already; the scan comes at random.
func (f *Forecast) detect(d *Deployment, g *gaps, window, scan, again float64) {
	meanAge := g.ageBeyond * float64(len(g.age)) * g.all.step
	for i, p := range g.age {
		meanAge += p * float64(i) * g.all.step
	}
	byWindow := max(0, window+again-meanAge) + scan/2
	byGrace := f.Grace.Seconds() + again + scan/2
	judged := (1-d.Early)*byWindow + d.Early*byGrace
	f.Detection = d.Proven*proofTime + (1-d.Proven)*judged

	// The 99th percentile: of the deaths that are not proven, by bisection on the
	// chance that the reap is later than t.
	later := func(t float64) float64 {
		uniformAbove := func(low float64) float64 { return min(1, max(0, (low+scan-t)/scan)) }
		v := 0.0
		for i, p := range g.age {
			v += p * uniformAbove(max(0, window+again-float64(i)*g.all.step))
		}
		v += g.ageBeyond * uniformAbove(0)
		v = (1-d.Early)*v + d.Early*uniformAbove(byGrace-scan/2)
		if t < proofTime {
			return d.Proven + (1-d.Proven)*v
		}
		return (1 - d.Proven) * v
	}
	low, high := 0.0, f.Grace.Seconds()+window+2*scan+2
	for range 60 {
		if mid := (low + high) / 2; later(mid) > 0.01 {
			low = mid
		} else {
			high = mid
		}
	}
	f.Detection99 = high
	f.LeakedByteHours = d.Crashes * year * f.Detection / 3600 * d.ContextBytes
}

// unsafe is the first rule that a setting breaks, in words.
func unsafe(s Setting) string {
	server := core.DefaultServerConfig()
	server.Reap, server.Grace = s.Window, s.Grace
	if err := server.Validate(); err != nil {
		return err.Error()
	}
	if s.Window != 0 && s.Window < 3*s.Interval {
		return "the window must be >= 3 x the heartbeat interval, or a few lost pings reap the living"
	}
	return ""
}
