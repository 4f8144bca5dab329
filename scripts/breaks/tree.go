package main

// Copies of the tree, and the edits that break them.

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// breakage is one defect that somebody could write.
type breakage struct {
	name  string
	why   string // what the defect is, in the terms of the design document
	edits []edit
	// scenarios names what to run; empty is the whole suite.
	scenarios []string
	// command replaces the whole command line of simrun.
	command []string
	// hardened runs the suite as hardened, for defects of a protection.
	hardened bool
}

// edit replaces one piece of text, which must stand in the file exactly once.
type edit struct{ file, old, new string }

// apply makes the break's edits in a copy of the tree. It fails where a piece
// of text is gone or is not unique: a break that changes nothing, or changes
// another place than meant, would be believed for no reason.
func (b breakage) apply(tree string) error {
	for _, e := range b.edits {
		name := filepath.Join(tree, filepath.FromSlash(e.file))
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("does not apply: %w", err)
		}
		if n := strings.Count(string(text), e.old); n != 1 {
			return fmt.Errorf("does not apply: %s holds this text %d times, want once; bring breaks.go up to date:\n%s", e.file, n, e.old)
		}
		if e.old == e.new {
			return fmt.Errorf("changes nothing in %s", e.file)
		}
		if err := os.WriteFile(name, []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// copied are the kinds of files that a build of simrun reads.
var copied = []string{".s", ".go", ".mod", ".sum", ".yaml", ".yml", ".html", ".css", ".js", ".tmpl", ".txt", ".json"}

// copyTree copies what a build needs from one folder to another.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		switch {
		case e.IsDir() && slices.Contains([]string{".git", "bin", "out"}, e.Name()):
			return fs.SkipDir
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !e.Type().IsRegular() || !slices.Contains(copied, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o644)
	})
}
