// Package audit judges what a real server left: its event log against the
// invariants, and its recording, from which it makes a scenario.
//
// Contract. An event log holds the server's own words, not the truth about
// memory, processes and engines. An invariant is reported as held only where
// those words decide it; as broken where they contradict it, with the story;
// everything else is undecidable from this log, with the reason. A log that is
// empty, or that misses records, decides nothing that it could have decided,
// and says so: there is no empty pass.
package audit
