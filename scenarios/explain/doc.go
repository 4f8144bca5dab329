// Package explain says why a run broke: what of its story matters to the
// violation, from when on the failure could hardly be avoided any more, which
// of the scenario's steps it takes, and which protections would have kept it.
//
// Contract. Everything here is computed by playing runs: nothing is guessed
// from the invariant's name. An Explanation is a function of the capsule and
// the options, the same on every machine. The capsule's run must still break
// what it says; Explain's error names what came instead.
package explain
