package core

import (
	"errors"
	"fmt"
	"time"
)

// The settings' defaults and floors (design document, section 5.4; PROTOCOL,
// sections 0, 4.5 and 5.3).
const (
	DefaultReap        = 120 * time.Second
	DefaultGrace       = 3600 * time.Second
	ReapFloor          = 30 * time.Second // a smaller window would reap between two ordinary pings
	DefaultInterval    = 10 * time.Second
	DefaultTimeout     = 300 * time.Second
	DefaultChunkTokens = 256
	DefaultL1Bytes     = 1 << 30
	DefaultPoolName    = "/vigil_pool"
	ScansPerWindow     = 4                // a scan every window/4, after the last one ended
	JoinBound          = 5 * time.Second  // how long a shutdown waits for a thread to end
	ReleaseBound       = 30 * time.Second // a release that takes longer is parked and shown (B2)
	LookAgain          = time.Second      // between a reaper's look and its decision (B3)
)

// The bounds that outside input meets. Each is a named limit with a stated
// behaviour: what does not fit is refused with FailQueueFull or FailTooLarge
// and counted, and what is served already is served on.
const (
	MaxJobs        = 65536   // requests queued or running in the server, all pools
	MaxInstances   = 1 << 20 // contexts of one kind in one server
	MaxSessions    = 65536   // look-up sessions open at once; the oldest ends first
	MaxLanes       = 1024    // affinity lanes
	MaxSlots       = 4096    // NORMAL slots
	MaxOpens       = 8       // registers whose memory is opened at the same time; more wait
	MaxPending     = 65536   // requests one worker may have in flight
	MaxExports     = 4096    // tensors in one registration
	MaxGroups      = 256     // engine groups in one registration
	MaxChunkTokens = 1 << 20
)

// ServerConfig is what a server is told at its start.
type ServerConfig struct {
	Reap  time.Duration // window of an entry that has pinged; 0 reaps nothing
	Grace time.Duration // window of an entry that never pinged

	Protections Protections

	ChunkTokens   int    // tokens in one chunk
	NormalSlots   int    // handlers of the NORMAL pool that run at once
	AffinityLanes int    // single-file lanes of the AFFINITY pool
	L1Bytes       uint64 // byte budget of the store

	// PoolName and PoolBytes are the shared memory that engine-driven workers
	// write and read themselves; without bytes there is none.
	PoolName  string
	PoolBytes uint64

	// Bounds are what a scenario lowers; a server that is deployed has its own.
	Bounds Bounds

	// ServerDriven, EngineDriven and Blend say which modules are loaded.
	// A request of a module that is not loaded finds no handler.
	ServerDriven, EngineDriven, Blend bool

	// Legacy is the server before liveness (scenario A9): PING has no payload
	// and nothing is reaped.
	Legacy bool
}

// DefaultServerConfig is the document's server with every module loaded.
func DefaultServerConfig() ServerConfig {
	return ServerConfig{
		Reap: DefaultReap, Grace: DefaultGrace,
		ChunkTokens: DefaultChunkTokens, NormalSlots: 1, AffinityLanes: 1, L1Bytes: DefaultL1Bytes,
		PoolName: DefaultPoolName, PoolBytes: DefaultL1Bytes,
		ServerDriven: true, EngineDriven: true, Blend: true,
	}
}

// Scan is the time between the end of one reaper scan and the next one;
// 0 where nothing is reaped.
func (c *ServerConfig) Scan() time.Duration { return c.Reap / ScansPerWindow }

// Validate returns every rule that the configuration breaks, each naming the
// setting, the rule and the value.
func (c *ServerConfig) Validate() error {
	var errs []error
	if c.Reap != 0 && c.Reap < ReapFloor {
		errs = append(errs, fmt.Errorf("worker reap timeout must be 0 (disabled) or >= %s; got %s", seconds(ReapFloor), seconds(c.Reap)))
	}
	if c.Grace < c.Reap || c.Grace < 0 {
		errs = append(errs, fmt.Errorf("worker registration grace must be >= the worker reap timeout (%s), or warming workers would go before crashed ones; got %s", seconds(c.Reap), seconds(c.Grace)))
	}
	errs = inRange(errs, "chunk tokens", c.ChunkTokens, 1, MaxChunkTokens)
	errs = inRange(errs, "normal slots", c.NormalSlots, 1, MaxSlots)
	errs = inRange(errs, "affinity lanes", c.AffinityLanes, 1, MaxLanes)
	if !c.ServerDriven && !c.EngineDriven {
		errs = append(errs, errors.New("at least one transfer mode must be loaded: server-driven or engine-driven; got none"))
	}
	return errors.Join(errs...)
}

func inRange(errs []error, setting string, got, low, high int) []error {
	if got >= low && got <= high {
		return errs
	}
	return append(errs, fmt.Errorf("%s must be from %d to %d; got %d", setting, low, high, got))
}

// TransferMode says who moves a worker's bytes.
type TransferMode uint8

// The transfer modes.
const (
	ModeServerDriven TransferMode = iota // the server opens the worker's memory and copies
	ModeEngineDriven                     // the worker copies to and from the server's pool
)

// WorkerConfig is what a worker adapter is told at its start.
type WorkerConfig struct {
	Interval time.Duration // between two pings, and the reply deadline of each
	Timeout  time.Duration // of every synchronous request

	Protections Protections

	Mode        TransferMode
	Blend       bool // registers rope state after the KV cache
	Model       string
	Salt        string
	WorldSize   int
	Rank        int // worker_id on the wire
	ChunkTokens int

	// Instance is used as the id where it is not 0, else the id comes from
	// entropy. A PID here is the design document's problem statement (A8).
	Instance InstanceID

	// Prober is a client that registers nothing: it pings with a nil id from
	// its start and tracks health only (A12).
	Prober bool

	// Legacy is the client before liveness (A9): PING has no payload.
	Legacy bool
}

// DefaultWorkerConfig is the document's worker.
func DefaultWorkerConfig() WorkerConfig {
	return WorkerConfig{
		Interval: DefaultInterval, Timeout: DefaultTimeout,
		Model: "model", WorldSize: 1, ChunkTokens: DefaultChunkTokens,
	}
}

// Validate returns every rule that the configuration breaks.
func (c *WorkerConfig) Validate() error {
	var errs []error
	if c.Interval <= 0 {
		errs = append(errs, fmt.Errorf("heartbeat interval must be > 0s; got %s", seconds(c.Interval)))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("request timeout must be > 0s; got %s", seconds(c.Timeout)))
	}
	errs = inRange(errs, "chunk tokens", c.ChunkTokens, 1, MaxChunkTokens)
	errs = inRange(errs, "world size", c.WorldSize, 1, 1<<16)
	errs = inRange(errs, "rank", c.Rank, 0, c.WorldSize-1)
	if c.Instance > MaxInstanceID {
		errs = append(errs, fmt.Errorf("instance id must fit 63 bits; got %d", uint64(c.Instance)))
	}
	return errors.Join(errs...)
}

// TooSlow reports whether three heartbeat intervals exceed the smallest window
// that a server may have, so that a few lost pings could reap a live worker.
// The worker warns at its start (design document, section 5.4).
func (c *WorkerConfig) TooSlow() bool { return 3*c.Interval > ReapFloor }

// seconds writes a duration as the settings spell it.
func seconds(d time.Duration) string {
	whole, rest := d/time.Second, d%time.Second
	if rest == 0 {
		return fmt.Sprintf("%ds", int64(whole))
	}
	sign := ""
	if d < 0 {
		sign, whole, rest = "-", -whole, -rest
	}
	frac := fmt.Sprintf("%09d", int64(rest))
	for frac[len(frac)-1] == '0' {
		frac = frac[:len(frac)-1]
	}
	return fmt.Sprintf("%s%d.%ss", sign, int64(whole), frac)
}

// maxSeconds bounds a setting, about 136 years: nothing overflows below it.
const maxSeconds int64 = 1 << 32

// ParseSeconds reads a setting in seconds, such as "120" or "0.4", without
// floats; nan and inf are not numbers of seconds. The setting's name is for
// the error.
func ParseSeconds(setting, text string) (time.Duration, error) {
	bad := fmt.Errorf("%s must be a finite number of seconds such as 120 or 0.5; got %q", setting, text)
	digits, negative := text, false
	if len(digits) > 0 && digits[0] == '-' {
		digits, negative = digits[1:], true
	}
	var nanos int64
	unit := int64(time.Second) // what the digit just read counts
	point, seen := false, false
	for i := 0; i < len(digits); i++ {
		c := digits[i]
		switch {
		case c == '.' && !point:
			point = true
		case c < '0' || c > '9':
			return 0, bad
		case point:
			unit /= 10
			nanos += int64(c-'0') * unit // digits past the nanosecond count nothing
			seen = true
		default:
			if nanos > maxSeconds/10*int64(time.Second) {
				return 0, bad
			}
			nanos = nanos*10 + int64(c-'0')*int64(time.Second)
			seen = true
		}
	}
	if !seen {
		return 0, bad
	}
	if negative {
		nanos = -nanos
	}
	return time.Duration(nanos), nil
}
