package main

import (
	"fmt"

	"vigil/core"
	"vigil/core/loop"
	"vigil/realgpu"
	"vigil/realgpu/cuda"
	"vigil/realgpu/hostshm"
)

// Why this file: one program runs with and without a device. Which kind of
// memory it uses is chosen once, here, and the choice has a reason that a
// person can read.

// The kinds of memory.
const (
	backendAuto    = "auto"
	backendHostSHM = "hostshm"
	backendCUDA    = "cuda"
)

// choice is a kind of memory, and why that one.
type choice struct {
	name   string
	reason string
	driver *cuda.Driver // for cuda
}

func (c choice) String() string { return c.name + ", " + c.reason }

// chooseBackend makes a wish come true, or says in one line why it cannot.
// library is the driver's, "" for the system's own.
func chooseBackend(wish, library string) (choice, error) {
	if wish == backendHostSHM {
		return choice{name: backendHostSHM, reason: "as asked for"}, nil
	}
	d, err := cuda.Shared(library)
	devices := 0
	if err == nil {
		var list []cuda.DeviceInfo
		list, err = d.Devices()
		devices = len(list)
	}
	switch {
	case err == nil && wish == backendCUDA:
		return choice{backendCUDA, "as asked for", d}, nil
	case err == nil:
		return choice{backendCUDA, fmt.Sprintf("because %s shows %d devices", d.Path, devices), d}, nil
	case wish == backendCUDA:
		return choice{}, fmt.Errorf("backend cuda: %w; --backend hostshm needs no device", err)
	case library != "":
		// A library that was named is meant: going on without it would be silent.
		return choice{}, fmt.Errorf("cuda-library: %w; leave it away to do without", err)
	}
	return choice{name: backendHostSHM, reason: "because " + err.Error()}, nil
}

// makeMemory opens the chosen kind.
func (v *service) makeMemory(slots loop.Slots, ended func(core.Input)) (core.Memory, error) {
	if v.config.testHooks {
		v.hooks = &realgpu.Hooks{}
	}
	if v.backend.name == backendCUDA {
		m, err := cuda.New(cuda.Options{Driver: v.backend.driver, Slots: slots, Done: ended, Hooks: v.hooks, Log: v.log})
		if err != nil {
			return nil, err
		}
		v.memory, v.devices = m, m
		return m, nil
	}
	m, err := hostshm.New(hostshm.Options{Slots: slots, Done: ended, Hooks: v.hooks, Log: v.log})
	if err != nil {
		return nil, err
	}
	v.memory = m
	return m, nil
}
