package scenarios

import (
	"slices"

	"vigil/core"
	"vigil/faults"
	"vigil/sim"
)

// What a file says that its runs must meet. A story about a release that hangs,
// in which no release hangs, is green and shows nothing; `covers:` makes it red.

// CoverKind says what kind of thing a Cover names.
type CoverKind uint8

// The kinds of things that can be covered.
const (
	CoverFault      CoverKind = iota // a fault takes hold
	CoverProtection                  // a protection acts: without it the run comes to something else
	CoverState                       // some instance is in that state of its life
)

// coverKeys are the kinds' keys in files.
var coverKeys = []string{"faults", "protections", "states"}

// String is what a report says of the kind.
func (k CoverKind) String() string { return [...]string{"fault", "protection", "state"}[k] }

// Cover is one thing that some run must meet.
type Cover struct {
	Line   int
	Design string // the design under which it must; empty for both
	Kind   CoverKind
	Name   string
	Number uint8 // a fault's Kind, a LifeState; nothing for a protection
}

// mostCovers bounds a list of things to cover: there are not so many.
const mostCovers = 64

// covers reads what the file's runs must meet.
func (d *decoder) covers(n *node, s *Scenario) {
	if n == nil || n.kind == nullNode || !d.mapping(n, "covers", append(append([]string(nil), coverKeys...), Designs...)...) {
		return
	}
	d.coverLists(n, "", s)
	for _, design := range Designs {
		if v := n.get(design); v != nil && d.mapping(v, "covers under "+design, coverKeys...) {
			d.coverLists(v, design, s)
		}
	}
}

func (d *decoder) coverLists(n *node, design string, s *Scenario) {
	for kind, key := range coverKeys {
		v := n.get(key)
		if v == nil || v.kind == nullNode {
			continue
		}
		words := [][]string{faults.Names(), core.ProtectionNames(), LifeStateNames}[kind]
		for _, item := range d.list(v, key, mostCovers) {
			at := d.choice(item, "a "+CoverKind(kind).String(), words)
			if d.bad() {
				return
			}
			c := Cover{Line: item.line, Design: design, Kind: CoverKind(kind), Name: words[at], Number: uint8(at)}
			if c.Kind == CoverFault {
				f, _ := faults.Named(c.Name)
				if c.Number = uint8(f.Kind); s.Random == "" && !brings(s.Plan, f.Kind) {
					d.fail(item, "covers names the fault %s, which no step and no setting of this file brings", c.Name)
					return
				}
			}
			if slices.ContainsFunc(s.Covers, func(o Cover) bool {
				return o.Kind == c.Kind && o.Name == c.Name && (o.Design == c.Design || o.Design == "")
			}) {
				d.fail(item, "%s is covered twice", c.Name)
				return
			}
			s.Covers = append(s.Covers, c)
		}
	}
}

// brings reports whether a plan's runs can bring a fault.
func brings(p *sim.Plan, kind faults.Kind) bool {
	for i := range p.Steps {
		if do := &p.Steps[i].Do; do.Kind == sim.ActFault && do.Fault.Kind == kind {
			return true
		}
	}
	for i := range p.Workers {
		if kind == faults.PIDIdentity && p.Workers[i].PIDIdentity || kind == faults.OldClient && p.Workers[i].Config.Legacy {
			return true
		}
	}
	return kind == faults.OldServer && p.Server.Legacy
}

// CoversOf are the things that the file's runs must meet under a design and
// these protections: one that is off cannot act.
func (s *Scenario) CoversOf(design string, p core.Protections) []Cover {
	var list []Cover
	for _, c := range s.Covers {
		if c.Design != "" && c.Design != design {
			continue
		}
		if off := p; c.Kind == CoverProtection && off.Set(c.Name, false) && off == p {
			continue
		}
		list = append(list, c)
	}
	return list
}
