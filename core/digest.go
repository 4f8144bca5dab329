package core

import "math/bits"

// Digest folds data into 64 bits: the running hash of an event log and the
// fingerprint of a state. It is not for adversaries; it is the same on every
// machine. The zero value is ready.
type Digest uint64

// Uint folds one number in.
func (d *Digest) Uint(v uint64) {
	hi, lo := bits.Mul64(uint64(*d)^0x9e3779b97f4a7c15, v^0xd1b54a32d192ed03)
	*d = Digest(hi ^ lo ^ bits.RotateLeft64(v, 23) ^ bits.RotateLeft64(uint64(*d), 41))
}

// Bool folds one truth in.
func (d *Digest) Bool(v bool) {
	if v {
		d.Uint(1)
	} else {
		d.Uint(0)
	}
}

// Bytes folds a byte string in, its length first.
func (d *Digest) Bytes(b []byte) {
	d.Uint(uint64(len(b)))
	for len(b) >= 8 {
		d.Uint(uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56)
		b = b[8:]
	}
	if len(b) > 0 {
		var v uint64
		for i, c := range b {
			v |= uint64(c) << (8 * i)
		}
		d.Uint(v)
	}
}

// Since folds in how far t lies from now, so that two states that differ only
// in when they are reached fold alike; Never stays Never.
func (d *Digest) Since(now, t Time) {
	if t == Never {
		d.Uint(1 << 63)
		return
	}
	d.Uint(uint64(t - now))
}

// Record folds one record in.
func (d *Digest) Record(r *Record) {
	head := uint64(r.Kind) | uint64(r.Context)<<8 | uint64(r.Failure)<<16 | uint64(r.Actor)<<32
	if r.Flag {
		head |= 1 << 24
	}
	d.Uint(head)
	d.Uint(uint64(r.At))
	d.Uint(uint64(r.Instance) ^ bits.RotateLeft64(uint64(r.Incarnation), 32))
	d.Uint(r.A ^ bits.RotateLeft64(r.B, 29))
}
