package wire

import (
	"bytes"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"vigil/core"
)

// split cuts fuzzed bytes into a message: each part is led by its length.
func split(data []byte) *core.Frames {
	f := new(core.Frames)
	for len(data) > 0 && f.Len() < MaxFrames+2 {
		n := int(data[0])
		data = data[1:]
		if n == 0xff && len(data) > 0 { // long parts
			n, data = 256*int(data[0]), data[1:]
		}
		n = min(n, len(data))
		f.Append(data[:n])
		data = data[n:]
	}
	return f
}

// join is the inverse of split, for the seeds.
func join(f *core.Frames) []byte {
	var out []byte
	for i := range f.Len() {
		p := f.Part(i)
		if len(p) >= 0xff {
			out = append(out, 0xff, byte((len(p)+255)/256))
			p = append(bytes.Clone(p), make([]byte, -len(p)&0xff)...)
		} else {
			out = append(out, byte(len(p)))
		}
		out = append(out, p...)
	}
	return out
}

// FuzzDecodeRequest: no message makes decoding panic, a refusal says why, and
// what is accepted is accepted again after encoding, with the same meaning.
func FuzzDecodeRequest(f *testing.F) {
	key := Key{Model: []byte("m"), WorldSize: 1, Tokens: []uint32{1, 2, 3, 4}, End: 4, RequestID: []byte("r")}
	export := core.Export{Kind: core.HostSHM, Handle: []byte("/s"), Bytes: 8, Blocks: 2, BlockBytes: 4, Shape: []int64{2, 4}, DType: []byte("int8")}
	for t := range Type(lastType + 1) {
		if PoolOf(t) == PoolNone {
			continue
		}
		var m core.Frames
		EncodeRequest(&m, &Request{
			Type: t, Instance: 42, Key: key, Blocks: []uint32{1, 2}, BlockEnds: []int{1, 2}, Model: []byte("m"),
			Engine: []byte("vllm"), Hints: Hints{KVLayout: []byte("NHD")}, Groups: []core.Group{{Layers: []int64{0, 1}, Physical: 2}},
			Exports: []core.Export{export}, Records: 2, Timeout: 1500000000,
		})
		f.Add(join(&m))
	}
	d := Decoder{ChunkTokens: 2}
	r, again := new(Request), new(Request)
	var out core.Frames
	f.Fuzz(func(t *testing.T, data []byte) {
		d.Decode(split(data), r)
		if r.Failure != core.NoFailure {
			if Explain(r) == "" {
				t.Fatal("a refusal without a reason")
			}
			return
		}
		if r.Type == Named {
			return
		}
		out.Reset()
		EncodeRequest(&out, r)
		d.Decode(&out, again)
		if again.Failure != core.NoFailure {
			t.Fatalf("accepted once: %s", Explain(again))
		}
		if r.Type != again.Type || r.Instance != again.Instance || r.NoInstance != again.NoInstance ||
			len(r.Key.Chunks) != len(again.Key.Chunks) || len(r.Blocks) != len(again.Blocks) ||
			len(r.Exports) != len(again.Exports) || len(r.Groups) != len(again.Groups) {
			t.Fatalf("%v came back as something else", r.Type)
		}
		for i := range r.Exports {
			if !r.Exports[i].Equal(&again.Exports[i]) {
				t.Fatalf("export %d came back as %+v, was %+v", i, again.Exports[i], r.Exports[i])
			}
		}
	})
}

// FuzzDecodeReply: the same for the client's side.
func FuzzDecodeReply(f *testing.F) {
	reply := Reply{
		OK: true, Data: []byte{1}, Int: 5, Text: []byte("OK"), ShmName: []byte("/p"), Pool: 9, Indices: []int64{0},
		Slots: []PoolSlot{{Offset: 1, Length: 2, Shape: []int64{1}, DType: []byte("int8")}},
	}
	for t := range Type(lastType + 1) {
		var m core.Frames
		EncodeReply(&m, []byte{0}, []byte{byte(t)}, t, &reply)
		f.Add(join(&m))
		m.Reset()
		EncodeRefusal(&m, []byte{0}, []byte{byte(t)}, t, core.FailNotRegistered)
		f.Add(join(&m))
	}
	var settled core.Frames
	EncodeReply(&settled, []byte{0}, appendText(nil, []byte(settleName)), Settle, &reply)
	f.Add(join(&settled))
	var verdict core.Frames
	EncodeReply(&verdict, []byte{0}, []byte{byte(Ping)}, Ping, &Reply{OK: true, Ping: PingVerdict{Aware: true, Boot: 5}})
	f.Add(join(&verdict))
	r := new(Reply)
	var out core.Frames
	f.Fuzz(func(t *testing.T, data []byte) {
		m := split(data)
		if DecodeReply(m, r) != core.NoFailure || r.Type == Named {
			return
		}
		out.Reset()
		EncodeReply(&out, m.Part(0), m.Part(1), r.Type, r)
		var again Reply
		if fail := DecodeReply(&out, &again); fail != core.NoFailure || again.OK != r.OK || again.Int != r.Int ||
			again.Nil != r.Nil || !bytes.Equal(again.Data, r.Data) || len(again.Slots) != len(r.Slots) {
			t.Fatalf("accepted once, then %v: %+v was %+v", fail, again, r)
		}
		if again.Ping != r.Ping {
			t.Fatalf("the verdict %+v came back as %+v", r.Ping, again.Ping)
		}
		if r.Refusal != core.NoFailure && m.Len() <= refusalFrame {
			t.Fatal("refused without a reason's frame")
		}
	})
}

// FuzzPickle: no body makes the reader panic or yields memory that it should
// not.
func FuzzPickle(f *testing.F) {
	for _, body := range []string{pickledShm, pickledRaw, pickledCUDA} {
		f.Add(unhex(f, body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e, c := unpickle(body)
		if c.fail != core.NoFailure {
			if c.why == "" {
				t.Fatal("a refusal without a reason")
			}
			return
		}
		if e.Kind == core.NoMemory || len(e.Handle) == 0 || len(e.Shape) == 0 || e.Blocks == 0 ||
			uint64(e.Blocks)*uint64(e.BlockBytes) != e.Bytes || e.Offset+e.Bytes > 1<<63-1 {
			t.Fatalf("accepted %+v", e)
		}
	})
}

// FuzzInts: our loop and the library agree on every array, and on what is
// none.
func FuzzInts(f *testing.F) {
	f.Add([]byte{0x93, 1, 0xcd, 1, 0, 0xce, 0, 1, 0, 0})
	f.Add([]byte{0xdc, 0, 1, 0xcf, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add([]byte{0xdd, 0, 0, 0, 1, 0xd3, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add([]byte{0x91, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := cursor{b: data}
		got := c.uints(nil, MaxTokens)
		rest := len(c.b)
		if c.fail != core.NoFailure {
			return
		}
		in := bytes.NewReader(data)
		dec := msgpack.NewDecoder(in)
		n, err := dec.DecodeArrayLen()
		if err != nil || n != len(got) {
			t.Fatalf("library sees %d elements (%v), we %d", n, err, len(got))
		}
		for i := range got {
			if v, err := dec.DecodeInt64(); err != nil || v != int64(got[i]) {
				t.Fatalf("element %d: library %d (%v), we %d", i, v, err, got[i])
			}
		}
		if in.Len() != rest {
			t.Fatalf("library leaves %d bytes, we %d", in.Len(), rest)
		}
	})
}
