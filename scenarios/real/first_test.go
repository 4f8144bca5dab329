package real

import (
	"context"
	"os"
	"testing"

	"vigil/core"
	"vigil/scenarios"
)

func TestFirst(t *testing.T) {
	path := os.Getenv("VIGIL_SERVER")
	if path == "" {
		t.Skip("no server")
	}
	list, err := scenarios.Find(os.Getenv("VIGIL_SCENARIO"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := Suite(context.Background(), list, Options{Server: path, Scale: 60, Design: "document", Protections: core.Document(), Jobs: 4, Keep: os.Getenv("VIGIL_KEEP")})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out {
		t.Logf("%s %s %s records %d wall %s stalled %s left %v folder %s", o.Scenario.ID, o.Verdict, o.Skipped, o.Records, o.Wall, o.Stalled, o.Left, o.Folder)
		for _, v := range o.Violations {
			t.Logf("   %s %v declared=%v %s", v.Invariant, v.At.Sub(0), v.Declared, v.Message)
		}
		t.Logf("   undecided %v notes %q", o.Undecided, o.Notes)
	}
}
