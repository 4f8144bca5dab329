package faults

import (
	"testing"
	"time"

	"vigil/core"
)

// Every fault can be named in a file, listed, and read about.
func TestEveryFaultIsDescribed(t *testing.T) {
	seen := map[string]bool{}
	for k := None + 1; k < Kinds; k++ {
		d, ok := Describe(k)
		if !ok || d.Kind != k {
			t.Fatalf("fault %d has no row of its own in the table", k)
		}
		if d.Name == "" || d.Brief == "" || d.Simulator == "" || d.Real == "" {
			t.Errorf("%s: a column is empty: %+v", k, d)
		}
		if seen[d.Name] {
			t.Errorf("two faults are called %s", d.Name)
		}
		seen[d.Name] = true
		if back, ok := Named(d.Name); !ok || back.Kind != k {
			t.Errorf("%s does not lead back to its own row", d.Name)
		}
		keys := map[string]bool{"worker": true} // the key of the target
		for _, p := range d.Params {
			if keys[p.Name] {
				t.Errorf("%s has the parameter %s twice, or it hides the target", d.Name, p.Name)
			}
			keys[p.Name] = true
			if p.Unit == "" || p.Meaning == "" {
				t.Errorf("%s: parameter %s has no unit or no meaning", d.Name, p.Name)
			}
		}
	}
	if got := len(Names()); got != int(Kinds)-1 {
		t.Errorf("Names lists %d of %d faults", got, Kinds-1)
	}
	if _, ok := Describe(None); ok {
		t.Error("None is described as a fault")
	}
	if _, ok := Named("kil"); ok {
		t.Error("an unknown name is found")
	}
}

// A parameter leads to the field that it says it sets.
func TestParametersSetTheirFields(t *testing.T) {
	var f Fault
	slow, _ := Named("slow-open")
	p, ok := slow.Param("by")
	if !ok {
		t.Fatal("slow-open lost its parameter by")
	}
	*p.Span(&f) = Fixed(time.Second)
	kill, _ := Named("kill")
	p, _ = kill.Param("silent")
	*p.Switch(&f) = true
	if f.Amount != Fixed(time.Second) || !f.Silent {
		t.Errorf("the parameters set %+v", f)
	}
	if int(core.CutToWorker) >= len(WaysWords) || WaysWords[core.CutToServer] != "to-server" {
		t.Error("the words of a cut's ways do not follow core.CutWays")
	}
}
