package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"vigil/core"
	"vigil/reports"
	"vigil/scenarios"
)

func newBench(s *streams, common *commonFlags) *cobra.Command {
	var json string
	var lasts time.Duration
	var jobs int
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the speed of the simulator on this machine",
		Long: `Measure the simulator on this machine, with everything that a run of the suite
pays for: every message encoded and decoded, every event hashed, every monitor
watching.

The standard world has 16 workers that ping each 10 s and store or retrieve each
30 s; it is run for a day of virtual time. The small world has four workers and
lasts ten minutes; it is run on all processors at once.`,
		Example: `  simrun bench
  simrun bench --for 10s --json bench.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case lasts <= 0:
				return &usageError{fmt.Sprintf("--for %s: it must be longer than 0s, such as 3s", lasts)}
			case jobs < 1 || jobs > maxJobs:
				return &usageError{fmt.Sprintf("-j %d: it must be from 1 to %d", jobs, maxJobs)}
			}
			b, err := bench(cmd.Context(), lasts, jobs)
			if err != nil {
				return err
			}
			if cmd.Context().Err() != nil {
				fmt.Fprintln(s.err, "interrupted: nothing is measured")
				return &ending{exitInterrupted}
			}
			w := s.people(common, json == "-")
			if err := reports.BenchTable(w, b, w.Width, w.Colour); err != nil {
				return err
			}
			if json == "" {
				return nil
			}
			return s.write(json, func(w io.Writer) error { return reports.WriteJSON(w, b) })
		},
	}
	cmd.Flags().DurationVar(&lasts, "for", 3*time.Second, "how long each measurement takes, at least: a `TIME` such as 3s")
	cmd.Flags().IntVarP(&jobs, "jobs", "j", runtime.GOMAXPROCS(0), "processors `N` for what runs side by side")
	cmd.Flags().StringVar(&json, "json", "", "write the result as JSON to `FILE`, - for standard output")
	return cmd
}

func bench(ctx context.Context, lasts time.Duration, jobs int) (*reports.Bench, error) {
	worlds, err := scenarios.Find("standard", "four")
	if err != nil {
		return nil, err
	}
	day, short := asBuiltin(nil, worlds[:1])[0], asBuiltin(nil, worlds[1:])[0]
	dayLasts, shortLasts := day.Plan.Until.Seconds(), short.Plan.Until.Seconds()

	design := choice{preset: "hardened", protections: core.Hardened()}
	p := newPlayer(design)
	p.events(short, 0) // buffers grow once

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	var events uint64
	days := 0
	for days == 0 || time.Since(began) < lasts {
		if ctx.Err() != nil {
			return nil, nil
		}
		events += p.events(day, uint64(days))
		days++
	}
	took := time.Since(began).Seconds()
	runtime.ReadMemStats(&after)

	var runs, runEvents atomic.Uint64
	began = time.Now()
	var group sync.WaitGroup
	for job := range jobs {
		group.Go(func() {
			p := newPlayer(design)
			for seed := uint64(job); time.Since(began) < lasts && ctx.Err() == nil; seed += uint64(jobs) {
				runEvents.Add(p.events(short, seed))
				runs.Add(1)
			}
		})
	}
	group.Wait()
	sideBySide := time.Since(began).Seconds()

	return &reports.Bench{
		Version: 1,
		Machine: fmt.Sprintf("%d processors, %s, %s/%s", runtime.GOMAXPROCS(0), runtime.Version(), runtime.GOOS, runtime.GOARCH),
		Cores:   jobs,
		Rows: []reports.BenchRow{
			{Name: "standard_events_per_second", What: "standard world, a day: events per second", Value: float64(events) / took, Unit: "events/s", Cores: 1},
			{Name: "standard_event_nanoseconds", What: "standard world, a day: time per event", Value: took * 1e9 / float64(events), Unit: "ns", Cores: 1},
			{Name: "standard_event_allocations", What: "standard world, a day: allocations per event", Value: float64(after.Mallocs-before.Mallocs) / float64(events), Unit: "allocations", Cores: 1},
			{Name: "standard_day_seconds", What: "standard world, a day: wall time", Value: took / float64(days), Unit: "s", Cores: 1},
			{Name: "standard_sim_over_real", What: "standard world, a day: simulated over real time", Value: float64(days) * dayLasts / took, Unit: "x", Cores: 1},
			{Name: "small_runs_per_second", What: "small world, ten minutes: runs per second", Value: float64(runs.Load()) / sideBySide, Unit: "runs/s", Cores: jobs},
			{Name: "small_events_per_second", What: "small world, ten minutes: events per second", Value: float64(runEvents.Load()) / sideBySide, Unit: "events/s", Cores: jobs},
			{Name: "small_sim_over_real", What: "small world, ten minutes: simulated over real time", Value: float64(runs.Load()) * shortLasts / sideBySide, Unit: "x", Cores: jobs},
		},
	}, nil
}

// events plays one seed, judged by every monitor, and returns how many events
// the run had.
func (p *player) events(s selected, seed uint64) uint64 {
	return p.inner.Play(s.Scenario, seed, nil).Events
}
