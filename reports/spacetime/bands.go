package spacetime

import "vigil/core"

// A band is a time in which something acts on a lane: a frozen process, a cut
// link, another fault.

type band struct {
	Lane  int32     `json:"lane"` // -1: all of them
	Kind  string    `json:"kind"` // frozen, cut, down, fault
	From  core.Time `json:"from"`
	To    core.Time `json:"to"` // -1 where it lasts to the end
	Label string    `json:"label"`
}

type bandKey struct {
	lane int32
	kind string
}

// maxBands bounds the bands and the marks of one diagram; more would be drawn
// over one another.
const maxBands = 20_000

func (d *Diagram) beginBand(lane int32, kind, label string, at core.Time) {
	d.endBand(lane, kind, at)
	if lane < 0 || len(d.bands) >= maxBands {
		return
	}
	d.open[bandKey{lane, kind}] = len(d.bands)
	d.bands = append(d.bands, band{lane, kind, at, -1, label})
}

func (d *Diagram) endBand(lane int32, kind string, at core.Time) {
	key := bandKey{lane, kind}
	if i, open := d.open[key]; open {
		d.bands[i].To = at
		delete(d.open, key)
	}
}

var cutWays = []string{"link cut", "link cut towards the server", "link cut towards the worker"}

// bend keeps the bands and marks.
func (d *Diagram) bend(r *core.Record, lane int32) {
	switch r.Kind {
	case core.ProcessPaused:
		d.beginBand(lane, "frozen", "frozen", r.At)
	case core.ProcessResumed:
		d.endBand(lane, "frozen", r.At)
	case core.ProcessKilled, core.ProcessExited:
		for _, kind := range []string{"frozen", "cut"} {
			d.endBand(lane, kind, r.At)
		}
		if lane == 0 {
			d.beginBand(0, "down", "no server", r.At)
		}
	case core.ProcessStarted, core.ServerStarted:
		if lane == 0 {
			d.endBand(0, "down", r.At)
		}
	case core.LinkCut:
		d.beginBand(lane, "cut", cutWays[min(r.B, uint64(len(cutWays)-1))], r.At)
	case core.LinkHealed:
		d.endBand(lane, "cut", r.At)
	case core.ScanBegan:
		d.scans = append(d.scans, r.At)
	case core.FaultStruck:
		if r.A >= uint64(len(d.Steps)) || len(d.marks) >= maxBands {
			return
		}
		s := &d.Steps[r.A]
		at := int32(-1)
		switch {
		case s.Worker == Server:
			at = 0
		case s.Worker >= 0 && s.Worker < len(d.current):
			at = d.current[s.Worker]
		}
		d.marks = append(d.marks, mark{r.At, at, s.Label, r.Flag})
		if r.Flag && s.For > 0 && len(d.bands) < maxBands {
			d.bands = append(d.bands, band{at, "fault", r.At, r.At.Add(s.For), s.Label})
		}
	}
}
