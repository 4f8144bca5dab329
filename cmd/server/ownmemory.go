package main

import (
	"errors"
	"sync"

	"vigil/core"
	"vigil/realgpu"
	"vigil/realgpu/cuda"
	"vigil/realgpu/hostshm"
)

// Why this file: a worker's own memory, on the host or on a device. What lies
// on the host is written and compared where it lies; a device is reached by
// copies, with scratch memory for what is on its way.

// ownMemory is memory that this worker made and exports.
type ownMemory struct {
	segment    *hostshm.Segment
	allocation *cuda.Allocation
	owner      *cuda.Owner

	mu      sync.Mutex
	scratch []byte
}

// memoryWish says what a worker's memory is to be.
type memoryWish struct {
	backend, library string
	device           int
}

func (w *memoryWish) settings() []*setting {
	return []*setting{
		{name: "backend", initial: backendAuto, usage: "where its memory is: auto (a device where there is one), hostshm (POSIX shared memory) or cuda", take: takeOneOf(&w.backend, backendAuto, backendHostSHM, backendCUDA)},
		{name: "device", initial: "0", usage: "with cuda: the device, counted as this process sees them", take: takeInt(&w.device, 0, cuda.MaxDevices-1)},
		{name: "cuda-library", usage: "with cuda: the driver's library, in place of " + cuda.Library, take: takeText(&w.library)},
	}
}

// make makes memory of so many bytes, all 0.
func (w *memoryWish) make(bytes int64) (*ownMemory, error) {
	chosen, err := chooseBackend(w.backend, w.library)
	if err != nil {
		return nil, err
	}
	m := &ownMemory{}
	if chosen.name == backendHostSHM {
		name, err := hostshm.NewName(workerPrefix)
		if err == nil {
			m.segment, err = hostshm.Create("", name, bytes)
		}
		return m, err
	}
	if m.owner, err = cuda.NewOwner(chosen.driver, w.device); err != nil {
		return nil, err
	}
	if m.allocation, err = m.owner.Alloc(uint64(bytes)); err != nil {
		m.owner.Close()
		return nil, err
	}
	return m, nil
}

// Name says what it is called: a segment's name, or the device it is on.
func (m *ownMemory) Name() string {
	if m.segment != nil {
		return m.segment.Name()
	}
	return m.owner.Device().UUID.String()
}

// Backend is which kind it is.
func (m *ownMemory) Backend() string {
	if m.segment != nil {
		return backendHostSHM
	}
	return backendCUDA
}

// Export names part of it as one tensor.
func (m *ownMemory) Export(e core.Export) core.Export {
	if m.segment != nil {
		return m.segment.Export(e)
	}
	return m.allocation.Export(e)
}

// Close gives it back.
func (m *ownMemory) Close() error {
	if m.segment != nil {
		return m.segment.Close()
	}
	err := m.allocation.Free()
	m.owner.Close()
	return err
}

// fill writes the pattern of a seed.
func (m *ownMemory) fill(at, bytes int, seed uint64) error {
	if m.segment != nil {
		realgpu.Fill(m.segment.Bytes()[at:at+bytes], seed)
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.room(bytes)
	realgpu.Fill(b, seed)
	return m.allocation.Write(uint64(at), b)
}

// blank writes what cannot pass for a pattern.
func (m *ownMemory) blank(at, bytes int) error {
	if m.segment != nil {
		clear(m.segment.Bytes()[at : at+bytes])
		return nil
	}
	if at%4 != 0 || bytes%4 != 0 {
		return errors.New("blocks of device memory are whole words of 4 bytes")
	}
	return m.allocation.Fill(uint64(at), uint64(bytes), 0)
}

// mismatch returns the first byte that is not the pattern's, -1 where all are.
func (m *ownMemory) mismatch(at, bytes int, seed uint64) (int, error) {
	if m.segment != nil {
		return realgpu.Mismatch(m.segment.Bytes()[at:at+bytes], seed), nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.room(bytes)
	if err := m.allocation.Read(uint64(at), b); err != nil {
		return 0, err
	}
	return realgpu.Mismatch(b, seed), nil
}

// read and write copy between it and the host.
func (m *ownMemory) read(at int, to []byte) error {
	if m.segment != nil {
		copy(to, m.segment.Bytes()[at:])
		return nil
	}
	return m.allocation.Read(uint64(at), to)
}

func (m *ownMemory) write(at int, from []byte) error {
	if m.segment != nil {
		copy(m.segment.Bytes()[at:], from)
		return nil
	}
	return m.allocation.Write(uint64(at), from)
}

// room is scratch memory, under the lock.
func (m *ownMemory) room(bytes int) []byte {
	if len(m.scratch) < bytes {
		m.scratch = make([]byte, bytes)
	}
	return m.scratch[:bytes]
}
