package wire_test

import (
	"strings"
	"testing"

	"vigil/core"
	"vigil/core/wire"
)

// zeros is a part of n zero bytes, in hex.
func zeros(n int) string { return strings.Repeat("00", n) }

// keyWith is the minimal key with one piece of it changed.
func keyWith(t testing.TB, old, with string) string {
	key := strings.ReplaceAll(minimalKey, " ", "")
	old, with = strings.ReplaceAll(old, " ", ""), strings.ReplaceAll(with, " ", "")
	if !strings.Contains(key, old) {
		t.Fatalf("%s is not in the key", old)
	}
	return strings.Replace(key, old, with, 1)
}

// Each malformed message gets one line that says which request, which frame
// and what is wrong with it, and nothing worse happens.
func TestMalformedMessagesGetOneClearLine(t *testing.T) {
	register := func(change int, with string) []string {
		parts := []string{"00", "01", "2a", "90", "a1 6d", "01", "a4 76 6c 6c 6d", "80", "90"}
		parts[change] = with
		return parts
	}
	store := func(key string) []string { return []string{"00", "06", key, "2a", "90", "c4 00"} }
	cases := []struct {
		name  string
		parts []string
		fail  core.Failure
		line  string
	}{
		{"nothing", nil, core.FailShortMessage, "message: fewer than 2 frames, where a request has a uid and a type at least"},
		{"a uid alone", []string{"00"}, core.FailShortMessage, "message: fewer than 2 frames, where a request has a uid and a type at least"},
		{"an old client's ping", []string{"00", "16"}, core.FailPayloadCount,
			"PING: 0 payload frames where 1 is expected: client and server versions differ"},
		{"two ids in a ping", []string{"00", "16", "2a", "2a"}, core.FailPayloadCount,
			"PING: 2 payload frames where 1 is expected: client and server versions differ"},
		{"a store without its event", []string{"00", "06", minimalKey, "2a", "90"}, core.FailPayloadCount,
			"STORE: 3 payload frames where 4 are expected: client and server versions differ"},
		{"a uid that is no integer's length", []string{zeros(10), "16", "2a"}, core.FailTooLarge,
			"frame 0 (uid): is longer than an integer"},
		{"a type of no length", []string{"00", "", "2a"}, core.FailUnknownType,
			"frame 1 (type, ): is neither a number nor a name"},
		{"a type that is no msgpack", []string{"00", "c1", "2a"}, core.FailUnknownType,
			"frame 1 (type, c1): is neither a number nor a name"},
		{"two types", []string{"00", "16 16", "2a"}, core.FailUnknownType,
			"frame 1 (type, 16 16): is neither a number nor a name"},
		{"type 0", []string{"00", "00", "2a"}, core.FailUnknownType, "frame 1 (type, 00): names no request"},
		{"type 41", []string{"00", "29", "2a"}, core.FailUnknownType, "frame 1 (type, 29): names no request"},
		{"type 278, 22 in its low byte", []string{"00", "cd 01 16", "2a"}, core.FailUnknownType, "frame 1 (type, cd 01 16): names no request"},
		{"a negative type", []string{"00", "ff", "2a"}, core.FailUnknownType, "frame 1 (type, ff): names no request"},
		{"a name too long", []string{"00", "d9 41" + zeros(65), "2a"}, core.FailTooLarge, "frame 1 (type): is longer than an operation's name"},
		{"another dialect's 28", []string{"00", "1c", minimalKey}, core.FailUnsupported,
			"request 28: not served with 1 payload frame; 25 to 40 mean different requests in different versions, so the number and the count must both fit"},
		{"more parts than any request", strings.Split(strings.Repeat("00 ", 17)[:17*3-1], " "), core.FailTooLarge,
			"message: has more parts than any request"},
		{"a ping with a float", []string{"00", "16", "cb 4045000000000000"}, core.FailUndecodable,
			"PING: frame 2 (instance id): is not an integer"},
		{"a ping with true", []string{"00", "16", "c3"}, core.FailUndecodable, "PING: frame 2 (instance id): is not an integer"},
		{"a ping with 64 bits", []string{"00", "16", "cf 8000000000000000"}, core.FailUndecodable,
			"PING: frame 2 (instance id): is an integer that does not fit 64 signed bits"},
		{"a ping with -1", []string{"00", "16", "ff"}, core.FailUndecodable, "PING: frame 2 (instance id): is a negative integer"},
		{"a ping that is cut", []string{"00", "16", "cf 12 34"}, core.FailUndecodable, "PING: frame 2 (instance id): ends before its value does"},
		{"a ping with more", []string{"00", "16", "2a 2a"}, core.FailUndecodable, "PING: frame 2 (instance id): has bytes after its value"},
		{"an empty id", []string{"00", "02", ""}, core.FailUndecodable, "UNREGISTER_KV_CACHE: frame 2 (instance id): ends before its value does"},
		{"a negative id by numeral", []string{"00", "02", "a2 2d 31"}, core.FailUndecodable, "UNREGISTER_KV_CACHE: frame 2 (instance id): is a negative instance id"},
		{"exports that are a map", register(3, "80"), core.FailUndecodable, "REGISTER_KV_CACHE: frame 3 (exports): is not an array"},
		{"an export that is an integer", register(3, "91 01"), core.FailUndecodable, "REGISTER_KV_CACHE: frame 3 (exports): is not an extension"},
		{"an export of extension 3", register(3, "91 d4 03 00"), core.FailUndecodable, "REGISTER_KV_CACHE: frame 3 (exports): is an extension of an unknown type"},
		{"an export that calls a function", register(3, "91 c7 09 01 80 04 63 61 0a 62 0a 52 2e"), core.FailUndecodable,
			"REGISTER_KV_CACHE: frame 3 (exports): is a pickle with an opcode that no exported tensor needs"},
		{"exports without end", register(3, "dd ffffffff"), core.FailTooLarge, "REGISTER_KV_CACHE: frame 3 (exports): is an array over its bound"},
		{"a model that is not UTF-8", register(4, "a1 ff"), core.FailUndecodable, "REGISTER_KV_CACHE: frame 4 (model name): is a string that is not UTF-8"},
		{"a model of bytes", register(4, "c4 01 6d"), core.FailUndecodable, "REGISTER_KV_CACHE: frame 4 (model name): is not a string"},
		{"a model without end", register(4, "db ffffffff"), core.FailTooLarge, "REGISTER_KV_CACHE: frame 4 (model name): is a string over its bound"},
		{"a world of nil", register(5, "c0"), core.FailUndecodable, "REGISTER_KV_CACHE: frame 5 (world size): is not an integer"},
		{"an engine that nobody wrote", register(6, "a1 78"), core.FailUndecodable, "REGISTER_KV_CACHE: frame 6 (engine): is not the name of an engine"},
		{"hints of nil", register(7, "c0"), core.FailUndecodable, "REGISTER_KV_CACHE: frame 7 (layout hints): is not a map"},
		{"a hint of nil", register(7, "81 a8 686561645f64696d c0"), core.FailUndecodable, "REGISTER_KV_CACHE: frame 7 (layout hints): holds something where an integer belongs"},
		{"hints nested without end", register(7, "81 a1 61"+strings.Repeat("91", 100)+"00"), core.FailTooLarge, "REGISTER_KV_CACHE: frame 7 (layout hints): is nested too deep"},
		{"a group without its id", register(8, "91 80"), core.FailUndecodable, "REGISTER_KV_CACHE: frame 8 (groups): holds a group without engine_group_id"},
		{"a group that is a list", register(8, "91 90"), core.FailUndecodable, "REGISTER_KV_CACHE: frame 8 (groups): is not a map"},
		{"a key that is a list", store("90"), core.FailUndecodable, "STORE: frame 2 (key): is not a map"},
		{"a key without a world", store(keyWith(t, "88 aa6d6f64656c5f6e616d65a16d aa776f726c645f73697a6501", "87 aa6d6f64656c5f6e616d65a16d")), core.FailUndecodable,
			"STORE: frame 2 (key): is a key without all of model_name, world_size, worker_id, token_ids, start, end, request_id"},
		{"a key with a float token", store(keyWith(t, "92 01 02", "92 01 ca 3f800000")), core.FailUndecodable, "STORE: frame 2 (key): holds something that is not an integer"},
		{"a key with a negative token", store(keyWith(t, "92 01 02", "92 01 ff")), core.FailUndecodable, "STORE: frame 2 (key): holds an integer outside 0 to 4294967295"},
		{"a key that declares more tokens than it has", store(keyWith(t, "92 01 02", "dc ffff 01 02")), core.FailUndecodable, "STORE: frame 2 (key): ends before its value does"},
		{"a key with more tokens than may be", store(keyWith(t, "92 01 02", "dd ffffffff 01 02")), core.FailTooLarge, "STORE: frame 2 (key): is an array over its bound"},
		{"a range past the tokens", store(keyWith(t, "a3 656e64 02", "a3 656e64 03")), core.FailUndecodable, "STORE: frame 2 (key): is a key whose range does not lie in its tokens"},
		{"a range backwards", store(keyWith(t, "a5 7374617274 00 a3 656e64 02", "a5 7374617274 02 a3 656e64 01")), core.FailUndecodable, "STORE: frame 2 (key): is a key whose range does not lie in its tokens"},
		{"a start within a chunk", store(keyWith(t, "a5 7374617274 00", "a5 7374617274 01")), core.FailUndecodable, "STORE: frame 2 (key): is a key whose start is not a multiple of the chunk size"},
		{"a salt with a slash", store(keyWith(t, "73616c74 a0", "73616c74 a1 2f")), core.FailUndecodable, "STORE: frame 2 (key): has a cache_salt over 128 characters or with @ / \\ or NUL in it"},
		{"a salt of 129", store(keyWith(t, "73616c74 a0", "73616c74 d9 81"+strings.Repeat("61", 129))), core.FailUndecodable, "STORE: frame 2 (key): has a cache_salt over 128 characters or with @ / \\ or NUL in it"},
		{"a worker of -2", store(keyWith(t, "776f726b65725f6964 00", "776f726b65725f6964 fe")), core.FailUndecodable, "STORE: frame 2 (key): has a worker_id outside 0 to 2147483647"},
		{"blocks without groups", []string{"00", "06", minimalKey, "2a", "92 00 01", "c4 00"}, core.FailUndecodable, "STORE: frame 4 (blocks): is not an array"},
		{"an event of text", []string{"00", "06", minimalKey, "2a", "90", "a0"}, core.FailUndecodable, "STORE: frame 5 (event): is not a byte string"},
		{"a timeout of NaN", []string{"00", "0a", "a1 72", "cb 7ff8000000000000"}, core.FailUndecodable, "WAIT_PREFETCH_STATUS: frame 3 (timeout): is not a number of seconds"},
		{"a context without a dtype", []string{"00", "0e", "80"}, core.FailUndecodable,
			"REGISTER_KV_CACHE_ENGINE_DRIVEN_CONTEXT: frame 2 (context): is a map without all of instance_id, model_name, world_size, block_size, num_layers, hidden_dim_size, dtype_str, use_mla"},
		{"a context whose boolean is an integer", []string{"00", "0e", "81 a7 7573655f6d6c61 01"}, core.FailUndecodable,
			"REGISTER_KV_CACHE_ENGINE_DRIVEN_CONTEXT: frame 2 (context): holds something where a boolean belongs"},
		{"a context whose id is negative", []string{"00", "0e", "81 ab 696e7374616e63655f6964 ff"}, core.FailUndecodable,
			"REGISTER_KV_CACHE_ENGINE_DRIVEN_CONTEXT: frame 2 (context): holds a negative instance id"},
		{"a record without blocks", []string{"00", "17", "2a", "a0", "91 80"}, core.FailUndecodable,
			"REPORT_BLOCK_ALLOCATION: frame 4 (records): is a record without req_id, new_block_ids or new_token_ids"},
	}
	d := wire.Decoder{ChunkTokens: 256}
	r := new(wire.Request)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d.Decode(message(t, c.parts...), r)
			if r.Failure != c.fail {
				t.Errorf("got %v, want %v", r.Failure, c.fail)
			}
			if line := wire.Explain(r); line != c.line || strings.Contains(line, "\n") {
				t.Errorf("got  %q\nwant %q", line, c.line)
			}
		})
	}
}

// What a frame declares costs nothing until it is there, and a message over
// the bound is not looked into.
func TestSizesAreBounded(t *testing.T) {
	d := wire.Decoder{}
	r := new(wire.Request)
	f := new(core.Frames)
	commit := &wire.Request{Type: wire.CommitStore, Key: wire.Key{Model: []byte("m")}, Data: make([]byte, wire.MaxMessageBytes)}
	wire.EncodeRequest(f, commit)
	if d.Decode(f, r); r.Failure != core.NoFailure {
		t.Errorf("inline data of 16 MiB: %s", wire.Explain(r))
	}
	f.Reset()
	commit.Data = make([]byte, wire.MaxInlineBytes)
	wire.EncodeRequest(f, commit)
	if d.Decode(f, r); r.Failure != core.FailTooLarge {
		t.Errorf("inline data over the bound: got %v", r.Failure)
	}
	f.Reset()
	store := &wire.Request{Type: wire.Store, Event: make([]byte, wire.MaxMessageBytes)}
	wire.EncodeRequest(f, store)
	if d.Decode(f, r); r.Failure != core.FailTooLarge || wire.Explain(r) != "STORE: the message is over its bound on bytes" {
		t.Errorf("a large store: got %q", wire.Explain(r))
	}
	before := testing.AllocsPerRun(10, func() {
		d.Decode(message(t, "00", "06", keyWith(t, "92 01 02", "dd 000fffff 01 02"), "2a", "90", "c4 00"), r)
	})
	if r.Failure != core.FailUndecodable || before > 200 {
		t.Errorf("a declared million of tokens: %v with %v allocations", r.Failure, before)
	}
}

// A newer client's fields are its own affair, and fields with a default may be
// left out.
func TestUnknownAndMissingFields(t *testing.T) {
	newer := keyWith(t, "88", "8b a1 78 c0 ae 6e756d5f6b765f72656164657273 04 a4 6d61736b 92 91 c3 91 c2")
	r := decode(t, message(t, "00", "06", newer, "2a", "90", "c4 00"))
	if string(r.Key.Model) != "m" {
		t.Errorf("decoded model %q", r.Key.Model)
	}
	older := keyWith(t, "88", "87")
	older = older[:len(older)-len("aa63616368655f73616c74a0")]
	r = decode(t, message(t, "00", "06", older, "2a", "90", "c4 00"))
	if len(r.Key.Salt) != 0 {
		t.Errorf("decoded salt %q", r.Key.Salt)
	}
	everyone := keyWith(t, "776f726b65725f6964 00", "776f726b65725f6964 c0")
	if r = decode(t, message(t, "00", "08", everyone, "02")); r.Key.Worker != -1 || r.TPSize != 2 {
		t.Errorf("decoded worker %d, tp %d", r.Key.Worker, r.TPSize)
	}
	group := "91 82 af 656e67696e655f67726f75705f6964 03 a1 78 81 a1 79 c0"
	r = decode(t, message(t, "00", "01", "2a", "90", "a1 6d", "01", "a4 6d 6f 63 6b", "81 a1 78 c0", group))
	if g := r.Groups[0]; g.ID != 3 || g.SlidingWindow != -1 || g.Physical != 1 || len(g.Layers) != 0 {
		t.Errorf("decoded group %+v", g)
	}
	// int payloads take what int() takes (PROTOCOL, section 1.4).
	r = decode(t, message(t, "00", "02", "a2 34 32"))
	if r.Instance != 42 {
		t.Errorf("decoded id %d of \"42\"", r.Instance)
	}
	if r = decode(t, message(t, "00", "02", "c3")); r.Instance != 1 {
		t.Errorf("decoded id %d of true", r.Instance)
	}
}

// Replies that no client can use say so and leave the client alive.
func TestMalformedReplies(t *testing.T) {
	cases := []struct {
		name  string
		parts []string
		fail  core.Failure
	}{
		{"nothing", nil, core.FailShortMessage},
		{"one frame", []string{"00"}, core.FailShortMessage},
		{"a uid of text", []string{"a1 30", "16", "c3"}, core.FailUndecodable},
		{"a long uid", []string{zeros(10), "16", "c3"}, core.FailTooLarge},
		{"an unknown type", []string{"00", "29", "c3"}, core.FailUnknownType},
		{"a type without a result form", []string{"00", "1c", "90"}, core.FailUnknownType},
		{"no type", []string{"00", "c1", "c3"}, core.FailUnknownType},
		{"a result where none is", []string{"00", "01", "c3"}, core.FailUndecodable},
		{"a triple", []string{"00", "06", "93 c4 00 c3 c3"}, core.FailUndecodable},
		{"a pair with an integer", []string{"00", "06", "92 c4 00 01"}, core.FailUndecodable},
		{"two results", []string{"00", "16", "c3 c3"}, core.FailUndecodable},
		{"an empty result", []string{"00", "16", ""}, core.FailUndecodable},
		{"hits of text", []string{"00", "09", "a1 31"}, core.FailUndecodable},
		{"a prepared retrieve without data", []string{"00", "12", "81 a7 636f6e74657874 80"}, core.FailUndecodable},
		{"a context of nil", []string{"00", "10", "81 a7 636f6e74657874 c0"}, core.FailUndecodable},
	}
	for _, c := range cases {
		var r wire.Reply
		if got := wire.DecodeReply(message(t, c.parts...), &r); got != c.fail {
			t.Errorf("%s: got %v, want %v", c.name, got, c.fail)
		}
	}
}
