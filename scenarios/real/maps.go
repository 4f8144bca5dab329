package real

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"strconv"

	"vigil/core"
)

// The truth about mappings: what /proc shows of the server's address space. A
// segment's name says which process made it, so each mapped byte has a worker.
//
// /proc is looked at every mapsEvery; a mapping that opens and closes between
// two looks is not seen. The server's own records say to the microsecond when
// it opened and closed; they are believed where /proc agrees around that time,
// and only there.

// look is one reading of a server's /proc/PID/maps: bytes by the PID that made
// the segment. At is before the reading, to after it.
type look struct {
	at, to core.Time
	bytes  map[int]uint64
}

// readMaps reads which segments a process has mapped, by their makers.
func readMaps(pid int) (map[int]uint64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return nil, err
	}
	found := map[int]uint64{}
	for line := range bytes.Lines(text) {
		i := bytes.Index(line, []byte(" "+segmentFolder+"/"))
		if i < 0 {
			continue
		}
		name := bytes.TrimSpace(line[i+len(segmentFolder)+2:])
		name = bytes.TrimSuffix(name, []byte(" (deleted)"))
		maker, _, ok := segmentOwner(string(name))
		if !ok {
			continue
		}
		low, rest, _ := bytes.Cut(line, []byte("-"))
		high, _, _ := bytes.Cut(rest, []byte(" "))
		a, errA := strconv.ParseUint(string(low), 16, 64)
		b, errB := strconv.ParseUint(string(high), 16, 64)
		if errA == nil && errB == nil && b > a {
			found[maker] += b - a
		}
	}
	return found, nil
}

// claim is one mapping as one life of the server records it.
type claim struct {
	id             uint64
	instance       core.InstanceID
	incarnation    core.Incarnation
	bytes          uint64
	opened, closed core.Time // closed: core.Never while it is open
	closing        core.Time
}

// claims reads the mappings that a server's records tell of, in their order.
func claims(records []core.Record) []claim {
	var list []claim
	open := map[uint64]int{}
	for i := range records {
		r := &records[i]
		if r.Actor != core.ActorServer {
			continue
		}
		switch r.Kind {
		case core.OpenEnded:
			if r.Failure == core.NoFailure {
				open[r.A] = len(list)
				list = append(list, claim{id: r.A, instance: r.Instance, incarnation: r.Incarnation, bytes: r.B, opened: r.At, closed: core.Never, closing: core.Never})
			}
		case core.CloseBegan:
			if k, ok := open[r.A]; ok {
				list[k].closing = min(list[k].closing, r.At)
			}
		case core.CloseEnded:
			if k, ok := open[r.A]; ok && r.Failure == core.NoFailure {
				list[k].closed = r.At
				delete(open, r.A)
			}
		}
	}
	return list
}

// page is the least that is mapped.
const page = 4096

// unclaimed is where the numbers of mappings begin that no record tells of.
const unclaimed = 1 << 40

// mappingTruth holds the looks at one life of a server against its claims and
// returns the truth: opens and closes as the monitors know them. makers says
// which instance each process is. slack is how far a claim and a look may be
// apart: the time of a look, and what it takes a record to follow its deed.
func mappingTruth(looks []look, list []claim, makers map[int]core.InstanceID, end, slack core.Time) []core.Record {
	var out []core.Record
	say := func(at core.Time, kind core.RecordKind, c *claim) {
		out = append(out, core.Record{
			At: at, Kind: kind, Actor: core.ActorWorld, Instance: c.instance, Incarnation: c.incarnation, A: c.id, B: c.bytes, Context: core.ServerDriven,
		})
	}
	byInstance := map[core.InstanceID][]int{}
	for pid, id := range makers {
		byInstance[id] = append(byInstance[id], pid)
	}
	mapped := func(l *look, id core.InstanceID) (sum uint64) {
		for _, pid := range byInstance[id] {
			sum += l.bytes[pid]
		}
		return sum
	}
	// expected is what claims explain of an instance's bytes at a look: all
	// that may be open, and all that must be.
	expected := func(l *look, id core.InstanceID) (least, most uint64) {
		for i := range list {
			c := &list[i]
			if c.instance != id {
				continue
			}
			if c.opened-slack <= l.to && (c.closed == core.Never || c.closed+slack >= l.at) {
				most += (c.bytes + page - 1) &^ (page - 1)
			}
			if c.opened+slack < l.at && c.closing-slack > l.to {
				least += c.bytes
			}
		}
		return least, most
	}
	seen := map[core.InstanceID]bool{}
	for i := range list {
		c := &list[i]
		seen[c.instance] = true
		// Was it there? The first look well after the open decides, if one lies
		// before the close.
		there := true
		for k := range looks {
			if l := &looks[k]; l.at > c.opened+slack {
				if l.to < c.closing-slack {
					least, _ := expected(l, c.instance)
					there = mapped(l, c.instance) >= least
				}
				break
			}
		}
		if !there {
			continue
		}
		say(c.opened, core.MappingOpened, c)
		if c.closing != core.Never {
			say(c.closing, core.MappingClosing, c)
		}
		if c.closed == core.Never {
			continue
		}
		// Has it gone? The first look after the close at which no more is mapped
		// than the other claims explain.
		gone := c.closed
		for k := range looks {
			l := &looks[k]
			if l.at <= c.closed+slack {
				continue
			}
			if _, most := expected(l, c.instance); mapped(l, c.instance) <= most {
				break
			}
			gone = core.Never
			for _, later := range looks[k+1:] {
				if _, most := expected(&later, c.instance); mapped(&later, c.instance) <= most {
					gone = later.at
					break
				}
			}
			break
		}
		if gone != core.Never {
			say(gone, core.MappingClosed, c)
		}
	}
	// What is mapped and was never claimed.
	number := uint64(unclaimed)
	for id := range byInstance {
		if seen[id] {
			continue
		}
		var c *claim
		for k := range looks {
			l := &looks[k]
			switch bytes := mapped(l, id); {
			case bytes > 0 && c == nil:
				number++
				c = &claim{id: number, instance: id, bytes: bytes}
				say(l.at, core.MappingOpened, c)
			case bytes == 0 && c != nil:
				say(l.at, core.MappingClosed, c)
				c = nil
			}
		}
	}
	slices.SortStableFunc(out, func(a, b core.Record) int { return cmp.Compare(a.At, b.At) })
	for i := range out {
		out[i].At = min(out[i].At, end)
	}
	return out
}

// copyTruth finds releases that began under a copy, by the server's own
// records: the copy's end is recorded after the close began.
func copyTruth(records []core.Record) []core.Record {
	type op struct {
		at      int
		mapping uint64
	}
	open := map[uint64]op{}
	var out []core.Record
	for i := range records {
		r := &records[i]
		if r.Actor != core.ActorServer {
			continue
		}
		switch r.Kind {
		case core.CopyBegan:
			open[r.B] = op{i, r.A}
		case core.CopyEnded:
			delete(open, r.B)
		case core.CloseBegan:
			for number, o := range open {
				if o.mapping == r.A {
					out = append(out, core.Record{
						At: r.At, Kind: core.CopyTouchedRelease, Actor: core.ActorWorld,
						Instance: r.Instance, Incarnation: r.Incarnation, A: r.A, B: number, Context: core.ServerDriven,
					})
				}
			}
		}
	}
	return out
}
