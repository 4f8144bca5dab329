package vigil_test

// The layout is a promise to the newcomer: a folder's name says what it knows
// of the rest. The table below is that promise, and this file keeps it.

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport says which packages of ours a folder's code may import beside its
// own. The longest folder that matches decides. A pattern that ends in /... is
// a folder with everything below it.
var mayImport = []struct {
	folder  string
	imports []string
}{
	{".", nil},
	{"core", nil},
	{"core/wire", []string{"core"}},
	{"core/server", []string{"core", "core/wire"}},
	{"core/worker", []string{"core", "core/wire"}},
	{"core/loop", []string{"core/..."}},
	{"core/zmq", []string{"core"}},
	{"sim", []string{"core/...", "faults", "sim/fork"}},
	{"sim/fork", nil}, // copies by layout, and knows no type of ours
	{"sim/explore", []string{"core/...", "faults", "sim"}},
	{"sim/shrink", []string{"core/...", "faults", "sim"}},
	{"faults", []string{"core"}},
	{"scenarios", []string{"core/...", "faults", "sim/...", "scenarios/..."}},
	{"realgpu", []string{"core", "realgpu/..."}},
	{"reports", []string{"core"}},
	{"cmd", []string{"..."}},
	{"scripts", []string{"scripts/..."}},
	{"scripts/pictures", []string{"reports/browser"}}, // photographs pages; it calls simrun as a program
}

// simulatorKeepsOut lists what is under a folder that mayImport grants and
// must still stay out: sim runs the pure core only, never the shells that hold
// real time and real sockets.
var simulatorKeepsOut = []string{"core/loop", "core/zmq"}

// topLevel is every folder that the root may hold. The first seven are the
// program, the rest is about it.
var topLevel = []string{"core", "sim", "faults", "scenarios", "realgpu", "reports", "cmd", "docs", "deploy", "examples", "scripts", ".ci", ".github"}

// chosenModules are the libraries that the design chose, and what each is for.
// A second library for a job that one of these does needs a reason, and a line
// here.
var chosenModules = map[string]string{
	"github.com/benbjohnson/clock":        "production time, and its mock in the loop's tests",
	"pgregory.net/rapid":                  "property tests",
	"github.com/pebbe/zmq4":               "the production transport",
	"github.com/vmihailenco/msgpack/v5":   "payloads of the wire",
	"github.com/NVIDIA/go-nvml":           "watching real devices",
	"github.com/olekukonko/tablewriter":   "tables on the terminal",
	"github.com/spf13/cobra":              "commands and flags",
	"github.com/spf13/pflag":              "cobra's own flags, named where a flag has a type of ours",
	"golang.org/x/term":                   "how wide a terminal is",
	"github.com/goccy/go-yaml":            "scenario files",
	"github.com/prometheus/client_golang": "metrics",
	"github.com/google/uuid":              "instance ids",
	"github.com/ebitengine/purego":        "the device driver's library, opened at run time",
}

// onlyIn confines the modules that need a C library.
var onlyIn = map[string][]string{
	"github.com/pebbe/zmq4":     {"core/zmq", "cmd/server", "cmd/server/endurance"},
	"github.com/NVIDIA/go-nvml": {"realgpu/watch"},
}

func TestFoldersImportOnlyWhatTheTableAllows(t *testing.T) {
	for _, f := range goFiles(t) {
		folder := path.Dir(f)
		for _, imported := range importsOf(t, f) {
			for module, folders := range onlyIn {
				if within(imported, module) && !slices.Contains(folders, folder) {
					t.Errorf("%s imports %s, which only %s may: everything else must build without C", f, imported, strings.Join(folders, " and "))
				}
			}
			if within(imported, "vigil") && !strings.HasSuffix(f, "_test.go") {
				if complaint := importComplaint(folder, strings.TrimPrefix(strings.TrimPrefix(imported, "vigil"), "/")); complaint != "" {
					t.Errorf("%s: %s", f, complaint)
				}
			}
		}
	}
}

// importComplaint says what is wrong with a folder importing a package of
// ours, "" where nothing is.
func importComplaint(folder, imported string) string {
	for at := folder; ; at = path.Dir(at) {
		for _, row := range mayImport {
			if row.folder != at {
				continue
			}
			if imported == at || at != "." && at != "core" && at != "sim" && within(imported, at) {
				return "" // its own
			}
			if within(folder, "sim") && slices.Contains(simulatorKeepsOut, imported) {
				return "the simulator runs the pure core only; it may not import vigil/" + imported
			}
			for _, pattern := range row.imports {
				if tree, deep := strings.CutSuffix(pattern, "..."); deep && (tree == "" || within(imported, strings.TrimSuffix(tree, "/"))) || pattern == imported {
					return ""
				}
			}
			return "vigil/" + folder + " may not import vigil/" + imported + " (see mayImport in layout_test.go)"
		}
		if at == "." {
			return "no row of mayImport covers " + folder
		}
	}
}

func TestTheImportTableCanSayNo(t *testing.T) {
	for _, c := range []struct {
		folder, imported string
		allowed          bool
	}{
		{"core", "sim", false},
		{"core", "core/wire", false},
		{"core/wire", "core", true},
		{"core/wire", "core/server", false},
		{"core/server", "core/wire", true},
		{"core/server", "core/worker", false},
		{"core/zmq", "core/wire", false},
		{"core/loop", "core/server", true},
		{"sim", "core/server", true},
		{"sim", "core/loop", false},
		{"sim", "core/zmq", false},
		{"sim", "scenarios/monitor", false},
		{"sim", "reports", false},
		{"sim", "sim/explore", false},
		{"sim/explore", "sim", true},
		{"sim/shrink", "scenarios", false},
		{"faults", "core", true},
		{"faults", "sim", false},
		{"scenarios", "sim", true},
		{"scenarios/run", "scenarios/monitor", true},
		{"scenarios/monitor", "reports", false},
		{"reports", "core", true},
		{"reports", "scenarios/run", false},
		{"realgpu/cuda", "core", true},
		{"realgpu/hostshm", "sim", false},
		{"cmd/simrun", "scenarios/run", true},
		{"cmd/simrun", "reports", true},
		{"unheard/of", "core", false},
	} {
		if got := importComplaint(c.folder, c.imported) == ""; got != c.allowed {
			t.Errorf("%s importing %s: allowed is %v, want %v", c.folder, c.imported, got, c.allowed)
		}
	}
}

func TestTheTopLevelIsTheGivenOne(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !ignored(e.Name()) && !slices.Contains(topLevel, e.Name()) {
			t.Errorf("the top level holds a folder %q, which is not one of %s", e.Name(), strings.Join(topLevel, ", "))
		}
	}
}

func TestOnlyChosenModulesAreRequired(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	inBlock := false
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case fields[0] == "require" && fields[1] == "(":
			inBlock = true
		case fields[0] == ")":
			inBlock = false
		case fields[0] == "replace":
			t.Errorf("go.mod replaces a module, so another machine would build other code: %s", strings.TrimSpace(line))
		case (inBlock || fields[0] == "require") && !strings.Contains(line, "// indirect"):
			module := strings.TrimPrefix(strings.TrimSpace(line), "require ")
			module = strings.Fields(module)[0]
			if chosenModules[module] == "" {
				t.Errorf("go.mod requires %s, which is not one of the chosen modules; a new one needs a reason and a line in chosenModules", module)
			}
		}
	}
}

// TestSimrunNeedsNoC builds the newcomer's first program the way that a
// machine without a C compiler would.
func TestSimrunNeedsNoC(t *testing.T) {
	if _, err := os.Stat("cmd/simrun"); errors.Is(err, os.ErrNotExist) {
		t.Skip("cmd/simrun is not there yet")
	}
	build := exec.Command("go", "build", "-o", filepath.Join(t.TempDir(), "simrun"), "./cmd/simrun")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "CC=/nonexistent")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cmd/simrun must build with CGO_ENABLED=0: %v\n%s", err, out)
	}
}

// forbiddenWords are what no file may hold: the places of the machine that it
// was written on, and hosts that a reader's own settings choose. Each is in
// two halves, so that this file does not hold them either.
var forbiddenWords = []string{
	"proxy.golang" + ".org", "sum.golang" + ".org", "registry.npmjs" + ".org", "deb.debian" + ".org", "pypi" + ".org",
	"/work" + "/main", "/work" + "/shared", "/work" + "/.", "/root" + "/",
}

func TestNoFileNamesThisMachine(t *testing.T) {
	for _, f := range files(t) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			for _, word := range forbiddenWords {
				if strings.Contains(line, word) {
					t.Errorf("%s:%d holds %q, which means nothing on another machine", f, n+1, word)
				}
			}
		}
	}
}

// files lists every file of the tree that is not ignored, slash-separated.
func files(t *testing.T) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // a test beside this one cleaned up
		case err != nil:
			return err
		case name == ".":
		case e.IsDir() && ignored(e.Name()):
			return fs.SkipDir
		case e.Type().IsRegular() && !ignored(e.Name()):
			list = append(list, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// ignored names what .gitignore keeps out of the tree, and git's own folder.
func ignored(name string) bool {
	return slices.Contains([]string{".git", "bin", "out", "node_modules", ".idea", ".vscode"}, name) ||
		strings.HasSuffix(name, ".test") || strings.HasSuffix(name, ".prof") || strings.HasSuffix(name, ".out")
}

func goFiles(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(files(t), func(f string) bool {
		return path.Ext(f) != ".go" || slices.Contains(strings.Split(f, "/"), "testdata")
	})
}

func importsOf(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

// within reports whether a path is a folder or lies below it.
func within(p, folder string) bool {
	return p == folder || strings.HasPrefix(p, folder+"/")
}
