package wire_test

import (
	"bytes"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"vigil/core"
	"vigil/core/wire"
)

// refused is the result frame of each served request's refusal, a second time
// and in hex, so that a slip in the encoder shows.
var refused = map[wire.Type]string{
	wire.RegisterKVCache: "c0", wire.UnregisterKVCache: "c0", wire.RegisterQCache: "c0", wire.UnregisterQCache: "c0",
	wire.StoreQ: "92 c4 00 c2", wire.Store: "92 c4 00 c2", wire.Retrieve: "92 c4 00 c2",
	wire.Lookup: "c0", wire.QueryPrefetchStatus: "c0", wire.WaitPrefetchStatus: "c0", wire.QueryPrefetchLookupHits: "c0",
	wire.FreeLookupLocks: "c0", wire.EndSession: "c0",
	wire.RegisterEngineDriven:   "82 a8 73686d5f6e616d65 a0 a9 706f6f6c5f73697a65 00",
	wire.UnregisterEngineDriven: "c0",
	wire.PrepareStore:           "81 a7 636f6e74657874 82 a5 736c6f7473 90 ad 6368756e6b5f696e6469636573 90",
	wire.CommitStore:            "c2",
	wire.PrepareRetrieve:        "83 a7 73756363657373 c2 a4 64617461 c4 00 a7 636f6e74657874 80",
	wire.CommitRetrieve:         "c2", wire.Clear: "c0", wire.GetChunkSize: "00", wire.Ping: "c2",
	wire.ReportBlockAllocation: "c0", wire.Noop: "a0", wire.RegisterRope: "c0", wire.UnregisterRope: "c0",
	wire.GetExperimental: "90", wire.Named: "c0", wire.Settle: "c0",
}

func typeFrame(t wire.Type) []byte {
	switch t {
	case wire.Named:
		return append([]byte{0xa9}, "vigil.ask"...)
	case wire.Settle:
		return append([]byte{0xac}, "vigil.settle"...)
	}
	return []byte{byte(t)}
}

// Every refusal means no to an old client, which reads the result frame alone,
// and names its reason to a new one.
func TestRefusalsSurviveBothClients(t *testing.T) {
	got, old := new(wire.Reply), new(wire.Reply)
	for number := range 256 {
		kind := wire.Type(number)
		hexed, ok := refused[kind]
		if served := wire.PoolOf(kind) != wire.PoolNone; served && !ok {
			t.Errorf("%v: no refusal in the table", kind)
		}
		if !ok {
			continue
		}
		for why := core.FailPayloadCount; why.String() != "unknown"; why++ {
			f := new(core.Frames)
			wire.EncodeRefusal(f, []byte{5}, typeFrame(kind), kind, why)
			if f.Len() != 4 || f.Part(0)[0] != 5 || !bytes.Equal(f.Part(1), typeFrame(kind)) {
				t.Fatalf("%v: %d frames, or the first two do not echo", kind, f.Len())
			}
			if want := message(t, hexed).Part(0); !bytes.Equal(f.Part(2), want) {
				t.Fatalf("%v: result %x, want %x", kind, f.Part(2), want)
			}
			var reason string
			if err := msgpack.Unmarshal(f.Part(3), &reason); err != nil || reason != "vigil.refused:"+why.String() {
				t.Fatalf("%v: the library reads %q, %v", kind, reason, err)
			}
			if failure := wire.DecodeReply(f, got); failure != core.NoFailure || got.Refusal != why || got.UIDNumber != 5 {
				t.Fatalf("%v: %v, refused for %v, want %v", kind, failure, got.Refusal, why)
			}
			if got.OK || got.Inline && kind == wire.PrepareStore || len(got.Slots)+len(got.Data)+len(got.Text) != 0 || got.Int != 0 {
				t.Fatalf("%v: a refusal that says something: %+v", kind, got)
			}
			f.Bytes, f.Ends = f.Bytes[:f.Ends[2]], f.Ends[:3] // what an old client sees
			if failure := wire.DecodeReply(f, old); failure != core.NoFailure || old.Refusal != core.NoFailure || old.OK {
				t.Fatalf("%v: an old client reads %v %+v", kind, failure, old)
			}
		}
	}
}

// No form of a request that we do not serve is read by every dialect, so its
// refusal is the bare echo, which every client resolves to None.
func TestARefusalOfWhatIsNotServedIsBare(t *testing.T) {
	for _, kind := range []wire.Type{wire.NoType, 25, 27, 31, 39, 41, 200} {
		f := new(core.Frames)
		wire.EncodeRefusal(f, []byte{5}, []byte{byte(kind)}, kind, core.FailUnsupported)
		if f.Len() != 2 {
			t.Errorf("%d: %d frames", kind, f.Len())
		}
	}
}

// Only our own mark is a refusal; whatever else a newer peer puts behind a
// result is its own affair.
func TestOnlyTheMarkIsARefusal(t *testing.T) {
	mark := []byte("vigil.refused:")
	text := func(s string) []byte {
		b, _ := msgpack.Marshal(s)
		return b
	}
	for name, c := range map[string]struct {
		frame []byte
		want  core.Failure
	}{
		"known":                {text("vigil.refused:lost"), core.FailLost},
		"no word":              {text("vigil.refused:"), core.FailUnknownVerdict},
		"none":                 {text("vigil.refused:none"), core.FailUnknownVerdict},
		"a newer word":         {text("vigil.refused:moonlight"), core.FailUnknownVerdict},
		"a long word":          {text("vigil.refused:" + string(bytes.Repeat([]byte("a"), 200))), core.FailUnknownVerdict},
		"over every bound":     {text("vigil.refused:" + string(bytes.Repeat([]byte("a"), 2000))), core.NoFailure},
		"another mark":         {text("vigil.refusal:lost"), core.NoFailure},
		"half the mark":        {text("vigil.ref"), core.NoFailure},
		"bytes":                {append([]byte{0xc4, byte(len(mark) + 4)}, "vigil.refused:lost"...), core.NoFailure},
		"something behind it":  {append(text("vigil.refused:lost"), 0), core.NoFailure},
		"cut off":              {text("vigil.refused:lost")[:10], core.NoFailure},
		"nothing":              {nil, core.NoFailure},
		"no msgpack":           {[]byte{0xc1}, core.NoFailure},
		"an integer":           {[]byte{7}, core.NoFailure},
		"a map with a mark in": {append([]byte{0x81, 0}, text("vigil.refused:lost")...), core.NoFailure},
	} {
		f := message(t, "05", "06", "92 c4 00 c2")
		f.Append(c.frame)
		f.Append([]byte{0xc1}) // and whatever follows
		var r wire.Reply
		if failure := wire.DecodeReply(f, &r); failure != core.NoFailure || r.Refusal != c.want {
			t.Errorf("%s: %v, refused for %v, want %v", name, failure, r.Refusal, c.want)
		}
	}
}

// A refusal does not stick to the next reply that is decoded into the same
// place, and neither does a verdict.
func TestNothingSticksBetweenReplies(t *testing.T) {
	var r wire.Reply
	f := new(core.Frames)
	wire.EncodeRefusal(f, []byte{1}, []byte{6}, wire.Store, core.FailNotRegistered)
	wire.DecodeReply(f, &r)
	wire.DecodeReply(message(t, "02", "16", "0f"), &r)
	if r.Refusal != core.NoFailure || r.Ping != (wire.PingVerdict{Aware: true, Registered: true, Boot: 1}) {
		t.Fatalf("%+v", r)
	}
	wire.DecodeReply(message(t, "02", "16", "c3"), &r)
	if r.Ping != (wire.PingVerdict{}) {
		t.Fatalf("%+v", r)
	}
}

// The answers to a ping, byte for byte: what is not plain true is an integer
// that no bool() calls false.
func TestPingVerdicts(t *testing.T) {
	for hexed, want := range map[string]wire.PingVerdict{
		"c3":                  {},
		"03":                  {Aware: true},
		"07":                  {Aware: true, Registered: true},
		"09":                  {Boot: 1},
		"cd 0123":             {Aware: true, Boot: 0x24},
		"cf 7fffffffffffffff": {Aware: true, Registered: true, Boot: wire.MaxBoot},
	} {
		f := new(core.Frames)
		wire.EncodeReply(f, []byte{5}, []byte{0x16}, wire.Ping, &wire.Reply{OK: true, Ping: want})
		if wanted := message(t, hexed).Part(0); !bytes.Equal(f.Part(2), wanted) {
			t.Errorf("%+v is %x, want %x", want, f.Part(2), wanted)
		}
		var r wire.Reply
		if failure := wire.DecodeReply(f, &r); failure != core.NoFailure || !r.OK || r.Ping != want || r.Refusal != core.NoFailure {
			t.Errorf("%s: %v %+v, want %+v", hexed, failure, r, want)
		}
	}
}

// What an answer cannot say is not said: no registration without awareness, no
// token past its bound, nothing beside a no.
func TestPingVerdictsSayNoMoreThanTheyCan(t *testing.T) {
	for name, c := range map[string]struct {
		reply wire.Reply
		hexed string
	}{
		"registered without aware": {wire.Reply{OK: true, Ping: wire.PingVerdict{Registered: true}}, "c3"},
		"registered beside a boot": {wire.Reply{OK: true, Ping: wire.PingVerdict{Registered: true, Boot: 1}}, "09"},
		"a token over its bound":   {wire.Reply{OK: true, Ping: wire.PingVerdict{Boot: wire.MaxBoot + 2}}, "09"},
		"a token of nothing":       {wire.Reply{OK: true, Ping: wire.PingVerdict{Boot: wire.MaxBoot + 1}}, "c3"},
		"no":                       {wire.Reply{Ping: wire.PingVerdict{Aware: true, Boot: 9}}, "c2"},
	} {
		f := new(core.Frames)
		wire.EncodeReply(f, []byte{5}, []byte{0x16}, wire.Ping, &c.reply)
		if want := message(t, c.hexed).Part(0); !bytes.Equal(f.Part(2), want) {
			t.Errorf("%s: %x, want %x", name, f.Part(2), want)
		}
	}
	f := new(core.Frames)
	wire.EncodeReply(f, []byte{5}, []byte{0x13}, wire.CommitRetrieve, &wire.Reply{OK: true, Ping: wire.PingVerdict{Aware: true}})
	if !bytes.Equal(f.Part(2), []byte{0xc3}) {
		t.Errorf("the verdict of a ping is in another reply: %x", f.Part(2))
	}
}

// An answer outside the layout is judged by its truth, as any other, and says
// nothing beyond it.
func TestAnswersOutsideTheLayoutSayNothing(t *testing.T) {
	for hexed, ok := range map[string]bool{
		"01": true, "00": false, "02": true, "06": true, "ff": true, "d3 8000000000000001": true, "cf 8000000000000003": true,
		"cf ffffffffffffffff": true, "cb 4008000000000000": true, "a1 33": true, "91 03": true, "c0": false, "c2": false,
	} {
		var r wire.Reply
		if failure := wire.DecodeReply(message(t, "05", "16", hexed), &r); failure != core.NoFailure || r.OK != ok || r.Ping != (wire.PingVerdict{}) {
			t.Errorf("%s: %v %t %+v", hexed, failure, r.OK, r.Ping)
		}
	}
}
