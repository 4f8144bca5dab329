package sim

import (
	"vigil/core"
	"vigil/core/server"
	"vigil/core/worker"
	"vigil/sim/fork"
)

// A search forks a world at every choice and goes on in both. The copy goes by
// the layout of the types, so that a field of tomorrow is not forgotten; what
// follows are the fields that are not state, or that point.

// worldCopier copies what of a world lies in its own memory.
var worldCopier = fork.Must[World](map[string]fork.Rule{
	"World.plan": fork.Share, "World.prompts": fork.Share, "engine.plan": fork.Share, "submitted.part": fork.Share,
	// Each world has its own, and CopyFrom sees to it.
	"World.choices": fork.Keep, "World.observer": fork.Keep, "World.machines": fork.Keep, "World.server": fork.Keep,
	"process.world": fork.Keep, "process.machine": fork.Keep, "process.aside": fork.Keep, "process.few": fork.Keep,
	"engine.world": fork.Keep, "network.world": fork.Keep, "memory.world": fork.Keep, "story.world": fork.Keep,
	"ticks.world": fork.Keep, "ticks.steps": fork.Keep, "memory.index": fork.Keep,
	// Where time goes in ticks, all events lie in the soonest part.
	"heap.later": fork.Keep, "heap.much": fork.Keep,
	// Buffers of one event.
	"World.driver": fork.Keep, "World.input": fork.Keep, "World.call": fork.Keep, "World.scratch": fork.Keep, "World.current": fork.Keep,
	"World.reply": fork.Keep, "parcels.world": fork.Keep, "World.tensors": fork.Keep, "World.answers": fork.Keep,
	"allocation.exports": fork.Share, "allocation.groups": fork.Share,
	"World.request": fork.Keep, "World.decoder": fork.Keep, "World.asking": fork.Keep, "World.outgoing": fork.Keep, "World.name": fork.Keep,
	"World.handle": fork.Keep, "World.blocks": fork.Keep, "World.exports": fork.Keep, "World.groups": fork.Keep, "World.layers": fork.Keep, "World.shape": fork.Keep,
	"ticks.printer": fork.Keep,
})

var serverCopier = fork.Must[server.Server](map[string]fork.Rule{
	"entry.about":  fork.Share, // what a registration said never changes
	"Request.buf":  fork.Keep,  // of the decoder that made it, and no letter has one
	"Server.reply": fork.Keep, "Server.scratch": fork.Keep, "Server.poolName": fork.Keep, "Server.picked": fork.Keep,
})

var workerCopier = fork.Must[worker.Worker](map[string]fork.Rule{
	"Worker.ends": fork.Keep, "Worker.digits": fork.Keep, "Worker.reply": fork.Keep,
})

// CopyFrom makes w go on from where o stands: the same choices then give the
// same run, and no step of one is seen by the other. Both must be of one plan
// whose time goes in ticks; w keeps its own choices and its own observer.
func (w *World) CopyFrom(o *World) {
	if o.grain == 0 {
		panic("sim: only a world in ticks can be copied")
	}
	worldCopier.Copy(w, o)
	if w.server == nil {
		w.server = new(server.Server)
	}
	if o.processes[0].machine != nil {
		serverCopier.Copy(w.server, o.server)
	}
	if len(w.machines) < len(o.machines) {
		w.machines = make([]machine, len(o.machines))
	}
	for i := range w.processes {
		p, from := &w.processes[i], &o.processes[i]
		p.world, p.aside, p.machine = w, &w.asides[i], nil
		switch {
		case from.machine == nil:
		case i == 0:
			p.machine = w.server
		default:
			workerCopier.Copy(&w.machines[i-1].Worker, &o.machines[i-1].Worker)
			p.machine = &w.machines[i-1].Worker
		}
	}
	for i := range w.engines {
		w.engines[i].world = w
	}
	w.net.world, w.memory.world, w.story.world, w.ticks.world, w.parcels.world = w, w, w, w, w
	w.ticks.steps, _ = w.observer.(StepObserver)
	w.decoder.ChunkTokens, w.decoder.Legacy = w.plan.Server.ChunkTokens, w.plan.Server.Legacy
	w.memory.reindex()
}

// reindex puts the index of mappings right where it is another state's.
func (m *memory) reindex() {
	if len(m.index) == len(m.mappings) {
		right := true
		for i := range m.mappings {
			if at, ok := m.index[m.mappings[i].id]; !ok || at != int32(i) {
				right = false
				break
			}
		}
		if right {
			return
		}
	}
	if m.index == nil {
		m.index = make(map[core.Mapping]int32)
	}
	clear(m.index)
	for i := range m.mappings {
		m.index[m.mappings[i].id] = int32(i)
	}
}
