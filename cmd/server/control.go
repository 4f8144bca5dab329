package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"vigil/core"
	"vigil/core/loop"
	"vigil/core/zmq"
)

// Why this file: scenarios with real processes need an engine that does what a
// story says when it says so, and that tells what it was told. docs/real.md
// has the lines.
//
//	server worker control --connect ENDPOINT ...
//
// Standard input has one command a line:
//
//	register                          announce the memory
//	store REQUEST PROMPT TOKENS       submit a store of so many tokens of a prompt
//	retrieve REQUEST PROMPT TOKENS    the same, and compare every byte that comes
//	reallocate                        take other memory and register that
//	starve on|off                     the heartbeat alone gets no processor
//	stick on|off                      the engine's thread asks nothing and takes no answer
//	shutdown                          leave in order
//
// Its end ends the process at once. Standard output has one JSON object a
// line; "at" is the host's clock, nanoseconds since 1970.

type controlConfig struct {
	connect, mode, eventLog         string
	timeScale                       int
	interval, timeout               time.Duration
	instance                        uint64
	blocks, blockBytes, blockTokens int
	core                            core.WorkerConfig
	design, protect, unprotect      string
	own                             memoryWish
}

func newControl(s *streams) *cobra.Command {
	c := &controlConfig{core: core.DefaultWorkerConfig()}
	cmd := &cobra.Command{
		Use:    "control",
		Hidden: true,
		Short:  "A worker whose engine does what its standard input says (for scenarios with real processes)",
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.settle(); err != nil {
				return err
			}
			return c.run(os.Stdin, s.out)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.connect, "connect", "tcp://127.0.0.1:5555", "the server's `ENDPOINT`")
	f.IntVar(&c.timeScale, "time-scale", 1, "the worker's clock runs this many times as fast")
	f.StringVar(&c.design, "design", "hardened", "hardened or document")
	f.StringVar(&c.protect, "protect", "", "switch these repairs on")
	f.StringVar(&c.unprotect, "unprotect", "", "switch these repairs off")
	f.StringVar(&c.mode, "mode", "server-driven", "server-driven or engine-driven")
	f.StringVar(&c.core.Model, "model", c.core.Model, "the model's name")
	f.StringVar(&c.core.Salt, "salt", "", "keeps this worker's chunks apart")
	f.IntVar(&c.core.WorldSize, "world-size", 1, "ranks of the engine")
	f.IntVar(&c.core.Rank, "rank", 0, "this worker's rank")
	f.IntVar(&c.core.ChunkTokens, "chunk-tokens", core.DefaultChunkTokens, "tokens in one chunk")
	f.IntVar(&c.blockTokens, "block-tokens", 16, "tokens in one KV block")
	f.IntVar(&c.blocks, "blocks", 64, "KV blocks of its memory")
	f.IntVar(&c.blockBytes, "block-bytes", 4096, "bytes of one KV block")
	f.BoolVar(&c.core.Blend, "blend", false, "register rope state too")
	f.BoolVar(&c.core.Prober, "prober", false, "register nothing, only ping")
	f.BoolVar(&c.core.Legacy, "legacy", false, "a client of before liveness")
	f.Uint64Var(&c.instance, "instance", 0, "use this id; 0 draws one")
	f.DurationVar(&c.interval, "interval", core.DefaultInterval, "between two pings")
	f.DurationVar(&c.timeout, "timeout", core.DefaultTimeout, "of each request")
	f.StringVar(&c.own.backend, "backend", backendHostSHM, "hostshm, cuda or auto")
	f.StringVar(&c.own.library, "cuda-library", "", "the driver's library, for cuda")
	f.IntVar(&c.own.device, "device", 0, "the device, for cuda")
	f.StringVar(&c.eventLog, "event-log", "", "write what the adapter does into this file")
	return cmd
}

func (c *controlConfig) settle() error {
	d := designChoice{preset: c.design}
	for _, x := range d.settings() {
		text := map[string]string{"design": c.design, "protect": c.protect, "unprotect": c.unprotect}[x.name]
		if err := x.take(text); err != nil {
			return fmt.Errorf("--%s: %w", x.name, err)
		}
	}
	p, err := d.protections()
	if err != nil {
		return err
	}
	c.core.Protections, c.core.Interval, c.core.Timeout = p, c.interval, c.timeout
	c.core.Instance = core.InstanceID(c.instance)
	switch c.mode {
	case "server-driven":
		c.core.Mode = core.ModeServerDriven
	case "engine-driven":
		c.core.Mode = core.ModeEngineDriven
	default:
		return fmt.Errorf("--mode: %w", unknownName(c.mode, []string{"server-driven", "engine-driven"}))
	}
	switch {
	case c.timeScale < 1 || c.timeScale > loop.MaxTimeScale:
		return fmt.Errorf("--time-scale must be from 1 to %d; got %d", loop.MaxTimeScale, c.timeScale)
	case c.blocks < 1 || c.blockBytes < 8 || c.blockTokens < 1 || c.blocks > 1<<24 || c.blockBytes > 1<<28:
		return errors.New("--blocks and --block-tokens must be at least 1, --block-bytes at least 8")
	case c.timeScale > 1 && zmq.Exposed(c.connect):
		return fmt.Errorf("--time-scale is for tests and refused with %s, which is another host's", c.connect)
	}
	return c.core.Validate()
}

// controlled is an engine under control.
type controlled struct {
	config *controlConfig
	worker *loop.Worker
	memory *ownMemory
	end    context.Context

	mu      sync.Mutex
	out     *json.Encoder
	pending map[core.RequestID]*controlledRequest
	stuck   chan struct{} // closed when the engine's thread goes on; nil where it does
	next    int           // where the next request's blocks begin
}

type controlledRequest struct {
	prompt       uint64
	first, count int
	store, held  bool // held: it has ended, and its blocks are not free yet
}

// controlEvent is one line of standard output.
type controlEvent struct {
	Event    string `json:"event"`
	At       int64  `json:"at"`
	Instance string `json:"instance,omitempty"`
	Request  uint64 `json:"request,omitempty"`
	Store    bool   `json:"store,omitempty"`
	OK       bool   `json:"ok,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	Blocks   int    `json:"blocks,omitempty"`
	Block    int    `json:"block,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

func (e *controlled) tell(v controlEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tellLocked(v)
}

func (e *controlled) tellLocked(v controlEvent) {
	v.At, v.Instance = time.Now().UnixNano(), strconv.FormatUint(uint64(e.worker.Instance()), 10)
	e.out.Encode(v)
}

func (c *controlConfig) run(in io.Reader, out io.Writer) error {
	e := &controlled{config: c, out: json.NewEncoder(out), pending: map[core.RequestID]*controlledRequest{}}
	var err error
	var stop context.CancelFunc
	e.end, stop = context.WithCancel(context.Background())
	defer stop()
	if !c.core.Prober {
		if e.memory, err = c.own.make(int64(c.blocks) * int64(c.blockBytes)); err != nil {
			return err
		}
		defer func() { e.memory.Close() }()
	}
	options := loop.WorkerOptions{Config: c.core, TimeScale: c.timeScale}
	if c.eventLog != "" {
		if options.Events, err = loop.CreateEventLog(c.eventLog); err != nil {
			return err
		}
	}
	if e.worker, err = loop.NewWorker(options); err != nil {
		return err
	}
	dealer, err := zmq.Dial(zmq.Options{Connect: c.connect, Now: e.worker.Now}, e.worker)
	if err != nil {
		return err
	}
	defer dealer.Close()
	e.worker.Start(dealer)
	e.tell(controlEvent{Event: "started"})
	var collecting sync.WaitGroup
	collecting.Go(e.collect)
	lines := make(chan string)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(in)
		for s.Scan() {
			select {
			case lines <- s.Text():
			case <-e.end.Done():
				return
			}
		}
	}()
	for {
		select {
		case line, more := <-lines:
			if !more {
				e.worker.Abort()
				<-e.worker.Done()
				return nil
			}
			if err := e.obey(line); err != nil {
				e.tell(controlEvent{Event: "error", Reason: err.Error()})
			}
		case <-e.worker.Done():
			collecting.Wait() // whoever is told the last ends is told before the process goes
			return nil
		}
	}
}

// obey does what one line says.
func (e *controlled) obey(line string) error {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	switch words[0] {
	case "register":
		go e.register()
		return nil
	case "store", "retrieve":
		if len(words) != 4 {
			return fmt.Errorf("%s needs a request, a prompt and tokens", words[0])
		}
		var n [3]uint64
		for i := range n {
			var err error
			if n[i], err = strconv.ParseUint(words[i+1], 10, 32); err != nil {
				return fmt.Errorf("%s: %q is no number", words[0], words[i+1])
			}
		}
		return e.submit(words[0] == "store", core.RequestID(n[0]), n[1], int(n[2]))
	case "starve":
		if len(words) != 2 || words[1] != "on" && words[1] != "off" {
			return errors.New("starve is on or off")
		}
		e.worker.StarveHeartbeat(words[1] == "on")
		return nil
	case "stick":
		if len(words) != 2 || words[1] != "on" && words[1] != "off" {
			return errors.New("stick is on or off")
		}
		e.stick(words[1] == "on")
		return nil
	case "reallocate":
		if e.memory == nil {
			return errors.New("a prober has no memory")
		}
		return e.reallocate()
	case "shutdown":
		e.tell(controlEvent{Event: "leaving"})
		go e.worker.Shutdown(context.Background())
		return nil
	}
	return fmt.Errorf("there is no command %q", words[0])
}

func (e *controlled) register() {
	c := e.config
	var exports []core.Export
	if e.memory != nil {
		exports = append(exports, e.memory.Export(core.Export{
			Bytes: uint64(c.blocks) * uint64(c.blockBytes), Blocks: uint32(c.blocks), BlockBytes: uint32(c.blockBytes),
			DType: []byte("uint8"), Shape: []int64{int64(c.blocks), int64(c.blockTokens), 1, int64(max(c.blockBytes/c.blockTokens, 1))},
		}))
	}
	groups := []core.Group{{TokensPerBlock: int64(c.blockTokens), SlidingWindow: -1, Physical: 1, Layers: []int64{0}}}
	err := e.worker.Register(e.end, exports, groups)
	v := controlEvent{Event: "registered", OK: err == nil}
	if err != nil {
		v.Reason = err.Error()
	}
	e.tell(v)
	if err != nil { // an engine fails to start then
		e.worker.Abort()
	}
}

// reallocate takes other memory, as an engine does that is reconfigured, and
// registers it.
func (e *controlled) reallocate() error {
	other, err := e.config.own.make(int64(e.config.blocks) * int64(e.config.blockBytes))
	if err != nil {
		return err
	}
	e.mu.Lock()
	old := e.memory
	e.memory, e.next = other, 0
	clear(e.pending) // what is under way is of the memory that went
	e.mu.Unlock()
	if err := old.Close(); err != nil {
		return err
	}
	go e.register()
	return nil
}

// stick holds the engine's thread, or lets it go on.
func (e *controlled) stick(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if on && e.stuck == nil {
		e.stuck = make(chan struct{})
	} else if !on && e.stuck != nil {
		close(e.stuck)
		e.stuck = nil
	}
}

// tokensOf is the beginning of a prompt. Two prompts share their first chunk,
// so that prefixes are met.
func (e *controlled) tokensOf(prompt uint64, n int) []uint32 {
	tokens := make([]uint32, n)
	for i := range tokens {
		family := prompt + 1<<20
		if i < e.config.core.ChunkTokens {
			family = prompt / 2
		}
		tokens[i] = uint32(mixed(family<<32|uint64(i)) % 150_000)
	}
	return tokens
}

func mixed(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// seedOf is what this worker's shard of a prompt's block is filled with: it
// depends on the whole prefix, the model, the salt and the rank.
func (e *controlled) seedOf(prompt uint64, block int) uint64 {
	c := &e.config.core
	family := prompt + 1<<20
	if (block+1)*e.config.blockTokens <= c.ChunkTokens {
		family = prompt / 2
	}
	var d core.Digest
	d.Bytes([]byte(c.Model + "\x00" + c.Salt))
	d.Uint(uint64(c.Rank)<<32 | uint64(c.WorldSize))
	d.Uint(family<<32 | uint64(block))
	return uint64(d)
}

// submit asks for one transfer. An engine without free blocks waits instead,
// as a scheduler does.
func (e *controlled) submit(store bool, id core.RequestID, prompt uint64, tokens int) error {
	c := e.config
	count := tokens / c.blockTokens
	if e.memory == nil || count < 1 || count > c.blocks {
		return fmt.Errorf("a request of %d tokens does not fit this worker's memory", tokens)
	}
	e.mu.Lock()
	first, ok := e.room(count)
	if !ok {
		e.tellLocked(controlEvent{Event: "busy", Request: uint64(id), Store: store})
		e.mu.Unlock()
		return nil
	}
	e.next = first + count
	e.pending[id] = &controlledRequest{prompt: prompt, first: first, count: count, store: store}
	blocks := make([]uint32, count)
	for i := range blocks {
		blocks[i] = uint32(first + i)
		var err error
		if at := (first + i) * c.blockBytes; store {
			err = e.memory.fill(at, c.blockBytes, e.seedOf(prompt, i))
		} else {
			err = e.memory.blank(at, c.blockBytes)
		}
		if err != nil {
			delete(e.pending, id)
			e.mu.Unlock()
			return err
		}
	}
	e.tellLocked(controlEvent{Event: "submitted", Request: uint64(id), Store: store})
	e.mu.Unlock()
	t := loop.Transfer{Request: id, Tokens: e.tokensOf(prompt, tokens), End: tokens, Blocks: blocks}
	if store {
		return e.worker.Store(e.end, t)
	}
	return e.worker.Retrieve(e.end, t)
}

// room finds blocks that no pending request uses, as the simulated engine does:
// past what is held, and waiting for the others.
func (e *controlled) room(count int) (first int, ok bool) {
	first = e.next
	for range len(e.pending) + 1 {
		if first+count > e.config.blocks {
			first = 0
		}
		var in *controlledRequest
		for _, p := range e.pending {
			if first < p.first+p.count && p.first < first+count && (in == nil || !p.held) {
				in = p
			}
		}
		switch {
		case in == nil:
			return first, true
		case !in.held:
			return 0, false
		}
		first = in.first + in.count
	}
	return 0, false
}

// collect asks for what ended, until the worker has.
func (e *controlled) collect() {
	for {
		e.worker.Wait(e.end)
		e.mu.Lock()
		stuck := e.stuck
		e.mu.Unlock()
		if stuck != nil {
			select {
			case <-stuck:
			case <-e.worker.Done():
			}
		}
		list, err := e.worker.Finished(e.end)
		for i := range list {
			e.finished(&list[i])
		}
		if err != nil {
			return
		}
		select {
		case <-e.worker.Done():
			// What the shutdown said of the rest comes from one more question.
			if list, _ := e.worker.Finished(e.end); len(list) > 0 {
				for i := range list {
					e.finished(&list[i])
				}
			}
			return
		default:
		}
	}
}

func (e *controlled) finished(f *loop.Finished) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tellLocked(controlEvent{Event: "told", Request: uint64(f.Request), Store: f.Store, Outcome: f.Outcome.String()})
	p := e.pending[f.Request]
	if p == nil {
		return
	}
	if f.Outcome == core.OutcomeHeld {
		p.held = true // the server may still touch its blocks
		return
	}
	delete(e.pending, f.Request)
	if f.Store || f.Outcome != core.OutcomeLoaded || e.config.core.Mode != core.ModeServerDriven {
		return
	}
	invalid := map[uint32]bool{}
	for _, b := range f.Blocks {
		invalid[b] = true
	}
	for i := range p.count {
		if invalid[uint32(p.first+i)] {
			continue
		}
		n := e.config.blockBytes
		at, err := e.memory.mismatch((p.first+i)*n, n, e.seedOf(p.prompt, i))
		if err != nil {
			e.tellLocked(controlEvent{Event: "error", Reason: err.Error()})
			return
		}
		if at >= 0 {
			e.tellLocked(controlEvent{Event: "blocks-wrong", Request: uint64(f.Request), Block: p.first + i})
			return
		}
	}
	e.tellLocked(controlEvent{Event: "blocks-right", Request: uint64(f.Request), Blocks: p.count})
}
