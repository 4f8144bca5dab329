// Package watch looks at devices from outside, through the driver's watching
// library (NVML): what each has given out, to this process and in all, and
// whether it is well. What the server believes that it has released is checked
// against this, and not against the server's own table.
//
// Contract. Open says in one line why there is nothing to watch with, which is
// no error of the server's: it serves without. A library that is too old for a
// call does without that call, and Watch.Missing names it. Calls of the library
// can hang where a device is sick, so goroutines of the watch's own make them;
// Read gives the last reading with its age and never waits.
//
// Per-process figures name processes as the host does. In a container they may
// be other numbers than this process knows, or none: then OwnKnown is false,
// and only the device's sum says anything.
//
// The package needs a C compiler, as the library's binding does; the rest of
// realgpu does not.
package watch

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Library is what the watching library is called where nothing else is said.
const Library = "libnvidia-ml.so.1"

// DefaultEvery is the time between two readings.
const DefaultEvery = time.Second

// The bounds of what is kept.
const (
	MaxDevices = 64
	MaxCodes   = 64 // different error codes of a device
)

// Options is what a Watch is told at its start.
type Options struct {
	Library string        // "" is Library
	Every   time.Duration // 0 is DefaultEvery
	Log     *slog.Logger  // nil is nowhere
	// OnRead, where set, sees each reading, on the watch's goroutine.
	OnRead func([]Device)
	// OnLost, where set, is told once of each device that is lost.
	OnLost func(uuid string, why error)
}

// Device is one device as it was last seen.
type Device struct {
	Index    int
	UUID     string
	Name     string
	Total    uint64 // bytes
	Used     uint64 // bytes given out, to everybody
	Own      uint64 // bytes that this process is charged
	OwnKnown bool   // the library shows this process
	Lost     string // why it does not answer any more; empty where it does
	XIDs     []XID  // critical errors so far, by code
}

// XID is a critical error that the driver reported.
type XID struct {
	Code  uint64
	Count uint64
}

// offTheBus is the code of a device that the system cannot reach any more.
const offTheBus = 79

// Watch is an opened library. Safe for concurrent use.
type Watch struct {
	options Options
	library nvml.Interface
	handles []nvml.Device
	set     nvml.EventSet
	pid     uint32

	Driver  string   // the driver's version
	Missing []string // calls that the library does not have

	mu      sync.Mutex
	devices []Device
	at      time.Time
	end     chan struct{}
	work    sync.WaitGroup
}

// Open opens the library and begins to watch. The error is one line that says
// why that cannot be.
func Open(o Options) (*Watch, error) {
	if o.Library == "" {
		o.Library = Library
	}
	if o.Every <= 0 {
		o.Every = DefaultEvery
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	w := &Watch{options: o, pid: uint32(os.Getpid()), end: make(chan struct{})}
	w.library = nvml.New(nvml.WithLibraryPath(o.Library))
	if ret := w.library.Init(); ret == nvml.ERROR_LIBRARY_NOT_FOUND {
		return nil, fmt.Errorf("%s was not found, or is none", o.Library)
	} else if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("%s: nvmlInit: %s", o.Library, describe(ret))
	}
	if err := w.begin(); err != nil {
		w.library.Shutdown()
		return nil, err
	}
	return w, nil
}

// has reports whether the library has one of the names of a call, and remembers
// where it has none: calling it would end the process.
func (w *Watch) has(names ...string) bool {
	for _, name := range names {
		if w.library.Extensions().LookupSymbol(name) == nil {
			return true
		}
	}
	w.Missing = append(w.Missing, names[0])
	return false
}

func (w *Watch) begin() error {
	name := w.options.Library
	for _, needed := range [][]string{
		{"nvmlDeviceGetCount", "nvmlDeviceGetCount_v2"}, {"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByIndex_v2"},
		{"nvmlDeviceGetUUID"}, {"nvmlDeviceGetName"}, {"nvmlDeviceGetMemoryInfo"},
	} {
		if !w.has(needed...) {
			return fmt.Errorf("%s has no %s: it is too old", name, needed[0])
		}
	}
	if w.has("nvmlSystemGetDriverVersion") {
		w.Driver, _ = w.library.SystemGetDriverVersion()
	}
	count, ret := w.library.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("%s: nvmlDeviceGetCount: %s", name, describe(ret))
	}
	for i := range min(count, MaxDevices) {
		d := Device{Index: i}
		h, ret := w.library.DeviceGetHandleByIndex(i)
		if ret == nvml.SUCCESS {
			d.UUID, ret = h.GetUUID()
		}
		if ret == nvml.SUCCESS {
			d.Name, ret = h.GetName()
		}
		if ret != nvml.SUCCESS {
			d.Lost = describe(ret)
		}
		w.handles, w.devices = append(w.handles, h), append(w.devices, d)
	}
	processes := w.has("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3")
	events := w.has("nvmlEventSetCreate") && w.has("nvmlDeviceRegisterEvents") && w.has("nvmlEventSetWait", "nvmlEventSetWait_v2")
	if len(w.Missing) > 0 {
		w.options.Log.Warn("watch: the library is old and lacks calls", "library", name, "missing", w.Missing)
	}
	if events {
		events = w.subscribe()
	}
	w.read(processes)
	w.work.Go(func() { w.poll(processes) })
	if events {
		w.work.Go(w.listen)
	}
	return nil
}

// subscribe asks for the critical errors of every device that has them.
func (w *Watch) subscribe() bool {
	set, ret := w.library.EventSetCreate()
	if ret != nvml.SUCCESS {
		w.options.Log.Warn("watch: no critical errors will be seen", "error", describe(ret))
		return false
	}
	w.set = set
	some := false
	for i, h := range w.handles {
		if w.devices[i].Lost != "" {
			continue
		}
		if ret := h.RegisterEvents(nvml.EventTypeXidCriticalError, set); ret != nvml.SUCCESS {
			w.options.Log.Info("watch: critical errors of a device will not be seen", "device", i, "error", describe(ret))
			continue
		}
		some = true
	}
	return some
}

func describe(ret nvml.Return) string {
	return strings.ToLower(fmt.Sprintf("%s (%d)", nvml.ErrorString(ret), int(ret)))
}

// poll reads again and again.
func (w *Watch) poll(processes bool) {
	tick := time.NewTicker(w.options.Every)
	defer tick.Stop()
	for {
		select {
		case <-w.end:
			return
		case <-tick.C:
			w.read(processes)
		}
	}
}

// read asks every device.
func (w *Watch) read(processes bool) {
	for i, h := range w.handles {
		w.mu.Lock()
		d := w.devices[i]
		w.mu.Unlock()
		if d.Lost != "" {
			continue
		}
		memory, ret := h.GetMemoryInfo()
		if ret == nvml.SUCCESS {
			d.Total, d.Used = memory.Total, memory.Used
		}
		d.Own, d.OwnKnown = 0, false
		if ret == nvml.SUCCESS && processes {
			var list []nvml.ProcessInfo
			if list, ret = h.GetComputeRunningProcesses(); ret == nvml.SUCCESS {
				d.Own, d.OwnKnown = own(list, w.pid)
			} else if ret != nvml.ERROR_GPU_IS_LOST {
				ret = nvml.SUCCESS // not shown here; the sums still are
			}
		}
		w.mu.Lock()
		d.XIDs, d.Lost = w.devices[i].XIDs, w.devices[i].Lost
		w.devices[i] = d
		w.mu.Unlock()
		if ret == nvml.ERROR_GPU_IS_LOST {
			w.lose(i, fmt.Errorf("nvmlDeviceGetMemoryInfo: %s", describe(ret)))
		}
	}
	w.mu.Lock()
	w.at = time.Now()
	w.mu.Unlock()
	if w.options.OnRead != nil {
		list, _ := w.Read()
		w.options.OnRead(list)
	}
}

// own sums what one process is charged. A figure of all ones is the library's
// word for one that it does not know.
func own(list []nvml.ProcessInfo, pid uint32) (bytes uint64, known bool) {
	for i := range list {
		if p := &list[i]; p.Pid == pid && p.UsedGpuMemory != ^uint64(0) {
			bytes, known = bytes+p.UsedGpuMemory, true
		}
	}
	return bytes, known
}

// lose notes that a device is lost, once.
func (w *Watch) lose(i int, why error) {
	w.mu.Lock()
	known := w.devices[i].Lost != ""
	w.devices[i].Lost = why.Error()
	uuid := w.devices[i].UUID
	w.mu.Unlock()
	if known {
		return
	}
	w.options.Log.Error("watch: a device is lost", "device", i, "uuid", uuid, "error", why)
	if w.options.OnLost != nil {
		w.options.OnLost(uuid, why)
	}
}

// listenFor is how long one wait for an event may last, and so the watch's end.
const listenFor = 200 * time.Millisecond

// listen takes critical errors as they come.
func (w *Watch) listen() {
	for {
		select {
		case <-w.end:
			w.set.Free()
			return
		default:
		}
		event, ret := w.set.Wait(uint32(listenFor / time.Millisecond))
		switch ret {
		case nvml.SUCCESS:
		case nvml.ERROR_TIMEOUT:
			continue
		default:
			w.options.Log.Warn("watch: no more critical errors will be seen", "error", describe(ret))
			<-w.end
			return
		}
		if event.EventType != nvml.EventTypeXidCriticalError {
			continue
		}
		i := slices.IndexFunc(w.handles, func(h nvml.Device) bool { return h == event.Device })
		if i < 0 {
			continue
		}
		w.struck(i, event.EventData)
	}
}

// struck notes a critical error of a device.
func (w *Watch) struck(i int, code uint64) {
	w.mu.Lock()
	list := slices.Clone(w.devices[i].XIDs) // readers have the old one
	at := slices.IndexFunc(list, func(x XID) bool { return x.Code == code })
	switch {
	case at >= 0:
		list[at].Count++
	case len(list) < MaxCodes:
		list = append(list, XID{code, 1})
		slices.SortFunc(list, func(a, b XID) int { return int(int64(a.Code) - int64(b.Code)) })
	}
	w.devices[i].XIDs = list
	uuid := w.devices[i].UUID
	w.mu.Unlock()
	w.options.Log.Error("watch: a critical error of a device (XID)", "device", i, "uuid", uuid, "code", code)
	if code == offTheBus {
		w.lose(i, fmt.Errorf("XID %d: the system cannot reach it any more", code))
	}
}

// Read gives the last reading, and how old it is. It never waits for a device.
func (w *Watch) Read() ([]Device, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.devices), time.Since(w.at)
}

// closeWait bounds how long Close waits for a call that does not return.
const closeWait = 2 * time.Second

// Close ends the watch. Where a call of the library hangs, it is left to the
// process's end.
func (w *Watch) Close() {
	close(w.end)
	done := make(chan struct{})
	go func() { w.work.Wait(); close(done) }()
	select {
	case <-done:
		w.library.Shutdown()
	case <-time.After(closeWait):
		w.options.Log.Warn("watch: the library does not return; it is left alone")
	}
}
