package scenarios

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// withoutPlaces is a scenario less where its lines stand and what it says of
// real processes: what a written file must bring back.
func withoutPlaces(s *Scenario) *Scenario {
	c := *s
	c.File, c.Real = "", nil
	c.Steps = append([]StepNote(nil), s.Steps...)
	for i := range c.Steps {
		c.Steps[i].Line = 0
	}
	c.Expect = append([]Expectation(nil), s.Expect...)
	for i := range c.Expect {
		c.Expect[i].Line = 0
	}
	c.Breaks = append([]Break(nil), s.Breaks...)
	for i := range c.Breaks {
		c.Breaks[i].Line = 0
	}
	c.Covers = append([]Cover(nil), s.Covers...)
	for i := range c.Covers {
		c.Covers[i].Line = 0
	}
	return &c
}

// sameAgain writes a scenario, reads it back and says what is not the same.
func sameAgain(t interface {
	Helper()
	Fatalf(string, ...any)
}, s *Scenario) []byte {
	t.Helper()
	text := Write(s)
	back, err := Parse("written.yaml", text)
	if err != nil {
		t.Fatalf("%s: what was written does not load: %v\n%s", s.ID, err, text)
	}
	if len(back) != 1 {
		t.Fatalf("%s: %d scenarios came back", s.ID, len(back))
	}
	want, got := reflect.ValueOf(withoutPlaces(s)).Elem(), reflect.ValueOf(withoutPlaces(back[0])).Elem()
	for i := range want.NumField() {
		if a, b := want.Field(i).Interface(), got.Field(i).Interface(); !reflect.DeepEqual(a, b) {
			t.Fatalf("%s: %s is another:\nwas %+v\nis  %+v\n%s", s.ID, want.Type().Field(i).Name, a, b, text)
		}
	}
	if again := Write(back[0]); string(again) != string(text) {
		t.Fatalf("%s: written twice it is another file:\n%s\n%s", s.ID, text, again)
	}
	return text
}

// A shrunk counterexample, a drawn world and a built-in story all become files
// by the same writer: the built-in ones show that it knows the whole format.
func TestEveryBuiltinScenarioIsWrittenAndReadBack(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		sameAgain(t, s)
	}
}

// Texts are written by people: whatever they hold comes back.
func TestTitlesAndStoriesOfAnyTextComeBack(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := *rapid.SampledFrom(all).Draw(t, "scenario")
		line := rapid.StringMatching(`[!-~]([ -~]{0,60}[!-~])?`)
		s.Title = line.Draw(t, "title")
		s.Story = line.Draw(t, "first") + "\n" + line.Draw(t, "second") + "\n\n    " + line.Draw(t, "last")
		sameAgain(t, &s)
	})
}
