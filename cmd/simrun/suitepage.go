package main

import (
	"io"
	"path/filepath"
	"strings"

	"vigil/reports"
)

// pages writes what --html and -o ask for: the page of the suite, with the
// timeline of each example of a failure, and with -v of each expected break.
// Where there was one run it is that run's timeline.
func (f *runFlags) pages(r *request, suite *reports.Suite, s *streams, folder string) error {
	if f.html == "" && folder == "" {
		return nil
	}
	isReal := f.real.server != "" // no tape plays those again
	p := newPlayer(r.design)
	if r.single && len(r.list) == 1 && !isReal {
		return f.writePage(p.draw(r.list[0], r.seeds.First).Write, s, folder)
	}
	page := &reports.SuitePage{Suite: suite}
	for _, declared := range []bool{false, true} { // failures first: a page has room for so many
		if declared && !f.verbose || isReal {
			continue
		}
		if err := addTimelines(page, p, r.list, declared); err != nil {
			return err
		}
	}
	return f.writePage(page.Write, s, folder)
}

func addTimelines(page *reports.SuitePage, p *player, list []selected, declared bool) error {
	type runOf struct {
		scenario int
		seed     uint64
	}
	drawn := map[runOf]bool{}
	for i := range page.Suite.Scenarios {
		for k := range page.Suite.Scenarios[i].Violations {
			v := &page.Suite.Scenarios[i].Violations[k]
			of := runOf{i, v.Seed}
			if v.Declared != declared || v.Token == "" || drawn[of] {
				continue
			}
			drawn[of] = true
			if page.Full() {
				page.Leave()
				continue
			}
			if err := page.Add(i, v.Seed, p.draw(list[i], v.Seed)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *runFlags) writePage(write func(io.Writer) error, s *streams, folder string) error {
	if f.html != "" {
		if err := s.write(f.html, write); err != nil {
			return err
		}
	}
	if folder == "" {
		return nil
	}
	return reports.WriteFile(filepath.Join(folder, "index.html"), write)
}

// maxLed bounds the failing scenarios of which it is told what led there: each
// costs a run more.
const maxLed = 32

// lead finds what led to the example that each failing scenario's report shows.
func (f *runFlags) lead(r *request, suite *reports.Suite) {
	if f.real.server != "" {
		return
	}
	p := newPlayer(r.design)
	left := maxLed
	for i := range suite.Scenarios[:min(len(suite.Scenarios), len(r.list))] { // behind them come the capsules of the corpus
		v := suite.Scenarios[i].Reported()
		if v == nil || v.Token == "" || left == 0 {
			continue
		}
		left--
		d := p.draw(r.list[i], v.Seed)
		for n, b := range d.Broken() {
			if b.Invariant == v.Invariant && b.Message == v.Message {
				v.Led = d.Led(n)
				break
			}
		}
	}
}

// places says where a person finds the pages and the folder that were written.
func (f *runFlags) places(folder string) string {
	var list []string
	if f.html != "" && f.html != "-" {
		list = append(list, f.html)
	}
	if folder != "" {
		list = append(list, folder+" (index.html, report.txt, result.json, junit.xml)")
	}
	return strings.Join(list, ", ")
}
