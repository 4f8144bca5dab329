package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vigil/core"
	"vigil/reports"
	"vigil/reports/browser"
	"vigil/scenarios"
)

// The pages are tested where they are read: in a browser, with a mouse and
// keys. Without one these tests are skipped and say so; make pages requires it.

// theBrowser starts the browser, or skips the test.
func theBrowser(t *testing.T) *browser.Browser {
	t.Helper()
	path, why, fail := browser.Wanted()
	switch {
	case fail:
		t.Fatal("pages are not tested in a browser: " + why)
	case path == "":
		t.Skip("pages are not tested in a browser: " + why)
	}
	b, err := browser.Start(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// timelineOf writes the page of one run under the document's design.
func timelineOf(t *testing.T, name string, seed uint64) string {
	t.Helper()
	var sc selected
	if strings.HasSuffix(name, ".yaml") {
		list, err := loadPath(name)
		if err != nil {
			t.Fatal(err)
		}
		sc = list[0]
	} else {
		found, err := scenarios.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		sc = selected{found[0], true}
	}
	file := filepath.Join(t.TempDir(), "run.html")
	d := newPlayer(choice{preset: "document", protections: core.Document()}).draw(sc, seed)
	if err := reports.WriteFile(file, d.Write); err != nil {
		t.Fatal(err)
	}
	return file
}

var desk = browser.View{Width: 1280, Height: 800}

// opened opens a page and waits until its run is shown.
func opened(t *testing.T, b *browser.Browser, file string, v browser.View) *browser.Page {
	t.Helper()
	p, err := b.Open(v)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	if err := p.Go(file); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait("document.documentElement.dataset.ready", 30*time.Second); err != nil {
		t.Fatal(err, p.Console())
	}
	return p
}

// does fails the test unless code gives what is wanted.
func does[T comparable](t *testing.T, p *browser.Page, code string, want T) {
	t.Helper()
	var got T
	if err := p.Run(code, &got); err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	if got != want {
		t.Errorf("%s is %v, want %v", code, got, want)
	}
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// settled waits until what was asked for is drawn.
const settled = "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))"

// A stranger opens the page of a run that failed: what broke, for whom, when
// and why stand on the first screen; sliding, clicking, keys and links work,
// and the browser has nothing to complain of.
func TestTimelineInABrowser(t *testing.T) {
	b := theBrowser(t)
	file := timelineOf(t, "B1/resumed", 3)
	p := opened(t, b, file, desk)

	for _, words := range []string{"CONVERGE", "w1", "no server-driven context", "is reaped", "w1 stands still"} {
		does(t, p, fmt.Sprintf("document.querySelector('#verdict').innerText.includes(%q)", words), true)
	}
	does(t, p, "document.querySelector('#verdict').getBoundingClientRect().bottom < innerHeight", true)
	does(t, p, "document.querySelector('#diagram').getBoundingClientRect().bottom < innerHeight + 60", true)

	// The slider: before the pause w1 serves, in it w1 is frozen, at the end it has nothing.
	row := "[...document.querySelectorAll('.workers tbody tr')].find(r => r.cells[0].textContent === 'w1').innerText.replace(/\\s+/g, ' ')"
	at := func(seconds float64, words ...string) {
		t.Helper()
		try(t, p.Run(fmt.Sprintf("slider.value = %g * 1e9 / spacetime.shown.run.end * 1e6; slider.dispatchEvent(new Event('input')); %s", seconds, settled), nil))
		for _, w := range words {
			does(t, p, fmt.Sprintf("%s.includes(%q)", row, w), true)
		}
	}
	at(50, "runs", "serving", "1.5 MiB", "healthy")
	at(150, "frozen", "serving")
	at(690, "runs", "none")

	// A click on the diagram goes there, and the records around it follow.
	var box struct{ X, Y float64 }
	try(t, p.Run("(() => { const r = document.querySelector('.over').getBoundingClientRect(), d = spacetime.shown.diagram; return {X: r.left + d.x(100e9), Y: r.top + d.place.get(1).line + 40} })()", &box))
	try(t, p.Click(box.X, box.Y))
	try(t, p.Run(settled, nil))
	does(t, p, "Math.abs(spacetime.shown.now - 100e9) < 8e9", true)
	does(t, p, "document.querySelector('#records li.current').innerText.length > 10", true)

	// Keys: the next thing that broke, the record after, the overlay.
	try(t, p.Press("Home"))
	try(t, p.Press("v"))
	does(t, p, "spacetime.shown.now === Math.min(...spacetime.shown.run.broken.map(v => v.at))", true)
	try(t, p.Press("ArrowRight"))
	does(t, p, "spacetime.shown.now > Math.min(...spacetime.shown.run.broken.map(v => v.at))", true)
	try(t, p.Press("?"))
	does(t, p, "document.querySelector('#keys').open", true)
	does(t, p, "document.querySelector('#keys').innerText.includes('the whole run')", true)
	try(t, p.Press("?"))
	does(t, p, "document.querySelector('#keys').open", false)

	// Zoom, filters, search.
	try(t, p.Press("+"))
	does(t, p, "spacetime.shown.diagram.b - spacetime.shown.diagram.a < spacetime.shown.run.end", true)
	try(t, p.Press("0"))
	does(t, p, "spacetime.shown.diagram.b - spacetime.shown.diagram.a === spacetime.shown.run.end", true)
	var story, all, found int
	try(t, p.Run("spacetime.shown.records", &story))
	try(t, p.Press("a"))
	try(t, p.Run("spacetime.shown.records", &all))
	try(t, p.Run("search.value = 'is reaped'; search.dispatchEvent(new Event('input')); new Promise(r => setTimeout(() => r(spacetime.shown.records), 400))", &found))
	if story < 10 || all < 10*story || found != 1 {
		t.Errorf("%d records make the story, %d are all, %d say that somebody is reaped", story, all, found)
	}
	try(t, p.Run("search.value = ''; spacetime.shown.refilter(); document.querySelector('button[data-lane=\"1\"]').click()", nil))
	does(t, p, "spacetime.shown.diagram.place.has(1)", false)
	does(t, p, "spacetime.shown.records < "+fmt.Sprint(all), true)

	// The themes.
	does(t, p, "(() => { const a = getComputedStyle(document.body).backgroundColor; document.querySelector('button[data-theme]').click(); document.querySelector('button[data-theme]').click(); return a !== getComputedStyle(document.body).backgroundColor })()", true)

	noComplaint(t, p, file)
}

// noComplaint fails where the console holds anything, or where the page asked
// for more than itself.
func noComplaint(t *testing.T, p *browser.Page, file string) {
	t.Helper()
	if said := p.Console(); len(said) > 0 {
		t.Errorf("the browser's console holds: %s", strings.Join(said, "\n"))
	}
	for _, u := range p.Requests() {
		if u != "about:blank" && !strings.HasSuffix(strings.SplitN(u, "#", 2)[0], filepath.ToSlash(file)) {
			t.Errorf("the page asks for %s", u)
		}
	}
}

// A link to a moment opens there.
func TestALinkOpensAtItsMoment(t *testing.T) {
	b := theBrowser(t)
	file := timelineOf(t, "B1/resumed", 3)
	p := opened(t, b, file+"#t=261.5s&view=200s..300s", desk)
	does(t, p, "spacetime.shown.now", 261.5e9)
	does(t, p, "spacetime.shown.diagram.a", 200e9)
	does(t, p, "document.querySelector('#moment').value", "261.500s")
	// And the page's own link says where it is.
	try(t, p.Run("spacetime.shown.go(100.25e9); new Promise(r => setTimeout(r, 500))", nil))
	does(t, p, "location.hash.includes('t=100.25s')", true)
	// What is no moment is no harm.
	bad := opened(t, b, file+"#t=soon&view=9..", desk)
	does(t, bad, "spacetime.shown.now > 0", true)
	noComplaint(t, bad, file)
}

// On a telephone the page is as wide as the screen and no wider.
func TestTheTimelineFitsATelephone(t *testing.T) {
	b := theBrowser(t)
	p := opened(t, b, timelineOf(t, "B2/killed", 3), browser.View{Width: 375, Height: 812, Mobile: true})
	does(t, p, "document.documentElement.scrollWidth <= innerWidth", true)
	does(t, p, "document.querySelector('#verdict').getBoundingClientRect().top < 300", true)
	does(t, p, "[...document.querySelectorAll('button, summary')].every(b => b.getBoundingClientRect().right <= innerWidth + 1)", true)
}

// Every scenario's page opens without a complaint: each has something that the
// others have not.
func TestEveryScenariosPageOpens(t *testing.T) {
	if testing.Short() {
		t.Skip("in -short one page stands for all")
	}
	b := theBrowser(t)
	all, err := scenarios.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	each := 9 // make pages opens all of them
	if os.Getenv("VIGIL_PAGES") != "" {
		each = 1
	}
	player := newPlayer(choice{preset: "document", protections: core.Document()})
	dir := t.TempDir()
	p, err := b.Open(desk)
	try(t, err)
	for i, s := range all {
		if i%each != 0 {
			continue
		}
		file := filepath.Join(dir, strings.ReplaceAll(s.ID, "/", "-")+".html")
		try(t, reports.WriteFile(file, player.draw(selected{s, true}, 3).Write))
		try(t, p.Go(file))
		if err := p.Wait("document.documentElement.dataset.ready", 30*time.Second); err != nil {
			t.Fatalf("%s: %v: %v", s.ID, err, p.Console())
		}
		if said := p.Console(); len(said) > 0 {
			t.Fatalf("%s: the browser's console holds: %s", s.ID, strings.Join(said, "\n"))
		}
	}
}

// A real server's log is a page too: a lane for each instance, and what the
// audit found broken.
func TestAnAuditsPageInABrowser(t *testing.T) {
	b := theBrowser(t)
	file := filepath.Join(t.TempDir(), "log.html")
	if _, stderr, code := call(t, "audit", auditData+"close-under-a-copy.jsonl", "-q", "--html", file); code != exitSafety {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	p := opened(t, b, file, desk)
	for _, words := range []string{"NO-UAF", "instance "} {
		does(t, p, fmt.Sprintf("document.querySelector('#verdict').innerText.includes(%q)", words), true)
	}
	does(t, p, "spacetime.shown.run.lanes.length > 1 && spacetime.shown.run.broken[0].lanes.length === 1", true)
	noComplaint(t, p, file)
}

// sliding moves the slider over the whole run and returns the time of each
// frame, in milliseconds.
const sliding = `(async () => {
  const times = [];
  await new Promise(requestAnimationFrame);
  let last = performance.now();
  for (let i = 0; i <= 240; i++) {
    slider.value = i / 240 * 1e6;
    slider.dispatchEvent(new Event("input"));
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    times.push(now - last);
    last = now;
  }
  return times;
})()`

// A run of 100,000 events: the page is below 10 MB, is shown within 2 seconds
// of its opening, and slides at 30 frames a second or better. The times are
// the machine's as much as the page's, so they are judged where
// VIGIL_PAGES=measure says that the machine is for that (make pages).
func TestThePageOfALongRun(t *testing.T) {
	if testing.Short() && os.Getenv("VIGIL_PAGES") == "" {
		t.Skip("in -short no page of a long run")
	}
	file := timelineOf(t, "testdata/pages/long.yaml", 1)
	info, err := os.Stat(file)
	try(t, err)
	if info.Size() >= 10<<20 {
		t.Errorf("the page has %d bytes, want less than 10 MB", info.Size())
	}
	b := theBrowser(t)
	p, err := b.Open(desk)
	try(t, err)
	const tries = 3
	var shown, wall []float64
	for range tries {
		began := time.Now()
		try(t, p.Go(file))
		try(t, p.Wait("document.documentElement.dataset.ready", 60*time.Second))
		try(t, p.Run(settled, nil))
		wall = append(wall, time.Since(began).Seconds())
		var ms float64
		try(t, p.Run("+document.documentElement.dataset.ready", &ms))
		shown = append(shown, ms)
	}
	var events, records int
	try(t, p.Run("spacetime.shown.run.events", &events))
	try(t, p.Run("spacetime.shown.run.n", &records))
	if events < 100_000 {
		t.Fatalf("the run has %d events: it measures nothing", events)
	}
	var frames []float64
	try(t, p.Run(sliding, &frames))
	slices.Sort(frames)
	slices.Sort(wall)
	sum := 0.0
	for _, f := range frames {
		sum += f
	}
	mean, slow := sum/float64(len(frames)), frames[len(frames)*95/100]
	t.Logf("%d events, %d records: %.2f MB; read and shown in %.0f ms, opened in %.2f s; slides at %.0f frames/s (median %.1f ms, 95%% below %.1f ms)",
		events, records, float64(info.Size())/1e6, slices.Min(shown), wall[0], 1000/mean, frames[len(frames)/2], slow)
	if os.Getenv("VIGIL_PAGES") != "measure" {
		return
	}
	if wall[0] >= 2 {
		t.Errorf("the page opens in %.2f s, want less than 2", wall[0])
	}
	if 1000/mean < 30 {
		t.Errorf("it slides at %.1f frames a second, want 30", 1000/mean)
	}
}

// The page of a suite: the failure stands on top with its reason and its
// command, its timeline opens in the page, and the way back leads back.
func TestSuitePageInABrowser(t *testing.T) {
	b := theBrowser(t)
	file := filepath.Join(t.TempDir(), "suite.html")
	_, _, code := call(t, "run", "--design", "document", "testdata/stories", "A1", "B1/resumed", "--seeds", "3", "-v", "-q", "--html", file)
	if code != exitSafety {
		t.Fatalf("exit %d", code)
	}
	p := opened(t, b, file, desk)
	for _, words := range []string{"SAFETY", "failed", "w1 was reaped", "simrun replay v1."} {
		does(t, p, fmt.Sprintf("document.querySelector('#suite').innerText.includes(%q)", words), true)
	}
	does(t, p, "document.querySelectorAll('#scenarios tbody tr').length >= 6", true)
	does(t, p, "document.querySelector('#breaks').innerText.includes('CONVERGE')", true)
	does(t, p, "document.querySelector('.fail').getBoundingClientRect().bottom < innerHeight", true)

	// Filter and sort.
	does(t, p, "document.querySelector('#filter').value = 'B1'; document.querySelector('#filter').dispatchEvent(new Event('input')); document.querySelectorAll('#scenarios tbody tr').length", 1)
	try(t, p.Run("document.querySelector('#filter').value = ''; document.querySelector('#filter').dispatchEvent(new Event('input')); document.querySelectorAll('#scenarios th')[5].click()", nil))
	does(t, p, "document.querySelectorAll('#scenarios th')[5].getAttribute('aria-sort')", "descending")

	// Into a run and back.
	var box struct{ X, Y float64 }
	try(t, p.Run("(() => { const r = document.querySelector('.fail a.open').getBoundingClientRect(); return {X: r.left + 5, Y: r.top + 5} })()", &box))
	try(t, p.Click(box.X, box.Y))
	try(t, p.Wait("!document.querySelector('#run').hidden && document.querySelector('#run #diagram')", 10*time.Second))
	does(t, p, "document.querySelector('#suite').hidden", true)
	does(t, p, "document.querySelector('#run #verdict').innerText.includes('reaped')", true)
	try(t, p.Wait("location.hash.includes('run=') && location.hash.includes('t=')", 5*time.Second))
	var link string
	try(t, p.Run("location.hash", &link))
	try(t, p.Run("document.querySelector('#run .title a').click()", nil))
	try(t, p.Wait("!document.querySelector('#suite').hidden", 5*time.Second))
	does(t, p, "document.querySelector('#run').hidden", true)
	noComplaint(t, p, file)

	// A link to a moment of a run opens there.
	again := opened(t, b, file+link, desk)
	does(t, again, "document.querySelector('#suite').hidden && !!document.querySelector('#run #diagram')", true)
	try(t, again.Look(browser.View{Width: 375, Height: 812, Mobile: true}))
	does(t, again, "document.documentElement.scrollWidth <= innerWidth", true)
	phone := opened(t, b, file, browser.View{Width: 375, Height: 812, Mobile: true})
	does(t, phone, "document.documentElement.scrollWidth <= innerWidth", true)
	noComplaint(t, again, file)
}

// With one scenario and one seed the page is that run's timeline.
func TestOneRunsPageIsItsTimeline(t *testing.T) {
	dir := t.TempDir()
	if _, stderr, code := call(t, "run", "--design", "document", "B1/resumed", "--seed", "3", "-q", "--html", filepath.Join(dir, "run.html"), "-o", filepath.Join(dir, "out")); code != exitPass {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, file := range []string{"run.html", "out/latest/index.html"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), `id="data"`) || strings.Contains(string(text), `id="model"`) {
			t.Errorf("%s is no timeline", file)
		}
	}
	if _, stderr, code := call(t, "run", "A1", "--seeds", "1", "--html", "-", "--json", "-"); code != exitUsage || !strings.Contains(stderr, "--html") {
		t.Errorf("two results on standard output: exit %d, %s", code, stderr)
	}
}
