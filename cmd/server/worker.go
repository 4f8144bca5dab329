package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"vigil/core"
	"vigil/core/zmq"
	"vigil/realgpu/hostshm"
)

// Why this file: server worker, an engine without a model. It is for trying a
// server out, for testing it with real processes, and for loading it.

type workerConfig struct {
	connect, model, salt, mode, keyFile, eventLog string

	rank, world                      int
	blocks, blockBytes, layers       int
	blockTokens, chunkTokens         int
	prompts, promptChunks, inFlight  int
	load, timeScale, actor           int
	interval, timeout, every, length time.Duration
	stop                             time.Duration
	warmup                           time.Duration
	seed, id                         uint64
	idle, everySet, anew             bool
	fresh                            string
	design                           designChoice
	memory                           memoryWish

	core core.WorkerConfig // but for what the server is asked
	keys zmq.Curve
}

func (c *workerConfig) settings() *settings {
	s := &settings{}
	s.add(
		&setting{name: "connect", initial: "tcp://127.0.0.1:5555", usage: "the server: tcp://HOST:PORT or ipc://PATH", take: takeText(&c.connect)},
		&setting{name: "model", initial: "demo", usage: "the model's name; workers of one model, rank and seed share what they store", take: takeText(&c.model)},
		&setting{name: "salt", usage: "keep what is stored apart from that of other salts", take: takeText(&c.salt)},
		&setting{name: "rank", initial: "0", usage: "this worker's rank", take: takeInt(&c.rank, 0, 1<<16)},
		&setting{name: "world", initial: "1", usage: "ranks in all", take: takeInt(&c.world, 1, 1<<16)},
		&setting{name: "mode", initial: "server-driven", usage: "who copies: server-driven (the server, out of this worker's memory) or engine-driven (this worker, through the server's pool)", take: takeOneOf(&c.mode, "server-driven", "engine-driven")},
		&setting{name: "blocks", initial: "512", usage: "KV blocks of this worker's memory", take: takeInt(&c.blocks, 1, 1<<24)},
		&setting{name: "block-bytes", initial: "4096", usage: "bytes of a block in one layer; a multiple of 4 x block-tokens", take: takeInt(&c.blockBytes, 4, 1<<28)},
		&setting{name: "block-tokens", initial: "16", usage: "tokens of a block", take: takeInt(&c.blockTokens, 1, 1<<16)},
		&setting{name: "layers", initial: "2", usage: "layers, each a tensor", take: takeInt(&c.layers, 1, core.MaxExports)},
		&setting{name: "chunk-tokens", initial: "0", usage: "tokens of a chunk; 0 asks the server", take: takeInt(&c.chunkTokens, 0, core.MaxChunkTokens)},
		&setting{name: "interval", initial: "10s", usage: "between two pings, and the reply deadline of each", take: takeSpan(&c.interval, time.Millisecond)},
		&setting{name: "request-timeout", initial: "300s", usage: "of every synchronous request", take: takeSpan(&c.timeout, time.Millisecond)},
		&setting{name: "stop-seconds", initial: "30", usage: "the longest that a way out may take; a server that is gone answers no goodbye", take: takeSeconds(&c.stop, "stop")},
		&setting{name: "every", initial: "1s", usage: "between two requests; with --load the default is as fast as they end", take: takeSpan(&c.every, 0)},
		&setting{name: "for", initial: "0", usage: "leave after this time; 0 stays until SIGTERM", take: takeSpan(&c.length, 0)},
		&setting{name: "warmup", initial: "0", usage: "between the registration and the first request", take: takeSpan(&c.warmup, 0)},
		&setting{name: "prompts", initial: "16", usage: "how many different prompts", take: takeInt(&c.prompts, 1, 1<<20)},
		&setting{name: "prompt-chunks", initial: "2", usage: "chunks of a prompt", take: takeInt(&c.promptChunks, 1, 1<<16)},
		&setting{name: "seed", initial: "1", usage: "what the prompts are made from", take: takeUint(&c.seed, 1<<63)},
		&setting{name: "fresh", initial: "auto", usage: "true: each store is of a prompt that nobody stored before; auto does so with --load", take: takeOneOf(&c.fresh, "auto", "true", "false")},
		&setting{name: "in-flight", initial: "1", usage: "requests at once", take: takeInt(&c.inFlight, 1, 1024)},
		&setting{name: "load", initial: "0", usage: "so many workers in this process, and a line of figures a second instead of one for each request", take: takeInt(&c.load, 0, 10_000)},
		&setting{name: "idle", initial: "false", isBool: true, usage: "register and send nothing but pings", take: takeBool(&c.idle)},
	)
	s.add(c.memory.settings()...)
	s.add(c.design.settings()...)
	s.add(
		&setting{name: "curve-key-file", usage: "the keys for a server that wants them", take: takeText(&c.keyFile)},
		&setting{name: "event-log", usage: "write what happens into this file, which must not be there yet", take: takeText(&c.eventLog)},
		&setting{name: "actor", initial: "2", usage: "who the event log's records are of: 2 is the first worker", take: takeInt(&c.actor, int(core.FirstWorker), 1<<20)},
		&setting{name: "time-scale", initial: "1", usage: "for tests only: this worker's clock runs so many times as fast", take: takeScale(&c.timeScale)},
		&setting{name: "id", initial: "0", usage: "for tests only: the instance id, instead of a random one", take: takeUint(&c.id, uint64(core.MaxInstanceID))},
	)
	return s
}

func (c *workerConfig) settle() error {
	var errs []error
	p, err := c.design.protections()
	if err != nil {
		errs = append(errs, err)
	}
	k := core.DefaultWorkerConfig()
	k.Interval, k.Timeout, k.Protections = c.interval, c.timeout, p
	k.Model, k.Salt, k.WorldSize, k.Rank, k.Instance = c.model, c.salt, c.world, c.rank, core.InstanceID(c.id)
	if c.mode == "engine-driven" {
		k.Mode = core.ModeEngineDriven
	}
	if err := k.Validate(); err != nil {
		errs = append(errs, err)
	}
	if c.model == "" {
		errs = append(errs, errors.New("model must have a name"))
	}
	if c.blockBytes%(4*c.blockTokens) != 0 {
		errs = append(errs, fmt.Errorf("block-bytes must be a multiple of 4 x block-tokens (%d): keys and values of 2 bytes each; got %d", 4*c.blockTokens, c.blockBytes))
	}
	c.anew = c.fresh == "true" || c.fresh == "auto" && c.load > 0
	if c.load > 0 {
		if !c.everySet {
			c.every = 0
		}
		if c.id != 0 || c.eventLog != "" {
			errs = append(errs, errors.New("id and event-log are for one worker; leave load away"))
		}
	}
	if c.keyFile != "" {
		if c.keys, err = readKeyFile(c.keyFile, false); err != nil {
			errs = append(errs, err)
		}
	}
	c.core = k
	return errors.Join(errs...)
}

// chunked completes the configuration with the server's chunk size.
func (c *workerConfig) chunked(tokens int) error {
	c.core.ChunkTokens = tokens
	if err := c.core.Validate(); err != nil {
		return err
	}
	if tokens%c.blockTokens != 0 {
		return fmt.Errorf("block-tokens must divide the chunk of %d tokens; got %d", tokens, c.blockTokens)
	}
	if need := c.inFlight * c.blocksPerPrompt(); need > c.blocks {
		return fmt.Errorf("blocks must hold in-flight (%d) prompts of prompt-chunks (%d) chunks, %d blocks; got %d", c.inFlight, c.promptChunks, need, c.blocks)
	}
	return nil
}

func (c *workerConfig) blocksPerPrompt() int {
	return c.promptChunks * c.core.ChunkTokens / c.blockTokens
}

// real is how long a span of the worker's clock is.
func (c *workerConfig) real(d time.Duration) time.Duration { return d / time.Duration(c.timeScale) }

func newWorker(s *streams) *cobra.Command {
	c := &workerConfig{}
	list := c.settings()
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run a worker that stores and retrieves a pattern and verifies every byte",
		Long: `Run a worker: it registers memory with a server, stores and retrieves
prompts whose blocks hold a pattern, verifies every byte that a retrieve
delivered, and prints a JSON object a line (docs/server.md has the list).

Its memory is on a device where there is one (--backend says otherwise), else
it is shared memory of the host. Server and worker need the same.

SIGTERM or SIGINT: it leaves in order, exit code 0. A second one, or
--stop-seconds, ends it at once; exit code 3 if the server did not say that it
let go, after a line that names what it may still hold. SIGKILL: it leaves its
memory behind, as a real worker does; the server, or the next start, removes
the segment. Exit code 4: bytes were wrong. 5: the registration failed.

Every flag is also an environment variable and a key of the --config file, as
with server run.`,
		Example: `  server worker
  server worker --mode engine-driven --every 100ms
  server worker --load 64 --in-flight 4 --for 30s`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			resolved := list.resolve(cmd)
			_, fromEnvironment := os.LookupEnv(environmentName("every"))
			c.everySet = cmd.Flags().Changed("every") || fromEnvironment
			if err := errors.Join(resolved, c.settle()); err != nil {
				return err
			}
			return runWorkers(cmd.Context(), c, s)
		},
	}
	list.bind(cmd)
	cmd.AddCommand(newControl(s))
	return cmd
}

// runWorkers is the life of this process's workers.
func runWorkers(ctx context.Context, c *workerConfig, s *streams) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	leave, left := context.WithCancel(ctx) // the first signal: leave in order
	defer left()
	abort, aborted := context.WithCancel(context.Background()) // the second
	defer aborted()
	go func() {
		for began := time.Now(); ; {
			select {
			case <-signals:
				if leave.Err() == nil {
					began = time.Now()
					left()
				} else if time.Since(began) > echo {
					aborted()
				}
			case <-abort.Done():
				return
			}
		}
	}()
	if _, err := hostshm.Sweep("", workerPrefix); err != nil {
		return err
	}
	out := newPrinter(s.out)
	defer out.close()
	if c.load > 0 {
		return runLoad(leave, abort, c, out)
	}
	u, err := newUnit(leave, c, nil, out, nil)
	if err != nil || u == nil {
		return err
	}
	return u.run(leave, abort)
}
