package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"vigil/core"
	"vigil/core/zmq"
	"vigil/realgpu/cuda"
	"vigil/realgpu/watch"
)

// Why this file: everything that server run is told, and every rule that is
// about more than one setting.

// The pools of the hardened server (PROTOCOL, section 0): a few handlers at
// once, and lanes enough that each worker of a node has its own; beyond that
// many connections share. The document's server has one of each.
const (
	hardenedSlots = 4
	hardenedLanes = 64
)

// autoPoolBytes is the most that the shared pool takes unless it is asked for.
const autoPoolBytes = 256 << 20

type runConfig struct {
	backend      string
	cudaLibrary  string
	nvmlLibrary  string
	bind         []string
	http         string
	reap, grace  time.Duration
	design       designChoice
	l1Bytes      uint64
	poolBytes    uint64
	poolAuto     bool
	transferMode string
	chunkTokens  int
	normalSlots  int
	lanes        int
	record       string
	eventLog     string
	timeScale    int
	testHooks    bool
	legacy       bool
	keyFile      string
	pprof        bool
	drain        time.Duration
	stop         time.Duration
	logFormat    string
	logLevel     slog.Level

	core core.ServerConfig // what it all comes to
	keys zmq.Curve
}

func (c *runConfig) settings() *settings {
	s := &settings{}
	s.add(
		&setting{name: "backend", initial: "auto", usage: "where the workers' memory is: auto (on devices where there are any), hostshm (POSIX shared memory) or cuda", take: takeOneOf(&c.backend, backendAuto, backendHostSHM, backendCUDA)},
		&setting{name: "cuda-library", usage: "the driver's library, in place of " + cuda.Library, take: takeText(&c.cudaLibrary)},
		&setting{name: "nvml-library", usage: "the library that watches devices, in place of " + watch.Library, take: takeText(&c.nvmlLibrary)},
		&setting{name: "bind", initial: "tcp://127.0.0.1:5555", usage: "where workers connect: tcp://HOST:PORT or ipc://PATH, several separated by commas", take: c.takeBind},
		&setting{name: "http", initial: "127.0.0.1:8080", usage: "where status, health and metrics are served: HOST:PORT, or off", take: takeAddress(&c.http)},
		&setting{name: "worker-reap-timeout-seconds", initial: "120", usage: "free the context of a worker that has pinged and is silent for longer; 0 never does", take: takeSeconds(&c.reap, "worker reap timeout")},
		&setting{name: "worker-registration-grace-seconds", initial: "3600", usage: "free the context of a worker that never pinged and is silent for longer", take: takeSeconds(&c.grace, "worker registration grace")},
	)
	s.add(c.design.settings()...)
	s.add(
		&setting{name: "l1-bytes", initial: "1GiB", usage: "byte budget of the store", take: takeBytes(&c.l1Bytes)},
		&setting{name: "pool-bytes", initial: "auto", usage: "shared memory for engine-driven workers: bytes, 0 for none (they send data in their messages), or auto", take: c.takePool},
		&setting{name: "transfer-mode", initial: "auto", usage: "which workers are served: auto (both), server-driven or engine-driven", take: takeOneOf(&c.transferMode, "auto", "server-driven", "engine-driven")},
		&setting{name: "chunk-tokens", initial: "256", usage: "tokens in one chunk", take: takeInt(&c.chunkTokens, 1, core.MaxChunkTokens)},
		&setting{name: "normal-slots", initial: "0", usage: "handlers of the NORMAL pool that run at once; 0 is the design's own (document 1, hardened 4)", take: takeInt(&c.normalSlots, 0, core.MaxSlots)},
		&setting{name: "affinity-lanes", initial: "0", usage: "single-file lanes of the AFFINITY pool; 0 is the design's own (document 1, hardened 64)", take: takeInt(&c.lanes, 0, core.MaxLanes)},
		&setting{name: "record", usage: "record every input into this folder, for simrun to replay", take: takeText(&c.record)},
		&setting{name: "event-log", usage: "write what happens into this file, which must not be there yet, for simrun audit", take: takeText(&c.eventLog)},
		&setting{name: "curve-key-file", usage: "encrypt, with the keys of this file (server keygen makes one)", take: takeText(&c.keyFile)},
		&setting{name: "drain-seconds", initial: "10", usage: "how long a shutdown waits for transfers and registrations under way", take: takeSeconds(&c.drain, "drain")},
		&setting{name: "stop-seconds", initial: "25", usage: "how long a shutdown may take altogether; then the server ends with exit code 3 and names what it held", take: takeSeconds(&c.stop, "stop bound")},
		&setting{name: "log-format", initial: "auto", usage: "auto (text on a terminal, else JSON), text or json", take: takeOneOf(&c.logFormat, "auto", "text", "json")},
		&setting{name: "log-level", initial: "info", usage: "debug, info, warn or error", take: takeLevel(&c.logLevel)},
		&setting{name: "pprof", initial: "false", isBool: true, usage: "serve /debug/pprof beside the status", take: takeBool(&c.pprof)},
		&setting{name: "time-scale", initial: "1", usage: "for tests only: the server's clock runs this many times as fast; loopback and ipc only", take: takeScale(&c.timeScale)},
		&setting{name: "legacy", initial: "false", isBool: true, usage: "for tests only: the server before liveness, which takes a ping without an id and reaps nothing", take: takeBool(&c.legacy)},
		&setting{name: "test-hooks", initial: "false", isBool: true, usage: "for tests only: memory operations can be made slow, hang or fail through /test/hooks; loopback and ipc only", take: takeBool(&c.testHooks)},
	)
	return s
}

func (c *runConfig) takeBind(text string) error {
	if err := takeList(&c.bind)(text); err != nil {
		return err
	}
	if len(c.bind) == 0 {
		return errors.New("must name at least one endpoint, such as tcp://127.0.0.1:5555")
	}
	for _, b := range c.bind {
		scheme, rest, ok := strings.Cut(b, "://")
		if !ok || scheme != "tcp" && scheme != "ipc" || rest == "" {
			return fmt.Errorf("%q is no endpoint; it is tcp://HOST:PORT or ipc://PATH", b)
		}
	}
	return nil
}

func (c *runConfig) takePool(text string) error {
	if c.poolAuto = text == "auto"; c.poolAuto {
		c.poolBytes = 0
		return nil
	}
	return takeBytes(&c.poolBytes)(text)
}

// settle checks the rules and works out the core's configuration.
func (c *runConfig) settle() error {
	var errs []error
	if c.backend == backendHostSHM && c.cudaLibrary != "" {
		errs = append(errs, errors.New("cuda-library is for the backend cuda; with hostshm leave it away"))
	}
	p, err := c.design.protections()
	if err != nil {
		errs = append(errs, err)
	}
	k := core.DefaultServerConfig()
	k.Reap, k.Grace, k.Protections = c.reap, c.grace, p
	k.ChunkTokens, k.L1Bytes = c.chunkTokens, c.l1Bytes
	k.NormalSlots, k.AffinityLanes = c.normalSlots, c.lanes
	hardened := c.design.preset == "hardened"
	if k.NormalSlots == 0 {
		if k.NormalSlots = 1; hardened {
			k.NormalSlots = hardenedSlots
		}
	}
	if k.AffinityLanes == 0 {
		if k.AffinityLanes = 1; hardened {
			k.AffinityLanes = hardenedLanes
		}
	}
	k.Legacy = c.legacy
	k.ServerDriven = c.transferMode != "engine-driven"
	k.EngineDriven = c.transferMode != "server-driven"
	k.PoolName, k.PoolBytes = "", c.poolBytes
	if !k.EngineDriven {
		if c.poolBytes > 0 {
			errs = append(errs, errors.New("pool-bytes is for engine-driven workers, which transfer-mode server-driven does not serve"))
		}
		k.PoolBytes, c.poolAuto = 0, false
	}
	if err := k.Validate(); err != nil {
		errs = append(errs, err)
	}
	if c.drain < 0 || c.stop < c.drain {
		errs = append(errs, fmt.Errorf("stop-seconds must be >= drain-seconds (%s), which must be >= 0; got %s", c.drain, c.stop))
	}
	if wide := c.exposed(); wide != "" {
		if c.timeScale > 1 {
			errs = append(errs, fmt.Errorf("time-scale is for tests and refused on %s, which other hosts can reach; bind to tcp://127.0.0.1 or ipc://", wide))
		}
		if c.testHooks {
			errs = append(errs, fmt.Errorf("test-hooks are refused on %s, which other hosts can reach; bind to tcp://127.0.0.1 or ipc://", wide))
		}
	}
	if c.http != "" && !loopbackOnly(c.http) && (c.testHooks || c.timeScale > 1) {
		errs = append(errs, fmt.Errorf("test-hooks and time-scale are refused with http on %s, which other hosts can reach", c.http))
	}
	if c.testHooks && c.http == "" {
		errs = append(errs, errors.New("test-hooks are set through http, which is off"))
	}
	if c.keyFile != "" {
		if c.keys, err = readKeyFile(c.keyFile, true); err != nil {
			errs = append(errs, err)
		}
	}
	c.core = k
	return errors.Join(errs...)
}

// exposed is the first endpoint that another host can reach, "" for none.
func (c *runConfig) exposed() string {
	for _, b := range c.bind {
		if zmq.Exposed(b) {
			return b
		}
	}
	return ""
}

// scaled is how long a span of the server's time is in real time.
func (c *runConfig) scaled(d time.Duration) time.Duration {
	return d / time.Duration(max(c.timeScale, 1))
}

// longestSafe is the longest heartbeat interval, with a reply deadline of the
// same length, of which three fit a window.
func longestSafe(window time.Duration) time.Duration { return window / 3 }
