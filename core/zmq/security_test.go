package zmq

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Keys: who has none, a wrong one, or one that is not on the list stays out,
// while the others come in.
func TestOnlyTheListedKeysComeIn(t *testing.T) {
	serverPublic, serverSecret, err := NewCurveKeys()
	if err != nil {
		t.Fatal(err)
	}
	public, secret, _ := NewCurveKeys()
	strangerPublic, strangerSecret, _ := NewCurveKeys()
	server := new(ear)
	r := listen(t, Options{Curve: Curve{SecretKey: serverSecret, Clients: []string{public}}, HandshakeTimeout: time.Second}, server)
	for name, keys := range map[string]Curve{
		"no key":          {},
		"not on the list": {SecretKey: strangerSecret, PublicKey: strangerPublic, ServerKey: serverPublic},
		"wrong server":    {SecretKey: secret, PublicKey: public, ServerKey: strangerPublic},
	} {
		d := dial(t, Options{Curve: keys, Linger: 10 * time.Millisecond}, r.Endpoints()[0], new(ear))
		d.Send(0, message(name))
	}
	good := new(ear)
	d := dial(t, Options{Curve: Curve{SecretKey: secret, PublicKey: public, ServerKey: serverPublic}}, r.Endpoints()[0], good)
	d.Send(0, message("good"))
	server.wait(t, 1)
	r.Send(1, message("welcome"))
	good.wait(t, 1)
	eventually(t, "the others are refused", func() bool { s := r.Stats(); return s.Refused >= 1 && s.HandshakesFailed >= 3 })
	for _, h := range server.wait(t, 1) {
		if text(&h.frames) != "|good" {
			t.Errorf("%q came in", text(&h.frames))
		}
	}
}

// Without a list, whoever knows the server's key comes in, and nobody else.
func TestAKeyWithoutAList(t *testing.T) {
	serverPublic, serverSecret, _ := NewCurveKeys()
	public, secret, _ := NewCurveKeys()
	server := new(ear)
	r := listen(t, Options{Curve: Curve{SecretKey: serverSecret}}, server)
	plain := dial(t, Options{Linger: 10 * time.Millisecond}, r.Endpoints()[0], new(ear))
	plain.Send(0, message("plain"))
	d := dial(t, Options{Curve: Curve{SecretKey: secret, PublicKey: public, ServerKey: serverPublic}}, r.Endpoints()[0], new(ear))
	d.Send(0, message("good"))
	if all := server.wait(t, 1); text(&all[0].frames) != "|good" {
		t.Errorf("%q came in", text(&all[0].frames))
	}
}

// An ipc socket is for its user alone; one that a killed server left is taken
// over, one in use and what is no socket are not.
func TestTheFileOfAnIPCSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	path := filepath.Join(dir, "socket")
	bind := Options{Bind: []string{"ipc://" + path}}
	r := listen(t, bind, new(ear))
	for file, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, path: 0o600 | os.ModeSocket} {
		if info, err := os.Stat(file); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", file, info.Mode(), err, want)
		}
	}
	if _, err := Listen(bind, new(ear)); err == nil || !strings.Contains(err.Error(), "another server listens") {
		t.Errorf("a second server: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the refused server took the socket away: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket's file is left after the close")
	}
	// What a killed server leaves: a file that nobody listens on.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	server := new(ear)
	r = listen(t, bind, server)
	d := dial(t, Options{}, r.Endpoints()[0], new(ear))
	d.Send(0, message("hello"))
	server.wait(t, 1)
}

// What cannot be bound or dialled says why and what to do, and leaves nothing.
func TestWhatCannotBeBound(t *testing.T) {
	leavesNothing(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	os.Mkdir(open, 0o777)
	os.Chmod(open, 0o777)
	taken := listen(t, Options{}, new(ear)).Endpoints()[0]
	for _, c := range []struct {
		bind []string
		o    Options
		says string
	}{
		{nil, Options{}, "nothing to bind to"},
		{[]string{"5555"}, Options{}, "an endpoint is tcp://HOST:PORT"},
		{[]string{"udp://127.0.0.1:1"}, Options{}, "an endpoint is tcp://HOST:PORT"},
		{[]string{"tcp://127.0.0.1"}, Options{}, "cannot bind to tcp://127.0.0.1"},
		{[]string{"tcp://192.0.2.1:5555"}, Options{}, "no such address"},
		{[]string{taken}, Options{}, "choose another port"},
		{[]string{loopback, taken}, Options{}, "choose another port"},
		{[]string{"ipc://"}, Options{}, "needs a file"},
		{[]string{"ipc://*"}, Options{}, "needs a file"},
		{[]string{"ipc://@vigil"}, Options{}, "abstract"},
		{[]string{"ipc://" + file}, Options{}, "not a socket"},
		{[]string{"ipc://" + file + "/socket"}, Options{}, "not a directory"},
		{[]string{"ipc://" + dir + "/no/such/socket"}, Options{}, "make the folder"},
		{[]string{"ipc://" + open + "/socket"}, Options{}, "chmod go-w"},
		{[]string{"ipc:///" + strings.Repeat("x", 120)}, Options{}, "at most 107"},
		{[]string{loopback}, Options{HighWater: -1}, "high water must be"},
		{[]string{loopback}, Options{MaxMessageBytes: 1 << 50}, "most message bytes must be"},
		{[]string{loopback}, Options{Linger: time.Microsecond}, "linger must be"},
		{[]string{loopback}, Options{Connect: loopback}, "a client's"},
		{[]string{loopback}, Options{Curve: Curve{SecretKey: "short"}}, "40 characters"},
		{[]string{loopback}, Options{Curve: Curve{Clients: []string{"x"}}}, "not the server's secret key"},
	} {
		c.o.Bind = c.bind
		r, err := Listen(c.o, new(ear))
		if err == nil {
			t.Errorf("%v: bound", c.bind)
			r.Close()
		} else if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %q does not say %q", c.bind, err, c.says)
		}
	}
	for _, c := range []struct {
		o    Options
		says string
	}{
		{Options{}, "nothing to connect to"},
		{Options{Connect: "localhost:5555"}, "an endpoint is tcp://HOST:PORT"},
		{Options{Connect: "tcp://localhost"}, "cannot connect to"},
		{Options{Connect: taken, Bind: []string{loopback}}, "a server's"},
		{Options{Connect: taken, Curve: Curve{ServerKey: "x"}}, "not the client's secret key"},
		{Options{Connect: taken, Curve: Curve{SecretKey: strings.Repeat("0", 40)}}, "public key"},
	} {
		d, err := Dial(c.o, new(ear))
		if err == nil {
			t.Errorf("%+v: dialled", c.o)
			d.Close()
		} else if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q does not say %q", err, c.says)
		}
	}
}

func TestExposed(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"tcp://127.0.0.1:5555": false, "tcp://127.8.0.1:*": false, "tcp://localhost:1": false, "tcp://[::1]:1": false,
		"ipc:///run/x": false, "tcp://*:5555": true, "tcp://0.0.0.0:1": true, "tcp://[::]:1": true, "tcp://10.0.0.1:1": true,
		"tcp://eth0:1": true, "tcp://127.example.org:1": true,
	} {
		if got := Exposed(endpoint); got != want {
			t.Errorf("%s: %v", endpoint, got)
		}
	}
}
