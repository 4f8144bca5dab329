package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"vigil/scenarios"
)

// selected is a scenario to run.
type selected struct {
	*scenarios.Scenario
	builtin bool
}

// choose reads the arguments of run: names of built-in scenarios, files and
// folders; none is the whole suite. What is written with a slash or a file's
// ending is a path, all else is a name: a file in the working folder can never
// shadow a scenario.
func choose(cmd *cobra.Command, args []string) ([]selected, error) {
	if len(args) == 0 {
		suite, err := scenarios.Builtin()
		return asBuiltin(nil, suite), err
	}
	var list []selected
	bad := &badFiles{}
	for _, arg := range args {
		// Names of variants hold a slash too: what is a scenario is none else.
		if found, err := scenarios.Find(arg); err == nil {
			list = asBuiltin(list, found)
			continue
		} else if !isPath(arg) {
			return nil, nearestName(cmd, arg, err)
		}
		own, err := loadPath(arg)
		var some *badFiles
		switch {
		case errors.As(err, &some) && len(own) > 0:
			bad.lines = append(bad.lines, some.lines...)
		case err != nil:
			return nil, err
		}
		list = append(list, own...)
	}
	list, err := once(list)
	if err == nil && len(bad.lines) > 0 {
		err = bad
	}
	return list, err
}

// badFiles is the error of a folder whose files could not all be read. What
// could be read stands beside it: who runs a folder for an hour wants to know
// of a slip in one file and of everything else.
type badFiles struct{ lines []string }

func (b *badFiles) Error() string { return strings.Join(b.lines, "; ") }

func isPath(arg string) bool {
	if strings.ContainsRune(arg, os.PathSeparator) || isScenarioFile(arg) || arg == "." || arg == ".." {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && info.IsDir()
}

func isScenarioFile(path string) bool {
	ext := filepath.Ext(path)
	return ext == ".yaml" || ext == ".yml"
}

func asBuiltin(list []selected, found []*scenarios.Scenario) []selected {
	for _, s := range found {
		list = append(list, selected{s, true})
	}
	return list
}

// nearestName says what a word that names no scenario may have meant: a
// command, where one is as near.
func nearestName(cmd *cobra.Command, arg string, err error) error {
	if near, ok := scenarios.Nearest(arg, commandNames(cmd)); ok && len(arg) > 3 {
		return fmt.Errorf("there is no scenario and no command %q; did you mean the command %q?", arg, near)
	}
	return err
}

// loadPath reads a file, or every scenario file of a folder in the order of
// their names. In a folder, worlds to measure are left out, and a file that
// cannot be read makes the error a *badFiles, beside the others' scenarios.
func loadPath(path string) ([]selected, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("there is no scenario and no file %s", path)
	}
	files := []string{path}
	if info.IsDir() {
		files = nil
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !e.IsDir() && isScenarioFile(e.Name()) {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%s holds no scenario file (.yaml)", path)
		}
		sort.Strings(files)
	}
	var list []selected
	bad := &badFiles{}
	worlds := 0
	for _, file := range files {
		some, err := scenarios.Load(file)
		switch {
		case err != nil && !info.IsDir():
			return nil, err
		case err != nil:
			bad.lines = append(bad.lines, err.Error())
		}
		for _, s := range some {
			if s.World && info.IsDir() {
				worlds++ // simrun bench measures it; nobody asked for it by name
				continue
			}
			list = append(list, selected{s, false})
		}
	}
	if len(bad.lines) > 0 {
		return list, bad
	}
	if len(list) == 0 && worlds > 0 {
		return nil, fmt.Errorf("%s holds worlds to measure only, and no scenario to judge (simrun bench measures)", path)
	}
	return list, nil
}

// once drops what was named twice and refuses two different scenarios of one
// id, whose results could not be told apart.
func once(list []selected) ([]selected, error) {
	seen := map[string]selected{}
	var kept []selected
	for _, s := range list {
		if s.World {
			return nil, fmt.Errorf("%s is a world to measure, not a scenario to judge (simrun bench measures)", s.ID)
		}
		before, twice := seen[s.ID]
		switch {
		case !twice:
			seen[s.ID] = s
			kept = append(kept, s)
		case before.File != s.File:
			return nil, fmt.Errorf("%s and %s both have a scenario of id %s: give one of them another id", before.File, s.File, s.ID)
		}
	}
	return kept, nil
}
