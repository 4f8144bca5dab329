package main

import (
	"bytes"
	_ "embed"
	"io"
	"net/http"

	"vigil/reports/page"
)

// Why this file: the page at /, for a person with a browser. It is read-only and
// knows nothing that /status does not say: its script asks for that and draws it.

//go:embed overview.html
var overviewBody string

//go:embed overview.css
var overviewStyle string

//go:embed overview.js
var overviewScript string

// overview answers with the page, which is made once.
func overview() http.HandlerFunc {
	p := page.Page{
		Title: "vigil server",
		Body: func(w io.Writer) error {
			_, err := io.WriteString(w, overviewBody)
			return err
		},
		Styles: []string{overviewStyle}, Scripts: []string{overviewScript},
		Keys:    []page.Key{{Press: "R", Does: "ask the server now"}, {Press: "P", Does: "pause, or go on"}, {Press: "/", Does: "look for an instance"}},
		Refresh: true,
	}
	var b bytes.Buffer
	err := p.Write(&b) // a buffer takes everything
	return func(w http.ResponseWriter, _ *http.Request) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", p.Policy())
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		w.Write(b.Bytes())
	}
}
