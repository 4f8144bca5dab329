// Package explore searches: it makes one tape after another, each run's by a
// strategy, has a trial play them, and adds up what they met.
//
// Contract. What a search comes to is a function of the strategy, its seed and
// the number of runs: neither the number of jobs nor the order in which they
// finish changes a run, its number or what is reported. Results are folded in
// the order of the runs; a search that stops at the first finding reports the
// finding of the lowest number and nothing of what was played beyond it. Only a
// bound on time makes the number of runs depend on the machine. The package
// knows tapes and worlds, and neither files nor verdicts: what a run is and
// whether it is a finding is the trial's business.
package explore
