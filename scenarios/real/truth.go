package real

import (
	"cmp"
	"slices"

	"vigil/core"
)

// One stream of records out of many sources. All of them read one host's
// clock, so their times can be compared; what one process wrote stays in the
// order in which it wrote it.

// stream merges what was seen and said until the end of the story.
func (p *play) stream(end core.Time) []core.Record {
	slack := core.Time(int64(3*mapsEvery) * int64(p.options.Scale))
	makers := map[int]core.InstanceID{}
	peers := map[core.InstanceID]uint64{}
	for _, w := range p.workers {
		for pid, id := range w.makers {
			makers[pid] = id
		}
	}
	var all []core.Record
	for n, s := range p.servers {
		until := min(s.killed, end)
		if n+1 < len(p.servers) || s.killed != core.Never {
			until = min(s.killed, end)
		}
		var mine []core.Record
		for _, r := range s.records {
			// A record may be written a moment after the kill was ordered.
			if s.killed != core.Never {
				r.At = min(r.At, s.killed)
			}
			if r.At <= end {
				mine = append(mine, r)
			}
			if r.Kind == core.RegisterArrived && n == 0 && peers[r.Instance] == 0 {
				peers[r.Instance] = r.A
			}
		}
		// The truth comes before the claim that it explains.
		truth := append(mappingTruth(s.looks, claims(mine), makers, until, slack), copyTruth(mine)...)
		slices.SortStableFunc(truth, byTime)
		all = append(all, within(truth, mine)...)
	}
	for _, w := range p.workers {
		for _, l := range w.logs {
			for _, r := range l.records {
				r.At = max(min(r.At, l.killed), 0)
				if r.At <= end {
					all = append(all, r)
				}
			}
		}
	}
	p.mu.Lock()
	world := slices.Clone(p.world)
	p.mu.Unlock()
	// The server knows its peers by numbers; a worker's first register says
	// which one its connection has.
	numbered := map[uint64]bool{}
	for i := range world {
		if r := &world[i]; r.Kind == core.ConnectionOpened && !numbered[r.B] {
			numbered[r.B] = true
			for _, id := range p.workers[r.B-1].makers {
				r.A = max(r.A, peers[id])
			}
		}
	}
	slices.SortStableFunc(world, byTime)
	for _, r := range world {
		if r.At <= end {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, byTime)
	// The last word.
	return append(all, core.Record{At: end, Kind: core.WorldEnded, Actor: core.ActorWorld})
}

func byTime(a, b core.Record) int { return cmp.Compare(a.At, b.At) }

// within merges the truth about a server's memory into its claims: an open
// comes right before the server's word that it ended, a close right after the
// word that it began.
func within(truth, claims []core.Record) []core.Record {
	out := make([]core.Record, 0, len(truth)+len(claims))
	k := 0
	for i := range claims {
		c := &claims[i]
		for k < len(truth) && (truth[k].At < c.At || truth[k].At == c.At && truth[k].Kind == core.MappingOpened && c.Kind == core.OpenEnded && truth[k].A == c.A) {
			out = append(out, truth[k])
			k++
		}
		out = append(out, *c)
		for k < len(truth) && truth[k].At == c.At && truth[k].A == c.A && (c.Kind == core.CloseBegan || c.Kind == core.CloseEnded) && truth[k].Kind != core.MappingOpened {
			out = append(out, truth[k])
			k++
		}
	}
	return append(out, truth[k:]...)
}
