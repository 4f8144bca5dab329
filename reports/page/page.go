package page

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"strings"
)

//go:embed base.css
var baseStyle string

//go:embed base.js
var baseScript string

// Page is one self-contained page.
type Page struct {
	Title string
	// Body writes what is in the body, HTML. It may be nil.
	Body    func(io.Writer) error
	Styles  []string // CSS, after the shared style
	Scripts []string // JavaScript, run in this order after the body is there
	Keys    []Key    // what the ? overlay lists, before the shared keys
	// Refresh lets the page fetch from its own server and from nowhere else. A
	// file has no server: leave it false there.
	Refresh bool
}

// Key is one row of the ? overlay.
type Key struct{ Press, Does string }

// sharedKeys work on every page.
var sharedKeys = []Key{{"T", "theme: as the system has it, light, dark"}, {"?", "this list"}, {"Esc", "close it"}}

// Text escapes words for a body.
func Text(words string) string { return html.EscapeString(words) }

// Policy is the page's content security policy: nothing is loaded, and no code
// runs but the page's own, which is named by its hash.
func (p *Page) Policy() string {
	var scripts []string
	for _, s := range p.scripts() {
		sum := sha256.Sum256([]byte(s))
		scripts = append(scripts, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	connect := "'none'"
	if p.Refresh {
		connect = "'self'"
	}
	return fmt.Sprintf("default-src 'none'; script-src %s; style-src 'unsafe-inline'; img-src data:; connect-src %s; base-uri 'none'; form-action 'none'",
		strings.Join(scripts, " "), connect)
}

func (p *Page) scripts() []string {
	list := make([]string, 0, len(p.Scripts)+1)
	for _, s := range append([]string{baseScript}, p.Scripts...) {
		list = append(list, sealed(s))
	}
	return list
}

// sealed keeps a script's own text from ending its element.
func sealed(code string) string { return strings.ReplaceAll(code, "</", `<\/`) }

// Write writes the page.
func (p *Page) Write(to io.Writer) error {
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"+
		"<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n"+
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"+
		"<title>%s</title>\n<link rel=\"icon\" href=\"data:,\">\n", html.EscapeString(p.Policy()), html.EscapeString(p.Title))
	for _, s := range append([]string{baseStyle}, p.Styles...) {
		fmt.Fprintf(w, "<style>\n%s</style>\n", s)
	}
	w.WriteString("</head>\n<body>\n")
	if p.Body != nil {
		if err := p.Body(w); err != nil {
			return err
		}
	}
	w.WriteString("\n<dialog id=\"keys\"><h2>Keys</h2><table class=\"grid\">\n")
	for _, k := range append(append([]Key{}, p.Keys...), sharedKeys...) {
		fmt.Fprintf(w, "<tr><td><kbd>%s</kbd></td><td>%s</td></tr>\n", html.EscapeString(k.Press), html.EscapeString(k.Does))
	}
	w.WriteString("</table><form method=\"dialog\"><button>Close</button></form></dialog>\n")
	for _, s := range p.scripts() {
		w.WriteString("<script>" + s + "</script>\n")
	}
	w.WriteString("</body>\n</html>\n")
	return w.Flush()
}
