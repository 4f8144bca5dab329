package reports

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"vigil/core"
)

func storyDiagram() *Diagram {
	s := func(v float64) core.Time { return core.Time(v * 1e9) }
	return &Diagram{
		Lanes: []string{"server", "w1"},
		Rows: []DiagramRow{
			{At: 0, Lane: 0, To: -1, Words: "starts", Becomes: LaneAlive},
			{At: s(1), Lane: 1, To: -1, Words: "starts as PID 1", Becomes: LaneAlive},
			{At: s(2), Lane: 1, To: 0, Label: "register"},
			{At: s(2.1), Lane: 0, To: -1, Words: "serves w1 from now on: server-driven context (incarnation 1), 1572864 bytes"},
			{At: s(95), Lane: 0, To: 1, Label: "ping: yes", Summary: "8 pings answered"},
			{At: s(96), Lane: -1, To: -1, Words: "STEP: pause w1"},
			{At: s(96), Lane: 1, To: -1, Words: "stands still", Becomes: LaneStill},
			{At: s(110), Lane: 1, To: 0, Label: "ping", Lost: true},
			{At: s(120), Lane: 1, To: -1, Words: "is killed", Becomes: LaneAbsent},
			{At: s(240), Lane: 0, To: -1, Words: "reaps w1"},
			{At: s(241), Lane: -1, To: -1, Words: "CONVERGE: w1 has no context", Broke: true},
		},
	}
}

func TestDiagram(t *testing.T) {
	var b bytes.Buffer
	if err := storyDiagram().Write(&b, 80, false); err != nil {
		t.Fatal(err)
	}
	golden(t, "diagram.txt", b.Bytes())
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("a line has %d columns: %s", n, line)
		}
	}
}
