package wire_test

import (
	"testing"

	"vigil/core"
	"vigil/core/wire"
)

// transfer is a store of n tokens in blocks of 16, the standard shape.
func transfer(t wire.Type, n int) *wire.Request {
	r := &wire.Request{
		Type: t, UIDNumber: 7, Instance: someID, Event: make([]byte, 64),
		Key: wire.Key{
			Model: []byte("Qwen/Qwen3-8B"), WorldSize: 1, End: int64(n),
			RequestID: []byte("cmpl-1234"),
		},
	}
	for i := range n {
		r.Key.Tokens = append(r.Key.Tokens, uint32(i*37%151936))
	}
	for i := range n / 16 {
		r.Blocks = append(r.Blocks, uint32(i))
	}
	r.BlockEnds = []int{len(r.Blocks)}
	return r
}

func benchDecode(b *testing.B, r *wire.Request, chunk int) {
	f := new(core.Frames)
	wire.EncodeRequest(f, r)
	d := wire.Decoder{ChunkTokens: chunk}
	got := new(wire.Request)
	b.ReportAllocs()
	for b.Loop() {
		d.Decode(f, got)
	}
	if got.Failure != core.NoFailure {
		b.Fatal(wire.Explain(got))
	}
}

func benchEncode(b *testing.B, r *wire.Request) {
	f := new(core.Frames)
	b.ReportAllocs()
	for b.Loop() {
		f.Reset()
		wire.EncodeRequest(f, r)
	}
}

var ping = &wire.Request{Type: wire.Ping, UIDNumber: 1000, Instance: someID}

func BenchmarkPingDecode(b *testing.B)      { benchDecode(b, ping, 256) }
func BenchmarkPingEncode(b *testing.B)      { benchEncode(b, ping) }
func BenchmarkStore64Decode(b *testing.B)   { benchDecode(b, transfer(wire.Store, 64), 16) }
func BenchmarkStore64Encode(b *testing.B)   { benchEncode(b, transfer(wire.Store, 64)) }
func BenchmarkStore256Decode(b *testing.B)  { benchDecode(b, transfer(wire.Store, 256), 256) }
func BenchmarkStore256Encode(b *testing.B)  { benchEncode(b, transfer(wire.Store, 256)) }
func BenchmarkStore128kDecode(b *testing.B) { benchDecode(b, transfer(wire.Store, 128<<10), 256) }
func BenchmarkStore128kEncode(b *testing.B) { benchEncode(b, transfer(wire.Store, 128<<10)) }

func benchReply(b *testing.B, t wire.Type, reply *wire.Reply) {
	uid, rawType := []byte{0xcd, 1, 2}, []byte{byte(t)}
	f := new(core.Frames)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.Reset()
			wire.EncodeReply(f, uid, rawType, t, reply)
		}
	})
	b.Run("decode", func(b *testing.B) {
		got := new(wire.Reply)
		b.ReportAllocs()
		for b.Loop() {
			wire.DecodeReply(f, got)
		}
	})
}

func BenchmarkPingReply(b *testing.B)  { benchReply(b, wire.Ping, &wire.Reply{OK: true}) }
func BenchmarkStoreReply(b *testing.B) { benchReply(b, wire.Store, &wire.Reply{OK: true}) }
