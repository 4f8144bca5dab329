package endurance_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	zmq4 "github.com/pebbe/zmq4"
)

// Why this file: the least that a server can be with the same library, in a
// process of its own as the server is: it receives a message and sends it back.

func bareEcho(endpoint string) {
	soc, err := zmq4.NewSocket(zmq4.ROUTER)
	if err == nil {
		err = soc.Bind(endpoint)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	bound, _ := soc.GetLastEndpoint()
	fmt.Printf("{\"event\":\"echo\",\"bind\":[%q]}\n", bound)
	for {
		m, err := soc.RecvMessageBytes(0)
		if err != nil {
			continue // a signal; it lives until it is killed
		}
		soc.SendMessage(m)
	}
}

func startEcho(t testing.TB) (endpoint string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "echo")
	cmd.Env = append(os.Environ(), echoPlease+"=tcp://127.0.0.1:*")
	p := begin(t, cmd)
	list, _ := p.await("echo", 1).Bind.([]any)
	endpoint, _ = list[0].(string)
	return endpoint
}

// newManySockets is a context for more sockets than the library's default.
func newManySockets(n int) (*zmq4.Context, error) {
	ctx, err := zmq4.NewContext()
	if err != nil {
		return nil, err
	}
	return ctx, ctx.SetMaxSockets(n)
}
