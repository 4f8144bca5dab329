package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"vigil/reports"
	"vigil/scenarios/capsule"
	"vigil/scenarios/corpus"
	"vigil/scenarios/run"
	"vigil/sim"
)

// capsuleEnding is the ending of a capsule's file.
const capsuleEnding = ".capsule"

// taleOf is the run that a capsule holds or a token names; moved is where a
// token's file lies now, if it was given.
func taleOf(arg string, moved []string) (tale, error) {
	c, path, err := capsuleAt(arg)
	switch {
	case err != nil:
		return tale{}, err
	case c != nil && len(moved) > 0:
		return tale{}, &usageError{"a capsule holds its scenario: give it alone"}
	case c != nil:
		return capsuleTale(c, path)
	}
	t, err := parseToken(arg)
	if err != nil {
		return tale{}, err
	}
	if len(moved) > 0 {
		t.file = moved[0]
	}
	sc, err := t.find()
	return t.tale(sc), err
}

// capsuleOf is the capsule that the arguments name, or the one of the run of a
// token.
func capsuleOf(args []string) (*capsule.Capsule, string, error) {
	c, path, err := capsuleAt(args[0])
	switch {
	case err != nil:
		return nil, "", err
	case c != nil && len(args) > 1:
		return nil, "", &usageError{"a capsule holds its scenario: give it alone"}
	case c != nil:
		return c, path, nil
	}
	t, err := parseToken(args[0])
	if err != nil {
		return nil, "", err
	}
	if len(args) > 1 {
		t.file = args[1]
	}
	sc, err := t.find()
	if err != nil {
		return nil, "", err
	}
	c, err = capsule.OfSeed(sc.Scenario, t.design.preset, t.design.protections, t.seed)
	return c, fmt.Sprintf("%s-%d", strings.ReplaceAll(t.scenario, "/", "-"), t.seed) + capsuleEnding, err
}

// isCapsule reports whether a file is a capsule, by its ending or its beginning.
func isCapsule(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 32)
	n, err := f.Read(head)
	return err == nil && (strings.HasSuffix(path, capsuleEnding) || capsule.IsCapsule(head[:n]))
}

// capsuleAt reads the capsule that an argument names: a file, or one of the
// corpus that comes with simrun. It is nil where the argument is none of both.
func capsuleAt(arg string) (c *capsule.Capsule, path string, err error) {
	if isCapsule(arg) {
		c, err := capsule.Read(arg)
		return c, arg, err
	}
	_, err = os.Stat(arg)
	if !strings.HasSuffix(arg, capsuleEnding) && !strings.HasPrefix(arg, corpus.Prefix) {
		return nil, "", nil
	}
	name := strings.TrimSuffix(filepath.Base(arg), capsuleEnding)
	if c, ok := corpus.Named(name); ok {
		return c, corpus.Prefix + name, nil
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil, "", unknownName("there is no file "+arg+", and in the corpus", name, corpus.Names())
	}
	return nil, "", err
}

// capsuleTale is the run of a capsule.
func capsuleTale(c *capsule.Capsule, path string) (tale, error) {
	if c.Scenario == nil {
		_, d := c.Play(nil)
		return tale{}, errors.New(d.Text)
	}
	t := tale{
		scenario: selected{c.Scenario, false}, design: choice{c.Design, c.Protections}, seed: c.Seed,
		drawn: func() string { return "Origin: " + c.Origin + "; recorded with " + c.Version + "." },
		name: func(_ *run.Run, v *reports.Violation) {
			v.Capsule, v.Replay, v.Shrink = path, replayCommand(path), shrinkCommand(path)
		},
	}
	var differs capsule.Difference
	t.play = func(o sim.Observer) (r run.Run) {
		r, differs = c.Play(o)
		return r
	}
	t.compare = func(*run.Run) string {
		if differs.Same() {
			return ""
		}
		return "This is not the recorded run. " + differs.Text
	}
	return t, nil
}

// shrinkCommand is the exact command that minimises a capsule.
func shrinkCommand(path string) string { return fmt.Sprintf("%s shrink %s", programName(), path) }

// maxCapsules bounds the capsules that one call of run writes: a suite that
// fails everywhere needs no thousands of examples.
const maxCapsules = 500

// capsules writes the examples of a suite below a folder.
type capsules struct {
	folder   string
	declared bool // also of what the scenarios declare
	written  int

	// The last run that was made a capsule of: several things may have broken in it.
	of   selected
	seed uint64
	last *capsule.Capsule
}

// keep writes the capsule of a violation and names it there; it returns why
// there is none where one should be.
func (k *capsules) keep(s selected, c choice, v *run.Violation, row *reports.Violation) (complaint string) {
	if k == nil || k.folder == "" || v.Declared && !k.declared || k.written >= maxCapsules {
		return ""
	}
	if k.last == nil || k.of != s || k.seed != v.Seed {
		made, err := capsule.OfSeed(s.Scenario, c.preset, c.protections, v.Seed)
		if err != nil {
			return fmt.Sprintf("seed %d has no capsule: %s", v.Seed, oneLine(err.Error()))
		}
		k.of, k.seed, k.last = s, v.Seed, made
	}
	one := *k.last
	one.About(*v)
	name := strings.NewReplacer("/", "-", " ", "-").Replace(fmt.Sprintf("%s-%d-%s", s.ID, v.Seed, v.Invariant))
	path := filepath.Join(k.folder, name+capsuleEnding)
	if err := one.Write(path); err != nil {
		return oneLine(err.Error())
	}
	k.written++
	row.Capsule, row.Shrink = path, shrinkCommand(path)
	return ""
}
