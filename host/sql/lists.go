package sql

import (
	"fmt"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// mapOf is map(k, v, k, v …).
func mapOf(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if strings.EqualFold(n.str("schema"), "main") {
		return false, nil // MAP {…}
	}
	if len(args)%2 != 0 {
		return true, arity(name, len(args))
	}
	keys, values := []any{}, []any{}
	for i := 0; i < len(args); i += 2 {
		keys, values = append(keys, args[i]), append(values, args[i+1])
	}
	n.become(callNode("map", callNode("list_value", keys...), callNode("list_value", values...)))
	return true, nil
}

// namedStruct is named_struct('a', 1, 'b', 2).
func namedStruct(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args)%2 != 0 || len(args) == 0 {
		return true, arity(name, len(args))
	}
	var fields []any
	for i := 0; i < len(args); i += 2 {
		field, err := constantArgument(name, args[i])
		if err != nil {
			return true, err
		}
		value := args[i+1].(map[string]any)
		value["alias"] = field
		fields = append(fields, value)
	}
	n.become(callNode("struct_pack", fields...))
	return true, nil
}

func listOf(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	n.become(callNode("list_value", args...))
	return true, nil
}

func sortArray(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) != 2 {
		return r.sparkFunction(n, name, args, ctx)
	}
	up, ok := constantFlag(args[1].(map[string]any))
	if !ok {
		return true, fault.New("NON_FOLDABLE_ARGUMENT", "%s takes a constant order", name)
	}
	template := "list_sort(__1, 'ASC', 'NULLS FIRST')"
	if !up {
		template = "list_sort(__1, 'DESC', 'NULLS LAST')"
	}
	out, err := fill(template, args[0])
	if err == nil {
		n.become(out)
	}
	return true, err
}

// arraysZip gives a list of structs; a field is called as the column it comes from, or by its place.
func arraysZip(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) == 0 {
		return true, arity(name, 0)
	}
	var fields, lengths, known []string
	for i, a := range args {
		field := fmt.Sprint(i)
		if names := node(a.(map[string]any)).strings("column_names"); len(names) > 0 {
			field = names[len(names)-1]
		}
		fields = append(fields, fmt.Sprintf("%s := list_extract(__%d, CAST(i + 1 AS BIGINT))", quoteName(field), i+1))
		lengths = append(lengths, fmt.Sprintf("len(__%d)", i+1))
		known = append(known, fmt.Sprintf("__%d IS NOT NULL", i+1))
	}
	out, err := fill(fmt.Sprintf("CASE WHEN %s THEN list_transform(range(greatest(%s)), lambda i: struct_pack(%s)) END",
		strings.Join(known, " AND "), strings.Join(lengths, ", "), strings.Join(fields, ", ")), args...)
	if err == nil {
		n.become(out)
	}
	return true, err
}

// sequence counts from one number or day to another, both included.
func sequence(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) != 2 && len(args) != 3 {
		return true, arity(name, len(args))
	}
	return true, r.wait(n, name, args, ctx, func(types []sqlType, args []map[string]any) (node, error) {
		t := types[0]
		switch {
		case t.whole() && types[1].whole():
			if wholeWidths[types[1].id] > wholeWidths[t.id] {
				t = types[1]
			}
			if len(args) == 2 {
				return fill(fmt.Sprintf("CAST(CASE WHEN __1 <= __2 THEN generate_series(__1, __2) ELSE generate_series(__1, __2, -1) END AS %s[])", t), args...)
			}
			return fill(fmt.Sprintf("CAST(CASE WHEN __3 = 0 AND __1 <> __2 OR __3 > 0 AND __1 > __2 OR __3 < 0 AND __1 < __2 THEN error('[ILLEGAL_SEQUENCE_BOUNDARIES] The step does not lead from start to stop') WHEN __3 = 0 THEN list_value(__1) ELSE generate_series(__1, __2, __3) END AS %s[])", t), args...)
		case t.id == "DATE" && types[1].id == "DATE" && len(args) == 2:
			return fill("list_transform(CASE WHEN __1 <= __2 THEN range(CAST(__2 - __1 + 1 AS BIGINT)) ELSE range(0, CAST(__2 - __1 - 1 AS BIGINT), -1) END, lambda i: __1 + CAST(i AS INTEGER))", args...)
		case t.id == "DATE" && types[1].id == "DATE" && types[2].id == "INTERVAL" && args[2]["function_name"] == "to_months":
			return fill("list_filter(list_transform(range(date_diff('month', __1, __2) + 1), lambda i: CAST(__1 + __3 * CAST(i AS INTEGER) AS DATE)), lambda e: e <= __2)", args...)
		}
		return nil, fault.New("NOT_SUPPORTED", "sequence takes whole numbers, or dates with a step of days or months")
	})
}

// lambdaOf gives the names and the body of a lambda.
func lambdaOf(n node) ([]string, node, bool) {
	if n.str("class") != "LAMBDA" {
		return nil, nil, false
	}
	var names []string
	lhs := n.child("lhs")
	switch {
	case len(lhs.strings("column_names")) == 1:
		names = lhs.strings("column_names")
	default:
		for _, c := range lhs.nodes("children") {
			names = append(names, c.strings("column_names")...)
		}
	}
	return names, n.child("expr"), len(names) > 0
}

// renamed gives a copy of a lambda's body with other trees in the place of its names.
func renamed(body node, with map[string]map[string]any) map[string]any {
	return renameIn(clone(map[string]any(body)), with).(map[string]any)
}

func renameIn(v any, with map[string]map[string]any) any {
	switch v := v.(type) {
	case map[string]any:
		if node(v).str("class") == "LAMBDA" {
			names, _, _ := lambdaOf(v)
			inner := map[string]map[string]any{}
			for k, e := range with {
				inner[k] = e
			}
			for _, name := range names {
				delete(inner, strings.ToLower(name))
			}
			v["expr"] = renameIn(v["expr"], inner)
			return v
		}
		if names := node(v).strings("column_names"); node(v).str("class") == "COLUMN_REF" && len(names) > 0 {
			to, ok := with[strings.ToLower(names[0])]
			if !ok {
				return v
			}
			out := clone(to).(map[string]any)
			for _, field := range names[1:] {
				out = map[string]any{
					"class": "OPERATOR", "type": "STRUCT_EXTRACT", "alias": "", "query_location": nowhere,
					"children": []any{out, textConstant(field)},
				}
			}
			if alias := node(v).str("alias"); alias != "" {
				out["alias"] = alias
			}
			return out
		}
		for k, e := range v {
			v[k] = renameIn(e, with)
		}
	case []any:
		for i, e := range v {
			v[i] = renameIn(e, with)
		}
	}
	return v
}

// higherOrder are the functions that take a lambda.
var higherOrder = map[string]bool{
	"transform": true, "filter": true, "exists": true, "forall": true, "aggregate": true, "reduce": true, "zip_with": true, "map_filter": true,
	"transform_keys": true, "transform_values": true, "array_sort": true, "map_zip_with": true, "any_match": true,
	"list_transform": true, "list_filter": true, "list_reduce": true, "list_apply": true, "array_transform": true, "array_filter": true, "array_reduce": true,
	"array_apply": true, "apply": true,
}

// lambda writes a lambda with the names that a template has.
func lambdaNode(body map[string]any, names ...string) map[string]any {
	lhs := columnRef(names[0])
	if len(names) > 1 {
		var refs []any
		for _, name := range names {
			refs = append(refs, columnRef(name))
		}
		lhs = callNode("row", refs...)
	}
	return map[string]any{"class": "LAMBDA", "type": "LAMBDA", "alias": "", "query_location": nowhere, "lhs": lhs, "expr": body}
}

// higher is a function that takes a lambda. Its place counts from 0, as lists do in Spark.
func higher(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	list := func(i int) map[string]any { return args[i].(map[string]any) }
	var names []string
	var body node
	for i, a := range args {
		got, b, ok := lambdaOf(a.(map[string]any))
		if ok && body == nil && i > 0 {
			names, body = got, b
		}
	}
	if body == nil {
		if name == "array_sort" {
			return r.sparkFunction(n, name, args, ctx)
		}
		return false, nil
	}
	first := strings.ToLower(names[0])
	second := ""
	if len(names) > 1 {
		second = strings.ToLower(names[1])
	}
	become := func(out map[string]any, err error) (bool, error) {
		if err == nil {
			n.become(out)
		}
		return true, err
	}
	// over gives DuckDB's lambda of the value and, when it is asked for, its place.
	over := func() (map[string]any, error) {
		if second == "" {
			return lambdaNode(body, first), nil
		}
		index, err := fill("CAST(__1 - 1 AS INTEGER)", columnRef(partName+"_i"))
		if err != nil {
			return nil, err
		}
		return lambdaNode(renamed(body, map[string]map[string]any{second: index}), first, partName+"_i"), nil
	}
	switch name {
	case "transform", "filter", "exists", "forall":
		if len(args) != 2 || len(names) > 2 || len(names) == 2 && name != "transform" && name != "filter" {
			return true, arity(name, len(args))
		}
		f, err := over()
		if err != nil {
			return true, err
		}
		switch name {
		case "transform":
			return become(callNode("list_transform", list(0), f), nil)
		case "filter":
			return become(callNode("list_filter", list(0), f), nil)
		case "exists":
			return become(fill("CASE WHEN list_contains(__1, true) THEN true WHEN list_count(__1) < len(__1) THEN NULL WHEN len(__1) >= 0 THEN false END", callNode("list_transform", list(0), f)))
		}
		return become(fill("CASE WHEN list_contains(__1, false) THEN false WHEN list_count(__1) < len(__1) THEN NULL WHEN len(__1) >= 0 THEN true END", callNode("list_transform", list(0), f)))
	case "aggregate", "reduce":
		if len(args) < 3 || len(names) != 2 {
			return true, arity(name, len(args))
		}
		_, merge, ok := lambdaOf(list(2))
		if !ok {
			return true, arity(name, len(args))
		}
		out := callNode("list_reduce", list(0), lambdaNode(merge, first, second), list(1))
		if len(args) == 4 {
			finish, last, ok := lambdaOf(list(3))
			if !ok || len(finish) != 1 {
				return true, arity(name, len(args))
			}
			out = renamed(last, map[string]map[string]any{strings.ToLower(finish[0]): out})
		}
		return become(out, nil)
	case "zip_with":
		if len(args) != 3 || len(names) != 2 {
			return true, arity(name, len(args))
		}
		with := map[string]map[string]any{}
		for i, v := range []string{first, second} {
			e, err := fill("list_extract(__1, __2 + 1)", list(i), columnRef(partName+"_i"))
			if err != nil {
				return true, err
			}
			with[v] = e
		}
		return become(fill("list_transform(range(greatest(len(__1), len(__2))), __3)", list(0), list(1), lambdaNode(renamed(body, with), partName+"_i")))
	case "map_filter", "transform_keys", "transform_values":
		if len(args) != 2 || len(names) != 2 {
			return true, arity(name, len(args))
		}
		with := map[string]map[string]any{}
		for i, v := range []string{first, second} {
			e, err := fill([]string{"struct_extract(__1, 'key')", "struct_extract(__1, 'value')"}[i], columnRef(partName+"_e"))
			if err != nil {
				return true, err
			}
			with[v] = e
		}
		f := lambdaNode(renamed(body, with), partName+"_e")
		return become(fill(map[string]string{
			"map_filter":       "map_from_entries(list_filter(map_entries(__1), __2))",
			"transform_keys":   "CASE WHEN __1 IS NOT NULL THEN map(list_transform(map_entries(__1), __2), map_values(__1)) END",
			"transform_values": "CASE WHEN __1 IS NOT NULL THEN map(map_keys(__1), list_transform(map_entries(__1), __2)) END",
		}[name], list(0), f))
	}
	return true, fault.New("NOT_SUPPORTED", "%s with a lambda is not supported", name).WithHint("Sort by a key: list_transform into structs that begin with it, array_sort, and take the value out")
}
