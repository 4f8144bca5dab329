package endurance_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
	"vigil/realgpu/hostshm"
)

// Why this file: anybody who can connect can send anything. Each kind of bad
// input has a line below: what is sent, and the word that docs/protocol.md has
// for it. Under the document design it gets no answer, with every protection
// the refusal of its request; under both it is counted, and another client is
// served meanwhile.

// victim is what the bad inputs are aimed at.
type victim struct {
	*server
	bad  *client
	good *client
	m    *memory
	dir  string
}

// registered is the instance of the bad client that has memory, behind whose
// registration its transfers come; stranger is nobody's.
const (
	registered = core.InstanceID(11)
	stranger   = core.InstanceID(12)
)

// badInput is one kind.
type badInput struct {
	name string
	word string // of the refusal
	make func(v *victim) parts
	// bare is a refusal that is the uid and the type alone: no result could be
	// read by every dialect.
	bare bool
	// lost is a message that the transport takes away: no answer in any design.
	lost bool
	// unmatched has no uid that an answer could carry, or no type: nobody could
	// tell what the answer is to. It is counted, and silent in every design.
	unmatched bool
	// answered is a request whose own answer is no, in every design; the word is
	// the server's own, for its log and its figures.
	answered bool
	// after runs when it was refused.
	after func(t *testing.T, v *victim)
}

// with changes one frame of a request that would be good.
func with(r wire.Request, frame int, b string) func(*victim) parts {
	return func(*victim) parts {
		p := encode(r)
		p[frame] = []byte(b)
		return p
	}
}

// keyed changes a piece of a good key.
func keyed(old, new string) func(*victim) parts {
	return func(v *victim) parts {
		p := encode(transferOf(wire.Store, registered, 1, 1, 0))
		if !bytes.Contains(p[2], []byte(old)) {
			v.t.Fatalf("%q is not in the key", old)
		}
		p[2] = bytes.Replace(p[2], []byte(old), []byte(new), 1)
		return p
	}
}

// exported is a register of one tensor, after change.
func exported(change func(v *victim, e *core.Export)) func(*victim) parts {
	return func(v *victim) parts {
		r := v.m.register(stranger)
		r.Exports = r.Exports[:1]
		r.Groups[0].Layers = r.Groups[0].Layers[:1]
		change(v, &r.Exports[0])
		return encode(r)
	}
}

func handle(name string) func(*victim) parts {
	return exported(func(_ *victim, e *core.Export) { e.Handle = []byte(name) })
}

// pickled is a register whose exported memory is a pickle.
func pickled(body func(v *victim) string) func(*victim) parts {
	return func(v *victim) parts {
		p := encode(v.m.register(stranger))
		b := body(v)
		head := []byte{0x91, 0xc8, 0, 0, 1} // an array of one extension of type 1
		binary.BigEndian.PutUint16(head[2:], uint16(len(b)))
		p[3] = append(head, b...)
		return p
	}
}

func fixed(list ...string) func(*victim) parts {
	return func(*victim) (p parts) {
		for _, b := range list {
			p = append(p, []byte(b))
		}
		return p
	}
}

func badInputs() []badInput {
	var (
		ping     = pingOf(registered)
		store    = transferOf(wire.Store, registered, 1, 1, 0)
		retrieve = transferOf(wire.Retrieve, registered, 1, 1, 0)
		unreg    = wire.Request{Type: wire.UnregisterKVCache, Instance: stranger}
		register = wire.Request{Type: wire.RegisterKVCache, Instance: stranger, Model: []byte("m"), WorldSize: 1, Engine: []byte("vllm")}
		deep     = strings.Repeat("\x91", 100_000) + "\x01"
	)
	foreign := func(r wire.Request, id core.InstanceID) func(*victim) parts {
		r.Instance = id
		return func(*victim) parts { return encode(r) }
	}
	blocks := func(list ...uint32) func(*victim) parts {
		r := store
		r.Blocks, r.BlockEnds = list, []int{len(list)}
		return func(*victim) parts { return encode(r) }
	}
	outside := make([]uint32, chunkBlocks)
	for i := range outside {
		outside[i] = 1 << 31
	}
	return []badInput{
		// Counts.
		{name: "a ping of before liveness", word: "payload-count", make: fixed("\x01", "\x16")},
		{name: "a ping with two ids", word: "payload-count", make: fixed("\x01", "\x16", "\x2a", "\x2a")},
		{name: "a store without its event", word: "payload-count", make: func(*victim) parts { return encode(store)[:5] }},
		{name: "a register without groups", word: "payload-count", make: func(*victim) parts { return encode(register)[:8] }},
		{name: "a number of two dialects with the count of neither", word: "unsupported", bare: true, make: fixed("\x01", "\x1c", "\x01", "\x01")},
		// Types of values.
		{name: "a ping of a text", word: "undecodable", make: with(ping, 2, "\xa242")},
		{name: "a ping of a negative id", word: "undecodable", make: with(ping, 2, "\xff")},
		{name: "an id of 64 bits", word: "undecodable", make: with(ping, 2, "\xcf\xff\xff\xff\xff\xff\xff\xff\xff")},
		{name: "an unregister of not a number", word: "undecodable", make: with(unreg, 2, "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00")},
		{name: "a key that is a number", word: "undecodable", make: with(store, 2, "\x05")},
		{name: "a key with nothing in it", word: "undecodable", make: with(store, 2, "\x80")},
		{name: "block ids that are texts", word: "undecodable", make: with(store, 4, "\x91\x91\xa11")},
		{name: "hints that are nil", word: "undecodable", make: with(register, 7, "\xc0")},
		{name: "an engine that nobody knows", word: "undecodable", make: with(register, 6, "\xa6abacus")},
		{name: "bytes behind a value", word: "undecodable", make: with(ping, 2, "\x2a\x2a")},
		{name: "half a value", word: "undecodable", make: with(ping, 2, "\xcf\x12\x34")},
		{name: "an empty frame for an id", word: "undecodable", make: with(ping, 2, "")},
		{name: "a text that is not UTF-8", word: "undecodable", make: with(register, 4, "\xa2\xff\xfe")},
		// Lengths.
		{name: "a model of 4 GiB", word: "too-large", make: with(register, 4, "\xdb\xff\xff\xff\xff")},
		{name: "an event of 4 GiB", word: "too-large", make: with(store, 5, "\xc6\xff\xff\xff\xff")},
		{name: "4 Gi exported tensors", word: "too-large", make: with(register, 3, "\xdd\xff\xff\xff\xff")},
		{name: "4 Gi tokens", word: "too-large", make: keyed("\xa9token_ids\xdc\x01\x00", "\xa9token_ids\xdd\xff\xff\xff\xff")},
		{name: "4 Gi fields of a key", word: "too-large", make: with(store, 2, "\xdf\xff\xff\xff\xff")},
		{name: "4 Gi groups of blocks", word: "too-large", make: with(store, 4, "\xdd\xff\xff\xff\xff")},
		{name: "a uid of 64 KiB", word: "too-large", unmatched: true, make: fixed(strings.Repeat("\x01", 64<<10), "\x16", "\x2a")},
		{name: "a type of 64 KiB", word: "too-large", unmatched: true, make: fixed("\x01", strings.Repeat("\x01", 64<<10), "\x2a")},
		{name: "a message of 20 MiB", word: "too-large", make: with(store, 5, "\xc6\x01\x40\x00\x00"+strings.Repeat("\x00", 20<<20))},
		{name: "17 frames", word: "too-large", bare: true, make: fixed(strings.Split(strings.Repeat("\x01 ", 16)+"\x01", " ")...)},
		// Nesting.
		{name: "lists in lists, 100,000 deep", word: "undecodable", make: with(ping, 2, deep)},
		{name: "an unknown field 100,000 deep", word: "too-large", make: with(register, 7, "\x81\xa1x"+deep)},
		// Values that are out of range.
		{name: "a salt with a path in it", word: "undecodable", make: keyed("\xaacache_salt\xa0", "\xaacache_salt\xa6../../")},
		{name: "a range that begins within a chunk", word: "undecodable", make: keyed("\xa5start\x00", "\xa5start\x07")},
		{name: "a range that ends behind its tokens", word: "undecodable", make: keyed("\xa3end\xcd\x01\x00", "\xa3end\xcd\x02\x00")},
		{name: "more ranks than there can be", word: "too-large", make: func(*victim) parts {
			r := wire.Request{Type: wire.Lookup, Key: store.Key, TPSize: 1 << 40}
			r.Key.Worker = -1
			return encode(r)
		}},
		{name: "block ids out of the memory", word: "bad-blocks", make: blocks(outside...)},
		{name: "fewer blocks than the range has", word: "bad-blocks", make: blocks(0, 1, 2)},
		{name: "no groups of blocks", word: "bad-blocks", make: with(store, 4, "\x90")},
		// Whom they are about.
		{name: "a store of a stranger", word: "not-registered", make: foreign(store, stranger)},
		{name: "a retrieve of a stranger", word: "not-registered", make: foreign(retrieve, stranger)},
		{name: "a commit of a stranger", word: "not-registered", make: foreign(wire.Request{Type: wire.CommitStore, Key: store.Key}, stranger)},
		// Memory.
		{name: "a segment that climbs out of its folder", word: "undecodable", make: handle("/../../etc/passwd")},
		{name: "a segment that is the folder above", word: "undecodable", make: handle("/..")},
		{name: "a segment with NUL in its name", word: "undecodable", make: handle("/vigil-kv\x00_1")},
		{name: "a segment whose name begins with a dot", word: "open-failed", make: handle("/.vigil-kv_1")},
		{name: "a segment that is not there", word: "open-failed", make: handle("/vigil-kv_nobody_1")},
		{name: "a segment that is a link", word: "open-failed", make: func(v *victim) parts {
			link := "/dev/shm/vigil-endurance-link"
			os.Remove(link)
			if err := os.Symlink("/etc/passwd", link); err != nil {
				v.t.Fatal(err)
			}
			return handle("/vigil-endurance-link")(v)
		}, after: func(*testing.T, *victim) { os.Remove("/dev/shm/vigil-endurance-link") }},
		{name: "a segment shorter than its tensors", word: "open-failed", make: func(v *victim) parts {
			short := newMemory(v.t, 2, chunkBlocks, 1024)
			if err := os.Truncate("/dev/shm"+short.Name(), 100); err != nil {
				v.t.Fatal(err)
			}
			return encode(short.register(stranger))
		}},
		{name: "a segment that is cut after its registration", word: "copy-failed", answered: true, make: func(v *victim) parts {
			short := newMemory(v.t, 2, 4*chunkBlocks, 4096)
			if v.bad.ask(short.register(77)); v.status().ServerDriven.Total < 2 {
				v.t.Error("the register of a good segment failed")
			}
			if err := os.Truncate("/dev/shm"+short.Name(), 100); err != nil {
				v.t.Fatal(err)
			}
			return encode(transferOf(wire.Store, 77, 99, 1, 0))
		}, after: func(_ *testing.T, v *victim) { v.bad.ask(wire.Request{Type: wire.UnregisterKVCache, Instance: 77}) }},
		{name: "a device's memory without a device", word: "open-failed", make: exported(func(_ *victim, e *core.Export) {
			e.Kind, e.Handle, e.Device = core.CUDA, make([]byte, 64), []byte("GPU-0")
		})},
		{name: "blocks that overflow their tensor", word: "undecodable", make: exported(func(_ *victim, e *core.Export) { e.Blocks, e.BlockBytes = 1<<32-1, 1<<32-1 })},
		{name: "memory of an unknown extension", word: "undecodable", make: with(register, 3, "\x91\xd4\x63\x00")},
		// Code.
		{name: "a pickle that runs a program", word: "undecodable", make: pickled(func(v *victim) string {
			return "cos\nsystem\n(S'touch " + filepath.Join(v.dir, "ran") + "'\ntR."
		}), after: ranNothing},
		{name: "a pickle that evaluates, protocol 4", word: "undecodable", make: pickled(func(v *victim) string {
			call := "open('" + filepath.Join(v.dir, "ran") + "','w')"
			return "\x80\x04\x8c\x08builtins\x94\x8c\x04eval\x94\x93\x94\x8c" + string(rune(len(call))) + call + "\x94\x85\x94R\x94."
		}), after: ranNothing},
		{name: "a pickle longer than any wrapper", word: "too-large", make: pickled(func(*victim) string { return "\x80\x04" + strings.Repeat("N0", 4096) + "." })},
		// Frames.
		{name: "one frame", word: "short-message", unmatched: true, make: fixed("\x01")},
		{name: "empty frames", word: "unknown-type", unmatched: true, make: fixed("", "", "")},
		{name: "one empty frame", word: "short-message", unmatched: true, make: fixed("")},
		{name: "type 0", word: "unknown-type", bare: true, make: fixed("\x01", "\x00", "\x2a")},
		{name: "type 200", word: "unknown-type", bare: true, make: fixed("\x01", "\xcc\xc8", "\x2a")},
		{name: "a type that is no msgpack", word: "unknown-type", bare: true, make: fixed("\x01", "\xc1", "\x2a")},
		{name: "a type that is a float", word: "unknown-type", bare: true, make: fixed("\x01", "\xca\x41\xb0\x00\x00", "\x2a")},
		{name: "an operation that nobody knows", word: "unsupported", make: fixed("\x01", "\xaevigil.nonsense", "\x2a")},
		{name: "100 frames", word: "too-many-frames", lost: true, make: fixed(strings.Split(strings.Repeat("\x01 ", 99)+"\x01", " ")...)},
	}
}

func ranNothing(t *testing.T, v *victim) {
	if list, _ := os.ReadDir(v.dir); len(list) > 0 {
		t.Errorf("it ran: there is %s", list[0].Name())
	}
}

// served fails unless another client is answered at once.
func (v *victim) served(t *testing.T) {
	t.Helper()
	began := time.Now()
	if r := v.good.ask(pingOf(1)); !r.OK {
		t.Errorf("another client's ping is answered %+v", r)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("another client waits %s", took)
	}
}

func attack(t *testing.T, design string) *victim {
	s := serve(t, "--bind", "tcp://127.0.0.1:0", "--design", design, "--pool-bytes", "1MiB", "--l1-bytes", "16MiB")
	v := &victim{server: s, bad: dial(t, s.bind), good: dial(t, s.bind), m: newMemory(t, 2, 4*chunkBlocks, 1024), dir: t.TempDir()}
	t.Cleanup(func() { v.bad.close() })
	t.Cleanup(v.good.close)
	v.bad.ask(v.m.register(registered))
	v.good.ask(engineOf(1))
	return v
}

// Each kind of bad input is refused as docs/protocol.md says, and somebody else
// is served meanwhile.
func TestBadInputIsRefused(t *testing.T) {
	for _, design := range []string{"document", "hardened"} {
		t.Run(design, func(t *testing.T) {
			v := attack(t, design)
			seen := map[string]bool{}
			for _, b := range badInputs() {
				seen[b.name] = true
				if !t.Run(b.name, func(t *testing.T) { v.refuses(t, &b, design == "hardened") }) {
					v.bad.close() // answers that nobody took must not be the next one's
					v.bad = dial(t, v.bind)
				}
			}
			v.t, v.bad.t, v.good.t = t, t, t
			if len(seen) < 30 {
				t.Errorf("%d kinds", len(seen))
			}
			if !v.Alive() {
				t.Fatal("the server has ended")
			}
			hostshm.Fill(v.m.Bytes(), 5) // what was refused has spoiled nothing
			for _, kind := range []wire.Type{wire.Store, wire.Retrieve} {
				if r := v.bad.ask(transferOf(kind, registered, v.bad.uid+1, 1, 0)); !r.OK && kind == wire.Store {
					t.Errorf("a good %s afterwards: %+v", kind, r)
				}
			}
			if code := v.leave(); code != 0 {
				t.Errorf("the server drained with code %d", code)
			}
		})
	}
}

func (v *victim) refuses(t *testing.T, b *badInput, hardened bool) {
	v.t, v.bad.t, v.good.t = t, t, t
	count := func() uint64 {
		p := v.status()
		switch {
		case b.lost:
			return p.Dropped[b.word]
		case b.answered:
			return p.Memory.Failed
		}
		return p.Refusals[b.word]
	}
	p := b.make(v)
	before := count()
	v.bad.send(p)
	v.served(t)
	for begun := time.Now(); count() == before; time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			t.Errorf("it is not counted as %s: %+v", b.word, v.status())
			break
		}
	}
	if b.answered {
		if r, ok := v.bad.receive(10 * time.Second); !ok || r.OK {
			t.Errorf("answered %v, %+v", ok, r)
		}
	} else if hardened && !b.lost && !b.unmatched {
		list, err := v.bad.soc.RecvMessageBytes(0)
		if err != nil {
			t.Fatalf("no answer: %v", err)
		}
		last := string(list[len(list)-1])
		switch {
		case b.bare && len(list) > 2:
			t.Errorf("answered %q, where only the two first frames are readable by everybody", list)
		case !b.bare && !strings.HasSuffix(last, "vigil.refused:"+b.word):
			t.Errorf("answered %q, which does not end in the word %s", list, b.word)
		case !b.bare && (!bytes.Equal(list[0], p[0]) || !bytes.Equal(list[1], p[1])):
			t.Errorf("answered %q, which does not echo its request", list)
		}
	}
	// Whatever else came for it would come before this.
	v.bad.ask(wire.Request{Type: wire.Noop})
	v.served(t)
	if b.after != nil {
		b.after(t, v)
	}
}

// A flood of registers from one peer, each refused, holds nobody else up; no
// trace of it is left.
func TestAFloodOfRegisters(t *testing.T) {
	n := of(2_000, 10_000)
	for _, design := range []string{"document", "hardened"} {
		for _, flood := range []struct {
			name string
			make func(v *victim, i int) wire.Request
		}{
			{"unknown segments", func(v *victim, i int) wire.Request {
				r := v.m.register(core.InstanceID(1000 + i))
				for e := range r.Exports {
					r.Exports[e].Handle = []byte("/vigil-kv_nobody_1")
				}
				return r
			}},
			{"the same segment under as many ids", func(v *victim, i int) wire.Request { return v.m.register(core.InstanceID(1000 + i)) }},
			{"one id, another shape each time", func(v *victim, i int) wire.Request {
				r := v.m.register(1000)
				r.Exports[0].Bytes -= uint64(i % 2 * 1024)
				r.Exports[0].Blocks -= uint32(i % 2)
				return r
			}},
		} {
			t.Run(design+"/"+flood.name, func(t *testing.T) {
				v := attack(t, design)
				before := v.settle(t, holdings{}, 0)
				slowest, answers := time.Duration(0), 0
				for i := range n {
					r := flood.make(v, i)
					r.UIDNumber = uint64(i + 1)
					v.bad.send(encode(r))
					if i%100 == 0 {
						began := time.Now()
						v.served(t)
						slowest = max(slowest, time.Since(began))
					}
				}
				eventually(t, "all are taken in", 60*time.Second, func() bool {
					p := v.status()
					return p.Transport.Received >= uint64(n) && p.Memory.Opening == 0
				})
				v.served(t)
				v.bad.uid = 1 << 40
				v.bad.send(encode(wire.Request{Type: wire.Noop, UIDNumber: 1 << 40}))
				for {
					r, ok := v.bad.receive(20 * time.Second)
					if !ok {
						t.Fatal("the flooding client is served no more")
					}
					if r.UIDNumber == 1<<40 {
						break
					}
					answers++
				}
				p := v.status()
				t.Logf("%d registers: %d answers before the next request's, refusals %v, %d contexts, another's ping at most %s", n, answers, p.Refusals, p.ServerDriven.Total, slowest)
				// What was served is given back, by another client: the flooding
				// one still has answers to come.
				for i := range n {
					if i == 0 || p.ServerDriven.Total > 2 {
						v.good.ask(wire.Request{Type: wire.UnregisterKVCache, Instance: core.InstanceID(1000 + i)})
					}
				}
				eventually(t, "the flooding client's last register is over", 20*time.Second, func() bool {
					if p := v.status(); p.ServerDriven.Total <= 1 {
						return true
					}
					v.good.ask(wire.Request{Type: wire.UnregisterKVCache, Instance: 1000})
					return false
				})
				after := v.settle(t, before, 20*time.Second)
				if after.mappings > before.mappings || after.descriptors > before.descriptors+2 || after.goroutines > before.goroutines {
					t.Errorf("left in the server: %s; before: %s", after, before)
				}
			})
		}
	}
}

// raw is a connection below ZeroMQ.
func (v *victim) raw(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(v.bind, "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(15 * time.Second))
	return c
}

// greeted speaks the handshake of a DEALER without security (ZMTP 3.0).
func (v *victim) greeted(t *testing.T) net.Conn {
	t.Helper()
	c := v.raw(t)
	greeting := make([]byte, 64)
	greeting[0], greeting[9], greeting[10] = 0xff, 0x7f, 3
	copy(greeting[12:], "NULL")
	ready := "\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"
	c.Write(greeting)
	if _, err := io.ReadFull(c, make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	c.Write(append([]byte{4, byte(len(ready))}, ready...))
	head := make([]byte, 2)
	if _, err := io.ReadFull(c, head); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, head[1])); err != nil {
		t.Fatal(err)
	}
	return c
}

// closed waits until the server has ended a connection.
func closed(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, c); err != nil && os.IsTimeout(err) {
		t.Error("the connection stays open")
	}
}

// What comes below the messages ends its own connection at the most, and leaves
// no descriptor.
func TestBadBytesBelowMessages(t *testing.T) {
	for _, design := range []string{"document", "hardened"} {
		t.Run(design, func(t *testing.T) {
			v := attack(t, design)
			before := v.settle(t, holdings{}, 0)
			for _, b := range []struct {
				name string
				do   func(t *testing.T)
			}{
				{"a browser", func(t *testing.T) {
					c := v.raw(t)
					io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"+strings.Repeat("x", 100))
					closed(t, c)
				}},
				{"noise", func(t *testing.T) {
					for n := range 20 {
						c := v.raw(t)
						noise, random := make([]byte, 4096), rand.New(rand.NewPCG(uint64(n), 1))
						for i := range noise {
							noise[i] = byte(random.Uint32())
						}
						c.Write(noise)
						c.Close()
					}
				}},
				{"silence", func(t *testing.T) { closed(t, v.raw(t)) }}, // the handshake's limit
				{"half a greeting", func(t *testing.T) {
					c := v.raw(t)
					c.Write([]byte{0xff, 0, 0})
					c.Close()
				}},
				{"half a message", func(t *testing.T) {
					c := v.greeted(t)
					c.Write([]byte{1, 1, 0x05, 1, 1, 0x16}) // two parts with more to come
					v.served(t)
					c.Close()
				}},
				{"half a frame", func(t *testing.T) {
					c := v.greeted(t)
					c.Write([]byte{0, 200, 1, 2, 3})
					v.served(t)
					c.Close()
				}},
				{"a frame of 4 GiB", func(t *testing.T) {
					c := v.greeted(t)
					c.Write([]byte{2, 0, 0, 0, 1, 0, 0, 0, 0})
					closed(t, c)
				}},
				{"a frame of 2^63 bytes", func(t *testing.T) {
					c := v.greeted(t)
					c.Write([]byte{2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
					closed(t, c)
				}},
				{"a command that nobody knows", func(t *testing.T) {
					c := v.greeted(t)
					c.Write([]byte{4, 8, 7, 'N', 'O', 'N', 'S', 'E', 'N', 'S'})
					v.served(t)
					c.Close()
				}},
			} {
				if !full && (b.name == "silence" || b.name == "a browser" && design == "document") {
					continue // each takes as long as a handshake may
				}
				t.Run(b.name, func(t *testing.T) {
					v.t, v.good.t = t, t
					b.do(t)
					v.served(t)
				})
			}
			v.t, v.good.t = t, t
			after := v.settle(t, before, 20*time.Second)
			if after.descriptors > before.descriptors || after.goroutines > before.goroutines {
				t.Errorf("left in the server: %s; before: %s", after, before)
			}
		})
	}
}
