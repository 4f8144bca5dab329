package reports

import (
	"fmt"
	"slices"
)

// MergeExplorations adds the searches of all shards up. rank says, for a
// campaign whose Parts are those of the whole, which factors failures come with.
func MergeExplorations(names []string, parts []*Exploration, rank func(c *Campaign) []Blame) (*Exploration, error) {
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
	whole := &Exploration{Version: Version, Design: parts[0].Design, Verdict: Pass, Campaigns: make([]Campaign, len(parts[0].Campaigns))}
	for i, p := range parts {
		if len(p.Campaigns) != len(whole.Campaigns) {
			return nil, fmt.Errorf("%s searches %d scenarios and %s %d: they are not parts of one whole", names[0], len(whole.Campaigns), names[i], len(p.Campaigns))
		}
		for k := range p.Campaigns {
			c, sum := &p.Campaigns[k], &whole.Campaigns[k]
			if c.Parts == nil {
				return nil, fmt.Errorf("%s does not hold what its shard is to be merged by", names[i])
			}
			if i == 0 {
				*sum = Campaign{
					Name: c.Name, ID: c.ID, World: c.World, Verdict: Pass, Strategy: c.Strategy, Seed: c.Seed, Wanted: c.Wanted, Hash: "0", PCT: c.PCT,
					Whole: true, Broke: map[string]uint64{}, First: map[string]uint64{}, Violations: []Violation{},
					Parts: &CampaignPart{Factors: c.Parts.Factors, With: make([]uint64, len(c.Parts.Factors))},
				}
			}
			if err := sum.merge(c, p.Shard); err != nil {
				return nil, fmt.Errorf("%s and %s: %w", names[0], names[i], err)
			}
		}
	}
	for k := range whole.Campaigns {
		c := &whole.Campaigns[k]
		slices.SortStableFunc(c.Parts.Kinds, func(a, b FactorsKind) int { return len(a.Invariant) - len(b.Invariant) })
		sortExamples(&c.Violations)
		c.Blame = rank(c)
		c.Parts = nil
		if !c.Whole {
			c.Verdict = Gravest(c.Verdict, Unknown)
			c.Notes = append(c.Notes, fmt.Sprintf("not whole: %d of %d runs are here", c.Runs, c.Wanted))
		}
		whole.Verdict = Gravest(whole.Verdict, c.Verdict)
	}
	return whole, nil
}

// merge adds the same search of another part.
func (c *Campaign) merge(o *Campaign, shard *Shard) error {
	switch {
	case o.ID != c.ID:
		return fmt.Errorf("one searches %s and the other %s", c.ID, o.ID)
	case o.World != c.World || !slices.Equal(o.Parts.Factors, c.Parts.Factors):
		return fmt.Errorf("%s is another scenario in each: its file was changed in between", c.ID)
	case o.Strategy != c.Strategy || o.Seed != c.Seed || (o.PCT == nil) != (c.PCT == nil) || o.PCT != nil && *o.PCT != *c.PCT:
		return fmt.Errorf("one is a search by %s, seed %d, and the other by %s, seed %d", c.Strategy, c.Seed, o.Strategy, o.Seed)
	case len(o.Parts.With) != len(o.Parts.Factors):
		return fmt.Errorf("the factors of %s are not counted", o.ID)
	}
	c.Runs += o.Runs
	c.Found += o.Found
	c.Told += o.Told
	c.Schedules += o.Schedules
	c.AtLeast = c.AtLeast || o.AtLeast
	c.OfParts = c.OfParts || shard.Of > 1
	c.Events += o.Events
	c.SimSeconds += o.SimSeconds
	c.Wall = max(c.Wall, o.Wall)
	c.Whole = c.Whole && o.Whole && o.Runs >= shard.own()
	c.Verdict = Gravest(c.Verdict, o.Verdict)
	c.FreshAt = max(c.FreshAt, o.FreshAt)
	if o.FirstRun > 0 && (c.FirstRun == 0 || o.FirstRun < c.FirstRun) {
		c.FirstRun = o.FirstRun
	}
	var err error
	if c.Hash, err = addHashes(c.Hash, o.Hash); err != nil {
		return fmt.Errorf("%s: %w", c.ID, err)
	}
	for name, runs := range o.Broke {
		c.Broke[name] += runs
	}
	for name, run := range o.First {
		if have, ok := c.First[name]; !ok || run < have {
			c.First[name] = run
		}
	}
	c.Coverage.merge(&o.Coverage)
	c.Violations = append(c.Violations, o.Violations...)
	set := &c.Parts.FeatureSet
	for i, b := range o.Parts.FeatureSet {
		if i >= len(*set) {
			*set = append(*set, 0)
		}
		(*set)[i] |= b
	}
	c.Features = onesIn(*set)
	for i, n := range o.Parts.With {
		c.Parts.With[i] += n
	}
	for _, k := range o.Parts.Kinds {
		if len(k.With) != len(c.Parts.Factors) {
			return fmt.Errorf("the factors of %s are not counted", o.ID)
		}
		at := slices.IndexFunc(c.Parts.Kinds, func(have FactorsKind) bool { return have.Invariant == k.Invariant })
		if at < 0 {
			at = len(c.Parts.Kinds)
			c.Parts.Kinds = append(c.Parts.Kinds, FactorsKind{Invariant: k.Invariant, With: make([]uint64, len(k.With))})
		}
		have := &c.Parts.Kinds[at]
		have.Failed += k.Failed
		for i, n := range k.With {
			have.With[i] += n
		}
	}
	return nil
}

func onesIn(set []byte) (n int) {
	for _, b := range set {
		for ; b != 0; b &= b - 1 {
			n++
		}
	}
	return n
}
