//go:build !race

package loop

const raceOn = false
