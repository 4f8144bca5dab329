package run

import (
	"vigil/core"
	"vigil/scenarios/monitor"
	"vigil/sim/fork"
)

// What the judge remembers of a path belongs to the state of an exhaustive
// search, as what the monitors remember does: it is forked and folded.

var judgeCopier = fork.Must[Judge](map[string]fork.Rule{
	// Of the scenario, and the same in every run.
	"Judge.s": fork.Keep, "Judge.design": fork.Keep, "Judge.arrivals": fork.Keep, "Judge.wants": fork.Keep, "Judge.byKind": fork.Keep,
	"Judge.states": fork.Keep, "Judge.ends": fork.Keep, "Judge.answers": fork.Keep, "check.e": fork.Share,
	"Judge.measures": fork.Keep, "lives.byID": fork.Keep, // put right by CopyFrom
})

// CopyFrom makes j remember what o does; both must be of one scenario.
func (j *Judge) CopyFrom(o *Judge) {
	judgeCopier.Copy(j, o)
	j.lives.reindex()
}

// reindex puts the index of ids right where it is another path's.
func (l *lives) reindex() {
	if len(l.byID) == l.known {
		right := true
		for i := range l.all {
			if at, ok := l.byID[l.all[i].id]; l.all[i].id != 0 && (!ok || int(at) < i || int(at) >= len(l.all) || l.all[at].id != l.all[i].id) {
				right = false
				break
			}
		}
		if right {
			return
		}
	}
	clear(l.byID)
	for i := range l.all { // a later life takes the id over, as begin has it
		if l.all[i].id != 0 {
			l.byID[l.all[i].id] = int32(i)
		}
	}
	l.known = len(l.byID)
}

// Fingerprint folds what the judge remembers, so that two judges that judge the
// same from now on fold the same.
func (j *Judge) Fingerprint(naming monitor.Naming) core.Digest {
	d := core.Digest(1)
	var sum uint64
	for i := range j.lives.all {
		l := &j.lives.all[i]
		v := core.Digest(2)
		v.Uint(uint64(naming.Worker(int(l.worker)))<<32 | uint64(l.number))
		v.Bool(l.had)
		for _, n := range l.holds {
			v.Uint(uint64(n))
		}
		for _, t := range [...]core.Time{l.stamp, l.register, l.died} {
			v.Uint(uint64(t))
		}
		sum += uint64(v)
	}
	for w, healthy := range j.lives.healthy {
		v := core.Digest(3)
		v.Uint(uint64(naming.Worker(w)))
		v.Bool(healthy)
		sum += uint64(v)
	}
	for id := range j.requests {
		if q := &j.requests[id]; q.state != requestNone {
			v := core.Digest(4)
			v.Uint(naming.Request(core.RequestID(id)))
			v.Uint(uint64(q.state)<<32 | uint64(uint32(naming.Worker(int(q.worker)))))
			if q.state == requestOpen {
				v.Uint(uint64(q.at))
			}
			sum += uint64(v)
		}
	}
	d.Uint(sum)
	for i := range j.checks {
		c := &j.checks[i]
		flags := uint64(0)
		for b, on := range [...]bool{c.since, c.active, c.judged, c.failed} {
			if on {
				flags |= 1 << b
			}
		}
		d.Uint(flags | uint64(c.nth)<<8)
		for _, n := range c.counts {
			d.Uint(n)
		}
		for _, t := range c.last {
			d.Uint(uint64(t))
		}
		d.Uint(uint64(c.due))
		d.Uint(uint64(c.until))
	}
	d.Uint(uint64(j.due))
	d.Uint(uint64(j.offset))
	return d
}
