package main

import (
	"context"
	"errors"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"vigil/core/zmq"
)

// Why this file: many workers in one process, and figures instead of a line
// for each request. Times are the world's, not the scaled clock's.

// meter is what all workers of a load count together. A nil meter counts
// nothing.
type meter struct {
	prompts                          []*prompt
	workers                          atomic.Int64
	stores, retrieves, misses, fails atomic.Uint64
	wrong, bytes                     atomic.Uint64
	storeTimes, retrieveTimes, pings spread
}

func (m *meter) done(store bool, took time.Duration, bytes uint64) {
	if m == nil {
		return
	}
	m.bytes.Add(bytes)
	if store {
		m.stores.Add(1)
		m.storeTimes.add(took)
	} else {
		m.retrieves.Add(1)
		m.retrieveTimes.add(took)
	}
}

func (m *meter) miss() {
	if m != nil {
		m.misses.Add(1)
	}
}

func (m *meter) failed() {
	if m != nil {
		m.fails.Add(1)
	}
}

func (m *meter) wrongBytes() {
	if m != nil {
		m.wrong.Add(1)
	}
}

// spread is a histogram of times: 16 buckets for each doubling of microseconds,
// so a quantile is right within 5%.
type spread struct{ buckets [40 * 16]atomic.Uint64 }

func (s *spread) add(d time.Duration) {
	us := uint64(max(d.Microseconds(), 1))
	top := bits.Len64(us) - 1
	fine := us << 4 >> top & 15
	s.buckets[min(top*16+int(fine), len(s.buckets)-1)].Add(1)
}

// quantile is in milliseconds.
func (s *spread) quantile(q float64) float64 {
	var counts [len(s.buckets)]uint64
	total := uint64(0)
	for i := range s.buckets {
		counts[i] = s.buckets[i].Load()
		total += counts[i]
	}
	left := uint64(q * float64(total))
	for i, n := range counts {
		if n > left {
			return float64(uint64(16+i%16)<<(i/16)) / 16 / 1e3
		}
		left -= n
	}
	return 0
}

// figures is one line of a load; the last one is of the whole run.
type figures struct {
	Last      bool    `json:"last"`
	Seconds   float64 `json:"seconds"`
	Workers   int64   `json:"workers"`
	Stored    uint64  `json:"stored"`
	Retrieved uint64  `json:"retrieved"`
	Missed    uint64  `json:"missed"`
	Failed    uint64  `json:"failed"`
	Wrong     uint64  `json:"wrong"`
	Rate      float64 `json:"requests_per_second"`
	MiB       float64 `json:"mib_per_second"`
	Store50   float64 `json:"store_p50_ms"`
	Store99   float64 `json:"store_p99_ms"`
	Load50    float64 `json:"retrieve_p50_ms"`
	Load99    float64 `json:"retrieve_p99_ms"`
	Ping50    float64 `json:"ping_p50_ms"`
	Ping99    float64 `json:"ping_p99_ms"`
}

// read makes the figures of the time since before.
func (m *meter) read(since time.Duration, before *figures, last bool) (f figures, raw figures) {
	raw = figures{
		Stored: m.stores.Load(), Retrieved: m.retrieves.Load(), Missed: m.misses.Load(), Failed: m.fails.Load(), Wrong: m.wrong.Load(),
		MiB: float64(m.bytes.Load()) / (1 << 20),
	}
	f = raw
	f.Last, f.Seconds, f.Workers = last, since.Seconds(), m.workers.Load()
	f.Stored -= before.Stored
	f.Retrieved -= before.Retrieved
	f.Missed -= before.Missed
	f.Failed -= before.Failed
	f.Wrong -= before.Wrong
	f.MiB = (f.MiB - before.MiB) / since.Seconds()
	f.Rate = float64(f.Stored+f.Retrieved+f.Missed+f.Failed) / since.Seconds()
	f.Store50, f.Store99 = m.storeTimes.quantile(.5), m.storeTimes.quantile(.99)
	f.Load50, f.Load99 = m.retrieveTimes.quantile(.5), m.retrieveTimes.quantile(.99)
	f.Ping50, f.Ping99 = m.pings.quantile(.5), m.pings.quantile(.99)
	return f, raw
}

// runLoad runs the workers of a load until leave.
func runLoad(leave, abort context.Context, c *workerConfig, out *printer) error {
	shared, err := zmq.NewContext()
	if err != nil {
		return err
	}
	defer shared.Close()
	m := &meter{}
	var units []*unit
	for range c.load {
		u, err := newUnit(leave, c, shared, out, m)
		if err != nil || u == nil {
			for _, u := range units {
				u.drop()
			}
			return err
		}
		units = append(units, u)
	}
	out.print(line{Event: "started", PID: pid(), Connect: c.connect, Mode: c.mode, Model: c.model, World: c.world, ChunkTokens: c.core.ChunkTokens, Blocks: c.blocks, Design: c.core.Protections.String(), TimeScale: c.timeScale})
	begun := time.Now()
	errs := make([]error, len(units))
	var group sync.WaitGroup
	ended := make(chan struct{})
	for i, u := range units {
		m.workers.Add(1)
		group.Go(func() {
			defer m.workers.Add(-1)
			errs[i] = u.run(leave, abort)
		})
	}
	go func() { group.Wait(); close(ended) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var before figures
	for at, over := begun, false; !over; {
		select {
		case <-tick.C:
			now := time.Now()
			var f figures
			f, before = m.read(now.Sub(at), &before, false)
			at = now
			out.print(line{Event: "load", Load: &f})
		case <-ended:
			over = true
		}
	}
	f, _ := m.read(time.Since(begun), &figures{}, true)
	out.print(line{Event: "load", Load: &f})
	worst := 0
	for _, err := range errs {
		var e *ending
		switch {
		case errors.As(err, &e) && (worst == 0 || e.code == exitWrongBytes):
			worst = e.code
		case err != nil && e == nil:
			return err
		}
	}
	if worst != 0 {
		return &ending{worst}
	}
	return nil
}
