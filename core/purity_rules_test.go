package core_test

// One bad snippet for each rule of purity, and the good neighbours that must
// pass: the checker is seen to fail, and seen not to cry wolf.

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// badSnippets are bodies of files (after the package clause), each with a
// piece of the complaint that must come.
var badSnippets = []struct{ rule, source, complaint string }{
	{"a wall clock", `import "time"
		func f() int64 { return time.Now().UnixNano() }`, "uses time.Now"},
	{"a timer", `import "time"
		func f(g func()) { time.AfterFunc(time.Second, g) }`, "uses time.AfterFunc"},
	{"random numbers", `import "math/rand/v2"
		func f() int { return rand.Int() }`, "imports math/rand/v2"},
	{"entropy", `import "crypto/rand"
		func f(b []byte) { rand.Read(b) }`, "imports crypto/rand"},
	{"the environment", `import "os"
		func f() string { return os.Getenv("X") }`, "imports os"},
	{"a lock", `import "sync"
		var mu sync.Mutex`, "imports sync"},
	{"atomics", `import "sync/atomic"
		type t struct { n atomic.Int64 }`, "imports sync/atomic"},
	{"unsafe", `import "unsafe"
		func f(p *int) unsafe.Pointer { return unsafe.Pointer(p) }`, "imports unsafe"},
	{"a dot import", `import . "fmt"
		func f() string { return Sprintf("x") }`, "into its own names"},
	{"a renamed clock", `import t "time"
		func f() t.Duration { return t.Since(t.Time{}) }`, "uses time.Since"},
	{"a goroutine", `func f(g func()) { go g() }`, "a go statement"},
	{"a channel type", `type t struct { c chan int }`, "a channel type"},
	{"a channel that is only received from", `func f(c <-chan int) int { return <-c }`, "a channel receive"},
	{"a channel send", `func f(c chan<- int) { c <- 1 }`, "a channel send"},
	{"a select", `func f() { select {} }`, "a select"},
	{"a float type", `func f(x float64) {}`, "a value of type float64"},
	{"a small float type", `type t struct { x float32 }`, "a value of type float32"},
	{"a float conversion", `func f(n int) int { return int(float64(n) * 2) }`, "a value of type float64"},
	{"a float literal", `const half = 0.5`, "the float literal 0.5"},
	{"a float literal that is a whole number", `func f() int64 { return 1e9 }`, "the float literal 1e9"},
	{"a float that a call brings in", `import "time"
		func f(d time.Duration) bool { return d.Seconds() > 3 }`, "a value of type float64"},
	{"a complex number", `func f() { _ = 2i }`, "the float literal 2i"},
	{"a float of the maths package", `import "math"
		func f() int { return int(math.Sqrt(4)) }`, "uses math.Sqrt"},
	{"a range over a map", `func f(m map[int]int) (n int) { for k := range m { n = k }; return }`, "a range over a map"},
	{"a range over a named map", `type index map[int]int
		func f(m index) (n int) { for _, v := range m { n = v }; return }`, "a range over a map"},
	{"a range over a generic map", `func f[M ~map[int]int](m M) (n int) { for k := range m { n = k }; return }`, "a range over what may be a map"},
	{"a map's keys in their random order", `import ("maps"; "slices")
		func f(m map[int]int) []int { return slices.Collect(maps.Keys(m)) }`, "uses maps.Keys"},
	{"a package variable that is assigned", `var n int
		func f() { n = 1 }`, "writes the package's variable n"},
	{"a package variable that is counted", `var n int
		func f() { n++ }`, "writes the package's variable n"},
	{"a package table that is written", `var table [4]struct{ hits int }
		func f() { table[1].hits += 2 }`, "writes the package's variable table"},
	{"a package map that is written", `var seen = map[int]bool{}
		func f() { seen[1] = true }`, "writes the package's variable seen"},
	{"a package map that is emptied", `var seen = map[int]bool{}
		func f() { clear(seen) }`, "writes the package's variable seen"},
	{"a package map that loses a key", `var seen = map[int]bool{}
		func f() { delete(seen, 1) }`, "writes the package's variable seen"},
	{"a package slice that is copied into", `var buffer [8]byte
		func f(b []byte) { copy(buffer[:], b) }`, "writes the package's variable buffer"},
	{"a package variable behind a pointer", `var last *int
		func f() { *last = 1 }`, "writes the package's variable last"},
	{"a package variable as a loop variable", `var n int
		func f(s []int) { for n = range s {} }`, "writes the package's variable n"},
	{"the address of a package variable", `var n int
		func f() *int { return &n }`, "takes the address of the package's variable n"},
	{"a pointer method on a package variable", `type counter int
		func (c *counter) add() { *c++ }
		var hits counter
		func f() { hits.add() }`, "calls the pointer method add"},
	{"formatting on the hot path", `import "fmt"
		func f(n int) int { return len(fmt.Sprintf("%d", n)) }`, "outside a function that returns text or an error"},
	{"printing", `import "fmt"
		func f() string { fmt.Println("x"); return "" }`, "uses fmt.Println"},
	{"the print of the language", `func f() { println("x") }`, "the built-in println"},
	{"an address in a text", `import "fmt"
		func f(n *int) string { return fmt.Sprintf("at %p", n) }`, "prints an address"},
	{"an address as a number", `type t struct { at uintptr }`, "a value of type uintptr"},
	{"a recover", `func f() { defer func() { _ = recover() }() }`, "a recover would hide"},
	{"a link name", "import _ \"strings\"\n//go:linkname now time.now\nfunc now() int64", "directive //go:linkname"},
	{"a build constraint", "//go:build linux\nvar x = 1", "directive //go:build"},
}

// goodSnippet is what the core does all day and must be let through.
const goodSnippet = `
import (
	"fmt"
	"math"
	"slices"
	"time"
)

var names = [...]string{"a", "b"}
var limits = []int{1, 2}

type entry struct {
	last  time.Duration
	count int
}

type registry struct {
	order []entry
	index map[int]int
}

func (r *registry) stale(now time.Duration) (n int) {
	for i := range r.order {
		e := &r.order[i]
		if now-e.last > 120*time.Second {
			n++
			e.count++
		}
	}
	delete(r.index, n)
	return min(n, math.MaxInt32)
}

func (r *registry) at(k int) *entry { return &r.order[r.index[k]] }

func longest() int { return slices.Max(limits) }

func (r *registry) String() string {
	return fmt.Sprintf("%d of %s, 100%% pure", len(r.order), names[0])
}

func (r *registry) check() error {
	if len(r.order) > 4 {
		return fmt.Errorf("%d entries", len(r.order))
	}
	return nil
}
`

func TestEveryPurityRuleCanFail(t *testing.T) {
	lookup := exportedImports(t)
	check := func(t *testing.T, source string) []string {
		t.Helper()
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "snippet.go", "package snippet\n"+source, parser.ParseComments)
		if err != nil {
			t.Fatalf("the snippet does not parse: %v", err)
		}
		found, err := impurities(fset, "snippet", []*ast.File{f}, importer.ForCompiler(fset, "gc", lookup))
		if err != nil {
			t.Fatalf("the snippet does not compile: %v", err)
		}
		return found
	}
	for _, s := range badSnippets {
		t.Run(s.rule, func(t *testing.T) {
			found := check(t, s.source)
			if !strings.Contains(strings.Join(found, "\n"), s.complaint) {
				t.Errorf("no complaint with %q came; came:\n%s", s.complaint, strings.Join(found, "\n"))
			}
		})
	}
	t.Run("good code passes", func(t *testing.T) {
		for _, line := range check(t, goodSnippet) {
			t.Error(line)
		}
	})
}
