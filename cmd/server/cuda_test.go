package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vigil/realgpu/hostshm"
)

// Why this file: server and workers on device memory, over the stand-in driver
// (realgpu/standin), in processes of their own.

// device is a world of the stand-in.
type device struct {
	t             testing.TB
	dir           string
	library, nvml string
}

func standIn(t testing.TB) *device {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "vigil-standin-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		os.RemoveAll(dir)
		hostshm.Sweep("", "vigil-standin") // of processes that were killed when nobody was left to bury them
	})
	libraries, err := standInBuilt()
	if err != nil {
		t.Fatal(err)
	}
	return &device{t, dir, filepath.Join(libraries, "libcuda-standin.so"), filepath.Join(libraries, "libnvidia-ml-standin.so")}
}

// standInBuilt builds the stand-in once; TestMain removes it.
var standInBuilt = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "vigil-standin-test-")
	if err != nil {
		return "", err
	}
	standInFolder = dir
	if out, err := exec.Command("../../scripts/standin", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
})

var standInFolder string

func (d *device) program(args ...string) *exec.Cmd {
	cmd := program(d.t, args...)
	cmd.Env = append(cmd.Env, "VIGIL_STANDIN_STATE="+filepath.Join(d.dir, "state"))
	return cmd
}

// faults has the stand-in make trouble; none ends it.
func (d *device) faults(lines ...string) {
	d.t.Helper()
	path := filepath.Join(d.dir, "state.faults")
	if err := os.WriteFile(path+".new", []byte(strings.Join(lines, "\n")+"\n"), 0o600); err == nil {
		err = os.Rename(path+".new", path)
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *device) serve(args ...string) *rig {
	d.t.Helper()
	bind := "ipc://" + filepath.Join(d.dir, "s", "socket")
	c := begin(d.t, d.program(append([]string{
		"run", "--bind", bind, "--http", "127.0.0.1:0", "--cuda-library", d.library, "--nvml-library", d.nvml,
		"--time-scale", strconv.Itoa(scale), "--pool-bytes", "16MiB", "--l1-bytes", "64MiB",
	}, args...)...))
	r := &rig{child: c, bind: bind, dir: d.dir}
	r.http, _ = c.logged("serving")["http"].(string)
	return r
}

func (d *device) worker(r *rig, args ...string) *child {
	d.t.Helper()
	return begin(d.t, d.program(append([]string{
		"worker", "--connect", r.bind, "--cuda-library", d.library, "--time-scale", strconv.Itoa(scale), "--every", "3s", "--blocks", "128",
	}, args...)...))
}

// until asks for the status until it is as wanted.
func (r *rig) until(what string, want func(*statusPage) bool) *statusPage {
	r.t.Helper()
	for limit := time.Now().Add(20 * time.Second); ; {
		p := r.status()
		if want(p) {
			return p
		}
		if time.Now().After(limit) {
			text, _ := json.Marshal(p)
			r.t.Fatalf("it never came: %s; the status is %s", what, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Two workers store and retrieve through device memory and verify every byte;
// one is killed, and its bytes are back on the device, by the device's own
// word; the server leaves the device as it found it.
func TestADeadWorkersBytesAreBackOnTheDevice(t *testing.T) {
	d := standIn(t)
	r := d.serve()
	if got := r.logged("backend: ")["msg"]; got != "backend: cuda, because "+d.library+" shows 2 devices" {
		t.Errorf("it says %q", got)
	}
	p := r.until("a reading of the devices", func(p *statusPage) bool {
		return len(p.Devices) == 2 && p.Devices[0].Unexplained != nil
	})
	if p.Server.Backend != "cuda" || p.Watch.State != "on" || p.Devices[0].Name != "vigil stand-in device" {
		t.Errorf("the status says %+v, %+v, %+v", p.Server, p.Watch, p.Devices[0])
	}
	r.mu.Lock()
	if strings.Contains(r.raw.String(), "is no setting") {
		t.Error("the stand-in's own variables pass for mistyped settings")
	}
	r.mu.Unlock()
	baseline := *p.Devices[0].Used
	mine := *p.Devices[0].Own
	one, two := d.worker(r, "--model", "m"), d.worker(r, "--model", "m", "--device", "1")
	for _, w := range []*child{one, two} {
		if l := w.event("started", 1); l["backend"] != "cuda" || !strings.HasPrefix(l["segment"].(string), "GPU-") {
			t.Errorf("it says %v", l)
		}
		w.event("stored", 2)
		if l := w.event("retrieved", 2); l["verified"] != true {
			t.Errorf("it says %v", l)
		}
	}
	bytes := uint64(128 * 4096 * 2)
	p = r.until("the device's word that it is used", func(p *statusPage) bool {
		return *p.Devices[0].Used >= baseline+bytes && p.Devices[0].Open == bytes && *p.Devices[0].Own >= mine+bytes
	})
	if *p.Devices[0].Unexplained != 0 {
		t.Errorf("%d bytes are unexplained", *p.Devices[0].Unexplained)
	}
	one.Signal(syscall.SIGKILL)
	killed := time.Now()
	<-one.Done
	p = r.until("the device's word that it is free", func(p *statusPage) bool { return *p.Devices[0].Used == baseline })
	// Window, a quarter of it, and a second of real time; one reading more.
	if took := time.Since(killed); took > 150*time.Second/scale+2*time.Second {
		t.Errorf("that took %s", took)
	}
	if p.Devices[0].Open != 0 || *p.Devices[0].Own != mine || p.Devices[1].Open != bytes {
		t.Errorf("the devices: %+v", p.Devices)
	}
	if l := two.event("retrieved", two.count("retrieved")+1); l["verified"] != true {
		t.Errorf("the other worker says %v", l)
	}
	for name, want := range map[string]string{
		"vigil_device_watch 1": "", "vigil_device_lost{": "0", "vigil_device_used_bytes{": "", "vigil_device_own_bytes{": "", "vigil_device_unexplained_bytes{": "0",
	} {
		if _, text := r.get("/metrics"); !strings.Contains(text, name) {
			t.Errorf("the metrics lack %s", name+want)
		}
	}
	two.Signal(syscall.SIGTERM)
	if code := two.ended(); code != 0 {
		t.Errorf("the worker leaves with %d", code)
	}
	r.Signal(syscall.SIGTERM)
	if code := r.ended(); code != 0 {
		t.Errorf("the server leaves with %d", code)
	}
	if left, _ := filepath.Glob("/dev/shm/vigil-standin_*_" + strconv.Itoa(one.PID) + "_*"); len(left) > 0 {
		t.Errorf("device memory is left: %v", left)
	}
}

// Engine-driven workers copy for themselves, between their device and the pool.
func TestAnEngineDrivenWorkerOnADevice(t *testing.T) {
	d := standIn(t)
	r := d.serve()
	w := d.worker(r, "--mode", "engine-driven")
	w.event("stored", 1)
	if l := w.event("retrieved", 1); l["verified"] != true {
		t.Errorf("it says %v", l)
	}
	if p := r.status(); p.EngineDriven.Total != 1 || p.Memory.Mappings != 0 {
		t.Errorf("the status says %+v", p.Memory)
	}
}

// What is wrong with a device is on the status and in the metrics, and the
// other one serves on.
func TestADeviceThatFails(t *testing.T) {
	d := standIn(t)
	r := d.serve()
	one, two := d.worker(r, "--model", "a"), d.worker(r, "--model", "b", "--device", "1")
	one.event("retrieved", 1)
	two.event("retrieved", 1)
	d.faults("xid device=0 code=31", "xid device=0 code=79")
	p := r.until("the device is lost", func(p *statusPage) bool { return p.Devices[0].Lost != "" && len(p.Devices[0].XIDs) == 2 })
	if !strings.Contains(p.Devices[0].Lost, "XID 79") || p.Devices[1].Lost != "" {
		t.Errorf("the devices: %+v", p.Devices)
	}
	r.logged("cuda: a device is isolated")
	if _, text := r.get("/metrics"); !strings.Contains(text, `vigil_device_xid_total{code="79",uuid="`+p.Devices[0].UUID) {
		t.Error("the metrics lack the XID")
	}
	if l := two.event("retrieved", two.count("retrieved")+2); l["verified"] != true {
		t.Errorf("the worker on the other device: %v", l)
	}
	one.await("a request that fails", func(l map[string]any) bool { return l["event"] == "failed" || l["event"] == "missed" })
	table := begin(t, program(t, "status", "--http", r.http))
	if code := table.ended(); code != 0 {
		t.Errorf("status ends with %d", code)
	}
	table.mu.Lock()
	text := table.raw.String()
	table.mu.Unlock()
	if !strings.Contains(text, "LOST: XID 79") || !strings.Contains(text, "1 times XID 31") {
		t.Errorf("the table says:\n%s", text)
	}
}

// A close that hangs in the driver is stuck and named, with its bytes; what the
// device still holds is on the same page.
func TestACloseThatHangsInTheDriver(t *testing.T) {
	d := standIn(t)
	r := d.serve("--stop-seconds", "60", "--drain-seconds", "10")
	one, two := d.worker(r, "--model", "a"), d.worker(r, "--model", "b")
	one.event("registered", 1)
	two.event("registered", 1)
	one.event("retrieved", 1)
	d.faults("cuIpcCloseMemHandle hang count=1")
	one.Signal(syscall.SIGKILL)
	p := r.until("a stuck release", func(p *statusPage) bool { return p.Releases.Stuck == 1 })
	if p.Releases.StuckBytes != 128*4096*2 || p.Devices[0].Open != 2*128*4096*2 {
		t.Errorf("%+v, %+v", p.Releases, p.Devices[0])
	}
	if l := two.event("retrieved", two.count("retrieved")+2); l["verified"] != true {
		t.Errorf("the other worker: %v", l)
	}
	d.faults()
	r.until("its end", func(p *statusPage) bool { return p.Releases.InProgress == 0 && p.Devices[0].Open == 128*4096*2 })
}

// Without a library to watch with, one line says so and everything works.
func TestDevicesThatNobodyWatches(t *testing.T) {
	d := standIn(t)
	d.nvml = "libnowhere.so"
	r := d.serve()
	if got := r.logged("devices are not watched")["msg"].(string); !strings.Contains(got, "libnowhere.so was not found") {
		t.Errorf("it says %q", got)
	}
	w := d.worker(r)
	w.event("retrieved", 1)
	if p := r.status(); p.Watch.State != "off: libnowhere.so was not found, or is none" || p.Devices[0].Used != nil || p.Devices[0].Open == 0 {
		t.Errorf("the status says %+v, %+v", p.Watch, p.Devices[0])
	}
}

// Where the driver's library is not there, the host's shared memory is used,
// and why is the first thing that the server says.
func TestWithoutADriver(t *testing.T) {
	bind := "ipc://" + filepath.Join(t.TempDir(), "s")
	c := begin(t, program(t, "run", "--bind", bind, "--http", "127.0.0.1:0", "--l1-bytes", "64MiB", "--pool-bytes", "0"))
	got := c.logged("backend: ")["msg"]
	if got == "backend: cuda, because libcuda.so.1 shows 1 devices" {
		t.Skip("this host has a driver")
	}
	if got != "backend: hostshm, because libcuda.so.1 was not found" {
		t.Errorf("it says %q", got)
	}
	r := &rig{child: c, bind: bind}
	r.http, _ = c.logged("serving")["http"].(string)
	if p := r.status(); p.Server.Backend != "hostshm" || p.Server.Reason != "because libcuda.so.1 was not found" || p.Devices != nil {
		t.Errorf("the status says %+v", p.Server)
	}
	w := begin(t, program(t, "worker", "--connect", bind, "--every", "50ms"))
	if l := w.event("started", 1); l["backend"] != "hostshm" {
		t.Errorf("the worker says %v", l)
	}
	w.event("retrieved", 1)
}
