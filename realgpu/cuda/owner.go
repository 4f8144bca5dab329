package cuda

import (
	"fmt"
	"log/slog"
	"sync"
	"unsafe"

	"vigil/core"
)

// Why this file: the worker's side. A worker of ours keeps its KV memory in an
// allocation of a device, fills it with a pattern, and checks every byte that
// comes back. It uses copies only; no code runs on the device.

// Owner is a process's own use of one device. Safe for concurrent use: its
// calls take turns.
type Owner struct {
	device *device
	mu     sync.Mutex
}

// NewOwner retains the context of a device: the one with that ordinal.
func NewOwner(d *Driver, ordinal int) (*Owner, error) {
	list, err := d.Devices()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= len(list) {
		return nil, fmt.Errorf("there is no device %d; %s shows %d", ordinal, d.Path, len(list))
	}
	v, err := d.open(list[ordinal], slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return &Owner{device: v}, nil
}

// Device says which device it is.
func (o *Owner) Device() DeviceInfo { return o.device.DeviceInfo }

// Close lets the context go. Allocations must have been freed before.
func (o *Owner) Close() { o.device.close() }

// do runs one call after another on a lane.
func (o *Owner) do(f func(w *lane) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.device.copies.call(f)
}

// Free is how many bytes of the device nobody has, and how many it has in all.
func (o *Owner) Free() (free, total uint64, err error) {
	err = o.do(func(w *lane) error {
		return w.device.do(&w.device.driver.memInfo, pointer(&free), pointer(&total))
	})
	return free, total, err
}

// Allocation is device memory that this process made.
type Allocation struct {
	owner  *Owner
	at     uint64
	bytes  uint64
	handle [handleBytes]byte
	freed  bool
}

// Alloc makes device memory and a handle to it. Its content is 0.
func (o *Owner) Alloc(bytes uint64) (*Allocation, error) {
	a := &Allocation{owner: o, bytes: bytes}
	err := o.do(func(w *lane) error {
		v, d := w.device, w.device.driver
		if err := v.do(&d.alloc, pointer(&a.at), uintptr(bytes)); err != nil {
			return err
		}
		err := v.do(&d.getHandle, uintptr(unsafe.Pointer(&a.handle)), uintptr(a.at))
		if words := bytes / 4; err == nil && words > 0 {
			if err = v.do(&d.fill, uintptr(a.at), 0, uintptr(words), w.stream); err == nil {
				err = v.do(&d.streamWait, w.stream)
			}
		}
		if err != nil {
			v.do(&d.free, uintptr(a.at))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%d bytes of device memory: %w", bytes, err)
	}
	return a, nil
}

// Bytes is its length.
func (a *Allocation) Bytes() uint64 { return a.bytes }

// Export names part of the allocation as one tensor: kind, handle and device
// are filled in, the rest is the caller's.
func (a *Allocation) Export(e core.Export) core.Export {
	handle := a.handle
	e.Kind, e.Handle, e.Device = core.CUDA, handle[:], []byte(a.owner.device.UUID.String())
	return e
}

// Write copies into device memory and waits for it.
func (a *Allocation) Write(at uint64, from []byte) error { return a.move(at, from, core.CopyIn) }

// Read copies out of device memory and waits for it.
func (a *Allocation) Read(at uint64, to []byte) error { return a.move(at, to, core.CopyOut) }

func (a *Allocation) move(at uint64, host []byte, way core.Direction) error {
	if at > a.bytes || uint64(len(host)) > a.bytes-at {
		return fmt.Errorf("%d bytes at %d do not lie in the allocation of %d", len(host), at, a.bytes)
	}
	return a.owner.do(func(w *lane) error {
		err := w.carry(a.at+at, host, way, false)
		if e := w.settle(way); err == nil {
			err = e
		}
		return err
	})
}

// Fill writes a word over and over; at and bytes are multiples of 4.
func (a *Allocation) Fill(at, bytes uint64, word uint32) error {
	if at%4 != 0 || bytes%4 != 0 || at > a.bytes || bytes > a.bytes-at {
		return fmt.Errorf("%d bytes at %d are not words of the allocation of %d bytes", bytes, at, a.bytes)
	}
	if bytes == 0 {
		return nil
	}
	return a.owner.do(func(w *lane) error {
		v, d := w.device, w.device.driver
		if err := v.do(&d.fill, uintptr(a.at+at), uintptr(word), uintptr(bytes/4), w.stream); err != nil {
			return err
		}
		return v.do(&d.streamWait, w.stream)
	})
}

// Free gives the memory back; it may be called again. Who has it open keeps it
// as long as the driver says.
func (a *Allocation) Free() error {
	return a.owner.do(func(w *lane) error {
		if a.freed {
			return nil
		}
		if err := w.device.do(&w.device.driver.free, uintptr(a.at)); err != nil {
			return err
		}
		a.freed = true
		return nil
	})
}
