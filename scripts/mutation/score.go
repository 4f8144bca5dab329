package main

// What the verdicts come to, and what is argued for.

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// argued.txt holds one argument a paragraph: a line "outside FILE" or lines
// "mutant KEY", and below them the reason, indented.
//
//go:embed argued.txt
var arguedText string

// arguments are what argued.txt argues for.
type arguments struct {
	files   []string
	mutants []string
}

func (a *arguments) outside(file string) bool    { return slices.Contains(a.files, file) }
func (a *arguments) argued(m *mutant) bool       { return slices.Contains(a.mutants, m.key()) }
func readArguments() (*arguments, error)         { return parseArguments(arguedText) }
func complain(line int, text string) error       { return fmt.Errorf("argued.txt:%d: %s", line, text) }
func cutPrefix(line, word string) (string, bool) { return strings.CutPrefix(line, word+" ") }

func parseArguments(text string) (*arguments, error) {
	a := &arguments{}
	lines := bufio.NewScanner(strings.NewReader(text))
	unargued := 0 // the line of a name that has no reason yet
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		file, isFile := cutPrefix(line, "outside")
		key, isMutant := cutPrefix(line, "mutant")
		switch {
		case line == "" || line[0] == '#':
		case isFile:
			a.files = append(a.files, file)
			unargued = n
		case isMutant:
			if slices.Contains(a.mutants, key) {
				return nil, complain(n, "this mutant is argued for twice")
			}
			a.mutants = append(a.mutants, key)
			unargued = n
		case line[0] == ' ' && strings.TrimSpace(line) != "":
			unargued = 0
		default:
			return nil, complain(n, `a line is "outside FILE", "mutant KEY", or a reason that is indented`)
		}
	}
	if unargued != 0 {
		return nil, complain(unargued, "there is no reason below it")
	}
	return a, lines.Err()
}

// summary is what a run came to.
type summary struct {
	chosen    []mutant
	verdicts  []verdict
	arguments *arguments
	byFile    map[string][verdicts]int
	count     [verdicts]int
	argued    int // survivors that are argued for
}

func sum(chosen []mutant, judged []verdict, a *arguments) *summary {
	s := &summary{chosen: chosen, verdicts: judged, arguments: a, byFile: map[string][verdicts]int{}}
	for i := range chosen {
		v := judged[i]
		s.count[v]++
		of := s.byFile[chosen[i].File]
		of[v]++
		s.byFile[chosen[i].File] = of
		if v <= unreached && a.argued(&chosen[i]) {
			s.argued++
		}
	}
	return s
}

// score is the share of the mistakes that the suite notices, in percent, of all
// that change something. What argued.txt argues for changes nothing: it is a
// mistake in the text only, and no suite could notice it.
func (s *summary) score() float64 {
	return 100 * float64(s.noticed()) / float64(max(1, len(s.chosen)-s.argued))
}

func (s *summary) noticed() int { return s.count[noticed] + s.count[hung] }

func (s *summary) write(w io.Writer) {
	files := make([]string, 0, len(s.byFile))
	for f := range s.byFile {
		files = append(files, f)
	}
	slices.Sort(files)
	fmt.Fprintf(w, "%-32s %8s %8s %6s %9s %6s %10s %7s\n", "FILE", "MISTAKES", "NOTICED", "HUNG", "SURVIVED", "ALIKE", "UNREACHED", "SCORE")
	for _, f := range files {
		c := s.byFile[f]
		all := 0
		for _, n := range c {
			all += n
		}
		fmt.Fprintf(w, "%-32s %8d %8d %6d %9d %6d %10d %6.1f%%\n", f, all, c[noticed], c[hung], c[survived], c[alike], c[unreached], 100*float64(c[noticed]+c[hung])/float64(all))
	}
	fmt.Fprintln(w)
	for i := range s.chosen {
		m := &s.chosen[i]
		if s.verdicts[i] > unreached || s.arguments.argued(m) {
			continue
		}
		fmt.Fprintf(w, "%s:%d: %s: %s\n", m.File, m.Line, s.verdicts[i], m.key())
	}
	fmt.Fprintf(w, "\nscore %.1f%%: %d of %d mistakes that change something are noticed; %d survived, %d made every run go as ever and %d were never reached\n",
		s.score(), s.noticed(), len(s.chosen)-s.argued, s.count[survived], s.count[alike], s.count[unreached])
	fmt.Fprintf(w, "%d of those are argued to change nothing; with them the share is %.1f%% of %d\n",
		s.argued, 100*float64(s.noticed())/float64(len(s.chosen)), len(s.chosen))
}

// writeSurvivors writes the keys of what nobody noticed and nobody argues for.
func (s *summary) writeSurvivors(path string) error {
	var b strings.Builder
	for i := range s.chosen {
		if s.verdicts[i] <= unreached && !s.arguments.argued(&s.chosen[i]) {
			fmt.Fprintf(&b, "mutant %s\n", s.chosen[i].key())
		}
	}
	if err := os.WriteFile(path+".part", []byte(b.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// survivorsIn reads the keys that a file of survivors names; nil without one.
func survivorsIn(path string) (map[string]bool, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if key, ok := cutPrefix(strings.TrimSpace(line), "mutant"); ok {
			keys[key] = true
		}
	}
	return keys, nil
}

// stale complains of arguments that argue for nothing any more.
func (s *summary) stale(all []mutant) error {
	killed, known := map[string]bool{}, map[string]bool{}
	for i := range s.chosen {
		killed[s.chosen[i].key()] = s.verdicts[i] > unreached
	}
	files := map[string]bool{}
	for i := range all {
		known[all[i].key()] = true
		files[all[i].File] = true
	}
	var errs []error
	for _, key := range s.arguments.mutants {
		switch {
		case !known[key]:
			errs = append(errs, fmt.Errorf("argued.txt argues for a mutant that there is not: %s", key))
		case killed[key]:
			errs = append(errs, fmt.Errorf("argued.txt argues for a mutant that the suite notices: %s", key))
		}
	}
	for _, f := range s.arguments.files {
		if !files[f] {
			errs = append(errs, fmt.Errorf("argued.txt leaves out a file that there is not: %s", f))
		}
	}
	return errors.Join(errs...)
}
