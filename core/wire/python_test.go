package wire_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

// What an independent client writes (examples/python, nothing of ours) is read
// as it was meant, and written by us in the same bytes.
func TestTheIndependentClientIsUnderstood(t *testing.T) {
	said := independentMessages(t)
	const model = "Qwen/Qwen3-8B"
	tokens := make([]uint32, 512)
	for i := range tokens {
		tokens[i] = 1000 + uint32(i)
	}
	key := func(k *wire.Key) bool {
		return string(k.Model) == model && k.WorldSize == 2 && k.Worker == 1 && len(k.Tokens) == 512 && k.Tokens[511] == 1511 &&
			k.Start == 256 && k.End == 512 && string(k.RequestID) == "request-1" && string(k.Salt) == "tenant" && len(k.Chunks) == 1
	}
	look := func(k *wire.Key) bool {
		return k.Worker == -1 && k.Start == 0 && k.End == 512 && len(k.Salt) == 0 && len(k.Chunks) == 2
	}
	mine := func(r *wire.Request) bool { return r.Instance == someID }
	of := func(r *wire.Request) bool { return string(r.RequestID) == "request-1" }
	plain := func(*wire.Request) bool { return true }
	cases := []struct {
		name string
		t    wire.Type
		uid  uint64
		is   func(*wire.Request) bool
	}{
		{"chunk-size", wire.GetChunkSize, 0, plain},
		{"experimental", wire.GetExperimental, 1, func(r *wire.Request) bool { return !r.OldNumber }},
		{"experimental-other", wire.GetExperimental, 1, func(r *wire.Request) bool { return r.OldNumber }},
		{"register", wire.RegisterKVCache, 2, func(r *wire.Request) bool {
			want := core.Export{
				Kind: core.HostSHM, Handle: []byte("/lmcache_kv_1_1"), Device: []byte("cpu"), Bytes: 524288,
				Blocks: 64, BlockBytes: 2 * 16 * 2 * 64 * 2, DType: []byte("bfloat16"), Shape: []int64{2, 64, 16, 2, 64},
			}
			return mine(r) && string(r.Model) == model && r.WorldSize == 2 && string(r.Engine) == "vllm" &&
				string(r.Hints.KVLayout) == "NHD" && len(r.Groups) == 1 && r.Groups[0].TokensPerBlock == 16 &&
				len(r.Exports) == 2 && r.Exports[1].Equal(&want)
		}},
		{"ping", wire.Ping, 127, func(r *wire.Request) bool { return mine(r) && !r.NoInstance }},
		{"probe", wire.Ping, 128, func(r *wire.Request) bool { return r.NoInstance }},
		{"store", wire.Store, 3, func(r *wire.Request) bool {
			return mine(r) && key(&r.Key) && len(r.Blocks) == 4 && r.Blocks[3] == 70000 && len(r.BlockEnds) == 1 && string(r.Event) == "event"
		}},
		{"retrieve", wire.Retrieve, 4, func(r *wire.Request) bool {
			return mine(r) && key(&r.Key) && len(r.BlockEnds) == 2 && r.BlockEnds[0] == 2 && len(r.Event) == 0 && r.Skip == 16
		}},
		{"lookup", wire.Lookup, 5, func(r *wire.Request) bool { return look(&r.Key) && r.TPSize == 2 }},
		{"query", wire.QueryPrefetchStatus, 6, of},
		{"wait", wire.WaitPrefetchStatus, 7, func(r *wire.Request) bool { return of(r) && r.Timeout == 2500*time.Millisecond }},
		{"hits", wire.QueryPrefetchLookupHits, 8, of},
		{"free", wire.FreeLookupLocks, 9, func(r *wire.Request) bool { return look(&r.Key) && r.TPSize == 2 }},
		{"end", wire.EndSession, 10, of},
		{"engine", wire.RegisterEngineDriven, 11, func(r *wire.Request) bool {
			return mine(r) && string(r.Model) == model && r.WorldSize == 2 && r.BlockSize == 16 && r.NumLayers == 2 &&
				r.HiddenDim == 128 && string(r.DType) == "float16" && r.UseMLA
		}},
		{"prepare-store", wire.PrepareStore, 12, func(r *wire.Request) bool { return mine(r) && key(&r.Key) }},
		{"commit-store", wire.CommitStore, 13, func(r *wire.Request) bool {
			return mine(r) && key(&r.Key) && string(r.Data) == "\x80\x04any bytes"
		}},
		{"prepare-retrieve", wire.PrepareRetrieve, 14, func(r *wire.Request) bool { return mine(r) && key(&r.Key) }},
		{"commit-retrieve", wire.CommitRetrieve, 15, func(r *wire.Request) bool { return mine(r) && key(&r.Key) }},
		{"unregister-engine", wire.UnregisterEngineDriven, 16, mine},
		{"unregister", wire.UnregisterKVCache, 17, mine},
		{"clear", wire.Clear, 18, plain},
		{"noop", wire.Noop, 65536, plain},
		{"report", wire.ReportBlockAllocation, 19, func(r *wire.Request) bool { return mine(r) && r.Records == 2 }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := said[c.name]
			if f == nil {
				t.Fatal("the client did not write it")
			}
			r := decode(t, f)
			if r.Type != c.t || r.UIDNumber != c.uid || !c.is(r) {
				t.Fatalf("read as %+v", r)
			}
			if c.name == "report" {
				return // of its records only the count is kept
			}
			out := new(core.Frames)
			wire.EncodeRequest(out, r)
			if c.name == "register" { // exports are ours in another form; the pickled one is checked by itself
				pickled := wire.AppendPickledExports(nil, r.Exports)
				if !bytes.Equal(pickled, f.Part(3)) {
					t.Errorf("exports:\n got % x\nwant % x", pickled, f.Part(3))
				}
				for i := range f.Len() {
					if i != 3 && !bytes.Equal(out.Part(i), f.Part(i)) {
						t.Errorf("part %d:\n got % x\nwant % x", i, out.Part(i), f.Part(i))
					}
				}
				return
			}
			same(t, out, f)
		})
	}
	t.Run("old-ping", func(t *testing.T) {
		r := new(wire.Request)
		(&wire.Decoder{ChunkTokens: 256}).Decode(said["old-ping"], r)
		if r.Type != wire.Ping || r.Failure != core.FailPayloadCount {
			t.Errorf("a worker of before liveness: %v, %v", r.Type, r.Failure)
		}
	})
}

// independentMessages runs the client's writer.
func independentMessages(t *testing.T) map[string]*core.Frames {
	const python = "/usr/bin/python3" // Debian's own, which its packages are for
	if out, err := exec.Command(python, "-c", "import msgpack").CombinedOutput(); err != nil {
		t.Skipf("needs %s with msgpack: apt-get install python3-msgpack (%v: %s)", python, err, lastLine(out))
	}
	out, err := exec.Command(python, "../../examples/python/emit_frames.py").Output()
	if err != nil {
		t.Fatalf("emit_frames.py: %v", err)
	}
	said := make(map[string]*core.Frames)
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 1 {
			said[fields[0]] = message(t, fields[1:]...)
		}
	}
	return said
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}
