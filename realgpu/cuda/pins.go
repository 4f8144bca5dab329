package cuda

import (
	"slices"
	"sync"
	"syscall"
)

// Why this file: memory in which the store's slots lie is pinned where it lies,
// so that the device copies straight into it. Pinning takes milliseconds and
// may hang, so a lane of its own does it, behind the owner's back; until it is
// done, and where it fails, copies go through stages.

// pins are the pieces of host memory that are pinned.
type pins struct {
	device *device // whose context pins, for all devices

	mu     sync.RWMutex
	pieces []*pin // by address
}

type pin struct {
	memory []byte
	ready  bool
}

// Took is told of memory in which slots will lie; it returns at once.
func (m *Memory) Took(memory []byte) { m.pins.took(memory) }

// Gave takes over memory in which no slot lies any more: it is unmapped once
// the device has let it go. It returns at once.
func (m *Memory) Gave(memory []byte) { m.pins.gave(memory) }

func (p *pins) find(at uintptr) (int, bool) {
	return slices.BinarySearchFunc(p.pieces, at, func(x *pin, at uintptr) int {
		switch a := addressOf(x.memory); {
		case a < at:
			return -1
		case a > at:
			return 1
		}
		return 0
	})
}

func (p *pins) took(memory []byte) {
	if len(memory) == 0 {
		return
	}
	x := &pin{memory: memory}
	p.mu.Lock()
	i, _ := p.find(addressOf(memory))
	p.pieces = slices.Insert(p.pieces, i, x)
	p.mu.Unlock()
	v := p.device
	v.pins.run(func(_ *lane, err error) {
		if err == nil {
			err = v.usable()
		}
		if err == nil {
			err = v.do(&v.driver.register, addressOf(memory), uintptr(len(memory)), hostPortable)
		}
		if err != nil {
			v.log.Warn("cuda: memory of the store cannot be pinned; copies of its chunks take a detour", "bytes", len(memory), "error", err)
			return
		}
		p.mu.Lock()
		x.ready = true
		p.mu.Unlock()
	})
}

// gave comes behind took on the one lane for pins, so what is there is ready,
// or will never be.
func (p *pins) gave(memory []byte) {
	p.mu.Lock()
	i, known := p.find(addressOf(memory))
	if !known {
		p.mu.Unlock()
		syscall.Munmap(memory)
		return
	}
	x := p.pieces[i]
	p.pieces = slices.Delete(p.pieces, i, i+1)
	p.mu.Unlock()
	v := p.device
	v.pins.run(func(_ *lane, err error) {
		p.mu.RLock()
		ready := x.ready
		p.mu.RUnlock()
		if ready {
			if err == nil {
				err = v.do(&v.driver.unregister, addressOf(memory))
			}
			// Unmapped under the driver's eyes, its address could come back as
			// other memory that the driver takes for this.
			if err != nil {
				v.log.Error("cuda: pinned memory of the store cannot be let go; it stays mapped", "bytes", len(memory), "error", err)
				return
			}
		}
		syscall.Munmap(memory)
	})
}

// holds reports whether a slot lies in pinned memory. A slot's memory stays
// while its chunk is there, and a chunk while a copy reads or writes it.
func (p *pins) holds(slot []byte) bool {
	if len(slot) == 0 {
		return false
	}
	at := addressOf(slot)
	p.mu.RLock()
	defer p.mu.RUnlock()
	i, found := p.find(at)
	if !found {
		i--
	}
	if i < 0 {
		return false
	}
	x := p.pieces[i]
	from := addressOf(x.memory)
	return x.ready && at-from < uintptr(len(x.memory)) && uintptr(len(slot)) <= uintptr(len(x.memory))-(at-from)
}
