package main

// Where the code can be broken, and how. A mutant is one small mistake that
// somebody could make: an edge of a comparison, a condition turned round, an
// operand of && or || forgotten, a sum for a difference, a statement left out.
//
// All mutants go into one program and one of them is switched on when it runs:
// a build for each would take hours. So each mutation is written such that its
// place computes the same as before while its number is not the one that is on.

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one mistake.
type mutant struct {
	Number int // from 1
	File   string
	Line   int
	Inside string // the function
	Change string // the mistake, in words, with the code that it is made in
	Nth    int    // which one of those with the same words in the function, from 1
}

// key names a mutant for as long as its code stays as it is.
func (m *mutant) key() string {
	key := fmt.Sprintf("%s %s: %s", m.File, m.Inside, m.Change)
	if m.Nth > 1 {
		key += fmt.Sprintf(" (%d)", m.Nth)
	}
	return key
}

// switchName is the package that says which mutant is on, in the copy only.
const switchName = "core/mutation"

// instrument rewrites the packages of a copied tree, so that each holds all of
// its mutants, and returns them.
func instrument(tree string, folders []string) ([]mutant, error) {
	if err := writeSwitch(tree); err != nil {
		return nil, err
	}
	var all []mutant
	for _, folder := range folders {
		p, err := load(tree, folder)
		if err != nil {
			return nil, err
		}
		for _, f := range p.files {
			in := &instrumenter{pkg: p, file: path.Join(folder, filepath.Base(p.fset.Position(f.Pos()).Filename)), all: &all, seen: map[string]int{}}
			in.rewrite(f)
		}
		for _, f := range p.files {
			addImport(f, "vigil/"+switchName)
			f.Comments = nil // they would be printed at places that are no longer theirs
			var b bytes.Buffer
			if err := printer.Fprint(&b, p.fset, f); err != nil {
				return nil, err
			}
			b.WriteString("\nvar _ = mutation.On\n")
			if err := os.WriteFile(p.fset.Position(f.Pos()).Filename, b.Bytes(), 0o644); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

type loaded struct {
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
}

// load parses and checks one package of the tree, without its tests.
func load(tree, folder string) (*loaded, error) {
	p := &loaded{fset: token.NewFileSet(), info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
	names, err := filepath.Glob(filepath.Join(tree, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(p.fset, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	if len(p.files) == 0 {
		return nil, fmt.Errorf("%s holds no Go files", folder)
	}
	check := types.Config{Importer: importer.ForCompiler(p.fset, "source", nil)}
	if _, err := check.Check("vigil/"+folder, p.fset, p.files, p.info); err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	return p, nil
}

func addImport(f *ast.File, name string) {
	spec := &ast.ImportSpec{Path: &ast.BasicLit{Kind: token.STRING, Value: fmt.Sprintf("%q", name)}}
	f.Decls = slices.Insert(f.Decls, 0, ast.Decl(&ast.GenDecl{Tok: token.IMPORT, Specs: []ast.Spec{spec}}))
}

// instrumenter rewrites one file.
type instrumenter struct {
	pkg    *loaded
	file   string
	inside string
	all    *[]mutant
	seen   map[string]int
}

func (in *instrumenter) rewrite(f *ast.File) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		in.inside = fn.Name.Name
		if fn.Recv != nil && len(fn.Recv.List) == 1 {
			in.inside = receiver(fn.Recv.List[0].Type) + "." + fn.Name.Name
		}
		in.block(fn.Body.List)
	}
}

func receiver(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}

// add notes a mutant and returns its number as an argument.
func (in *instrumenter) add(at token.Pos, change string) ast.Expr {
	m := mutant{Number: len(*in.all) + 1, File: in.file, Line: in.pkg.fset.Position(at).Line, Inside: in.inside, Change: change}
	in.seen[in.inside+change]++
	m.Nth = in.seen[in.inside+change]
	*in.all = append(*in.all, m)
	return &ast.BasicLit{Kind: token.INT, Value: fmt.Sprint(m.Number)}
}

// text is a piece of code on one line.
func (in *instrumenter) text(n ast.Node) string {
	var b bytes.Buffer
	if printer.Fprint(&b, token.NewFileSet(), n) != nil {
		return "?"
	}
	words := strings.Join(strings.Fields(b.String()), " ")
	if len(words) > 90 {
		words = words[:87] + "..."
	}
	return words
}

func call(name string, args ...ast.Expr) ast.Expr {
	return &ast.CallExpr{Fun: &ast.SelectorExpr{X: ast.NewIdent("mutation"), Sel: ast.NewIdent(name)}, Args: args}
}

// block rewrites the statements of a block in place.
func (in *instrumenter) block(list []ast.Stmt) {
	for i, s := range list {
		list[i] = in.statement(s)
	}
}

// statement returns what takes a statement's place.
func (in *instrumenter) statement(s ast.Stmt) ast.Stmt {
	switch s := s.(type) {
	case *ast.BlockStmt:
		in.block(s.List)
	case *ast.IfStmt:
		if s.Init != nil {
			s.Init = in.inner(s.Init)
		}
		s.Cond = in.condition(s.Cond)
		in.block(s.Body.List)
		if s.Else != nil {
			s.Else = in.statement(s.Else)
		}
	case *ast.ForStmt:
		if s.Cond != nil {
			s.Cond = in.condition(s.Cond)
		}
		if s.Init != nil {
			s.Init = in.inner(s.Init)
		}
		in.block(s.Body.List)
	case *ast.RangeStmt:
		in.block(s.Body.List)
	case *ast.SwitchStmt:
		if s.Init != nil {
			s.Init = in.inner(s.Init)
		}
		for _, c := range s.Body.List {
			c := c.(*ast.CaseClause)
			if s.Tag == nil {
				for i := range c.List {
					c.List[i] = in.condition(c.List[i])
				}
			}
			in.block(c.Body)
		}
	case *ast.LabeledStmt:
		s.Stmt = in.statement(s.Stmt) // a loop, which stays what the label is on
	case *ast.ReturnStmt:
		for i, e := range s.Results {
			s.Results[i] = in.result(e)
		}
		if len(s.Results) == 0 {
			return in.leftOut(s, in.text(s))
		}
	case *ast.BranchStmt:
		if s.Tok == token.BREAK || s.Tok == token.CONTINUE {
			return in.leftOut(s, in.text(s))
		}
	case *ast.ExprStmt:
		if c, ok := s.X.(*ast.CallExpr); ok {
			if id, ok := c.Fun.(*ast.Ident); ok && id.Name == "panic" {
				return s
			}
			text := in.text(s)
			in.arguments(c)
			return in.leftOut(s, text)
		}
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			for i := range s.Rhs {
				s.Rhs[i] = in.value(s.Rhs[i])
			}
			return s
		}
		if len(s.Lhs) == 1 {
			if id, ok := s.Lhs[0].(*ast.Ident); ok && id.Name == "_" {
				return s
			}
		}
		text := in.text(s)
		for i := range s.Rhs {
			s.Rhs[i] = in.value(s.Rhs[i])
		}
		return in.leftOut(s, text)
	case *ast.IncDecStmt:
		return in.leftOut(s, in.text(s))
	}
	return s
}

// inner rewrites the values of an init statement, which cannot be left out.
func (in *instrumenter) inner(s ast.Stmt) ast.Stmt {
	if a, ok := s.(*ast.AssignStmt); ok {
		for i := range a.Rhs {
			a.Rhs[i] = in.value(a.Rhs[i])
		}
	}
	return s
}

// leftOut is a statement that one mutant leaves out; text is what it was before
// its parts were rewritten.
func (in *instrumenter) leftOut(s ast.Stmt, text string) ast.Stmt {
	off := &ast.UnaryExpr{Op: token.NOT, X: call("On", in.add(s.Pos(), "left out "+text))}
	return &ast.IfStmt{Cond: off, Body: &ast.BlockStmt{List: []ast.Stmt{s}}}
}

// condition rewrites a condition: all its parts, and the whole turned round.
func (in *instrumenter) condition(e ast.Expr) ast.Expr {
	if in.constant(e) {
		return e
	}
	text := in.text(e)
	if turnsByItself(e) {
		return in.value(e)
	}
	return &ast.BinaryExpr{X: call("On", in.add(e.Pos(), "turned round "+text)), Op: token.NEQ, Y: &ast.ParenExpr{X: in.value(e)}}
}

// turnsByItself says whether value makes the mutant that turns an expression
// round: a test of equality.
func turnsByItself(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return e.Op == token.EQL || e.Op == token.NEQ
	case *ast.ParenExpr:
		return turnsByItself(e.X)
	}
	return false
}

// result rewrites what is returned; a verdict may be turned round.
func (in *instrumenter) result(e ast.Expr) ast.Expr {
	if in.boolean(e) && !turnsByItself(e) {
		text := in.text(e)
		return &ast.BinaryExpr{X: call("On", in.add(e.Pos(), "returned the opposite of "+text)), Op: token.NEQ, Y: &ast.ParenExpr{X: in.value(e)}}
	}
	return in.value(e)
}

var edges = map[token.Token]struct{ name, other string }{
	token.LSS: {"Less", "<="}, token.LEQ: {"LessOrEqual", "<"}, token.GTR: {"Greater", ">="}, token.GEQ: {"GreaterOrEqual", ">"},
}

// value rewrites an expression and its parts.
func (in *instrumenter) value(e ast.Expr) ast.Expr {
	if in.constant(e) {
		return e
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		e.X = in.value(e.X)
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			e.X = in.value(e.X)
		}
	case *ast.CallExpr:
		in.arguments(e)
	case *ast.CompositeLit:
		for i, item := range e.Elts {
			if kv, ok := item.(*ast.KeyValueExpr); ok {
				kv.Value = in.value(kv.Value)
			} else {
				e.Elts[i] = in.value(item)
			}
		}
	case *ast.BinaryExpr:
		return in.binary(e)
	}
	return e
}

func (in *instrumenter) arguments(c *ast.CallExpr) {
	if tv, ok := in.pkg.info.Types[c.Fun]; ok && tv.IsBuiltin() {
		if id, ok := c.Fun.(*ast.Ident); !ok || id.Name != "min" && id.Name != "max" && id.Name != "append" {
			return
		}
	}
	for i := range c.Args {
		c.Args[i] = in.value(c.Args[i])
	}
}

func (in *instrumenter) binary(e *ast.BinaryExpr) ast.Expr {
	text := in.text(e)
	x, y := e.X, e.Y
	kindX, kindY := in.text(x), in.text(y)
	numbers := in.ordered(x) && in.ordered(y)
	e.X, e.Y = in.value(e.X), in.value(e.Y)
	switch e.Op {
	case token.LAND:
		without := func(x ast.Expr, text string) ast.Expr {
			return &ast.ParenExpr{X: &ast.BinaryExpr{X: x, Op: token.LOR, Y: call("On", in.add(x.Pos(), "forgot && "+text))}}
		}
		e.X, e.Y = without(e.X, kindX), without(e.Y, kindY)
	case token.LOR:
		without := func(x ast.Expr, text string) ast.Expr {
			return &ast.ParenExpr{X: &ast.BinaryExpr{X: x, Op: token.LAND, Y: &ast.UnaryExpr{Op: token.NOT, X: call("On", in.add(x.Pos(), "forgot || "+text))}}}
		}
		e.X, e.Y = without(e.X, kindX), without(e.Y, kindY)
	case token.EQL, token.NEQ:
		return &ast.ParenExpr{X: &ast.BinaryExpr{X: call("On", in.add(e.Pos(), "turned round "+text)), Op: token.NEQ, Y: &ast.ParenExpr{X: e}}}
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		if numbers {
			edge := edges[e.Op]
			return call(edge.name, in.add(e.Pos(), "wrote "+edge.other+" in "+text), e.X, e.Y)
		}
	case token.ADD, token.SUB:
		if numbers && in.integer(x) && in.integer(y) {
			name, other := "Sum", "-"
			if e.Op == token.SUB {
				name, other = "Difference", "+"
			}
			return call(name, in.add(e.Pos(), "wrote "+other+" in "+text), e.X, e.Y)
		}
	}
	return e
}

func (in *instrumenter) constant(e ast.Expr) bool {
	tv, ok := in.pkg.info.Types[e]
	return ok && tv.Value != nil && tv.Value.Kind() != constant.Bool
}

func (in *instrumenter) boolean(e ast.Expr) bool { return in.is(e, types.IsBoolean) }
func (in *instrumenter) integer(e ast.Expr) bool { return in.is(e, types.IsInteger) }
func (in *instrumenter) ordered(e ast.Expr) bool { return in.is(e, types.IsOrdered) }

func (in *instrumenter) is(e ast.Expr, what types.BasicInfo) bool {
	tv, ok := in.pkg.info.Types[e]
	if !ok || tv.Type == nil {
		return false
	}
	b, ok := tv.Type.Underlying().(*types.Basic)
	return ok && b.Info()&what != 0
}

// writeSwitch writes the package that says which mutant is on. It is asked at
// every mutant that a run passes, so it is a comparison and no more; with a file
// to note in, it notes each number once.
func writeSwitch(tree string) error {
	folder := filepath.Join(tree, filepath.FromSlash(switchName))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "on.go"), []byte(`package mutation

import (
	"cmp"
	"os"
	"strconv"
	"sync"
)

var on, _ = strconv.Atoi(os.Getenv("`+onVariable+`"))

var notes = os.Getenv("`+reachedVariable+`")

var (
	mu      sync.Mutex
	reached = map[int]bool{}
	file    *os.File
)

func On(n int) bool {
	if notes != "" {
		note(n)
	}
	return n == on
}

func note(n int) {
	mu.Lock()
	defer mu.Unlock()
	if reached[n] {
		return
	}
	reached[n] = true
	if file == nil {
		file, _ = os.OpenFile(notes, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	}
	file.WriteString(strconv.Itoa(n) + "\n")
}

func Less[T cmp.Ordered](n int, a, b T) bool           { return a < b || On(n) && a == b }
func LessOrEqual[T cmp.Ordered](n int, a, b T) bool    { return a < b || a == b && !On(n) }
func Greater[T cmp.Ordered](n int, a, b T) bool        { return a > b || On(n) && a == b }
func GreaterOrEqual[T cmp.Ordered](n int, a, b T) bool { return a > b || a == b && !On(n) }

type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

func Sum[T integer](n int, a, b T) T {
	if On(n) {
		return a - b
	}
	return a + b
}

func Difference[T integer](n int, a, b T) T {
	if On(n) {
		return a + b
	}
	return a - b
}
`), 0o644)
}

// The environment that the instrumented program reads.
const (
	onVariable      = "VIGIL_MUTANT"
	reachedVariable = "VIGIL_MUTANTS_REACHED"
)
