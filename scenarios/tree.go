package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The file as a small tree of mappings, lists and scalars, each with its
// place. The checker works on it rather than on the YAML library's own nodes,
// so that a variant can be laid over its base before anything is read, and
// every error still knows where its text stands.

type nodeKind uint8

const (
	nullNode nodeKind = iota
	scalarNode
	listNode
	mapNode
)

var nodeKindNames = [...]string{"nothing", "a single value", "a list", "a mapping"}

func (k nodeKind) String() string { return nodeKindNames[k] }

// node is one value. A mapping's keys[i] belongs to items[i].
type node struct {
	kind         nodeKind
	line, column int
	text         string
	plain        bool // a scalar without quotes: columns inside its text can be told
	keys         []*node
	items        []*node
}

// get returns the value of a mapping's key, nil where there is none.
func (n *node) get(key string) *node {
	if n == nil || n.kind != mapNode {
		return nil
	}
	for i, k := range n.keys {
		if k.text == key {
			return n.items[i]
		}
	}
	return nil
}

// overlay lays a variant over a base: mappings merge key by key, anything else
// is replaced. Neither tree is changed.
func overlay(base, over *node) *node {
	if base == nil || over == nil || base.kind != mapNode || over.kind != mapNode {
		if over == nil {
			return base
		}
		return over
	}
	out := *base
	out.keys = append([]*node(nil), base.keys...)
	out.items = append([]*node(nil), base.items...)
next:
	for i, k := range over.keys {
		for j := range out.keys {
			if out.keys[j].text == k.text {
				out.keys[j], out.items[j] = k, overlay(out.items[j], over.items[i])
				continue next
			}
		}
		out.keys, out.items = append(out.keys, k), append(out.items, over.items[i])
	}
	return &out
}

// inWords says what the YAML library means where its own words help nobody
// who looks for a slip of indentation.
func inWords(message string) string {
	switch {
	case strings.Contains(message, "value is not allowed in this context"):
		return "this does not fit here: a line begins in the column of its neighbours, and a text with \": \" in it stands in quotes"
	case strings.Contains(message, "'\t'"):
		return "a tab: YAML is indented with spaces"
	}
	return message
}

// parseTree reads the bytes of one file. It has its own guard in front of the
// YAML library, which recurses as deep as its input nests.
func parseTree(file string, data []byte) (root *node, problem *Problem) {
	at := func(line, column int, format string, args ...any) *Problem {
		return &Problem{file, line, column, fmt.Sprintf(format, args...)}
	}
	if len(data) > MaxFileBytes {
		return nil, at(0, 0, "the file has %d bytes; a scenario file may have %d", len(data), MaxFileBytes)
	}
	if p := guard(file, data); p != nil {
		return nil, p
	}
	defer func() {
		if r := recover(); r != nil { // a defect of the library must not end the caller
			root, problem = nil, at(1, 1, "the file is not YAML that can be read (%v)", r)
		}
	}()
	parsed, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var y yaml.Error
		if errors.As(err, &y) && y.GetToken() != nil && y.GetToken().Position != nil {
			pos := y.GetToken().Position
			return nil, at(max(pos.Line, 1), max(pos.Column, 1), "not YAML: %s", inWords(oneLine(y.GetMessage())))
		}
		return nil, at(1, 1, "not YAML: %s", oneLine(err.Error()))
	}
	var body ast.Node
	for _, d := range parsed.Docs {
		if d == nil || d.Body == nil {
			continue
		}
		if body != nil {
			pos := place(d.Body)
			return nil, at(pos.Line, pos.Column, "a second document begins here; a file holds one scenario and its variants")
		}
		body = d.Body
	}
	if body == nil {
		return nil, at(1, 1, "the file is empty; a scenario needs at least id, name, title, workers and until")
	}
	c := converter{file: file}
	root = c.convert(body, token.Position{Line: 1, Column: 1}, 0)
	if c.problem != nil {
		return nil, c.problem
	}
	return root, nil
}

// guard refuses what could make the library recurse or copy without bound.
func guard(file string, data []byte) *Problem {
	depth, line, start, markers := 0, 1, 0, 0
	leading := true
	for i, c := range data {
		switch {
		case c == '\n':
			line, start, leading = line+1, i+1, true
			continue
		case c == 0:
			return &Problem{file, line, i - start + 1, "the file holds a zero byte; a scenario is text"}
		case i-start >= MaxLine:
			return &Problem{file, line, i - start + 1, fmt.Sprintf("the line is longer than %d bytes", MaxLine)}
		case c == '[' || c == '{':
			if depth++; depth > MaxNesting {
				return &Problem{file, line, i - start + 1, fmt.Sprintf("more than %d brackets are open", MaxNesting)}
			}
		case c == ']' || c == '}':
			depth = max(0, depth-1)
		case leading && (c == '!' || c == '&' || c == '*' || c == '?'):
			if markers++; markers > maxMarkers {
				return &Problem{file, line, i - start + 1, "tags, anchors, aliases and complex keys are not part of the format"}
			}
		}
		if leading && c != ' ' && c != '\t' && c != '-' && c != '!' && c != '&' {
			leading = false
		}
		if c == '-' && bytes.HasPrefix(data[i:], []byte("- - - - - - - - ")) {
			return &Problem{file, line, i - start + 1, "lists are nested too deep"}
		}
	}
	return nil
}

func oneLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(s)
}

func place(n ast.Node) token.Position {
	switch v := n.(type) {
	case *ast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 {
			return place(v.Values[0])
		}
	case *ast.MappingValueNode:
		return place(v.Key)
	}
	if n != nil {
		if t := n.GetToken(); t != nil && t.Position != nil {
			return token.Position{Line: max(t.Position.Line, 1), Column: max(t.Position.Column, 1)}
		}
	}
	return token.Position{Line: 1, Column: 1}
}

// converter turns the library's nodes into ours; the first problem stays.
type converter struct {
	file    string
	problem *Problem
}

func (c *converter) fail(pos token.Position, format string, args ...any) {
	if c.problem == nil {
		c.problem = &Problem{c.file, pos.Line, pos.Column, fmt.Sprintf(format, args...)}
	}
}

// convert reads one node; near is where to say it stands if it does not know.
func (c *converter) convert(n ast.Node, near token.Position, depth int) *node {
	if n == nil {
		return &node{line: near.Line, column: near.Column}
	}
	pos := place(n)
	out := &node{line: pos.Line, column: pos.Column}
	if depth > MaxNesting {
		c.fail(pos, "nested deeper than %d", MaxNesting)
		return out
	}
	scalar := func(text string) *node {
		out.kind, out.text, out.plain = scalarNode, text, true
		return out
	}
	switch v := n.(type) {
	case *ast.NullNode:
		out.line, out.column = near.Line, near.Column
	case *ast.StringNode:
		scalar(v.Value)
		if v.Token != nil {
			out.plain = v.Token.Type != token.SingleQuoteType && v.Token.Type != token.DoubleQuoteType
		}
	case *ast.LiteralNode:
		scalar(v.Value.Value).plain = false
	case *ast.IntegerNode:
		scalar(v.Token.Value)
	case *ast.FloatNode:
		scalar(v.Token.Value)
	case *ast.BoolNode:
		scalar(v.Token.Value)
	case *ast.InfinityNode:
		scalar(v.Token.Value)
	case *ast.NanNode:
		scalar(v.Token.Value)
	case *ast.MappingNode:
		out.kind = mapNode
		for _, pair := range v.Values {
			c.pair(out, pair, depth)
		}
	case *ast.MappingValueNode:
		out.kind = mapNode
		c.pair(out, v, depth)
	case *ast.SequenceNode:
		out.kind = listNode
		for _, item := range v.Values {
			out.items = append(out.items, c.convert(item, pos, depth+1))
		}
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		c.fail(pos, "tags, anchors, aliases and merge keys are not part of the format; a variant is laid over its base, and workers share `everyone`")
	default:
		c.fail(pos, "this kind of YAML (%s) is not part of the format", n.Type())
	}
	return out
}

func (c *converter) pair(out *node, pair *ast.MappingValueNode, depth int) {
	pos := place(pair.Key)
	var text string
	switch k := pair.Key.(type) {
	case *ast.StringNode:
		text = k.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		text = k.GetToken().Value
	default:
		c.fail(pos, "a key must be a plain word")
		return
	}
	for _, k := range out.keys {
		if k.text == text {
			c.fail(pos, "%s is given twice; the first is in line %d", text, k.line)
			return
		}
	}
	out.keys = append(out.keys, &node{kind: scalarNode, text: text, line: pos.Line, column: pos.Column, plain: true})
	out.items = append(out.items, c.convert(pair.Value, pos, depth+1))
}
