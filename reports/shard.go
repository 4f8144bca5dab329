package reports

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"
)

// Shards: results that are parts of one whole, and how they add up. What is
// added is sums, sets and the lowest examples, so that the order in which parts
// are named does not matter.

// Shard says which part of the whole a result is.
type Shard struct {
	Index uint64 `json:"index"` // from 1
	Of    uint64 `json:"of"`
	First uint64 `json:"first"` // the first seed of the whole
	Count uint64 `json:"count"` // seeds, or runs of a search, of the whole
	Code  string `json:"code"`  // the program: only results of the same one add up
}

// String is the shard as the command line has it.
func (s *Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

// own is how many of the whole are this part's.
func (s *Shard) own() uint64 { return (s.Count + s.Of - s.Index) / s.Of }

// Owed is something that some run of the whole must show, and what of it came
// in this part.
type Owed struct {
	Kind     string   `json:"kind"`
	Runs     int      `json:"runs"`
	Never    string   `json:"never"`
	Wanted   []string `json:"wanted,omitempty"`
	Seen     []string `json:"seen,omitempty"`
	NeverFor string   `json:"never_for,omitempty"`
}

// checkShards says what is wrong with parts of one whole; names are those of
// their files.
func checkShards(names []string, shards []*Shard, designs []string) error {
	at := map[uint64]int{}
	for i, s := range shards {
		first := shards[0]
		switch {
		case s == nil:
			return fmt.Errorf("%s is no shard: it was not made with --shard, and is whole by itself", names[i])
		case s.Of == 0 || s.Of > maxParts || s.Index < 1 || s.Index > s.Of:
			return fmt.Errorf("%s says that it is shard %s, which there cannot be", names[i], s)
		case designs[i] != designs[0]:
			return fmt.Errorf("%s is of design %s and %s of %s", names[0], designs[0], names[i], designs[i])
		case s.Of != first.Of:
			return fmt.Errorf("%s is shard %s and %s shard %s: they are not parts of one whole", names[0], first, names[i], s)
		case s.First != first.First || s.Count != first.Count:
			return fmt.Errorf("%s is of %d runs from seed %d on and %s of %d from %d on: they are not parts of one whole",
				names[0], first.Count, first.First, names[i], s.Count, s.First)
		case s.Code != first.Code:
			return fmt.Errorf("%s was made by %s and %s by %s: results of two programs do not add up", names[0], first.Code, names[i], s.Code)
		}
		if other, twice := at[s.Index]; twice {
			return fmt.Errorf("%s and %s are both shard %s", names[other], names[i], s)
		}
		at[s.Index] = i
	}
	for index := uint64(1); index <= shards[0].Of; index++ {
		if _, there := at[index]; !there {
			return fmt.Errorf("shard %d/%d is missing: %d of %d are here", index, shards[0].Of, len(shards), shards[0].Of)
		}
	}
	return nil
}

// maxParts bounds the shards of one whole.
const maxParts = 10_000

// MergeSuites adds the suites of all shards up. What some run must show is
// counted and not judged: judge says, for a scenario of which every run is
// there, what did not come.
func MergeSuites(names []string, parts []*Suite, judge func(sc *Scenario) []Violation) (*Suite, error) {
	if len(parts) == 0 {
		return nil, fmt.Errorf("there is nothing to merge")
	}
	shards, designs := make([]*Shard, len(parts)), make([]string, len(parts))
	for i, p := range parts {
		shards[i], designs[i] = p.Shard, p.Design
	}
	if err := checkShards(names, shards, designs); err != nil {
		return nil, err
	}
	wall := 0.0
	rows := make([]Scenario, len(parts[0].Scenarios))
	for i, p := range parts {
		wall = max(wall, p.Totals.WallSeconds)
		if len(p.Scenarios) != len(rows) {
			return nil, fmt.Errorf("%s holds %d scenarios and %s %d: they are not parts of one whole", names[0], len(rows), names[i], len(p.Scenarios))
		}
		for k := range p.Scenarios {
			sc, row := &p.Scenarios[k], &rows[k]
			if i == 0 {
				*row = *sc
				row.Verdict, row.Violations = Pass, nil
				row.Runs, row.FailedRuns, row.Events, row.SimSeconds, row.WallSeconds, row.Hash = 0, 0, 0, 0, 0, "0"
				row.Owed, row.Coverage = slices.Clone(sc.Owed), nil
				for o := range row.Owed {
					row.Owed[o].Runs, row.Owed[o].Seen = 0, nil
				}
			}
			if err := row.merge(sc); err != nil {
				return nil, fmt.Errorf("%s and %s: %w", names[0], names[i], err)
			}
			if uint64(sc.Runs) < p.Shard.own() && !sc.Corpus {
				row.Cut = true
			}
		}
	}
	for k := range rows {
		row := &rows[k]
		sortExamples(&row.Violations)
		if row.Cut {
			row.Verdict = Gravest(row.Verdict, Unknown)
			row.Notes = append(row.Notes, fmt.Sprintf("not whole: %d of %d runs are here", row.Runs, parts[0].Shard.Count))
		} else {
			for _, v := range judge(row) {
				row.Verdict = Gravest(row.Verdict, v.Verdict)
				row.Violations = append(row.Violations, v)
			}
		}
		row.Owed = nil // judged: the whole owes nothing to anybody
	}
	return NewSuite(parts[0].Design, rows, time.Duration(wall*float64(time.Second))), nil
}

// merge adds the same scenario of another part.
func (s *Scenario) merge(o *Scenario) error {
	switch {
	case o.ID != s.ID:
		return fmt.Errorf("one has %s where the other has %s", s.ID, o.ID)
	case o.World != s.World:
		return fmt.Errorf("%s is another scenario in each: its file was changed in between", s.ID)
	case len(o.Owed) != len(s.Owed):
		return fmt.Errorf("%s declares other things in each: its file was changed in between", s.ID)
	}
	s.Runs += o.Runs
	s.FailedRuns += o.FailedRuns
	s.Events += o.Events
	s.SimSeconds += o.SimSeconds
	s.WallSeconds += o.WallSeconds
	s.Verdict = Gravest(s.Verdict, o.Verdict)
	var err error
	if s.Hash, err = addHashes(s.Hash, o.Hash); err != nil {
		return fmt.Errorf("%s: %w", s.ID, err)
	}
	s.Violations = append(s.Violations, o.Violations...)
	for i := range o.Owed {
		a, b := &s.Owed[i], &o.Owed[i]
		if a.Never != b.Never {
			return fmt.Errorf("%s declares other things in each: its file was changed in between", s.ID)
		}
		a.Runs += b.Runs
		a.Seen = union(a.Seen, b.Seen)
	}
	if o.Coverage != nil {
		if s.Coverage == nil {
			s.Coverage = &Coverage{}
		}
		s.Coverage.merge(o.Coverage)
	}
	return nil
}

// addHashes adds two folds: a sum of what each run gave, so that it does not
// matter which part a run was in.
func addHashes(a, b string) (string, error) {
	x, errX := strconv.ParseUint(a, 16, 64)
	y, errY := strconv.ParseUint(b, 16, 64)
	if errX != nil || errY != nil {
		return "", fmt.Errorf("%q is no hash", b)
	}
	return fmt.Sprintf("%016x", x+y), nil
}

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	sort.Strings(out)
	return slices.Compact(out)
}

// examplesKept is how many examples of an invariant a merged result keeps, as
// simrun run does.
const examplesKept = 4

// sortExamples keeps the examples of the lowest seeds.
func sortExamples(list *[]Violation) {
	all := *list
	sort.SliceStable(all, func(i, k int) bool {
		a, b := &all[i], &all[k]
		switch {
		case a.Declared != b.Declared:
			return b.Declared
		case a.Seed != b.Seed:
			return a.Seed < b.Seed
		}
		return a.AtSeconds < b.AtSeconds
	})
	seen := map[string]int{}
	*list = slices.DeleteFunc(all, func(v Violation) bool {
		most := examplesKept
		if v.Declared {
			most = 1
		}
		key := fmt.Sprint(v.Invariant, v.Declared)
		seen[key]++
		return seen[key] > most
	})
}
