package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"vigil/core/zmq"
)

// Why this file: the keys for a bind that other hosts can reach. A key file
// has lines of a word and a key: secret and public are the owner's own, client
// is a key that a server lets in (none: everybody who knows its public key),
// server is the public key of the server that a worker connects to. A line
// that begins with # says nothing.

func newKeygen(s *streams) *cobra.Command {
	var out, server string
	cmd := &cobra.Command{
		Use:   "keygen",
		Short: "Make CURVE keys, for a server that is bound to more than this host",
		Example: `  server keygen -o server.key
  server keygen -o worker.key --server 'PUBLIC KEY OF THE SERVER'
  echo "client PUBLIC KEY OF THE WORKER" >> server.key`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			public, secret, err := zmq.NewCurveKeys()
			if err != nil {
				return err
			}
			var b strings.Builder
			b.WriteString("# CURVE keys of vigil. The secret one is nobody else's business.\n")
			fmt.Fprintf(&b, "public %s\nsecret %s\n", public, secret)
			if server != "" {
				fmt.Fprintf(&b, "server %s\n", server)
			}
			if out == "" {
				_, err := fmt.Fprint(s.out, b.String())
				return err
			}
			f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return fmt.Errorf("keygen: %w; keys are never written over", err)
			}
			if _, err = f.WriteString(b.String()); err == nil {
				err = f.Close()
			}
			if err != nil {
				return fmt.Errorf("keygen: %w", err)
			}
			fmt.Fprintln(s.out, "public", public)
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the keys to `FILE`, which must not be there yet")
	cmd.Flags().StringVar(&server, "server", "", "add the public `KEY` of the server, for a worker's file")
	return cmd
}

// readKeyFile reads a key file. It must be for its owner's eyes only.
func readKeyFile(path string, server bool) (zmq.Curve, error) {
	var c zmq.Curve
	f, err := os.Open(path)
	if err != nil {
		return c, fmt.Errorf("curve-key-file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return c, fmt.Errorf("curve-key-file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return c, fmt.Errorf("curve-key-file: others can read %s; chmod 600 it, and make new keys if they may have", path)
	}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		// An error never shows a key: it ends in a log.
		if len(words) != 2 || len(words[1]) != 40 {
			return c, fmt.Errorf("curve-key-file: %s:%d: must be a word and a key of 40 characters", path, n)
		}
		switch words[0] {
		case "public":
			c.PublicKey = words[1]
		case "secret":
			c.SecretKey = words[1]
		case "server":
			c.ServerKey = words[1]
		case "client":
			c.Clients = append(c.Clients, words[1])
		default:
			return c, fmt.Errorf("curve-key-file: %s:%d: %q is none of public, secret, server, client", path, n, words[0])
		}
	}
	if err := lines.Err(); err != nil {
		return c, fmt.Errorf("curve-key-file: %s: %w", path, err)
	}
	switch {
	case c.SecretKey == "" || c.PublicKey == "":
		return c, fmt.Errorf("curve-key-file: %s has no public and secret key; server keygen makes them", path)
	case server:
		c.PublicKey, c.ServerKey = "", ""
	case c.ServerKey == "":
		return c, fmt.Errorf("curve-key-file: %s does not say the server's public key; add a line: server KEY", path)
	default:
		c.Clients = nil
	}
	return c, nil
}
