package sim

import "vigil/core"

// A tag stands for the bytes of one block. Engines and raw clients make theirs
// here, so that what the one stores is what the other may expect.

// tagOf is the tag of a rank's shard of a block of a group: prefix folds the
// tokens up to the block's end, model the model and its salt.
func tagOf(prefix, rank, world, model uint64, group int) uint64 {
	var d core.Digest
	d.Uint(prefix)
	d.Uint(rank<<32 | world)
	d.Uint(model)
	if group > 0 {
		d.Uint(uint64(group))
	}
	return uint64(d) | 1
}

func prefixOf(tokens []uint32) uint64 {
	var d core.Digest
	for _, token := range tokens {
		d.Uint(uint64(token))
	}
	return uint64(d)
}

func modelOf(model, salt []byte) uint64 {
	var d core.Digest
	d.Bytes(model)
	d.Bytes(salt)
	return uint64(d)
}
