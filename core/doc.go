// Package core is the vocabulary of vigil: identifiers, time, configuration,
// the inputs a state machine consumes, the effects it appends, the event
// records it writes, and the interfaces that carry effects out.
//
// Contract. Nothing in core, core/wire, core/server or core/worker starts a
// goroutine, takes a lock, uses a channel, reads a clock, draws a random
// number, opens a file or a socket, computes with floats, or depends on the
// order of a map. Time is an argument, randomness arrives as an input, and
// pending work is data (timer keys and operation numbers), never a closure.
// So a state can be cloned, fingerprinted and replayed from its inputs. A
// test over the syntax trees enforces this (purity_test.go).
package core
