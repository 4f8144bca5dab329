package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"vigil/scenarios"
)

// Why this file: a configuration file is strict, so that a mistyped key cannot
// leave a default in place that nobody meant. Every error has a place.

// maxConfigBytes bounds a configuration file.
const maxConfigBytes = 1 << 20

// fileValue is one setting of a file.
type fileValue struct{ text, place string }

// readSettingsFile reads a file of one mapping of settings to single values or
// lists of them.
func readSettingsFile(path string, known []*setting) (values map[string]fileValue, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() || info.Size() > maxConfigBytes {
		return nil, fmt.Errorf("%s: not a file of at most %d bytes", path, maxConfigBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil { // a defect of the library must not end the caller
			values, err = nil, fmt.Errorf("%s: not YAML that can be read (%v)", path, r)
		}
	}()
	parsed, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var y yaml.Error
		if errors.As(err, &y) && y.GetToken() != nil && y.GetToken().Position != nil {
			p := y.GetToken().Position
			return nil, fmt.Errorf("%s:%d:%d: not YAML: %s", path, p.Line, p.Column, y.GetMessage())
		}
		return nil, fmt.Errorf("%s: not YAML: %w", path, err)
	}
	names := map[string]string{}
	var keys []string
	for _, x := range known {
		names[fileKey(x.name)] = x.name
		keys = append(keys, fileKey(x.name))
	}
	values = map[string]fileValue{}
	var errs []error
	for _, d := range parsed.Docs {
		if d == nil || d.Body == nil {
			continue
		}
		var entries []*ast.MappingValueNode
		switch body := d.Body.(type) {
		case *ast.MappingNode:
			entries = body.Values
		case *ast.MappingValueNode:
			entries = []*ast.MappingValueNode{body}
		case *ast.CommentGroupNode, *ast.NullNode:
		default:
			return nil, fmt.Errorf("%s: the file must be settings, one a line, such as bind: tcp://127.0.0.1:5555", path)
		}
		for _, e := range entries {
			at := e.Key.GetToken().Position
			place := fmt.Sprintf("%s:%d:%d", path, at.Line, at.Column)
			key := e.Key.GetToken().Value
			name, ok := names[key]
			if !ok {
				hint := "server run --help lists the settings"
				if near, found := scenarios.Nearest(key, keys); found {
					hint = fmt.Sprintf("did you mean %q?", near)
				}
				errs = append(errs, fmt.Errorf("%s: there is no setting %q; %s", place, key, hint))
				continue
			}
			if _, twice := values[name]; twice {
				errs = append(errs, fmt.Errorf("%s: %s is set twice", place, key))
				continue
			}
			text, ok := scalarOrList(e.Value)
			if !ok {
				errs = append(errs, fmt.Errorf("%s: %s must be a single value, or a list of single values", place, key))
				continue
			}
			values[name] = fileValue{text, place}
		}
	}
	return values, errors.Join(errs...)
}

func scalarOrList(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.SequenceNode:
		var parts []string
		for _, item := range v.Values {
			text, ok := scalar(item)
			if !ok {
				return "", false
			}
			parts = append(parts, text)
		}
		return strings.Join(parts, ","), true
	}
	return scalar(n)
}

func scalar(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return v.GetToken().Value, true
	case *ast.InfinityNode, *ast.NanNode:
		return v.GetToken().Value, true
	}
	return "", false
}
