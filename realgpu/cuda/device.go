package cuda

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"unsafe"
)

// Why this file: one device with its primary context, and what has become of
// it. The primary context is shared with whoever else uses the device in this
// process, which is what a library may do; it is retained once and released at
// the end.

// UUID names a device everywhere in the node.
type UUID [16]byte

// String is how the system's tools write it.
func (u UUID) String() string {
	h := hex.EncodeToString(u[:])
	return "GPU-" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// ParseUUID reads a device's name as workers write it: with or without the
// prefix GPU- or MIG-, in either case.
func ParseUUID(text string) (u UUID, err error) {
	t := strings.ToLower(text)
	for _, prefix := range []string{"gpu-", "mig-"} {
		t = strings.TrimPrefix(t, prefix)
	}
	if len(t) != 36 || t[8] != '-' || t[13] != '-' || t[18] != '-' || t[23] != '-' {
		return u, fmt.Errorf("%q is no device's UUID", clip(text))
	}
	if _, err := hex.Decode(u[:], []byte(strings.ReplaceAll(t, "-", ""))); err != nil {
		return u, fmt.Errorf("%q is no device's UUID", clip(text))
	}
	return u, nil
}

// clip keeps a stranger's text from flooding a log line.
func clip(text string) string {
	if len(text) > 80 {
		return text[:80] + "..."
	}
	return text
}

// DeviceInfo is what a device says of itself.
type DeviceInfo struct {
	Ordinal int // in this process: what is hidden from it is not counted
	UUID    UUID
	Name    string
	Bytes   uint64
}

// device is one that this process uses.
type device struct {
	DeviceInfo
	driver  *Driver
	handle  uintptr // CUdevice
	context uintptr
	log     *slog.Logger
	lost    atomic.Pointer[error] // why it answers nothing any more

	opens, closes, copies, pins *lanes
}

// MaxDevices bounds the devices of one process.
const MaxDevices = 64

// Devices lists what the driver shows, without making a context.
func (d *Driver) Devices() ([]DeviceInfo, error) {
	var count int32
	if r := d.getCount.call(pointer(&count)); r != Success {
		return nil, &Error{Call: d.getCount.name, Result: r}
	}
	if count < 1 {
		return nil, fmt.Errorf("%s shows no device", d.Path)
	}
	list := make([]DeviceInfo, min(int(count), MaxDevices))
	for i := range list {
		info := &list[i]
		info.Ordinal = i
		var handle int32
		var bytes uint64
		name := make([]byte, 128)
		for _, x := range []struct {
			f *function
			r Result
		}{
			{&d.get, d.get.call(pointer(&handle), uintptr(i))},
			{&d.getName, d.getName.call(pointer(&name[0]), uintptr(len(name)), uintptr(handle))},
			{&d.getUUID, d.getUUID.call(pointer(&info.UUID), uintptr(handle))},
			{&d.totalMem, d.totalMem.call(pointer(&bytes), uintptr(handle))},
		} {
			if x.r != Success {
				return nil, &Error{x.f.name, fmt.Sprintf("device %d", i), x.r}
			}
		}
		text, _, _ := strings.Cut(string(name), "\x00")
		info.Name, info.Bytes = text, bytes
	}
	return list, nil
}

// open retains a device's primary context.
func (d *Driver) open(info DeviceInfo, log *slog.Logger) (*device, error) {
	v := &device{DeviceInfo: info, driver: d, log: log}
	var handle int32
	if r := d.get.call(pointer(&handle), uintptr(info.Ordinal)); r != Success {
		return nil, v.failed(&d.get, r)
	}
	v.handle = uintptr(handle)
	var context uintptr
	if r := d.retain.call(pointer(&context), v.handle); r != Success {
		return nil, v.failed(&d.retain, r)
	}
	v.context = context
	v.opens = newLanes(v, maxOpenLanes, false)
	v.closes = newLanes(v, maxCloseLanes, false)
	v.copies = newLanes(v, maxCopyLanes, true)
	v.pins = newLanes(v, 1, false)
	return v, nil
}

// label is how people name it.
func (v *device) label() string {
	return fmt.Sprintf("device %d (%s, %s)", v.Ordinal, v.Name, v.UUID)
}

// failed makes an error of a result, and isolates the device after one that
// leaves its context broken.
func (v *device) failed(f *function, r Result) error {
	err := &Error{f.name, v.label(), r}
	if r.Sticky() {
		v.lose(err)
	}
	return err
}

// lose isolates the device: what begins on it from now on fails at once. The
// first reason stays.
func (v *device) lose(why error) {
	if v.lost.CompareAndSwap(nil, &why) {
		v.log.Error("cuda: a device is isolated: its memory operations fail from now on, and what is open on it is held until this process ends; other devices go on", "device", v.label(), "error", why)
	}
}

// errIsolated is part of every error of a device that was lost before.
var errIsolated = errors.New("the device is isolated")

// usable says why nothing may begin on the device, nil where it may.
func (v *device) usable() error {
	if why := v.lost.Load(); why != nil {
		return fmt.Errorf("%w since %w", errIsolated, *why)
	}
	return nil
}

// do calls a function of the driver on the present lane.
func (v *device) do(f *function, arguments ...uintptr) error {
	if r := f.call(arguments...); r != Success {
		return v.failed(f, r)
	}
	return nil
}

// close ends the lanes and lets the context go, behind everything else. What
// has not ended is left to the process's end, and so is the context then.
func (v *device) close() {
	idle := true
	for _, l := range []*lanes{v.copies, v.opens, v.closes, v.pins} {
		idle = l.end() && idle
	}
	if idle {
		v.driver.release.call(v.handle)
	}
}

// pinnedMemory is host memory that the device reads and writes by itself.
type pinnedMemory []byte

// pin allocates; on a lane.
func (v *device) pin(bytes int) (pinnedMemory, error) {
	var at *byte
	if err := v.do(&v.driver.hostAlloc, pointer(&at), uintptr(bytes), hostPortable); err != nil {
		return nil, err
	}
	return unsafe.Slice(at, bytes), nil
}

// unpin frees; on a lane.
func (v *device) unpin(m pinnedMemory) {
	if m != nil {
		v.do(&v.driver.hostFree, addressOf(m))
	}
}

// addressOf is where bytes outside the Go heap lie.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
