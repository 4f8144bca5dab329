package run

import (
	"context"
	"testing"

	"vigil/core"
	"vigil/scenarios"
)

// Every story of the design document comes out as its file declares.
func TestTheSuiteUnderTheDocument(t *testing.T) {
	list, err := scenarios.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	out, err := Suite(context.Background(), list, Options{Design: "document", Protections: core.Document(), Count: 24})
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		o := &out[i]
		if o.Verdict == Pass {
			continue
		}
		t.Errorf("%s %s: %s (%d of %d runs), expected %s", o.ID, o.Name, o.Verdict, o.Violated, o.Runs, o.Expected)
		for k := range o.Violations {
			if v := &o.Violations[k]; !v.Declared {
				t.Logf("  seed %d at %s: %s %v: %s", v.Seed, scenarios.Seconds(v.At.Sub(0)), v.Invariant, v.Actors, v.Message)
			}
		}
	}
}
