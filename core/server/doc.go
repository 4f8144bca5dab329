// Package server is the production server core: the registries of contexts,
// the dispatch of requests, the ping, the reaper, the shutdown, and the
// bookkeeping of the L1 store.
//
// Contract. A Server is a core.Machine: flat data, one owner, no clock but the
// time it is given. With core.Document() as protections it is the design
// document row by row, its holes included; where that is silent, PROTOCOL's
// sections 1.6, 2, 3 and 4 decide. What a threaded server interleaves is kept
// apart as steps (a timer armed at the current time), so that a tape can order
// them: register arrives / open ends / insert; reap decides and pops / close
// begins / close ends / fan-out; transfer begins / copy ends.
//
// No input ends or blocks a Server: what is malformed, unknown or too much is
// refused, recorded, and bounded by the limits in limits.go and in core.
// Input.Decoded must be a *wire.Request; it is read during the step only.
package server
