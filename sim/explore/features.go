package explore

import (
	"encoding/binary"
	"math/bits"
)

// MaxFeatures bounds the features that a trial may tell apart.
const MaxFeatures = 1 << 16

// Features is the set of what a run met, by number. What a number means is the
// trial's business; it is the same in every run of a search.
type Features [MaxFeatures / 64]uint64

// Add puts a feature in; a number beyond the bound is folded into range.
func (f *Features) Add(n uint32) {
	n %= MaxFeatures
	f[n/64] |= 1 << (n % 64)
}

// Has reports whether a feature is in.
func (f *Features) Has(n uint32) bool {
	n %= MaxFeatures
	return f[n/64]&(1<<(n%64)) != 0
}

// Bytes is the set as bytes, for a file; FeaturesOf reads it back.
func (f *Features) Bytes() []byte {
	last := 0
	for i, w := range f {
		if w != 0 {
			last = i + 1
		}
	}
	out := make([]byte, 0, last*8)
	for _, w := range f[:last] {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
}

// FeaturesOf reads what Bytes wrote; false where that is no set.
func FeaturesOf(text []byte) (f Features, ok bool) {
	if len(text)%8 != 0 || len(text) > MaxFeatures/8 {
		return f, false
	}
	for i := range len(text) / 8 {
		f[i] = binary.LittleEndian.Uint64(text[i*8:])
	}
	return f, true
}

// Count is how many features are in.
func (f *Features) Count() int {
	n := 0
	for _, w := range f {
		n += bits.OnesCount64(w)
	}
	return n
}

// Merge adds another set and returns how many of its features are new.
func (f *Features) Merge(o *Features) (fresh int) {
	for i, w := range o {
		if w&^f[i] != 0 {
			fresh += bits.OnesCount64(w &^ f[i])
			f[i] |= w
		}
	}
	return fresh
}
