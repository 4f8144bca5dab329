package zmq

import (
	"errors"
	"fmt"
	"strings"

	zmq4 "github.com/pebbe/zmq4"
)

// Why this file: the wire has no authentication, so a server that is reached
// from other hosts uses CURVE: the client knows the server's public key, the
// traffic is encrypted, and, where the server lists its clients' keys, nobody
// else gets in.

// Curve is an endpoint's keys, each 40 characters of Z85. The zero value uses
// none.
type Curve struct {
	SecretKey string // one's own
	PublicKey string // a client's own, belongs to SecretKey
	ServerKey string // client: the server's public key
	// Clients lists the public keys that a server lets in; empty lets in
	// whoever knows the server's public key.
	Clients []string
}

// NewCurveKeys makes a pair of keys.
func NewCurveKeys() (public, secret string, err error) {
	public, secret, err = zmq4.NewCurveKeypair()
	if err != nil {
		return "", "", fmt.Errorf("zmq: making keys: %w (libzmq must be built with CURVE)", err)
	}
	return public, secret, nil
}

// Enabled reports whether there are keys.
func (c *Curve) Enabled() bool { return c.SecretKey != "" }

const z85Alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// checkKey never shows a key: an error ends in a log.
func checkKey(name, key string) error {
	if len(key) != 40 || strings.Trim(key, z85Alphabet) != "" {
		return fmt.Errorf("zmq: the CURVE %s must be 40 characters of Z85, as keygen prints it; it has %d", name, len(key))
	}
	return nil
}

func (c *Curve) server(soc *zmq4.Socket) error {
	if !c.Enabled() {
		if len(c.Clients) > 0 || c.PublicKey != "" || c.ServerKey != "" {
			return errors.New("zmq: CURVE keys are given, but not the server's secret key")
		}
		return nil
	}
	if err := checkKey("secret key", c.SecretKey); err != nil {
		return err
	}
	for _, key := range c.Clients {
		if err := checkKey("client's public key", key); err != nil {
			return err
		}
	}
	var s setter
	s.set("CURVE_SERVER", soc.SetCurveServer(1))
	s.set("CURVE_SECRETKEY", soc.SetCurveSecretkey(c.SecretKey))
	return s.err
}

func (c *Curve) client(soc *zmq4.Socket) error {
	if !c.Enabled() {
		if c.PublicKey != "" || c.ServerKey != "" {
			return errors.New("zmq: CURVE keys are given, but not the client's secret key")
		}
		return nil
	}
	err := errors.Join(checkKey("secret key", c.SecretKey), checkKey("public key", c.PublicKey), checkKey("server's public key", c.ServerKey))
	if err != nil {
		return err
	}
	var s setter
	s.set("CURVE_PUBLICKEY", soc.SetCurvePublickey(c.PublicKey))
	s.set("CURVE_SECRETKEY", soc.SetCurveSecretkey(c.SecretKey))
	s.set("CURVE_SERVERKEY", soc.SetCurveServerkey(c.ServerKey))
	return s.err
}

// zapAddress is where libzmq asks whether a client may come in (ZeroMQ RFC 27).
const zapAddress = "inproc://zeromq.zap.01"

// doorkeeper answers libzmq's questions. It belongs to the socket's goroutine.
type doorkeeper struct {
	soc     *zmq4.Socket
	allowed map[string]bool // the keys' 32 bytes
}

func newDoorkeeper(ctx *zmq4.Context, clients []string) (*doorkeeper, error) {
	soc, err := ctx.NewSocket(zmq4.REP)
	if err != nil {
		return nil, fmt.Errorf("zmq: the list of clients: %w", err)
	}
	d := &doorkeeper{soc: soc, allowed: make(map[string]bool, len(clients))}
	for _, key := range clients {
		d.allowed[zmq4.Z85decode(key)] = true
	}
	var s setter
	s.set("LINGER", soc.SetLinger(0))
	if s.set("the list of clients", soc.Bind(zapAddress)); s.err != nil {
		soc.Close()
		return nil, fmt.Errorf("%w (a Context can hold one server with a list of clients)", s.err)
	}
	return d, nil
}

// answer answers what has been asked so far.
func (d *doorkeeper) answer(refused func()) {
	for {
		q, err := d.soc.RecvMessageBytes(zmq4.DONTWAIT)
		if err != nil {
			return
		}
		// version, request id, domain, address, identity, mechanism, key
		id, status, text := "", "400", "not on the list"
		if len(q) > 1 {
			id = string(q[1])
		}
		if len(q) == 7 && string(q[0]) == "1.0" && string(q[5]) == "CURVE" && d.allowed[string(q[6])] {
			status, text = "200", "OK"
		} else {
			refused()
		}
		if _, err := d.soc.SendMessageDontwait("1.0", id, status, text, "", ""); err != nil {
			return
		}
	}
}
