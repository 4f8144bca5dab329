package main

import (
	"fmt"
	"sync"
	"syscall"

	"vigil/core"
	"vigil/core/loop"
	"vigil/core/wire"
	"vigil/realgpu/hostshm"
)

// Why this file: an engine-driven worker copies itself, between its memory and
// the slots of the server's pool. To the worker's core a copy takes no time
// (core/worker, Seams): the reply to a PREPARE reaches it only when the copy is
// done, and it commits then.
//
// What this mode cannot promise, and no worker of it can: one that sleeps
// between PREPARE and its copy for longer than the server's window may wake up
// to write into slots that are somebody else's by then. Its COMMIT is refused;
// the bytes are written all the same.

type sharedPool struct {
	memory  *kvMemory
	blocks  int // of a chunk
	trouble func(string)
	copying sync.WaitGroup

	mapped sync.RWMutex // held while the pool is read or written
	name   string
	bytes  []byte

	mu    sync.Mutex
	jobs  map[core.RequestID]poolJob
	byUID map[uint64]core.RequestID
	last  map[core.RequestID]uint64
}

// poolJob is a request that the engine submitted.
type poolJob struct{ blocks []uint32 }

func newSharedPool(m *kvMemory, trouble func(string)) *sharedPool {
	return &sharedPool{memory: m, trouble: trouble, jobs: map[core.RequestID]poolJob{}, byUID: map[uint64]core.RequestID{}, last: map[core.RequestID]uint64{}}
}

func (p *sharedPool) submit(request core.RequestID, blocks []uint32) {
	p.mu.Lock()
	p.jobs[request] = poolJob{blocks}
	p.mu.Unlock()
}

// record sees the core's records: which message belongs to which request.
func (p *sharedPool) record(r *core.Record) {
	request := core.RequestID(r.A)
	switch r.Kind {
	case core.RequestSent:
		p.mu.Lock()
		if old, ok := p.last[request]; ok {
			delete(p.byUID, old)
		}
		p.byUID[r.B], p.last[request] = request, r.B
		p.mu.Unlock()
	case core.FinishedReported:
		p.mu.Lock()
		delete(p.byUID, p.last[request])
		delete(p.last, request)
		delete(p.jobs, request)
		p.mu.Unlock()
	}
}

// take looks at a reply before the core does. True: the core gets it later.
func (p *sharedPool) take(w *loop.Worker, peer core.Peer, arrived core.Time, frames *core.Frames) bool {
	r := new(wire.Reply)
	kept := new(core.Frames)
	kept.CopyFrom(frames)
	if wire.DecodeReply(kept, r) != core.NoFailure || r.Refusal != core.NoFailure {
		return false
	}
	switch r.Type {
	case wire.RegisterEngineDriven:
		if err := p.open(string(r.ShmName), r.Pool); err != nil {
			p.trouble(err.Error())
		}
		return false
	case wire.PrepareStore, wire.PrepareRetrieve:
	default:
		return false
	}
	if len(r.Slots) == 0 {
		return false
	}
	p.mu.Lock()
	job, ok := p.jobs[p.byUID[r.UIDNumber]]
	p.mu.Unlock()
	if !ok {
		return false // it was given up
	}
	p.copying.Go(func() {
		if err := p.copy(r, job.blocks); err != nil {
			p.trouble(err.Error())
			return // the core waits for its deadline: a commit would vouch for nothing
		}
		w.Message(peer, arrived, kept)
	})
	return true
}

// copy moves the chunks that a reply's slots are for.
func (p *sharedPool) copy(r *wire.Reply, blocks []uint32) error {
	p.mapped.RLock()
	defer p.mapped.RUnlock()
	store := r.Type == wire.PrepareStore
	chunk := uint64(p.blocks) * uint64(p.memory.blockBytes) * uint64(p.memory.layers)
	for i, s := range r.Slots {
		index := int64(i)
		if store {
			if i >= len(r.Indices) {
				return fmt.Errorf("%s: %d slots for %d chunks", r.Type, len(r.Slots), len(r.Indices))
			}
			index = r.Indices[i]
		}
		from, length := uint64(s.Offset), uint64(s.Length)
		if s.Offset < 0 || length != chunk || from+length > uint64(len(p.bytes)) || from+length < from {
			return fmt.Errorf("%s: a slot at %d of %d bytes; a chunk has %d and the pool %d", r.Type, s.Offset, s.Length, chunk, len(p.bytes))
		}
		if index < 0 || (index+1)*int64(p.blocks) > int64(len(blocks)) {
			return fmt.Errorf("%s: a slot for chunk %d of %d", r.Type, index, len(blocks)/p.blocks)
		}
		place := p.bytes[from : from+length]
		for l := range p.memory.layers {
			for _, b := range blocks[index*int64(p.blocks) : (index+1)*int64(p.blocks)] {
				var err error
				if one := place[:p.memory.blockBytes]; store {
					err = p.memory.own.read(p.memory.at(l, b), one)
				} else {
					err = p.memory.own.write(p.memory.at(l, b), one)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", r.Type, err)
				}
				place = place[p.memory.blockBytes:]
			}
		}
	}
	return nil
}

// open maps the pool that a registration named; a server that came back has
// another one.
func (p *sharedPool) open(name string, size int64) error {
	p.mapped.Lock()
	defer p.mapped.Unlock()
	if name == p.name && name != "" {
		return nil
	}
	p.unmap()
	if name == "" || size <= 0 {
		return fmt.Errorf("the server has no shared pool, which this worker copies through; start it with --pool-bytes, or this worker with --mode server-driven")
	}
	if err := hostshm.CheckName(name); err != nil {
		return err
	}
	fd, err := syscall.Open(hostshm.DefaultDir+name, syscall.O_RDWR|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("the server's pool %s: %w; do both see the same %s?", name, err, hostshm.DefaultDir)
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil || st.Size < size {
		return fmt.Errorf("the server's pool %s has %d bytes and not %d", name, st.Size, size)
	}
	bytes, err := syscall.Mmap(fd, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("the server's pool %s: %w", name, err)
	}
	p.name, p.bytes = name, bytes
	return nil
}

func (p *sharedPool) unmap() {
	if p.bytes != nil {
		syscall.Munmap(p.bytes)
	}
	p.name, p.bytes = "", nil
}

// close waits for the copies under way. No reply may come any more.
func (p *sharedPool) close() {
	p.copying.Wait()
	p.mapped.Lock()
	p.unmap()
	p.mapped.Unlock()
}
