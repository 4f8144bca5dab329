package run

import (
	"strings"
	"testing"
	"time"

	"vigil/core"
	"vigil/scenarios"
)

// tape writes records by hand, as a world would.
type tape struct{ j *Judge }

func (t tape) at(seconds int64, actor core.Actor, kind core.RecordKind, id core.InstanceID, a, b uint64) {
	t.j.Observe(&core.Record{
		At: core.Time(seconds * int64(time.Second)), Actor: actor, Kind: kind, Instance: id, A: a, B: b, Context: core.ServerDriven,
	})
}

const (
	w1 = core.FirstWorker
	w2 = core.FirstWorker + 1
)

// judged plays records against one expectation and returns what was found.
func judged(t *testing.T, expect string, play func(tape)) string {
	t.Helper()
	list := story(t, strings.Replace(quiet, "  w1:", "  w2: {}\n  w1:", 1)+"expect:\n  - "+expect+"\n")
	s := list[0]
	// The file names w2 first; the tests count from w1.
	s.Plan.Workers[0], s.Plan.Workers[1] = s.Plan.Workers[1], s.Plan.Workers[0]
	for i := range s.Expect {
		for _, who := range []*scenarios.Who{&s.Expect[i].Who, &s.Expect[i].Match.Who, &s.Expect[i].From.Who, &s.Expect[i].By.Who} {
			if who.Worker >= 0 {
				who.Worker = 1 - who.Worker
			}
		}
	}
	j := NewJudge(s, "document", core.Document())
	var found string
	for range 2 { // the second time sees that Reset forgets the first
		j.Reset()
		play(tape{j})
		j.Finish(core.Time(s.Plan.Until))
		var b strings.Builder
		for _, f := range j.findings {
			if f.missed {
				b.WriteString("missed: ")
			}
			b.WriteString(f.text + "\n")
		}
		if found != "" && found != b.String() {
			t.Errorf("the second time it found %q, the first %q", b.String(), found)
		}
		found = b.String()
	}
	return strings.TrimSpace(found)
}

func serve(t tape, worker core.Actor, id core.InstanceID, from int64) {
	t.at(from, worker, core.WorkerStarted, id, 1, 0)
	t.at(from, core.ActorServer, core.RegisterArrived, id, 0, 0)
	t.at(from+1, core.ActorServer, core.ContextInserted, id, 1, 64)
	t.at(from+1, core.ActorServer, core.Stamped, id, 0, uint64(core.StampRegister))
	t.at(from+1, core.ActorWorld, core.MappingOpened, id, 1, 64)
}

func reap(t tape, id core.InstanceID, at int64) {
	t.at(at, core.ActorServer, core.ContextRemoved, id, uint64(core.RemovedByReaper), 1)
	t.at(at, core.ActorWorld, core.MappingClosed, id, 1, 64)
}

// A reap is measured from its anchor, and the ends of the window count as written.
func TestAReapIsMeasuredFromItsAnchor(t *testing.T) {
	for _, c := range []struct {
		after  string
		at     int64
		window string
		want   string
	}{
		{"last-stamp", 180, "(reap, reap + scan]", "w1 was reaped 120s after its last-stamp; within (120s, 150s] is expected"},
		{"last-stamp", 181, "(reap, reap + scan]", ""},
		{"last-stamp", 210, "(reap, reap + scan]", ""},
		{"last-stamp", 211, "(reap, reap + scan]", "w1 was reaped 151s after its last-stamp; within (120s, 150s] is expected"},
		{"register", 130, "[120s, 120s]", ""}, // from the register's arrival, not from its insertion
		{"death", 171, "[100s, 100s]", ""},
	} {
		got := judged(t, `reaped: {worker: w1, after: `+c.after+`, within: "`+c.window+`"}`, func(tp tape) {
			serve(tp, w1, 7, 10)
			tp.at(60, core.ActorServer, core.Stamped, 7, 0, uint64(core.StampPing))
			tp.at(71, core.ActorWorld, core.ProcessKilled, 7, 1, 0)
			reap(tp, 7, c.at)
		})
		if got != c.want {
			t.Errorf("after %s at %d: %q, want %q", c.after, c.at, got, c.want)
		}
	}
}

// A restarted worker's lives are told apart, also where they share an id.
func TestLivesAreToldApart(t *testing.T) {
	play := func(tp tape) {
		serve(tp, w1, 7, 10)
		tp.at(50, core.ActorWorld, core.ProcessKilled, 7, 1, 0)
		serve(tp, w1, 8, 60)
		reap(tp, 7, 200)
	}
	for expect, want := range map[string]string{
		`reaped: "w1#1"`:     "",
		`not-reaped: "w1#2"`: "",
		`reaped: "w1#2"`:     "missed: w1 was reaped 0 times, 1 are expected",
		`holds: {worker: "w1#1", contexts: 0, bytes: 0}`:                    "",
		`holds: {worker: "w1#2", contexts: 1, bytes: 64}`:                   "",
		`holds: {worker: w1, contexts: 2, at: 100s}`:                        "",
		`holds: {worker: w1, contexts: 2, at: 100s..199s}`:                  "",
		`holds: {worker: w1, contexts: 2, at: 100s..210s}`:                  "w1 has 1 contexts at 200s; 2 are expected",
		`holds: {worker: w1, mappings: 1, when: {record: context-removed}}`: "",
	} {
		if got := judged(t, expect, play); got != want {
			t.Errorf("%s: %q, want %q", expect, got, want)
		}
	}
}

// A server that dies holds nothing any more.
func TestADeadServerHoldsNothing(t *testing.T) {
	got := judged(t, `holds: {worker: w1, contexts: 0, mappings: 0, bytes: 0}`, func(tp tape) {
		serve(tp, w1, 7, 10)
		tp.at(100, core.ActorWorld, core.ProcessKilled, 0, 0, 0)
	})
	if got != "" {
		t.Error(got)
	}
}

// What a server still had when it stopped is judged before it is gone.
func TestAStateIsJudgedBeforeItsProcessGoes(t *testing.T) {
	got := judged(t, `holds: {worker: w1, contexts: 0, when: {record: server-stopped}}`, func(tp tape) {
		serve(tp, w1, 7, 10)
		tp.at(100, core.ActorServer, core.ServerStopped, 0, 1, 64)
		tp.at(100, core.ActorWorld, core.ProcessExited, 0, 0, 0)
	})
	if got != "w1 has 1 contexts at 100s; 0 are expected" {
		t.Errorf("%q", got)
	}
}

// Each request ends once; those of the dead are nobody's.
func TestRequestsEndOnce(t *testing.T) {
	submit := func(tp tape, at int64, id uint64, worker uint64) {
		tp.at(at, core.ActorWorld, core.EngineSubmitted, core.InstanceID(6+worker), id, worker)
	}
	told := func(tp tape, at int64, id uint64, worker uint64, o core.Outcome) {
		tp.at(at, core.ActorWorld, core.EngineTold, core.InstanceID(6+worker), id, uint64(o))
	}
	for _, c := range []struct {
		name, expect, want string
		play               func(tape)
	}{
		{"both ended", "ended: w1", "", func(tp tape) {
			submit(tp, 20, 1, 1)
			told(tp, 25, 1, 1, core.OutcomeStored)
			submit(tp, 30, 2, 1)
			told(tp, 31, 2, 1, core.OutcomeMissed)
		}},
		{"told twice", "ended: w1", "w1 was told twice of its request 1", func(tp tape) {
			submit(tp, 20, 1, 1)
			told(tp, 25, 1, 1, core.OutcomeStored)
			told(tp, 26, 1, 1, core.OutcomeStored)
		}},
		{"never told", "ended: w1", "missed: w1 was never told of its request 2, submitted at 30s", func(tp tape) {
			submit(tp, 20, 1, 1)
			told(tp, 25, 1, 1, core.OutcomeStored)
			submit(tp, 30, 2, 1)
		}},
		{"not owed yet", `ended: {worker: w1, within: "[0s, 20s]"}`, "", func(tp tape) {
			submit(tp, 20, 1, 1)
			told(tp, 25, 1, 1, core.OutcomeStored)
			submit(tp, 290, 2, 1)
		}},
		{"dead", "ended: w1", "", func(tp tape) {
			submit(tp, 20, 1, 1)
			told(tp, 25, 1, 1, core.OutcomeStored)
			submit(tp, 30, 2, 1)
			tp.at(31, core.ActorWorld, core.ProcessKilled, 7, 1, 0)
		}},
		{"the other's", "ended: w1", "missed: w1 had requests that ended 0 times, 1.. are expected", func(tp tape) {
			submit(tp, 20, 1, 2)
			told(tp, 25, 1, 2, core.OutcomeStored)
		}},
		{"among", "ended: {worker: w1, among: [dropped, failed]}", "w1: request 1 ended as loaded, which is not expected", func(tp tape) {
			submit(tp, 20, 1, 1)
			told(tp, 25, 1, 1, core.OutcomeLoaded)
		}},
	} {
		if got := judged(t, c.expect, func(tp tape) {
			tp.at(1, w1, core.WorkerStarted, 7, 1, 0)
			tp.at(1, w2, core.WorkerStarted, 8, 1, 0)
			c.play(tp)
		}); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Judging costs nothing at steady state.
func TestJudgingAllocatesNothing(t *testing.T) {
	list, err := scenarios.Find("A6/stall")
	if err != nil {
		t.Fatal(err)
	}
	st, _ := NewPlayer("document", core.Document()).Tell(list[0], 1, true)
	j := NewJudge(list[0], "document", core.Document())
	all := testing.AllocsPerRun(3, func() {
		j.Reset()
		for i := range st.Lines {
			j.Observe(&st.Lines[i].Record)
		}
		j.Finish(core.Time(list[0].Plan.Until))
	})
	if all > 0 {
		t.Errorf("%.0f allocations over %d records", all, len(st.Lines))
	}
}
