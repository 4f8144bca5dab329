// Package page is the one look of everything that vigil shows in a browser:
// the timeline of a run, the suite page, the plan, the server's own page. It
// wraps a body in a self-contained page with the shared style and a little
// shared behaviour.
//
// Contract. A page is one file: it loads nothing and sends nothing, and its
// content security policy says so to the browser (Page.Policy), which also
// means that a body must bring no event attributes; its code goes into
// Page.Scripts. The same Page gives the same bytes. Nothing here escapes what
// a body writes: build it with html/template, or with Text for single words.
//
// How to use it:
//
//	p := page.Page{
//		Title:   "vigil server",
//		Body:    func(w io.Writer) error { return tmpl.Execute(w, status) },
//		Styles:  []string{myCSS},          // optional, after the shared one
//		Scripts: []string{myJS},           // optional, after the shared one
//		Keys:    []page.Key{{"r", "load again"}}, // rows of the ? overlay
//	}
//	err := p.Write(w)                      // a file
//	w.Header().Set("Content-Security-Policy", p.Policy()) // or an answer
//
// What the shared style has, by class: header.top with h1 and nav; main;
// .card (a box) with h2; .cards (boxes side by side while there is room);
// .facts (a dl of label and value); table.grid (th.n and td.n are numbers;
// wrap it in .scroll so that a narrow screen scrolls the table and not the
// page); .chip (a word in a pill) with .good .bad .warn .info; .banner (what
// must be read first) with the same four; .dim, .mono, .num; button, button.on;
// .bar > i (a share as a bar, its width set by data-share, 0 to 1).
//
// What the shared script does: a button[data-theme] goes round the themes (as
// the system has it, light, dark) and remembers; [data-copy] copies its value;
// a key for the help overlay, which lists Page.Keys; a .bar gets its width.
// Code of the page finds colours through vigil.ink(name), in the theme that
// is on, and is told of a change by the event "vigil:theme" on document.
package page
