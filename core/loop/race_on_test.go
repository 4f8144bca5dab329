//go:build race

package loop

// raceOn is true where the race detector runs: pools then lose things on
// purpose, and what is measured is the detector.
const raceOn = true
