package scenarios

import (
	"embed"
	"fmt"
	"path"
	"strings"
	"sync"
)

//go:embed files/*.yaml
var files embed.FS

// filesFolder is where the files lie in the source tree: a position in one of
// them can be opened from there.
const filesFolder = "scenarios/files"

var builtin struct {
	once sync.Once
	all  []*Scenario
	err  error
}

// All returns every scenario that comes with vigil, suite and worlds, in the
// order of their files. An error is a defect of the program; a test sees it.
func All() ([]*Scenario, error) {
	builtin.once.Do(func() {
		entries, err := files.ReadDir("files")
		if err != nil {
			builtin.err = err
			return
		}
		for _, e := range entries {
			data, err := files.ReadFile(path.Join("files", e.Name()))
			if err != nil {
				builtin.err = err
				return
			}
			some, err := Parse(path.Join(filesFolder, e.Name()), data)
			if err != nil {
				builtin.err = err
				return
			}
			builtin.all = append(builtin.all, some...)
		}
	})
	return builtin.all, builtin.err
}

// Builtin returns the suite: the scenarios that are judged, without the worlds
// that are only measured and the searches through random worlds.
func Builtin() ([]*Scenario, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	var suite []*Scenario
	for _, s := range all {
		if !s.World && s.Random == "" {
			suite = append(suite, s)
		}
	}
	return suite, nil
}

// Source returns the text of a built-in scenario's file.
func Source(file string) ([]byte, error) { return files.ReadFile(path.Join("files", path.Base(file))) }

// Find returns the built-in scenarios of those names, each once, in the order
// asked for. A name is an id or a long name, with its variant or without: "A8",
// "a8/pid", "pid-reuse"; or a file's name.
func Find(names ...string) ([]*Scenario, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	var found []*Scenario
	seen := map[*Scenario]bool{}
	for _, name := range names {
		hit := false
		for _, s := range all {
			if !s.Called(name) {
				continue
			}
			hit = true
			if !seen[s] {
				seen[s] = true
				found = append(found, s)
			}
		}
		if !hit {
			var valid []string
			for _, s := range all {
				id, _, _ := strings.Cut(s.ID, "/")
				long, _, _ := strings.Cut(s.Name, "/")
				valid = append(valid, id, s.ID, long, s.Name)
			}
			return nil, fmt.Errorf("there is no scenario %q%s (`simrun list scenarios` names them all)", clip(name), didYouMean(name, valid))
		}
	}
	return found, nil
}

// Called reports whether name means this scenario.
func (s *Scenario) Called(name string) bool {
	for _, own := range []string{s.ID, s.Name} {
		base, _, _ := strings.Cut(own, "/")
		if strings.EqualFold(name, own) || strings.EqualFold(name, base) {
			return true
		}
	}
	file := path.Base(s.File)
	return strings.EqualFold(name, file) || strings.EqualFold(name, strings.TrimSuffix(file, path.Ext(file)))
}
