package wire_test

import (
	"testing"

	"vigil/core"
	"vigil/core/wire"
)

// The numbers 1 to 24 are frozen; this table stands here a second time so that
// a slip in the first one shows.
func TestFrozenNumbers(t *testing.T) {
	frozen := []struct {
		name     string
		payloads int
		pool     wire.Pool
	}{
		{"REGISTER_KV_CACHE", 7, wire.PoolSync}, {"UNREGISTER_KV_CACHE", 1, wire.PoolSync},
		{"REGISTER_Q_CACHE", 7, wire.PoolSync}, {"UNREGISTER_Q_CACHE", 1, wire.PoolSync},
		{"STORE_Q", 4, wire.PoolAffinity}, {"STORE", 4, wire.PoolAffinity}, {"RETRIEVE", 5, wire.PoolAffinity},
		{"LOOKUP", 2, wire.PoolNormal}, {"QUERY_PREFETCH_STATUS", 1, wire.PoolNormal},
		{"WAIT_PREFETCH_STATUS", 2, wire.PoolNormal}, {"QUERY_PREFETCH_LOOKUP_HITS", 1, wire.PoolNormal},
		{"FREE_LOOKUP_LOCKS", 2, wire.PoolNormal}, {"END_SESSION", 1, wire.PoolNormal},
		{"REGISTER_KV_CACHE_ENGINE_DRIVEN_CONTEXT", 1, wire.PoolSync},
		{"UNREGISTER_KV_CACHE_ENGINE_DRIVEN_CONTEXT", 1, wire.PoolSync},
		{"PREPARE_STORE", 2, wire.PoolAffinity}, {"COMMIT_STORE", 3, wire.PoolAffinity},
		{"PREPARE_RETRIEVE", 2, wire.PoolAffinity}, {"COMMIT_RETRIEVE", 2, wire.PoolAffinity},
		{"CLEAR", 0, wire.PoolNormal}, {"GET_CHUNK_SIZE", 0, wire.PoolSync}, {"PING", 1, wire.PoolNormal},
		{"REPORT_BLOCK_ALLOCATION", 3, wire.PoolNormal}, {"NOOP", 0, wire.PoolSync},
	}
	for i, want := range frozen {
		number := wire.Type(i + 1)
		payloads, ok := wire.PayloadsOf(number)
		if number.String() != want.name || payloads != want.payloads || !ok || wire.PoolOf(number) != want.pool {
			t.Errorf("%d is %v with %d payloads in %v, want %s with %d in %v",
				number, number, payloads, wire.PoolOf(number), want.name, want.payloads, want.pool)
		}
	}
	for number := 0; number <= 255; number++ {
		n := wire.Type(number)
		known := number >= 1 && number <= 24 || number == 33 || number == 34 || number == 40 || n == wire.Settle
		if (wire.PoolOf(n) != wire.PoolNone) != known {
			t.Errorf("%d (%v): pool %v", number, n, wire.PoolOf(n))
		}
		if n.String() == "" {
			t.Errorf("%d has no name", number)
		}
	}
}

// From 25 on the number and the count decide together (PROTOCOL, section 0).
func TestDisputedNumbers(t *testing.T) {
	served := map[[2]int]wire.Type{
		{33, 6}: wire.RegisterRope, {25, 6}: wire.RegisterRope,
		{34, 1}: wire.UnregisterRope, {26, 1}: wire.UnregisterRope,
		{40, 0}: wire.GetExperimental, {32, 0}: wire.GetExperimental,
	}
	old := map[int]bool{25: true, 26: true, 32: true}
	payload := map[wire.Type][]string{
		wire.RegisterRope: {"2a", "90", "cc 80", "c3", "90", "91 90"}, wire.UnregisterRope: {"2a"},
	}
	d := wire.Decoder{ChunkTokens: 256}
	r := new(wire.Request)
	for number := 25; number <= 40; number++ {
		for count := range 14 {
			want, ok := served[[2]int{number, count}]
			f := new(core.Frames)
			f.Append([]byte{0})
			f.Append([]byte{byte(number)})
			for i := range count {
				part := []byte{0x90}
				if ok {
					part = message(t, payload[want][i]).Part(0)
				}
				f.Append(part)
			}
			d.Decode(f, r)
			switch {
			case ok && (r.Failure != core.NoFailure || r.Type != want || r.OldNumber != old[number]):
				t.Errorf("%d with %d payloads: %v as %v (other dialect %v), want %v", number, count, r.Failure, r.Type, r.OldNumber, want)
			case !ok && (r.Failure != core.FailUnsupported || r.Type != wire.Type(number)):
				t.Errorf("%d with %d payloads: %v as %v, want unsupported", number, count, r.Failure, r.Type)
			}
		}
	}
}

// The pairings of old and new in one place: the count of payloads is what
// tells them apart, never a value (design document, section 7).
func TestPingOfAnotherVersionFailsItsCount(t *testing.T) {
	oldServer, newServer := wire.Decoder{Legacy: true}, wire.Decoder{}
	var oldPing, newPing core.Frames
	wire.EncodeRequest(&oldPing, &wire.Request{Type: wire.Ping, Legacy: true})
	wire.EncodeRequest(&newPing, &wire.Request{Type: wire.Ping, Instance: 42})
	cases := []struct {
		name   string
		server wire.Decoder
		ping   *core.Frames
		fail   core.Failure
		line   string
	}{
		{"old to old", oldServer, &oldPing, core.NoFailure, ""},
		{"new to new", newServer, &newPing, core.NoFailure, ""},
		{"old to new", newServer, &oldPing, core.FailPayloadCount, "PING: 0 payload frames where 1 is expected: client and server versions differ"},
		{"new to old", oldServer, &newPing, core.FailPayloadCount, "PING: 1 payload frame where 0 are expected: client and server versions differ"},
	}
	for _, c := range cases {
		var r wire.Request
		c.server.Decode(c.ping, &r)
		if r.Failure != c.fail || wire.Explain(&r) != c.line {
			t.Errorf("%s: got %v, %q", c.name, r.Failure, wire.Explain(&r))
		}
		if c.name == "old to old" && (!r.NoInstance || !r.Legacy) {
			t.Errorf("an old ping carries no id, so it tracks nobody")
		}
	}
}

// Named operations keep their name and their payloads' bytes for whoever
// serves them.
func TestNamedOperations(t *testing.T) {
	f := message(t, "05", "aa 76 69 67 69 6c 2e 74 65 73 74", "2a")
	r := decode(t, f)
	if r.Type != wire.Named || string(r.Name) != "vigil.test" || wire.PoolOf(r.Type) != wire.PoolNone {
		t.Errorf("decoded %v %q", r.Type, r.Name)
	}
	var out core.Frames
	wire.EncodeRequest(&out, &wire.Request{UIDNumber: 5, Type: wire.Named, Name: r.Name})
	out.Append([]byte{42})
	same(t, &out, f)
	var reply wire.Reply
	if fail := wire.DecodeReply(message(t, "05", "aa 76 69 67 69 6c 2e 74 65 73 74", "c3"), &reply); fail != core.NoFailure ||
		reply.Type != wire.Named || string(reply.Name) != "vigil.test" || len(reply.Raw) != 1 {
		t.Errorf("decoded reply %+v, %v", reply, fail)
	}
}

// vigil.settle is the one that the core serves itself. A refusal of it is a nil,
// because an empty list would say that nothing is under way.
func TestSettleIsNamed(t *testing.T) {
	f := message(t, "05", "ac 76 69 67 69 6c 2e 73 65 74 74 6c 65", "2a", "09")
	r := decode(t, f)
	if r.Type != wire.Settle || r.Instance != 42 || r.Before != 9 || wire.PoolOf(r.Type) != wire.PoolSync || r.Type.String() != "vigil.settle" {
		t.Errorf("decoded %v of %v before %d: %v", r.Type, r.Instance, r.Before, r.Failure)
	}
	var out core.Frames
	wire.EncodeRequest(&out, &wire.Request{UIDNumber: 5, Type: wire.Settle, Instance: 42, Before: 9})
	same(t, &out, f)
	var reply wire.Reply
	for _, c := range []struct {
		frame string
		nil   bool
		uids  int
	}{{"92 03 07", false, 2}, {"90", false, 0}, {"c0", true, 0}} {
		if fail := wire.DecodeReply(message(t, "05", "ac 76 69 67 69 6c 2e 73 65 74 74 6c 65", c.frame), &reply); fail != core.NoFailure ||
			reply.Type != wire.Settle || reply.Nil != c.nil || len(reply.Indices) != c.uids {
			t.Errorf("%s: %+v, %v", c.frame, reply, fail)
		}
	}
	var refused core.Frames
	wire.EncodeRefusal(&refused, out.Part(0), out.Part(1), wire.Settle, core.FailStopping)
	if fail := wire.DecodeReply(&refused, &reply); fail != core.NoFailure || !reply.Nil || reply.Refusal != core.FailStopping {
		t.Errorf("refused: %+v, %v", reply, fail)
	}
	for _, bad := range [][]string{{"05", "ac 76 69 67 69 6c 2e 73 65 74 74 6c 65", "2a"}, {"05", "ac 76 69 67 69 6c 2e 73 65 74 74 6c 65", "2a", "ff"}} {
		d := wire.Decoder{ChunkTokens: 256}
		got := new(wire.Request)
		if d.Decode(message(t, bad...), got); got.Failure == core.NoFailure {
			t.Errorf("%v is accepted", bad)
		}
	}
}
