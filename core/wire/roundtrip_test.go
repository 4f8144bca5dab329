package wire_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"vigil/core"
	"vigil/core/wire"
)

// served are the requests that both ends know.
var served = []wire.Type{
	wire.RegisterKVCache, wire.UnregisterKVCache, wire.RegisterQCache, wire.UnregisterQCache, wire.StoreQ,
	wire.Store, wire.Retrieve, wire.Lookup, wire.QueryPrefetchStatus, wire.WaitPrefetchStatus,
	wire.QueryPrefetchLookupHits, wire.FreeLookupLocks, wire.EndSession, wire.RegisterEngineDriven,
	wire.UnregisterEngineDriven, wire.PrepareStore, wire.CommitStore, wire.PrepareRetrieve, wire.CommitRetrieve,
	wire.Clear, wire.GetChunkSize, wire.Ping, wire.ReportBlockAllocation, wire.Noop,
	wire.RegisterRope, wire.UnregisterRope, wire.GetExperimental,
}

func word(most int) *rapid.Generator[[]byte] {
	return rapid.Map(rapid.StringMatching(`[a-z0-9_-]{0,`+fmt.Sprint(most)+`}`), func(s string) []byte { return []byte(s) })
}

func someBytes(most int) *rapid.Generator[[]byte] { return rapid.SliceOfN(rapid.Byte(), 0, most) }

func drawKey(t *rapid.T) wire.Key {
	k := wire.Key{
		Model:     []byte(rapid.StringN(0, 40, 200).Draw(t, "model")),
		WorldSize: rapid.Int64Range(-10, 1<<40).Draw(t, "world"),
		Worker:    rapid.Int64Range(-1, 1<<31-1).Draw(t, "worker"),
		Tokens:    rapid.SliceOfN(rapid.Uint32(), 0, 300).Draw(t, "tokens"),
		RequestID: word(40).Draw(t, "key request"),
		Salt:      word(64).Draw(t, "salt"),
	}
	chunks := len(k.Tokens) / testChunk
	first := rapid.IntRange(0, chunks).Draw(t, "first chunk")
	k.Start = int64(first * testChunk)
	k.End = rapid.Int64Range(k.Start, int64(len(k.Tokens))).Draw(t, "end")
	return k
}

// testChunk is the chunk size of these tests.
const testChunk = 16

func drawExports(t *rapid.T) []core.Export {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) core.Export {
		e := core.Export{
			Kind:       core.MemoryKind(rapid.IntRange(1, 2).Draw(t, "kind")),
			Handle:     bytes.Repeat([]byte{'h'}, rapid.IntRange(1, wire.MaxHandle).Draw(t, "handle")),
			Device:     word(wire.MaxWord).Draw(t, "device"),
			Offset:     rapid.Uint64Range(0, 1<<40).Draw(t, "offset"),
			Blocks:     rapid.Uint32().Draw(t, "blocks"),
			BlockBytes: rapid.Uint32Range(0, 1<<30).Draw(t, "block bytes"),
			DType:      word(20).Draw(t, "dtype"),
			Shape:      rapid.SliceOfN(rapid.Int64Range(0, 1<<40), 0, 5).Draw(t, "shape"),
		}
		e.Bytes = uint64(e.Blocks) * uint64(e.BlockBytes)
		return e
	}), 0, 5).Draw(t, "exports")
}

func drawBlocks(t *rapid.T, r *wire.Request) {
	for range rapid.IntRange(0, 4).Draw(t, "block groups") {
		r.Blocks = append(r.Blocks, rapid.SliceOfN(rapid.Uint32(), 0, 40).Draw(t, "blocks")...)
		r.BlockEnds = append(r.BlockEnds, len(r.Blocks))
	}
}

func drawRequest(t *rapid.T) *wire.Request {
	r := &wire.Request{
		Type:      rapid.SampledFrom(served).Draw(t, "type"),
		UIDNumber: rapid.Uint64().Draw(t, "uid"),
	}
	id := func() { r.Instance = core.InstanceID(rapid.Uint64Range(0, 1<<63-1).Draw(t, "id")) }
	switch r.Type {
	case wire.Ping:
		if r.NoInstance = rapid.Bool().Draw(t, "prober"); !r.NoInstance {
			id()
		}
	case wire.RegisterKVCache, wire.RegisterQCache:
		id()
		r.Exports = drawExports(t)
		r.Model = word(40).Draw(t, "model")
		r.WorldSize = rapid.Int64().Draw(t, "world")
		r.Engine = []byte(rapid.SampledFrom([]string{"vllm", "sglang", "trtllm", "mock", "atom"}).Draw(t, "engine"))
		r.Hints = wire.Hints{
			KVLayout: word(10).Draw(t, "layout"), NumKVHeads: rapid.Int64().Draw(t, "heads"),
			TokensPerBlock: rapid.Int64Range(0, 1).Draw(t, "tokens"), HeadDim: rapid.Int64().Draw(t, "dim"),
		}
		r.Groups = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) core.Group {
			return core.Group{
				ID: rapid.Int64().Draw(t, "group"), Layers: rapid.SliceOfN(rapid.Int64(), 0, 20).Draw(t, "layers"),
				TokensPerBlock: rapid.Int64().Draw(t, "tokens"), SlidingWindow: rapid.Int64Range(-1, 1<<20).Draw(t, "window"),
				Physical: rapid.Int64Range(1, 4).Draw(t, "physical"),
			}
		}), 0, 4).Draw(t, "groups")
	case wire.UnregisterKVCache, wire.UnregisterQCache, wire.UnregisterEngineDriven:
		id()
	case wire.UnregisterRope:
		id()
		r.OldNumber = rapid.Bool().Draw(t, "old number")
	case wire.GetExperimental:
		r.OldNumber = rapid.Bool().Draw(t, "old number")
	case wire.Store, wire.StoreQ, wire.Retrieve:
		r.Key = drawKey(t)
		id()
		drawBlocks(t, r)
		r.Event = someBytes(100).Draw(t, "event")
		if r.Type == wire.Retrieve {
			r.Skip = rapid.Int64().Draw(t, "skip")
		}
	case wire.Lookup, wire.FreeLookupLocks:
		r.Key = drawKey(t)
		r.TPSize = rapid.Int64().Draw(t, "tp")
	case wire.WaitPrefetchStatus:
		r.RequestID = word(60).Draw(t, "request")
		r.Timeout = time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "timeout"))
	case wire.QueryPrefetchStatus, wire.QueryPrefetchLookupHits, wire.EndSession:
		r.RequestID = word(60).Draw(t, "request")
	case wire.RegisterEngineDriven:
		id()
		r.Model = word(40).Draw(t, "model")
		r.WorldSize, r.BlockSize = rapid.Int64().Draw(t, "world"), rapid.Int64().Draw(t, "block")
		r.NumLayers, r.HiddenDim = rapid.Int64().Draw(t, "layers"), rapid.Int64().Draw(t, "hidden")
		r.DType = word(20).Draw(t, "dtype")
		r.UseMLA = rapid.Bool().Draw(t, "mla")
	case wire.PrepareStore, wire.PrepareRetrieve, wire.CommitRetrieve:
		r.Key = drawKey(t)
		id()
	case wire.CommitStore:
		r.Key = drawKey(t)
		id()
		r.Data = someBytes(400).Draw(t, "data")
	case wire.ReportBlockAllocation:
		id()
		r.Model = word(40).Draw(t, "model")
		r.Records = rapid.IntRange(0, 20).Draw(t, "records")
	case wire.Settle:
		id()
		r.Before = rapid.Uint64Range(0, 1<<63-1).Draw(t, "before")
	case wire.RegisterRope:
		id()
		r.Exports = drawExports(t)
		r.HeadSize = rapid.Int64().Draw(t, "head")
		r.Neox = rapid.Bool().Draw(t, "neox")
		r.OldNumber = rapid.Bool().Draw(t, "old number")
	}
	return r
}

// fields writes the exported fields of a request or reply, so that an empty
// list and none compare alike. What only one side of the wire has is left out.
func fields(v any, without ...string) string {
	var b strings.Builder
	s := reflect.ValueOf(v).Elem()
	for i := range s.NumField() {
		f := s.Type().Field(i)
		skip := !f.IsExported()
		for _, w := range without {
			skip = skip || f.Name == w
		}
		if !skip {
			fmt.Fprintf(&b, "%s=%v\n", f.Name, s.Field(i).Interface())
		}
	}
	return b.String()
}

// Every request comes back as it was, from a decoder and a Request that read
// others before it.
func TestRequestsSurviveTheWire(t *testing.T) {
	d := wire.Decoder{ChunkTokens: testChunk}
	got := new(wire.Request)
	f, again := new(core.Frames), new(core.Frames)
	rapid.Check(t, func(t *rapid.T) {
		want := drawRequest(t)
		f.Reset()
		wire.EncodeRequest(f, want)
		for i := range f.Len() {
			// Each frame is one document for the library, too.
			dec := msgpack.NewDecoder(bytes.NewReader(f.Part(i)))
			if err := dec.Skip(); err != nil {
				t.Fatalf("%v: library at frame %d: %v", want.Type, i, err)
			}
		}
		d.Decode(f, got)
		if got.Failure != core.NoFailure {
			t.Fatalf("refused: %s", wire.Explain(got))
		}
		chunks := len(got.Key.Chunks)
		if n := int(got.Key.End)/testChunk - int(got.Key.Start)/testChunk; chunks != n {
			t.Fatalf("got %d chunks, want %d", chunks, n)
		}
		got.Key.Chunks = nil
		if !bytes.Equal(got.UID, f.Part(0)) || !bytes.Equal(got.RawType, f.Part(1)) {
			t.Fatalf("the first frames are not kept as they came")
		}
		if want.Key.Worker == 0 && want.Key.Tokens == nil {
			got.Key.Worker = 0 // no key in this request
		}
		if a, b := fields(got, "UID", "RawType"), fields(want, "UID", "RawType"); a != b {
			t.Fatalf("%v: got\n%s\nwant\n%s", want.Type, a, b)
		}
		again.Reset()
		wire.EncodeRequest(again, got)
		if !bytes.Equal(again.Bytes, f.Bytes) {
			t.Fatalf("%v: encoded again differs", want.Type)
		}
	})
}

func TestRepliesSurviveTheWire(t *testing.T) {
	got := new(wire.Reply)
	f := new(core.Frames)
	rapid.Check(t, func(t *rapid.T) {
		want := &wire.Reply{Type: rapid.SampledFrom(served).Draw(t, "type"), UIDNumber: rapid.Uint64Range(0, 1<<63-1).Draw(t, "uid")}
		slots := func() {
			want.Slots = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) wire.PoolSlot {
				return wire.PoolSlot{
					Offset: rapid.Int64().Draw(t, "offset"), Length: rapid.Int64().Draw(t, "length"),
					Shape: rapid.SliceOfN(rapid.Int64(), 0, 5).Draw(t, "shape"), DType: word(20).Draw(t, "dtype"),
				}
			}), 0, 8).Draw(t, "slots")
		}
		switch want.Type {
		case wire.Ping, wire.CommitStore, wire.CommitRetrieve:
			want.OK = rapid.Bool().Draw(t, "ok")
			if want.Type == wire.Ping && want.OK {
				v := &want.Ping
				v.Aware, v.Boot = rapid.Bool().Draw(t, "aware"), rapid.Uint64Range(0, wire.MaxBoot).Draw(t, "boot")
				v.Registered = v.Aware && rapid.Bool().Draw(t, "registered")
			}
		case wire.Store, wire.Retrieve, wire.StoreQ:
			want.OK, want.Data = rapid.Bool().Draw(t, "ok"), someBytes(300).Draw(t, "data")
		case wire.QueryPrefetchStatus, wire.WaitPrefetchStatus, wire.QueryPrefetchLookupHits:
			if want.Nil = rapid.Bool().Draw(t, "nil"); !want.Nil {
				want.Int = rapid.Int64().Draw(t, "int")
			}
		case wire.GetChunkSize:
			want.Int = rapid.Int64().Draw(t, "int")
		case wire.Noop:
			want.Text = word(20).Draw(t, "text")
		case wire.GetExperimental:
		case wire.Settle:
			want.Indices = rapid.SliceOfN(rapid.Int64(), 0, 20).Draw(t, "uids")
		case wire.RegisterEngineDriven:
			want.ShmName, want.Pool = word(40).Draw(t, "shm"), rapid.Int64().Draw(t, "pool")
		case wire.PrepareStore:
			if want.Inline = rapid.Bool().Draw(t, "inline"); !want.Inline {
				slots()
				want.Indices = rapid.SliceOfN(rapid.Int64(), 0, 20).Draw(t, "indices")
			}
		case wire.PrepareRetrieve:
			want.OK, want.Data = rapid.Bool().Draw(t, "ok"), someBytes(300).Draw(t, "data")
			slots()
			want.Inline = len(want.Slots) == 0
		default:
			want.Nil = true // the result is None
		}
		var head core.Frames
		wire.EncodeRequest(&head, &wire.Request{UIDNumber: want.UIDNumber, Type: want.Type, Legacy: true})
		f.Reset()
		wire.EncodeReply(f, head.Part(0), head.Part(1), want.Type, want)
		if rapid.Bool().Draw(t, "more frames") && f.Len() == 3 {
			f.Append([]byte{0xc1}) // ignored, whatever it is
		}
		if failure := wire.DecodeReply(f, got); failure != core.NoFailure {
			t.Fatalf("%v: refused: %v", want.Type, failure)
		}
		if a, b := fields(got), fields(want); a != b {
			t.Fatalf("%v: got\n%s\nwant\n%s", want.Type, a, b)
		}
	})
}

// A ping's verdict may be anything that Python would call true or false.
func TestPingVerdictsAreCoerced(t *testing.T) {
	for hexed, want := range map[string]bool{
		"c3": true, "c2": false, "01": true, "00": false, "c0": false, "a0": false, "a1 30": true, "90": false,
		"91 c2": true, "80": false, "81 a1 61 c2": true, "cb 0000000000000000": false, "cb 8000000000000000": false,
		"ca 3f800000": true, "c4 00": false, "c4 01 00": true,
	} {
		var r wire.Reply
		if f := wire.DecodeReply(message(t, "00", "16", hexed), &r); f != core.NoFailure || r.OK != want {
			t.Errorf("%s: got %v %v, want %v", hexed, r.OK, f, want)
		}
	}
}
