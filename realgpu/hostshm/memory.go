package hostshm

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"vigil/core"
	"vigil/realgpu"
)

// Why this file: the table of what the server has mapped, and the three
// operations of core.Memory on it. The table is behind one lock that no
// operation holds while it works.

// What every backend shares, under the names that belong here.
type (
	Slots     = realgpu.Slots
	Hooks     = realgpu.Hooks
	Rule      = realgpu.Rule
	Operation = realgpu.Operation
	Stats     = realgpu.Stats
	Held      = realgpu.Held
)

// The operations.
const (
	Open  = realgpu.Open
	Close = realgpu.Close
	Copy  = realgpu.Copy
)

// MaxRules bounds the rules that stand at once.
const MaxRules = realgpu.MaxRules

// Options is what a Memory is told at its start.
type Options struct {
	Slots Slots
	// Done takes the end of each operation. It is called from many goroutines
	// at once and holds back only the operation that it is about.
	Done func(core.Input)
	// Hooks makes trouble on purpose; nil, the default, makes none.
	Hooks *Hooks
	// Dir is where segments are; empty is DefaultDir.
	Dir string
	// Log takes why an operation failed, at most one line for each; nil is
	// nowhere.
	Log *slog.Logger
}

// Memory is the server's side of the segments. Safe for concurrent use.
type Memory struct {
	slots Slots
	done  func(core.Input)
	hooks *Hooks
	dir   string
	log   *slog.Logger

	mu       sync.Mutex
	mappings map[core.Mapping]*mapping // bounded by the core's registries
	charged  uint64
	inodes   map[inode]int // how many mappings hold each segment
	stopped  bool

	stop    chan struct{} // closed by Shutdown: what hangs on purpose ends
	work    sync.WaitGroup
	jobs    sync.Pool // *job
	running [3]atomic.Int64
	counts  counters
}

type inode struct{ device, number uint64 }

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
	bytes       uint64    // charged
	segments    []segment
	groups      []realgpu.Group
	copies      sync.WaitGroup // added to under the lock while open
}

type counters struct {
	opened, closed, copied, bytes, failed, faults, overlaps, reopened atomic.Uint64
}

// New makes an empty Memory.
func New(o Options) (*Memory, error) {
	if o.Slots == nil || o.Done == nil {
		return nil, errors.New("hostshm: Options.Slots and Options.Done must be set")
	}
	if o.Dir == "" {
		o.Dir = DefaultDir
	}
	if info, err := os.Stat(o.Dir); err != nil {
		return nil, fmt.Errorf("hostshm: no shared memory: %w; mount a tmpfs there", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("hostshm: no shared memory: %s is not a folder", o.Dir)
	}
	m := &Memory{
		slots: o.Slots, done: o.Done, hooks: o.Hooks, dir: o.Dir, log: o.Log,
		mappings: make(map[core.Mapping]*mapping), inodes: make(map[inode]int), stop: make(chan struct{}),
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	if m.hooks != nil {
		m.log.Warn("hostshm: test hooks are on: memory operations may be slow, hang or fail on purpose")
	}
	m.jobs.New = func() any { return new(job) }
	return m, nil
}

var _ realgpu.Backend = (*Memory)(nil)

// begin gives an operation its goroutine: its lane, that nothing else is in.
// A copy lets its mapping go only after its input, so that the input of a
// close that waits for it comes later. After Shutdown nothing begins any more,
// and no input comes.
func (m *Memory) begin(what Operation, copies *sync.WaitGroup, run func() core.Input) {
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

// trouble is what the hooks do to an operation, decided as it begins.
func (m *Memory) trouble(what Operation, owner core.InstanceID) Rule {
	return m.hooks.Strike(what, owner)
}

// Open begins to open what an instance exported. The input's Bytes are what
// the mapping is charged, in whole pages. FailOpen: a name, size, shape or
// group that is not sound, or a segment that is not there or too short.
// FailOutOfMemory: no room.
func (m *Memory) Open(o *core.OpenOrder) {
	order := *o
	exports := make([]core.Export, len(o.Exports))
	for i := range exports {
		exports[i] = o.Exports[i]
		exports[i].Handle = slices.Clone(o.Exports[i].Handle)
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
	trouble := m.trouble(Open, o.Owner)
	m.begin(Open, nil, func() core.Input {
		in := core.Input{Kind: core.InputOpened, Op: order.Op, Failure: core.FailOpen}
		if taken {
			m.log.Error("hostshm: open of a mapping that is open", "mapping", order.Mapping, "instance", order.Owner)
			return in
		}
		fail, stuck := trouble.Suffer(m.stop)
		if stuck {
			return core.Input{}
		}
		err := error(nil)
		if fail == core.NoFailure {
			fail, err = m.open(mp, &order)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if in.Failure = fail; fail != core.NoFailure {
			delete(m.mappings, order.Mapping)
			m.log.Warn("hostshm: open failed", "mapping", order.Mapping, "instance", order.Owner, "failure", fail.String(), "error", err)
			return in
		}
		mp.state, mp.since = open, time.Now()
		m.counts.opened.Add(1)
		in.Bytes = mp.bytes
		return in
	})
}

// open maps every segment of the order, or none.
func (m *Memory) open(mp *mapping, o *core.OpenOrder) (fail core.Failure, err error) {
	if len(o.Exports) == 0 || len(o.Exports) > core.MaxExports {
		return core.FailOpen, fmt.Errorf("%d exported tensors; from 1 to %d", len(o.Exports), core.MaxExports)
	}
	defer func() {
		if fail != core.NoFailure {
			for i := range mp.segments {
				mp.segments[i].release()
			}
			mp.segments = nil
		}
	}()

	// Tensors of one segment share one mapping of it, as far as the furthest.
	index := make(map[string]int, 1)
	var names []string
	var required []uint64
	tensors := make([]realgpu.Tensor, len(o.Exports))
	for i := range o.Exports {
		e := &o.Exports[i]
		if e.Kind != core.HostSHM {
			return core.FailOpen, fmt.Errorf("tensor %d is %s memory, which this backend cannot open", i, e.Kind)
		}
		end := e.Offset + e.Bytes
		if end < e.Offset {
			return core.FailOpen, fmt.Errorf("tensor %d ends past every segment", i)
		}
		at, known := index[string(e.Handle)]
		if !known {
			at = len(names)
			index[string(e.Handle)] = at
			names, required = append(names, string(e.Handle)), append(required, 0)
		}
		required[at] = max(required[at], end)
		if tensors[i], err = realgpu.TensorOf(e, at); err != nil {
			return core.FailOpen, fmt.Errorf("tensor %d: %w", i, err)
		}
	}
	if mp.groups, err = realgpu.GroupsOf(tensors, o.Groups); err != nil {
		return core.FailOpen, err
	}
	for i, name := range names {
		s, err := openSegment(m.dir, name, required[i])
		if err != nil {
			return core.FailOpen, err
		}
		mp.segments = append(mp.segments, s)
	}
	return m.attach(mp)
}

// attach charges the segments and maps them.
func (m *Memory) attach(mp *mapping) (core.Failure, error) {
	bytes := uint64(0)
	for i := range mp.segments {
		bytes += mp.segments[i].length()
	}
	m.mu.Lock()
	if !m.hooks.RoomFor(m.charged, bytes) {
		m.mu.Unlock()
		return core.FailOutOfMemory, fmt.Errorf("no room for %d bytes beside %d", bytes, m.charged)
	}
	m.charge(mp, bytes)
	m.mu.Unlock()
	for i := range mp.segments {
		err := mp.segments[i].attach()
		if err == nil {
			continue
		}
		m.mu.Lock()
		m.discharge(mp)
		m.mu.Unlock()
		if errors.Is(err, errNoSpace) {
			return core.FailOutOfMemory, err
		}
		return core.FailOpen, err
	}
	return core.NoFailure, nil
}

// charge and discharge keep the accounts; under the lock.
func (m *Memory) charge(mp *mapping, bytes uint64) {
	mp.bytes = bytes
	m.charged += bytes
	for i := range mp.segments {
		key := inode{mp.segments[i].device, mp.segments[i].inode}
		if m.inodes[key]++; m.inodes[key] > 1 {
			m.counts.reopened.Add(1)
		}
	}
}

func (m *Memory) discharge(mp *mapping) {
	m.charged -= mp.bytes
	mp.bytes = 0
	for i := range mp.segments {
		key := inode{mp.segments[i].device, mp.segments[i].inode}
		if m.inodes[key]--; m.inodes[key] <= 0 {
			delete(m.inodes, key)
		}
	}
}

// Close begins to close a mapping, after the copies that began before it.
// FailClose: no such mapping, not of that owner and incarnation, not open, or
// the system refuses; a mapping whose close failed is open again and charged.
func (m *Memory) Close(o *core.CloseOrder) {
	order := *o
	m.mu.Lock()
	mp := m.mappings[o.Mapping]
	ok := mp != nil && mp.state == open && mp.owner == o.Owner && mp.incarnation == o.Incarnation
	if ok {
		mp.state, mp.since = closing, time.Now()
	}
	m.mu.Unlock()
	var trouble Rule
	if ok {
		trouble = m.trouble(Close, o.Owner)
	}
	m.begin(Close, nil, func() core.Input {
		in := core.Input{Kind: core.InputReleased, Op: order.Op, Failure: core.FailClose}
		if !ok {
			m.log.Error("hostshm: close of what is not open", "mapping", order.Mapping, "instance", order.Owner)
			return in
		}
		mp.copies.Wait()
		fail, stuck := trouble.Suffer(m.stop)
		if stuck {
			return core.Input{}
		}
		if fail == core.NoFailure {
			for i := range mp.segments {
				// One that is released already says nothing the second time.
				if err := mp.segments[i].release(); err != nil {
					fail = core.FailClose
					m.log.Error("hostshm: unmapping failed", "mapping", order.Mapping, "instance", order.Owner, "error", err)
				}
			}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if in.Failure = fail; fail != core.NoFailure {
			mp.state, mp.since = open, time.Now()
			return in
		}
		m.discharge(mp)
		delete(m.mappings, order.Mapping)
		m.counts.closed.Add(1)
		return in
	})
}
