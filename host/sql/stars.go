package sql

import (
	"slices"
	"strings"

	"github.com/weir-data/weir/host/relation"
)

func containsStar(n node) bool {
	found := false
	visit(n, func(n node) { found = found || n.str("class") == "STAR" })
	return found
}

// visit calls f for every node of an expression, subqueries left out.
func visit(v any, f func(node)) {
	switch v := v.(type) {
	case node:
		visit(map[string]any(v), f)
	case map[string]any:
		if node(v).str("class") == "SUBQUERY" {
			return
		}
		f(v)
		for _, e := range v {
			visit(e, f)
		}
	case []any:
		for _, e := range v {
			visit(e, f)
		}
	}
}

// hideFromStars leaves the hidden columns out of every star of an expression.
func hideFromStars(item node, from rel) error {
	if !from.stream && !from.metadata {
		return nil
	}
	var err error
	visit(item, func(n node) {
		if n.str("class") != "STAR" {
			return
		}
		if pattern, ok := constantText(n.child("expr")); ok {
			// COLUMNS('pattern') knows no EXCLUDE; COLUMNS(lambda) has a star inside.
			var filtered node
			if filtered, err = fill("COLUMNS(lambda name: regexp_matches(name, __1))", textConstant(pattern)); err == nil {
				n.become(filtered)
			}
		}
		if n.child("expr") != nil {
			return
		}
		hidden := from
		if q := n.str("relation_name"); q != "" {
			hidden = from.named(q)
		}
		excluded := n.list("exclude_list")
		if hidden.stream {
			excluded = append(excluded, relation.RowColumn)
		}
		if hidden.metadata && !slices.ContainsFunc(n.strings("exclude_list"), func(s string) bool { return strings.EqualFold(s, relation.MetadataColumn) }) {
			excluded = append(excluded, relation.MetadataColumn)
		}
		n["exclude_list"] = excluded
	})
	return err
}

// named gives the hidden columns behind one name of a FROM clause.
func (f rel) named(name string) rel {
	for _, a := range f.names {
		if strings.EqualFold(a.name, name) {
			return rel{stream: a.stream, metadata: a.metadata}
		}
	}
	return rel{}
}

// called gives the relation under the one name it has in a FROM clause.
func (f rel) called(name string) rel {
	f.names = []relName{{name, f.stream, f.metadata}}
	return f
}
