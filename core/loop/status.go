package loop

import (
	"context"
	"time"

	"vigil/core"
	"vigil/core/server"
)

// What a running server says of itself: to a status page, to metrics. Every
// answer is bounded, for the owner makes it between two steps.

// The bounds of one answer.
const (
	MaxPage     = 1000 // instances
	MaxReleases = 1000 // releases in a Status; the count is always whole
)

// Counts are the records so far, counted.
type Counts struct {
	Records  [core.RecordKinds]uint64
	Requests [256]uint64 // taken in, by wire type
	Refused  [256]uint64 // by core.Failure
	Removed  [16]uint64  // contexts, by core.RemovalCause
	// The reaper's decisions: by the window, of those that had pinged, and by
	// the registration grace, of those that never had.
	ReapedWindow, ReapedGrace uint64
	FailedOpens, FailedCloses uint64
	FailedCopies              uint64
	Stored, Retrieved, Missed uint64 // transfers that ended: stored, delivered, neither
}

func (c *Counts) take(r *core.Record) {
	if r.Kind >= core.RecordKinds {
		return
	}
	c.Records[r.Kind]++
	failed := r.Failure != core.NoFailure
	switch r.Kind {
	case core.Refused:
		c.Refused[r.Failure]++
	case core.ContextRemoved:
		c.Removed[r.A%uint64(len(c.Removed))]++
	case core.ReapDecided:
		if r.Flag {
			c.ReapedWindow++
		} else {
			c.ReapedGrace++
		}
	case core.OpenEnded:
		if failed {
			c.FailedOpens++
		}
	case core.CloseEnded:
		if failed {
			c.FailedCloses++
		}
	case core.CopyEnded:
		if failed {
			c.FailedCopies++
		}
	case core.TransferEnded:
		switch {
		case failed || !r.Flag && r.B == 0:
			c.Missed++
		case r.Flag:
			c.Stored++
		default:
			c.Retrieved++
		}
	}
}

// Status is a server at one moment.
type Status struct {
	Now      core.Time
	Stopping bool
	Config   core.ServerConfig
	Load     server.Load
	Counts   Counts

	ServerDriven, EngineDriven, Ropes int
	MappedBytes                       uint64 // charged for contexts that serve

	// Releases that have begun or wait; Stuck are those whose close has taken
	// longer than core.ReleaseBound.
	Releases      []Release
	ReleaseCount  int
	ReleaseBytes  uint64
	Stuck         int
	StuckBytes    uint64
	LostContexts  int // a failed close left them behind
	LostBytes     uint64
	StoreMapped   uint64 // bytes of memory behind the store's slots
	InlineBytes   uint64 // bytes that came inside messages and are kept
	StoreFailures uint64 // times that there was no memory for a slot

	Mailbox     int   // items that wait for the owner
	Decoding    int   // connections with messages that wait to be decoded
	DecodeBytes int64 // bytes of messages from there on
	Overflowed  uint64
	Dropped     uint64 // messages that came after the end
	Undelivered uint64 // long replies beyond the courier's bound

	Recording  RecordingStatus
	EventsLost uint64
}

// Release is a context that is being released.
type Release struct {
	server.ReleaseView
	For   time.Duration // since its close began
	Stuck bool
}

// Instance is one context for a page.
type Instance struct {
	server.ContextView
	Age    time.Duration // since it was last seen
	Still  time.Duration // since its last transfer, where it has transferred: its progress (B16)
	Window time.Duration // how old it may become
}

// Status asks the server how it is.
func (s *Server) Status(ctx context.Context) (Status, error) {
	v, err := ask(ctx, &s.owner, s.status)
	if err != nil {
		return Status{}, err
	}
	v.Mailbox = s.owner.box.depth()
	v.Decoding, v.DecodeBytes = int(s.decoders.queued.Load()), s.decoders.held.Load()
	v.Overflowed, v.Dropped = s.overflow.Load(), s.dropped.Load()
	if s.inline != nil {
		v.Undelivered = s.inline.courier.dropped.Load()
	}
	if s.options.Events != nil {
		v.EventsLost = s.options.Events.Lost()
	}
	return *v, nil
}

func (s *Server) status() *Status {
	o := &s.owner
	v := &Status{
		Now: o.now, Stopping: s.stage != drainNot, Config: s.machine.Config(), Load: s.machine.Load(), Counts: s.counts,
		StoreMapped: s.slots.mapped, StoreFailures: s.slots.failed,
	}
	if s.inline != nil {
		v.InlineBytes = s.inline.bytes
	}
	if s.tape != nil {
		v.Recording = s.tape.status()
	}
	t := s.machine.Totals()
	v.ServerDriven, v.EngineDriven, v.Ropes, v.MappedBytes = t.ServerDriven, t.EngineDriven, t.Ropes, t.MappedBytes
	v.LostContexts, v.LostBytes = s.machine.Lost()
	s.machine.Releases(func(r server.ReleaseView) bool {
		e := Release{ReleaseView: r}
		if r.Closing {
			e.For = o.now.Sub(r.Since)
			e.Stuck = r.Stuck || e.For > core.ReleaseBound
		}
		v.ReleaseCount++
		v.ReleaseBytes += r.Bytes
		if e.Stuck {
			v.Stuck++
			v.StuckBytes += r.Bytes
		}
		if len(v.Releases) < MaxReleases {
			v.Releases = append(v.Releases, e)
		}
		return true
	})
	return v
}

type page struct {
	instances []Instance
	next      int
}

// Instances returns at most limit contexts of a kind (at most MaxPage) from a
// cursor on, which is 0 at first, and the next page's cursor, -1 at the end.
// Contexts that stay are seen once; those that come meanwhile may be missed.
func (s *Server) Instances(ctx context.Context, kind core.ContextKind, cursor, limit int) ([]Instance, int, error) {
	p, err := ask(ctx, &s.owner, func() page {
		var p page
		cfg := s.machine.Config()
		p.next = s.machine.ContextsPage(kind, cursor, min(max(limit, 1), MaxPage), func(v server.ContextView) {
			i := Instance{ContextView: v}
			if kind != core.RopeState {
				i.Age, i.Window = s.owner.now.Sub(v.LastSeen), cfg.Grace
				if v.Transferred {
					i.Still = max(s.owner.now.Sub(v.LastMoved), 0)
				}
				if v.Latched {
					i.Window = cfg.Reap
				}
			}
			p.instances = append(p.instances, i)
		})
		return p
	})
	return p.instances, p.next, err
}

// Chunk tells whether the store has a chunk whose bytes are whole.
func (s *Server) Chunk(ctx context.Context, key core.ChunkKey) (bool, error) {
	return ask(ctx, &s.owner, func() bool {
		_, ready, _ := s.machine.ChunkState(key)
		return ready
	})
}
