package server

import "vigil/core"

// Views for a shell that serves pages: the contexts a page at a time, so that
// asking a server with 100,000 instances holds its owner for microseconds and
// not for the whole list.

// ContextsPage visits at most limit contexts of a kind from place cursor on
// (0 is the first) and returns the cursor of the next page, -1 at the end.
// Places do not move: what is there through all the pages is seen once.
func (s *Server) ContextsPage(kind core.ContextKind, cursor, limit int, visit func(ContextView)) int {
	if cursor < 0 {
		return -1
	}
	switch kind {
	case core.ServerDriven:
		return s.page(kind, &s.contexts, cursor, limit, visit)
	case core.EngineDriven:
		return s.page(kind, &s.engines, cursor, limit, visit)
	case core.RopeState:
		pos := cursor
		for ; pos < int(s.ropes.count) && limit > 0; pos++ {
			if s.ropes.find(uint64(s.ropes.entries[pos].instance)) == int32(pos) {
				visit(s.ropeView(int32(pos)))
				limit--
			}
		}
		return nextPage(pos, int(s.ropes.count))
	}
	return -1
}

func (s *Server) page(kind core.ContextKind, r *registry[entry], pos, limit int, visit func(ContextView)) int {
	for ; pos < int(r.count) && limit > 0; pos++ {
		e := &r.entries[pos]
		if r.find(uint64(e.instance)) == int32(pos) { // else the place is free
			visit(s.view(kind, e))
			limit--
		}
	}
	return nextPage(pos, int(r.count))
}

func nextPage(pos, count int) int {
	if pos >= count {
		return -1
	}
	return pos
}

// Totals is how many contexts serve, and what is charged for them.
type Totals struct {
	ServerDriven, EngineDriven, Ropes int
	MappedBytes                       uint64
}

// Totals counts the contexts that serve. It walks over the server-driven ones.
func (s *Server) Totals() Totals {
	t := Totals{ServerDriven: s.contexts.live(), EngineDriven: s.engines.live(), Ropes: s.ropes.live()}
	for pos := s.contexts.first(); pos >= 0; pos = s.contexts.after(pos) {
		t.MappedBytes += s.contexts.entries[pos].bytes
	}
	return t
}

// Enrolling visits the registers whose memory is being opened: it may be in the
// server's hands before its context is in a registry.
func (s *Server) Enrolling(visit func(core.InstanceID, core.Mapping)) {
	for pos := s.enrolments.first(); pos >= 0; pos = s.enrolments.after(pos) {
		e := &s.enrolments.entries[pos].entry
		visit(e.instance, e.mapping)
	}
}
