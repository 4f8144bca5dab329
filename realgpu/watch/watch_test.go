package watch

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Over the stand-in's watching library (realgpu/standin); server and workers
// over both of its libraries are in cmd/server's tests.

var folder string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("/dev/shm", "vigil-standin-test-")
	if err == nil {
		folder = dir
		os.Setenv("VIGIL_STANDIN_STATE", filepath.Join(dir, "state"))
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var built = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("../../scripts/standin", folder).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(folder, "libnvidia-ml-standin.so"), nil
})

func faults(t *testing.T, lines ...string) {
	t.Helper()
	path := filepath.Join(folder, "state.faults")
	err := os.WriteFile(path+".new", []byte(strings.Join(lines, "\n")+"\n"), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(path) })
}

func open(t *testing.T, o Options) *Watch {
	t.Helper()
	var err error
	if o.Library, err = built(); err != nil {
		t.Skip(err)
	}
	o.Every = 5 * time.Millisecond
	w, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("it never came: %s", what)
		}
	}
}

// Both devices are read, again and again; a process without a context has no
// figure of its own, and that is said and not 0.
func TestDevicesAreRead(t *testing.T) {
	w := open(t, Options{})
	list, _ := w.Read()
	if len(list) != 2 || list[1].Index != 1 || list[1].Name != "vigil stand-in device" || list[1].UUID != "GPU-76696769-6c2d-7374-616e-642d696e0001" || list[0].Total != 8<<30 || list[0].Used != 0 || list[0].OwnKnown {
		t.Errorf("%+v", list)
	}
	if w.Driver != "vigil stand-in" || len(w.Missing) != 0 {
		t.Errorf("driver %q, missing %v", w.Driver, w.Missing)
	}
	until(t, "a new reading", func() bool { _, age := w.Read(); return age < 5*time.Millisecond })
	if bytes, known := own([]nvml.ProcessInfo{{Pid: 1, UsedGpuMemory: 7}, {Pid: 2, UsedGpuMemory: 5}, {Pid: 1, UsedGpuMemory: 3}}, 1); bytes != 10 || !known {
		t.Errorf("%d, %v", bytes, known)
	}
	if bytes, known := own([]nvml.ProcessInfo{{Pid: 1, UsedGpuMemory: ^uint64(0)}}, 1); bytes != 0 || known {
		t.Errorf("a figure that the library does not know passes for %d, %v", bytes, known)
	}
}

// A device that the library calls lost is told of once, and the other is read on.
func TestADeviceThatIsLost(t *testing.T) {
	var mu sync.Mutex
	var told []string
	w := open(t, Options{OnLost: func(uuid string, why error) {
		mu.Lock()
		told = append(told, uuid+": "+why.Error())
		mu.Unlock()
	}})
	faults(t, "nvmlDeviceGetMemoryInfo device=0 result=15")
	until(t, "the loss", func() bool { list, _ := w.Read(); return list[0].Lost != "" })
	w.lose(0, errors.New("said again"))
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 1 || told[0] != "GPU-76696769-6c2d-7374-616e-642d696e0000: nvmlDeviceGetMemoryInfo: the device is lost (15)" {
		t.Errorf("told %q", told)
	}
	if list, age := w.Read(); list[1].Lost != "" || age > time.Second {
		t.Errorf("the other one: %+v, %s", list[1], age)
	}
}

// Critical errors are counted by code; one of them is the loss of the device.
func TestCriticalErrors(t *testing.T) {
	w := open(t, Options{})
	faults(t, "xid device=1 code=63", "xid device=1 code=63 serial=2", "xid device=0 code=79")
	until(t, "three errors", func() bool {
		list, _ := w.Read()
		return len(list[1].XIDs) == 1 && list[1].XIDs[0] == XID{63, 2} && list[0].Lost != ""
	})
	if list, _ := w.Read(); list[1].Lost != "" || !strings.Contains(list[0].Lost, "XID 79") {
		t.Errorf("%+v", list)
	}
	for code := range uint64(3 * MaxCodes) {
		w.struck(1, 1000+code)
	}
	if list, _ := w.Read(); len(list[1].XIDs) != MaxCodes {
		t.Errorf("%d codes are kept", len(list[1].XIDs))
	}
}

// Whatever is missing is one line, and no end of the process.
func TestLibrariesThatAreNone(t *testing.T) {
	for library, want := range map[string]string{
		"libnowhere.so":     "libnowhere.so was not found, or is none",
		"/proc/self/status": "/proc/self/status was not found, or is none",
	} {
		if _, err := Open(Options{Library: library}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", library, err)
		}
	}
	library, err := built()
	if err != nil {
		t.Skip(err)
	}
	for line, want := range map[string]string{
		"nvmlInit_v2 result=9":           ": nvmlInit: an error of the stand-in (9)",
		"nvmlDeviceGetCount_v2 result=3": ": nvmlDeviceGetCount: an error of the stand-in (3)",
	} {
		faults(t, line)
		if _, err := Open(Options{Library: library}); err == nil || err.Error() != library+want {
			t.Errorf("%s: %v", line, err)
		}
	}
	os.Remove(filepath.Join(folder, "state.faults"))
}

// An old library does without what it does not have, and says so once. This one
// is the stand-in without its events and processes.
func TestAnOldLibrary(t *testing.T) {
	if _, err := built(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	old := filepath.Join(dir, "libold.so")
	out, err := exec.Command("gcc", "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-shared", "-pthread", "-o", old, "-I../standin",
		"-DnvmlEventSetCreate=renamed_a", "-DnvmlDeviceGetComputeRunningProcesses_v3=renamed_b", "../standin/state.c", "../standin/nvml.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var log strings.Builder
	w, err := Open(Options{Library: old, Log: slog.New(slog.NewTextHandler(&log, nil)), Every: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if list, _ := w.Read(); len(list) != 2 || list[0].Total == 0 || list[0].OwnKnown {
		t.Errorf("%+v", list)
	}
	if want := "[nvmlDeviceGetComputeRunningProcesses nvmlEventSetCreate]"; fmt.Sprint(w.Missing) != want || strings.Count(log.String(), "lacks calls") != 1 {
		t.Errorf("missing %v\n%s", w.Missing, log.String())
	}
	none := filepath.Join(dir, "libnone.so")
	if out, err := exec.Command("gcc", "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-shared", "-pthread", "-o", none, "-I../standin",
		"-DnvmlDeviceGetMemoryInfo=renamed", "../standin/state.c", "../standin/nvml.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := Open(Options{Library: none}); err == nil || !strings.HasSuffix(err.Error(), "has no nvmlDeviceGetMemoryInfo: it is too old") {
		t.Errorf("a library without the one call that counts: %v", err)
	}
}
