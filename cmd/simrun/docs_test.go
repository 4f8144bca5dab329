package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"vigil/scenarios"
)

// Why this file: what the pages tell people to type must be what this program
// takes. A renamed flag or scenario would otherwise be found by a newcomer.

// shownCall matches a call of simrun in a block or a span of code.
var shownCall = regexp.MustCompile("(?m)(?:^\\$ |^|[`] ?)(?:bin/|go run \\./cmd/)?simrun((?: [^`\\n]*)?)")

// scenarioID matches what can only be meant as a built-in scenario.
var scenarioID = regexp.MustCompile(`^[AB][0-9]+(/[a-z-]+)?$`)

func TestThePagesNameWhatExists(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	calls := 0
	for _, path := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shownCall.FindAllStringSubmatch(withoutPlans(string(text)), -1) {
			if complaint := callComplaint(m[1]); complaint != "" {
				t.Errorf("%s shows simrun%s: %s", path, m[1], complaint)
			}
			calls++
		}
	}
	if calls < 30 {
		t.Errorf("only %d calls were found in the pages", calls)
	}
}

// withoutPlans leaves out what a page says is not there yet.
func withoutPlans(text string) string {
	before, plans, found := strings.Cut(text, "## What is not there yet")
	if !found {
		return text
	}
	_, after, _ := strings.Cut(plans, "\n## ")
	return before + after
}

// callComplaint says what is wrong with a call as a page shows it; "" where
// nothing is. Words in brackets or capitals stand for something else.
func callComplaint(text string) string {
	text, _, _ = strings.Cut(text, "#")
	text, _, _ = strings.Cut(text, " > ")
	text, _, _ = strings.Cut(text, " | ")
	text, _, _ = strings.Cut(text, " && ")
	text = strings.NewReplacer(`\|`, "|", `"`, "", `'`, "").Replace(text)
	var args []string
	for _, word := range strings.Fields(text) {
		if !strings.ContainsAny(word, "[]…") {
			args = append(args, word)
		}
	}
	root := newRoot(&streams{})
	args = withDefault(root, args)
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err.Error()
	}
	for _, arg := range rest {
		name, _, _ := strings.Cut(arg, "=")
		flag := strings.TrimLeft(name, "-")
		switch {
		case strings.HasPrefix(name, "--") && flag != "":
			if cmd.Flags().Lookup(flag) == nil && cmd.InheritedFlags().Lookup(flag) == nil && flag != "help" && flag != "version" {
				return cmd.Name() + " has no flag " + name
			}
		case scenarioID.MatchString(arg):
			if _, err := scenarios.Find(arg); err != nil {
				return err.Error()
			}
		}
	}
	return ""
}

func TestAPageThatNamesNothingIsCaught(t *testing.T) {
	for call, wrong := range map[string]bool{
		"":                             false,
		" run A1 --seeds 5 --for 3s":   false,
		" A8/pid -v --design document": false,
		" list [scenarios|faults]":     false,
		" run --json - -q | jq .x":     false,
		" run A1 --sedes 5":            true,
		" run A99":                     true,
		" doctor --real bin/server":    true,
		" A8/nobody -v":                true,
	} {
		if got := callComplaint(call) != ""; got != wrong {
			t.Errorf("simrun%s: %q", call, callComplaint(call))
		}
	}
}
