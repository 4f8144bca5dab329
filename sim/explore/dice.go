package explore

import "math/bits"

// dice is a stream of numbers that is a function of what it was made of. Search
// draws from dice of its own: a strategy must never move the decisions that a
// run's seed gives.
type dice uint64

// diceOf salts a stream with several numbers, so that the streams of neighbours
// have nothing in common.
func diceOf(parts ...uint64) dice {
	d := uint64(0x6a09e667f3bcc909)
	for _, p := range parts {
		d = mix(d ^ mix(p+0x9e3779b97f4a7c15))
	}
	return dice(d)
}

func (d *dice) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	return mix(uint64(*d))
}

// below is a number in [0, n); n must not be 0.
func (d *dice) below(n uint64) uint64 {
	v, _ := bits.Mul64(d.next(), n)
	return v
}

func mix(v uint64) uint64 {
	v ^= v >> 30
	v *= 0xbf58476d1ce4e5b9
	v ^= v >> 27
	v *= 0x94d049bb133111eb
	return v ^ v>>31
}
