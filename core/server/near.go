package server

import "vigil/core"

// Where in memory the server is going to look, for a simulator that knows what
// comes next: among 100,000 instances an event costs what it has to fetch, and
// a processor can fetch ahead. The addresses are for that alone; nothing is to
// be read or written through them. Each step of the way needs the one before
// it, so each is a question of its own, and the next is asked once the last
// answer is fetched.

// NearBucket returns where the look-up of a server-driven context begins, nil
// while there is none.
func (s *Server) NearBucket(id core.InstanceID) *int32 {
	x := &s.contexts.ids
	if len(x.heads) == 0 {
		return nil
	}
	return &x.heads[x.bucket(uint64(id))]
}

// NearEntry returns where the look-up goes from its bucket, nil where that is
// nowhere: the first link of the chain, and the context that it names.
func (s *Server) NearEntry(id core.InstanceID) (*node, *entry) {
	if head := s.NearBucket(id); head != nil && *head != 0 {
		return &s.contexts.ids.nodes[*head-1], &s.contexts.entries[*head-1]
	}
	return nil, nil
}

// NearAbout returns what the context says of its memory, which a transfer
// reads, and the number of its mapping; nil where there is no context.
func (s *Server) NearAbout(id core.InstanceID) (*registration, core.Mapping) {
	if pos := s.contexts.find(uint64(id)); pos >= 0 {
		return s.contexts.entries[pos].about, s.contexts.entries[pos].mapping
	}
	return nil, 0
}
