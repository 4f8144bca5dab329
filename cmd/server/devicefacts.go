package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"vigil/realgpu"
	"vigil/realgpu/cuda"
)

// Why this file: what the driver really does, one question each. A question may
// leave its context broken, so each has a process of its own; memory of others
// is made by yet another one, which can be killed.

// fact is an answer.
type fact struct {
	Name     string  `json:"name"`
	Question string  `json:"question"`
	Answer   string  `json:"answer"`
	Result   string  `json:"result,omitempty"` // of the call that the question is about
	Seconds  float64 `json:"seconds"`
	Failed   string  `json:"failed,omitempty"` // why there is no answer
}

// questions are those that can be asked, in their order.
var questions = []struct {
	name, question string
	ask            func(*asker) (answer string, err error)
}{
	{"double-open", "a handle is opened twice in one context: the same address, and counted?", askDoubleOpen},
	{"close-too-often", "a mapping is closed once more than it was opened", askCloseTooOften},
	{"own-handle", "a process opens its own handle", askOwnHandle},
	{"no-handle", "64 bytes that are no handle are opened", askNoHandle},
	{"same-handle", "a handle asked for twice has the same bytes, and one to the middle of an allocation names its begin", askSameHandle},
	{"owner-killed", "the owner is killed while its memory is open: do the bytes stay, and the charge, until the close?", askOwnerKilled},
	{"open-after-death", "the owner is dead: can its handle be opened while another mapping of it is open, and after?", askOpenAfterDeath},
	{"owner-frees", "the owner frees while its memory is open: can it be read, and when is the charge gone?", askOwnerFrees},
	{"close-under-copy", "a mapping is closed while a copy uses it: does the close wait, and is the copy whole?", askCloseUnderCopy},
	{"open-after-free", "a handle of memory that was freed is opened", askOpenAfterFree},
	{"register-twice", "host memory is pinned twice, and let go twice", askRegisterTwice},
	{"other-device", "a handle is opened in the context of another device", askOtherDevice},
}

// asker is the process of one question.
type asker struct {
	c      *checkConfig
	driver *cuda.Driver
	probe  *cuda.Probe
	result string
}

// note keeps the result that the question is about.
func (a *asker) note(err error) { a.result = cuda.ResultOf(err) }

// answer asks one question in this process and prints the fact.
func (c *checkConfig) answer(name string, out io.Writer) error {
	for _, q := range questions {
		if q.name != name {
			continue
		}
		f := fact{Name: q.name, Question: q.question}
		began := time.Now()
		d, err := cuda.Shared(c.memory.library)
		a := &asker{c: c, driver: d}
		if err == nil {
			a.probe, err = cuda.NewProbe(d, c.memory.device)
		}
		if err == nil {
			f.Answer, err = q.ask(a)
		}
		if err != nil {
			f.Failed = oneLine(err.Error())
		}
		f.Result, f.Seconds = a.result, seconds(time.Since(began))
		return printJSON(out, f)
	}
	return unknownName(name, questionNames())
}

func questionNames() (list []string) {
	for _, q := range questions {
		list = append(list, q.name)
	}
	return list
}

// exporter is a process that makes device memory and can be killed.
type exporter struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

// export is the life of such a process: it does what its input says.
//
//	alloc BYTES SEED   answers a handle
//	free N             frees the n-th
func (c *checkConfig) export(in io.Reader, out io.Writer) error {
	d, err := cuda.Shared(c.memory.library)
	if err != nil {
		return err
	}
	o, err := cuda.NewOwner(d, c.memory.device)
	if err != nil {
		return err
	}
	var list []*cuda.Allocation
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var a, b uint64
		word := ""
		fmt.Sscan(lines.Text(), &word, &a, &b)
		switch word {
		case "alloc":
			m, err := o.Alloc(a)
			if err == nil {
				pattern := make([]byte, a)
				realgpu.Fill(pattern, b)
				err = m.Write(0, pattern)
			}
			if err != nil {
				return err
			}
			list = append(list, m)
			h := m.Handle()
			fmt.Fprintf(out, "%x\n", h[:])
		case "free":
			if a >= uint64(len(list)) {
				return fmt.Errorf("there is no allocation %d", a)
			}
			if err := list[a].Free(); err != nil {
				return err
			}
			fmt.Fprintln(out, "freed")
		}
	}
	return nil
}

func (c *checkConfig) startExporter() (*exporter, error) {
	cmd := exec.Command(c.self, append([]string{"device-check", "--as", "exporter"}, c.args()...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &exporter{cmd, in, bufio.NewReader(out)}, nil
}

func (e *exporter) ask(format string, args ...any) (string, error) {
	fmt.Fprintf(e.in, format+"\n", args...)
	line, err := e.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("the process that makes memory has ended: %w", err)
	}
	return strings.TrimSpace(line), nil
}

func (e *exporter) alloc(bytes, seed uint64) (h cuda.Handle, err error) {
	line, err := e.ask("alloc %d %d", bytes, seed)
	if err != nil {
		return h, err
	}
	b, err := hex.DecodeString(line)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("no handle: %q", line)
	}
	return cuda.Handle(b), nil
}

func (e *exporter) kill() {
	e.cmd.Process.Kill()
	e.cmd.Wait()
}

// theirs is memory of another process, of the size that questions use.
func (a *asker) theirs() (*exporter, cuda.Handle, error) {
	e, err := a.c.startExporter()
	if err != nil {
		return nil, cuda.Handle{}, err
	}
	h, err := e.alloc(a.c.factBytes(), 7)
	return e, h, err
}

// whole reads an address and says whether it holds the pattern.
func (a *asker) whole(address uint64) (string, error) {
	b := make([]byte, a.c.factBytes())
	if err := a.probe.Read(address, b); err != nil {
		return "reading it fails with " + cuda.ResultOf(err), err
	}
	if at := realgpu.Mismatch(b, 7); at >= 0 {
		return fmt.Sprintf("its bytes are wrong from %d on", at), nil
	}
	return "its bytes are right", nil
}

// free is what nobody has; a figure for answers.
func (a *asker) free() uint64 {
	free, _, err := a.probe.Free()
	if err != nil {
		return 0
	}
	return free
}

// less says how much less is free than before.
func less(before, now uint64) string {
	if now >= before {
		return fmt.Sprintf("%s less in use", size(now-before))
	}
	return fmt.Sprintf("%s more in use", size(before-now))
}

func askDoubleOpen(a *asker) (string, error) {
	e, h, err := a.theirs()
	if err != nil {
		return "", err
	}
	defer e.kill()
	before := a.free()
	one, err := a.probe.Open(h)
	if err != nil {
		return "", err
	}
	first := a.free()
	two, err := a.probe.Open(h)
	a.note(err)
	if err != nil {
		return "the second open is refused", nil
	}
	answer := fmt.Sprintf("same address: %t; after the first open %s, after the second %s", one == two, less(before, first), less(before, a.free()))
	if err := a.probe.Close(one); err != nil {
		return answer + "; the first close fails with " + cuda.ResultOf(err), nil
	}
	text, _ := a.whole(two)
	answer += "; after one close " + text
	err = a.probe.Close(two)
	_, _, gone := a.probe.Range(two)
	return fmt.Sprintf("%s; the second close gives %s, and then the address gives %s", answer, cuda.ResultOf(err), cuda.ResultOf(gone)), nil
}

func askCloseTooOften(a *asker) (string, error) {
	e, h, err := a.theirs()
	if err != nil {
		return "", err
	}
	defer e.kill()
	at, err := a.probe.Open(h)
	if err != nil {
		return "", err
	}
	if err := a.probe.Close(at); err != nil {
		return "", err
	}
	err = a.probe.Close(at)
	a.note(err)
	again, open := a.probe.Open(h)
	text := ""
	if open == nil {
		text, _ = a.whole(again)
	}
	return fmt.Sprintf("opening again after it gives %s; %s", cuda.ResultOf(open), text), nil
}

func askOwnHandle(a *asker) (string, error) {
	m, err := a.probe.Owner().Alloc(a.c.factBytes())
	if err != nil {
		return "", err
	}
	_, err = a.probe.Open(m.Handle())
	a.note(err)
	return "refused: " + strconv.FormatBool(err != nil), nil
}

func askNoHandle(a *asker) (string, error) {
	_, err := a.probe.Open(cuda.Handle{})
	a.note(err)
	h := cuda.Handle{}
	realgpu.Fill(h[:], 5)
	_, other := a.probe.Open(h)
	m, after := a.probe.Owner().Alloc(4096)
	if after == nil {
		after = m.Free()
	}
	return fmt.Sprintf("zeros give %s, other bytes %s; the context works after it: %t", cuda.ResultOf(err), cuda.ResultOf(other), after == nil), nil
}

func askSameHandle(a *asker) (string, error) {
	o := a.probe.Owner()
	m, err := o.Alloc(a.c.factBytes())
	if err != nil {
		return "", err
	}
	again, err := a.probe.Export(m.Address())
	if err != nil {
		return "", err
	}
	one := m.Handle()
	middle, err := a.probe.Export(m.Address() + a.c.factBytes()/2)
	a.note(err)
	answer := fmt.Sprintf("asked for twice, the bytes are equal: %t; from the middle: %s, equal: %t", one == again, cuda.ResultOf(err), middle == one)
	at := m.Address()
	if err := m.Free(); err != nil {
		return answer, err
	}
	if m, err = o.Alloc(a.c.factBytes()); err != nil {
		return answer, err
	}
	other := m.Handle()
	return fmt.Sprintf("%s; made anew (at the same address: %t), the bytes differ: %t", answer, m.Address() == at, !bytes.Equal(one[:], other[:])), nil
}

func askOwnerKilled(a *asker) (string, error) {
	before := a.free()
	e, h, err := a.theirs()
	if err != nil {
		return "", err
	}
	at, err := a.probe.Open(h)
	if err != nil {
		e.kill()
		return "", err
	}
	open := a.free()
	e.kill()
	text, err := a.whole(at)
	a.note(err)
	killed := a.free()
	began := time.Now()
	err = a.probe.Close(at)
	took := time.Since(began)
	closed := a.free()
	return fmt.Sprintf("%s; before the owner came, %s while open, %s when it was dead, %s after the close, which gave %s in %s",
		text, less(before, open), less(before, killed), less(before, closed), cuda.ResultOf(err), took.Round(10*time.Microsecond)), nil
}

func askOpenAfterDeath(a *asker) (string, error) {
	e, h, err := a.theirs()
	if err != nil {
		return "", err
	}
	at, err := a.probe.Open(h)
	if err != nil {
		e.kill()
		return "", err
	}
	e.kill()
	again, err := a.probe.Open(h)
	a.note(err)
	answer := fmt.Sprintf("while a mapping is open: %s, same address: %t", cuda.ResultOf(err), again == at)
	if err == nil {
		a.probe.Close(again)
	}
	if err := a.probe.Close(at); err != nil {
		return answer, err
	}
	_, err = a.probe.Open(h)
	return answer + "; when nothing is open any more: " + cuda.ResultOf(err), nil
}

func askOwnerFrees(a *asker) (string, error) {
	e, h, err := a.theirs()
	if err != nil {
		return "", err
	}
	defer e.kill()
	before := a.free()
	at, err := a.probe.Open(h)
	if err != nil {
		return "", err
	}
	if _, err := e.ask("free 0"); err != nil {
		return "", err
	}
	freed := a.free()
	text, err := a.whole(at)
	a.note(err)
	err = a.probe.Close(at)
	return fmt.Sprintf("%s; %s when it was freed, %s after the close, which gave %s", text, less(before, freed), less(before, a.free()), cuda.ResultOf(err)), nil
}

func askCloseUnderCopy(a *asker) (string, error) {
	e, h, err := a.theirs()
	if err != nil {
		return "", err
	}
	defer e.kill()
	at, err := a.probe.Open(h)
	if err != nil {
		return "", err
	}
	// So many rounds that the close comes well inside of them.
	times := a.c.copyRounds()
	type end struct {
		at  time.Time
		err error
	}
	copied := make(chan end, 1)
	began := time.Now()
	go func() {
		_, err := a.probe.Rate(at, a.c.factBytes(), int(a.c.factBytes()), times, false)
		copied <- end{time.Now(), err}
	}()
	time.Sleep(a.c.closeAfter())
	asked := time.Now()
	err = a.probe.Close(at)
	a.note(err)
	closed := time.Now()
	c := <-copied
	return fmt.Sprintf("the close was asked for at %s, ended at %s; the copies ended at %s with %s",
		asked.Sub(began).Round(100*time.Microsecond), closed.Sub(began).Round(100*time.Microsecond), c.at.Sub(began).Round(100*time.Microsecond), cuda.ResultOf(c.err)), nil
}

func askOpenAfterFree(a *asker) (string, error) {
	e, h, err := a.theirs()
	if err != nil {
		return "", err
	}
	defer e.kill()
	if _, err := e.ask("free 0"); err != nil {
		return "", err
	}
	_, err = a.probe.Open(h)
	a.note(err)
	return "refused: " + strconv.FormatBool(err != nil), nil
}

func askRegisterTwice(a *asker) (string, error) {
	b, err := syscall.Mmap(-1, 0, 1<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return "", err
	}
	defer syscall.Munmap(b)
	if err := a.probe.Register(b); err != nil {
		return "", err
	}
	err = a.probe.Register(b)
	a.note(err)
	one, two := a.probe.Unregister(b), a.probe.Unregister(b)
	return fmt.Sprintf("letting go gives %s, once more %s", cuda.ResultOf(one), cuda.ResultOf(two)), nil
}

func askOtherDevice(a *asker) (string, error) {
	list, err := a.driver.Devices()
	if err != nil {
		return "", err
	}
	if len(list) < 2 {
		return "there is one device only", nil
	}
	e, h, err := a.theirs()
	if err != nil {
		return "", err
	}
	defer e.kill()
	other, err := cuda.NewProbe(a.driver, (a.c.memory.device+1)%len(list))
	if err != nil {
		return "", err
	}
	at, err := other.Open(h)
	a.note(err)
	if err != nil {
		return "refused", nil
	}
	a.probe = other
	text, _ := a.whole(at)
	return "opened; " + text, nil
}
