package cuda

import (
	"errors"
	"fmt"
	"sync"
)

// Why this file: the driver counts the opens of a handle in a context and wants
// as many closes, and it lets one context of a process open the memory of
// another process's device. So this process opens an exported allocation once,
// whoever names it, and closes it behind the last who did. A handle that turns
// out to be another name of what is open already is found by the address that
// the driver gives for it.

// imported is an allocation of another process, opened here.
type imported struct {
	device *device
	base   uint64 // of the allocation, here
	bytes  uint64

	// Under the table's lock.
	names   map[[handleBytes]byte]uint64 // handle: the address that its open gave
	refs    int                          // registrations that use it
	state   importState
	settled chan struct{} // closed when it stops opening or closing
}

type importState uint8

const (
	importOpening importState = iota
	importOpen
	importClosing
	importGone
)

// imports is the table.
type imports struct {
	mu     sync.Mutex
	byName map[[handleBytes]byte]*imported
	byBase map[uint64]*imported
	bytes  uint64
	stop   <-chan struct{}
	alias  uint64 // opens that found another name of what was open
}

func newImports(stop <-chan struct{}) *imports {
	return &imports{byName: map[[handleBytes]byte]*imported{}, byBase: map[uint64]*imported{}, stop: stop}
}

var errStopped = errors.New("the backend has been shut down")

// acquire opens what a handle names, or joins who has it open already: again
// says so. It waits while the same memory is being opened or closed, as long as
// that takes.
func (t *imports) acquire(v *device, handle [handleBytes]byte) (m *imported, at uint64, again bool, err error) {
	for {
		t.mu.Lock()
		m = t.byName[handle]
		if m == nil {
			m = &imported{device: v, names: map[[handleBytes]byte]uint64{handle: 0}, refs: 1, settled: make(chan struct{})}
			t.byName[handle] = m
			t.mu.Unlock()
			return t.open(m, handle)
		}
		if m.state == importOpen {
			m.refs++
			at = m.names[handle]
			t.mu.Unlock()
			return m, at, true, nil
		}
		settled := m.settled
		t.mu.Unlock()
		select {
		case <-settled:
		case <-t.stop:
			return nil, 0, false, errStopped
		}
	}
}

// open has the driver open a new entry's handle.
func (t *imports) open(m *imported, handle [handleBytes]byte) (*imported, uint64, bool, error) {
	v, d := m.device, m.device.driver
	var address, base, bytes uint64
	err := v.opens.call(func(*lane) error {
		if err := v.usable(); err != nil {
			return err
		}
		if r := openHandle(d.openHandle.at, pointer(&address), escaped(&handle), lazyPeerAccess); r != Success {
			return v.failed(&d.openHandle, r)
		}
		err := v.do(&d.addressRange, pointer(&base), pointer(&bytes), uintptr(address))
		if err != nil {
			v.do(&d.closeHandle, uintptr(address))
		}
		return err
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	defer close(m.settled)
	if err != nil {
		m.state = importGone
		delete(t.byName, handle)
		return nil, 0, false, err
	}
	if other := t.byBase[base]; other != nil && other.state == importOpen && other.device == v {
		// Another name of the same memory: the driver counts this open with the
		// other's, and both are closed with the last reference.
		m.state = importGone
		other.names[handle] = address
		other.refs++
		t.byName[handle] = other
		t.alias++
		return other, address, true, nil
	}
	m.base, m.bytes, m.names[handle], m.state = base, bytes, address, importOpen
	t.byBase[base] = m
	t.bytes += bytes
	return m, address, false, nil
}

// release lets a reference go and closes behind the last one. After an error
// the reference is there still.
func (t *imports) release(m *imported) error {
	t.mu.Lock()
	if m.refs > 1 {
		m.refs--
		t.mu.Unlock()
		return nil
	}
	m.state, m.settled = importClosing, make(chan struct{})
	addresses := make(map[[handleBytes]byte]uint64, len(m.names))
	for name, at := range m.names {
		addresses[name] = at
	}
	t.mu.Unlock()
	v, d := m.device, m.device.driver
	var closed [][handleBytes]byte
	err := v.closes.call(func(*lane) error {
		for name, at := range addresses {
			if err := v.do(&d.closeHandle, uintptr(at)); err != nil {
				return err
			}
			closed = append(closed, name)
		}
		return nil
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range closed {
		delete(m.names, name)
		if t.byName[name] == m {
			delete(t.byName, name)
		}
	}
	if err != nil {
		m.state = importOpen
	} else {
		m.state = importGone
		t.bytes -= m.bytes
		if t.byBase[m.base] == m {
			delete(t.byBase, m.base)
		}
	}
	close(m.settled)
	return err
}

// fits checks that a tensor lies in the allocation, seen from where its handle
// points.
func (m *imported) fits(at, offset, bytes uint64) error {
	from := at - m.base
	if from > m.bytes || offset > m.bytes-from || bytes > m.bytes-from-offset {
		return fmt.Errorf("%d bytes at %d do not lie in the allocation of %d bytes", bytes, from+offset, m.bytes)
	}
	return nil
}

// sum is how many bytes are open.
func (t *imports) sum() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes
}
