package spacetime

import (
	"strings"
	"testing"

	"vigil/core"
)

// telling writes the records of a story into a diagram.
type telling struct {
	*Diagram
	t *testing.T
}

func story(t *testing.T, workers ...string) *telling {
	d := New(Head{ID: "T", Name: "told", Reap: 120e9, Grace: 3600e9}, workers)
	d.TypeName = func(n uint64) string { return map[uint64]string{22: "PING", 1: "REGISTER", 7: "RETRIEVE"}[n] }
	return &telling{d, t}
}

func (s *telling) at(seconds float64, r core.Record) {
	r.At = core.Time(seconds * 1e9)
	s.Add(&r, r.Kind.String(), true, false)
}

const (
	w1  = core.FirstWorker
	id1 = core.InstanceID(77)
)

// born has worker 0 start, connect and be served.
func (s *telling) born(seconds float64, id core.InstanceID, incarnation core.Incarnation) {
	peer := uint64(1) // the low half is the worker's number + 1
	s.at(seconds, core.Record{Actor: core.ActorWorld, Kind: core.ProcessStarted, A: 1})
	s.at(seconds, core.Record{Actor: w1, Kind: core.WorkerStarted, Instance: id})
	s.at(seconds, core.Record{Actor: core.ActorWorld, Kind: core.ConnectionOpened, A: peer, B: 1})
	s.at(seconds+1, core.Record{Actor: core.ActorServer, Kind: core.OpenBegan, Instance: id, Incarnation: incarnation, Context: core.ServerDriven, A: uint64(incarnation)})
	s.at(seconds+2, core.Record{Actor: core.ActorServer, Kind: core.OpenEnded, Instance: id, Incarnation: incarnation, Context: core.ServerDriven, A: uint64(incarnation), B: 4096})
	s.at(seconds+2, core.Record{Actor: core.ActorServer, Kind: core.ContextInserted, Instance: id, Incarnation: incarnation, Context: core.ServerDriven, A: uint64(incarnation), B: 4096})
}

// A ping goes up, waits at the host, is taken in, and its answer comes back:
// one message with four moments.
func TestAPingIsOneMessageFromBothEndsRecords(t *testing.T) {
	s := story(t, "w1")
	s.born(0, id1, 1)
	s.at(10, core.Record{Actor: w1, Kind: core.PingSent, A: 5})
	s.at(10.5, core.Record{Actor: core.ActorWorld, Kind: core.MessageReached, Instance: id1, A: 1, B: 22})
	s.at(12, core.Record{Actor: core.ActorWorld, Kind: core.MessageHandled, Instance: id1, A: 1, B: 22})
	s.at(12.5, core.Record{Actor: w1, Kind: core.PingAnswered, A: 5, Flag: true})
	if n := len(s.messages.all); n != 1 {
		t.Fatalf("%d messages, want one", n)
	}
	m := s.messages.all[0]
	if m.sent != 10e9 || m.reached != 10.5e9 || m.handled != 12e9 || m.ended != 12.5e9 || m.fate != fateAnswered || m.class != classPing || m.lane != 1 {
		t.Errorf("the ping is %+v", m)
	}
	if s.messages.named[m.name] != "PING" {
		t.Errorf("it is called %q", s.messages.named[m.name])
	}
}

// What became of a message decides how it is drawn.
func TestTheFateOfAMessage(t *testing.T) {
	s := story(t, "w1")
	s.born(0, id1, 1)
	s.at(10, core.Record{Actor: w1, Kind: core.PingSent, A: 1}) // lost on the way
	s.at(11, core.Record{Actor: core.ActorWorld, Kind: core.MessageLost, A: 1, B: 60, Flag: true})
	s.at(20, core.Record{Actor: w1, Kind: core.PingFailed, A: 1, Failure: core.FailDeadline})
	s.at(30, core.Record{Actor: w1, Kind: core.PingSent, A: 2}) // arrives, and nobody answers in time
	s.at(31, core.Record{Actor: core.ActorWorld, Kind: core.MessageReached, Instance: id1, A: 1, B: 22})
	s.at(40, core.Record{Actor: w1, Kind: core.PingFailed, A: 2, Failure: core.FailDeadline})
	s.at(50, core.Record{Actor: w1, Kind: core.RequestSent, Instance: id1, A: 9, B: 3}) // never answered at all
	s.at(51, core.Record{Actor: core.ActorWorld, Kind: core.MessageReached, Instance: id1, A: 1, B: 7})
	s.at(52, core.Record{Actor: w1, Kind: core.RequestSent, Instance: id1, A: 10, B: 4}) // a miss is an answer
	s.at(53, core.Record{Actor: core.ActorWorld, Kind: core.MessageReached, Instance: id1, A: 1, B: 7})
	s.at(54, core.Record{Actor: w1, Kind: core.RequestResolved, Instance: id1, A: 10, B: 4, Failure: core.FailUnknownVerdict})
	s.at(99, core.Record{Actor: w1, Kind: core.PingSent, A: 6}) // under way when the run ends
	s.at(99.5, core.Record{Actor: core.ActorWorld, Kind: core.MessageReached, Instance: id1, A: 1, B: 22})
	s.at(100, core.Record{Actor: core.ActorWorld, Kind: core.WorldEnded})
	s.settle()
	var got []uint8
	for _, m := range s.messages.all {
		got = append(got, m.fate)
	}
	want := []uint8{fateLost, fateFailed, fateSilent, fateAnswered, fateOpen}
	if len(got) != len(want) {
		t.Fatalf("fates %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("message %d has fate %d, want %d", i, got[i], want[i])
		}
	}
	if r := s.messages.all[0].reached; r != none {
		t.Errorf("the lost one reached the server at %d", r)
	}
}

// An engine-driven request has two halves with uids of their own.
func TestTheSecondHalfOfARequestAnswersTheFirst(t *testing.T) {
	s := story(t, "w1")
	s.born(0, id1, 1)
	s.at(5, core.Record{Actor: w1, Kind: core.RequestSent, A: 9, B: 3})
	s.at(6, core.Record{Actor: w1, Kind: core.RequestSent, A: 9, B: 4})
	s.at(7, core.Record{Actor: w1, Kind: core.RequestResolved, A: 9, B: 4, Flag: true})
	s.at(50, core.Record{Actor: core.ActorWorld, Kind: core.WorldEnded})
	s.settle()
	for i, m := range s.messages.all {
		if m.fate != fateAnswered {
			t.Errorf("half %d has fate %d", i, m.fate)
		}
	}
}

// A context is a bar: opened, serving, found silent, taken away, and its bytes
// back.
func TestAContextIsABarFromOpenToClose(t *testing.T) {
	s := story(t, "w1")
	s.born(0, id1, 3)
	s.at(10, core.Record{Actor: core.ActorServer, Kind: core.Latched, Instance: id1, Incarnation: 3, Context: core.ServerDriven})
	s.at(10, core.Record{Actor: core.ActorServer, Kind: core.Stamped, Instance: id1, Incarnation: 3, Context: core.ServerDriven, A: 10e9})
	s.at(131, core.Record{Actor: core.ActorServer, Kind: core.ReapDecided, Instance: id1, Incarnation: 3, Context: core.ServerDriven, A: 10e9, B: 120e9})
	s.at(131, core.Record{Actor: core.ActorServer, Kind: core.ContextRemoved, Instance: id1, Incarnation: 3, Context: core.ServerDriven, A: uint64(core.RemovedByReaper)})
	s.at(132, core.Record{Actor: core.ActorServer, Kind: core.CloseBegan, Instance: id1, Incarnation: 3, A: 3})
	s.at(140, core.Record{Actor: core.ActorServer, Kind: core.CloseEnded, Instance: id1, Incarnation: 3, A: 3, B: 4096})
	if n := len(s.contexts.bars); n != 1 {
		t.Fatalf("%d bars, want one", n)
	}
	b := s.contexts.bars[0]
	if b.Open != 1e9 || b.Serving != 2e9 || b.Latched != 10e9 || b.Decided != 131e9 || b.Removed != 131e9 || b.Closing != 132e9 || b.Closed != 140e9 || b.Bytes != 4096 || b.Why != "reaped" {
		t.Errorf("the bar is %+v", b)
	}
	if len(b.stamps) != 2 || b.stamps[1] != 10e9 {
		t.Errorf("its stamps are %v", b.stamps)
	}
}

// A server that dies takes every mapping with it; the incarnations of its next
// life begin anew and are other bars.
func TestAServersDeathEndsItsBars(t *testing.T) {
	s := story(t, "w1")
	s.at(0, core.Record{Actor: core.ActorWorld, Kind: core.ProcessStarted})
	s.born(0, id1, 1)
	s.at(50, core.Record{Actor: core.ActorWorld, Kind: core.ProcessKilled})
	s.at(52, core.Record{Actor: core.ActorWorld, Kind: core.ProcessStarted})
	s.at(60, core.Record{Actor: core.ActorServer, Kind: core.ContextInserted, Instance: id1, Incarnation: 1, Context: core.ServerDriven})
	if n := len(s.contexts.bars); n != 2 {
		t.Fatalf("%d bars, want two", n)
	}
	if b := s.contexts.bars[0]; b.Closed != 50e9 {
		t.Errorf("the first bar is closed at %d, want at the server's death", b.Closed)
	}
	if b := s.contexts.bars[1]; b.Closed != -1 {
		t.Errorf("the second bar is closed at %d", b.Closed)
	}
	if len(s.bands) != 1 || s.bands[0].Kind != "down" || s.bands[0].To != 52e9 {
		t.Errorf("bands %+v, want the time without a server", s.bands)
	}
}

// The server's clock stands still with its host; a stamp is drawn when it was
// in the world's time, and not later than its record.
func TestAStampIsDrawnInTheWorldsTime(t *testing.T) {
	s := story(t, "w1")
	s.at(0, core.Record{Actor: core.ActorWorld, Kind: core.ProcessStarted})
	s.born(0, id1, 1)
	stamp := func(seconds, clock float64) {
		s.at(seconds, core.Record{Actor: core.ActorServer, Kind: core.Stamped, Instance: id1, Incarnation: 1, Context: core.ServerDriven, A: uint64(clock * 1e9)})
	}
	stamp(10, 10)
	stamp(30, 25) // it had waited 5 s in a pool
	s.at(40, core.Record{Actor: core.ActorWorld, Kind: core.ProcessPaused})
	s.at(140, core.Record{Actor: core.ActorWorld, Kind: core.ProcessResumed})
	stamp(150, 50) // the clock stood for 100 s
	got := s.contexts.bars[0].stamps
	for i, want := range []core.Time{2e9, 10e9, 25e9, 150e9} {
		if got[i] != want {
			t.Errorf("stamp %d is at %d, want %d", i, got[i], want)
		}
	}
}

// Each life of a worker has a lane, and what happens to it is a band there.
func TestALifeIsALane(t *testing.T) {
	s := story(t, "w1", "w2")
	s.Steps = []Step{{Label: "slow-close w1", Worker: 0, For: 30e9}}
	s.born(0, id1, 1)
	s.at(20, core.Record{Actor: core.ActorWorld, Kind: core.FaultStruck, A: 0, Flag: true})
	s.at(30, core.Record{Actor: core.ActorWorld, Kind: core.ProcessPaused, A: 1, Instance: id1})
	s.at(40, core.Record{Actor: core.ActorWorld, Kind: core.LinkCut, A: 1})
	s.at(50, core.Record{Actor: core.ActorWorld, Kind: core.ProcessResumed, A: 1, Instance: id1})
	s.at(60, core.Record{Actor: core.ActorWorld, Kind: core.ProcessKilled, A: 1, Instance: id1})
	s.born(70, id1+1, 2)
	var names []string
	for _, l := range s.lanes {
		names = append(names, l.Name)
	}
	if got := strings.Join(names, ", "); got != "server, w1, w1 life 2" {
		t.Fatalf("lanes: %s", got)
	}
	if first, second := s.lanes[1], s.lanes[2]; first.Ended != 60e9 || second.Ended != -1 || second.Instance != "78" {
		t.Errorf("lives %+v and %+v", first, second)
	}
	want := []band{{1, "fault", 20e9, 50e9, "slow-close w1"}, {1, "frozen", 30e9, 50e9, "frozen"}, {1, "cut", 40e9, 60e9, "link cut"}}
	if len(s.bands) != len(want) {
		t.Fatalf("bands %+v", s.bands)
	}
	for i := range want {
		if s.bands[i] != want[i] {
			t.Errorf("band %d is %+v, want %+v", i, s.bands[i], want[i])
		}
	}
}

// What led to a violation is what concerns its actors and what struck, the
// cause before its effect, and the same thing once.
func TestWhatLedThere(t *testing.T) {
	s := story(t, "w1", "w2")
	s.Steps = []Step{{Label: "pause w1"}}
	s.born(0, id1, 1)
	s.at(3, core.Record{Actor: w1 + 1, Kind: core.WorkerStarted, Instance: 99}) // somebody else
	s.at(30, core.Record{Actor: core.ActorWorld, Kind: core.ProcessPaused, A: 1, Instance: id1})
	s.at(30, core.Record{Actor: core.ActorWorld, Kind: core.FaultStruck, A: 0, Flag: true})
	for i := range 20 {
		s.at(40+float64(i), core.Record{Actor: core.ActorServer, Kind: core.Refused, Instance: id1})
	}
	s.at(100, core.Record{Actor: core.ActorServer, Kind: core.ScanBegan})
	s.Broke(Violation{Invariant: "ONE", At: 90e9, Actors: []string{"w1"}})
	v := s.Broken()[0]
	s.trace(&v)
	var kinds []string
	for _, i := range v.Story {
		kinds = append(kinds, s.kinds[i].String())
	}
	if got := strings.Join(kinds[len(kinds)-3:], ", "); got != "fault-struck, process-paused, refused" {
		t.Errorf("what led there ends with %s", got)
	}
	if len(v.Lanes) != 1 || v.Lanes[0] != 1 {
		t.Errorf("its lanes are %v", v.Lanes)
	}
	for _, i := range v.Story {
		if s.on[i] == 2 {
			t.Error("it tells of somebody who is not concerned")
		}
	}
}

// A log of a real server knows instances and no workers: each gets a lane.
func TestALogHasALaneForEachInstance(t *testing.T) {
	s := story(t)
	s.at(1, core.Record{Actor: core.ActorServer, Kind: core.ContextInserted, Instance: 5, Incarnation: 1, Context: core.ServerDriven, B: 10})
	s.at(2, core.Record{Actor: core.ActorServer, Kind: core.ContextInserted, Instance: 6, Incarnation: 2, Context: core.ServerDriven, B: 10})
	s.at(3, core.Record{Actor: core.ActorServer, Kind: core.Stamped, Instance: 5, Incarnation: 1, Context: core.ServerDriven, A: 3e9})
	if len(s.lanes) != 3 || s.lanes[1].Name != "instance 5" || len(s.contexts.bars) != 2 {
		t.Errorf("lanes %+v, %d bars", s.lanes, len(s.contexts.bars))
	}
}

// What does not fit is counted, and the diagram stays as it is.
func TestMoreRecordsThanFitAreCounted(t *testing.T) {
	s := story(t, "w1")
	s.most = 8
	s.born(0, id1, 1)
	for i := range 10 {
		s.at(10+float64(i), core.Record{Actor: w1, Kind: core.PingSent, A: uint64(i)})
	}
	if s.Records() != 8 || s.Left != 8 {
		t.Errorf("%d kept and %d left, want 8 and 8", s.Records(), s.Left)
	}
	if _, err := s.Data(); err != nil {
		t.Error(err)
	}
}

// A filter hides a kind of records: each kind is in the group where a reader
// looks for it, and a new one must be put somewhere on purpose.
func TestEveryKindHasAGroup(t *testing.T) {
	requests := map[core.RecordKind]bool{core.RecordNone: true, core.TransferBegan: true, core.TransferEnded: true, core.Refused: true, core.PoolFull: true,
		core.Submitted: true, core.RequestSent: true, core.RequestResolved: true, core.RequestDropped: true, core.FinishedReported: true,
		core.EngineSubmitted: true, core.EngineTold: true, core.BlocksRight: true, core.BlocksWrong: true, core.AnswerCame: true}
	for k := core.RecordNone; k < core.RecordKinds; k++ {
		if g := GroupOf(k); g >= groups || (g == GroupRequests) != requests[k] {
			t.Errorf("%s is in the group %d", k, g)
		}
	}
}
