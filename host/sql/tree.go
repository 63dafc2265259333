package sql

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// node is a node of DuckDB's syntax tree as json_serialize_sql writes it.
// Numbers stay json.Number, so that what is not touched comes back unchanged.
type node map[string]any

func (n node) str(key string) string {
	s, _ := n[key].(string)
	return s
}

func (n node) flag(key string) bool {
	b, _ := n[key].(bool)
	return b
}

// child gives the node under key, or nil.
func (n node) child(key string) node {
	m, _ := n[key].(map[string]any)
	return m
}

func (n node) list(key string) []any {
	l, _ := n[key].([]any)
	return l
}

// nodes gives the nodes in the list under key.
func (n node) nodes(key string) []node {
	var out []node
	for _, v := range n.list(key) {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func (n node) strings(key string) []string {
	var out []string
	for _, v := range n.list(key) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// location is the byte the node starts at, or -1.
func (n node) location() int {
	num, ok := n["query_location"].(json.Number)
	if !ok {
		return -1
	}
	at, err := strconv.ParseInt(string(num), 10, 32)
	if err != nil {
		return -1
	}
	return int(at)
}

// become makes n what o is; n keeps its alias.
func (n node) become(o node) {
	alias, had := n["alias"]
	clear(n)
	for k, v := range o {
		n[k] = v
	}
	if had {
		n["alias"] = alias
	}
}

// clone copies a tree.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = clone(e)
		}
		return m
	case node:
		return clone(map[string]any(v))
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = clone(e)
		}
		return l
	}
	return v
}

const nowhere = json.Number("18446744073709551615")

func columnRef(names ...string) map[string]any {
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	return map[string]any{"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "query_location": nowhere, "column_names": list}
}

func textConstant(s string) map[string]any {
	return map[string]any{
		"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "query_location": nowhere,
		"value": map[string]any{"type": map[string]any{"id": "VARCHAR", "type_info": nil}, "is_null": false, "value": s},
	}
}

// constantText gives the text of a VARCHAR constant.
func constantText(n node) (string, bool) {
	if n.str("class") != "CONSTANT" {
		return "", false
	}
	s, ok := n.child("value")["value"].(string)
	return s, ok
}

func castNode(child map[string]any, typeID string) map[string]any {
	return map[string]any{
		"class": "CAST", "type": "OPERATOR_CAST", "alias": "", "query_location": nowhere,
		"child": child, "cast_type": map[string]any{"id": typeID, "type_info": nil}, "try_cast": false,
	}
}

// parseSelect parses the one SELECT of a text in Spark's spelling.
func parseSelect(text string, o *origin) (node, *origin, error) {
	text, o, err := spell(text, o)
	if err != nil {
		return nil, nil, err
	}
	return parseTree(text, o)
}

// parseTree parses the one SELECT of a text in DuckDB's spelling.
func parseTree(text string, o *origin) (node, *origin, error) {
	out, err := onGrammar("SELECT json_serialize_sql(?::VARCHAR)::VARCHAR", text)
	if err != nil {
		return nil, nil, err
	}
	doc, err := decode(out[0])
	if err != nil {
		return nil, nil, err
	}
	if doc.flag("error") {
		return nil, nil, parseFault(doc, o)
	}
	statements := doc.nodes("statements")
	if len(statements) != 1 {
		return nil, nil, syntaxError(o.where(0), "%d statements stand where one SELECT is due", len(statements))
	}
	return statements[0], o, nil
}

// parseFault turns what json_serialize_sql says into a fault at its place.
func parseFault(doc node, o *origin) error {
	at := 0
	if n, err := strconv.Atoi(doc.str("position")); err == nil {
		at = n
	}
	if doc.str("error_type") == "not implemented" {
		return fault.New("NOT_SUPPORTED", "the text is not a SELECT").WithHint("Only one SELECT is run").At(o.where(0))
	}
	msg, _, _ := strings.Cut(doc.str("error_message"), "\n")
	return syntaxError(o.where(at), "%s", msg)
}

// printSelect writes a statement's tree as SQL.
func printSelect(statement node) (string, error) {
	out, err := printAll([]node{statement})
	if err != nil {
		return "", err
	}
	return out[0], nil
}

// printAll writes several trees in one go.
func printAll(statements []node) ([]string, error) {
	docs := make([]string, len(statements))
	for i, s := range statements {
		doc, err := json.Marshal(map[string]any{"error": false, "statements": []any{s}})
		if err != nil {
			return nil, fault.Wrap(err, "INTERNAL_ERROR", "a query cannot be written down")
		}
		docs[i] = string(doc)
	}
	list, err := json.Marshal(docs)
	if err != nil {
		return nil, fault.Wrap(err, "INTERNAL_ERROR", "a query cannot be written down")
	}
	return onGrammar("SELECT json_deserialize_sql(CAST(d AS JSON)) FROM (SELECT unnest(from_json(?::VARCHAR, '[\"VARCHAR\"]')) AS d)", string(list))
}

// printExpressions writes expressions as SQL, without their aliases.
func printExpressions(exprs []node) ([]string, error) {
	if len(exprs) == 0 {
		return nil, nil
	}
	statements := make([]node, len(exprs))
	for i, e := range exprs {
		e = clone(e).(map[string]any)
		e["alias"] = ""
		statements[i] = selectOf(e)
	}
	out, err := printAll(statements)
	for i, s := range out {
		out[i] = strings.TrimSpace(strings.TrimPrefix(s, "SELECT"))
	}
	return out, err
}

// selectOf makes the statement SELECT e.
func selectOf(e map[string]any) node {
	return node{
		"named_param_map": []any{},
		"node": map[string]any{
			"type": "SELECT_NODE", "modifiers": []any{}, "cte_map": map[string]any{"map": []any{}},
			"select_list": []any{e}, "from_table": map[string]any{"type": "EMPTY", "alias": "", "sample": nil, "query_location": nowhere},
			"where_clause": nil, "group_expressions": []any{}, "group_sets": []any{}, "aggregate_handling": "STANDARD_HANDLING",
			"having": nil, "sample": nil, "qualify": nil,
		},
	}
}

func decode(doc string) (node, error) {
	dec := json.NewDecoder(bytes.NewReader([]byte(doc)))
	dec.UseNumber()
	var n node
	if err := dec.Decode(&n); err != nil {
		return nil, fault.Wrap(err, "INTERNAL_ERROR", "DuckDB gives a syntax tree that cannot be read")
	}
	return n, nil
}

func onGrammar(query, param string) ([]string, error) {
	g, err := grammar()
	if err != nil {
		return nil, err
	}
	c, err := g.connect()
	if err != nil {
		return nil, err
	}
	defer c.release()
	out, err := c.texts(query, param)
	if err == nil && len(out) == 0 {
		err = errors.New("no result")
	}
	if err != nil {
		return nil, fault.Wrap(fmt.Errorf("%w", err), "INTERNAL_ERROR", "DuckDB's parser fails")
	}
	return out, nil
}
