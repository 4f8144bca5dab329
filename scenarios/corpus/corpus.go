// Package corpus is the runs that are kept for ever: each was found by a
// search, shrunk, and is played first in every suite.
//
// Contract. A file of this folder is a capsule; its name is its id. Each gives
// its recorded verdict under its recorded protections, and breaks nothing under
// what its `green` line names, whatever changed in the code since. One that
// does not is a finding: either a hole has opened, or one that is documented has
// gone and the capsule with it.
package corpus

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	"vigil/scenarios/capsule"
)

//go:embed *.capsule
var files embed.FS

const (
	ending = ".capsule"
	// Prefix stands before the names of the capsules that come with vigil.
	Prefix = "corpus/"
	// MaxCapsules bounds a folder.
	MaxCapsules = 10_000
)

// Entry is one capsule of a corpus.
type Entry struct {
	Name string // the file's, without its ending
	Path string // what replays it: a path, or Prefix and the name
	*capsule.Capsule
}

var builtin struct {
	once sync.Once
	all  []Entry
	err  error
}

// Builtin returns the corpus that comes with vigil, in the order of names. An
// error is a defect of the program; a test sees it.
func Builtin() ([]Entry, error) {
	builtin.once.Do(func() {
		list, err := files.ReadDir(".")
		if err != nil {
			builtin.err = err
			return
		}
		for _, e := range list {
			text, err := files.ReadFile(e.Name())
			if err == nil {
				var c *capsule.Capsule
				if c, err = capsule.Parse("scenarios/corpus/"+e.Name(), text); err == nil {
					name := strings.TrimSuffix(e.Name(), ending)
					builtin.all = append(builtin.all, Entry{name, Prefix + name, c})
				}
			}
			builtin.err = errors.Join(builtin.err, err)
		}
	})
	return builtin.all, builtin.err
}

// Named returns the capsule of that name that comes with vigil; false where
// there is none.
func Named(name string) (*capsule.Capsule, bool) {
	all, _ := Builtin()
	for _, e := range all {
		if e.Name == name {
			return e.Capsule, true
		}
	}
	return nil, false
}

// Names lists the capsules that come with vigil.
func Names() []string {
	all, _ := Builtin()
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}

// Load returns the capsules of a folder in the order of their names. A file
// that cannot be read is an error: a corpus with a hole in it proves less than
// it seems to.
func Load(dir string) ([]Entry, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range list {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ending) {
			names = append(names, e.Name())
		}
	}
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("%s holds no capsule (%s)", dir, ending)
	case len(names) > MaxCapsules:
		return nil, fmt.Errorf("%s holds %d capsules; %d is the limit", dir, len(names), MaxCapsules)
	}
	sort.Strings(names)
	all := make([]Entry, 0, len(names))
	for _, name := range names {
		path := filepath.Join(dir, name)
		c, err := capsule.Read(path)
		if err != nil {
			return nil, err
		}
		all = append(all, Entry{strings.TrimSuffix(name, ending), path, c})
	}
	return all, nil
}
