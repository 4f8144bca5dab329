//go:build race

package endurance_test

const raceOn = true
