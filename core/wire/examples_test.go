package wire_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"vigil/core"
	"vigil/core/wire"
)

// message makes a message of hex parts; blanks inside a part are for readers.
func message(t testing.TB, parts ...string) *core.Frames {
	t.Helper()
	f := new(core.Frames)
	for _, p := range parts {
		b, err := hex.DecodeString(strings.ReplaceAll(p, " ", ""))
		if err != nil {
			t.Fatalf("part %q: %v", p, err)
		}
		f.Append(b)
	}
	return f
}

// same fails unless both messages have the same parts.
func same(t testing.TB, got, want *core.Frames) {
	t.Helper()
	if got.Len() != want.Len() {
		t.Fatalf("got %d parts, want %d", got.Len(), want.Len())
	}
	for i := range got.Len() {
		if !bytes.Equal(got.Part(i), want.Part(i)) {
			t.Errorf("part %d:\n got % x\nwant % x", i, got.Part(i), want.Part(i))
		}
	}
}

func decode(t testing.TB, f *core.Frames) *wire.Request {
	t.Helper()
	d := wire.Decoder{ChunkTokens: 256}
	r := new(wire.Request)
	d.Decode(f, r)
	if r.Failure != core.NoFailure {
		t.Fatalf("refused: %s", wire.Explain(r))
	}
	return r
}

const someID = core.InstanceID(0x1234567890ABCDEF)

// The examples of PROTOCOL, section 8: what a real client sends is understood,
// and what we send for the same request is the same bytes.
func TestPingIsTheUpstreamBytes(t *testing.T) {
	cases := []struct {
		name  string
		frame string
		want  wire.Request
	}{
		{"an id", "cf 12 34 56 78 90 ab cd ef", wire.Request{Instance: someID}},
		{"a prober", "c0", wire.Request{NoInstance: true}},
		{"a small id", "2a", wire.Request{Instance: 42}},
		{"the largest id", "cf 7f ff ff ff ff ff ff ff", wire.Request{Instance: core.MaxInstanceID}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := message(t, "00", "16", c.frame)
			r := decode(t, f)
			if r.Type != wire.Ping || r.Instance != c.want.Instance || r.NoInstance != c.want.NoInstance {
				t.Errorf("got %v, id %x, nil %v", r.Type, uint64(r.Instance), r.NoInstance)
			}
			c.want.Type = wire.Ping
			out := new(core.Frames)
			wire.EncodeRequest(out, &c.want)
			same(t, out, f)
		})
	}
}

const registerGroup = "91 84 af 65 6e 67 69 6e 65 5f 67 72 6f 75 70 5f 69 64 00 ad 6c 61 79 65 72 5f 69 6e 64 69 63 65 73 92 00 01" +
	"b0 74 6f 6b 65 6e 73 5f 70 65 72 5f 62 6c 6f 63 6b 10 ae 73 77 5f 73 69 7a 65 5f 74 6f 6b 65 6e 73 ff"

func TestRegisterIsTheUpstreamBytes(t *testing.T) {
	f := message(t, "01", "01",
		"cf 12 34 56 78 90 ab cd ef", "90",
		"ad 51 77 65 6e 2f 51 77 65 6e 33 2d 38 42", "01", "a4 76 6c 6c 6d",
		"81 a9 6b 76 5f 6c 61 79 6f 75 74 a3 4e 48 44", registerGroup)
	r := decode(t, f)
	if r.Type != wire.RegisterKVCache || r.Instance != someID || string(r.Model) != "Qwen/Qwen3-8B" ||
		r.WorldSize != 1 || string(r.Engine) != "vllm" || string(r.Hints.KVLayout) != "NHD" {
		t.Errorf("decoded %+v", r)
	}
	if len(r.Groups) != 1 {
		t.Fatalf("got %d groups, want 1", len(r.Groups))
	}
	g := r.Groups[0]
	if g.ID != 0 || len(g.Layers) != 2 || g.Layers[1] != 1 || g.TokensPerBlock != 16 || g.SlidingWindow != -1 || g.Physical != 1 {
		t.Errorf("decoded group %+v", g)
	}
	r.UIDNumber = 1
	out := new(core.Frames)
	wire.EncodeRequest(out, r)
	same(t, out, f)
}

const minimalKey = "88 aa 6d6f64656c5f6e616d65 a1 6d aa 776f726c645f73697a65 01 a9 776f726b65725f6964 00" +
	"a9 746f6b656e5f696473 92 01 02 a5 7374617274 00 a3 656e64 02 aa 726571756573745f6964 a1 72 aa 63616368655f73616c74 a0"

func TestTransfersAreTheUpstreamBytes(t *testing.T) {
	store := message(t, "00", "06", minimalKey, "2a", "92 92 00 01 91 cd 01 00", "c4 01 07")
	r := decode(t, store)
	k := &r.Key
	if string(k.Model) != "m" || k.WorldSize != 1 || k.Worker != 0 || len(k.Tokens) != 2 || k.Tokens[1] != 2 ||
		k.Start != 0 || k.End != 2 || string(k.RequestID) != "r" || len(k.Salt) != 0 || len(k.Chunks) != 0 {
		t.Errorf("decoded key %+v", k)
	}
	if len(r.Blocks) != 3 || r.Blocks[2] != 256 || len(r.BlockEnds) != 2 || r.BlockEnds[0] != 2 || r.BlockEnds[1] != 3 {
		t.Errorf("decoded blocks %v ends %v", r.Blocks, r.BlockEnds)
	}
	if r.Instance != 42 || !bytes.Equal(r.Event, []byte{7}) {
		t.Errorf("decoded id %d event % x", r.Instance, r.Event)
	}
	out := new(core.Frames)
	wire.EncodeRequest(out, r)
	same(t, out, store)

	retrieve := message(t, "cc 80", "07", minimalKey, "2a", "90", "c4 00", "10")
	r = decode(t, retrieve)
	if r.Skip != 16 || r.UIDNumber != 128 {
		t.Errorf("decoded skip %d uid %d", r.Skip, r.UIDNumber)
	}
	out.Reset()
	wire.EncodeRequest(out, r)
	same(t, out, retrieve)
}

// Replies echo the first two frames as they came and carry one result, or none.
func TestRepliesAreTheUpstreamBytes(t *testing.T) {
	cases := []struct {
		name  string
		t     wire.Type
		reply wire.Reply
		parts []string
	}{
		{"ping", wire.Ping, wire.Reply{OK: true}, []string{"00", "16", "c3"}},
		{"register", wire.RegisterKVCache, wire.Reply{Nil: true}, []string{"01", "01"}},
		{"store", wire.Store, wire.Reply{Data: []byte{1, 2}, OK: true}, []string{"00", "06", "92 c4 02 01 02 c3"}},
		{"chunk size", wire.GetChunkSize, wire.Reply{Int: 256}, []string{"00", "15", "cd 01 00"}},
		{"noop", wire.Noop, wire.Reply{Text: []byte("OK")}, []string{"00", "18", "a2 4f 4b"}},
		{"experimental", wire.GetExperimental, wire.Reply{}, []string{"00", "28", "90"}},
		{"experimental, other dialect", wire.GetExperimental, wire.Reply{}, []string{"00", "20", "90"}},
		{"engine-driven register", wire.RegisterEngineDriven, wire.Reply{},
			[]string{"00", "0e", "82 a8 73 68 6d 5f 6e 61 6d 65 a0 a9 70 6f 6f 6c 5f 73 69 7a 65 00"}},
		{"prepare retrieve, miss", wire.PrepareRetrieve, wire.Reply{Inline: true},
			[]string{"00", "12", "83 a7 73 75 63 63 65 73 73 c2 a4 64 61 74 61 c4 00 a7 63 6f 6e 74 65 78 74 80"}},
		{"prefetch not yet", wire.QueryPrefetchStatus, wire.Reply{Nil: true}, []string{"05", "09"}},
		{"prefetch hits", wire.QueryPrefetchStatus, wire.Reply{Int: 0}, []string{"05", "09", "00"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := message(t, c.parts...)
			out := new(core.Frames)
			wire.EncodeReply(out, want.Part(0), want.Part(1), c.t, &c.reply)
			same(t, out, want)
			var r wire.Reply
			if f := wire.DecodeReply(want, &r); f != core.NoFailure {
				t.Fatalf("refused: %v", f)
			}
			if r.Type != c.t || r.OK != c.reply.OK || r.Nil != c.reply.Nil || r.Int != c.reply.Int || r.Inline != c.reply.Inline ||
				!bytes.Equal(r.Data, c.reply.Data) || !bytes.Equal(r.Text, c.reply.Text) {
				t.Errorf("decoded %+v", r)
			}
		})
	}
}

func TestStepsOfUIDEncoding(t *testing.T) {
	for uid, part := range map[uint64]string{0: "00", 127: "7f", 128: "cc 80", 65536: "ce 00 01 00 00"} {
		out := new(core.Frames)
		wire.EncodeRequest(out, &wire.Request{UIDNumber: uid, Type: wire.Noop})
		same(t, out, message(t, part, "18"))
	}
}
