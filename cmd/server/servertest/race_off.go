//go:build !race

package servertest

// Race is whether the tests, and so the program, have the race detector.
const Race = false
