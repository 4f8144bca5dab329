package sim

import (
	"strconv"

	"vigil/core"
	"vigil/core/wire"
	"vigil/faults"
)

// Raw clients stand beside the engines, as a scheduler does: they look prompts
// up, wait for prefetches, and ask what a story has them ask (ask.go). None of
// them is judged. They are the last processes of a world whose story needs any.

// clientsOf counts the raw clients that a plan's story needs.
func clientsOf(plan *Plan) int {
	n := 0
	for i := range plan.Steps {
		do := &plan.Steps[i].Do
		switch {
		case do.Kind == ActAsk:
			n = max(n, do.Ask.Client+1)
		case do.Kind == ActLookup || do.Kind == ActUnregister || do.Kind == ActFault && do.Fault.Kind == faults.BusyPool:
			n = max(n, 1)
		}
	}
	return n
}

// send sends a request of a raw client.
func (w *World) send(client int, r *wire.Request) bool {
	if w.processes[0].state == absent {
		return false
	}
	w.clientUID++
	r.UIDNumber = w.clientUID
	w.outgoing.Reset()
	wire.EncodeRequest(&w.outgoing, r)
	w.net.request(len(w.engines)+client, &w.outgoing)
	return true
}

// busy fills the NORMAL pool: every slot gets a wait for a prefetch that nobody
// began, which holds the slot until its timeout (A14, B11).
func (w *World) busy(step int, f *faults.Fault) bool {
	lasts := w.choices.Span(ForStory, step, f.For, f.For)
	for i := 0; i < w.plan.Server.NormalSlots; i++ {
		r := &w.asking
		r.Reset()
		r.Type = wire.WaitPrefetchStatus
		r.RequestID = append(w.name[:0], "nobody-"...)
		r.RequestID = strconv.AppendInt(r.RequestID, int64(step*1000+i), 10)
		w.name = r.RequestID
		r.Timeout = lasts
		if !w.send(0, r) {
			return false
		}
	}
	return true
}

// lookup asks for a prompt on behalf of a worker's engine.
func (w *World) lookup(worker, prompt int) bool {
	c := &w.plan.Workers[worker].Config
	if prompt < 0 {
		prompt = int(w.choices.Below(ForTraffic, worker+1, uint64(len(w.prompts))))
	}
	pr := &w.prompts[prompt%len(w.prompts)]
	id := w.nextRequest(len(w.engines))
	r := &w.asking
	r.Reset()
	r.Type = wire.Lookup
	r.TPSize = int64(c.WorldSize)
	w.name = strconv.AppendUint(w.name[:0], uint64(id), 10)
	r.Key = wire.Key{
		Model: []byte(c.Model), WorldSize: int64(c.WorldSize), Worker: -1, Salt: []byte(c.Salt),
		Tokens: pr.tokens, End: int64(len(pr.tokens)), RequestID: w.name,
	}
	return w.send(0, r)
}

// unregister sends an UNREGISTER in the name of a worker's last id: what an
// operator does by hand, or what comes late from a connection that is gone
// (B7, B10). The server cannot tell it from the worker's own.
func (w *World) unregister(worker int) bool {
	if w.identities[worker] == 0 {
		return false
	}
	r := &w.asking
	r.Reset()
	r.Type = wire.UnregisterKVCache
	if w.plan.Workers[worker].Config.Mode == core.ModeEngineDriven {
		r.Type = wire.UnregisterEngineDriven
	}
	r.Instance = w.identities[worker]
	return w.send(0, r)
}
