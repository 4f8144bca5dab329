package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A package with one function, all of whose mutants are known.
const small = `package small

func inside(x, low, high int, open bool) bool {
	if open {
		low--
	}
	return x >= low && x-low < high
}

var Inside = inside
`

func instrumented(t *testing.T) (tree string, all []mutant) {
	t.Helper()
	tree = t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module vigil\n\ngo 1.26\n", "small/small.go": small,
		"main.go": `package main

import "vigil/small"

func main() {
	for _, c := range [][3]int{{5, 5, 9}, {4, 5, 9}, {14, 5, 9}, {13, 5, 9}} {
		print(small.Inside(c[0], c[1], c[2], false), small.Inside(c[0], c[1], c[2], true), " ")
	}
}
`,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(tree, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, err := instrument(tree, []string{"small"})
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", "small.out", ".")
	build.Dir = tree
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod -buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return tree, all
}

// All mutants are there, the program is itself while none is on, and another
// program with each of them.
func TestEachMutantIsAnotherProgram(t *testing.T) {
	tree, all := instrumented(t)
	want := []string{
		"turned round open", "left out low--", "returned the opposite of x >= low && x-low < high",
		"wrote > in x >= low", "wrote + in x - low", "wrote <= in x-low < high", "forgot && x >= low", "forgot && x-low < high",
	}
	var got []string
	for i := range all {
		got = append(got, all[i].Change)
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(got, "\n"), w) {
			t.Errorf("there is no mutant %q among\n%s", w, strings.Join(got, "\n"))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d mutants, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	run := func(number string) string {
		cmd := exec.Command(filepath.Join(tree, "small.out"))
		cmd.Env = append(os.Environ(), onVariable+"="+number)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("mutant %s: %v\n%s", number, err, out)
		}
		return string(out)
	}
	sound := run("0")
	if want := "truetrue falsetrue falsefalse truefalse "; sound != want {
		t.Fatalf("without a mutant it prints %q, want %q", sound, want)
	}
	for i := range all {
		if run(strconv.Itoa(all[i].Number)) == sound {
			t.Errorf("mutant %q changes nothing", all[i].Change)
		}
	}
}

// What argued.txt may hold, and the one line for what it may not.
func TestArgumentsNeedReasons(t *testing.T) {
	a, err := parseArguments("# a comment\noutside a/b.go\n    It is not run.\n\nmutant a/c.go f: left out x()\nmutant a/c.go f: left out y()\n    Neither does anything.\n")
	if err != nil || len(a.files) != 1 || len(a.mutants) != 2 || !a.outside("a/b.go") {
		t.Errorf("read %+v, %v", a, err)
	}
	for text, want := range map[string]string{
		"outside a.go\n":                         "argued.txt:1: there is no reason below it",
		"mutant k\n    why\nmutant k\n    why\n": "argued.txt:3: this mutant is argued for twice",
		"mutation k\n    why\n":                  "argued.txt:1: a line is",
	} {
		if _, err := parseArguments(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := readArguments(); err != nil {
		t.Error(err)
	}
}
