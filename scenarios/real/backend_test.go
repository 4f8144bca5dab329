package real

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vigil/core"
	"vigil/scenarios"
	"vigil/scenarios/run"
)

// The same stories on device memory, over the stand-in driver: a crash, and a
// release under a copy that runs on.
func TestStoriesOnDeviceMemory(t *testing.T) {
	program := server(t)
	dir := t.TempDir()
	if out, err := exec.Command("../../scripts/standin", dir).CombinedOutput(); err != nil {
		t.Skipf("the stand-in driver cannot be built here: %v: %s", err, out)
	}
	list, err := scenarios.Find("A1/server-driven", "A8/uuid", "B6/long-copy")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Server: program, Scale: 60, Design: "hardened", Protections: core.Hardened(), Jobs: 3, Keep: t.TempDir(),
		Backend: "cuda", Library: filepath.Join(dir, "libcuda-standin.so"),
	}
	outcomes, err := Suite(context.Background(), list, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range outcomes {
		x := &outcomes[i]
		if x.Verdict != run.Pass || len(x.Undecided) > 0 || len(x.Left) > 0 {
			tell(t, x)
			t.Errorf("%s: %s, left %v", x.Scenario.ID, x.Verdict, x.Left)
		}
		// It must have been device memory: the world of devices is in the folder.
		if _, err := os.Stat(filepath.Join(x.Folder, "devices")); err != nil {
			t.Errorf("%s: %v", x.Scenario.ID, err)
		}
	}
	if left := leftovers(t, program); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What cannot be played is refused in one line that says what can.
func TestABackendThatCannotBePlayed(t *testing.T) {
	for _, c := range []struct{ backend, library, want string }{
		{"cuda", "", "scripts/standin"},
		{"cuda", "/nowhere/libcuda-standin.so", "scripts/standin"},
		{"cuda", "/proc/self/exe", "scripts/device-check"},
		{"gpu", "", "there are hostshm and cuda"},
		{"hostshm", "x", "--cuda-library is for --backend cuda"},
	} {
		o := Options{Server: "/proc/self/exe", Scale: 60, Backend: c.backend, Library: c.library}
		if _, err := Suite(context.Background(), nil, o); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s over %q: %v", c.backend, c.library, err)
		}
	}
}
