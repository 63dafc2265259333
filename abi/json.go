package abi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDocument and maxNesting bound a JSON document of a guest. Manifests of
// hundreds of datasets stay below a megabyte and ten levels.
const (
	maxDocument = 16 << 20
	maxNesting  = 32
)

// node is one value of a JSON document. Unlike map[string]any it keeps the
// order of objects and notices duplicate keys, and unlike decoding into a
// struct it can name the path of what it refuses.
type node struct {
	kind    byte // o, a, s, n, b, 0 (null)
	text    string
	members []member
	items   []node
}

type member struct {
	key   string
	value node
	used  bool
}

func parseJSON(data []byte) (node, error) {
	if len(data) > maxDocument {
		return node{}, invalid("", "a document of %d bytes is over the limit of %d", len(data), maxDocument)
	}
	if !utf8.Valid(data) {
		return node{}, invalid("", "the document is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	n, err := readNode(dec, "", 0)
	if err != nil {
		return node{}, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return node{}, invalid("", "more text after the document, at byte %d", dec.InputOffset())
	}
	return n, nil
}

func readNode(dec *json.Decoder, path string, depth int) (node, error) {
	if depth > maxNesting {
		return node{}, invalid("", "nested deeper than %d", maxNesting)
	}
	tok, err := dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return node{}, invalid(path, "not JSON at byte %d: %v", dec.InputOffset(), err)
	}
	switch v := tok.(type) {
	case nil:
		return node{}, nil
	case bool:
		return node{kind: 'b', text: strconv.FormatBool(v)}, nil
	case json.Number:
		return node{kind: 'n', text: v.String()}, nil
	case string:
		return node{kind: 's', text: v}, nil
	case json.Delim:
		if v == '[' {
			return readArray(dec, path, depth)
		}
		return readObject(dec, path, depth)
	}
	return node{}, invalid(path, "not JSON at byte %d", dec.InputOffset())
}

func readArray(dec *json.Decoder, path string, depth int) (node, error) {
	n := node{kind: 'a'}
	for dec.More() {
		item, err := readNode(dec, index(path, len(n.items)), depth+1)
		if err != nil {
			return n, err
		}
		n.items = append(n.items, item)
	}
	return n, closing(dec, path)
}

func readObject(dec *json.Decoder, path string, depth int) (node, error) {
	n := node{kind: 'o'}
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		key, ok := tok.(string)
		if err != nil || !ok {
			return n, invalid(path, "not JSON at byte %d", dec.InputOffset())
		}
		if seen[key] {
			return n, invalid(join(path, key), "the key stands twice")
		}
		seen[key] = true
		value, err := readNode(dec, join(path, key), depth+1)
		if err != nil {
			return n, err
		}
		n.members = append(n.members, member{key: key, value: value})
	}
	return n, closing(dec, path)
}

func closing(dec *json.Decoder, path string) error {
	if _, err := dec.Token(); err != nil {
		return invalid(path, "not JSON at byte %d: the document ends early", dec.InputOffset())
	}
	return nil
}

func join(path, key string) string {
	key = clip(key, 80)
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func kindName(k byte) string {
	switch k {
	case 'o':
		return "an object"
	case 'a':
		return "a list"
	case 's':
		return "a text"
	case 'n':
		return "a number"
	case 'b':
		return "true or false"
	}
	return "null"
}

// object reads the members of one object; the first error sticks, so a reader
// asks for all its fields and looks at err once, in end.
type object struct {
	path  string
	node  *node
	known []string
	err   error
}

func (n *node) object(path string) *object {
	o := &object{path: path, node: n}
	if n.kind != 'o' {
		o.err = invalid(path, "expected an object, found %s", kindName(n.kind))
	}
	return o
}

func (o *object) refuse(key, format string, args ...any) {
	if o.err == nil {
		o.err = invalid(join(o.path, key), format, args...)
	}
}

// take finds a member; an explicit null is an absent one.
func (o *object) take(key string) *node {
	o.known = append(o.known, key)
	if o.err != nil {
		return nil
	}
	for i := range o.node.members {
		m := &o.node.members[i]
		if m.key == key {
			m.used = true
			if m.value.kind == 0 {
				return nil
			}
			return &m.value
		}
	}
	return nil
}

func (o *object) typed(key string, kind byte) *node {
	n := o.take(key)
	if n != nil && n.kind != kind {
		o.refuse(key, "expected %s, found %s", kindName(kind), kindName(n.kind))
		return nil
	}
	return n
}

func (o *object) text(key string) string {
	if n := o.typed(key, 's'); n != nil {
		return n.text
	}
	return ""
}

// required is a text that must be there and not be empty.
func (o *object) required(key string) string {
	s := o.text(key)
	if s == "" {
		o.refuse(key, "is required")
	}
	return s
}

// name is a required name; nameOpt one that may be absent.
func (o *object) name(key string) string {
	s := o.required(key)
	o.checkName(key, s)
	return s
}

func (o *object) nameOpt(key string) string {
	n := o.typed(key, 's')
	if n == nil {
		return ""
	}
	o.checkName(key, n.text)
	return n.text
}

func (o *object) checkName(key, s string) {
	if why := badName(s); why != "" {
		o.refuse(key, "%s", why)
	}
}

func badName(s string) string {
	if s == "" {
		return "a name is empty"
	}
	if len(s) > 255 {
		return "a name of " + strconv.Itoa(len(s)) + " bytes is over 255"
	}
	for _, r := range s {
		if r < 0x20 || r == 0x7f {
			return "a name holds a control character"
		}
	}
	return ""
}

// choice is one of several words; def "" makes it required.
func (o *object) choice(key, def string, words ...string) string {
	s := o.choiceOpt(key, words...)
	if s != "" {
		return s
	}
	if def == "" {
		o.refuse(key, "is required: one of %s", strings.Join(words, ", "))
	}
	return def
}

// choiceOpt is one of several words, or "" when absent.
func (o *object) choiceOpt(key string, words ...string) string {
	n := o.typed(key, 's')
	if n == nil {
		return ""
	}
	if !slices.Contains(words, n.text) {
		o.refuse(key, "%q is not one of %s", n.text, strings.Join(words, ", "))
	}
	return n.text
}

func (o *object) flag(key string, def bool) bool {
	if n := o.typed(key, 'b'); n != nil {
		return n.text == "true"
	}
	return def
}

func (o *object) number(key string) (int, bool) {
	n := o.typed(key, 'n')
	if n == nil {
		return 0, false
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil || v > math.MaxInt32 || v < math.MinInt32 {
		o.refuse(key, "%s is not a small whole number", n.text)
	}
	return int(v), true
}

// list gives the items with their paths; nil when the key is absent, and a
// list that is not nil when it is there.
func (o *object) list(key string, each func(path string, item *node) error) bool {
	n := o.typed(key, 'a')
	if n == nil {
		return false
	}
	for i := range n.items {
		if o.err != nil {
			return true
		}
		o.err = each(index(join(o.path, key), i), &n.items[i])
	}
	return true
}

// names is a list of names without repetition, its case aside; nil when absent.
func (o *object) names(key string) []string {
	var out []string
	seen := map[string]bool{}
	found := o.list(key, func(path string, item *node) error {
		if item.kind != 's' {
			return invalid(path, "expected a text, found %s", kindName(item.kind))
		}
		if why := badName(item.text); why != "" {
			return invalid(path, "%s", why)
		}
		if k := strings.ToLower(item.text); seen[k] {
			return invalid(path, "%q stands twice", item.text)
		} else {
			seen[k] = true
		}
		out = append(out, item.text)
		return nil
	})
	if found && out == nil {
		out = []string{}
	}
	return out
}

// texts is an object of texts.
func (o *object) texts(key string) map[string]string {
	n := o.typed(key, 'o')
	if n == nil {
		return nil
	}
	out := make(map[string]string, len(n.members))
	for _, m := range n.members {
		if m.value.kind != 's' {
			o.refuse(join(key, m.key), "expected a text, found %s", kindName(m.value.kind))
			return nil
		}
		out[m.key] = m.value.text
	}
	return out
}

// end refuses members that nobody asked for and gives the first error.
func (o *object) end() error {
	if o.err != nil {
		return o.err
	}
	for i := range o.node.members {
		if m := &o.node.members[i]; !m.used {
			return invalid(join(o.path, m.key), "unknown field; known are %s", strings.Join(o.known, ", "))
		}
	}
	return nil
}
