package spacetime

import (
	"fmt"
	"strings"

	"vigil/core"
)

// A lane is one process: the server, or one life of one worker.

// maxLanes bounds the lanes of a diagram: a log can name instances without
// end. Whoever comes later has no lane; its records are listed all the same.
const maxLanes = 4096

type lane struct {
	Name     string    `json:"name"`
	Worker   int       `json:"worker"` // its number, -1 for the server and for instances of a log
	Life     int       `json:"life"`   // from 1
	Instance string    `json:"instance,omitempty"`
	Began    core.Time `json:"began"`
	Ended    core.Time `json:"ended"` // -1 where it ran to the end

	Process []change `json:"process"` // processStates
	Link    []change `json:"link"`    // linkStates
	Health  []change `json:"health"`  // healthStates

	flight  []change // requests of its engine that have not ended
	flying  int
	said    bool // its process has said who it is
	cut     bool
	hasPeer bool
}

// change is a state that holds from a time on.
type change struct {
	At core.Time
	Is int
}

// MarshalJSON is the pair, to keep the data short.
func (c change) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "[%d,%d]", c.At, c.Is), nil }

// The states of a lane's tracks, by number.
const (
	processAbsent = iota
	processRuns
	processFrozen
	processKilled
	processLeft
)

const (
	linkNone = iota
	linkUp
	linkCut
)

const (
	healthNone = iota // no heartbeat
	healthGood
	healthBad
	healthOver // stopped
)

func (l *lane) base() string {
	name, _, _ := strings.Cut(l.Name, " life ")
	return name
}

func set(track *[]change, at core.Time, is int) {
	if n := len(*track); n > 0 && (*track)[n-1].Is == is {
		return
	}
	*track = append(*track, change{at, is})
}

// begin starts a life of a worker.
func (d *Diagram) begin(worker int, at core.Time) int32 {
	if len(d.lanes) >= maxLanes {
		return -1
	}
	for worker >= len(d.current) { // a client beside the workers
		d.current = append(d.current, -1)
		d.workers = append(d.workers, "client")
	}
	life := 1
	if before := d.current[worker]; before >= 0 {
		life = d.lanes[before].Life + 1
	}
	name := d.workers[worker]
	if life > 1 {
		name = fmt.Sprintf("%s life %d", name, life)
	}
	d.current[worker] = int32(len(d.lanes))
	d.lanes = append(d.lanes, lane{Name: name, Worker: worker, Life: life, Began: at, Ended: -1})
	return d.current[worker]
}

// mostClients bounds the numbers of clients beside the workers: what is beyond
// is no number of a worker.
const mostClients = 1 << 12

// of is the lane of a worker's number, begun where it has none yet.
func (d *Diagram) of(worker int, at core.Time) int32 {
	if worker < 0 || worker > len(d.workers) || worker > mostClients {
		return -1
	}
	if worker < len(d.current) && d.current[worker] >= 0 {
		return d.current[worker]
	}
	return d.begin(worker, at)
}

// numbered says where a record of the world has the number of the process that
// it is about.
func numbered(r *core.Record) (number uint64, has bool) {
	switch r.Kind {
	case core.ProcessStarted, core.ProcessKilled, core.ProcessExited, core.ProcessPaused, core.ProcessResumed,
		core.LinkCut, core.LinkHealed, core.MessageSent, core.MessageLost:
		return r.A, true
	case core.ConnectionOpened, core.ConnectionClosed, core.EngineSubmitted:
		return r.B, true
	}
	return 0, false
}

// follow finds the lane of a record and keeps the lanes' states.
func (d *Diagram) follow(r *core.Record) int32 {
	at := d.find(r)
	if at < 0 {
		return at
	}
	l := &d.lanes[at]
	if l.Began < 0 {
		l.Began = r.At
	}
	switch r.Kind {
	case core.ProcessStarted, core.ServerStarted, core.WorkerStarted:
		set(&l.Process, r.At, processRuns)
		l.Ended = -1
		if r.Kind == core.WorkerStarted {
			l.said = true
			if r.Instance != 0 {
				l.Instance = fmt.Sprint(uint64(r.Instance))
				d.byInstance[r.Instance] = at
			}
		}
	case core.ProcessPaused:
		set(&l.Process, r.At, processFrozen)
	case core.ProcessResumed:
		set(&l.Process, r.At, processRuns)
		if at == 0 {
			d.serverOff = core.Never // a suspended host's clock stood still
		}
	case core.ProcessKilled:
		set(&l.Process, r.At, processKilled)
		l.Ended = r.At
	case core.ProcessExited, core.WorkerStopped, core.ServerStopped:
		set(&l.Process, r.At, processLeft)
		l.Ended = r.At
	case core.ConnectionOpened:
		l.hasPeer = true
		if !l.cut {
			set(&l.Link, r.At, linkUp)
		}
	case core.ConnectionClosed:
		l.hasPeer = false
		if !l.cut {
			set(&l.Link, r.At, linkNone)
		}
	case core.LinkCut:
		l.cut = true
		set(&l.Link, r.At, linkCut)
	case core.LinkHealed:
		l.cut = false
		if set(&l.Link, r.At, linkNone); l.hasPeer {
			l.Link[len(l.Link)-1].Is = linkUp
		}
	case core.HeartbeatStarted, core.HealthSet:
		set(&l.Health, r.At, healthGood)
	case core.HealthCleared:
		set(&l.Health, r.At, healthBad)
	case core.HeartbeatStopped:
		set(&l.Health, r.At, healthOver)
	case core.EngineSubmitted:
		l.flying++
		l.flight = append(l.flight, change{r.At, l.flying})
	case core.EngineTold:
		if l.flying > 0 {
			l.flying--
		}
		l.flight = append(l.flight, change{r.At, l.flying})
	}
	return at
}

// find is the lane that a record is about, -1 for none.
func (d *Diagram) find(r *core.Record) int32 {
	if r.Actor >= core.FirstWorker {
		w := int(r.Actor - core.FirstWorker)
		if r.Kind == core.WorkerStarted && w < len(d.current) && d.current[w] >= 0 && d.lanes[d.current[w]].said {
			return d.begin(w, r.At)
		}
		return d.of(w, r.At)
	}
	number, has := numbered(r)
	if has && r.Kind == core.ProcessStarted && number > 0 && number <= uint64(len(d.workers)) {
		if at := d.current[number-1]; at >= 0 && len(d.lanes[at].Process) == 0 {
			return at // something struck it before it lived
		}
		return d.begin(int(number-1), r.At)
	}
	if r.Instance != 0 {
		if at, known := d.byInstance[r.Instance]; known {
			return at
		}
		if len(d.workers) == 0 && len(d.lanes) < maxLanes { // a log: instances are all it knows
			at := int32(len(d.lanes))
			d.lanes = append(d.lanes, lane{Name: fmt.Sprintf("instance %d", uint64(r.Instance)), Worker: -1, Life: 1, Instance: fmt.Sprint(uint64(r.Instance)), Began: r.At, Ended: -1})
			d.byInstance[r.Instance] = at
			return at
		}
	}
	if has {
		if number == 0 {
			return 0
		}
		return d.of(int(min(number-1, mostClients+1)), r.At)
	}
	if r.Actor == core.ActorServer {
		return 0
	}
	return -1
}
