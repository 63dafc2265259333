package sql

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// checkSetOperations refuses a UNION, INTERSECT or EXCEPT whose sides have
// columns of other kinds: DuckDB would make texts of both, Spark casts the texts
// and fails where they are none, or refuses it too. A side that does not stand
// alone, since it names columns around it, is DuckDB's to judge.
func (p *planner) checkSetOperations(tree node, r *rewriter, schemas map[string]*arrow.Schema) error {
	return p.setOperationsIn(map[string]any(tree), nil, r, schemas)
}

func (p *planner) setOperationsIn(v any, ctes []any, r *rewriter, schemas map[string]*arrow.Schema) error {
	switch v := v.(type) {
	case node:
		return p.setOperationsIn(map[string]any(v), ctes, r, schemas)
	case []any:
		for _, e := range v {
			if err := p.setOperationsIn(e, ctes, r, schemas); err != nil {
				return err
			}
		}
	case map[string]any:
		if own := node(v).child("cte_map"); own != nil {
			ctes = append(slices.Clip(ctes), own.list("map")...)
		}
		if node(v).str("type") == "SET_OPERATION_NODE" {
			if err := p.checkSides(v, ctes, r, schemas); err != nil {
				return err
			}
		}
		for _, e := range v {
			if err := p.setOperationsIn(e, ctes, r, schemas); err != nil {
				return err
			}
		}
	}
	return nil
}

// sidesOf gives what a set operation puts together.
func sidesOf(n node) []node {
	if sides := n.nodes("children"); len(sides) > 0 {
		return sides
	}
	return []node{n.child("left"), n.child("right")}
}

// checkSides binds each side by itself and compares their columns.
func (p *planner) checkSides(n node, ctes []any, r *rewriter, schemas map[string]*arrow.Schema) error {
	byName := strings.HasSuffix(n.str("setop_type"), "BY_NAME")
	var names []string
	var kinds []string
	for _, side := range sidesOf(n) {
		bound, err := p.bindSide(side, ctes, r, schemas)
		if err != nil {
			return nil
		}
		for i, name := range bound.names {
			at := i
			if byName {
				at = slices.IndexFunc(names, func(s string) bool { return strings.EqualFold(s, name) })
			}
			kind := kindOfColumn(bound, i)
			if items := side.nodes("select_list"); len(items) == len(bound.names) && isNull(items[i]) {
				kind = "" // a bare NULL is bound as a number
			}
			switch {
			case at < 0 || at >= len(names):
				names, kinds = append(names, name), append(kinds, kind)
			case kinds[at] == "":
				kinds[at] = kind
			case kind != "" && kinds[at] != kind:
				bound.close()
				return fault.New("DATATYPE_MISMATCH", "column %s of the set operation is a %s on one side and a %s on another", names[at], kinds[at], kind).
					WithHint("CAST one of them").At(r.at(n))
			}
		}
		bound.close()
	}
	return nil
}

// bindSide binds one side with the CTEs it can see.
func (p *planner) bindSide(side node, ctes []any, r *rewriter, schemas map[string]*arrow.Schema) (*prepared, error) {
	body := clone(map[string]any(side)).(map[string]any)
	own := node(body).child("cte_map")
	own["map"] = append(slices.Clone(ctes), own.list("map")...)
	statement := selectOf(map[string]any{"class": "CONSTANT"})
	statement["node"] = body
	r.defineInputs(body)
	text, err := printSelect(statement)
	if err != nil {
		return nil, err
	}
	return p.bind(text, schemas, r)
}

// kindOfColumn sorts types by what Spark puts together without a cast; "" goes
// with everything, or is compared by DuckDB.
func kindOfColumn(p *prepared, i int) string {
	switch t := p.typeOf(i); {
	case t == "VARCHAR":
		return "text"
	case t == "BOOLEAN":
		return "boolean"
	case t == "DATE", strings.HasPrefix(t, "TIMESTAMP"):
		return "date or timestamp"
	case t == "BLOB":
		return "binary"
	case strings.HasSuffix(t, "INT"), t == "INTEGER", t == "FLOAT", t == "DOUBLE", strings.HasPrefix(t, "DECIMAL"):
		return "number"
	}
	return ""
}

func isNull(n node) bool {
	return n.str("class") == "CONSTANT" && n.child("value").flag("is_null")
}
