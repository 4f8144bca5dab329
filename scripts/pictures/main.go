// Command pictures makes the pictures of the documentation from real runs:
//
//	go run ./scripts/pictures          # all of them, into docs/pictures
//	go run ./scripts/pictures timeline # those whose name begins so
//
// It builds simrun, has it write each page, and photographs the page in a
// headless Chromium (VIGIL_CHROMIUM names one). The runs are named by scenario
// and seed, so a picture changes only where the run or the page does.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"vigil/reports/browser"
)

// maxBytes keeps a clone small: a picture above it is an error.
const maxBytes = 200 << 10

// picture is one picture: the call that writes the page, what is looked at,
// and what is done there before.
type picture struct {
	name   string
	call   []string // of simrun, without --html
	at     string   // the page's fragment
	view   browser.View
	do     string // code that is run in the page
	fails  bool   // the call ends with a verdict that is no pass
	expect string // words that the page must hold, or the picture shows nothing
}

var (
	resumed = []string{"run", "B1/resumed", "--design", "document", "--seed", "3"}
	desk    = browser.View{Width: 1280, Height: 830}
	dark    = browser.View{Width: 1280, Height: 830, Dark: true}
	phone   = browser.View{Width: 375, Height: 900, Mobile: true}
)

var pictures = []picture{
	{name: "timeline", call: resumed, view: desk, expect: "CONVERGE"},
	{name: "timeline-dark", call: resumed, view: dark, expect: "CONVERGE"},
	{name: "timeline-phone", call: resumed, view: phone, expect: "CONVERGE"},
	{name: "timeline-close", call: []string{"run", "A14/two-deadlines", "--design", "document", "--seed", "1"}, view: browser.View{Width: 1280, Height: 560},
		do: closeLook, expect: "PASS"},
	{name: "timeline-hang", call: []string{"run", "B2/killed", "--design", "document", "--seed", "3"}, view: browser.View{Width: 1280, Height: 900}, expect: "RECLAIM"},
	{name: "suite", call: []string{"run", "--design", "hardened", "--unprotect", "boot-token", "--seeds", "20"}, view: browser.View{Width: 1280, Height: 620}, fails: true, expect: "failed"},
}

// closeLook shows a minute in which pings wait behind look-ups.
const closeLook = `(async () => {
  const s = spacetime.shown, d = s.diagram, run = s.run;
  const waits = i => run.cls[i] === 0 ? Math.max(run.ended[i], run.handled[i]) - run.sent[i] : -1;
  let worst = 0;
  for (let i = 0; i < run.m; i++) if (waits(i) > waits(worst)) worst = i;
  const at = run.sent[worst];
  d.view(at - 14e9, at + 26e9);
  s.go(at + 6e9);
  s.redraw();
  document.querySelector(".diagram").scrollIntoView();
})()`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures: "+err.Error())
		os.Exit(1)
	}
}

func run(wanted []string) error {
	chromium := browser.Find()
	if chromium == "" {
		return errors.New("no Chromium found: install it, or name it by VIGIL_CHROMIUM")
	}
	work, err := os.MkdirTemp("", "vigil-pictures-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	// The page shows the command that was typed: it is called as a reader calls it.
	simrun := filepath.Join("bin", "simrun")
	build := exec.Command("go", "build", "-o", simrun, "./cmd/simrun")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	b, err := browser.Start(chromium)
	if err != nil {
		return err
	}
	defer b.Close()
	made := 0
	for _, p := range pictures {
		if !begins(p.name, wanted) {
			continue
		}
		if err := p.make(b, simrun, work); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		made++
	}
	if made == 0 {
		return fmt.Errorf("no picture's name begins with %s", strings.Join(wanted, " or "))
	}
	return nil
}

func begins(name string, wanted []string) bool {
	for _, w := range wanted {
		if strings.HasPrefix(name, w) {
			return true
		}
	}
	return len(wanted) == 0
}

func (p *picture) make(b *browser.Browser, simrun, work string) error {
	page := filepath.Join(work, p.name+".html")
	call := exec.Command(simrun, append(append([]string{}, p.call...), "-q", "--html", page)...)
	out, err := call.CombinedOutput()
	var exit *exec.ExitError
	if failed := errors.As(err, &exit) && exit.ExitCode() >= 10; err != nil && !failed || failed != p.fails {
		return fmt.Errorf("simrun %s: %v\n%s", strings.Join(p.call, " "), err, out)
	}
	tab, err := b.Open(p.view)
	if err != nil {
		return err
	}
	defer tab.Close()
	if err := tab.Go(page + p.at); err != nil {
		return err
	}
	if err := tab.Wait("document.documentElement.dataset.ready && document.body.innerText.includes("+fmt.Sprintf("%q", p.expect)+")", 30*time.Second); err != nil {
		return err
	}
	if p.do != "" {
		if err := tab.Run(p.do, nil); err != nil {
			return err
		}
	}
	if err := tab.Run("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))", nil); err != nil {
		return err
	}
	if said := tab.Console(); len(said) > 0 {
		return fmt.Errorf("the browser's console holds: %s", strings.Join(said, "; "))
	}
	shot, err := tab.Picture(false)
	if err != nil {
		return err
	}
	small, err := smaller(shot)
	if err != nil {
		return err
	}
	if len(small) > maxBytes {
		return fmt.Errorf("it has %d bytes, more than %d", len(small), maxBytes)
	}
	file := filepath.Join("docs", "pictures", p.name+".png")
	if err := os.WriteFile(file, small, 0o644); err != nil {
		return err
	}
	fmt.Printf("%-32s %4d KB  simrun %s\n", file, (len(small)+1023)/1024, strings.Join(p.call, " "))
	return nil
}

// smaller writes a PNG again, as small as it gets.
func smaller(shot []byte) ([]byte, error) {
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, picture)
	if b.Len() > len(shot) {
		return shot, err
	}
	return b.Bytes(), err
}
