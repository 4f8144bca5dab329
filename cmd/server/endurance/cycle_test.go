package endurance_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/loop"
	"vigil/core/wire"
	"vigil/core/zmq"
	"vigil/realgpu/hostshm"
)

// Why this file: the parts of the program, put together in this process, where
// the runtime says by name what is left of them.

// A server that starts, serves and stops leaves no goroutine, no descriptor and
// no mapping, however often.
func TestACycleLeavesNothing(t *testing.T) {
	cycles := of(5, 50)
	m := newMemory(t, 2, 4*chunkBlocks, 1024)
	hostshm.Fill(m.Bytes(), 3)
	once := func(n int) {
		cfg := core.DefaultServerConfig()
		cfg.PoolBytes = 0
		var memory *hostshm.Memory
		s, err := loop.NewServer(loop.ServerOptions{Config: cfg, Memory: func(slots loop.Slots, ended func(core.Input)) (core.Memory, error) {
			var err error
			memory, err = hostshm.New(hostshm.Options{Slots: slots, Done: ended})
			return memory, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := zmq.Listen(zmq.Options{Bind: []string{"ipc://" + filepath.Join(t.TempDir(), "s")}, Now: s.Now}, s)
		if err != nil {
			t.Fatal(err)
		}
		s.Start(r)
		c := dial(t, r.Endpoints()[0])
		c.ask(m.register(9))
		for _, kind := range []wire.Type{wire.Store, wire.Retrieve} {
			c.uid++
			c.send(encode(transferOf(kind, 9, c.uid, 1, 0)))
			if reply, ok := c.receive(20 * time.Second); !ok || reply.Refusal != core.NoFailure {
				t.Fatalf("%s: %v %+v", kind, ok, reply)
			}
		}
		if n%2 == 0 { // the others are still registered at the end
			c.ask(wire.Request{Type: wire.UnregisterKVCache, Instance: 9})
		}
		c.close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if ended, err := s.Shutdown(ctx); err != nil || ended.Contexts != 0 {
			t.Fatalf("shutdown: %v %+v", err, ended)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if err := memory.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		<-s.Done()
	}
	once(0)
	have := func() (h holdings) {
		runtime.GC()
		list, _ := os.ReadDir("/proc/self/fd")
		maps, _ := os.ReadFile("/proc/self/maps")
		return holdings{strings.Count(string(maps), "/dev/shm/vigil-kv"), len(list), runtime.NumGoroutine()}
	}
	before := have()
	for n := range cycles {
		once(n)
	}
	var after holdings
	for range 200 {
		if after = have(); after == before {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("%d cycles; before: %s; after: %s", cycles, before, after)
	if after.mappings > before.mappings || after.descriptors > before.descriptors || after.goroutines > before.goroutines {
		var b strings.Builder
		pprof.Lookup("goroutine").WriteTo(&b, 1)
		t.Errorf("left behind: %s; before: %s\n%s", after, before, b.String())
	}
}
