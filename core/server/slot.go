package server

import "vigil/core"

// Where a slot's bytes lie, for whoever holds them: the shell, or the simulated
// memory.

// SlotView is what a shell must know to hold a slot's bytes.
type SlotView struct {
	Bytes  uint64
	Pooled bool   // they lie in the shared pool, at Offset
	Offset uint64 // Pooled
}

// Slot returns a slot that is reserved or ready; ok is false for any other.
func (s *Server) Slot(slot core.Slot) (v SlotView, ok bool) {
	if uint64(slot) >= uint64(len(s.store.chunks)) {
		return SlotView{}, false
	}
	c := &s.store.chunks[slot]
	return SlotView{c.bytes, c.pooled, c.offset}, c.state != chunkFree
}
