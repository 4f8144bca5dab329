package server

import (
	"bytes"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"vigil/core"
	"vigil/core/wire"
)

// restored gives a server read from a snapshot a world of its own.
func (w *world) restored() *world {
	f := w.fork()
	f.s = new(Server)
	if err := f.s.ReadSnapshot(w.s.AppendSnapshot(nil)); err != nil {
		w.t.Fatal(err)
	}
	return f
}

func TestASnapshotGoesOnAsTheOriginal(t *testing.T) {
	w := busyWorld(t)
	r := w.restored()
	if r.s.Fingerprint(w.now) != w.s.Fingerprint(w.now) {
		t.Fatal("what was restored folds differently")
	}
	if again := r.s.AppendSnapshot(nil); !bytes.Equal(again, w.s.AppendSnapshot(nil)) {
		t.Fatal("the snapshot of what was restored differs from the snapshot")
	}
	if got, want := r.goOn(), w.goOn(); got != want {
		t.Fatal("what was restored goes on differently")
	}
}

// At any point of any history, snapshot and original are one.
func TestASnapshotAtAnyPointOfAnything(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cfg := testConfig()
		cfg.NormalSlots = rapid.IntRange(1, 2).Draw(r, "normal")
		cfg.AffinityLanes = rapid.IntRange(1, 3).Draw(r, "lanes")
		cfg.L1Bytes = uint64(rapid.IntRange(1, 6).Draw(r, "room")) * testChunkBytes
		cfg.PoolBytes = uint64(rapid.IntRange(0, 3).Draw(r, "pool")) * testChunkBytes
		cfg.Protections.StampOnArrival = rapid.Bool().Draw(r, "arrival")
		w := newWorld(t, cfg)
		w.holdOpens, w.holdCloses, w.holdCopies = true, true, true
		p := &player{world: w, r: r, judge: newJudge()}
		for range rapid.IntRange(1, 100).Draw(r, "before") {
			p.act()
		}
		snapshot := w.s.AppendSnapshot(nil)
		twin := new(Server)
		if err := twin.ReadSnapshot(snapshot); err != nil {
			r.Fatal(err)
		}
		if err := consistent(twin); err != nil {
			r.Fatal(err)
		}
		if !bytes.Equal(twin.AppendSnapshot(nil), snapshot) || twin.Fingerprint(w.now) != w.s.Fingerprint(w.now) {
			r.Fatal("what was restored differs")
		}
		if got := w.s.Clone().AppendSnapshot(nil); !bytes.Equal(got, snapshot) {
			r.Fatal("a clone's snapshot differs")
		}
		// The same rest for both: whatever the original is fed, the twin is too.
		var out core.Effects
		w.spy = func(now core.Time, in *core.Input) {
			out.Reset()
			twin.Step(now, in, &out)
		}
		for range rapid.IntRange(1, 40).Draw(r, "after") {
			p.act()
			if twin.Fingerprint(w.now) != w.s.Fingerprint(w.now) || !bytes.Equal(twin.AppendSnapshot(nil), w.s.AppendSnapshot(nil)) {
				r.Fatal("what was restored went another way")
			}
		}
	})
}

// A request survives being written down, as far as the core reads it.
func TestARequestWrittenDown(t *testing.T) {
	w := newWorld(t, testConfig())
	key := keyOf(3, 2, "r")
	for _, r := range []wire.Request{
		{Type: wire.Ping, Instance: 7, UIDNumber: 1 << 40},
		{Type: wire.Ping, NoInstance: true},
		registerRequest(5, testModel),
		engineRequest(9),
		transferRequest(wire.Store, 5, 2, 3),
		transferRequest(wire.Retrieve, 5, 2, 3),
		{Type: wire.Lookup, Key: key, TPSize: 2},
		{Type: wire.WaitPrefetchStatus, RequestID: []byte("x"), Timeout: time.Minute},
		{Type: wire.RegisterRope, Instance: 2, HeadSize: 64, Neox: true},
		{Type: wire.Named, Name: []byte("vigil.hello")},
	} {
		var frames core.Frames
		var came, read, kept wire.Request
		wire.EncodeRequest(&frames, &r)
		w.decoder.Decode(&frames, &came)
		written := AppendRequest(nil, &came)
		if err := ReadRequest(written, &read); err != nil {
			t.Fatal(err)
		}
		copyRequest(&kept, &came) // what the core reads
		var again wire.Request
		copyRequest(&again, &read)
		if fmt.Sprintf("%+v", kept) != fmt.Sprintf("%+v", again) {
			t.Errorf("%d:\n%+v\n%+v", r.Type, kept, again)
		}
		if r.Type == wire.Ping && len(written) > 40 {
			t.Errorf("a ping takes %d bytes", len(written))
		}
		for n := range written {
			if ReadRequest(written[:n], new(wire.Request)) == nil {
				t.Errorf("%d: %d of %d bytes read as a whole request", r.Type, n, len(written))
			}
		}
	}
}

// Damage is an error and never a panic, and takes no memory to speak of.
func TestADamagedSnapshot(t *testing.T) {
	whole := busyWorld(t).s.AppendSnapshot(nil)
	for n := 0; n < len(whole); n += 1 + n/200 {
		if new(Server).ReadSnapshot(whole[:n]) == nil {
			t.Fatalf("the first %d of %d bytes are a whole snapshot", n, len(whole))
		}
	}
	if err := new(Server).ReadSnapshot(append(bytes.Clone(whole), 0)); err == nil || !strings.Contains(err.Error(), "behind its end") {
		t.Errorf("a byte too many: %v", err)
	}
	if err := new(Server).ReadSnapshot([]byte{99}); err == nil || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("another version: %v", err)
	}
	random := rand.New(rand.NewSource(1))
	for range 20000 {
		damaged := bytes.Clone(whole)
		for range 1 + random.Intn(3) {
			damaged[random.Intn(len(damaged))] = byte(random.Intn(256))
		}
		s := new(Server)
		if s.ReadSnapshot(damaged) == nil {
			_ = s.Fingerprint(0)
			_ = s.AppendSnapshot(nil)
		}
	}
}

// What a snapshot knows of the state is written by hand. This fails when
// somebody adds a field: write it and read it, raise snapshotVersion where a
// recording could have been made with the old one, and put the new shape here.
func TestASnapshotKnowsEveryField(t *testing.T) {
	var lines []string
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(x reflect.Type) {
		switch x.Kind() {
		case reflect.Slice, reflect.Pointer, reflect.Array:
			walk(x.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[x] || x == reflect.TypeFor[wire.Reply]() || x == reflect.TypeFor[core.Protections]() {
			return
		}
		seen[x] = true
		for i := range x.NumField() {
			f := x.Field(i)
			if x == reflect.TypeFor[wire.Request]() && !f.IsExported() {
				continue
			}
			lines = append(lines, x.Name()+"."+f.Name+" "+f.Type.String())
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[Server]())
	var d core.Digest
	d.Bytes([]byte(strings.Join(lines, "\n")))
	const known = 0xcd01a13a036ba931
	if uint64(d) != known {
		t.Errorf("the state has another shape (%#x) than the snapshot knows; its fields:\n%s", uint64(d), strings.Join(lines, "\n"))
	}
}

func BenchmarkSnapshot(b *testing.B) {
	w := newWorld(b, testConfig())
	for id := core.InstanceID(1); id <= 10000; id++ {
		w.register(id)
	}
	b.Run("clone", func(b *testing.B) {
		for b.Loop() {
			w.s.Clone()
		}
	})
	var snapshot []byte
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			snapshot = w.s.AppendSnapshot(snapshot[:0])
		}
		b.ReportMetric(float64(len(snapshot))/10000, "bytes/instance")
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if err := new(Server).ReadSnapshot(snapshot); err != nil {
				b.Fatal(err)
			}
		}
	})
}
