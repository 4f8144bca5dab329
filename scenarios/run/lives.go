package run

import (
	"vigil/core"
	"vigil/scenarios"
)

// life is one process of one worker, and what its instance has in the server.
type life struct {
	id       core.InstanceID
	worker   int32
	number   int32 // from 1
	had      bool  // a context of it was inserted
	holds    [scenarios.Holdings]int64
	stamp    core.Time // its last stamp, in the world's time
	register core.Time // when its last register reached the server's handler
	died     core.Time
}

// never is earlier than every time of a run: what has not happened.
const never core.Time = -1 << 62

// lives finds whom a record is about. Records of the server name an instance,
// those of a worker are its own, those of the world name either.
type lives struct {
	all     []life
	current []int32 // of each worker: its present life, -1 before its first
	count   []int32 // of each worker: lives so far
	byID    map[core.InstanceID]int32
	known   int    // ids in byID
	healthy []bool // of each worker: what its heartbeat published last
}

func (l *lives) reset(workers int) {
	l.all = l.all[:0]
	if len(l.current) != workers {
		l.current, l.count, l.healthy = make([]int32, workers), make([]int32, workers), make([]bool, workers)
	}
	for i := range l.current {
		l.current[i], l.count[i], l.healthy[i] = -1, 0, true
	}
	if l.byID == nil {
		l.byID = make(map[core.InstanceID]int32)
	}
	clear(l.byID)
	l.known = 0
}

// begin is a worker's process saying who it is. An id that an earlier process
// had (a PID, A8) is the later one's from now on.
func (l *lives) begin(worker int, id core.InstanceID) {
	if worker < 0 || worker >= len(l.current) {
		return
	}
	l.count[worker]++
	at := int32(len(l.all))
	l.all = append(l.all, life{id: id, worker: int32(worker), number: l.count[worker], stamp: never, register: never, died: never})
	l.current[worker], l.healthy[worker] = at, true
	if id != 0 {
		l.byID[id] = at
		l.known = len(l.byID)
	}
}

// find returns the worker that a record is about and its life, -1 for none.
func (l *lives) find(r *core.Record) (worker, life int32) {
	if r.Actor >= core.FirstWorker {
		w := int(r.Actor - core.FirstWorker)
		if w >= len(l.current) {
			return -1, -1
		}
		return int32(w), l.current[w]
	}
	if r.Instance != 0 {
		if at, ok := l.byID[r.Instance]; ok {
			return l.all[at].worker, at
		}
	}
	number := uint64(0)
	switch r.Kind {
	case core.ProcessStarted, core.ProcessKilled, core.ProcessExited, core.ProcessPaused, core.ProcessResumed,
		core.LinkCut, core.LinkHealed, core.MessageSent, core.MessageLost:
		number = r.A
	case core.ConnectionOpened, core.ConnectionClosed, core.EngineSubmitted:
		number = r.B
	}
	if number == 0 || number > uint64(len(l.current)) {
		return -1, -1
	}
	return int32(number - 1), l.current[number-1]
}

// hold follows what the instances have in the server.
func (l *lives) hold(r *core.Record) {
	_, at := l.find(r)
	if at < 0 {
		return
	}
	h := &l.all[at].holds
	switch r.Kind {
	case core.ContextInserted:
		h[scenarios.HeldContexts]++
		l.all[at].had = true
	case core.ContextRemoved:
		h[scenarios.HeldContexts]--
	case core.MappingOpened:
		h[scenarios.HeldMappings]++
		h[scenarios.HeldBytes] += int64(r.B)
	case core.MappingClosed:
		h[scenarios.HeldMappings]--
		h[scenarios.HeldBytes] -= int64(r.B)
	case core.LayoutAcquired:
		h[scenarios.HeldShares]++
	case core.LayoutReleased:
		h[scenarios.HeldShares]--
	case core.StrategyAdded:
		h[scenarios.HeldStrategies]++
	case core.StrategyRemoved:
		h[scenarios.HeldStrategies]--
	case core.RopeAdded:
		h[scenarios.HeldRopes]++
	case core.RopeDropped:
		h[scenarios.HeldRopes]--
	}
}

// serverGone is the server's process ending: nothing is held any more.
func (l *lives) serverGone() {
	for i := range l.all {
		l.all[i].holds = [scenarios.Holdings]int64{}
	}
}

// held adds up what a worker's lives have.
func (l *lives) held(worker, number int32, h scenarios.Holding) int64 {
	var sum int64
	for i := range l.all {
		if l.all[i].worker == worker && (number == 0 || l.all[i].number == number) {
			sum += l.all[i].holds[h]
		}
	}
	return sum
}

// holdKinds are the records that hold follows.
var holdKinds = []core.RecordKind{
	core.ContextInserted, core.ContextRemoved, core.MappingOpened, core.MappingClosed,
	core.LayoutAcquired, core.LayoutReleased, core.StrategyAdded, core.StrategyRemoved,
	core.RopeAdded, core.RopeDropped,
}
