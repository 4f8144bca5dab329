// Package sources copies the project's sources, so that a tool can change the copy
// and build it.
package sources

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// copied are the kinds of files that a build of simrun reads.
var copied = []string{".go", ".s", ".mod", ".sum", ".yaml", ".yml", ".html", ".css", ".js", ".tmpl", ".txt", ".json", ".capsule"}

// Copy copies what a build needs from one folder to another.
func Copy(from, to string) error {
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
