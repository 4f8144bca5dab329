package wire_test

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"vigil/core"
	"vigil/core/wire"
)

// reference is the definition, written down once more without buffers.
func reference(model string, world int64, salt string, tokens []uint32, chunk int) [][16]byte {
	text := []byte("vigil chunk key 1")
	text = binary.LittleEndian.AppendUint64(text, uint64(len(model)))
	text = append(text, model...)
	text = binary.LittleEndian.AppendUint64(text, uint64(world))
	text = binary.LittleEndian.AppendUint64(text, uint64(len(salt)))
	text = append(text, salt...)
	link := sha256.Sum256(text)
	var out [][16]byte
	for len(tokens) >= chunk {
		next := link[:]
		for _, t := range tokens[:chunk] {
			next = binary.LittleEndian.AppendUint32(next, t)
		}
		link = sha256.Sum256(next)
		out = append(out, [16]byte(link[:16]))
		tokens = tokens[chunk:]
	}
	return out
}

func countTo(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}

func TestChunksAreTheWholeOnesOfTheRange(t *testing.T) {
	var h wire.Hasher
	tokens := countTo(70)
	want := reference("m", 2, "s", tokens, 16)
	for _, c := range []struct{ start, end, first, last int }{
		{0, 70, 0, 4}, {0, 64, 0, 4}, {0, 63, 0, 3}, {16, 64, 1, 4}, {32, 32, 2, 2}, {0, 15, 0, 0}, {48, 60, 3, 3},
	} {
		k := wire.Key{Model: []byte("m"), WorldSize: 2, Worker: 5, Salt: []byte("s"), Tokens: tokens, Start: int64(c.start), End: int64(c.end)}
		got := h.Chunks(nil, &k, 16)
		if len(got) != c.last-c.first {
			t.Fatalf("[%d, %d): got %d chunks, want %d", c.start, c.end, len(got), c.last-c.first)
		}
		for i, key := range got {
			if key.Hash != want[c.first+i] || key.Worker != 5 {
				t.Errorf("[%d, %d) chunk %d: got %x of worker %d, want %x", c.start, c.end, i, key.Hash, key.Worker, want[c.first+i])
			}
		}
	}
}

// Nothing that must not mix has the same key: not another prefix, model, world
// or salt, nor a part of one text moved into the next.
func TestDifferentContentHasDifferentKeys(t *testing.T) {
	base := wire.Key{Model: []byte("model"), WorldSize: 1, Salt: []byte("salt"), Tokens: countTo(32), End: 32}
	changes := map[string]func(*wire.Key){
		"nothing":            func(*wire.Key) {},
		"model":              func(k *wire.Key) { k.Model = []byte("modem") },
		"world":              func(k *wire.Key) { k.WorldSize = 2 },
		"salt":               func(k *wire.Key) { k.Salt = []byte("sal") },
		"a letter moved":     func(k *wire.Key) { k.Model, k.Salt = []byte("models"), []byte("alt") },
		"first token":        func(k *wire.Key) { k.Tokens = append([]uint32{9}, k.Tokens[1:]...) },
		"last token":         func(k *wire.Key) { k.Tokens = append(append([]uint32{}, k.Tokens[:31]...), 9) },
		"tokens in exchange": func(k *wire.Key) { k.Tokens = append([]uint32{1, 0}, k.Tokens[2:]...) },
	}
	seen := map[[16]byte]string{}
	var h wire.Hasher
	for name, change := range changes {
		k := base
		change(&k)
		last := h.Chunks(nil, &k, 16)[1].Hash
		if other, ok := seen[last]; ok {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[last] = name
	}
}

// The worker is beside the hash, so a look-up for all ranks hashes once.
func TestWorkerStandsBesideTheHash(t *testing.T) {
	var h wire.Hasher
	k := wire.Key{Model: []byte("m"), Tokens: countTo(16), End: 16, Worker: -1}
	all := h.Chunks(nil, &k, 16)[0]
	k.Worker = 3
	one := h.Chunks(nil, &k, 16)[0]
	if all.Worker != 0 || one.Worker != 3 || all.Hash != one.Hash {
		t.Errorf("got %+v and %+v", all, one)
	}
}

// Decoding hashes as the exported function does, whatever was decoded before.
func TestDecodedChunksAreTheHashersOwn(t *testing.T) {
	d := wire.Decoder{ChunkTokens: 16}
	got := new(wire.Request)
	var h wire.Hasher
	for _, n := range []int{64, 16, 48} {
		r := transfer(wire.Store, n)
		r.Key.Salt = []byte{byte('a' + n%7)}
		f := new(core.Frames)
		wire.EncodeRequest(f, r)
		d.Decode(f, got)
		want := h.Chunks(nil, &r.Key, 16)
		if len(got.Key.Chunks) != len(want) {
			t.Fatalf("got %d chunks, want %d", len(got.Key.Chunks), len(want))
		}
		for i := range want {
			if got.Key.Chunks[i] != want[i] {
				t.Errorf("%d tokens, chunk %d differs", n, i)
			}
		}
	}
}
