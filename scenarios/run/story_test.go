package run

import (
	"strings"
	"testing"

	"vigil/core"
	"vigil/scenarios"
)

// The point of A8: the successor's register finds the dead worker's context.
// A story that says "has w2 already" hides it.
func TestTheStorySaysWhoseContextARegisterFound(t *testing.T) {
	found, err := scenarios.Find("A8/pid")
	if err != nil {
		t.Fatal(err)
	}
	story, _ := NewPlayer("document", core.Document()).Tell(found[0], 0, true)
	for i := range story.Lines {
		if l := &story.Lines[i]; l.Record.Kind == core.RegisterNoop {
			if !strings.Contains(l.Words, "finds id 1 registered already: the context of w1, which is dead") {
				t.Errorf("it says: %s", l.Words)
			}
			return
		}
	}
	t.Error("no register found a context")
}
