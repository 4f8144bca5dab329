// Package servertest runs the built server in processes of its own, for tests
// that judge it from outside.
//
// Contract. Program builds vigil/cmd/server once for each test binary, with the
// race detector where the test has it; Clean, which TestMain calls at the end,
// removes it. Whatever a test begins ends with that test, and with the test
// binary too if that is killed: a process, and the segments of shared memory
// that it made. What a process says goes to the caller line by line; what is
// kept of it is the caller's business.
package servertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "vigil-server-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "server")
	args := []string{"build", "-o", path}
	if Race {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, "vigil/cmd/server")...).CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return "", fmt.Errorf("%w: %s", err, out)
	}
	folder = dir
	return path, nil
})

// folder is the folder of what was built; empty where nothing was.
var folder string

// Clean removes what was built.
func Clean() {
	if folder != "" {
		os.RemoveAll(folder)
	}
}

// Program prepares a call in an environment that says nothing of ours: no
// VIGIL_* of whoever runs the tests. The test fails where it cannot be built.
func Program(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "VIGIL_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}
