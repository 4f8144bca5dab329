package capsule

import (
	"vigil/core"
)

// The trail is what the run's records hashed to on the way, one byte every so
// many records. A replay that comes to another end is compared with it, so that
// the first record that is not as it was can be named: when, and whose.

// trail holds the low byte of the running hash after every so many records.
type trail struct {
	every uint64 // 1 where the run is short enough to keep each record
	bytes []byte
}

// tracer is an observer that keeps a trail, or compares with one.
type tracer struct {
	digest  core.Digest
	records uint64
	now     core.Time // of the last record

	made trail // what this run's is
	keep bool

	with    *trail // what was recorded; nil compares with nothing
	since   core.Record
	sinceAt uint64
	found   bool
	first   core.Record // the first record of the stretch that differs
	last    core.Record // the last of it
}

// Observe takes one record of the run.
func (t *tracer) Observe(r *core.Record) {
	t.digest.Record(r)
	t.records++
	t.now = r.At
	if t.keep {
		t.add()
	}
	if t.with != nil && !t.found {
		t.compare(r)
	}
}

// add keeps the hash of now, and where that gets too long every second one of
// all that is kept.
func (t *tracer) add() {
	m := &t.made
	if m.every == 0 {
		m.every = 1
	}
	if t.records%m.every != 0 {
		return
	}
	m.bytes = append(m.bytes, byte(t.digest))
	if len(m.bytes) <= maxTrail {
		return
	}
	half := m.bytes[:0]
	for i := 1; i < len(m.bytes); i += 2 {
		half = append(half, m.bytes[i])
	}
	m.bytes, m.every = half, 2*m.every
}

// compare looks whether the run is still the recorded one.
func (t *tracer) compare(r *core.Record) {
	if t.with.every == 0 {
		return
	}
	if (t.records-1)%t.with.every == 0 {
		t.since, t.sinceAt = *r, t.records
	}
	if t.records%t.with.every != 0 {
		return
	}
	i := t.records/t.with.every - 1
	if i >= uint64(len(t.with.bytes)) {
		// Past what was recorded; how many records came says the rest.
		return
	}
	if t.with.bytes[i] != byte(t.digest) {
		t.found, t.first, t.last = true, t.since, *r
	}
}
