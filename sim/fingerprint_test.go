package sim

import (
	"testing"
	"time"

	"vigil/core"
	"vigil/faults"
	"vigil/sim/fork/fieldtest"
)

// leftOut are the fields of a world that its fingerprint does not fold, each
// with the reason why two worlds that differ in it behave the same.
var leftOut = map[string]string{
	"World.grain":         "of the tape, the same in all states of a search",
	"World.hash":          "the past",
	"World.events":        "the past",
	"World.records":       "the past",
	"World.models":        "of the plan",
	"World.crowd":         "of the plan: how many workers there are",
	"World.blockTokens":   "of the plan",
	"event.seq":           "the order of asking, of which a search tries all",
	"heap.horizon":        "in ticks all events are soon",
	"heap.seq":            "the order of asking",
	"network.free":        "names",
	"memory.closed":       "the order in which the oldest closed mappings are forgotten, a thousand back",
	"memory.free":         "names",
	"mapping.id":          "a name, folded by the rank",
	"mapping.incarnation": "a name, which only records tell",
	"trouble.worker":      "of the step",
	"trouble.hang":        "of the step",
	"trouble.fail":        "of the step",
	"trouble.kind":        "of the step",
	"engine.index":        "of the plan",
	"engine.blocks":       "of the plan",
	"ticks.ready":         "found anew in each state",
	"heap.played":         "of fetching ahead, which is not done in ticks",
	"heap.fetched":        "of fetching ahead, which is not done in ticks",
	"heap.known":          "of fetching ahead, which is not done in ticks",
	"World.askers":        "empty: a story in which raw clients ask is not searched",
	"World.answers":       "empty, as askers",
	"parcels.last":        "of askers, which a searched world has none of",
	"parcels.came":        "empty, as askers",
	"parcels.slots":       "empty, as askers",
	"allocation.exports":  "of the plan",
	"allocation.groups":   "of the plan",
	"allocation.stride":   "of the plan",
	"message.print":       "of the message",
	"World.asides":        "one of each process",
	"lane.tail":           "where the chain from the head ends",
	"ticks.wide":          "of the plan",
}

// notState are what is no state at all: buffers of one event, and what is made of
// the plan.
var notState = []string{
	"World.input", "World.call", "World.current", "World.request", "World.decoder", "World.asking", "World.reply", "World.tensors", "World.outgoing", "World.name",
	"World.handle", "World.blocks", "World.exports", "World.groups", "World.layers", "World.shape", "World.scratch", "World.driver", "World.prompts", "World.promptsOf",
	"World.machines", "ticks.printer", "ticks.prints", "heap.later", "heap.much", "process.few",
}

// everyWorld are worlds in ticks in which between them everything happens.
func everyWorld() *Plan {
	p := &Plan{Server: core.DefaultServerConfig(), Until: 200 * time.Second, PromptLow: 16, PromptHigh: 64}
	p.Server.ChunkTokens, p.Server.Reap, p.Server.Grace = 16, 30*time.Second, 60*time.Second
	p.CloseTime, p.CopyTime, p.OpenTime = faults.Fixed(3*time.Second), faults.Fixed(2*time.Second), faults.Fixed(time.Second)
	p.Latency = faults.Fixed(500 * time.Millisecond)
	for i := range 3 {
		c := core.DefaultWorkerConfig()
		c.ChunkTokens, c.Blend = 16, i == 1
		p.Workers = append(p.Workers, WorkerPlan{Config: c, Pod: i, Blocks: 8, Start: faults.Fixed(500 * time.Millisecond)})
		p.Workers[i].Traffic.Every = faults.Span{Low: 5 * time.Second, High: 10 * time.Second}
	}
	fault := func(at time.Duration, f faults.Fault) {
		p.Steps = append(p.Steps, Step{At: faults.Fixed(at), Do: Action{Kind: ActFault, Worker: f.Worker, Fault: f}})
	}
	fault(20*time.Second, faults.Fault{Kind: faults.Cut, Worker: 0, For: faults.Fixed(45 * time.Second)})
	fault(25*time.Second, faults.Fault{Kind: faults.Pause, Worker: 1, For: faults.Fixed(40 * time.Second)})
	fault(30*time.Second, faults.Fault{Kind: faults.HostSuspend, Worker: 2, For: faults.Fixed(10 * time.Second)})
	fault(40*time.Second, faults.Fault{Kind: faults.Delay, Worker: 2, Amount: faults.Fixed(time.Second), For: faults.Fixed(10 * time.Second)})
	fault(50*time.Second, faults.Fault{Kind: faults.StarveHeartbeat, Worker: 2, For: faults.Fixed(15 * time.Second)})
	fault(60*time.Second, faults.Fault{Kind: faults.SlowCopy, Worker: 0, Count: 3, Amount: faults.Fixed(2 * time.Second), For: faults.Fixed(40 * time.Second)})
	fault(70*time.Second, faults.Fault{Kind: faults.HangClose, Worker: 1, Count: 1, For: faults.Fixed(40 * time.Second)})
	fault(75*time.Second, faults.Fault{Kind: faults.ServerFreeze, Worker: faults.Server, For: faults.Fixed(5 * time.Second)})
	fault(80*time.Second, faults.Fault{Kind: faults.DeviceOutOfMemory, Worker: faults.Server, Bytes: 1 << 16, For: faults.Fixed(20 * time.Second)})
	fault(90*time.Second, faults.Fault{Kind: faults.Restart, Worker: 2})
	fault(100*time.Second, faults.Fault{Kind: faults.Cut, Worker: 1, Reset: true, For: faults.Fixed(10 * time.Second)})
	fault(110*time.Second, faults.Fault{Kind: faults.StickEngine, Worker: 0, For: faults.Fixed(10 * time.Second)})
	fault(130*time.Second, faults.Fault{Kind: faults.ServerRestart, Worker: faults.Server})
	p.Steps = append(p.Steps,
		Step{When: &Trigger{Record: core.HealthCleared, Worker: 0, Nth: 2}, Do: Action{Kind: ActStore, Worker: 0, Prompt: -1}},
		Step{At: faults.Fixed(120 * time.Second), Do: Action{Kind: ActLookup, Worker: 0, Prompt: -1}},
		Step{At: faults.Fixed(160 * time.Second), Do: Action{Kind: ActShutdown, Worker: 0}},
	)
	return p
}

// Every field of a world either shows in its fingerprint or stands in a list
// with the reason why it need not.
func TestEveryFieldIsFoldedOrExplained(t *testing.T) {
	noticed := map[string]bool{}
	w := NewWorld()
	for seed := range uint64(2) {
		c := NewChoices(seed)
		tape := InTicks(500*time.Millisecond, dice{c})
		w.Begin(everyWorld(), tape, nil)
		for k := 0; ; k++ {
			n := w.Ready()
			if n == 0 {
				break
			}
			if k%7 == 0 {
				fieldtest.Merge(noticed, fieldtest.Noticed(w, map[string]int64{
					"message.next": -1, "lane.head": -1, "lane.tail": -1, "network.messages": 0, "network.links": 0, "World.processes": 0,
					"World.engines": 0, "memory.operations": 0, "memory.mappings": 0, "memory.allocations": 0,
				}, notState, func() uint64 {
					for i := range w.ticks.prints {
						w.ticks.prints[i].valid = false
					}
					for i := range w.net.messages {
						w.net.messages[i].print = 0
					}
					return uint64(w.Fingerprint(nil))
				}))
			}
			if what := w.Step(int(c.Below(ForOrder, 1, uint64(n)))); what != "" {
				t.Fatal(what)
			}
		}
	}
	for field, yes := range noticed {
		_, out := leftOut[field]
		switch {
		case yes && out:
			t.Errorf("%s shows in the fingerprint and is said to be left out: %s", field, leftOut[field])
		case !yes && !out:
			t.Errorf("%s does not show in the fingerprint: fold it, or say in leftOut why two worlds that differ in it behave the same", field)
		}
	}
	for field := range leftOut {
		if _, met := noticed[field]; !met {
			t.Logf("%s was not met", field)
		}
	}
}

type dice struct{ c *Choices }

func (d dice) Draw(p Purpose, actor int, n uint64) uint64 { return d.c.Below(p, actor, n) }
