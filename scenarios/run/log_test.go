package run

import (
	"slices"
	"testing"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/monitor"
)

// untold are the claims that may be missing without anybody noticing, each with
// the reason.
var untold = map[core.RecordKind]string{
	core.ServerWarned:  "a warning is about what other records tell",
	core.WorkerWarned:  "a warning is about what other records tell",
	core.DropFannedOut: "what it dropped is told by itself",
}

type kept struct{ list []core.Record }

func (k *kept) Observe(r *core.Record) { k.list = append(k.list, *r) }

// One claim is left out, or one of its numbers is another: the monitor says so.
func TestALogWithAMistakeIsFound(t *testing.T) {
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	type mistake struct {
		kind core.RecordKind
		what string
	}
	changes := []struct {
		what string
		make func(*core.Record)
	}{
		{"left out", nil},
		{"another A", func(r *core.Record) { r.A += 1 << 40 }},
		{"another B", func(r *core.Record) { r.B += 1 << 40 }},
		{"another flag", func(r *core.Record) { r.Flag = !r.Flag }},
	}
	found, met := map[mistake]bool{}, map[core.RecordKind]int{}
	for _, design := range scenarios.Designs {
		p := core.Document()
		if design == "hardened" {
			p = core.Hardened()
		}
		player := NewPlayer(design, p)
		for _, s := range all {
			if s.World || s.Random != "" {
				continue
			}
			var log kept
			player.Play(s, 1, &log)
			setup := SetupOf(Compile(s, p))
			l, set := monitor.NewLog(setup), monitor.New(setup)
			observe := func(r *core.Record) { l.Observe(r); set.Observe(r) }
			sound := len(brokenBy(set, log.list))
			seen := map[core.RecordKind]int{}
			for i := range log.list {
				r := log.list[i]
				if r.Actor == core.ActorWorld || seen[r.Kind] >= 2 {
					continue
				}
				seen[r.Kind]++
				met[r.Kind]++
				for _, c := range changes {
					if found[mistake{r.Kind, c.what}] {
						continue
					}
					changed := r
					l.Reset()
					set.Reset()
					for k := range log.list {
						switch {
						case k != i:
							observe(&log.list[k])
						case c.make != nil:
							c.make(&changed)
							observe(&changed)
						}
					}
					set.Finish(log.list[len(log.list)-1].At)
					if len(l.Violations()) > 0 || len(set.Violations()) > sound {
						found[mistake{r.Kind, c.what}] = true
					}
				}
			}
		}
	}
	var kinds []core.RecordKind
	for k := range met {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	if len(kinds) < 55 {
		t.Errorf("only %d kinds of claims were met", len(kinds))
	}
	for _, k := range kinds {
		if reason := untold[k]; (reason == "") != found[mistake{k, "left out"}] {
			t.Errorf("%s left out: found is %t, and the reason is %q", k, found[mistake{k, "left out"}], reason)
		}
		if numbered[k] && !found[mistake{k, "another A"}] {
			t.Errorf("%s with another A is not found", k)
		}
	}
}

// brokenBy is what the invariants say of a whole log.
func brokenBy(set *monitor.Set, list []core.Record) []monitor.Violation {
	set.Reset()
	for i := range list {
		set.Observe(&list[i])
	}
	set.Finish(list[len(list)-1].At)
	return set.Violations()
}

// numbered are the claims whose A must be right.
var numbered = map[core.RecordKind]bool{
	core.ServerStarted: true, core.RegisterArrived: true, core.OpenBegan: true, core.OpenEnded: true, core.ContextInserted: true,
	core.Stamped: true, core.ScanBegan: true, core.ScanEnded: true, core.ReapDecided: true, core.CloseBegan: true,
	core.CloseEnded: true, core.TransferBegan: true, core.CopyBegan: true, core.CopyEnded: true, core.TransferEnded: true,
	core.UnregisterCame: true, core.Refused: true, core.LockTaken: true, core.LockReturned: true, core.ChunkReserved: true,
	core.ChunkReady: true, core.ChunkDropped: true, core.PoolFull: true, core.RegisterSent: true, core.RegisterEnded: true,
	core.PingSent: true, core.PingAnswered: true, core.PingFailed: true, core.Submitted: true, core.RequestSent: true,
	core.RequestResolved: true, core.RequestDropped: true, core.FinishedReported: true, core.UnregisterSent: true, core.UnregisterEnded: true,
}
