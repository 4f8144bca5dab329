package server

import (
	"vigil/core"
	"vigil/core/wire"
)

// jobs are the handlers that wait for something while they hold a slot of a
// pool: a copy's end, or a look-up session that may yet appear. A job keeps
// what its reply needs.
type jobs struct {
	places
	waiting ring // jobs that wait for a session
	jobs    []job
}

type jobState uint8

const (
	jobFree jobState = iota
	jobCopying
	jobWaiting
)

type job struct {
	number      uint64 // of the job, never used again; for records
	op          core.Op
	peer        core.Peer
	deadline    core.Time
	began       core.Time // transfer: when its handler began
	instance    core.InstanceID
	incarnation core.Incarnation
	mapping     core.Mapping
	chunks      int32 // in the request's range
	lane        int32
	state       jobState
	store       bool
	unwanted    bool   // store: its worker gave it up, so nothing of it is kept
	sent        uint64 // the request's uid as a number
	kind        wire.Type
	uid, raw    []byte
	event       []byte      // transfer: echoed
	request     []byte      // waiting: the session's id
	slots       []core.Slot // transfer: reserved or locked
}

// start makes a job for a message.
func (s *Server) startJob(m *message, state jobState) (int32, *job) {
	pos := s.jobs.take()
	if int(pos) == len(s.jobs.jobs) {
		s.jobs.jobs = extended(s.jobs.jobs)
	}
	s.numbers++
	j := &s.jobs.jobs[pos]
	j.number, j.op, j.peer, j.deadline, j.began, j.state, j.kind = s.numbers, 0, m.peer, 0, 0, state, m.r.Type
	j.instance, j.incarnation, j.mapping, j.chunks, j.lane, j.store = m.r.Instance, 0, 0, 0, -1, false
	j.unwanted, j.sent = false, m.r.UIDNumber
	j.uid = append(j.uid[:0], m.r.UID...)
	j.raw = append(j.raw[:0], m.r.RawType...)
	j.event, j.request, j.slots = j.event[:0], j.request[:0], j.slots[:0]
	return pos, j
}

func (s *Server) endJob(pos int32) {
	j := &s.jobs.jobs[pos]
	j.state = jobFree
	if 4*cap(j.slots) > keptBuffer {
		j.slots = nil
	}
	s.jobs.give(pos)
}

// opOf numbers an operation so that its end leads straight to its job.
func (s *Server) opOf(pos int32) core.Op {
	s.ops++
	return core.Op(s.ops<<20 | uint64(pos))
}

// jobOf returns the job of an operation, -1 where it is none of ours.
func (s *Server) jobOf(op core.Op) int32 {
	pos := int32(op & (1<<20 - 1))
	if int(pos) >= len(s.jobs.jobs) || s.jobs.jobs[pos].state != jobCopying || s.jobs.jobs[pos].op != op {
		return -1
	}
	return pos
}

func (j *jobs) reset() {
	j.empty()
	j.waiting.clear()
	j.jobs = j.jobs[:0]
}
