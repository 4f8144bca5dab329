package sim

import (
	"encoding/binary"
	"testing"
	"time"

	"vigil/core"
)

// These stories are about the network alone: a server that only notes what
// reaches it, and workers that say what they are told to.

// listener is a machine that notes what it is given.
type listener struct {
	heard  []uint64 // the number in each message
	peers  []core.Peer
	closed []core.Peer
}

func (l *listener) Step(_ core.Time, in *core.Input, _ *core.Effects) {
	switch in.Kind {
	case core.InputFrames:
		l.heard = append(l.heard, binary.BigEndian.Uint64(in.Frames.Part(0)))
		l.peers = append(l.peers, in.Peer)
	case core.InputClosed:
		l.closed = append(l.closed, in.Peer)
	}
}

// stand is a world of one worker whose server and worker only listen.
type stand struct {
	*World
	server, worker *listener
	sent           uint64
	lost           int
}

func (s *stand) Observe(r *core.Record) {
	if r.Kind == core.MessageLost {
		s.lost++
	}
}

func newStand(seed uint64) *stand {
	s := &stand{World: NewWorld(), server: &listener{}, worker: &listener{}}
	plan := &Plan{Server: core.DefaultServerConfig(), Until: time.Hour}
	plan.Workers = []WorkerPlan{{Name: "w1", Config: core.DefaultWorkerConfig(), Idle: true}}
	s.reset(plan, NewChoices(seed), s)
	s.heap.reset(false)
	for i, l := range []*listener{s.server, s.worker} {
		s.processes[i].machine, s.processes[i].state = l, running
	}
	s.net.connect(0, 0)
	s.pass(time.Second)
	return s
}

func (s *stand) pass(d time.Duration) { s.play(s.now.Add(d)) }

// say sends n numbered messages to the server.
func (s *stand) say(n int) {
	for i := 0; i < n; i++ {
		s.sent++
		var f core.Frames
		f.Append(binary.BigEndian.AppendUint64(nil, s.sent))
		s.net.request(0, &f)
	}
}

// inOrder checks that what was heard are numbers in rising order.
func inOrder(t *testing.T, heard []uint64) {
	t.Helper()
	for i := 1; i < len(heard); i++ {
		if heard[i] <= heard[i-1] {
			t.Fatalf("message %d came after %d", heard[i], heard[i-1])
		}
	}
}

func TestOneConnectionKeepsItsOrder(t *testing.T) {
	for seed := uint64(0); seed < 20; seed++ {
		s := newStand(seed)
		for i := 0; i < 20; i++ {
			s.say(5)
			s.pass(time.Duration(i) * 100 * time.Microsecond)
		}
		s.pass(time.Second)
		inOrder(t, s.server.heard)
		if len(s.server.heard) != 100 {
			t.Fatalf("%d of 100 messages came", len(s.server.heard))
		}
	}
}

func TestStallLosesNothingAndBurstsInOrder(t *testing.T) {
	s := newStand(1)
	s.say(3)
	s.net.cut(0, core.CutBoth, false)
	s.pass(time.Minute)
	if len(s.server.heard) != 0 {
		t.Fatalf("%d messages came through a cut", len(s.server.heard))
	}
	s.say(7)
	s.pass(time.Minute)
	s.net.heal(0)
	s.say(2)
	s.pass(time.Second)
	inOrder(t, s.server.heard)
	if len(s.server.heard) != 12 || s.lost != 0 {
		t.Fatalf("%d of 12 came, %d lost", len(s.server.heard), s.lost)
	}
	if len(s.server.closed) != 0 {
		t.Fatal("a stall closed the connection")
	}
}

func TestOneWayCutStopsOneWay(t *testing.T) {
	s := newStand(2)
	peer := s.net.links[0].peer
	s.net.cut(0, core.CutToServer, false)
	s.say(1)
	var f core.Frames
	f.Append(make([]byte, 8))
	s.net.reply(peer, &f)
	s.pass(time.Second)
	if len(s.server.heard) != 0 || len(s.worker.heard) != 1 {
		t.Fatalf("to the server %d, to the worker %d; want 0 and 1", len(s.server.heard), len(s.worker.heard))
	}
}

// What was in flight when a connection broke is lost, or comes twice where
// ZeroMQ writes it again; a new connection is a new peer; what was said
// meanwhile comes in a burst.
func TestResetLosesWhatIsInFlight(t *testing.T) {
	lost, twice := 0, 0
	for seed := uint64(0); seed < 100; seed++ {
		s := newStand(seed)
		old := s.net.links[0].peer
		s.say(3)
		s.net.cut(0, core.CutBoth, true)
		s.say(4)
		s.pass(time.Minute)
		if got := len(s.server.closed); got != 1 || s.server.closed[0] != old {
			t.Fatalf("seed %d: the server saw %v close, want %d once", seed, s.server.closed, old)
		}
		s.net.heal(0)
		s.pass(10 * time.Second)
		if s.net.links[0].peer == old || s.net.links[0].peer == 0 {
			t.Fatalf("seed %d: peer %d after the reconnect, %d before", seed, s.net.links[0].peer, old)
		}
		count := map[uint64]int{}
		for i, n := range s.server.heard {
			count[n]++
			if count[n] == 2 && s.server.peers[i] == old {
				t.Fatalf("seed %d: message %d came twice on one connection", seed, n)
			}
		}
		for n := uint64(1); n <= 3; n++ {
			switch count[n] {
			case 0:
				lost++
			case 2:
				twice++
			}
		}
		for n := uint64(4); n <= 7; n++ {
			if count[n] != 1 {
				t.Fatalf("seed %d: message %d, said while away, came %d times", seed, n, count[n])
			}
		}
	}
	if lost < 200 || twice == 0 {
		t.Fatalf("of 300 in flight %d were lost and %d came twice", lost, twice)
	}
}

func TestQueueWhileAwayIsBounded(t *testing.T) {
	s := newStand(3)
	s.net.cut(0, core.CutBoth, true)
	s.pass(time.Second)
	s.say(maxQueued + 50)
	if s.lost != 50 {
		t.Fatalf("%d lost over the high-water mark, want 50", s.lost)
	}
	s.net.heal(0)
	s.pass(10 * time.Second)
	if len(s.server.heard) != maxQueued {
		t.Fatalf("%d came in the burst, want %d", len(s.server.heard), maxQueued)
	}
	inOrder(t, s.server.heard)
}

func TestStalledQueueIsBounded(t *testing.T) {
	s := newStand(3)
	s.net.cut(0, core.CutBoth, false)
	s.say(maxQueued + 50)
	if s.lost != 50 {
		t.Fatalf("%d lost over the high-water mark, want 50", s.lost)
	}
}

// A reply towards a connection that is gone is dropped in silence.
func TestReplyToAnOldPeerIsDropped(t *testing.T) {
	s := newStand(4)
	old := s.net.links[0].peer
	s.net.cut(0, core.CutBoth, true)
	s.net.heal(0)
	s.pass(10 * time.Second)
	var f core.Frames
	f.Append(make([]byte, 8))
	s.net.reply(old, &f)
	s.net.reply(999, &f)
	s.pass(time.Second)
	if len(s.worker.heard) != 0 {
		t.Fatal("a reply to an old connection came")
	}
}

// What a worker sent before it was killed still arrives, and then the server's
// host sees the connection close; a lost node says nothing.
func TestDeathIsSeenByTheHostAndNodeLossIsNot(t *testing.T) {
	for _, silent := range []bool{false, true} {
		s := newStand(5)
		s.say(3)
		s.kill(&s.processes[1], silent)
		s.pass(time.Minute)
		if heard := len(s.server.heard); !silent && heard != 3 {
			t.Errorf("%d of 3 messages sent before the kill came", heard)
		}
		if closed := len(s.server.closed); silent == (closed == 1) {
			t.Errorf("silent %v: the server saw %d connections close", silent, closed)
		}
	}
}

// A frozen process finds its messages in order when it wakes, behind or before
// its overdue timers: both orders must be met over the seeds (B3).
func TestFrozenServerFindsMessagesAndTimersInEitherOrder(t *testing.T) {
	first := map[string]bool{}
	for seed := uint64(0); seed < 50; seed++ {
		s := newStand(seed)
		var order []string
		s.processes[0].machine = stepFunc(func(in *core.Input) {
			switch in.Kind {
			case core.InputFrames:
				order = append(order, "message")
			case core.InputTimer:
				order = append(order, "timer")
			}
		})
		s.processes[0].Arm(core.TimerKey{Kind: core.TimerScan}, s.processes[0].Now().Add(time.Second))
		s.processes[0].pause(false)
		s.say(2)
		s.pass(time.Minute)
		if len(order) != 0 {
			t.Fatal("a frozen process did something")
		}
		s.processes[0].resume()
		s.pass(time.Second)
		if len(order) != 3 {
			t.Fatalf("seed %d: %v after the thaw", seed, order)
		}
		first[order[0]] = true
	}
	if !first["message"] || !first["timer"] {
		t.Fatalf("first after the thaw was only ever %v", first)
	}
}

type stepFunc func(*core.Input)

func (f stepFunc) Step(_ core.Time, in *core.Input, _ *core.Effects) { f(in) }

// A freeze leaves the monotonic clock going; a suspended host's clock stands
// still, and so do its timers.
func TestFreezeAndSuspendDiffer(t *testing.T) {
	for _, suspend := range []bool{false, true} {
		s := newStand(6)
		p := &s.processes[1]
		var fired core.Time
		p.machine = stepFunc(func(in *core.Input) { fired = s.now })
		began, now := s.now, p.Now()
		p.Arm(core.TimerKey{Kind: core.TimerRequest}, now.Add(10*time.Second))
		p.pause(suspend)
		s.pass(time.Minute)
		p.resume()
		s.pass(time.Minute)
		elapsed, took := p.Now().Sub(now), fired.Sub(began)
		if !suspend && (elapsed != 2*time.Minute || took > 61*time.Second) {
			t.Errorf("freeze: clock went on %v, timer after %v", elapsed, took)
		}
		if suspend && (elapsed != time.Minute || took < 70*time.Second || took > 71*time.Second) {
			t.Errorf("suspend: clock went on %v, timer after %v", elapsed, took)
		}
	}
}

// Starving the heartbeat thread holds its timers back and no others.
func TestStarvedHeartbeatAlone(t *testing.T) {
	s := newStand(7)
	p := &s.processes[1]
	var fired []core.TimerKind
	p.machine = stepFunc(func(in *core.Input) { fired = append(fired, in.Timer.Kind) })
	p.starve = true
	p.Arm(core.TimerKey{Kind: core.TimerHeartbeat}, p.Now().Add(time.Second))
	p.Arm(core.TimerKey{Kind: core.TimerRequest}, p.Now().Add(2*time.Second))
	s.pass(time.Minute)
	if len(fired) != 1 || fired[0] != core.TimerRequest {
		t.Fatalf("fired while starved: %v", fired)
	}
	p.starve = false
	p.starved = p.release(p.starved)
	s.pass(time.Second)
	if len(fired) != 2 || fired[1] != core.TimerHeartbeat {
		t.Fatalf("fired after: %v", fired)
	}
}

// Moving and taking back timers leaves exactly the last word.
func TestTimersKeepTheLastWord(t *testing.T) {
	s := newStand(8)
	p := &s.processes[1]
	var fired []core.Time
	p.machine = stepFunc(func(*core.Input) { fired = append(fired, p.Now()) })
	key := core.TimerKey{Kind: core.TimerRequest, Slot: 3}
	start := p.Now()
	p.Arm(key, start.Add(10*time.Second))
	p.Arm(key, start.Add(20*time.Second)) // later
	p.Arm(key, start.Add(5*time.Second))  // earlier
	p.Disarm(key)
	p.Arm(key, start.Add(15*time.Second))
	s.pass(time.Minute)
	if len(fired) != 1 || fired[0] != start.Add(15*time.Second) {
		t.Fatalf("fired at %v, want once at %v", fired, start.Add(15*time.Second))
	}
	p.Arm(key, p.Now().Add(time.Second))
	p.Disarm(key)
	s.pass(time.Minute)
	if len(fired) != 1 {
		t.Fatal("a timer that was taken back fired")
	}
}
