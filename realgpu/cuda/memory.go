package cuda

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"vigil/core"
	"vigil/realgpu"
)

// Why this file: the table of what the server has open, and the opening and
// closing of core.Memory on it. The table is behind one lock that no operation
// holds while it works.

// Options is what a Memory is told at its start.
type Options struct {
	Driver *Driver
	Slots  realgpu.Slots
	// Done takes the end of each operation. It is called from many goroutines
	// at once and holds back only the operation that it is about.
	Done func(core.Input)
	// Hooks makes trouble on purpose; nil, the default, makes none.
	Hooks *realgpu.Hooks
	// Log takes why an operation failed, at most one line for each; nil is
	// nowhere.
	Log *slog.Logger
}

// Memory is the server's side of device memory. Safe for concurrent use.
type Memory struct {
	slots   realgpu.Slots
	done    func(core.Input)
	hooks   *realgpu.Hooks
	log     *slog.Logger
	driver  *Driver
	devices []*device
	imports *imports
	pins    pins

	mu       sync.Mutex
	mappings map[core.Mapping]*mapping // bounded by the core's registries
	stopped  bool

	stop    chan struct{} // closed by Shutdown: what hangs on purpose ends
	ended   chan struct{} // closed when everything is released
	left    error         // what could not be; set before that
	work    sync.WaitGroup
	jobs    sync.Pool // *job
	running [3]atomic.Int64
	counts  counters
}

type state uint8

const (
	opening state = iota
	open
	closing
)

var stateNames = [...]string{"opening", "open", "closing"}

type mapping struct {
	owner       core.InstanceID
	incarnation core.Incarnation
	state       state
	since       time.Time // in this state
	bytes       uint64    // of its allocations
	uses        []use
	devices     []*device // of those, each once
	groups      []realgpu.Group
	copies      sync.WaitGroup // added to under the lock while open
}

// use is one handle of a registration.
type use struct {
	memory *imported
	at     uint64 // where the handle points
}

type counters struct {
	opened, closed, copied, bytes, failed, faults, overlaps, reopened atomic.Uint64
}

// New makes an empty Memory on every device that the driver shows. It retains
// each device's primary context, which takes device memory; a device that
// refuses is an error.
func New(o Options) (*Memory, error) {
	if o.Driver == nil || o.Slots == nil || o.Done == nil {
		return nil, errors.New("cuda: Options.Driver, Options.Slots and Options.Done must be set")
	}
	m := &Memory{
		slots: o.Slots, done: o.Done, hooks: o.Hooks, log: o.Log, driver: o.Driver,
		mappings: make(map[core.Mapping]*mapping), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	if m.hooks != nil {
		m.log.Warn("cuda: test hooks are on: memory operations may be slow, hang or fail on purpose")
	}
	m.imports = newImports(m.stop)
	m.jobs.New = func() any { return new(job) }
	list, err := o.Driver.Devices()
	if err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	for _, info := range list {
		v, err := o.Driver.open(info, m.log)
		if err != nil {
			m.closeDevices()
			return nil, fmt.Errorf("cuda: %w", err)
		}
		m.devices = append(m.devices, v)
	}
	m.pins.device = m.devices[0]
	return m, nil
}

var _ realgpu.Backend = (*Memory)(nil)

func (m *Memory) closeDevices() {
	for _, v := range m.devices {
		v.close()
	}
}

// begin gives an operation its goroutine. A copy lets its mapping go only
// after its input, so that the input of a close that waits for it comes later.
// After Shutdown nothing begins any more, and no input comes.
func (m *Memory) begin(what realgpu.Operation, copies *sync.WaitGroup, run func() core.Input) {
	m.mu.Lock()
	if m.stopped {
		m.mu.Unlock()
		return
	}
	m.work.Add(1)
	m.mu.Unlock()
	m.running[what].Add(1)
	go func() {
		defer m.work.Done()
		if copies != nil {
			defer copies.Done()
		}
		in := run()
		m.running[what].Add(-1)
		if in.Kind == core.InputStart {
			return // it hung until Shutdown
		}
		if in.Failure != core.NoFailure {
			m.counts.failed.Add(1)
		}
		m.done(in)
	}()
}

// Open begins to open what an instance exported. The input's Bytes are those
// of the allocations that its handles name, whole. FailOpen: a handle, size,
// shape or group that is not sound, a device that is not there or isolated.
// FailOutOfMemory: no room. It waits for a close of the same memory that is
// under way.
func (m *Memory) Open(o *core.OpenOrder) {
	order := *o
	exports := make([]core.Export, len(o.Exports))
	for i := range exports {
		exports[i] = o.Exports[i]
		exports[i].Handle = slices.Clone(o.Exports[i].Handle)
		exports[i].Device = slices.Clone(o.Exports[i].Device)
		exports[i].Shape = slices.Clone(o.Exports[i].Shape)
	}
	groups := slices.Clone(o.Groups)
	for i := range groups {
		groups[i].Layers = slices.Clone(groups[i].Layers)
	}
	order.Exports, order.Groups = exports, groups

	mp := &mapping{owner: o.Owner, incarnation: o.Incarnation, since: time.Now()}
	m.mu.Lock()
	taken := m.mappings[o.Mapping] != nil
	if !taken {
		m.mappings[o.Mapping] = mp
	}
	m.mu.Unlock()
	trouble := m.hooks.Strike(realgpu.Open, o.Owner)
	m.begin(realgpu.Open, nil, func() core.Input {
		in := core.Input{Kind: core.InputOpened, Op: order.Op, Failure: core.FailOpen}
		if taken {
			m.log.Error("cuda: open of a mapping that is open", "mapping", order.Mapping, "instance", order.Owner)
			return in
		}
		fail, stuck := trouble.Suffer(m.stop)
		if stuck {
			return core.Input{}
		}
		err := error(nil)
		if fail == core.NoFailure {
			err = m.open(mp, &order)
			fail = failureOf(err, core.FailOpen)
		}
		if errors.Is(err, errStopped) {
			return core.Input{}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if in.Failure = fail; fail != core.NoFailure {
			delete(m.mappings, order.Mapping)
			m.log.Warn("cuda: open failed", "mapping", order.Mapping, "instance", order.Owner, "failure", fail.String(), "error", err)
			return in
		}
		mp.state, mp.since = open, time.Now()
		m.counts.opened.Add(1)
		in.Bytes = mp.bytes
		return in
	})
}

// open opens every handle of the order, or none.
func (m *Memory) open(mp *mapping, o *core.OpenOrder) (err error) {
	if len(o.Exports) == 0 || len(o.Exports) > core.MaxExports {
		return fmt.Errorf("%d exported tensors; from 1 to %d", len(o.Exports), core.MaxExports)
	}
	// Everything that can be judged without the driver comes first.
	index := make(map[[handleBytes]byte]int, 1)
	var handles [][handleBytes]byte
	var places [][]*device // where each may be opened
	tensors := make([]realgpu.Tensor, len(o.Exports))
	for i := range o.Exports {
		e := &o.Exports[i]
		if e.Kind != core.CUDA {
			return fmt.Errorf("tensor %d is %s memory, which this backend cannot open", i, e.Kind)
		}
		if len(e.Handle) != handleBytes {
			return fmt.Errorf("tensor %d has a handle of %d bytes; they have %d", i, len(e.Handle), handleBytes)
		}
		if e.Offset+e.Bytes < e.Offset {
			return fmt.Errorf("tensor %d ends past every allocation", i)
		}
		handle := [handleBytes]byte(e.Handle)
		at, known := index[handle]
		if !known {
			where, err := m.whereIs(string(e.Device))
			if err != nil {
				return fmt.Errorf("tensor %d: %w", i, err)
			}
			at = len(handles)
			index[handle] = at
			handles, places = append(handles, handle), append(places, where)
		}
		if tensors[i], err = realgpu.TensorOf(e, at); err != nil {
			return fmt.Errorf("tensor %d: %w", i, err)
		}
	}
	if mp.groups, err = realgpu.GroupsOf(tensors, o.Groups); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			m.letGo(mp)
		}
	}()
	for i, handle := range handles {
		u, again, err := m.acquire(places[i], handle)
		if err != nil {
			return err
		}
		if again {
			m.counts.reopened.Add(1)
		}
		mp.add(u)
	}
	for i := range o.Exports {
		e := &o.Exports[i]
		u := &mp.uses[tensors[i].Place]
		if err := u.memory.fits(u.at, e.Offset, e.Bytes); err != nil {
			return fmt.Errorf("tensor %d: %w", i, err)
		}
	}
	if sum := m.imports.sum(); !m.hooks.RoomFor(sum-min(mp.bytes, sum), mp.bytes) {
		return fmt.Errorf("%w for %d bytes", errNoRoom, mp.bytes)
	}
	return nil
}

// add counts an allocation once, however many handles of the registration name
// it.
func (mp *mapping) add(u use) {
	known := false
	for i := range mp.uses {
		known = known || mp.uses[i].memory == u.memory
	}
	if !known {
		mp.bytes += u.memory.bytes
	}
	mp.uses = append(mp.uses, u)
	if !slices.Contains(mp.devices, u.memory.device) {
		mp.devices = append(mp.devices, u.memory.device)
	}
}

// whereIs lists the devices whose context can open memory of the named one: the
// device itself where this process sees it, else every one that it sees, for a
// peer can open what the driver lets it.
func (m *Memory) whereIs(name string) ([]*device, error) {
	u, err := ParseUUID(name)
	if err != nil {
		return nil, err
	}
	for _, v := range m.devices {
		if v.UUID == u {
			return []*device{v}, v.usable()
		}
	}
	return m.devices, nil
}

// acquire tries the devices in turn.
func (m *Memory) acquire(where []*device, handle [handleBytes]byte) (use, bool, error) {
	var first error
	for _, v := range where {
		memory, at, again, err := m.imports.acquire(v, handle)
		if err == nil {
			return use{memory, at}, again, nil
		}
		if first == nil {
			first = err
		}
		if errors.Is(err, errStopped) {
			break
		}
	}
	if len(where) > 1 {
		return use{}, false, fmt.Errorf("its device is not one that this process sees, and no peer opens it: %w", first)
	}
	return use{}, false, first
}

// letGo releases what a mapping has, behind the last of those who have it too.
// What could not be closed stays in the mapping, charged.
func (m *Memory) letGo(mp *mapping) (first error) {
	kept := mp.uses[:0]
	for _, u := range mp.uses {
		if err := m.imports.release(u.memory); err != nil {
			kept = append(kept, u)
			if first == nil {
				first = err
			}
		}
	}
	mp.uses = kept
	return first
}

// Close begins to close a mapping, after the copies that began before it.
// FailClose: no such mapping, not of that owner and incarnation, not open, or
// the driver refuses; a mapping whose close failed is open again and charged.
func (m *Memory) Close(o *core.CloseOrder) {
	order := *o
	m.mu.Lock()
	mp := m.mappings[o.Mapping]
	ok := mp != nil && mp.state == open && mp.owner == o.Owner && mp.incarnation == o.Incarnation
	if ok {
		mp.state, mp.since = closing, time.Now()
	}
	m.mu.Unlock()
	var trouble realgpu.Rule
	if ok {
		trouble = m.hooks.Strike(realgpu.Close, o.Owner)
	}
	m.begin(realgpu.Close, nil, func() core.Input {
		in := core.Input{Kind: core.InputReleased, Op: order.Op, Failure: core.FailClose}
		if !ok {
			m.log.Error("cuda: close of what is not open", "mapping", order.Mapping, "instance", order.Owner)
			return in
		}
		mp.copies.Wait()
		fail, stuck := trouble.Suffer(m.stop)
		if stuck {
			return core.Input{}
		}
		if fail == core.NoFailure {
			if err := m.letGo(mp); err != nil {
				fail = core.FailClose
				m.log.Error("cuda: close failed", "mapping", order.Mapping, "instance", order.Owner, "bytes", mp.bytes, "error", err)
			}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if in.Failure = fail; fail != core.NoFailure {
			mp.state, mp.since = open, time.Now()
			return in
		}
		delete(m.mappings, order.Mapping)
		m.counts.closed.Add(1)
		return in
	})
}
