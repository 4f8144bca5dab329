package server

import "vigil/core"

// Proof of death: where the host can watch the process behind a connection,
// its end is known at once, and nothing waits for silence. A connection that
// closed proves nothing, for a reset link of a live worker looks the same. The
// proof is about a process, so it ends only what that process spoke for last:
// an id that another process speaks for by now is left alone (A8). The
// document takes no notice of it, and the reaper stays the fallback.

// exited releases everything that the dead process behind a connection had.
func (s *Server) exited(now core.Time, peer core.Peer, out *core.Effects) {
	if !s.cfg.Protections.ProofOfDeath || s.stop.stage != stopNot {
		return
	}
	for pos := s.contexts.first(); pos >= 0; {
		next := s.contexts.after(pos)
		if s.contexts.entries[pos].peer == peer {
			s.countReap(s.contexts.entries[pos].instance)
			e := s.popContext(out, pos, core.RemovedByProof)
			s.beginRelease(now, &e, ByReaper, false, nil, out)
		}
		pos = next
	}
	for pos := s.engines.first(); pos >= 0; {
		next := s.engines.after(pos)
		if s.engines.entries[pos].peer == peer {
			s.countReap(s.engines.entries[pos].instance)
			e, half := s.popPair(out, pos, core.RemovedByProof)
			if s.cfg.Protections.MirrorWithContext {
				s.dropMirror(out, e.instance, ropeByReaper)
			}
			s.releaseEngine(out, &e, &half)
		}
		pos = next
	}
	s.takeBackFrom(peer)
}
