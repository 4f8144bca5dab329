package monitor

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// A run that breaks everything over and over keeps a short list.
func TestViolationsAreBounded(t *testing.T) {
	s := setup()
	s.Workers = make([]Worker, 200)
	m := New(s)
	for range 3 {
		for n := range s.Workers {
			r := core.Record{Kind: core.UnregisterSent, Actor: core.FirstWorker + core.Actor(n), At: 1}
			m.Observe(&r)
			r.Kind = core.PingSent
			m.Observe(&r)
		}
	}
	if got := len(m.Violations()); got != MaxViolations {
		t.Errorf("%d violations listed, want %d", got, MaxViolations)
	}
	if want := len(s.Workers) - MaxViolations; m.Dropped() != want {
		t.Errorf("%d dropped, want %d", m.Dropped(), want)
	}
	kept := m.Violations()
	m.Reset()
	if len(m.Violations()) != 0 || m.Dropped() != 0 {
		t.Error("a reset set remembers violations")
	}
	if kept[0].Invariant != "QUIET" {
		t.Errorf("the list of an earlier run changed: %+v", kept[0])
	}
}

// The monitors meet records of real logs: no value of any field may harm them.
func TestAnyRecordIsSafe(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	odd := []uint64{0, 1, 2, 3, 4, 5, 255, 256, 1 << 31, 1 << 32, 1<<63 - 1, 1<<64 - 1}
	pick := func() uint64 { return odd[random.IntN(len(odd))] }
	m := New(setup())
	for round := 0; round < 300; round++ {
		m.Reset()
		now := core.Time(0)
		for i := 0; i < 400; i++ {
			now += core.Time(random.IntN(1e9))
			r := core.Record{
				At: now, Kind: core.RecordKind(random.IntN(256)), Actor: core.Actor(pick()), Instance: core.InstanceID(pick()),
				Incarnation: core.Incarnation(pick()), A: pick(), B: pick(),
				Context: core.ContextKind(random.IntN(6)), Failure: core.Failure(random.IntN(4)), Flag: random.IntN(2) == 0,
			}
			m.Observe(&r)
		}
		m.Finish(now)
	}
}

func TestDescribe(t *testing.T) {
	all := Describe()
	if len(all) != 13 {
		t.Fatalf("%d invariants, want 13", len(all))
	}
	for _, d := range all {
		if d.ID == "" || d.Statement == "" || d.Truth == "" {
			t.Errorf("incomplete: %+v", d)
		}
		if d.Safety == (d.Bound != "") {
			t.Errorf("%s: a liveness invariant has a bound, a safety invariant none", d.ID)
		}
	}
}

// A log without truth is not passed, it is undecided.
func TestRealLogsSayWhatTheyLack(t *testing.T) {
	s := setup()
	if got := New(s).Undecided(); got != nil {
		t.Errorf("a simulated run lacks %v", got)
	}
	s.Real = true
	m := New(s)
	r := core.Record{Kind: core.MessageReached, Instance: 1, B: uint64(wire.Ping)}
	m.Observe(&r)
	got := m.Undecided()
	if len(got) != 10 {
		t.Errorf("undecided: %v", got)
	}
	for _, u := range got {
		if !strings.HasPrefix(u.Reason, "the log does not say ") {
			t.Error(u)
		}
	}
}

func TestTable(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var mine table
	truth := map[uint64]int32{}
	for i := 0; i < 200_000; i++ {
		key := 1 + random.Uint64N(300)
		if v, ok := truth[key]; ok {
			if mine.get(key) != v {
				t.Fatalf("key %d: %d, want %d", key, mine.get(key), v)
			}
			mine.remove(key)
			delete(truth, key)
		} else {
			if mine.get(key) != -1 {
				t.Fatalf("key %d is there", key)
			}
			mine.put(key, int32(i))
			truth[key] = int32(i)
		}
	}
	mine.reset()
	for key := range truth {
		if mine.get(key) != -1 {
			t.Fatal("a reset table holds keys")
		}
	}
	mine.remove(5)
}

// day is a stretch of an ordinary world: n workers that ping and transfer.
func day(n int) (Setup, []core.Record, []core.Record) {
	s := setup()
	s.Workers = nil
	var begin, beat tale
	ids := rand.New(rand.NewPCG(5, 6))
	for w := 0; w < n; w++ {
		s.Workers = append(s.Workers, Worker{Interval: 10 * time.Second, Timeout: 300 * time.Second})
		inc := core.Incarnation(w + 1)
		from := len(begin.records)
		begin.up(w, inc)
		own := core.InstanceID(ids.Uint64() >> 1)
		for i := from; i < len(begin.records); i++ {
			if begin.records[i].Instance == id(w) {
				begin.records[i].Instance = own
			}
		}
		to := len(beat.records)
		beat.does(10, w, core.PingSent).reach(10, w, wire.Ping)
		beat.world(10, core.Record{Kind: core.MessageHandled, A: uint64(w + 1), B: uint64(wire.Ping), Instance: id(w)})
		beat.server(10, core.Record{Kind: core.Stamped, Instance: id(w), Incarnation: inc, Context: core.ServerDriven, B: uint64(core.StampPing)})
		beat.does(10, w, core.PingAnswered)
		for i := to; i < len(beat.records); i++ {
			beat.records[i].Instance = own
		}
	}
	return s, begin.records, beat.records
}

// whole is a life of everything that comes and goes, for the count of allocations.
func whole() []core.Record {
	var s tale
	for round := 0; round < 3; round++ {
		inc := core.Incarnation(10*round + 1)
		t := float64(1000 * round)
		s.born(t+1, 0).serve(t+2, 0, inc).registered(t+2, 0).born(t+1, 1).pair(t+2, 1, inc+1)
		s.ping(t+3, 0).submit(t+3, 0, uint64(round)).tell(t+4, 0, uint64(round))
		s.claim(t+5, 0, core.ChunkReserved, inc, 0).claim(t+6, 0, core.ChunkReady, inc, 0)
		s.unregister(t+7, 0).remove(t+8, 0, inc, core.ServerDriven, core.RemovedByClient).release(t+8, t+8.1, 0, inc)
		s.remove(t+8, 1, inc+1, core.EngineDriven, core.RemovedByClient).strategy(t+8, 1, inc+1, core.StrategyRemoved).giveBack(t+8, 1, inc+1, core.EngineDriven)
		s.process(t+9, 0, core.ProcessExited).process(t+9, 1, core.ProcessExited)
	}
	return s.records
}

func TestNothingIsAllocatedAtSteadyState(t *testing.T) {
	records := whole()
	m := New(setup())
	once := func() {
		m.Reset()
		for i := range records {
			m.Observe(&records[i])
		}
		m.Finish(at(3000))
	}
	once()
	if got := m.Violations(); len(got) != 0 {
		t.Fatalf("the innocent world broke: %+v", got)
	}
	if n := testing.AllocsPerRun(20, once); n != 0 {
		t.Errorf("%.0f allocations per run", n)
	}
}

func benchmarkDay(b *testing.B, n int) {
	s, begin, beat := day(n)
	m := New(s)
	for i := range begin {
		m.Observe(&begin[i])
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i, at := 0, 0; i < b.N; i++ {
		m.Observe(&beat[at])
		if at++; at == len(beat) {
			at = 0
		}
	}
	b.StopTimer()
	if v := m.Violations(); len(v) != 0 {
		b.Fatal(v)
	}
}

func BenchmarkObserve16(b *testing.B)     { benchmarkDay(b, 16) }
func BenchmarkObserve100000(b *testing.B) { benchmarkDay(b, 100_000) }

func BenchmarkResetAndFinish4(b *testing.B) {
	s, begin, beat := day(4)
	m := New(s)
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		m.Reset()
		for j := range begin {
			m.Observe(&begin[j])
		}
		for j := range beat {
			m.Observe(&beat[j])
		}
		m.Finish(at(20))
	}
}
