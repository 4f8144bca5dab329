package core_test

// The core's promise is that a run is a pure function of code, scenario and
// tape (core/doc.go). This file holds the promise against the syntax trees of
// the four pure folders: what they may import, which symbols of it, and which
// constructs of the language they may not use at all. Types are consulted
// wherever the syntax alone could lie: a range over a map looks like a range
// over a slice, and a float can arrive as the result of a call.
//
// Every rule has a bad snippet of its own in TestEveryPurityRuleCanFail: a
// checker that was never seen to fail proves nothing.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pureFolders are the packages under the promise, relative to this folder.
var pureFolders = []string{".", "wire", "server", "worker"}

// everySymbol in an allow-list stands for the whole package: used where every
// function of it is a function of its arguments alone.
const everySymbol = "*"

// allowed says what the pure packages may import and which names of each.
// A name joins the list only when it reads no clock, entropy, environment or
// address, keeps no state of its own, and needs no float.
var allowed = map[string]string{
	"bytes":           "Clone Compare Contains ContainsAny ContainsRune Count Cut CutPrefix CutSuffix Equal HasPrefix HasSuffix Index IndexAny IndexByte LastIndexByte NewReader TrimPrefix TrimSuffix",
	"cmp":             "Compare Less Or Ordered",
	"crypto/sha256":   "BlockSize New Size Sum256",
	"encoding/binary": "AppendUvarint AppendVarint BigEndian LittleEndian MaxVarintLen64 PutUvarint Uvarint Varint",
	"errors":          "As AsType Is Join New",
	"fmt":             "Errorf Sprintf",
	"maps":            "Clone",
	"math": "MaxInt MaxInt8 MaxInt16 MaxInt32 MaxInt64 MaxUint MaxUint8 MaxUint16 MaxUint32 MaxUint64 " +
		"MinInt MinInt8 MinInt16 MinInt32 MinInt64",
	"math/bits": everySymbol,
	"slices": "BinarySearch BinarySearchFunc Clip Clone Compact CompactFunc Compare Concat Contains ContainsFunc Delete DeleteFunc " +
		"Equal EqualFunc Grow Index IndexFunc Insert IsSorted IsSortedFunc Max MaxFunc Min MinFunc Replace Reverse " +
		"Sort SortFunc SortStableFunc",
	"strconv": "AppendInt AppendQuote AppendUint Atoi FormatBool FormatInt FormatUint Itoa ParseBool ParseInt ParseUint Quote",
	"strings": "Builder Clone Compare Contains ContainsAny ContainsRune Count Cut CutPrefix CutSuffix EqualFold Fields HasPrefix HasSuffix " +
		"Index IndexAny IndexByte Join LastIndex LastIndexByte Repeat ReplaceAll Split SplitN ToLower ToUpper Trim TrimLeft " +
		"TrimPrefix TrimRight TrimSpace TrimSuffix",
	"time":            "Duration Hour Microsecond Millisecond Minute Nanosecond Second",
	"unicode/utf8":    everySymbol,
	"vigil/core":      everySymbol,
	"vigil/core/wire": everySymbol,
}

// allowedInWire is what the codec may import beside that. The pooled coders
// are on the list although a pool outlives a step: a coder that is Reset before
// its use codes alike whether it is new or used, so the pool saves an
// allocation and decides nothing.
var allowedInWire = map[string]string{
	"github.com/vmihailenco/msgpack/v5": "Decoder Encoder GetDecoder GetEncoder NewDecoder NewEncoder PutDecoder PutEncoder",
}

// formatters are the imports that only text and errors may use; each call
// allocates, and the hot path must not.
var formatters = map[string]bool{"fmt": true}

// pointerVerb finds a verb that prints an address, which differs in each run.
var pointerVerb = regexp.MustCompile(`%[-+# 0-9.]*p`)

// hiddenDirective finds the comments that reach behind the type checker or
// give a file to some machines only.
var hiddenDirective = regexp.MustCompile(`^//(go:linkname|go:build|go:cgo_|go:embed|\s*\+build)`)

func TestTheCoreIsPure(t *testing.T) {
	imports := exportedImports(t)
	for _, folder := range pureFolders {
		path := "vigil/core"
		if folder != "." {
			path += "/" + folder
		}
		t.Run(path, func(t *testing.T) {
			entries, err := os.ReadDir(folder)
			if errors.Is(err, os.ErrNotExist) {
				t.Skipf("%s is not there yet", path)
			}
			if err != nil {
				t.Fatal(err)
			}
			fset := token.NewFileSet()
			var files []*ast.File
			for _, e := range entries {
				switch name := e.Name(); {
				case e.IsDir() || strings.HasSuffix(name, "_test.go"):
				case strings.HasSuffix(name, ".go"):
					f, err := parser.ParseFile(fset, filepath.Join(folder, name), nil, parser.ParseComments)
					if err != nil {
						t.Fatal(err)
					}
					files = append(files, f)
				case slices.Contains([]string{".s", ".c", ".h", ".syso", ".cc", ".cpp"}, filepath.Ext(name)):
					t.Errorf("%s: only Go may stand in a pure folder", filepath.Join(folder, name))
				}
			}
			if len(files) == 0 {
				t.Skipf("%s has no Go file yet", path)
			}
			faults, err := impurities(fset, path, files, importer.ForCompiler(fset, "gc", imports))
			if err != nil {
				t.Fatalf("%s does not compile, so nothing can be said of it: %v", path, err)
			}
			for _, f := range faults {
				t.Error(f)
			}
		})
	}
}

// impurities returns what the files of one package do against the rules, one
// line each, in the order of the source.
func impurities(fset *token.FileSet, path string, files []*ast.File, imports types.Importer) ([]string, error) {
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	config := types.Config{Importer: imports}
	if _, err := config.Check(path, fset, files, info); err != nil {
		return nil, err
	}
	c := &checker{fset: fset, info: info, path: path}
	for _, f := range files {
		c.file(f)
	}
	slices.SortStableFunc(c.found, func(a, b impurity) int { return int(a.at) - int(b.at) })
	var lines []string
	for _, f := range c.found {
		line := fmt.Sprintf("%s: %s", fset.Position(f.at), f.what)
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

type impurity struct {
	at   token.Pos
	what string
}

type checker struct {
	fset  *token.FileSet
	info  *types.Info
	path  string
	found []impurity
	// text is true inside a function that makes text or an error.
	text bool
}

func (c *checker) bad(n ast.Node, format string, args ...any) {
	c.found = append(c.found, impurity{n.Pos(), fmt.Sprintf(format, args...)})
}

func (c *checker) file(f *ast.File) {
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if c.symbols(path) == "" {
			c.bad(spec, "imports %s, which is not on the list of pure imports", path)
		}
		if spec.Name != nil && spec.Name.Name != "_" && spec.Name.Name == "." {
			c.bad(spec, "imports %s into its own names, which hides where a symbol comes from", path)
		}
	}
	for _, group := range f.Comments {
		for _, comment := range group.List {
			if hiddenDirective.MatchString(comment.Text) {
				c.bad(comment, "directive %s: a pure file is the same on every machine and hides nothing from the types", strings.Fields(comment.Text)[0])
			}
		}
	}
	for _, d := range f.Decls {
		c.text = false
		if fn, ok := d.(*ast.FuncDecl); ok {
			c.text = c.makesText(fn)
		}
		ast.Inspect(d, c.node)
	}
}

// symbols is the allow-list of one import, "" where it may not be imported.
func (c *checker) symbols(path string) string {
	if names := allowed[path]; names != "" {
		return names
	}
	if c.path == "vigil/core/wire" {
		return allowedInWire[path]
	}
	return ""
}

// makesText reports whether a function returns a string or an error, or a
// slice of them.
func (c *checker) makesText(fn *ast.FuncDecl) bool {
	if fn.Type.Results == nil {
		return false
	}
	for _, r := range fn.Type.Results.List {
		t := c.info.TypeOf(r.Type)
		if s, ok := t.Underlying().(*types.Slice); ok {
			t = s.Elem()
		}
		if b, ok := t.Underlying().(*types.Basic); ok && b.Kind() == types.String {
			return true
		}
		if types.Identical(t, types.Universe.Lookup("error").Type()) {
			return true
		}
	}
	return false
}

func (c *checker) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.bad(n, "a go statement: order would come from the scheduler")
	case *ast.ChanType:
		c.bad(n, "a channel type: order would come from the scheduler")
	case *ast.SendStmt:
		c.bad(n, "a channel send: order would come from the scheduler")
	case *ast.SelectStmt:
		c.bad(n, "a select: it chooses at random")
	case *ast.BasicLit:
		if n.Kind == token.FLOAT || n.Kind == token.IMAG {
			c.bad(n, "the float literal %s: write it as an integer", n.Value)
		}
	case *ast.RangeStmt:
		c.ranges(n)
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, to := range n.Lhs {
				c.written(to)
			}
		}
	case *ast.IncDecStmt:
		c.written(n.X)
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			c.bad(n, "a channel receive: order would come from the scheduler")
		}
		if n.Op == token.AND {
			if v := c.packageVar(n.X); v != nil {
				if _, whole := ast.Unparen(n.X).(*ast.Ident); whole {
					c.bad(n, "takes the address of the package's variable %s, through which it could be written", v.Name())
				}
			}
		}
	case *ast.CallExpr:
		c.call(n)
	case *ast.SelectorExpr:
		if s := c.info.Selections[n]; s != nil && s.Kind() == types.MethodVal {
			c.method(n, s)
		}
	case *ast.Ident:
		c.ident(n)
	}
	if e, ok := n.(ast.Expr); ok {
		c.typed(e)
	}
	return true
}

// typed looks at the type of an expression, so that a float that only a call
// or a field brings in is seen too.
func (c *checker) typed(e ast.Expr) {
	tv, ok := c.info.Types[e]
	if !ok || tv.Type == nil {
		return
	}
	switch u := tv.Type.Underlying().(type) {
	case *types.Basic:
		if u.Info()&(types.IsFloat|types.IsComplex) != 0 {
			c.bad(e, "a value of type %s: floats round differently in different code, so the core has none", u)
		}
		if u.Kind() == types.Uintptr || u.Kind() == types.UnsafePointer {
			c.bad(e, "a value of type %s: addresses differ in each run", u)
		}
	case *types.Chan:
		c.bad(e, "a value of a channel type: order would come from the scheduler")
	}
}

func (c *checker) ranges(n *ast.RangeStmt) {
	if t := c.info.TypeOf(n.X); t != nil {
		switch core := t.Underlying().(type) {
		case *types.Map:
			c.bad(n, "a range over a map: its order differs in each run; keep a slice beside the index")
		case *types.Interface: // a type parameter: any map in its set
			if _, ok := types.Unalias(t).(*types.TypeParam); ok && constrainedToMap(core) {
				c.bad(n, "a range over what may be a map: its order differs in each run")
			}
		}
	}
	if n.Tok == token.ASSIGN {
		for _, to := range []ast.Expr{n.Key, n.Value} {
			if to != nil {
				c.written(to)
			}
		}
	}
}

// constrainedToMap reports whether a constraint admits a map.
func constrainedToMap(i *types.Interface) bool {
	for k := range i.NumEmbeddeds() {
		u, ok := i.EmbeddedType(k).(*types.Union)
		if !ok {
			if _, is := i.EmbeddedType(k).Underlying().(*types.Map); is {
				return true
			}
			continue
		}
		for j := range u.Len() {
			if _, is := u.Term(j).Type().Underlying().(*types.Map); is {
				return true
			}
		}
	}
	return false
}

// written complains where an assignment ends in a package's variable: state
// that no Clone copies and no Fingerprint sees.
func (c *checker) written(to ast.Expr) {
	if v := c.packageVar(to); v != nil {
		c.bad(to, "writes the package's variable %s: state belongs in the machine, where Clone and Fingerprint see it", v.Name())
	}
}

// packageVar is the package-level variable that an expression is, or is a part
// of; nil where there is none.
func (c *checker) packageVar(e ast.Expr) *types.Var {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			if v, ok := c.info.Uses[x.Sel].(*types.Var); ok && !v.IsField() {
				return packageLevel(v)
			}
			e = x.X
		case *ast.Ident:
			v, _ := c.info.Uses[x].(*types.Var)
			return packageLevel(v)
		default:
			return nil
		}
	}
}

func packageLevel(v *types.Var) *types.Var {
	if v == nil || v.Pkg() == nil || v.Parent() != v.Pkg().Scope() {
		return nil
	}
	return v
}

// call looks at the built-in functions that write their first argument or the
// terminal, and at the verbs of formats.
func (c *checker) call(n *ast.CallExpr) {
	if id, ok := ast.Unparen(n.Fun).(*ast.Ident); ok {
		if b, ok := c.info.Uses[id].(*types.Builtin); ok {
			switch b.Name() {
			case "print", "println":
				c.bad(n, "the built-in %s writes to the terminal", b.Name())
			case "clear", "copy", "delete":
				c.written(n.Args[0])
			case "recover":
				c.bad(n, "a recover would hide the defect that a run should show")
			}
		}
	}
	sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	if !ok {
		return
	}
	if f, ok := c.info.Uses[sel.Sel].(*types.Func); ok && f.Pkg() != nil && f.Pkg().Path() == "fmt" && len(n.Args) > 0 {
		if tv := c.info.Types[n.Args[0]]; tv.Value != nil && pointerVerb.MatchString(strings.ReplaceAll(tv.Value.ExactString(), "%%", "")) {
			c.bad(n, "a format with %%p prints an address, which differs in each run")
		}
	}
}

// method complains about a method that can write the package's variable it is
// called on.
func (c *checker) method(n *ast.SelectorExpr, s *types.Selection) {
	v := c.packageVar(n.X)
	f, ok := s.Obj().(*types.Func)
	if v == nil || !ok {
		return
	}
	recv := f.Signature().Recv()
	if recv == nil {
		return
	}
	if _, pointer := recv.Type().(*types.Pointer); pointer {
		c.bad(n, "calls the pointer method %s on the package's variable %s, which could write it", f.Name(), v.Name())
	}
}

// ident checks a name that comes from another package against its allow-list.
func (c *checker) ident(n *ast.Ident) {
	obj := c.info.Uses[n]
	if obj == nil || obj.Pkg() == nil || obj.Pkg().Path() == c.path {
		return
	}
	if _, isPackage := obj.(*types.PkgName); isPackage || obj.Parent() != obj.Pkg().Scope() {
		return // fields and methods belong to types that had to be named first
	}
	path := obj.Pkg().Path()
	names := c.symbols(path)
	if names != everySymbol && !slices.Contains(strings.Fields(names), obj.Name()) {
		c.bad(n, "uses %s.%s, which is not on the list of pure symbols", path, obj.Name())
	}
	if formatters[path] && !c.text {
		c.bad(n, "uses %s.%s outside a function that returns text or an error; formatting allocates", path, obj.Name())
	}
}

// exportedImports compiles what the pure packages and the snippets import and
// returns the way to each one's export data. The go command's build cache
// makes this quick, where checking the standard library from source is not.
func exportedImports(t *testing.T) func(path string) (io.ReadCloser, error) {
	t.Helper()
	want := []string{"list", "-e", "-export", "-deps", "-json=ImportPath,Export,Error", "fmt", "maps", "math", "math/bits", "math/rand/v2",
		"os", "slices", "strings", "sync", "sync/atomic", "time", "unsafe", "crypto/rand", "iter"}
	for _, folder := range pureFolders {
		if matches, _ := filepath.Glob(filepath.Join(folder, "*.go")); len(matches) > 0 {
			want = append(want, "./"+folder)
		}
	}
	cmd := exec.Command("go", want...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, complaints.Bytes())
	}
	files := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
	}
	return func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("%s was not compiled", path)
		}
		return os.Open(files[path])
	}
}
