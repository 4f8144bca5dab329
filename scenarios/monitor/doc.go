// Package monitor judges runs: the twelve invariants of DESIGN.md and that the log is true, each a
// small automaton over the stream of event records.
//
// Contract. A Set sees every record of one run in order (Observe), then the end
// (Finish), and keeps a bounded list of violations. Records of core.ActorWorld
// are the truth: processes, network, memory, what engines were told. Records of
// the server and of the workers are claims. A monitor judges truth against
// claims; one that only believed the core would miss what the core forgot.
//
// A safety invariant is judged at the record that breaks it. A liveness
// invariant is judged against a deadline, when the thing owed comes too late or
// when the run ends after the deadline; a deadline past the end is not judged.
// Time in which the server is down or frozen is nobody's fault: deadlines start
// again when it is back.
//
// Where two orders of events at one instant are possible, the monitors take the
// innocent one. A Set belongs to one goroutine, allocates nothing at steady
// state, and is reused from run to run with Reset.
package monitor
