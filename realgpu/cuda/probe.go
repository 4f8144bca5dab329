package cuda

import (
	"fmt"
	"log/slog"
	"time"
)

// Why this file: what a real driver does is measured, not believed
// (scripts/device-check). A probe makes the driver's calls one by one, without
// the table and the rules of Memory, and hands every result on. What it finds
// become the rules of the simulated memory (sim/memory.go).

// Probe makes single calls on one device. Not safe for concurrent use, but for
// Close, which may be called while a copy runs.
type Probe struct {
	device *device
}

// NewProbe retains the context of a device.
func NewProbe(d *Driver, ordinal int) (*Probe, error) {
	o, err := NewOwner(d, ordinal)
	if err != nil {
		return nil, err
	}
	o.device.log = slog.New(slog.DiscardHandler)
	return &Probe{o.device}, nil
}

// Owner is the same device for allocations of this process.
func (p *Probe) Owner() *Owner { return &Owner{device: p.device} }

// Handle is an exported allocation.
type Handle [handleBytes]byte

// Open opens a handle.
func (p *Probe) Open(h Handle) (address uint64, err error) {
	err = p.device.opens.call(func(*lane) error {
		handle := [handleBytes]byte(h)
		if r := openHandle(p.device.driver.openHandle.at, pointer(&address), escaped(&handle), lazyPeerAccess); r != Success {
			return p.device.failed(&p.device.driver.openHandle, r)
		}
		return nil
	})
	return address, err
}

// Close closes what Open gave, on a thread of its own.
func (p *Probe) Close(address uint64) error {
	return p.device.closes.call(func(*lane) error {
		return p.device.do(&p.device.driver.closeHandle, uintptr(address))
	})
}

// Range says which allocation an address lies in.
func (p *Probe) Range(address uint64) (base, bytes uint64, err error) {
	err = p.device.opens.call(func(*lane) error {
		return p.device.do(&p.device.driver.addressRange, pointer(&base), pointer(&bytes), uintptr(address))
	})
	return base, bytes, err
}

// Export is the driver's handle for an address of this process's memory.
func (p *Probe) Export(address uint64) (h Handle, err error) {
	err = p.device.opens.call(func(*lane) error {
		return p.device.do(&p.device.driver.getHandle, pointer(&h[0]), uintptr(address))
	})
	return h, err
}

// Read copies out of device memory, whoever made it, and waits.
func (p *Probe) Read(address uint64, to []byte) error { return p.move(address, to, false) }

// Write copies into it.
func (p *Probe) Write(address uint64, from []byte) error { return p.move(address, from, true) }

func (p *Probe) move(address uint64, host []byte, in bool) error {
	a := &Allocation{owner: &Owner{device: p.device}, at: address, bytes: uint64(len(host))}
	if in {
		return a.Write(0, host)
	}
	return a.Read(0, host)
}

// Free is how many bytes of the device nobody has, by the driver.
func (p *Probe) Free() (free, total uint64, err error) { return p.Owner().Free() }

// Rate copies blocks of so many bytes between device memory and pinned host
// memory, so often, back to back on one stream, and returns bytes a second:
// what plain asynchronous copies of the driver reach.
func (p *Probe) Rate(address, memory uint64, block, times int, toDevice bool) (perSecond float64, err error) {
	if memory < uint64(block) || block <= 0 || times <= 0 {
		return 0, fmt.Errorf("blocks of %d bytes do not fit %d bytes", block, memory)
	}
	err = p.device.copies.call(func(w *lane) error {
		v, d := w.device, w.device.driver
		host, err := v.pin(int(memory))
		if err != nil {
			return err
		}
		defer v.unpin(host)
		clear(host)
		blocks := memory / uint64(block)
		put := func(i uint64) error {
			at := i % blocks * uint64(block)
			if toDevice {
				return v.do(&d.toDevice, uintptr(address+at), addressOf(host[at:]), uintptr(block), w.stream)
			}
			return v.do(&d.toHost, addressOf(host[at:]), uintptr(address+at), uintptr(block), w.stream)
		}
		for i := range min(blocks, 16) { // the first ones pay for what is set up once
			if err := put(i); err != nil {
				return err
			}
		}
		if err := v.do(&d.streamWait, w.stream); err != nil {
			return err
		}
		began := time.Now()
		for i := range uint64(times) {
			if err := put(i); err != nil {
				return err
			}
		}
		if err := v.do(&d.streamWait, w.stream); err != nil {
			return err
		}
		perSecond = float64(block) * float64(times) / time.Since(began).Seconds()
		return nil
	})
	return perSecond, err
}

// Register pins host memory of the caller's; Unregister lets it go.
func (p *Probe) Register(memory []byte) error {
	return p.device.pins.call(func(*lane) error {
		return p.device.do(&p.device.driver.register, addressOf(memory), uintptr(len(memory)), hostPortable)
	})
}

// Unregister lets pinned memory go.
func (p *Probe) Unregister(memory []byte) error {
	return p.device.pins.call(func(*lane) error {
		return p.device.do(&p.device.driver.unregister, addressOf(memory))
	})
}

// End lets the context go.
func (p *Probe) End() { p.device.close() }

// Handle is what an allocation is exported as, and Address where it lies here.
func (a *Allocation) Handle() Handle  { return a.handle }
func (a *Allocation) Address() uint64 { return a.at }

// ResultOf is the driver's result inside an error, as people write it.
func ResultOf(err error) string {
	if err == nil {
		return Success.String()
	}
	if r := resultOf(err); r != Success {
		return r.String()
	}
	return err.Error()
}
