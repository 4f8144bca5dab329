package core

// ChunkKey names one chunk's bytes in the store: the chunk with its whole
// prefix, the model, the world size and the salt are in the hash; the worker
// whose shard it is stands beside it, so that a look-up for all ranks hashes
// a prompt once.
type ChunkKey struct {
	Hash   [16]byte
	Worker int32
}

// Low returns the low half of the hash, for records.
func (k *ChunkKey) Low() uint64 {
	var v uint64
	for i, b := range k.Hash[:8] {
		v |= uint64(b) << (8 * i)
	}
	return v
}
