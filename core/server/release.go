package server

import (
	"vigil/core"
	"vigil/core/wire"
)

// A release is a server-driven context on its way out: out of its registry, its
// mapping not yet closed. Under the document somebody waits for each: the main
// loop for an unregister's, the reaper and the shutdown for theirs, one at a
// time. With independent-releases nobody does: each runs on its own, and one
// that passes its bound is parked, counted and shown (B2).

type releaseState uint8

const (
	releaseFree    releaseState = iota
	releaseWaiting              // for the copies that still use the mapping
	releaseClosing
	releaseFailed // its close failed and is tried again
)

type release struct {
	entry entry
	op    core.Op
	since core.Time // when it began
	state releaseState
	by    ReleaseBy
	held  bool // whoever began it waits for its end
	stuck bool // it passed its bound
	reply replyTo
}

// replyTo is the request that is answered when something ends; kind is 0 where
// none is.
type replyTo struct {
	peer     core.Peer
	kind     wire.Type
	uid, raw []byte
}

func (t *replyTo) set(m *message) {
	t.peer, t.kind = m.peer, m.r.Type
	t.uid, t.raw = append(t.uid[:0], m.r.UID...), append(t.raw[:0], m.r.RawType...)
}

func (t *replyTo) clear() { *t = replyTo{uid: t.uid[:0], raw: t.raw[:0]} }

// beginRelease begins the release of a context that is out of its registry. m,
// where not nil, is the unregister that is answered at its end; held is
// whether the caller waits for releaseEnded.
func (s *Server) beginRelease(now core.Time, e *entry, by ReleaseBy, held bool, m *message, out *core.Effects) {
	pos := s.releases.add(uint64(e.mapping))
	r := &s.releases.entries[pos]
	r.entry, r.since, r.by, r.held, r.stuck = *e, now, by, held, false
	r.reply.clear()
	if m != nil {
		r.reply.set(m)
	}
	if s.cfg.Protections.IndependentReleases {
		out.Arm(core.TimerKey{Kind: core.TimerRelease, Slot: uint32(pos)}, now.Add(core.ReleaseBound))
	}
	if s.cfg.Protections.ReleaseAfterCopies && s.copying(e.mapping, core.Never) {
		r.state, r.op = releaseWaiting, 0
		return
	}
	s.closeRelease(pos, out)
}

// closeRelease asks the memory to close a release's mapping.
func (s *Server) closeRelease(pos int32, out *core.Effects) {
	r := &s.releases.entries[pos]
	s.ops++
	r.state, r.op = releaseClosing, core.Op(s.ops<<20|uint64(pos))
	note(out, core.CloseBegan, core.ServerDriven, &r.entry, uint64(r.entry.mapping), uint64(r.op))
	out.Close(core.CloseOrder{Op: r.op, Mapping: r.entry.mapping, Owner: r.entry.instance, Incarnation: r.entry.incarnation})
}

// copying reports whether a copy on a mapping is under way that began at or
// after the given time; core.Never is any.
func (s *Server) copying(m core.Mapping, after core.Time) bool {
	for i := range s.jobs.jobs {
		if j := &s.jobs.jobs[i]; j.state == jobCopying && j.mapping == m && (after == core.Never || j.began >= after) {
			return true
		}
	}
	return false
}

// copyGone lets a release go on that waited for the last copy on its mapping.
func (s *Server) copyGone(m core.Mapping, out *core.Effects) {
	pos := s.releases.find(uint64(m))
	if pos >= 0 && s.releases.entries[pos].state == releaseWaiting && !s.copying(m, core.Never) {
		s.closeRelease(pos, out)
	}
}

// released takes the end of a close.
func (s *Server) released(now core.Time, in *core.Input, out *core.Effects) {
	pos := int32(in.Op & (1<<20 - 1))
	if int(pos) >= len(s.releases.entries) {
		return
	}
	r := &s.releases.entries[pos]
	if r.state != releaseClosing || r.op != in.Op {
		return
	}
	s.endClose(out, &r.entry, in.Failure)
	timer := core.TimerKey{Kind: core.TimerRelease, Slot: uint32(pos)}
	switch {
	case !s.cfg.Protections.IndependentReleases:
	case in.Failure == core.NoFailure:
		out.Disarm(timer)
	default: // nobody else would try: counted, and tried again (B18)
		out.Record(core.ServerWarned).Failure = in.Failure
		r.state = releaseFailed
		wait := core.LookAgain
		if r.stuck {
			wait = core.ReleaseBound
		}
		out.Arm(timer, now.Add(wait))
		return
	}
	ended := *r
	r.state = releaseFree
	s.releases.remove(pos)
	if in.Failure != core.NoFailure {
		s.lost.add(&ended.entry)
	}
	s.answerRelease(out, &ended.reply, in.Failure)
	switch {
	case ended.held:
		s.releaseEnded(now, ended.by, in.Failure, out)
	case s.stop.stage == stopClosing:
		s.bound(now, out)
		s.closeNext(now, out)
	}
	s.settleParked(now, out)
}

// answerRelease ends the request that waited for a release: a success, or what
// a raising handler gives.
func (s *Server) answerRelease(out *core.Effects, to *replyTo, why core.Failure) {
	if to.kind == wire.NoType || s.stop.stage != stopNot {
		return
	}
	if why != core.NoFailure {
		s.refuseLater(out, to, nil, why)
		return
	}
	s.blank().Nil = true
	if to.kind == wire.RegisterKVCache {
		s.reply.Window = s.window()
	}
	wire.EncodeReply(out.Send(to.peer), to.uid, to.raw, to.kind, &s.reply)
}

// endClose writes how a close ended and, where it succeeded, returns the
// context's share of its layout. A close that fails skips the rest of its
// cleanup, as an exception there does (PROTOCOL, section 4.2).
func (s *Server) endClose(out *core.Effects, e *entry, why core.Failure) {
	given := e.bytes
	if why != core.NoFailure {
		given = 0
	}
	note(out, core.CloseEnded, core.ServerDriven, e, uint64(e.mapping), given).Failure = why
	if why == core.NoFailure || s.cfg.Protections.IndependentReleases {
		s.layouts.release(out, core.ServerDriven, e)
	}
}

// releaseEnded tells whoever waited for a release.
func (s *Server) releaseEnded(now core.Time, by ReleaseBy, why core.Failure, out *core.Effects) {
	switch by {
	case ByUnregister:
		s.main.held = false
	case ByReaper:
		s.reaperReleased(now, why, out)
	case ByShutdown:
		s.closeNext(now, out)
	}
}

// releaseTimer is the moment to try a failed close again, or a release passing
// its bound. It is armed as long as the release is there.
func (s *Server) releaseTimer(now core.Time, slot uint32, out *core.Effects) {
	r := &s.releases.entries[slot]
	if !r.stuck && now.Sub(r.since) >= core.ReleaseBound {
		s.parkRelease(now, r, out)
	}
	if r.state == releaseFailed {
		s.closeRelease(int32(slot), out)
	}
	if !r.stuck {
		out.Arm(core.TimerKey{Kind: core.TimerRelease, Slot: slot}, r.since.Add(core.ReleaseBound))
	}
}

// parkRelease is a release passing its bound: it is shown with its bytes,
// whoever waits for an answer gets one, and everybody else goes on.
func (s *Server) parkRelease(now core.Time, r *release, out *core.Effects) {
	r.stuck = true
	note(out, core.ReleaseStuck, core.ServerDriven, &r.entry, uint64(r.entry.mapping), r.entry.bytes)
	s.answerRelease(out, &r.reply, core.FailReleasing)
	r.reply.clear()
	s.settleParked(now, out)
}

// releasing returns the release of an instance that its next context has to
// wait for. A stuck one is waited for no longer: it stands in the way of the
// same memory only, and then for good.
func (s *Server) releasing(id core.InstanceID, about *registration) (waits, stuck bool) {
	for pos := s.releases.first(); pos >= 0; pos = s.releases.after(pos) {
		r := &s.releases.entries[pos]
		switch {
		case r.entry.instance != id:
		case !r.stuck:
			waits = true
		case r.entry.about.content == about.content:
			stuck = true
		}
	}
	if r := &s.reaper; r.target == targetServerDriven {
		for i := int(r.at); i < len(r.batch); i++ { // popped, and its release not begun
			waits = waits || r.batch[i].entry.instance == id
		}
	}
	return waits, stuck
}
