package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Everything that can be wrong is one line each, names the setting, and exits 1.
func TestWhatIsWrongIsOneLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	taken := file("taken", "")
	for name, c := range map[string]struct {
		args []string
		env  string
		want []string // a line each
	}{
		"unknown flag":      {args: []string{"run", "--bnd", "x"}, want: []string{"there is no flag --bnd; did you mean --bind?"}},
		"unknown command":   {args: []string{"statsu"}, want: []string{`there is no command "statsu"; did you mean "status"?`}},
		"word":              {args: []string{"run", "something"}, want: []string{"takes no arguments"}},
		"no driver":         {args: []string{"run", "--backend", "cuda", "--cuda-library", "libnowhere.so"}, want: []string{"backend cuda: libnowhere.so was not found; --backend hostshm needs no device"}},
		"no such driver":    {args: []string{"run", "--cuda-library", "libnowhere.so"}, want: []string{"cuda-library: libnowhere.so was not found; leave it away to do without"}},
		"driver for none":   {args: []string{"run", "--backend", "hostshm", "--cuda-library", "x"}, want: []string{"cuda-library is for the backend cuda"}},
		"backend":           {args: []string{"run", "--backend", "hostshmm"}, want: []string{`--backend: there is no "hostshmm"; did you mean "hostshm"?`}},
		"reap":              {args: []string{"run", "--worker-reap-timeout-seconds", "10"}, want: []string{"worker reap timeout must be 0 (disabled) or >= 30s; got 10s"}},
		"reap nan":          {args: []string{"run", "--worker-reap-timeout-seconds", "nan"}, want: []string{"--worker-reap-timeout-seconds: worker reap timeout must be a finite number"}},
		"grace":             {args: []string{"run", "--worker-registration-grace-seconds", "60"}, want: []string{"worker registration grace must be >= the worker reap timeout (120s)"}},
		"two things":        {args: []string{"run", "--worker-reap-timeout-seconds", "10", "--normal-slots", "99999"}, want: []string{"--normal-slots: must be a whole number from 0 to 4096", "worker reap timeout"}},
		"protection":        {args: []string{"run", "--protect", "boot-tokn"}, want: []string{`--protect: there is no "boot-tokn"; did you mean "boot-token"?`}},
		"both ways":         {args: []string{"run", "--protect", "boot-token", "--unprotect", "boot-token"}, want: []string{"boot-token is in both protect and unprotect"}},
		"bind":              {args: []string{"run", "--bind", "localhost"}, want: []string{`--bind: "localhost" is no endpoint`}},
		"scale in the wide": {args: []string{"run", "--bind", "tcp://0.0.0.0:5555", "--time-scale", "10"}, want: []string{"time-scale is for tests and refused on tcp://0.0.0.0:5555"}},
		"hooks in the wide": {args: []string{"run", "--bind", "tcp://*:5555", "--test-hooks"}, want: []string{"test-hooks are refused on tcp://*:5555"}},
		"hooks, wide http":  {args: []string{"run", "--http", "0.0.0.0:8080", "--test-hooks"}, want: []string{"refused with http on 0.0.0.0:8080"}},
		"http":              {args: []string{"run", "--http", "8080"}, want: []string{"--http: must be HOST:PORT"}},
		"bytes":             {args: []string{"run", "--l1-bytes", "lots"}, want: []string{"--l1-bytes: must be a number of bytes"}},
		"pool":              {args: []string{"run", "--pool-bytes", "1GiB", "--transfer-mode", "server-driven"}, want: []string{"pool-bytes is for engine-driven workers"}},
		"event log":         {args: []string{"run", "--http", "off", "--bind", "ipc://" + dir + "/x/s", "--event-log", taken}, want: []string{"give it a file that is not there yet"}},
		"no keys":           {args: []string{"run", "--curve-key-file", taken}, want: []string{"has no public and secret key"}},
		"environment":       {args: []string{"run"}, env: "VIGIL_L1_BYTES=some", want: []string{"VIGIL_L1_BYTES: must be a number of bytes"}},
		"no file":           {args: []string{"run", "--config", dir + "/none"}, want: []string{"--config: "}},
		"file: key":         {args: []string{"run", "--config", file("a.yaml", "l1_bytes: 1GiB\nbnd: x\n")}, want: []string{`a.yaml:2:1: there is no setting "bnd"; did you mean "bind"?`}},
		"file: value":       {args: []string{"run", "--config", file("b.yaml", "worker_reap_timeout_seconds: soon\n")}, want: []string{"b.yaml:1:1: worker_reap_timeout_seconds: "}},
		"file: twice":       {args: []string{"run", "--config", file("c.yaml", "http: off\nhttp: off\n")}, want: []string{"c.yaml:2:1: http is set twice"}},
		"file: nested":      {args: []string{"run", "--config", file("d.yaml", "http:\n  port: 1\n")}, want: []string{"must be a single value"}},
		"file: list":        {args: []string{"run", "--config", file("e.yaml", "- http\n")}, want: []string{"the file must be settings"}},
		"file: no YAML":     {args: []string{"run", "--config", file("f.yaml", "a: [\n")}, want: []string{"not YAML"}},
		"worker: block":     {args: []string{"worker", "--block-bytes", "100"}, want: []string{"block-bytes must be a multiple of 4 x block-tokens (64)"}},
		"worker: rank":      {args: []string{"worker", "--rank", "3"}, want: []string{"rank must be from 0 to 0; got 3"}},
		"worker: room":      {args: []string{"worker", "--chunk-tokens", "256", "--in-flight", "100"}, want: []string{"blocks must hold in-flight (100) prompts"}},
		"check: interval":   {args: []string{"check-config", "--heartbeat-interval", "50"}, want: []string{"3 x 50s = 2m30s exceeds the window of 2m0s"}},
		"check: deadline":   {args: []string{"check-config", "--heartbeat-interval", "10", "--heartbeat-timeout", "41"}, want: []string{"3 x 41s = 2m3s exceeds"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := program(t, c.args...)
			if c.env != "" {
				cmd.Env = append(cmd.Env, c.env)
			}
			got := finish(t, cmd)
			var lines []string
			for _, line := range strings.Split(strings.TrimSpace(got.err), "\n") {
				// What dead processes of other tests left behind is swept at a start.
				if !strings.Contains(line, "segments of dead processes removed") {
					lines = append(lines, line)
				}
			}
			if got.code != 1 || len(lines) != len(c.want) {
				t.Fatalf("code %d, %d lines:\n%s", got.code, len(lines), got.err)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(lines[i], "server: ") || !strings.Contains(lines[i], want) {
					t.Errorf("got  %s\nwant %s", lines[i], want)
				}
			}
		})
	}
}

// A flag goes before the environment, that before the file, that before the
// default.
func TestWhoGoesFirst(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "server.yaml")
	if err := os.WriteFile(path, []byte("# a window of one minute\nworker_reap_timeout_seconds: 60\nprotect: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, env []string
		want      string
	}{
		{nil, nil, "reap 2m0s"},
		{[]string{"--config", path}, nil, "reap 1m0s"},
		{nil, []string{"VIGIL_CONFIG=" + path}, "reap 1m0s"},
		{[]string{"--config", path}, []string{"VIGIL_WORKER_REAP_TIMEOUT_SECONDS=90"}, "reap 1m30s"},
		{[]string{"--config", path, "--worker-reap-timeout-seconds", "30"}, []string{"VIGIL_WORKER_REAP_TIMEOUT_SECONDS=90"}, "reap 30s"},
		{nil, []string{"VIGIL_PORT=tcp://10.0.0.1:5555"}, "reap 2m0s"}, // an orchestrator's
		{nil, []string{"VIGIL_BNID=x"}, "VIGIL_BNID is no setting; did you mean VIGIL_BIND?"},
		{[]string{"--heartbeat-interval", "10"}, nil, "an interval of 10s with a reply deadline of 10s is safe"},
		{[]string{"--worker-reap-timeout-seconds", "0"}, nil, "any interval"},
		{nil, nil, "safe up to 40s"},
	} {
		cmd := program(t, append([]string{"check-config"}, c.args...)...)
		cmd.Env = append(cmd.Env, c.env...)
		if got := finish(t, cmd); got.code != 0 || !strings.Contains(got.out, c.want) {
			t.Errorf("%v %v: code %d, no %q in\n%s%s", c.args, c.env, got.code, c.want, got.out, got.err)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	c := call(t, "version")
	for _, want := range []string{"go1.", "libzmq", "nvidia driver", "commit"} {
		if c.code != 0 || !strings.Contains(c.out, want) {
			t.Errorf("no %s in %+v", want, c)
		}
	}
}
