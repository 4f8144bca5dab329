package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"vigil/core"
	"vigil/core/loop"
	"vigil/core/zmq"
	"vigil/realgpu"
	"vigil/realgpu/cuda"
	"vigil/realgpu/hostshm"
)

// Why this file: the server, put together and taken apart again in order.

// The names of our segments in the folder of shared memory begin so. Both
// sides sweep what dead processes of theirs left.
const (
	workerPrefix = "vigil-kv"
	poolPrefix   = "vigil-pool"
)

func newRun(s *streams) *cobra.Command {
	c := &runConfig{}
	list := c.settings()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the KV-cache server",
		Long: `Run the KV-cache server until SIGTERM or SIGINT, which drain it: new work is
refused, what is in flight ends, every context is released, exit code 0. A
second signal, or --stop-seconds, ends it at once with exit code 3 and names
what it still held.

Every flag is also an environment variable (VIGIL_L1_BYTES) and a key of the
--config file (l1_bytes); a flag goes before the environment, that before the
file.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(list.resolve(cmd), c.settle()); err != nil {
				return err
			}
			log := newLog(s.err, c.logFormat, c.logLevel)
			for _, w := range list.mistyped() {
				log.Warn(w)
			}
			return run(cmd.Context(), c, log)
		},
	}
	list.bind(cmd)
	return cmd
}

// service is a server with everything around it.
type service struct {
	config *runConfig
	log    *slog.Logger

	server  *loop.Server
	memory  realgpu.Backend
	devices *cuda.Memory // nil where the backend has none
	watched deviceWatch
	hooks   *realgpu.Hooks
	pool    *hostshm.Segment
	router  *zmq.Router
	watcher *watcher // nil where no process is watched
	journal *journal
	meters  *meters
	web     *web
	sweeper *sweeper

	gate     chan struct{} // closed when the server takes messages
	backend  choice
	started  time.Time
	stopping chan struct{}
}

// run is the life of a server.
func run(ctx context.Context, c *runConfig, log *slog.Logger) error {
	defer runtime.KeepAlive(collectorBlock())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	v := &service{config: c, log: log, gate: make(chan struct{}), started: time.Now(), stopping: make(chan struct{})}
	if err := v.start(); err != nil {
		v.abandon()
		return err
	}
	var say func()
	select {
	case s := <-signals:
		say = func() {
			log.Info("stopping", "signal", s.String(), "drain_seconds", c.drain.Seconds(), "stop_seconds", c.stop.Seconds())
		}
	case <-ctx.Done():
		say = func() { log.Info("stopping", "reason", ctx.Err().Error()) }
	case <-v.server.Done():
		say = func() { log.Error("the server's loop has ended by itself") }
	}
	close(v.stopping) // first: who reads that it stops must find it no longer ready
	say()
	return v.stop(signals)
}

// start puts everything together; what fails is one line. It leaves what it
// made to abandon.
func (v *service) start() (err error) {
	c, log := v.config, v.log
	if v.backend, err = chooseBackend(c.backend, c.cudaLibrary); err != nil {
		return err
	}
	v.warn()
	v.sweeper = newSweeper(log)
	v.sweeper.sweep()
	if err := v.makePool(); err != nil {
		return err
	}
	options := loop.ServerOptions{Config: c.core, TimeScale: c.timeScale, Drain: max(c.drain, time.Nanosecond), Memory: v.makeMemory}
	if v.pool != nil {
		options.Pool = v.pool.Bytes()
	}
	if c.eventLog != "" {
		if options.Events, err = loop.CreateEventLog(c.eventLog); err != nil {
			return err
		}
	}
	if c.record != "" {
		if options.Recording, err = loop.NewRecording(loop.RecordingOptions{Dir: c.record}); err != nil {
			return err
		}
	}
	v.meters = newMeters()
	v.journal = newJournal(log, v.sweeper.soon)
	options.OnPing = v.meters.ping
	options.OnRecord = func(r *core.Record) {
		v.meters.take(r)
		v.journal.take(r)
	}
	if v.server, err = loop.NewServer(options); err != nil {
		return err
	}
	var listener net.Listener
	if c.http != "" {
		if listener, err = net.Listen("tcp", c.http); err != nil {
			return fmt.Errorf("http: %w; choose another --http, or off", err)
		}
	}
	var sink zmq.Sink = &door{v.server, v.gate}
	if c.proof() == proofOn {
		v.watcher, err = newWatcher(sink, v.exited, log)
		sink = v.watcher
	}
	if err == nil {
		v.router, err = zmq.Listen(zmq.Options{Bind: c.bind, Now: v.server.Now, Curve: c.keys, Processes: v.watcher != nil}, sink)
	}
	if err != nil {
		if listener != nil {
			listener.Close()
		}
		return err
	}
	v.watchDevices()
	v.server.Start(v.router)
	close(v.gate)
	web := "off"
	if listener != nil {
		v.web = newWeb(v, listener)
		web = listener.Addr().String()
	}
	v.sweeper.start()
	log.Info("backend: " + v.backend.String())
	log.Info("serving", "bind", v.router.Endpoints(), "http", web, "pid", os.Getpid(),
		"version", versionOf().Version, "design", c.core.Protections.String(), "backend", v.backend.name, "backend_reason", v.backend.reason,
		"reap_seconds", c.reap.Seconds(), "grace_seconds", c.grace.Seconds(), "proof_of_death", c.proof(),
		"l1_bytes", c.core.L1Bytes, "pool_bytes", c.core.PoolBytes, "chunk_tokens", c.core.ChunkTokens,
		"curve", c.keys.Enabled(), "record", c.record, "event_log", c.eventLog)
	return nil
}

// warn says loudly what no deployment should overlook.
func (v *service) warn() {
	c, log := v.config, v.log
	if wide := c.exposed(); wide != "" && !c.keys.Enabled() {
		log.Warn("NO AUTHENTICATION: other hosts can reach this bind, and whoever connects can read what others stored and name memory to be opened; bind to tcp://127.0.0.1 or ipc://, or set --curve-key-file", "bind", wide)
	} else if wide != "" && len(c.keys.Clients) == 0 {
		log.Warn("other hosts can reach this bind, and the key file lists no clients: whoever knows the server's public key gets in", "bind", wide)
	}
	if c.http != "" && !loopbackOnly(c.http) {
		log.Warn("other hosts can read the status and the metrics: http has no authentication", "http", c.http, "pprof", c.pprof)
	}
	if c.timeScale > 1 {
		log.Warn("TEST: the server's clock does not run at the world's speed", "time_scale", c.timeScale)
	}
	if c.testHooks {
		log.Warn("TEST: hooks are on: whoever reaches http can make memory operations slow, hang or fail", "http", c.http)
	}
	if c.legacy {
		log.Warn("TEST: this is the server before liveness: nothing is reaped, and newer workers' pings are refused")
	}
	switch on := c.proof() == proofOn; {
	case c.reap == 0 && on:
		log.Warn("nothing is reaped for its silence: the memory of workers that die unseen, on tcp:// or in another way than by their process's end, stays mapped until they unregister or this server stops")
	case c.reap == 0:
		log.Warn("nothing is reaped: the memory of workers that die stays mapped until they unregister or this server stops")
	}
}

// makePool makes the shared memory that engine-driven workers use.
func (v *service) makePool() error {
	c := v.config
	if c.poolAuto {
		var st syscall.Statfs_t
		if err := syscall.Statfs(hostshm.DefaultDir, &st); err == nil {
			c.core.PoolBytes = min(autoPoolBytes, c.core.L1Bytes, uint64(st.Bavail)*uint64(st.Bsize)/4) &^ (1<<20 - 1)
		}
	}
	if c.core.PoolBytes == 0 {
		return nil
	}
	name, err := hostshm.NewName(poolPrefix)
	if err == nil {
		v.pool, err = hostshm.Create("", name, int64(c.core.PoolBytes))
	}
	if err == nil {
		c.core.PoolName = name
		return nil
	}
	if !c.poolAuto {
		return fmt.Errorf("pool-bytes: %w", err)
	}
	v.log.Warn("no shared pool: engine-driven workers send their data in messages", "error", err)
	c.core.PoolBytes = 0
	return nil
}

// door lets messages in once the server has started: the socket is bound
// before, so that a bind that fails leaves nothing running.
type door struct {
	server *loop.Server
	gate   chan struct{}
}

func (d *door) Message(peer core.Peer, arrived core.Time, frames *core.Frames) {
	<-d.gate
	d.server.Message(peer, arrived, frames)
}

func (d *door) Closed(peer core.Peer) {
	<-d.gate
	d.server.Closed(peer)
}

// exited says that the process behind a connection is dead.
func (v *service) exited(peer core.Peer) {
	<-v.gate
	v.server.Exited(peer)
}

// echo is how long after a signal the same one is no second signal.
const echo = 250 * time.Millisecond

// stop takes everything apart in order: the core first, which ends its reaper
// before it clears anything, then what carried its messages, then its memory.
func (v *service) stop(signals <-chan os.Signal) error {
	// The whole way out has one bound, and a second signal cuts it short.
	ctx, cancel := context.WithTimeoutCause(context.Background(), max(v.config.scaled(v.config.stop), time.Second), errors.New("the bound on the time of a shutdown passed"))
	defer cancel()
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	began := time.Now()
	go func() {
		for {
			select {
			case <-signals:
				// Whoever signals a process and its group sends the first twice.
				if time.Since(began) > echo {
					cut(errors.New("a second signal came"))
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	ended, err := v.server.Shutdown(ctx)
	v.server.Abort()
	// The router is closed even when there was no time: its last replies are
	// refusals that clients wait for, and its linger is bounded.
	if e := v.router.Close(); e != nil {
		v.log.Warn("closing the socket", "error", e)
	}
	v.watcher.stop()
	v.watched.close()
	mapped := v.memory.Stats()
	grace, stop := context.WithTimeout(ctx, time.Second)
	if err != nil {
		grace, stop = context.WithTimeout(context.Background(), 100*time.Millisecond)
	}
	left := v.memory.Shutdown(grace)
	stop()
	if v.web != nil {
		v.web.close()
	}
	v.sweeper.stop()
	select {
	case <-v.server.Done():
		v.journal.close()
	default: // its owner does not end, and may yet write
	}
	if v.pool != nil {
		if v.pool.Close() != nil {
			v.pool.Unlink()
		}
	}
	if err == nil && ended.Code == core.ExitOrderly && ended.Contexts == 0 && left == nil {
		v.log.Info("stopped", "released", true)
		return nil
	}
	why := "something was still held at its bound"
	if err != nil {
		why = context.Cause(ctx).Error()
	}
	attributes := []any{"reason", why, "held", ended.String(), "contexts", ended.Contexts, "bytes", ended.HeldBytes, "mapped_bytes", mapped.Charged, "mappings", mapped.Mappings}
	if left != nil {
		attributes = append(attributes, "memory", left.Error())
	}
	v.log.Error("stopped with something still held", attributes...)
	return &ending{exitHeld}
}

// abandon undoes a start that failed.
func (v *service) abandon() {
	if v.router != nil {
		v.router.Close()
	}
	v.watcher.stop()
	if v.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		v.server.Shutdown(ctx)
		cancel()
	}
	if v.pool != nil {
		v.pool.Close()
	}
}

// sweeper unlinks the segments that dead workers and servers left behind.
type sweeper struct {
	log  *slog.Logger
	now  chan struct{}
	end  chan struct{}
	done sync.WaitGroup
}

// sweepEvery is the time between two sweeps that nothing asked for.
const sweepEvery = time.Minute

func newSweeper(log *slog.Logger) *sweeper {
	return &sweeper{log: log, now: make(chan struct{}, 1), end: make(chan struct{})}
}

func (s *sweeper) sweep() {
	for _, prefix := range []string{workerPrefix, poolPrefix} {
		gone, err := hostshm.Sweep("", prefix)
		if len(gone) > 0 {
			s.log.Info("segments of dead processes removed", "segments", gone)
		}
		if err != nil {
			s.log.Warn("segments of dead processes could not be removed", "error", err)
		}
	}
}

// soon asks for a sweep; it waits for nobody.
func (s *sweeper) soon() {
	select {
	case s.now <- struct{}{}:
	default:
	}
}

func (s *sweeper) start() {
	s.done.Go(func() {
		every := time.NewTicker(sweepEvery)
		defer every.Stop()
		for {
			select {
			case <-s.now:
			case <-every.C:
			case <-s.end:
				return
			}
			s.sweep()
		}
	})
}

func (s *sweeper) stop() {
	close(s.end)
	s.done.Wait()
	s.sweep()
}
