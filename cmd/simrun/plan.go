package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vigil/core"
	"vigil/reports"
	"vigil/scenarios/plan"
)

// planFlags are a deployment and a sweep as they were typed.
type planFlags struct {
	design                  string
	workers                 int
	loss                    float64
	pauses, stalls          []string
	crashes, context, first string
	proven, early, budget   float64
	windows, intervals      []string
	grace                   time.Duration
	json, html              string
	cobra                   *cobra.Command
}

func newPlan(s *streams, common *commonFlags) *cobra.Command {
	f := &planFlags{}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "What settings cost: false reaps against detection time and leaked memory",
		Long: `For a deployment, forecast over a sweep of settings how often a live worker is
reaped, how long a death goes unnoticed, and how many byte-hours the dead leak;
recommend a setting and say why.

A pause is anything that keeps a worker from pinging and ends by itself: a
SIGSTOP, a full collection, a swapped host, a partition. A stall is the same of
the server. Both are RATE:LENGTH, where RATE is as 6/day and LENGTH is one of
fixed(20s), uniform(5s,60s), exp(20s) (its mean), lognormal(2s,p99=90s) (its
median and 99th percentile) or file(PATH), measured durations, one a line. Give
--pause and --stall once for each cause.

The forecast follows the cycle of the real code: an interval's wait, a ping, at
most an interval's wait for the reply; a scan each window/4 reaps what is silent
for strictly more than the window. Stamps by transfers are left out, so a busy
worker fares better. What is not given is assumed, and the output says so.`,
		Example: `  simrun plan
  simrun plan --pause "6/day:exp(20s)" --pause "1/month:fixed(5m)" --workers 64
  simrun plan --window 60s,90s,120s,180s --interval 5s,10s --budget 0.001
  simrun plan --pause "20/day:file(pauses.txt)" --design document --html plan.html`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, sweep, err := f.read()
			if err != nil {
				return err
			}
			c, err := plan.Compare(d, sweep)
			if err != nil {
				return &usageError{err.Error()}
			}
			p := f.report(d, sweep, c)
			w := s.people(common, f.json == "-" || f.html == "-")
			if err := reports.WritePlan(w, p, w.Width, w.Colour); err != nil {
				return err
			}
			for _, out := range []struct {
				path  string
				write func() error
			}{
				{f.json, func() error { return s.write(f.json, func(w io.Writer) error { return reports.WriteJSON(w, p) }) }},
				{f.html, func() error { return s.write(f.html, func(w io.Writer) error { return reports.WritePlanPage(w, p) }) }},
			} {
				if out.path == "" {
					continue
				}
				if err := out.write(); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.cobra = cmd
	flags := cmd.Flags()
	flags.StringSliceVar(&f.windows, "window", []string{"30s", "45s", "60s", "90s", "120s", "180s", "300s", "600s"}, "reap timeouts to compare: `TIME[,TIME]`; 0 reaps nobody")
	flags.StringSliceVar(&f.intervals, "interval", []string{"10s"}, "heartbeat intervals to compare: `TIME[,TIME]`; the reply deadline is the same")
	flags.DurationVar(&f.grace, "grace", core.DefaultGrace, "the registration grace, a `TIME`")
	flags.Float64Var(&f.budget, "budget", 0.01, "how many false reaps a worker-year are acceptable, `N`")
	flags.StringVar(&f.design, "design", "hardened", "`PRESET` is hardened or document: what stalls and idle starts do")
	flags.IntVar(&f.workers, "workers", 8, "`N` workers, for the sum over all")
	flags.Float64Var(&f.loss, "loss", 0.0001, "the chance that a ping is lost for good, each by itself, `P` from 0 to below 1")
	flags.StringArrayVar(&f.pauses, "pause", []string{"1/day:lognormal(1s,p99=20s)"}, "a cause of pauses of a worker, `RATE:LENGTH`, or none")
	flags.StringArrayVar(&f.stalls, "stall", []string{"1/month:lognormal(5s,p99=60s)"}, "a cause of stalls of the server, `RATE:LENGTH`, or none")
	flags.StringVar(&f.crashes, "crash", "1/month", "how often a worker dies without a word, a `RATE`")
	flags.Float64Var(&f.proven, "proven", 0, "the `SHARE` of deaths that a pidfd shows at once (workers over ipc on Linux), 0 to 1")
	flags.Float64Var(&f.early, "early", 0, "the `SHARE` of deaths before the first ping, which the grace judges, 0 to 1")
	flags.StringVar(&f.first, "first-request", "", "how long a new worker waits for its first request, a `LENGTH`: under document it pings from then on only")
	flags.StringVar(&f.context, "context", "40GiB", "device memory of one worker's context, `BYTES` with their unit")
	flags.StringVar(&f.json, "json", "", "write the result as JSON to `FILE`, - for standard output")
	flags.StringVar(&f.html, "html", "", "write the result as a page to `FILE`, - for standard output")
	return cmd
}

// read turns the flags into a deployment and a sweep.
func (f *planFlags) read() (*plan.Deployment, plan.Sweep, error) {
	d := &plan.Deployment{Hardened: f.design == "hardened", Workers: f.workers, Loss: f.loss, Proven: f.proven, Early: f.early}
	sweep := plan.Sweep{Grace: f.grace, Budget: f.budget}
	wrong := func(format string, args ...any) (*plan.Deployment, plan.Sweep, error) {
		return nil, sweep, &usageError{fmt.Sprintf(format, args...)}
	}
	if !d.Hardened && f.design != "document" {
		return wrong("%s", unknownName("--design", f.design, []string{"hardened", "document"}))
	}
	switch {
	case !(f.loss >= 0 && f.loss < 1):
		return wrong("--loss %g: a chance from 0 to below 1", f.loss)
	case !(f.proven >= 0 && f.proven <= 1):
		return wrong("--proven %g: a share from 0 to 1", f.proven)
	case !(f.early >= 0 && f.early <= 1):
		return wrong("--early %g: a share from 0 to 1", f.early)
	case !(f.budget >= 0) || math.IsInf(f.budget, 0):
		return wrong("--budget %g: a number from 0 on", f.budget)
	case f.workers < 1 || f.workers > core.MaxInstances:
		return wrong("--workers %d: from 1 to %d", f.workers, core.MaxInstances)
	case f.grace < 0 || f.grace > plan.MaxDuration:
		return wrong("--grace %s: a time from 0s to %s", f.grace, plan.MaxDuration)
	}
	var err error
	if d.Pauses, err = causes("--pause", f.pauses); err != nil {
		return nil, sweep, err
	}
	if d.Stalls, err = causes("--stall", f.stalls); err != nil {
		return nil, sweep, err
	}
	if d.Crashes, err = plan.ParseRate(f.crashes); err != nil {
		return wrong("--crash %s", err)
	}
	if d.ContextBytes, err = parseBytes(f.context); err != nil {
		return wrong("--context %s", err)
	}
	if f.first != "" {
		if d.FirstRequest, err = plan.ParseDistribution(f.first); err != nil {
			return wrong("--first-request %s", err)
		}
	}
	if sweep.Windows, err = times("--window", f.windows, true); err != nil {
		return nil, sweep, err
	}
	sweep.Intervals, err = times("--interval", f.intervals, false)
	return d, sweep, err
}

// none is how a cause is switched off.
const none = "none"

func causes(flag string, texts []string) (list []plan.Cause, err error) {
	for _, text := range texts {
		if text == none {
			continue
		}
		c, err := plan.ParseCause(text)
		if err != nil {
			return nil, &usageError{fmt.Sprintf("%s %s (or %s none)", flag, err, flag)}
		}
		list = append(list, c)
	}
	return list, nil
}

func times(flag string, texts []string, off bool) (list []time.Duration, err error) {
	for _, text := range texts {
		t, err := time.ParseDuration(strings.TrimSpace(text))
		if text == "0" {
			t, err = 0, nil
		}
		if err != nil || t < 0 || t == 0 && !off || t > plan.MaxDuration || t > 0 && t < time.Millisecond {
			return nil, &usageError{fmt.Sprintf("%s %s: a time such as 90s or 2m", flag, text)}
		}
		list = append(list, t)
	}
	return list, nil
}

var byteUnits = []struct {
	unit string
	size float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// parseBytes reads 40GiB, 80GB or 4096.
func parseBytes(text string) (float64, error) {
	number, size := text, 1.0
	for _, u := range byteUnits {
		if n, ok := strings.CutSuffix(text, u.unit); ok {
			number, size = n, u.size
			break
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(v >= 0) || v*size > 1<<60 {
		return 0, fmt.Errorf("%q: bytes with their unit, such as 40GiB or 512MiB", text)
	}
	return v * size, nil
}

// report is the comparison as it is shown and written.
func (f *planFlags) report(d *plan.Deployment, sweep plan.Sweep, c *plan.Comparison) *reports.Plan {
	p := &reports.Plan{
		Version: 1, Design: f.design, Budget: sweep.Budget,
		Recommended: c.Recommended, Within: c.Within,
	}
	fact := func(name, value string, flags ...string) {
		assumed := true
		for _, flag := range flags {
			assumed = assumed && !f.cobra.Flags().Changed(flag)
		}
		p.Deployment = append(p.Deployment, reports.PlanFact{Name: name, Value: value, Assumed: assumed})
	}
	listed := func(list []plan.Cause) string {
		var words []string
		for _, c := range list {
			words = append(words, c.String())
		}
		if len(words) == 0 {
			return "none"
		}
		return strings.Join(words, ", ")
	}
	fact("workers", strconv.Itoa(f.workers), "workers")
	fact("lost pings", fmt.Sprintf("%g of all", f.loss), "loss")
	fact("pauses of a worker", listed(d.Pauses), "pause")
	fact("stalls of the server", listed(d.Stalls), "stall")
	fact("silent deaths of a worker", f.crashes, "crash")
	if f.early > 0 {
		fact("  before the first ping", fmt.Sprintf("%g of them", f.early), "early")
	}
	if f.proven > 0 {
		fact("  proven at once", fmt.Sprintf("%g of them", f.proven), "proven")
	}
	if d.FirstRequest != nil {
		fact("wait for the first request", d.FirstRequest.String(), "first-request")
	}
	fact("a worker's context", f.context, "context")
	fact("registration grace", f.grace.String(), "grace")
	fact("accepted false reaps", fmt.Sprintf("%g a worker-year", f.budget), "budget")
	finite := func(v float64) *float64 {
		if math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	for i := range c.Forecasts {
		r := &c.Forecasts[i]
		p.Settings = append(p.Settings, reports.PlanSetting{
			Window: r.Window.Seconds(), Grace: r.Grace.Seconds(), Interval: r.Interval.Seconds(),
			FalseReaps: r.FalseReaps, Fleet: r.FalseReaps * float64(f.workers), Mostly: r.Cause(),
			By:        reports.PlanBy{Losses: r.Losses, Pauses: r.Pauses, Together: r.Together, Stalls: r.Stalls, IdleFirst: r.IdleFirst},
			Detection: finite(r.Detection), Detection99: finite(r.Detection99), LeakedByteHours: finite(r.LeakedByteHours),
			Unsafe: r.Unsafe,
		})
	}
	p.Why = p.Reason()
	return p
}
