package audit

import (
	"strings"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/loop"
	"vigil/core/wire"
	"vigil/faults"
	"vigil/scenarios"
	"vigil/sim"
)

// feed shows an outline the messages of a life.
type feed struct {
	o   *Outline
	seg loop.Segment
	out core.Effects
}

func (f *feed) at(s float64, r wire.Request) {
	f.out.Reset()
	in := loop.Recorded{Now: core.Time(s * 1e9), Input: core.Input{Kind: core.InputFrames, Decoded: &r}}
	f.o.Step(&f.seg, &in, &f.out)
}

// A recording in which one worker leaves, one falls silent for a while and one
// for good becomes a story that says so, and that the strict loader takes.
func TestARecordingBecomesAScenario(t *testing.T) {
	f := &feed{o: NewOutline(), seg: loop.Segment{Head: loop.SegmentHead{Life: 1, TimeScale: 1}}}
	for i, id := range []core.InstanceID{11, 22, 33} {
		f.at(float64(i+1), wire.Request{Type: wire.RegisterKVCache, Instance: id, Model: []byte("llama \"3\""), WorldSize: 1})
	}
	f.at(4, wire.Request{Type: wire.RegisterRope, Instance: 11})
	for s := 10.0; s <= 300; s += 10 {
		f.at(s, wire.Request{Type: wire.Ping, NoInstance: true})
		if s <= 200 {
			f.at(s+1, wire.Request{Type: wire.Ping, Instance: 11})
		}
		if s < 100 || s > 180 {
			f.at(s+2, wire.Request{Type: wire.Ping, Instance: 22})
		}
		if s <= 60 {
			f.at(s+3, wire.Request{Type: wire.Ping, Instance: 33})
			f.at(s+4, wire.Request{Type: wire.Store, Instance: 33})
		}
	}
	f.at(205, wire.Request{Type: wire.UnregisterKVCache, Instance: 11})
	text, err := f.o.Scenario("REC", "a test")
	if err != nil {
		t.Fatal(err)
	}
	list, err := scenarios.Parse("rec.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p := list[0].Plan
	if len(p.Workers) != 4 || !p.Workers[0].Config.Blend || !p.Workers[3].Config.Prober || p.Workers[0].Config.Interval != 10*time.Second {
		t.Errorf("the workers are not those of the recording:\n%s", text)
	}
	if p.Workers[2].Traffic.Every.Low != 10*time.Second {
		t.Errorf("w3's rhythm is %v", p.Workers[2].Traffic)
	}
	type step struct {
		worker int
		what   string
	}
	var got []step
	for i := range p.Steps {
		do := &p.Steps[i].Do
		what := list[0].Steps[i].Verb
		if do.Kind == sim.ActFault && do.Fault.Kind == faults.Pause && do.Fault.For.Low < 90*time.Second {
			t.Errorf("the silence lasts %s", do.Fault.For.Low)
		}
		got = append(got, step{do.Worker, what})
	}
	want := []step{{2, "kill"}, {1, "pause"}, {0, "shutdown"}}
	if len(got) != len(want) {
		t.Fatalf("steps %v\n%s", got, text)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("step %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func TestARecordingOfNobodyIsNoStory(t *testing.T) {
	if _, err := NewOutline().Scenario("REC", "nothing"); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}
