package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"html"
	"io"
	"regexp"
	"strings"
	"testing"
)

func written(t *testing.T, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A report is opened from a mail or a CI artifact: whatever it needed from
// elsewhere would be missing there, and what it sent would be a leak.
func TestAPageLoadsNothingFromElsewhere(t *testing.T) {
	text := written(t, &Page{Title: "t", Body: func(w io.Writer) error { _, err := io.WriteString(w, "<p>here</p>"); return err }})
	for _, bad := range []string{"http://", "https://", "//cdn", "@import", "url("} {
		if strings.Contains(text, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if got := (&Page{}).Policy(); !strings.Contains(got, "default-src 'none'") || !strings.Contains(got, "connect-src 'none'") {
		t.Errorf("the policy lets it load or send: %s", got)
	}
	if got := (&Page{Refresh: true}).Policy(); !strings.Contains(got, "connect-src 'self'") {
		t.Errorf("a page that refreshes may not ask its own server: %s", got)
	}
}

// The browser runs a script only where its hash is in the policy, so the two
// must come from the same bytes.
func TestEveryScriptIsInThePolicy(t *testing.T) {
	p := &Page{Title: "a < b", Scripts: []string{`document.title = "</script>";`}}
	text := written(t, p)
	found := regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllStringSubmatch(text, -1)
	if len(found) != 2 {
		t.Fatalf("%d scripts, want the shared one and ours: a script ended too early, or is missing", len(found))
	}
	policy := html.UnescapeString(regexp.MustCompile(`content="(default-src[^"]*)"`).FindStringSubmatch(text)[1])
	if policy != p.Policy() {
		t.Errorf("the page says %q, Policy %q", policy, p.Policy())
	}
	for _, s := range found {
		sum := sha256.Sum256([]byte(s[1]))
		if want := base64.StdEncoding.EncodeToString(sum[:]); !strings.Contains(policy, want) {
			t.Errorf("the policy lacks the hash of a script that begins with %.60q", s[1])
		}
	}
	if !strings.Contains(text, "<title>a &lt; b</title>") {
		t.Error("the title is not escaped")
	}
}

func TestTheOverlayListsThePagesKeysAndTheSharedOnes(t *testing.T) {
	text := written(t, &Page{Keys: []Key{{"<", "zoom & more"}}})
	for _, want := range []string{"<kbd>&lt;</kbd></td><td>zoom &amp; more", "<kbd>?</kbd>", "<kbd>T</kbd>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the overlay lacks %q", want)
		}
	}
}

func TestABodyThatFailsIsAnError(t *testing.T) {
	broken := errors.New("no")
	if err := (&Page{Body: func(io.Writer) error { return broken }}).Write(io.Discard); !errors.Is(err, broken) {
		t.Errorf("Write says %v", err)
	}
}
