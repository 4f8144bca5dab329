package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"vigil/realgpu/cuda"
	"vigil/realgpu/hostshm"
)

// Why this file: whether this program does on a real device what it does over
// the stand-in, found out in a few minutes on a machine that is lent for them.
// scripts/device-check carries it there; docs/gpu.md has the report's meaning.

// exitCheck: something on the device is not as it has to be.
const exitCheck = 6

type checkConfig struct {
	memory  memoryWish
	nvml    string
	report  string
	as      string // what this process is: "" is the check itself
	reduced bool   // small, for the stand-in
	limit   time.Duration
	self    string
}

func newDeviceCheck(s *streams) *cobra.Command {
	c := &checkConfig{memory: memoryWish{backend: backendCUDA}}
	cmd := &cobra.Command{
		Use:    "device-check",
		Hidden: true,
		Short:  "Find out what a device and its driver really do, and whether a server on it keeps its word",
		Long: `Run a server and workers on a device of this machine: store, retrieve, verify
every byte, kill one and see its memory come back by the device's own word,
register again; ask the driver what it does in the cases that the manual leaves
open; and measure stores and retrieves against plain copies. It writes a report
as JSON. Exit code 6: something is not as it has to be.`,
		Example: `  server device-check --report device.json
  server device-check --reduced --cuda-library bin/libcuda-standin.so --nvml-library bin/libnvidia-ml-standin.so`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if c.self, err = os.Executable(); err != nil {
				return err
			}
			switch kind, name, _ := strings.Cut(c.as, ":"); kind {
			case "":
				return c.run(s)
			case "exporter":
				return c.export(os.Stdin, s.out)
			case "fact":
				return c.answer(name, s.out)
			case "copies":
				return c.measureCopies(s.out)
			}
			return fmt.Errorf("--as: %w", unknownName(c.as, []string{"exporter", "fact:NAME", "copies"}))
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.memory.library, "cuda-library", "", "the driver's `LIBRARY`, in place of "+cuda.Library)
	f.StringVar(&c.nvml, "nvml-library", "", "the watching `LIBRARY`, in place of the system's")
	f.IntVar(&c.memory.device, "device", 0, "check the device with this `NUMBER`")
	f.StringVar(&c.report, "report", "-", "write the report into `FILE`, - for standard output")
	f.BoolVar(&c.reduced, "reduced", false, "small sizes and short times, for the stand-in driver")
	f.DurationVar(&c.limit, "limit", 210*time.Second, "what has not been found out after this `TIME` is left out, and said to be")
	f.StringVar(&c.as, "as", "", "")
	f.MarkHidden("as")
	return cmd
}

// args are the flags that a process of the check hands on to another.
func (c *checkConfig) args() []string {
	args := []string{"--device", fmt.Sprint(c.memory.device), fmt.Sprintf("--reduced=%t", c.reduced)}
	if c.memory.library != "" {
		args = append(args, "--cuda-library", c.memory.library)
	}
	return args
}

// The sizes. What is asked of a real device is long enough to be seen, and
// short enough for the loan.
func (c *checkConfig) factBytes() uint64 {
	if c.reduced {
		return 1 << 20
	}
	return 256 << 20
}

func (c *checkConfig) copyRounds() int {
	if c.reduced {
		return 4000
	}
	return 400
}

func (c *checkConfig) closeAfter() time.Duration {
	if c.reduced {
		return 20 * time.Millisecond
	}
	return 600 * time.Millisecond
}

// deviceReport is what the check writes.
type deviceReport struct {
	Version int         `json:"version"`
	When    string      `json:"when"`
	Program string      `json:"program"`
	Verdict string      `json:"verdict"` // pass, fail, or incomplete
	StandIn bool        `json:"stand_in"`
	Library string      `json:"library"`
	CUDA    string      `json:"cuda"`
	Driver  string      `json:"driver"`
	Watch   string      `json:"watch"`
	CPUs    int         `json:"cpus"`
	Devices []devSeen   `json:"devices"`
	Steps   []checkStep `json:"steps"`
	Facts   []fact      `json:"facts"`
	Rates   []rate      `json:"rates"`
	Left    []string    `json:"left_out,omitempty"`
	Seconds float64     `json:"seconds"`
}

type devSeen struct {
	Ordinal int    `json:"ordinal"`
	UUID    string `json:"uuid"`
	Name    string `json:"name"`
	Bytes   uint64 `json:"bytes"`
}

// checkStep is one thing that has to be so.
type checkStep struct {
	Name    string  `json:"name"`
	OK      bool    `json:"ok"`
	Detail  string  `json:"detail"`
	Seconds float64 `json:"seconds"`
}

// rate is what copies of one block size reach, in bytes a second.
type rate struct {
	Level         string  `json:"level"` // backend, or server
	Block         int     `json:"block_bytes"`
	PlainOut      float64 `json:"plain_from_device"`
	PlainIn       float64 `json:"plain_to_device"`
	Store         float64 `json:"store"`
	Retrieve      float64 `json:"retrieve"`
	StoreShare    float64 `json:"store_share"` // of the plain copies
	RetrieveShare float64 `json:"retrieve_share"`
}

func printJSON(out io.Writer, v any) error { return json.NewEncoder(out).Encode(v) }

// run is the check.
func (c *checkConfig) run(s *streams) error {
	began := time.Now()
	r := &deviceReport{Version: 1, When: began.UTC().Format(time.RFC3339), Program: versionOf().Version + " " + versionOf().Commit, CPUs: runtime.NumCPU()}
	say := func(format string, args ...any) {
		fmt.Fprintf(s.err, "%6.1fs  "+format+"\n", append([]any{time.Since(began).Seconds()}, args...)...)
	}
	d, err := cuda.Shared(c.memory.library)
	if err == nil {
		err = c.describe(r, d)
	}
	if err != nil {
		return fmt.Errorf("device-check: %w", err)
	}
	say("%s, CUDA %s: %s", r.Library, r.CUDA, r.Devices[c.memory.device].Name)
	late := func(what string) bool {
		if time.Since(began) < c.limit {
			return false
		}
		r.Left = append(r.Left, what)
		return true
	}
	// What must be so comes first, then what is cheap to ask, then figures.
	c.story(r, say)
	for _, q := range questions {
		if late("fact " + q.name) {
			continue
		}
		f := c.askApart(q.name)
		r.Facts = append(r.Facts, f)
		say("%s: %s%s %s", f.Name, f.Result, map[bool]string{true: " FAILED " + f.Failed}[f.Failed != ""], f.Answer)
	}
	if !late("rates of the backend") {
		r.Rates = append(r.Rates, c.copiesApart(r, say)...)
	}
	if r.StandIn { // memory of killed processes, which a real driver takes back itself
		hostshm.Sweep("", "vigil-standin")
	}
	c.share(r)
	r.Verdict = "pass"
	for _, step := range r.Steps {
		if !step.OK {
			r.Verdict = "fail"
		}
	}
	if r.Verdict == "pass" && len(r.Left) > 0 {
		r.Verdict = "incomplete"
	}
	r.Seconds = seconds(time.Since(began))
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = writeReport(c.report, append(text, '\n'), s.out)
	}
	if err != nil {
		return err
	}
	say("verdict: %s", r.Verdict)
	if r.Verdict == "fail" {
		return &ending{exitCheck}
	}
	return nil
}

// leastShare is what stores and retrieves must reach of plain copies.
const leastShare = 0.8

// share holds the rates of whole requests against the plain copies, and judges
// those of the backend. On the stand-in nothing about speed is judged.
func (c *checkConfig) share(r *deviceReport) {
	for i := range r.Rates {
		x := &r.Rates[i]
		for k := range r.Rates {
			if y := &r.Rates[k]; x.Level == "server" && y.Level == "backend" && y.Block == x.Block {
				x.PlainOut, x.PlainIn = y.PlainOut, y.PlainIn
				x.StoreShare, x.RetrieveShare = x.Store/x.PlainOut, x.Retrieve/x.PlainIn
			}
		}
		if x.Level != "backend" || c.reduced {
			continue
		}
		r.Steps = append(r.Steps, checkStep{
			Name:   fmt.Sprintf("blocks of %s are stored and retrieved at %.0f%% of plain copies or more", size(uint64(x.Block)), 100*leastShare),
			OK:     x.StoreShare >= leastShare && x.RetrieveShare >= leastShare,
			Detail: fmt.Sprintf("%.0f%% and %.0f%%", 100*x.StoreShare, 100*x.RetrieveShare),
		})
	}
}

// writeReport writes beside and renames, so that nobody reads half of one.
func writeReport(path string, text []byte, out io.Writer) error {
	if path == "-" {
		_, err := out.Write(text)
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (c *checkConfig) describe(r *deviceReport, d *cuda.Driver) error {
	r.Library, r.CUDA, r.Driver = d.Path, fmt.Sprintf("%d.%d", d.Version/1000, d.Version%1000/10), driverFound()
	list, err := d.Devices()
	if err != nil {
		return err
	}
	if c.memory.device >= len(list) {
		return fmt.Errorf("there is no device %d; there are %d", c.memory.device, len(list))
	}
	for _, x := range list {
		r.Devices = append(r.Devices, devSeen{x.Ordinal, x.UUID.String(), x.Name, x.Bytes})
		r.StandIn = r.StandIn || strings.Contains(x.Name, "stand-in")
	}
	return nil
}

// apart runs this program as something else and returns what it printed.
func (c *checkConfig) apart(as string, wait time.Duration) ([]byte, error) {
	cmd := exec.Command(c.self, append([]string{"device-check", "--as", as}, c.args()...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	timer := time.AfterFunc(wait, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	err := cmd.Wait()
	if !timer.Stop() {
		return nil, fmt.Errorf("it has not ended in %s", wait)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, oneLine(errs.String()))
	}
	return out.Bytes(), nil
}

// factWait bounds one question: a driver that hangs is an answer too.
const factWait = 20 * time.Second

func (c *checkConfig) askApart(name string) fact {
	out, err := c.apart("fact:"+name, factWait)
	var f fact
	if err == nil {
		err = json.Unmarshal(out, &f)
	}
	if err != nil {
		f = fact{Name: name, Failed: oneLine(err.Error())}
	}
	return f
}

func (c *checkConfig) copiesApart(r *deviceReport, say func(string, ...any)) (list []rate) {
	out, err := c.apart("copies", time.Minute)
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil {
		r.Steps = append(r.Steps, checkStep{Name: "rates of the backend", Detail: oneLine(err.Error())})
		return nil
	}
	for _, x := range list {
		say("blocks of %s: plain %s/s out and %s/s in; store %.0f%%, retrieve %.0f%%", size(uint64(x.Block)), size(uint64(x.PlainOut)), size(uint64(x.PlainIn)), 100*x.StoreShare, 100*x.RetrieveShare)
	}
	return list
}

// folder of the run's sockets.
func checkFolder() (string, error) {
	dir, err := os.MkdirTemp("", "vigil-device-check-")
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(filepath.Join(dir, "s"), 0o700)
}
