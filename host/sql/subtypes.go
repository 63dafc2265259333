package sql

import (
	"fmt"
	"reflect"

	"github.com/weir-data/weir/host/fault"
)

// typeKey marks a subquery in a tree whose type is known under that number.
const typeKey = "weir_type"

// subqueryTypes makes the types of the subqueries known in what an operation waits
// for: DuckDB does not tell that of an argument with a subquery in it. The column of
// each is an operation of its own that changes nothing.
func (r *rewriter) subqueryTypes(args []any) error {
	var err error
	visitSubqueries(args, func(n node) {
		if err != nil || n[typeKey] != nil || n.str("subquery_type") != "SCALAR" {
			return
		}
		top := n.child("subquery").child("node")
		items := top.nodes("select_list")
		if top.str("type") != "SELECT_NODE" || len(items) != 1 || containsStar(items[0]) {
			err = fault.New("NOT_SUPPORTED", "an operation takes the value of a subquery that is no SELECT of one column").
				WithHint("Name the value in a CTE and join it").At(r.at(n))
			return
		}
		key := fmt.Sprint(len(r.subqueries))
		if r.subqueries == nil {
			r.subqueries = map[string]sqlType{}
		}
		r.subqueries[key] = sqlType{id: "NULL"}
		n[typeKey] = key
		ctx := place{query: r.queryOf(items[0])}
		alias := items[0].str("alias")
		inner := clone(map[string]any(items[0])).(map[string]any)
		inner["alias"] = ""
		err = r.wait(items[0], "value of subquery "+key, []any{inner}, ctx, func(types []sqlType, args []map[string]any) (node, error) {
			r.subqueries[key] = types[0]
			return args[0], nil
		})
		items[0]["alias"] = alias
	})
	return err
}

// queryOf gives the SELECT whose list a node stands in.
func (r *rewriter) queryOf(item node) int {
	for q, items := range r.selects {
		if len(items) > 0 && reflect.ValueOf(items[0]).Pointer() == reflect.ValueOf(item).Pointer() {
			return q
		}
	}
	return 0
}

// visitSubqueries calls f for the outermost subqueries of an expression.
func visitSubqueries(v any, f func(node)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			visitSubqueries(e, f)
		}
	case node:
		visitSubqueries(map[string]any(v), f)
	case map[string]any:
		if node(v).str("class") == "SUBQUERY" {
			f(v)
			return
		}
		for _, e := range v {
			visitSubqueries(e, f)
		}
	}
}

// withoutSubqueries puts values of their types in the place of the subqueries that
// operations wait for, in a tree that only binds, and takes the marks out.
func (r *rewriter) withoutSubqueries(tree any) error {
	var err error
	visitAll(tree, func(n node) {
		if r.probeOf(n) == nil {
			return
		}
		visitSubqueries(n.list("children")[1:], func(sub node) {
			t := sqlType{id: "BOOLEAN"}
			if key, ok := sub[typeKey].(string); ok {
				t = r.subqueries[key]
			}
			text := "NULL"
			if !t.null() && t.id != "OTHER" {
				text = fmt.Sprintf("CAST(NULL AS %s)", t)
			}
			// What waits inside the subquery must be bound, too.
			inside := map[string]any(sub)
			if r.hasProbe(inside) {
				return
			}
			var value map[string]any
			if value, err = fill[any](text); err == nil {
				sub.become(value)
			}
		})
	})
	unmark(tree)
	return err
}

// unmark takes the marks of subqueries out of a tree.
func unmark(tree any) {
	visitAll(tree, func(n node) { delete(n, typeKey) })
}
