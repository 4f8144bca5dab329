package main

import (
	"fmt"
	"time"

	"vigil/core"
	"vigil/reports"
	"vigil/scenarios/corpus"
	"vigil/scenarios/run"
)

// kept is a folder of capsules that is played before a suite, and is one row of
// its table.
type kept struct {
	name    string
	entries []corpus.Entry
}

// corpora are the capsules to play first: those that come with simrun before
// the whole suite, and those of the user's own folder.
func corpora(suite bool, dir string) ([]kept, error) {
	var list []kept
	if suite {
		own, err := corpus.Builtin()
		if err != nil {
			return nil, err
		}
		list = append(list, kept{"corpus", own})
	}
	if dir != "" {
		more, err := corpus.Load(dir)
		if err != nil {
			return nil, fmt.Errorf("--corpus: %w", err)
		}
		list = append(list, kept{dir, more})
	}
	return list, nil
}

// playCorpora plays the capsules; each folder is a row. Shards share them out,
// so that the hash of all of them together is that of a call without shards.
func (r *request) playCorpora(progress *reports.Progress) []reports.Scenario {
	var rows []reports.Scenario
	for i := range r.corpus {
		rows = append(rows, r.corpus[i].play(r.shard, progress))
	}
	return rows
}

func (k *kept) play(shard part, progress *reports.Progress) reports.Scenario {
	row := reports.Scenario{
		ID: "corpus", Name: k.name, Corpus: true, Verdict: reports.Pass, Expected: string(reports.Pass),
		Story: "runs that were found, shrunk and kept: each as it was recorded",
	}
	began := time.Now()
	var sum uint64
	for i, e := range k.entries {
		if shard.of > 0 && uint64(i)%shard.of != shard.at() {
			continue
		}
		progress.Update(row.ID+" "+e.Name, i, len(k.entries))
		wrong, played := e.Check()
		row.Runs += len(played)
		for n := range played {
			row.Events += played[n].Events
			row.SimSeconds += float64(played[n].End) / 1e9
			var d core.Digest
			d.Bytes([]byte(e.Name))
			d.Uint(uint64(n))
			d.Uint(uint64(played[n].Hash))
			sum += uint64(d) // as in a suite: the order does not matter
		}
		for k := range wrong {
			v := violationOf(&wrong[k])
			v.Message = e.Name + ": " + v.Message
			v.Capsule, v.Replay = e.Path, replayCommand(e.Path)
			row.Violations = append(row.Violations, v)
			row.Verdict = reports.Gravest(row.Verdict, v.Verdict)
			row.FailedRuns++
		}
	}
	row.WallSeconds = time.Since(began).Seconds()
	row.Hash = (&run.Outcome{Hash: sum}).HashText()
	return row
}
