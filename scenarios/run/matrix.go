package run

import (
	"context"
	"slices"
	"strings"
	"sync"

	"vigil/core"
	"vigil/scenarios"
)

// The matrix of protections against scenarios: what goes wrong where one
// protection of the hardened design is missing. A protection that no scenario
// misses is not needed, and one that a scenario misses is shown by it. A red
// cell ends at its first run that fails: that it can fail is all it says.

// Need is one cell: a scenario under the hardened design less one protection.
type Need struct {
	Scenario *scenarios.Scenario
	Runs     int
	// Broke is what the first failing run broke, worst first; nil where the
	// protection made no difference in any run.
	Broke *Violation
}

// Row is what one protection is needed for.
type Row struct {
	Protection string
	Needs      []Need // in the order of the scenarios
}

// Needed reports whether some scenario misses the protection.
func (r *Row) Needed() bool {
	return slices.ContainsFunc(r.Needs, func(n Need) bool { return n.Broke != nil })
}

// MatrixOptions say how the matrix is played.
type MatrixOptions struct {
	Protections []string // the rows; empty is every protection
	From        uint64   // first seed
	Count       int      // seeds of each cell, at least 1
	Jobs        int      // runs at once, at least 1
	Progress    func(Progress)
}

// Matrix plays each scenario under the hardened design less one protection at
// a time. It ends early, with what it has, when ctx ends.
func Matrix(ctx context.Context, list []*scenarios.Scenario, o MatrixOptions) []Row {
	if len(o.Protections) == 0 {
		o.Protections = core.ProtectionNames()
	}
	rows := make([]Row, len(o.Protections))
	for i, name := range o.Protections {
		rows[i] = Row{Protection: name, Needs: make([]Need, len(list))}
		for k, s := range list {
			rows[i].Needs[k].Scenario = s
		}
	}
	var mu sync.Mutex
	next, done, total := 0, 0, len(rows)*len(list)
	var wait sync.WaitGroup
	for range max(1, o.Jobs) {
		wait.Go(func() {
			row, player := -1, (*Player)(nil)
			for ctx.Err() == nil {
				mu.Lock()
				cell := next
				next++
				mu.Unlock()
				if cell >= total {
					return
				}
				if r := cell / len(list); r != row {
					row = r
					p := core.Hardened()
					p.Set(rows[r].Protection, false)
					player = NewPlayer("hardened", p)
				}
				need := &rows[row].Needs[cell%len(list)]
				player.need(ctx, need, o)
				if mu.Lock(); o.Progress != nil {
					done++
					o.Progress(Progress{Done: done, Total: total, Scenario: rows[row].Protection})
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return rows
}

// need plays a cell until a run fails.
func (p *Player) need(ctx context.Context, n *Need, o MatrixOptions) {
	for i := 0; i < o.Count && n.Broke == nil && ctx.Err() == nil; i++ {
		r := p.Play(n.Scenario, o.From+uint64(i), nil)
		n.Runs++
		n.Broke = worst(r.Violations)
	}
}

// worst is the gravest violation that counts: an invariant before an
// expectation of the file; a step that found nothing to strike is none.
func worst(all []Violation) *Violation {
	var found *Violation
	rank := func(v *Violation) int {
		switch {
		case v.Verdict == Panicked:
			return 0
		case strings.HasPrefix(v.Invariant, "expect"):
			return 2
		}
		return 1
	}
	for i := range all {
		v := &all[i]
		if v.Declared || v.Invariant == "step" || v.Invariant == "break" {
			continue
		}
		if found == nil || rank(v) < rank(found) || rank(v) == rank(found) && v.At < found.At {
			found = v
		}
	}
	if found == nil {
		return nil
	}
	copied := *found
	return &copied
}

// Pairing is a design of the server with a design of the workers.
type Pairing struct {
	Server, Worker string
}

// Pairings are the four of them; the first is the document alone.
var Pairings = []Pairing{
	{"document", "document"}, {"document", "hardened"}, {"hardened", "document"}, {"hardened", "hardened"},
}

func (p Pairing) String() string { return p.Server + " server, " + p.Worker + " workers" }

// Paired is what one pairing came to in one scenario.
type Paired struct {
	Scenario *scenarios.Scenario
	Runs     int
	Broke    []Broken // invariants, in the order of DESIGN
	// Worse is what no pairing may do: crash; hang (TERMINAL) or corrupt
	// (INTEGRITY, NO-UAF) where the document alone does not; corrupt at all
	// under a hardened server, unless it is the worker that does it, by what a
	// hardened worker mends alone (B21).
	Worse *Violation
	// Beside is what else it broke that the document alone keeps here.
	Beside *Violation

	first []Violation // of each invariant that broke
}

// Broken is an invariant that a pairing broke.
type Broken struct {
	Invariant string
	Runs      int // in which it broke
}

// Pair plays each scenario with each pairing and returns a list for each
// pairing, in the order of Pairings. Only the invariants are judged: what a
// file expects, it expects of one design.
func Pair(ctx context.Context, list []*scenarios.Scenario, o MatrixOptions) [][]Paired {
	out := make([][]Paired, len(Pairings))
	for i := range out {
		out[i] = make([]Paired, len(list))
	}
	var mu sync.Mutex
	next, done := 0, 0
	var wait sync.WaitGroup
	for range max(1, o.Jobs) {
		wait.Go(func() {
			players := make([]*Player, len(Pairings))
			for i, pair := range Pairings {
				players[i] = NewPlayer("", preset(pair.Server))
				players[i].workers = preset(pair.Worker)
			}
			for ctx.Err() == nil {
				mu.Lock()
				at := next
				next++
				mu.Unlock()
				if at >= len(list) {
					return
				}
				for i := range Pairings {
					out[i][at] = players[i].paired(ctx, list[at], o)
				}
				for i, pair := range Pairings {
					out[i][at].judge(pair, &out[0][at], &out[1][at])
				}
				if mu.Lock(); o.Progress != nil {
					done++
					o.Progress(Progress{Done: done, Total: len(list), Scenario: list[at].ID})
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return out
}

func preset(design string) core.Protections {
	if design == "hardened" {
		return core.Hardened()
	}
	return core.Document()
}

// paired plays one scenario's seeds.
func (p *Player) paired(ctx context.Context, s *scenarios.Scenario, o MatrixOptions) Paired {
	out := Paired{Scenario: s}
	counts := map[string]int{}
	for i := 0; i < o.Count && ctx.Err() == nil; i++ {
		r := p.Play(s, o.From+uint64(i), nil)
		out.Runs++
		seen := map[string]bool{}
		for k := range r.Violations {
			v := &r.Violations[k]
			if v.Verdict == Panicked && out.Worse == nil {
				worse := *v
				out.Worse = &worse
			}
			if slices.Contains(scenarios.Invariants, v.Invariant) && !seen[v.Invariant] {
				seen[v.Invariant] = true
				counts[v.Invariant]++
				if counts[v.Invariant] == 1 {
					out.first = append(out.first, *v)
				}
			}
		}
	}
	for _, name := range scenarios.Invariants {
		if counts[name] > 0 {
			out.Broke = append(out.Broke, Broken{name, counts[name]})
		}
	}
	return out
}

// broke reports whether an invariant broke.
func (p *Paired) broke(invariant string) bool {
	return slices.ContainsFunc(p.Broke, func(b Broken) bool { return b.Invariant == invariant })
}

// judge says what a pairing did that it may not do. mended is the pairing of
// a document server with hardened workers.
func (p *Paired) judge(pair Pairing, document, mended *Paired) {
	for i := range p.first {
		v := &p.first[i]
		known := document.broke(v.Invariant)
		workers := known && pair.Worker == "document" && !mended.broke(v.Invariant)
		corrupt := v.Invariant == "INTEGRITY" || v.Invariant == "NO-UAF"
		switch {
		case corrupt && (!known || pair.Server == "hardened" && !workers), v.Invariant == "TERMINAL" && !known:
			if p.Worse == nil {
				p.Worse = v
			}
		case !known && p.Beside == nil:
			p.Beside = v
		}
	}
}
