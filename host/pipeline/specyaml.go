package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/weir-data/weir/host/fault"
)

// yamlFile walks a parsed YAML document field by field, so that every
// complaint carries the line and column it is about.
type yamlFile struct {
	path string
	env  func(string) (string, bool)
	// secret is true for a file whose values no message may quote.
	secret bool
	// unlisted are fields that are known, but that nobody should be told to use.
	unlisted map[string]bool
}

// parse gives the document's top-level mapping.
func (f *yamlFile) parse(text []byte) (root *ast.MappingNode, err error) {
	// The YAML parser is fed what a user wrote; should it panic, the user gets an error.
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, fault.New("INVALID_SPEC", "not readable as YAML: %v", r).At(fault.Where{File: f.path})
		}
	}()
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		e := fault.New("INVALID_SPEC", "not YAML").At(fault.Where{File: f.path})
		if !f.secret {
			e.Message += fmt.Sprintf(": %v", err)
		}
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			e.Message = "not YAML"
			if !f.secret {
				e.Message += ": " + syntax.GetMessage()
			}
			if t := syntax.GetToken(); t != nil && t.Position != nil {
				e.At(fault.Where{Line: int64(t.Position.Line), Column: int64(t.Position.Column)})
			}
		}
		return nil, e
	}
	var docs []ast.Node
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.CommentType {
			docs = append(docs, d.Body)
		}
	}
	switch len(docs) {
	case 0:
		return nil, fault.New("INVALID_SPEC", "the file is empty").At(fault.Where{File: f.path}).
			WithHint("It needs at least name and storage")
	case 1:
	default:
		return nil, f.errAt(docs[1], "a second YAML document; a spec is one")
	}
	return f.mapping(docs[0], "the spec")
}

func (f *yamlFile) errAt(n ast.Node, format string, args ...any) *fault.Error {
	where := fault.Where{File: f.path}
	if n != nil {
		if t := n.GetToken(); t != nil && t.Position != nil {
			where.Line, where.Column = int64(t.Position.Line), int64(t.Position.Column)
		}
	}
	return fault.New("INVALID_SPEC", format, args...).At(where)
}

func (f *yamlFile) mapping(n ast.Node, what string) (*ast.MappingNode, error) {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m, nil
	case *ast.MappingValueNode:
		return &ast.MappingNode{BaseNode: m.BaseNode, Start: m.Start, Values: []*ast.MappingValueNode{m}}, nil
	}
	return nil, f.errAt(n, "%s must be a mapping (key: value), not %s", what, yamlKind(n))
}

// fields calls the handler of each key; a key without handler is an error that
// names the nearest one. null leaves a field unset.
func (f *yamlFile) fields(n ast.Node, what string, handlers map[string]func(ast.Node) error) error {
	m, err := f.mapping(n, what)
	if err != nil {
		return err
	}
	for _, kv := range m.Values {
		key, err := f.key(kv)
		if err != nil {
			return err
		}
		handle, ok := handlers[key]
		if !ok {
			e := f.errAt(kv.Key, "%s has no field %q", what, key)
			names := slices.Sorted(maps.Keys(handlers))
			listed := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return f.unlisted[name] })
			return suggest(e, key, names, "It has "+strings.Join(listed, ", "))
		}
		if kv.Value == nil || kv.Value.Type() == ast.NullType {
			continue
		}
		if err := handle(kv.Value); err != nil {
			return err
		}
	}
	return nil
}

func (f *yamlFile) key(kv *ast.MappingValueNode) (string, error) {
	s, ok := kv.Key.(*ast.StringNode)
	if !ok {
		return "", f.errAt(kv.Key, "a key must be plain text, not %s", yamlKind(kv.Key))
	}
	return s.Value, nil
}

// text reads a string with its ${env:…} references replaced.
func (f *yamlFile) text(n ast.Node, what string) (string, error) {
	var raw string
	switch s := n.(type) {
	case *ast.StringNode:
		raw = s.Value
	case *ast.LiteralNode:
		raw = s.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return "", f.errAt(n, "%s must be text, not %s", what, yamlKind(n)).
			WithHint("Write \"%s\"", n.GetToken().Value)
	default:
		return "", f.errAt(n, "%s must be text, not %s", what, yamlKind(n))
	}
	value, err := expandEnv(raw, f.env)
	if err != nil {
		return "", f.errAt(n, "%s: %v", what, err)
	}
	return value, nil
}

// literal reads a scalar as it is written, and quotes it in no message.
func (f *yamlFile) literal(n ast.Node, what string) (string, error) {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value, nil
	case *ast.LiteralNode:
		return s.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, nil
	}
	return "", f.errAt(n, "%s must be text, not %s", what, yamlKind(n))
}

func (f *yamlFile) truth(n ast.Node, what string) (bool, error) {
	b, ok := n.(*ast.BoolNode)
	if !ok {
		return false, f.errAt(n, "%s must be true or false, not %s", what, yamlKind(n))
	}
	return b.Value, nil
}

// requiredText is text that must not be empty.
func (f *yamlFile) requiredText(n ast.Node, what string) (string, error) {
	s, err := f.text(n, what)
	if err == nil && strings.TrimSpace(s) == "" {
		return "", f.errAt(n, "%s is empty", what)
	}
	return s, err
}

func (f *yamlFile) list(n ast.Node, what string, item func(ast.Node) error) error {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return f.errAt(n, "%s must be a list, not %s", what, yamlKind(n))
	}
	for _, v := range seq.Values {
		if err := item(v); err != nil {
			return err
		}
	}
	return nil
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

func yamlKind(n ast.Node) string {
	switch n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.AnchorNode, *ast.AliasNode:
		return "an anchor or alias, which specs do not use"
	case *ast.TagNode:
		return "a tagged value, which specs do not use"
	}
	return fmt.Sprintf("a %s", n.Type())
}

// expandEnv replaces ${env:NAME} and ${env:NAME:-default}. A variable that is
// neither set nor given a default is an error: an empty catalog name would
// otherwise write to the wrong place.
func expandEnv(s string, env func(string) (string, bool)) (string, error) {
	const open = "${env:"
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, open)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		body, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", fmt.Errorf("%q has no closing }", open+rest)
		}
		name, def, hasDefault := strings.Cut(body, ":-")
		if !isEnvName(name) {
			return "", fmt.Errorf("%q is no name of an environment variable", name)
		}
		value, ok := env(name)
		switch {
		case ok && (value != "" || !hasDefault):
			b.WriteString(value)
		case hasDefault:
			b.WriteString(def)
		default:
			return "", fmt.Errorf("the environment variable %s is not set; write ${env:%s:-default} to give a default", name, name)
		}
		s = after
	}
}

func isEnvName(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
