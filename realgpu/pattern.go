package realgpu

import (
	"encoding/binary"
	"math/bits"
)

// Why this file: a worker of ours fills its memory with a pattern and checks
// every byte that comes back.

// Fill writes the pattern of a seed: no two seeds agree in eight bytes running,
// other than by chance, and neither do two places of one.
func Fill(b []byte, seed uint64) {
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], patternAt(seed, uint64(i)))
	}
	for i := len(b) &^ 7; i < len(b); i++ {
		b[i] = byte(patternAt(seed, uint64(i&^7)) >> (8 * (i & 7)))
	}
}

// Mismatch returns the first byte that is not the pattern's, -1 where all are.
func Mismatch(b []byte, seed uint64) int {
	for i := 0; i < len(b); i += 8 {
		want := patternAt(seed, uint64(i))
		if i+8 <= len(b) {
			if got := binary.LittleEndian.Uint64(b[i:]); got != want {
				return i + bits.TrailingZeros64(got^want)/8
			}
			continue
		}
		for k := i; k < len(b); k++ {
			if b[k] != byte(want>>(8*(k-i))) {
				return k
			}
		}
	}
	return -1
}

func patternAt(seed, at uint64) uint64 {
	hi, lo := bits.Mul64(seed^0x9e3779b97f4a7c15, at+0xd1b54a32d192ed03|1)
	x := hi ^ lo ^ seed
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	return x ^ x>>32
}
