package reports

import (
	"io"
	"strings"
	"testing"
	"time"

	"vigil/core"
)

// tell builds a timeline: a worker serves, is paused, is reaped, and its copy
// touches what is gone, again and again.
func tell(everything bool) *Timeline {
	t := &Timeline{Everything: everything}
	at := func(seconds float64) core.Time { return core.Time(seconds * float64(time.Second)) }
	add := func(seconds float64, r core.Record, who, words string) {
		r.At = at(seconds)
		t.Add(&r, who, words)
	}
	add(0, core.Record{Kind: core.ServerStarted}, "server", "starts")
	add(1, core.Record{Kind: core.WorkerStarted}, "w1", "starts as PID 1")
	for i := range 5 {
		add(float64(10*i+2), core.Record{Kind: core.PingSent}, "w1", "pings")
		add(float64(10*i+3), core.Record{Kind: core.PingAnswered}, "w1", "has its ping answered")
	}
	add(50, core.Record{Kind: core.EngineTold, Flag: true, B: uint64(core.OutcomeStored)}, "world", "store 1 of w1 ended: stored")
	add(60, core.Record{Kind: core.ProcessPaused}, "world", "w1 stands still")
	add(60, core.Record{Kind: core.FaultStruck}, "world", "STEP: pause w1")
	add(200, core.Record{Kind: core.ReapDecided}, "server", "finds the context of w1 silent for more than 120s")
	for i := range 10 {
		add(float64(210+i), core.Record{Kind: core.BlocksWrong}, "world", "WRONG: a retrieve of w1 delivered other bytes than were stored")
	}
	add(300, core.Record{Kind: core.WorldEnded}, "world", "the run ends")
	t.Broke(&Violation{Invariant: "INTEGRITY", AtSeconds: 210, Actors: []string{"w1"}, Message: "w1 was given bytes that it may not have", Verdict: Safety})
	return t
}

func TestTimelineCountsTheEverydayAndTellsTheRest(t *testing.T) {
	golden(t, "timeline-80.txt", render(t, func(w io.Writer) error { return tell(false).Write(w, 80, false) }))
	golden(t, "timeline-everything.txt", render(t, func(w io.Writer) error { return tell(true).Write(w, 0, false) }))

	text := string(render(t, func(w io.Writer) error { return tell(false).Write(w, 0, false) }))
	for _, order := range [][2]string{
		{"STEP: pause w1", "w1 stands still"},           // the cause before what it does
		{"5 pings answered", "STEP: pause w1"},          // what was counted before what came after it
		{"WRONG", "SAFETY: INTEGRITY"},                  // the break after the record that shows it
		{"SAFETY: INTEGRITY", "9 retrieves with wrong"}, // and at its time, not at the end
	} {
		first, second := strings.Index(text, order[0]), strings.Index(text, order[1])
		if first < 0 || second < 0 || first > second {
			t.Errorf("%q does not come before %q:\n%s", order[0], order[1], text)
		}
	}
	if n := strings.Count(text, "WRONG"); n != 1 {
		t.Errorf("the wrong bytes of one worker are told %d times, want once:\n%s", n, text)
	}
}
