package monitor

import (
	"vigil/core"
)

// What the server writes of transfers, and of the chunks and locks of its store.

type copyLog struct {
	mapping uint64
	store   bool
}

type jobLog struct {
	incarnation core.Incarnation
	chunks      uint64
	store       bool
}

// jobEnd counts what a copy's end did to the store, which is what its job moved.
type jobEnd struct {
	incarnation core.Incarnation
	store, well bool
	moved       uint64
}

type slotLog struct {
	hash    uint64
	readers uint64
	ready   bool
}

// transfer is a record about a job that copies.
func (s *serverLog) transfer(l *Log, r *core.Record) {
	switch r.Kind {
	case core.TransferBegan:
		if r.A <= s.lastJob {
			l.wrong(r, nobody, "job %d comes after job %d", r.A, s.lastJob)
		}
		s.lastJob = r.A
		if at := s.jobs.add(r.A, followed); at >= 0 {
			s.jobs.items[at] = jobLog{r.Incarnation, r.B, r.Flag}
		}
	case core.CopyBegan:
		s.operation(l, r, r.B)
		if at := s.copies.add(r.B, followed); at >= 0 {
			s.copies.items[at] = copyLog{r.A, r.Flag}
		}
	case core.CopyEnded:
		at := s.copies.get(r.B)
		if at < 0 || s.copies.items[at] != (copyLog{r.A, r.Flag}) {
			if s.copies.index.used < followed {
				l.wrong(r, nobody, "copy %d on mapping %d is not under way", r.B, r.A)
			}
			return
		}
		s.copies.drop(r.B, at)
		s.end = jobEnd{incarnation: r.Incarnation, store: r.Flag, well: r.Failure == core.NoFailure}
		s.ended = &s.end
	case core.TransferEnded:
		at := s.jobs.get(r.A)
		if at < 0 {
			if s.jobs.index.used < followed {
				l.wrong(r, nobody, "job %d is not under way", r.A)
			}
			return
		}
		q := s.jobs.items[at]
		if q.incarnation != r.Incarnation || q.store != r.Flag || r.B > q.chunks {
			l.wrong(r, nobody, "job %d moves %d chunks of another context, or the other way", r.A, q.chunks)
		}
		s.jobs.drop(r.A, at)
		moved := uint64(0)
		if e := s.ended; e != nil && e.well && r.Failure == core.NoFailure {
			moved = e.moved
		}
		if r.B != moved || moved > 0 && !r.Flag && moved != q.chunks {
			l.wrong(r, nobody, "job %d moved %d of %d chunks, and a retrieve moves all", r.A, moved, q.chunks)
		}
		s.ended = nil
	}
}

// slot is a record about a chunk of the store.
func (s *serverLog) slot(l *Log, r *core.Record) {
	key := r.A + 1
	at := s.slots.get(key)
	if r.Kind == core.ChunkReserved {
		if at >= 0 {
			l.wrong(r, nobody, "slot %d is taken", r.A)
		} else if at = s.slots.add(key, followed); at >= 0 {
			s.slots.items[at].hash = r.B
		}
		return
	}
	if at < 0 {
		if s.slots.index.used < followed {
			l.wrong(r, nobody, "slot %d is free", r.A)
		}
		return
	}
	c := &s.slots.items[at]
	switch r.Kind {
	case core.ChunkReady:
		if c.ready || c.hash != r.B {
			l.wrong(r, nobody, "slot %d is ready, or is another chunk's", r.A)
		}
		c.ready = true
		if e := s.ended; e != nil && e.store {
			e.moved++
		}
	case core.ChunkDropped:
		if c.hash != r.B || c.ready != r.Flag || c.readers != 0 {
			l.wrong(r, nobody, "slot %d is another chunk's, or read, or its state is told wrong", r.A)
		}
		s.slots.drop(key, at)
	case core.LockTaken:
		if c.readers++; c.readers != r.B || !c.ready {
			l.wrong(r, nobody, "slot %d has %d readers, or is not ready", r.A, c.readers)
		}
	case core.LockReturned:
		if c.readers--; c.readers != r.B {
			l.wrong(r, nobody, "slot %d has %d readers", r.A, c.readers)
		}
		if e := s.ended; e != nil && !e.store {
			e.moved++
		}
	}
}
