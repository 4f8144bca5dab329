package wire_test

import (
	"testing"

	"vigil/core"
	"vigil/core/wire"
)

// The commonest messages cost no heap at steady state, both ways.
func TestHotPathDoesNotAllocate(t *testing.T) {
	d := wire.Decoder{ChunkTokens: 16}
	decoded := new(wire.Request)
	got := new(wire.Reply)
	for _, r := range []*wire.Request{ping, transfer(wire.Store, 64), transfer(wire.Retrieve, 64), transfer(wire.Lookup, 64)} {
		f, answer := new(core.Frames), new(core.Frames)
		wire.EncodeRequest(f, r)
		steps := map[string]func(){
			"encoding the request": func() { f.Reset(); wire.EncodeRequest(f, r) },
			"decoding the request": func() { d.Decode(f, decoded) },
			"encoding the reply": func() {
				answer.Reset()
				wire.EncodeReply(answer, f.Part(0), f.Part(1), r.Type, &wire.Reply{OK: true})
			},
			"decoding the reply": func() { wire.DecodeReply(answer, got) },
		}
		for _, name := range []string{"encoding the request", "decoding the request", "encoding the reply", "decoding the reply"} {
			step := steps[name]
			step()
			if n := testing.AllocsPerRun(100, step); n != 0 {
				t.Errorf("%v: %s allocates %v times", r.Type, name, n)
			}
		}
		if decoded.Failure != core.NoFailure {
			t.Errorf("%v: %s", r.Type, wire.Explain(decoded))
		}
	}
}

// Neither do the answers of the protections.
func TestRefusalsAndVerdictsDoNotAllocate(t *testing.T) {
	f, got := new(core.Frames), new(wire.Reply)
	verdict := wire.Reply{OK: true, Ping: wire.PingVerdict{Aware: true, Boot: wire.MaxBoot}}
	uid, store, pingType := []byte{5}, []byte{6}, []byte{0x16}
	for name, encode := range map[string]func(){
		"refusal": func() { wire.EncodeRefusal(f, uid, store, wire.Store, core.FailNotRegistered) },
		"verdict": func() { wire.EncodeReply(f, uid, pingType, wire.Ping, &verdict) },
	} {
		step := func() {
			f.Reset()
			encode()
			wire.DecodeReply(f, got)
		}
		step()
		if n := testing.AllocsPerRun(100, step); n != 0 {
			t.Errorf("a %s allocates %v times", name, n)
		}
	}
}
