package spacetime

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"

	"vigil/reports/page"
)

//go:embed style.css
var style string

//go:embed data.js
var dataScript string

//go:embed draw.js
var drawScript string

//go:embed app.js
var appScript string

//go:embed one.js
var oneScript string

// Styles and Scripts are what a page needs that shows diagrams; it calls
// spacetime.open(text of a Block) and spacetime.show(run, element).
func Styles() []string { return []string{style} }

// Scripts is the code of a page that shows diagrams.
func Scripts() []string { return []string{dataScript, drawScript, appScript} }

// Keys is what the page's overlay lists.
func Keys() []page.Key {
	return []page.Key{
		{Press: "← →", Does: "the record before, after; with Shift ten"},
		{Press: ", .", Does: "a little earlier, later"},
		{Press: "v V", Does: "the next thing that broke, the one before"},
		{Press: "f F", Does: "the next step of the scenario, the one before"},
		{Press: "Home End", Does: "the beginning, the end"},
		{Press: "Space", Does: "play, stop"},
		{Press: "+ −", Does: "closer, farther (Ctrl and wheel, pinch, double click)"},
		{Press: "0", Does: "the whole run"},
		{Press: "drag", Does: "move what is in view (Shift and wheel)"},
		{Press: "click", Does: "go to the record there"},
		{Press: "/", Does: "search; Enter goes to the next one found"},
		{Press: "a", Does: "the story, or every record"},
		{Press: "1 … 7", Does: "show or hide a kind of records"},
		{Press: "l", Does: "copy a link to this moment"},
	}
}

// Block writes the data of a diagram as a block that a script finds by its id.
func Block(w io.Writer, id string, data []byte) error {
	if _, err := io.WriteString(w, "<script type=\"text/plain\" id=\""+page.Text(id)+"\">"); err != nil {
		return err
	}
	e := base64.NewEncoder(base64.StdEncoding, w)
	if _, err := e.Write(data); err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	_, err := io.WriteString(w, "</script>\n")
	return err
}

// Header writes the header of a page with diagrams.
func Header(w io.Writer, what string) error {
	_, err := fmt.Fprintf(w, top, page.Text(what))
	return err
}

const top = `<header class="top"><strong>vigil</strong><span class="dim">%s</span><nav><button data-keys title="keys (?)" aria-label="keys">?</button><button data-theme></button></nav></header>
`

// Write writes the page of one run: a file that needs nothing else.
func (d *Diagram) Write(w io.Writer) error {
	data, err := d.Data()
	if err != nil {
		return err
	}
	p := page.Page{
		Title:  d.Head.ID + " " + d.Head.Name + ": " + d.Head.Verdict,
		Styles: Styles(), Scripts: append(Scripts(), oneScript), Keys: Keys(),
		Body: func(w io.Writer) error {
			if err := Header(w, "the timeline of one run"); err != nil {
				return err
			}
			if _, err := io.WriteString(w, "<main id=\"run\"><noscript>This page draws its run with JavaScript.</noscript></main>\n"); err != nil {
				return err
			}
			return Block(w, "data", data)
		},
	}
	return p.Write(w)
}
