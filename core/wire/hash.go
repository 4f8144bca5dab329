package wire

import (
	"bytes"
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

// Hasher computes chunk keys. It holds buffers, and the last root, since a
// worker's keys all have the same one. The zero value is ready; it is not to
// be shared.
type Hasher struct {
	work   []byte // one link: the hash before it, its tokens
	rooted []byte // what root is the hash of
	text   []byte // what the next root is the hash of
	root   [sha256.Size]byte
}

// Chunks appends to dst the keys of the whole chunks of the tokens [Start,
// End) of k, the prefix from token 0 hashed into each. Start must be a multiple
// of chunkTokens, which is 1 or more, and the range must lie in the tokens; a
// last partial chunk is left out. Hash is the front half of a link of a chain
// of SHA-256; the chain goes on from whole links. The worker stands beside the
// hash and is not in it.
func (h *Hasher) Chunks(dst []core.ChunkKey, k *Key, chunkTokens int) []core.ChunkKey {
	worker := int32(0)
	if k.Worker > 0 {
		worker = int32(k.Worker)
	}
	first, last := int(k.Start)/chunkTokens, int(k.End)/chunkTokens
	if last <= first {
		return dst
	}
	dst = slices.Grow(dst, last-first)
	link := h.rootOf(k)
	size := len(link) + 4*chunkTokens
	work := slices.Grow(h.work[:0], size)[:size]
	for i := range last {
		copy(work, link[:])
		out := work[len(link):]
		for _, token := range k.Tokens[i*chunkTokens : (i+1)*chunkTokens] {
			binary.LittleEndian.PutUint32(out, token)
			out = out[4:]
		}
		link = sha256.Sum256(work)
		if i >= first {
			key := core.ChunkKey{Worker: worker}
			copy(key.Hash[:], link[:])
			dst = append(dst, key)
		}
	}
	h.work = work
	return dst
}

func (h *Hasher) rootOf(k *Key) [sha256.Size]byte {
	b := append(h.text[:0], hashDomain...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(k.Model)))
	b = append(b, k.Model...)
	b = binary.LittleEndian.AppendUint64(b, uint64(k.WorldSize))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(k.Salt)))
	b = append(b, k.Salt...)
	h.text = b
	if !bytes.Equal(b, h.rooted) {
		h.rooted = append(h.rooted[:0], b...)
		h.root = sha256.Sum256(b)
	}
	return h.root
}
