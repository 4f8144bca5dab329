package monitor

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// The tests tell short stories in records: one that breaks an invariant, and
// its nearest innocent twin.

// Instance ids of the workers of a story.
const idOf = 1000

func id(n int) core.InstanceID { return core.InstanceID(idOf + n) }

func at(seconds float64) core.Time { return core.Time(seconds * 1e9) }

type tale struct{ records []core.Record }

func (s *tale) add(t float64, actor core.Actor, r core.Record) *tale {
	r.At, r.Actor = at(t), actor
	s.records = append(s.records, r)
	return s
}

func (s *tale) world(t float64, r core.Record) *tale  { return s.add(t, core.ActorWorld, r) }
func (s *tale) server(t float64, r core.Record) *tale { return s.add(t, core.ActorServer, r) }
func (s *tale) worker(t float64, n int, r core.Record) *tale {
	r.Instance = id(n)
	return s.add(t, core.FirstWorker+core.Actor(n), r)
}

// process writes a truth about a worker's process; -1 is the server.
func (s *tale) process(t float64, n int, kind core.RecordKind) *tale {
	r := core.Record{Kind: kind, A: uint64(n + 1)}
	if n >= 0 && kind != core.ProcessStarted {
		r.Instance = id(n)
	}
	return s.world(t, r)
}

func (s *tale) link(t float64, n int, kind core.RecordKind) *tale {
	return s.world(t, core.Record{Kind: kind, A: uint64(n + 1)})
}

// born starts a worker's process and connects it.
func (s *tale) born(t float64, n int) *tale {
	return s.bornAs(t, n, id(n))
}

func (s *tale) bornAs(t float64, n int, as core.InstanceID) *tale {
	s.process(t, n, core.ProcessStarted)
	s.add(t, core.FirstWorker+core.Actor(n), core.Record{Kind: core.WorkerStarted, Instance: as})
	return s.world(t, core.Record{Kind: core.ConnectionOpened, A: uint64(n + 1), B: uint64(n + 1)})
}

// reach is a message at the host.
func (s *tale) reach(t float64, n int, kind wire.Type) *tale {
	return s.world(t, core.Record{Kind: core.MessageReached, Instance: id(n), A: uint64(n + 1), B: uint64(kind)})
}

// ping is a ping that reached the host and refreshed its entry.
func (s *tale) ping(t float64, n int) *tale {
	return s.reach(t, n, wire.Ping).server(t, core.Record{Kind: core.Stamped, Instance: id(n), Context: core.ServerDriven})
}

// served is a transfer that the server gets round to.
func (s *tale) served(t float64, n int) *tale {
	return s.server(t, core.Record{Kind: core.Stamped, Instance: id(n), Context: core.ServerDriven, B: uint64(core.StampTransfer)})
}

func (s *tale) open(t float64, n int, inc core.Incarnation) *tale {
	return s.world(t, core.Record{Kind: core.MappingOpened, Instance: id(n), Incarnation: inc, A: uint64(inc), B: 1 << 20})
}

func (s *tale) acquire(t float64, n int, inc core.Incarnation, kind core.ContextKind) *tale {
	return s.server(t, core.Record{Kind: core.LayoutAcquired, Instance: id(n), Incarnation: inc, Context: kind, A: uint64(inc), B: 1})
}

func (s *tale) giveBack(t float64, n int, inc core.Incarnation, kind core.ContextKind) *tale {
	return s.server(t, core.Record{Kind: core.LayoutReleased, Instance: id(n), Incarnation: inc, Context: kind, A: uint64(inc)})
}

func (s *tale) insert(t float64, n int, inc core.Incarnation) *tale {
	return s.server(t, core.Record{Kind: core.ContextInserted, Instance: id(n), Incarnation: inc, Context: core.ServerDriven, A: uint64(inc), B: 1 << 20})
}

// serve opens and inserts a server-driven context; mapping and layout have the
// incarnation's number.
func (s *tale) serve(t float64, n int, inc core.Incarnation) *tale {
	return s.open(t, n, inc).insert(t, n, inc).acquire(t, n, inc, core.ServerDriven)
}

// pair inserts an engine-driven context whole.
func (s *tale) pair(t float64, n int, inc core.Incarnation) *tale {
	return s.pairContext(t, n, inc).strategy(t, n, inc, core.StrategyAdded).acquire(t, n, inc, core.EngineDriven)
}

func (s *tale) pairContext(t float64, n int, inc core.Incarnation) *tale {
	return s.server(t, core.Record{Kind: core.ContextInserted, Instance: id(n), Incarnation: inc, Context: core.EngineDriven})
}

func (s *tale) strategy(t float64, n int, inc core.Incarnation, kind core.RecordKind) *tale {
	return s.server(t, core.Record{Kind: kind, Instance: id(n), Incarnation: inc, Context: core.EngineDriven})
}

func (s *tale) registered(t float64, n int) *tale {
	return s.world(t, core.Record{Kind: core.EngineRegistered, Instance: id(n), Flag: true})
}

// up is a worker that lives and serves from the start.
func (s *tale) up(n int, inc core.Incarnation) *tale {
	return s.born(1, n).serve(2, n, inc).registered(2, n)
}

func (s *tale) remove(t float64, n int, inc core.Incarnation, kind core.ContextKind, cause core.RemovalCause) *tale {
	if cause == core.RemovedByReaper {
		s.server(t, core.Record{Kind: core.ReapDecided, Instance: id(n), Incarnation: inc, Context: kind})
	}
	return s.server(t, core.Record{Kind: core.ContextRemoved, Instance: id(n), Incarnation: inc, Context: kind, A: uint64(cause)})
}

func (s *tale) reap(t float64, n int, inc core.Incarnation) *tale {
	return s.remove(t, n, inc, core.ServerDriven, core.RemovedByReaper)
}

func (s *tale) closing(t float64, n int, inc core.Incarnation) *tale {
	s.server(t, core.Record{Kind: core.CloseBegan, Instance: id(n), Incarnation: inc, Context: core.ServerDriven, A: uint64(inc)})
	return s.mapping(t, n, inc, core.MappingClosing)
}

func (s *tale) mapping(t float64, n int, inc core.Incarnation, kind core.RecordKind) *tale {
	return s.world(t, core.Record{Kind: kind, Instance: id(n), Incarnation: inc, A: uint64(inc), B: 1 << 20})
}

// release closes a removed context's mapping and gives its share back.
func (s *tale) release(from, to float64, n int, inc core.Incarnation) *tale {
	return s.closing(from, n, inc).mapping(to, n, inc, core.MappingClosed).giveBack(to, n, inc, core.ServerDriven)
}

func (s *tale) claim(t float64, n int, kind core.RecordKind, inc core.Incarnation, a uint64) *tale {
	return s.server(t, core.Record{Kind: kind, Instance: id(n), Incarnation: inc, Context: core.ServerDriven, A: a})
}

func (s *tale) does(t float64, n int, kind core.RecordKind) *tale {
	return s.worker(t, n, core.Record{Kind: kind})
}

func (s *tale) fails(t float64, n int, kind core.RecordKind) *tale {
	return s.worker(t, n, core.Record{Kind: kind, Failure: core.FailDeadline})
}

func (s *tale) submit(t float64, n int, request uint64) *tale {
	return s.world(t, core.Record{Kind: core.EngineSubmitted, Instance: id(n), A: request, B: uint64(n + 1)})
}

func (s *tale) tell(t float64, n int, request uint64) *tale {
	return s.end(t, n, request, core.OutcomeMissed)
}

func (s *tale) end(t float64, n int, request uint64, o core.Outcome) *tale {
	return s.world(t, core.Record{Kind: core.EngineTold, Instance: id(n), A: request, B: uint64(o)})
}

func (s *tale) unregister(t float64, n int) *tale {
	return s.does(t, n, core.UnregisterSent).reach(t+0.1, n, wire.UnregisterKVCache).
		server(t+0.1, core.Record{Kind: core.UnregisterCame, Instance: id(n), Context: core.ServerDriven})
}

// setup is the document's settings with four workers and round bounds.
func setup() Setup {
	s := Setup{
		Reap: 120 * time.Second, Grace: 3600 * time.Second, Scan: 30 * time.Second,
		OpenBound: 100 * time.Millisecond, ReleaseBound: time.Second,
		CopyBound: time.Second, NetworkBound: 100 * time.Millisecond,
		FaultsOver: time.Second,
	}
	for n := 0; n < 4; n++ {
		s.Workers = append(s.Workers, Worker{Name: fmt.Sprintf("w%d", n+1), Interval: 10 * time.Second, Timeout: 300 * time.Second})
	}
	return s
}

// story is one test: what is told, how it ends, and what breaks.
type story struct {
	name   string
	tell   func(s *tale)
	end    float64 // seconds; 0 is 5000
	breaks []string
	actor  int
	change func(*Setup)
}

func play(t *testing.T, st *story) []Violation {
	t.Helper()
	s := setup()
	if st.change != nil {
		st.change(&s)
	}
	var told tale
	st.tell(&told)
	m := New(s)
	var found []Violation
	for range 2 { // a reused set judges like a fresh one
		m.Reset()
		for i := range told.records {
			m.Observe(&told.records[i])
		}
		end := st.end
		if end == 0 {
			end = 5000
		}
		m.Finish(at(end))
		again := m.Violations()
		if found != nil && len(again) != len(found) {
			t.Fatalf("%d violations in a fresh set, %d in a reused one", len(found), len(again))
		}
		found = again
	}
	return found
}

func run(t *testing.T, stories []story) {
	t.Helper()
	for i := range stories {
		st := &stories[i]
		t.Run(st.name, func(t *testing.T) {
			found := play(t, st)
			var ids []string
			for _, v := range found {
				if !slices.Contains(ids, v.Invariant) {
					ids = append(ids, v.Invariant)
				}
				if v.Message == "" {
					t.Errorf("%s without a reason", v.Invariant)
				}
			}
			slices.Sort(ids)
			slices.Sort(st.breaks)
			if !slices.Equal(ids, st.breaks) {
				t.Fatalf("broken: %v, want %v; found: %+v", ids, st.breaks, found)
			}
			if len(found) > 0 && st.actor >= 0 && !slices.Contains(found[0].Actors, st.actor) {
				t.Errorf("actors %v, want worker %d: %s", found[0].Actors, st.actor, found[0].Message)
			}
			for _, v := range found {
				t.Logf("%s at %s: %s", v.Invariant, seconds(v.At), v.Message)
			}
		})
	}
}
