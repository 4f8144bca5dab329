package audit

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files again")

// text is a report as the golden files have it.
func text(r *Report, log []byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "design %s, %d records, started %v, stopped %v, lost %d, torn %v\n", r.Header.Design, r.Records, r.Started, r.Stopped, r.Lost, r.Torn)
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s", f.Invariant, f.State)
		if f.Why != "" {
			fmt.Fprintf(&b, ": %s", f.Why)
		}
		b.WriteByte('\n')
		for _, v := range f.Broken {
			fmt.Fprintf(&b, "  %s %s\n", spell(v.At.Sub(0)), v.Message)
			lines, err := storyOf(bytes.NewReader(log), about(v.Message), v.At)
			if err != nil {
				fmt.Fprintf(&b, "  no story: %v\n", err)
			}
			for _, l := range lines {
				fmt.Fprintf(&b, "    %s %s\n", spell(l.At.Sub(0)), l.Words)
			}
		}
	}
	return b.String()
}

// cut returns the log without the lines that hold a word, the nth of them
// alone where nth is not 0.
func cut(log []byte, word string, nth int) []byte {
	var out []byte
	n := 0
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte(word)) {
			if n++; nth == 0 || n == nth {
				continue
			}
		}
		out = append(out, line...)
	}
	return out
}

// Logs of real servers, and what becomes of them when somebody tampers.
func TestAuditsOfRealLogs(t *testing.T) {
	crash, err := os.ReadFile("testdata/crash.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	closing, err := os.ReadFile("testdata/close-under-a-copy.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	header, _, _ := bytes.Cut(crash, []byte("\n"))
	twice := func(word string) []byte {
		var out []byte
		done := false
		for line := range bytes.Lines(crash) {
			out = append(out, line...)
			if !done && bytes.Contains(line, []byte(word)) {
				out, done = append(out, line...), true
			}
		}
		return out
	}
	for _, c := range []struct {
		name string
		log  []byte
	}{
		{"crash", crash},
		{"close-under-a-copy", closing},
		{"no-records", append(header, '\n')},
		{"torn", crash[:len(crash)-20]},
		{"begins-late", append(append(header[:len(header):len(header)], '\n'), bytes.Join(bytes.SplitAfter(crash, []byte("\n"))[40:], nil)...)},
		{"records-missing", bytes.Replace(crash, []byte(`{"at_ns":131863620,"kind":"scan-ended"`), []byte("{\"at_ns\":131863620,\"lost\":12}\n"+`{"at_ns":131863620,"kind":"scan-ended"`), 1)},
		{"inserted-twice", twice(`"kind":"context-inserted"`)},
		{"reaped-within-its-window", cut(crash, `"reap_ns":120000000000`, 0)}, // replaced below
		{"never-reaped", cut(cut(cut(cut(crash, `"kind":"reap-decided"`, 0), `"kind":"context-removed"`, 0), `"kind":"layout-released"`, 0), `"kind":"close-`, 0)},
		{"share-not-given-back", cut(crash, `"kind":"layout-released"`, 1)},
	} {
		if c.name == "reaped-within-its-window" {
			c.log = bytes.Replace(crash, []byte(`"reap_ns":120000000000`), []byte(`"reap_ns":400000000000`), 1)
		}
		t.Run(c.name, func(t *testing.T) {
			r, err := Log(bytes.NewReader(c.log))
			if err != nil {
				t.Fatal(err)
			}
			got, golden := text(r, c.log), filepath.Join("testdata", c.name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Nothing that is not decided reads as held.
func TestNoEmptyPass(t *testing.T) {
	for _, c := range []string{"", "\n", "not a log\n", `{"vigil":"events","version":9}` + "\n"} {
		if _, err := Log(strings.NewReader(c)); err == nil {
			t.Errorf("%q was audited", c)
		}
	}
	r, err := Log(strings.NewReader(`{"vigil":"events","version":1,"reap_ns":120000000000,"grace_ns":3600000000000,"design":"document","time_scale":1}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, nothing := r.Verdict(); !nothing {
		t.Error("a log without records decides something")
	}
}

func FuzzAudit(f *testing.F) {
	crash, err := os.ReadFile("testdata/crash.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(crash[:8000])
	f.Fuzz(func(t *testing.T, log []byte) {
		r, err := Log(bytes.NewReader(log))
		if err == nil {
			text(r, log)
		}
	})
}
