package main

// Copies of the tree, and the edits that break them.

import (
	"fmt"
	"os"
	"path/filepath"
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
