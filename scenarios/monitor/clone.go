package monitor

import (
	"vigil/core"
	"vigil/sim/fork"
)

// An exhaustive search judges every path, and paths that meet in one state are
// gone on with once. So what the monitors remember belongs to the state: it is
// forked with the world and folded into its fingerprint.

var setCopier = fork.Must[Set](map[string]fork.Rule{
	"Set.setup": fork.Keep, "Set.bounds": fork.Keep, "Set.skewed": fork.Keep, // of the plan
})

// CopyFrom makes m remember what o does; both must be of one setup.
func (m *Set) CopyFrom(o *Set) { setCopier.Copy(m, o) }

// StepOver says that everything of one event was observed, for a world in which
// the time of the next one does not tell.
func (m *Set) StepOver() { m.settle() }

// Found returns how many violations were found.
func (m *Set) Found() int { return len(m.violations) + m.dropped }

// Naming lets workers that are alike change places in a fingerprint.
type Naming interface {
	Worker(int) int
	Instance(core.InstanceID) uint64
	Request(core.RequestID) uint64
}

// Fingerprint folds what the monitors remember, so that two sets that judge the
// same from now on fold the same. Times are folded as they are. Numbers that
// the server hands out are not folded, but their order within one instance.
func (m *Set) Fingerprint(naming Naming) core.Digest {
	f := folder{m: m, naming: naming}
	var sum uint64
	for w := range m.workers {
		sum += f.worker(w)
	}
	for i := range m.instances.items {
		sum += f.instance(int32(i))
	}
	for i := range m.contexts.items {
		if m.contexts.items[i].incarnation != 0 {
			sum += f.context(int32(i))
		}
	}
	for i := range m.mappings.items {
		if m.mappings.items[i].id != 0 {
			sum += f.mapping(int32(i))
		}
	}
	for _, c := range m.layouts.index.cells {
		if c.key != 0 {
			d := core.Digest(5)
			d.Uint(c.key)
			d.Uint(uint64(m.layouts.items[c.value].holders))
			sum += uint64(d)
		}
	}
	for _, c := range m.reserved.index.cells {
		if c.key != 0 {
			d := core.Digest(6)
			d.Uint(f.incarnation(m.reserved.items[c.value].incarnation))
			sum += uint64(d)
		}
	}
	for _, c := range m.peers.index.cells {
		if c.key != 0 {
			d := core.Digest(7)
			d.Uint(c.key >> 32)
			d.Uint(uint64(naming.Worker(int(m.peers.items[c.value]))))
			sum += uint64(d)
		}
	}
	d := core.Digest(sum)
	d.Uint(f.id(m.lastSlow.instance))
	d.Uint(uint64(m.lastSlow.from))
	d.Uint(uint64(m.lastSlow.to))
	if at := m.mappings.get(m.failed); m.failed != 0 && at >= 0 {
		d.Uint(f.mapping(at))
	}
	d.Uint(uint64(m.locks))
	d.Uint(uint64(m.peak))
	d.Uint(packed(m.up, m.paused, m.stopping, m.saw.processes, m.saw.network, m.saw.memory, m.saw.engines))
	d.Uint(uint64(m.upSince))
	d.Uint(uint64(m.faultsOver))
	d.Uint(uint64(m.reported))
	d.Uint(uint64(len(m.unsettled)))
	return d
}

func packed(flags ...bool) uint64 {
	var v uint64
	for i, on := range flags {
		if on {
			v |= 1 << i
		}
	}
	return v
}

// together folds several times into one number: products of numbers that have
// nothing to do with each other, which a processor works out side by side.
func together(times ...core.Time) uint64 {
	var v uint64
	for i, t := range times {
		v += (uint64(t) + 1) * weights[i]
	}
	return v
}

var weights = [...]uint64{0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93, 0xa0761d6478bd642f}

type folder struct {
	m      *Set
	naming Naming
}

// id names an instance, 0 for none.
func (f *folder) id(i int32) uint64 {
	if i < 0 {
		return 0
	}
	return f.naming.Instance(f.m.instances.items[i].id)
}

func (f *folder) worker(w int) uint64 {
	k := &f.m.workers[w]
	d := core.Digest(1)
	d.Uint(uint64(f.naming.Worker(w)))
	d.Uint(f.id(k.instance))
	d.Uint(packed(k.alive, k.paused, k.cut, k.disconnected, k.registered, k.leave, k.left, k.pending, k.skewHandled, k.skewRefused) |
		uint64(k.reported)<<16 | uint64(k.lastFailure)<<32 | uint64(uint8(k.connections))<<40)
	d.Uint(together(k.pingSent, k.calm, k.registeredAt, k.registerSent, k.registerLate))
	return uint64(d)
}

func (f *folder) instance(i int32) uint64 {
	in := &f.m.instances.items[i]
	d := core.Digest(2)
	d.Uint(f.id(i))
	d.Uint(uint64(f.naming.Worker(int(in.worker)))<<32 | uint64(uint32(in.credit)))
	flags := packed(in.pingEver, in.asked, in.everPinged, in.aliased, in.everLeft, in.queued, in.rope, in.ropeOrder > in.reapedOrder,
		in.pinged[0], in.pinged[1], in.traffic[0], in.traffic[1], in.has[0], in.has[1], in.left[0], in.left[1])
	d.Uint(flags | uint64(uint8(in.owners))<<16 | uint64(uint8(in.leftOwners))<<24 | uint64(uint8(in.copies))<<32 |
		uint64(uint8(in.strategies))<<40 | uint64(uint8(in.live))<<48)
	d.Uint(uint64(in.copying))
	d.Uint(together(in.lastReached, in.stamped, in.copyBegan, in.deadAt, in.opened))
	for k := range in.has {
		d.Uint(together(in.signal[k], in.earlier[k], in.registerReached[k], in.registerRun[k], in.emptySince[k]))
		d.Uint(uint64(in.removedCause[k])<<32 | f.incarnation(in.serving[k]))
	}
	var sum uint64
	for at := in.requests; at != 0; at = f.m.requests[at-1].next {
		q := &f.m.requests[at-1]
		r := core.Digest(8)
		r.Uint(f.naming.Request(core.RequestID(q.id)))
		r.Uint(uint64(q.at))
		r.Uint(packed(q.store, q.held))
		sum += uint64(r)
	}
	d.Uint(sum)
	return uint64(d)
}

// incarnation is the rank of an incarnation among its instance's contexts, from
// 1, the oldest; 0 for none that is followed.
func (f *folder) incarnation(n core.Incarnation) uint64 {
	c := f.m.contexts.get(uint64(n))
	if c < 0 {
		return 0
	}
	rank := uint64(1)
	for i := range f.m.contexts.items {
		if x := &f.m.contexts.items[i]; x.incarnation != 0 && x.incarnation < n && x.instance == f.m.contexts.items[c].instance {
			rank++
		}
	}
	return rank
}

func (f *folder) context(i int32) uint64 {
	x := &f.m.contexts.items[i]
	d := core.Digest(3)
	d.Uint(f.id(x.instance))
	d.Uint(packed(x.serving, x.removed, x.decided, x.order < f.m.instances.items[x.instance].ropeOrder) | uint64(uint8(x.kind))<<8 |
		uint64(uint8(x.shares))<<16 | uint64(uint8(x.strategies))<<24 | uint64(uint16(x.reserved))<<32 | f.incarnation(x.incarnation)<<48)
	d.Uint(together(x.insertedAt, x.decidedAt, x.removedAt))
	if at := f.m.mappings.get(x.mapping); x.mapping != 0 && at >= 0 {
		d.Uint(f.mapping(at))
	} else {
		d.Bool(x.mapping != 0)
	}
	return uint64(d)
}

func (f *folder) mapping(i int32) uint64 {
	mp := &f.m.mappings.items[i]
	rank := uint64(0)
	for k := range f.m.mappings.items {
		if o := &f.m.mappings.items[k]; o.id != 0 && o.id < mp.id && o.instance == mp.instance {
			rank++
		}
	}
	d := core.Digest(4)
	d.Uint(f.id(mp.instance))
	d.Uint(packed(mp.closing, mp.hung, mp.stuck, mp.failed, mp.counted) | rank<<8 | f.incarnation(mp.incarnation)<<32)
	d.Uint(mp.bytes)
	if mp.closing || mp.failed {
		d.Uint(uint64(mp.closingAt))
	}
	return uint64(d)
}
