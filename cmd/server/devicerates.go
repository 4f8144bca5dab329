package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"syscall"
	"time"

	"vigil/core"
	"vigil/realgpu/cuda"
)

// Why this file: what a store and a retrieve reach, beside plain copies of the
// driver of the same block sizes, in one process and one run. The design asks
// for four fifths.

// ratePlan is how much is copied.
type ratePlan struct {
	blocks []int // sizes
	memory uint64
	chunk  int // bytes of a slot
	flight int // copies at once
	lasts  time.Duration
}

func (c *checkConfig) ratePlan() ratePlan {
	if c.reduced {
		return ratePlan{blocks: []int{4 << 10, 64 << 10}, memory: 8 << 20, chunk: 1 << 20, flight: 2, lasts: 30 * time.Millisecond}
	}
	return ratePlan{blocks: []int{16 << 10, 64 << 10, 256 << 10, 2 << 20}, memory: 1 << 30, chunk: 32 << 20, flight: 4, lasts: 700 * time.Millisecond}
}

// slotsOf is pinned memory in place of a store.
type slotsOf struct {
	memory []byte
	chunk  int
}

func (s *slotsOf) Slot(n core.Slot) []byte {
	from := int(n) * s.chunk
	return s.memory[from : from+s.chunk : from+s.chunk]
}

// measureCopies is the process that measures.
func (c *checkConfig) measureCopies(out io.Writer) error {
	p := c.ratePlan()
	d, err := cuda.Shared(c.memory.library)
	if err != nil {
		return err
	}
	e, err := c.startExporter()
	if err != nil {
		return err
	}
	defer e.kill()
	h, err := e.alloc(p.memory, 7)
	if err != nil {
		return err
	}
	probe, err := cuda.NewProbe(d, c.memory.device)
	if err != nil {
		return err
	}
	defer probe.End()
	at, err := probe.Open(h)
	if err != nil {
		return err
	}
	defer probe.Close(at)
	b := &bench{plan: p, ended: make(chan core.Input, p.flight)}
	if b.slots.memory, err = syscall.Mmap(-1, 0, p.flight*p.chunk, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_POPULATE); err != nil {
		return err
	}
	b.slots.chunk = p.chunk
	if b.memory, err = cuda.New(cuda.Options{Driver: d, Slots: &b.slots, Done: func(in core.Input) { b.ended <- in }, Log: slog.New(slog.DiscardHandler)}); err != nil {
		return err
	}
	b.memory.Took(b.slots.memory)
	time.Sleep(p.lasts) // it is pinned behind our back
	var list []rate
	for i, block := range p.blocks {
		r := rate{Level: "backend", Block: block}
		times := max(int(min(p.memory, 1<<30)/uint64(block)), 64)
		if r.PlainOut, err = probe.Rate(at, min(p.memory, 256<<20), block, times, false); err != nil {
			return err
		}
		if r.PlainIn, err = probe.Rate(at, min(p.memory, 256<<20), block, times, true); err != nil {
			return err
		}
		if err := b.open(core.Mapping(i+1), h, c, block); err != nil {
			return err
		}
		if r.Store, err = b.rate(core.Mapping(i+1), block, core.CopyOut); err != nil {
			return err
		}
		if r.Retrieve, err = b.rate(core.Mapping(i+1), block, core.CopyIn); err != nil {
			return err
		}
		r.StoreShare, r.RetrieveShare = r.Store/r.PlainOut, r.Retrieve/r.PlainIn
		list = append(list, r)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := b.memory.Shutdown(ctx); err != nil {
		return err
	}
	return printJSON(out, list)
}

// bench copies as a server does, several copies at once.
type bench struct {
	plan   ratePlan
	memory *cuda.Memory
	slots  slotsOf
	ended  chan core.Input
}

func (b *bench) open(number core.Mapping, h cuda.Handle, c *checkConfig, block int) error {
	uuid := b.memory.Devices()[c.memory.device].UUID.String()
	b.memory.Open(&core.OpenOrder{Mapping: number, Owner: 1, Incarnation: 1, Exports: []core.Export{{
		Kind: core.CUDA, Handle: h[:], Device: []byte(uuid), DType: []byte("uint8"),
		Bytes: b.plan.memory, Blocks: uint32(b.plan.memory / uint64(block)), BlockBytes: uint32(block),
	}}})
	if in := <-b.ended; in.Failure != core.NoFailure {
		return fmt.Errorf("opening for the measurement: %s", in.Failure)
	}
	return nil
}

// rate keeps so many copies under way for a while. The blocks of a copy lie
// apart, as an engine's do after some time.
func (b *bench) rate(number core.Mapping, block int, way core.Direction) (float64, error) {
	per := b.plan.chunk / block
	all := uint32(b.plan.memory / uint64(block))
	step := uint32(3)
	copies, bytes := 0, uint64(0)
	start := func() {
		ids := make([]uint32, per)
		for i := range ids {
			ids[i] = (uint32(copies*per+i) * step) % all
		}
		b.memory.Copy(&core.CopyOrder{
			Op: core.Op(copies), Mapping: number, Owner: 1, Incarnation: 1, Direction: way, Blocks: ids,
			Chunks: []core.ChunkCopy{{Slot: core.Slot(copies % b.plan.flight), Count: uint32(per)}},
		})
		copies++
	}
	began := time.Now()
	for range b.plan.flight {
		start()
	}
	for under := b.plan.flight; under > 0; {
		in := <-b.ended
		if in.Failure != core.NoFailure {
			return 0, fmt.Errorf("a copy of the measurement: %s", in.Failure)
		}
		bytes += uint64(b.plan.chunk)
		if time.Since(began) < b.plan.lasts {
			start()
		} else {
			under--
		}
	}
	return float64(bytes) / time.Since(began).Seconds(), nil
}
