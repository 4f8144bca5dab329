package main

import (
	"strconv"
	"sync"

	"vigil/realgpu/cuda"
	"vigil/realgpu/watch"
)

// Why this file: what devices say of themselves, beside what the server says of
// them. That a dead worker's bytes are back is not true because the server's
// table says so: it is read off the device.

// deviceStatus is one device on /status.
type deviceStatus struct {
	Ordinal int    `json:"ordinal"`
	UUID    string `json:"uuid"`
	Name    string `json:"name"`
	Total   uint64 `json:"total_bytes"`
	Open    uint64 `json:"open_bytes"` // of workers' memory, by the server's table
	// By the watching library; absent where there is none.
	Used *uint64 `json:"used_bytes,omitempty"` // given out, to everybody
	Own  *uint64 `json:"own_bytes,omitempty"`  // charged to this server; absent where the library does not show it
	// What this server is charged beyond its idle share and its table: memory
	// that it holds and does not know of.
	Unexplained *uint64     `json:"unexplained_bytes,omitempty"`
	Lost        string      `json:"lost,omitempty"` // why it is isolated
	XIDs        []xidStatus `json:"xids,omitempty"`
}

type xidStatus struct {
	Code  uint64 `json:"code"`
	Count uint64 `json:"count"`
}

// watchStatus says how the devices are watched.
type watchStatus struct {
	State   string   `json:"state"` // on, or off: why
	Driver  string   `json:"driver,omitempty"`
	Missing []string `json:"missing_calls,omitempty"`
	Age     float64  `json:"age_seconds,omitempty"` // of the last reading, real time
}

// deviceWatch is the watch of a server with devices. The zero value watches
// nothing.
type deviceWatch struct {
	watch *watch.Watch
	why   string // there is none

	mu   sync.Mutex
	idle map[cuda.UUID]uint64 // what this process is charged while it has nothing open
}

// watchDevices begins to watch where the backend has devices.
func (v *service) watchDevices() {
	if v.devices == nil {
		return
	}
	w := &v.watched
	w.idle = map[cuda.UUID]uint64{}
	made, err := watch.Open(watch.Options{
		Library: v.config.nvmlLibrary, Log: v.log,
		OnRead: func(list []watch.Device) { v.compare(list) },
		OnLost: func(uuid string, why error) {
			if u, err := cuda.ParseUUID(uuid); err == nil {
				v.devices.Lose(u, why)
			}
		},
	})
	if err != nil {
		w.why = err.Error()
		v.log.Warn("devices are not watched: " + w.why + "; what they hold is known from this server's table alone")
		return
	}
	w.watch = made
	v.log.Info("devices are watched", "driver", made.Driver)
}

// compare learns what this server is charged while it has nothing open, and
// nothing is under way.
func (v *service) compare(list []watch.Device) {
	if s := v.memory.Stats(); s.Opening+s.Closing > 0 {
		return
	}
	for _, d := range v.devices.Devices() {
		if d.Open > 0 {
			continue
		}
		for i := range list {
			if u, err := cuda.ParseUUID(list[i].UUID); err == nil && u == d.UUID && list[i].OwnKnown {
				v.watched.mu.Lock()
				v.watched.idle[u] = list[i].Own
				v.watched.mu.Unlock()
			}
		}
	}
}

// deviceList is what is said of each device.
func (v *service) deviceList() (list []deviceStatus, state *watchStatus) {
	if v.devices == nil {
		return nil, nil
	}
	w := &v.watched
	state = &watchStatus{State: "off: " + w.why}
	var seen []watch.Device
	if w.watch != nil {
		read, age := w.watch.Read()
		seen = read
		*state = watchStatus{State: "on", Driver: w.watch.Driver, Missing: w.watch.Missing, Age: seconds(age)}
	}
	for _, d := range v.devices.Devices() {
		s := deviceStatus{Ordinal: d.Ordinal, UUID: d.UUID.String(), Name: d.Name, Total: d.Bytes, Open: d.Open, Lost: d.Lost}
		for i := range seen {
			x := &seen[i]
			if u, err := cuda.ParseUUID(x.UUID); err != nil || u != d.UUID {
				continue
			}
			s.Used = &x.Used
			if x.OwnKnown {
				s.Own = &x.Own
				w.mu.Lock()
				idle, known := w.idle[d.UUID]
				w.mu.Unlock()
				if known {
					beyond := x.Own - min(x.Own, idle+d.Open)
					s.Unexplained = &beyond
				}
			}
			if s.Lost == "" {
				s.Lost = x.Lost
			}
			for _, e := range x.XIDs {
				s.XIDs = append(s.XIDs, xidStatus(e))
			}
		}
		list = append(list, s)
	}
	return list, state
}

// meterDevices is the same as metrics.
func (v *service) meterDevices(s series) {
	list, state := v.deviceList()
	if state == nil {
		return
	}
	on := 0.0
	if state.State == "on" {
		on = 1
	}
	s.gauge("vigil_device_watch", "1 where devices are watched from outside.", on)
	for i := range list {
		d := &list[i]
		lost := 0.0
		if d.Lost != "" {
			lost = 1
		}
		put := func(name, help string, value *uint64) {
			if value != nil {
				s.gauge(name, help, float64(*value), "uuid", d.UUID)
			}
		}
		put("vigil_device_total_bytes", "Memory of a device.", &d.Total)
		put("vigil_device_open_bytes", "Workers' memory that is open on a device, by the server's table.", &d.Open)
		put("vigil_device_used_bytes", "Memory that a device has given out, to everybody.", d.Used)
		put("vigil_device_own_bytes", "Memory of a device that this server is charged.", d.Own)
		put("vigil_device_unexplained_bytes", "What this server is charged beyond its idle share and its table.", d.Unexplained)
		s.gauge("vigil_device_lost", "1 where a device is isolated.", lost, "uuid", d.UUID)
		for _, x := range d.XIDs {
			s.count("vigil_device_xid_total", "Critical errors of a device, by code.", x.Count, "uuid", d.UUID, "code", strconv.FormatUint(x.Code, 10))
		}
	}
}

func (w *deviceWatch) close() {
	if w.watch != nil {
		w.watch.Close()
	}
}
