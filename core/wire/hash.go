package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"vigil/core"
)

// Why this file: a chunk's identity in the store. A chunk is only reusable
// behind the very same prefix, so each hash takes in the one before it; the
// first takes in what else must not mix: model, world size, salt. Lengths go
// before the texts, so that no two roots are the same bytes.

const hashDomain = "vigil chunk key 1"

// HashChunks appends to dst the keys of the whole chunks of tokens
// [start, end), the prefix from token 0 hashed into each. start must be a
// multiple of chunkTokens; a last partial chunk is left out. worker stands
// beside the hash and is not in it. scratch is a buffer to work in, returned
// for the next call.
func HashChunks(dst []core.ChunkKey, scratch []byte, k *Key, chunkTokens int) (keys []core.ChunkKey, buffer []byte) {
	worker := int32(0)
	if k.Worker > 0 {
		worker = int32(k.Worker)
	}
	last := int(k.End) / chunkTokens
	first := int(k.Start) / chunkTokens
	if last <= first {
		return dst, scratch
	}
	dst = slices.Grow(dst, last-first)
	b := append(scratch[:0], hashDomain...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(k.Model)))
	b = append(b, k.Model...)
	b = binary.LittleEndian.AppendUint64(b, uint64(k.WorldSize))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(k.Salt)))
	b = append(b, k.Salt...)
	hash := sha256.Sum256(b)
	size := len(hash) + 4*chunkTokens
	b = slices.Grow(b[:0], size)[:size]
	for i := range last {
		copy(b, hash[:])
		out := b[len(hash):]
		for _, token := range k.Tokens[i*chunkTokens : (i+1)*chunkTokens] {
			binary.LittleEndian.PutUint32(out, token)
			out = out[4:]
		}
		hash = sha256.Sum256(b)
		if i >= first {
			key := core.ChunkKey{Worker: worker}
			copy(key.Hash[:], hash[:])
			dst = append(dst, key)
		}
	}
	return dst, b
}

// hashKey sets Key.Chunks.
func (r *Request) hashKey(chunkTokens int) {
	r.chunks = r.chunks[:0]
	if chunkTokens > 0 {
		r.chunks, r.scratch = HashChunks(r.chunks, r.scratch, &r.Key, chunkTokens)
	}
	r.Key.Chunks = r.chunks
}
