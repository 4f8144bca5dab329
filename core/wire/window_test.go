package wire_test

import (
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// The answer to a register says the window, and an old client, which reads the
// result alone, sees what it always saw.
func TestARegisterSaysTheWindow(t *testing.T) {
	for kind, result := range map[wire.Type]string{
		wire.RegisterKVCache:      "c0",
		wire.RegisterEngineDriven: "82 a8 73686d5f6e616d65 a2 2f70 a9 706f6f6c5f73697a65 09",
	} {
		f := new(core.Frames)
		reply := wire.Reply{Window: 120 * time.Second, Nil: true}
		if kind == wire.RegisterEngineDriven {
			reply.Nil, reply.ShmName, reply.Pool = false, []byte("/p"), 9
		}
		wire.EncodeReply(f, []byte{5}, []byte{byte(kind)}, kind, &reply)
		same(t, f, message(t, "05", string("0123456789abcdef"[byte(kind)>>4])+string("0123456789abcdef"[byte(kind)&15]), result, "b3 76696769 6c2e7769 6e646f77 3a313230 303030"))
		var got wire.Reply
		if fail := wire.DecodeReply(f, &got); fail != core.NoFailure || got.Window != 120*time.Second || got.Refusal != core.NoFailure || got.Pool != reply.Pool || got.Nil != reply.Nil {
			t.Errorf("%v: %+v, %v", kind, got, fail)
		}
		f.Bytes, f.Ends = f.Bytes[:f.Ends[2]], f.Ends[:3]
		if fail := wire.DecodeReply(f, &got); fail != core.NoFailure || got.Window != 0 || got.Pool != reply.Pool {
			t.Errorf("%v without the frame: %+v, %v", kind, got, fail)
		}
	}
	var bare core.Frames
	wire.EncodeReply(&bare, []byte{5}, []byte{1}, wire.RegisterKVCache, &wire.Reply{Nil: true})
	if bare.Len() != 2 {
		t.Errorf("a register without a window has %d frames", bare.Len())
	}
}

// Whatever else stands in that place is ignored.
func TestWhatIsNoWindowSaysNothing(t *testing.T) {
	for _, text := range []string{"vigil.window:", "vigil.window:29999", "vigil.window:-1", "vigil.window:1e9", "vigil.window:9999999999999", "vigil.window:999999999999", "window:120000"} {
		f := message(t, "05", "01", "c0")
		f.Append(append([]byte{0xa0 | byte(len(text))}, text...))
		var got wire.Reply
		if fail := wire.DecodeReply(f, &got); fail != core.NoFailure || got.Window != 0 || got.Refusal != core.NoFailure {
			t.Errorf("%s: %+v, %v", text, got, fail)
		}
	}
}
