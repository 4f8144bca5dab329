package zmq

import (
	"errors"
	"fmt"
	"strings"
	"time"

	zmq4 "github.com/pebbe/zmq4"

	"vigil/core"
)

// Why this file: every option of a socket that is not libzmq's default is set
// here, with the reason.

// The defaults. 0 in a field of Options means its default; a negative time
// switches the thing off.
const (
	// DefaultHighWater is libzmq's own and the real system's (PROTOCOL, 1.1).
	DefaultHighWater = 1000
	// DefaultSendQueue holds a reply to each of a thousand workers a few times
	// over while the socket's goroutine is busy.
	DefaultSendQueue      = 8192
	DefaultSendQueueBytes = 256 << 20
	// DefaultMaxFrames is above the largest request of the protocol, so that
	// the core can refuse what is merely wrong with a reason.
	DefaultMaxFrames = 64
	// DefaultMaxMessageBytes lets the largest COMMIT_STORE of the protocol
	// through, 64 MiB of data with its key.
	DefaultMaxMessageBytes = 80 << 20
	DefaultMaxPeers        = 65536
	// DefaultBatch is how many messages are taken between two readings of the
	// clock and two looks at what is to be sent.
	DefaultBatch = 64
	// DefaultHandshake closes a connection that does not speak ZeroMQ. libzmq's
	// 30 s would leave a descriptor that long to whoever connects and waits.
	DefaultHandshake = 5 * time.Second
	// DefaultLinger lets the last replies of a server, and the UNREGISTER of a
	// worker, reach the other side; libzmq's default waits for ever for a peer
	// that may be dead.
	DefaultLinger = time.Second
	// DefaultConnect, DefaultReconnect and DefaultReconnectMax are DEV's
	// (PROTOCOL, 1.1): without the first a lost SYN holds a worker's pings
	// back for about 127 s; the last two find a server that came back within a
	// second without a storm.
	DefaultConnect      = 5000 * time.Millisecond
	DefaultReconnect    = 100 * time.Millisecond
	DefaultReconnectMax = 1000 * time.Millisecond
)

// How TCP finds out that a host is gone: after keepAliveIdle seconds of
// silence keepAliveCount probes every keepAliveEvery seconds, so in a minute.
// The probes are answered by the other host's kernel, also for a process that
// is stopped or starved; ZeroMQ's heartbeats are answered by the process, and
// would take the connection, and what waits in it, away from a worker that is
// merely paused (scenarios B1, B3).
const (
	keepAliveIdle  = 30
	keepAliveEvery = 10
	keepAliveCount = 3
)

// Options is what an endpoint is told at its start. The zero value of each
// field is its default.
type Options struct {
	// Bind lists a Router's endpoints: tcp://HOST:PORT or ipc://PATH. Port 0
	// or * picks a free one, see Router.Endpoints.
	Bind []string
	// Connect is a Dealer's server.
	Connect string

	HighWater       int   // messages queued per connection and direction
	SendQueue       int   // messages handed over and not yet with libzmq
	SendQueueBytes  int64 // and their bytes
	MaxFrames       int   // parts of a message that is received
	MaxMessageBytes int64 // bytes of a message that is received, and of one frame
	MaxPeers        int   // connections that a Router knows at once
	Batch           int   // messages per reading of the clock

	HandshakeTimeout time.Duration
	Linger           time.Duration // a bound on Close, see there
	ConnectTimeout   time.Duration
	ReconnectEvery   time.Duration
	ReconnectMax     time.Duration
	// Heartbeat is the interval of ZeroMQ's own heartbeats; 0 is none, on
	// purpose (see keepAliveIdle). With it, a connection whose other process
	// does not answer for three intervals is closed. It is for links through
	// something that answers TCP's probes itself.
	Heartbeat time.Duration
	// Unacknowledged closes a TCP connection whose sent bytes nobody
	// acknowledged for that long; 0 leaves it to the kernel, about 15 minutes.
	// A stall loses nothing, so this is for networks that lose packets.
	Unacknowledged time.Duration

	// Processes gets an Opener a descriptor of the process behind each ipc
	// connection, see Origin.Process.
	Processes bool

	Curve Curve

	// Now stamps arrivals; nil counts from the package's start. It is read once
	// per batch, so a stamp may be early by the time that one batch takes.
	Now func() core.Time
	// Context shares libzmq's threads among endpoints; nil gives the endpoint
	// its own, which Close ends.
	Context *Context
}

func (o *Options) settle() error {
	var errs []error
	count := func(name string, v *int, normal, most int) {
		if *v == 0 {
			*v = normal
		}
		if *v < 1 || *v > most {
			errs = append(errs, fmt.Errorf("zmq: %s must be from 1 to %d; got %d", name, most, *v))
		}
	}
	bytes := func(name string, v *int64, normal int64) {
		if *v == 0 {
			*v = normal
		}
		if *v < 1 || *v > 1<<40 {
			errs = append(errs, fmt.Errorf("zmq: %s must be from 1 to %d; got %d", name, int64(1)<<40, *v))
		}
	}
	span := func(name string, v *time.Duration, normal time.Duration) {
		switch {
		case *v == 0:
			*v = normal
		case *v < 0:
			*v = 0
		case *v < time.Millisecond || *v > 24*time.Hour:
			errs = append(errs, fmt.Errorf("zmq: %s must be from 1ms to 24h, or negative for none; got %s", name, *v))
		}
	}
	count("high water", &o.HighWater, DefaultHighWater, 1<<20)
	count("send queue", &o.SendQueue, DefaultSendQueue, 1<<20)
	count("most frames", &o.MaxFrames, DefaultMaxFrames, 1<<20)
	count("most peers", &o.MaxPeers, DefaultMaxPeers, 1<<22)
	count("batch", &o.Batch, DefaultBatch, 1<<16)
	bytes("send queue bytes", &o.SendQueueBytes, DefaultSendQueueBytes)
	bytes("most message bytes", &o.MaxMessageBytes, DefaultMaxMessageBytes)
	span("handshake timeout", &o.HandshakeTimeout, DefaultHandshake)
	span("linger", &o.Linger, DefaultLinger)
	span("connect timeout", &o.ConnectTimeout, DefaultConnect)
	span("reconnect interval", &o.ReconnectEvery, DefaultReconnect)
	span("longest reconnect interval", &o.ReconnectMax, DefaultReconnectMax)
	span("heartbeat", &o.Heartbeat, 0)
	span("unacknowledged", &o.Unacknowledged, 0)
	if o.Now == nil {
		o.Now = sinceStart
	}
	return errors.Join(errs...)
}

var packageStart = time.Now()

func sinceStart() core.Time { return core.Time(time.Since(packageStart)) }

// setter collects the first error of many settings.
type setter struct{ err error }

func (s *setter) set(name string, err error) {
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("zmq: setting %s: %w", name, err)
	}
}

// both sets what servers and clients share.
func (o *Options) both(soc *zmq4.Socket) error {
	var s setter
	// Messages that wait for the other side, or for us, per connection.
	s.set("SNDHWM", soc.SetSndhwm(o.HighWater))
	s.set("RCVHWM", soc.SetRcvhwm(o.HighWater))
	// A frame over it closes its connection before it takes memory.
	s.set("MAXMSGSIZE", soc.SetMaxmsgsize(o.MaxMessageBytes))
	s.set("LINGER", soc.SetLinger(o.Linger))
	s.set("HANDSHAKE_IVL", soc.SetHandshakeIvl(o.HandshakeTimeout))
	s.set("TCP_KEEPALIVE", soc.SetTcpKeepalive(1))
	s.set("TCP_KEEPALIVE_IDLE", soc.SetTcpKeepaliveIdle(keepAliveIdle))
	s.set("TCP_KEEPALIVE_INTVL", soc.SetTcpKeepaliveIntvl(keepAliveEvery))
	s.set("TCP_KEEPALIVE_CNT", soc.SetTcpKeepaliveCnt(keepAliveCount))
	if o.Unacknowledged > 0 {
		s.set("TCP_MAXRT", soc.SetTcpMaxrt(o.Unacknowledged))
	}
	if o.Heartbeat > 0 {
		s.set("HEARTBEAT_IVL", soc.SetHeartbeatIvl(o.Heartbeat))
		s.set("HEARTBEAT_TIMEOUT", soc.SetHeartbeatTimeout(3*o.Heartbeat))
		// The other side uses this one; its unit is a tenth of a second.
		s.set("HEARTBEAT_TTL", soc.SetHeartbeatTtl(3*o.Heartbeat))
	}
	if strings.Contains(strings.Join(o.Bind, " ")+o.Connect, "[") {
		s.set("IPV6", soc.SetIpv6(true)) // an address in brackets is one
	}
	return s.err
}

// server sets what a ROUTER needs.
func (o *Options) server(soc *zmq4.Socket) error {
	var s setter
	// A send to nobody, or to a full connection, then says so and is counted;
	// towards the caller it stays silent.
	s.set("ROUTER_MANDATORY", soc.SetRouterMandatory(1))
	// A whole node's workers connect at once when the server comes back (B15).
	s.set("BACKLOG", soc.SetBacklog(1024))
	if s.err == nil {
		s.err = o.Curve.server(soc)
	}
	return s.err
}

// client sets what a DEALER needs. ZMQ_IMMEDIATE stays off: what is sent while
// the server is away waits, up to the high-water mark, and arrives as a burst.
// The identity stays unset, as the real clients have it, so that each
// connection is a new peer.
func (o *Options) client(soc *zmq4.Socket) error {
	var s setter
	s.set("CONNECT_TIMEOUT", soc.SetConnectTimeout(o.ConnectTimeout))
	s.set("RECONNECT_IVL", soc.SetReconnectIvl(o.ReconnectEvery))
	s.set("RECONNECT_IVL_MAX", soc.SetReconnectIvlMax(o.ReconnectMax))
	if s.err == nil {
		s.err = o.Curve.client(soc)
	}
	return s.err
}

// Exposed reports whether an endpoint can be reached from another host: the
// wire has no authentication of its own, so a server bound to one needs Curve
// or a warning.
func Exposed(endpoint string) bool {
	host, tcp := strings.CutPrefix(endpoint, "tcp://")
	if !tcp {
		return false // ipc and inproc stay on the host
	}
	if at := strings.LastIndexByte(host, ':'); at >= 0 {
		host = host[:at]
	}
	host = strings.Trim(host, "[]")
	return host != "localhost" && host != "::1" && !(strings.HasPrefix(host, "127.") && strings.Trim(host, "0123456789.") == "")
}
