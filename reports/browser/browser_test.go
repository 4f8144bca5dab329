package browser

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The tests of pages believe what this package says of a page: that its
// console is empty, that it asked for nothing, that a click was a click. So a
// page that complains, asks and listens is held against it.
func TestWhatAPageDoesIsSeen(t *testing.T) {
	path, why, fail := Wanted()
	switch {
	case fail:
		t.Fatal(why)
	case path == "":
		t.Skip(why)
	}
	file := filepath.Join(t.TempDir(), "a page.html")
	if err := os.WriteFile(file, []byte(`<!doctype html><title>t</title>
<style>@media (prefers-color-scheme: dark) { body { color: rgb(1, 2, 3) } }</style>
<button style="position:fixed;left:0;top:0;width:100px;height:50px" onclick="window.clicked = 1">x</button>
<script>
window.onkeydown = e => { window.pressed = e.key };
console.warn("a complaint", 7);
fetch("nowhere.json").catch(() => {});
setTimeout(() => { throw new Error("thrown") }, 0);
</script>`), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := Start(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	p, err := b.Open(View{Width: 400, Height: 300, Dark: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Go(file + "#place"); err != nil {
		t.Fatal(err)
	}
	if err := p.Click(50, 25); err != nil {
		t.Fatal(err)
	}
	if err := p.Press("a"); err != nil {
		t.Fatal(err)
	}
	var seen struct {
		Clicked       int
		Pressed, Hash string
		Colour        string
		Width         int
	}
	if err := p.Run("new Promise(r => setTimeout(r, 50)).then(() => ({Clicked: window.clicked, Pressed: window.pressed, Hash: location.hash, Colour: getComputedStyle(document.body).color, Width: innerWidth}))", &seen); err != nil {
		t.Fatal(err)
	}
	if seen.Clicked != 1 || seen.Pressed != "a" || seen.Hash != "#place" || seen.Colour != "rgb(1, 2, 3)" || seen.Width != 400 {
		t.Errorf("the page saw %+v", seen)
	}
	console := strings.Join(p.Console(), "\n")
	for _, want := range []string{"a complaint", "thrown"} {
		if !strings.Contains(console, want) {
			t.Errorf("the console does not hold %q:\n%s", want, console)
		}
	}
	if !slices.ContainsFunc(p.Requests(), func(u string) bool { return strings.HasSuffix(u, "nowhere.json") }) {
		t.Errorf("what the page asked for is not seen: %v", p.Requests())
	}
	if err := p.Run("nonsense(", nil); err == nil {
		t.Error("code that cannot run is no error")
	}
	shot, err := p.Picture(false)
	if err != nil || !strings.HasPrefix(string(shot), "\x89PNG") {
		t.Errorf("no picture: %v", err)
	}
}

// A browser that is not there is an error, not a hang.
func TestABrowserThatIsNotThere(t *testing.T) {
	if b, err := Start(filepath.Join(t.TempDir(), "no-such-browser")); err == nil {
		b.Close()
		t.Error("a file that is not there was started")
	}
}
