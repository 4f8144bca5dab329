// Package run plays scenarios in the simulator, over many seeds, and judges
// them: the monitors' invariants, the file's own expectations, and whether
// every declared fault, expectation and break really came.
//
// Contract. What a suite comes to is a function of the code, the scenarios and
// the seeds: neither the number of jobs nor the order in which they finish
// changes an outcome or its hash. A panic of the code under test ends its run
// only. Plans and scenarios are shared and read only; each job owns its world.
package run
