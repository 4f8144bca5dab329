package sim

import (
	"unsafe"

	"vigil/core"
	"vigil/core/worker"
)

// Fetching ahead. A worker's state is some 3 KB, spread over the simulator, its
// machine and the server. In a world of 100,000 nothing of it is in a cache
// when its timer comes up, and an event would cost one fetch from memory after
// the other. But the queue knows what comes next, so the processor is asked for
// that some events before. This changes nothing but how long a run takes: it
// writes nothing and decides nothing.

const (
	// crowd is how many workers no longer fit into the caches near a core. A
	// smaller world is not slowed down by asking for what is there.
	crowd = 256
	// foresight is how many events of the queue are looked at ahead.
	foresight = 16
	// stages is how many there are of the way to an event's state: what lies at
	// a known place, what that leads to, and so on.
	stages = 4
)

// distances is how many events of the queue before its own an event's stages
// begin. Each event in between brings some of its own, so the fetches of one
// stage have a few microseconds until the next needs them.
var distances = [stages]int{foresight, 11, 7, 3}

// fetchAhead asks for what the events to come will touch.
func (w *World) fetchAhead(now core.Time) {
	h := &w.heap
	if h.fetched[0] == h.played+foresight {
		return // this event came between those of the queue
	}
	h.lookAhead(now)
	for stage := range distances {
		end := min(h.played+distances[stage], len(h.run))
		for at := max(h.fetched[stage], h.played); at < end; at++ {
			w.fetch(stage, &h.run[at])
		}
		h.fetched[stage] = max(end, h.fetched[stage])
	}
}

// fetch asks for one stage of what an event will touch.
func (w *World) fetch(stage int, e *event) {
	i, transfers := int(e.who)-1, true
	switch e.kind {
	case evTimer:
		transfers = false
		if unpackKey(e.what).Kind == core.TimerPingReply {
			// Taken back long ago, when the reply came: the queue only forgets it,
			// and the ping that comes next has its own event.
			if stage == 0 && i >= 0 {
				prefetch(unsafe.Pointer(&w.processes[i+1]), 2)
			}
			return
		}
	case evTraffic, evPoll, evRegister, evStart:
	default:
		return // what it touches was touched just now, by the message or the operation before it
	}
	if uint(i) >= uint(len(w.engines)) || w.server == nil {
		return
	}
	m := &w.machines[i]
	switch stage {
	case 0:
		prefetch(unsafe.Pointer(&w.processes[i+1]), lines(unsafe.Sizeof(process{})))
		prefetch(unsafe.Pointer(&w.net.links[i]), 1)
		prefetch(unsafe.Pointer(&w.identities[i]), 1)
		w.choices.fetch(i + 1)
		if !transfers {
			prefetch(unsafe.Pointer(m), pingLines)
			return
		}
		prefetch(unsafe.Pointer(m), lines(unsafe.Sizeof(machine{})))
		prefetch(unsafe.Pointer(&w.engines[i]), lines(unsafe.Sizeof(engine{})))
		prefetch(unsafe.Pointer(&w.plan.Workers[i]), lines(unsafe.Sizeof(WorkerPlan{})))
		prefetch(unsafe.Pointer(&w.models[i]), 1)
	case 1:
		prefetch(unsafe.Pointer(w.server.NearBucket(w.identities[i])), 1)
		if !transfers {
			return
		}
		entries, index, names, ends := m.NearBooks()
		prefetch(unsafe.Pointer(entries), 3)
		prefetch(unsafe.Pointer(index), 1)
		prefetch(unsafe.Pointer(names), 1)
		prefetch(unsafe.Pointer(ends), 1)
		en := &w.engines[i]
		prefetch(unsafe.Pointer(unsafe.SliceData(en.pending)), 1)
		if en.allocation >= 0 {
			prefetch(unsafe.Pointer(&w.memory.allocations[en.allocation]), 2)
		}
	case 2:
		node, entry := w.server.NearEntry(w.identities[i])
		prefetch(unsafe.Pointer(node), 1)
		prefetch(unsafe.Pointer(entry), 1)
		if en := &w.engines[i]; transfers && en.allocation >= 0 {
			a := &w.memory.allocations[en.allocation]
			if int(en.next) < len(a.tags) {
				prefetch(unsafe.Pointer(&a.tags[en.next]), 1)
			}
		}
	case 3:
		if !transfers {
			return
		}
		about, mapping := w.server.NearAbout(w.identities[i])
		prefetch(unsafe.Pointer(about), lines(unsafe.Sizeof(*about)))
		if at := int(mapping) - 1; uint(at) < uint(len(w.memory.mappings)) {
			prefetch(unsafe.Pointer(&w.memory.mappings[at]), 1)
		}
	}
}

// machine is a worker on cache lines of its own.
type machine struct {
	worker.Worker
	_ [(line - unsafe.Sizeof(worker.Worker{})%line) % line]byte
}

const line = 64

// pingLines is how much of a machine a ping touches: what its own comment says
// comes first.
const pingLines = 4

// lines is how many cache lines something of a size lies in: one more where it
// does not begin on one.
func lines(size uintptr) int {
	if size%line == 0 {
		return int(size / line)
	}
	return int(size/line) + 2
}

// fetch asks for an actor's streams.
func (c *Choices) fetch(actor int) {
	if at := actor * seeded; at+seeded <= len(c.streams) {
		prefetch(unsafe.Pointer(&c.streams[at+int(ForLatency)]), 2)
	}
}
