package audit

import (
	"io"
	"os"
	"regexp"
	"strconv"

	"vigil/core"
	"vigil/core/loop"
	"vigil/scenarios"
	"vigil/scenarios/run"
	"vigil/sim"
)

// The story of a broken invariant: what the log says of the instance that it
// broke for, up to where it broke.

// MaxStory bounds the lines of one story: the last ones count.
const MaxStory = 20

// StoryLine is one record in words.
type StoryLine struct {
	At    core.Time
	Words string
}

var instanceInMessage = regexp.MustCompile(`instance (\d+)`)

// about is the instance that a message names, 0 for none.
func about(message string) core.InstanceID {
	m := instanceInMessage.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	id, _ := strconv.ParseUint(m[1], 10, 63)
	return core.InstanceID(id)
}

// Story reads the log again and tells the last things that concern what a
// message is about, up to a time.
func Story(path, message string, until core.Time) ([]StoryLine, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return storyOf(f, about(message), until)
}

func storyOf(from io.Reader, id core.InstanceID, until core.Time) ([]StoryLine, error) {
	words := run.NewStory(&scenarios.Scenario{Plan: &sim.Plan{}}, true)
	var lines []StoryLine
	_, err := loop.ReadEvents(from, nil, func(e *loop.Event) error {
		r := &e.Record
		if e.Lost > 0 || r.At > until || id != 0 && r.Instance != 0 && r.Instance != id {
			return nil
		}
		if id != 0 && r.Instance == 0 && r.Kind != core.ServerStarted && r.Kind != core.ServerStopping && r.Kind != core.ServerStopped {
			return nil
		}
		if len(lines) == MaxStory {
			lines = append(lines[:0], lines[1:]...)
		}
		lines = append(lines, StoryLine{r.At, words.WordsOf(r, -1)})
		return nil
	})
	return lines, err
}
