package server

import (
	"vigil/core"
	"vigil/core/wire"
)

// vigil.settle (keep-blocks, B21): a worker that waits for its transfers no
// longer says so, and asks which of them still write to its memory. Without it
// the worker can only guess when the blocks are its engine's again: a transfer
// waits in a lane for as long as the copy before it takes, and its own copy may
// be slow too.
//
// The worker names them by uid, because its uids count up through its life and
// through every connection of it. The entry keeps the limit, so that what
// arrives late is refused too; and since a register of its own sets the limit as
// well, no transfer meant for one context is ever carried out on the next.

// giveUpOlder is vigil.settle.
func (s *Server) giveUpOlder(m *message, out *core.Effects) {
	if !s.cfg.Protections.KeepBlocks {
		s.refuse(out, m, core.FailUnsupported)
		return
	}
	id, before := m.r.Instance, m.r.Before
	if pos := s.contexts.find(uint64(id)); pos >= 0 {
		e := &s.contexts.entries[pos]
		e.fence = max(e.fence, before)
	}
	s.refuseOlder(out, &s.inbox, id, before)
	for i := range s.lanes {
		s.refuseOlder(out, &s.lanes[i].waiting, id, before)
	}
	r := s.blank()
	for i := range s.jobs.jobs {
		j := &s.jobs.jobs[i]
		switch {
		case j.state != jobCopying || j.instance != id || j.sent >= before:
		case j.store:
			j.unwanted = true // it only reads; nobody will read what it read
		case len(r.Indices) < wire.MaxSettled:
			r.Indices = append(r.Indices, int64(j.sent))
		}
	}
	s.answer(out, m)
}

// refuseOlder refuses what waits in a queue and is wanted no more.
func (s *Server) refuseOlder(out *core.Effects, q *queue, id core.InstanceID, before uint64) {
	for n := q.length; n > 0; n-- {
		pos := q.pop(&s.mail)
		m := s.mail.open(pos)
		if m.r.Instance != id || !moves(m.r.Type) || m.r.UIDNumber >= before {
			q.push(&s.mail, pos)
			continue
		}
		s.refuse(out, &m, core.FailStale)
		s.mail.discard(pos)
	}
}

// moves reports whether the server copies for a request of this type.
func moves(t wire.Type) bool { return t == wire.Store || t == wire.Retrieve }
