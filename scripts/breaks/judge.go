package main

// What simrun's answer says about a break: red for the right reason, or not.

import (
	"encoding/json"
	"fmt"
	"strings"
)

// outcome is what one run of simrun showed.
type outcome struct {
	red   bool
	exit  int
	where string // which scenario broke which invariant
}

func (o outcome) words(err error) string {
	switch {
	case err != nil:
		return "did not run: " + err.Error()
	case o.red:
		return "caught by " + o.where
	}
	return "NOT caught"
}

// caughtBy are the exit codes that mean that a defect of the code was found.
// Not every failure does: 1 is a usage error and 2 a crash of simrun itself,
// and with either the suite has found nothing.
var caughtBy = map[int]string{
	10: "a safety invariant", 11: "a liveness invariant", 12: "non-determinism", 13: "a panic of the core",
	15: "a declared fault or expectation that never took place",
}

// judge reads simrun's exit code and, where there is one, its JSON report.
func judge(exit int, report, output []byte) (outcome, error) {
	if exit == 0 {
		return outcome{}, nil
	}
	kind := caughtBy[exit]
	if kind == "" {
		return outcome{}, fmt.Errorf("simrun exited %d, which says nothing about the core:\n%s", exit, tail(output, 20))
	}
	found := outcome{red: true, exit: exit, where: kind}
	if len(report) == 0 {
		return found, nil
	}
	var suite struct {
		Scenarios []struct {
			Name, ID, Verdict, Expected string
			Violations                  []struct{ Invariant, Message string }
		}
	}
	if err := json.Unmarshal(report, &suite); err != nil {
		return outcome{}, fmt.Errorf("simrun's report: %w", err)
	}
	var places []string
	for _, s := range suite.Scenarios {
		if s.Verdict == "pass" {
			continue
		}
		name, what := s.ID, s.Verdict
		if name == "" {
			name = s.Name
		}
		for _, v := range s.Violations {
			if v.Invariant != "" && !strings.Contains(s.Expected, v.Invariant) {
				what = v.Invariant
				break
			}
		}
		places = append(places, name+" "+what)
	}
	if len(places) == 0 {
		return outcome{}, fmt.Errorf("simrun exited %d, but its report has no scenario that failed", exit)
	}
	found.where = strings.Join(places, ", ")
	if len(places) > mostPlaces {
		found.where = fmt.Sprintf("%s and %d more", strings.Join(places[:mostPlaces], ", "), len(places)-mostPlaces)
	}
	return found, nil
}

// mostPlaces is how many of the scenarios that went red a row names.
const mostPlaces = 5

// tail is the last lines of an output.
func tail(output []byte, lines int) string {
	all := strings.Split(strings.TrimRight(string(output), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
