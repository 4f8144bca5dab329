package server

import (
	"vigil/core"
)

// layouts are the descriptors that contexts of one model and world size share.
// A descriptor lives exactly as long as it has holders. Holders are a set, not
// a count: a share that is returned twice, or by somebody who has none, does
// not take another holder's descriptor away.
type layouts struct {
	known   registry[layout] // by layoutHash
	holders registry[holder] // by incarnation, which is unique over all kinds
}

type layout struct {
	model      string
	world      int64
	hash       uint64
	descriptor core.Digest // of the newest holder: newer overwrites older, uncompared
	holders    int
}

type holder struct {
	kind        core.ContextKind
	instance    core.InstanceID
	incarnation core.Incarnation
	layout      int32
}

// layoutHash names a layout in records; it is the same on every machine.
func layoutHash(model []byte, world int64) uint64 {
	var d core.Digest
	d.Bytes(model)
	d.Uint(uint64(world))
	return uint64(d)
}

// find returns the position of a layout, -1 where there is none.
func (l *layouts) find(model []byte, world int64) int32 {
	hash := layoutHash(model, world)
	for pos := l.known.find(hash); pos >= 0; pos = l.known.ids.following(pos, hash) {
		if e := &l.known.entries[pos]; e.world == world && e.model == string(model) {
			return pos
		}
	}
	return -1
}

// acquire makes a context a holder of its layout.
func (l *layouts) acquire(out *core.Effects, kind core.ContextKind, e *entry) {
	if l.holders.find(uint64(e.incarnation)) >= 0 {
		return
	}
	pos := l.find([]byte(e.about.model), e.about.world)
	if pos < 0 {
		pos = l.known.add(e.about.layout)
		l.known.entries[pos] = layout{model: e.about.model, world: e.about.world, hash: e.about.layout}
	}
	at := l.holders.add(uint64(e.incarnation))
	l.holders.entries[at] = holder{kind, e.instance, e.incarnation, pos}
	known := &l.known.entries[pos]
	known.holders++
	known.descriptor = e.about.content[0]
	note(out, core.LayoutAcquired, kind, e, known.hash, uint64(known.holders))
}

// release ends a context's share; one that holds none is a no-op.
func (l *layouts) release(out *core.Effects, kind core.ContextKind, e *entry) {
	at := l.holders.find(uint64(e.incarnation))
	if at < 0 {
		return
	}
	pos := l.holders.entries[at].layout
	l.holders.remove(at)
	known := &l.known.entries[pos]
	known.holders--
	note(out, core.LayoutReleased, kind, e, known.hash, uint64(known.holders))
	if known.holders == 0 {
		l.known.remove(pos)
	}
}
