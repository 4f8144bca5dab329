package server

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"vigil/core"
	"vigil/core/wire"
)

// Whatever comes, in whatever order: nothing panics, the bookkeeping adds up,
// there is one context of a kind per id, and an open has at most one close.
func TestAnyOrderOfAnything(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cfg := testConfig()
		cfg.NormalSlots = rapid.IntRange(1, 2).Draw(r, "normal")
		cfg.AffinityLanes = rapid.IntRange(1, 3).Draw(r, "lanes")
		cfg.L1Bytes = uint64(rapid.IntRange(1, 6).Draw(r, "room")) * testChunkBytes
		cfg.PoolBytes = uint64(rapid.IntRange(0, 3).Draw(r, "pool")) * testChunkBytes
		for _, name := range core.ProtectionNames() { // any mix: each has to stand beside any other
			cfg.Protections.Set(name, rapid.Bool().Draw(r, name))
		}
		w := newWorld(t, cfg)
		w.holdOpens, w.holdCloses, w.holdCopies = true, true, true
		p := &player{world: w, r: r, judge: newJudge()}
		for range rapid.IntRange(1, 120).Draw(r, "steps") {
			p.act()
			if err := p.judge.take(w.log); err != nil {
				r.Fatal(err)
			}
			if err := consistent(w.s); err != nil {
				r.Fatal(err)
			}
		}
		clone := w.s.Clone()
		if clone.Fingerprint(w.now) != w.s.Fingerprint(w.now) {
			r.Fatal("a clone folds differently")
		}
		if err := consistent(clone); err != nil {
			r.Fatalf("clone: %v", err)
		}
	})
}

type player struct {
	*world
	r     *rapid.T
	judge *judge
}

func (p *player) act() {
	switch rapid.IntRange(0, 10).Draw(p.r, "what") {
	case 0, 1, 2, 3, 4:
		p.request()
	case 5:
		p.after(time.Duration(rapid.IntRange(0, 200).Draw(p.r, "seconds")) * time.Second)
	case 6:
		if n := len(p.timers); n > 0 {
			p.fire(p.timers[rapid.IntRange(0, n-1).Draw(p.r, "timer")].Key)
		}
	case 7:
		if n := len(p.opens); n > 0 {
			p.endOpen(rapid.IntRange(0, n-1).Draw(p.r, "open"), p.failure())
		}
	case 8:
		if n := len(p.closes); n > 0 {
			p.endClose(rapid.IntRange(0, n-1).Draw(p.r, "close"), p.failure())
		}
	case 10:
		p.feed(core.Input{Kind: core.InputExited, Peer: core.Peer(rapid.IntRange(1, 4).Draw(p.r, "dead"))})
	case 9:
		if n := len(p.copies); n > 0 {
			i := rapid.IntRange(0, n-1).Draw(p.r, "copy")
			o := p.copies[i]
			p.copies = append(p.copies[:i], p.copies[i+1:]...)
			p.feed(core.Input{Kind: core.InputCopied, Op: o.Op, Failure: p.failure()})
		} else if rapid.IntRange(0, 30).Draw(p.r, "stop") == 30 {
			p.feed(core.Input{Kind: core.InputStop})
		}
	}
}

func (p *player) failure() core.Failure {
	if rapid.IntRange(0, 4).Draw(p.r, "fails") == 4 {
		return core.FailClose
	}
	return core.NoFailure
}

func (p *player) request() {
	id := core.InstanceID(rapid.IntRange(1, 3).Draw(p.r, "id"))
	peer := core.Peer(rapid.IntRange(1, 4).Draw(p.r, "peer"))
	kinds := []wire.Type{
		wire.RegisterKVCache, wire.UnregisterKVCache, wire.Store, wire.Retrieve, wire.Lookup, wire.QueryPrefetchStatus,
		wire.WaitPrefetchStatus, wire.FreeLookupLocks, wire.EndSession, wire.RegisterEngineDriven, wire.UnregisterEngineDriven,
		wire.PrepareStore, wire.CommitStore, wire.PrepareRetrieve, wire.CommitRetrieve, wire.Clear, wire.Ping,
		wire.RegisterRope, wire.UnregisterRope, wire.GetChunkSize, wire.StoreQ,
	}
	prompt := uint32(rapid.IntRange(1, 3).Draw(p.r, "prompt"))
	chunks := rapid.IntRange(0, 3).Draw(p.r, "chunks")
	request := rapid.SampledFrom([]string{"x", "y"}).Draw(p.r, "request")
	r := transferRequest(rapid.SampledFrom(kinds).Draw(p.r, "kind"), id, prompt, chunks)
	r.Key.RequestID, r.RequestID = []byte(request), []byte(request)
	r.TPSize, r.Timeout = 1, time.Duration(rapid.IntRange(0, 50).Draw(p.r, "timeout"))*time.Second
	switch r.Type {
	case wire.RegisterKVCache:
		r = registerRequest(id, testModel)
		if rapid.IntRange(0, 3).Draw(p.r, "other memory") == 3 {
			r.Exports[0].Handle = []byte("other")
		}
	case wire.RegisterEngineDriven:
		r = engineRequest(id)
	case wire.Ping:
		r.NoInstance = rapid.IntRange(0, 5).Draw(p.r, "nil") == 5
	case wire.Lookup, wire.FreeLookupLocks:
		r.Key.Worker = -1
	}
	p.sendAt(peer, r, p.now-core.Time(rapid.IntRange(0, 3).Draw(p.r, "late"))*second)
}

// judge follows the records the way a monitor does.
type judge struct {
	seen    int
	serving map[[2]uint64]core.Incarnation
	closed  map[uint64]bool
	opened  map[uint64]bool
	holders map[core.Incarnation]bool
}

func newJudge() *judge {
	return &judge{
		serving: map[[2]uint64]core.Incarnation{}, closed: map[uint64]bool{},
		opened: map[uint64]bool{}, holders: map[core.Incarnation]bool{},
	}
}

func (j *judge) take(log []core.Record) error {
	for _, r := range log[j.seen:] {
		key := [2]uint64{uint64(r.Context), uint64(r.Instance)}
		switch r.Kind {
		case core.ContextInserted:
			if j.serving[key] != 0 {
				return fmt.Errorf("two contexts: %+v", r)
			}
			j.serving[key] = r.Incarnation
		case core.ContextRemoved:
			if j.serving[key] != r.Incarnation {
				return fmt.Errorf("removed what does not serve: %+v", r)
			}
			delete(j.serving, key)
		case core.OpenEnded:
			j.opened[r.A] = r.Failure == core.NoFailure
		case core.CloseEnded:
			if r.Failure != core.NoFailure { // may be tried again
				delete(j.closed, r.A)
			}
		case core.CloseBegan:
			if !j.opened[r.A] || j.closed[r.A] {
				return fmt.Errorf("closed twice, or never opened: %+v", r)
			}
			j.closed[r.A] = true
		case core.LayoutAcquired:
			if j.holders[r.Incarnation] {
				return fmt.Errorf("two shares: %+v", r)
			}
			j.holders[r.Incarnation] = true
		case core.LayoutReleased:
			if !j.holders[r.Incarnation] {
				return fmt.Errorf("no share to return: %+v", r)
			}
			delete(j.holders, r.Incarnation)
		case core.Stamped:
			if j.serving[key] != r.Incarnation {
				return fmt.Errorf("stamped what does not serve: %+v", r)
			}
		}
	}
	j.seen = len(log)
	return nil
}

// consistent checks that what the server counts is what there is.
func consistent(s *Server) error {
	if s.engines.live() != s.strategies.live() {
		return fmt.Errorf("%d engine-driven contexts, %d strategies", s.engines.live(), s.strategies.live())
	}
	readers := map[core.Slot]uint32{}
	for pos := s.engines.first(); pos >= 0; pos = s.engines.after(pos) {
		e := &s.engines.entries[pos]
		at := s.strategies.find(uint64(e.instance))
		if at < 0 || s.strategies.entries[at].incarnation != e.incarnation {
			return fmt.Errorf("the strategy of %d is not its context's", e.instance)
		}
		for _, slot := range s.strategies.entries[at].reads {
			readers[slot]++
		}
		for _, slot := range s.strategies.entries[at].writes {
			if c := &s.store.chunks[slot]; c.state != chunkReserved || c.incarnation != e.incarnation {
				return fmt.Errorf("a pending write is not reserved: %+v", c)
			}
		}
	}
	for i := int(s.reaper.at); i < len(s.reaper.batch); i++ {
		if s.reaper.target == targetEngineDriven {
			for _, slot := range s.reaper.batch[i].reads {
				readers[slot]++
			}
		}
	}
	locks := 0
	for pos := s.sessions.first(); pos >= 0; pos = s.sessions.after(pos) {
		for _, slot := range s.sessions.entries[pos].slots {
			if slot != noSlot {
				readers[slot]++
				locks++
			}
		}
	}
	busy, waiting := 0, 0
	for i := range s.jobs.jobs {
		switch j := &s.jobs.jobs[i]; {
		case j.state == jobCopying:
			busy++
			if !s.lanes[j.lane].busy {
				return fmt.Errorf("a copy runs in an idle lane %d", j.lane)
			}
			for _, slot := range j.slots {
				if !j.store {
					readers[slot]++
				}
			}
		case j.state == jobWaiting:
			waiting++
		}
	}
	load := s.Load()
	queued := int(s.inbox.length) + int(s.normal.length) + load.LanesWait + int(s.parked.length) + int(s.turn.length)
	running := s.enrolments.live()
	for pos := s.releases.first(); pos >= 0; pos = s.releases.after(pos) {
		if r := &s.releases.entries[pos]; r.held && r.by == ByUnregister {
			running++
		}
	}
	switch {
	case locks != s.locks:
		return fmt.Errorf("%d locks counted, %d held", s.locks, locks)
	case busy != load.LanesBusy || waiting != s.normalBusy || busy+waiting != s.jobs.live():
		return fmt.Errorf("%d copies in %d lanes, %d waits in %d slots, %d jobs", busy, load.LanesBusy, waiting, s.normalBusy, s.jobs.live())
	case queued != s.mail.live():
		return fmt.Errorf("%d letters, %d queued", s.mail.live(), queued)
	case s.main.held && running == 0 && s.parked.length == 0:
		return fmt.Errorf("the main loop is held for nothing")
	case s.parked.length > 0 && s.enrolments.live() == 0 && s.releases.live() == 0 && s.reaper.state == reaperIdle:
		return fmt.Errorf("%d registers wait for nothing", s.parked.length)
	case s.turn.length > 0 && s.enrolments.live() < core.MaxOpens:
		return fmt.Errorf("%d registers wait for a place that is free", s.turn.length)
	case s.inbox.length > 0 && !s.main.held:
		return fmt.Errorf("%d messages wait for an idle loop", s.inbox.length)
	case s.normal.length > 0 && s.normalBusy < s.cfg.NormalSlots:
		return fmt.Errorf("%d messages wait for a pool that is free", s.normal.length)
	}
	return consistentStore(s, readers)
}

func consistentStore(s *Server, readers map[core.Slot]uint32) error {
	used, free, pooled, evictable := uint64(0), uint64(0), uint64(0), 0
	for i := range s.store.chunks {
		c := &s.store.chunks[i]
		if c.state == chunkFree {
			continue
		}
		used += c.bytes
		if c.pooled {
			pooled += c.bytes
		}
		// A shutdown of the document drops strategies without their locks.
		if c.readers != readers[core.Slot(i)] && s.stop.stage == stopNot {
			return fmt.Errorf("slot %d: %d readers counted, %d there", i, c.readers, readers[core.Slot(i)])
		}
		if c.state == chunkReady && c.readers == 0 {
			evictable++
		}
		if c.mark != 0 {
			return fmt.Errorf("slot %d is marked", i)
		}
	}
	for pos := s.store.first(); pos >= 0; pos = s.store.after(pos) {
		evictable--
	}
	for i, f := range s.store.room.free {
		free += f.length
		if i > 0 && s.store.room.free[i-1].offset+s.store.room.free[i-1].length >= f.offset {
			return fmt.Errorf("free room is out of order or not joined: %v", s.store.room.free)
		}
	}
	switch {
	case used != s.store.used || used > s.cfg.L1Bytes:
		return fmt.Errorf("%d bytes counted, %d used, %d there are", s.store.used, used, s.cfg.L1Bytes)
	case evictable != 0:
		return fmt.Errorf("the ring is off by %d", evictable)
	case pooled+free != s.cfg.PoolBytes:
		return fmt.Errorf("%d pooled and %d free of %d", pooled, free, s.cfg.PoolBytes)
	}
	holders := 0
	for pos := s.layouts.known.first(); pos >= 0; pos = s.layouts.known.after(pos) {
		if s.layouts.known.entries[pos].holders <= 0 {
			return fmt.Errorf("a layout without holders: %+v", s.layouts.known.entries[pos])
		}
		holders += s.layouts.known.entries[pos].holders
	}
	if holders != s.layouts.holders.live() {
		return fmt.Errorf("%d holders counted, %d there", holders, s.layouts.holders.live())
	}
	return nil
}

// The registry keeps its order and finds every key through any churn.
func TestARegistryThroughAnyChurn(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var reg registry[uint64]
		var model []uint64
		for range rapid.IntRange(0, 200).Draw(r, "steps") {
			key := rapid.Uint64Range(0, 30).Draw(r, "key")
			if pos := reg.find(key); pos >= 0 {
				if reg.entries[pos] != key {
					r.Fatalf("%d is at %d's place", key, reg.entries[pos])
				}
				reg.remove(pos)
				kept := model[:0]
				for _, k := range model {
					if k != key {
						kept = append(kept, k)
					}
				}
				model = kept
			} else {
				pos := reg.add(key)
				reg.entries[pos] = key
				model = append(model, key)
			}
			i := 0
			for pos := reg.first(); pos >= 0; pos = reg.after(pos) {
				if i >= len(model) || reg.entries[pos] != model[i] {
					r.Fatalf("order: %d at %d, want %v", reg.entries[pos], i, model)
				}
				i++
			}
			if i != len(model) || reg.live() != len(model) {
				r.Fatalf("%d in order, %d live, want %d", i, reg.live(), len(model))
			}
		}
	})
}
